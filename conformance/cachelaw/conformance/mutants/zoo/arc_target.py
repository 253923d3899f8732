"""Wrong as ARC: how the target moves, and what it is compared with."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cachelaw.conformance.mutants.zoo.arc_uses import OpenArc
from cachelaw.conformance.mutants.zoo.words import Key, Keys
from cachelaw.reference.policy import Victims
from cachelaw.reference.recency import forget


class TargetStartsFull(OpenArc):
    """B57: starts with the capacity for a target."""

    breaks = "arc/target-starts-at-zero"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.aim(float(cache_capacity))

    def clear(self) -> None:
        super().clear()
        self.aim(float(self.cache_capacity))


class TargetStartsHalf(OpenArc):
    """B57: starts with half the capacity for a target."""

    breaks = "arc/target-starts-at-zero"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.aim(cache_capacity / 2)

    def clear(self) -> None:
        super().clear()
        self.aim(self.cache_capacity / 2)


class SignsSwapped(OpenArc):
    """B49: a hit in B1 lowers the target and one in B2 raises it."""

    breaks = "arc/b1-hit-raises-target"

    def aim(self, target: float) -> None:
        super().aim(2 * self.state.target - target)


class OnlyRaises(OpenArc):
    """B50: moves the target in one direction only."""

    breaks = "arc/b2-hit-lowers-target"

    def aim(self, target: float) -> None:
        super().aim(max(target, self.state.target))


class AnyGhostRaises(OpenArc):
    """Raises the target for a hit in either list."""

    breaks = "arc/b2-hit-lowers-target"

    def aim(self, target: float) -> None:
        super().aim(self.state.target + abs(target - self.state.target))


class StepIsOne(OpenArc):
    """B49, B52: always moves the target by one."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return 1.0


class StepTruncated(OpenArc):
    """B49: divides integers."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1, other // own)


class StepRoundedUp(OpenArc):
    """B49: rounds the step up."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1, -(-other // own))


class StepRoundedToEven(OpenArc):
    """B49: rounds the step to the nearest integer."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1, round(other / own))


class RatioInverted(OpenArc):
    """B49: divides the list that was hit by the other."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1.0, own / max(1, other))


class StepMayVanish(OpenArc):
    """B49: has no least step."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return other / own if other else 1.0


class SizesTakenAfter(OpenArc):
    """B50: takes the sizes of the ghost lists after the ghost has left its own."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1.0, other / max(1, own - 1))


class StepOfB1IsOne(OpenArc):
    """B49: uses the ratio for hits in B2 only."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def aim(self, target: float) -> None:
        super().aim(min(target, self.state.target + 1))


class StepOfB2IsOne(OpenArc):
    """B49: uses the ratio for hits in B1 only."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def aim(self, target: float) -> None:
        super().aim(max(target, self.state.target - 1))


class TargetUnbounded(OpenArc):
    """B05: lets the target grow beyond the capacity."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=max(target, 0.0))


class TargetBelowZero(OpenArc):
    """B05: lets the target fall below 0."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=min(target, float(self.cache_capacity)))


class TargetBoundIsConstant(OpenArc):
    """B05: bounds the target by a constant."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=min(max(target, 0.0), 1024.0))


class TargetLeavesOne(OpenArc):
    """Bounds the target by one less than the capacity."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        super().aim(min(target, self.cache_capacity - 1.0))


class GhostKeepsPlace(OpenArc):
    """Does not renew a ghost that is hit."""

    breaks = "arc/ghost-hit-renews"

    def renew_ghost(self, key: Key) -> None: ...


class GhostTaken(OpenArc):
    """Takes a ghost away when it is hit, as the paper does."""

    breaks = "arc/ghost-hit-renews"

    def renew_ghost(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        self.state = replace(self.state, b1=forget(b1, key), b2=forget(b2, key))


class GhostOfB2KeepsPlace(OpenArc):
    """Renews a ghost that is hit in B1 only."""

    breaks = "arc/ghost-hit-renews"

    def renew_ghost(self, key: Key) -> None:
        if key in self.state.b1:
            super().renew_ghost(key)


class StrictlyGreater(OpenArc):
    """B49: takes from T1 only when it is greater than its target, as the paper does."""

    breaks = "arc/t1-gives-at-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return size > int(target)


class BelowByTwo(OpenArc):
    """Takes from T2 only when T1 is two chunks below its target."""

    breaks = "arc/t2-gives-below-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return size + 1 >= int(target)


class T1Always(OpenArc):
    """Takes from T1 as long as it has anything to give, whatever the target is."""

    breaks = "arc/b1-hit-raises-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return True


class T1AsLastResort(OpenArc):
    """Takes from T2 as long as it has anything to give, whatever the target is."""

    breaks = "arc/target-starts-at-zero"

    def t1_gives(self, size: int, target: float) -> bool:
        return False


class TargetRoundedUp(OpenArc):
    """B49: compares with the target as it is, which amounts to rounding it up."""

    breaks = "arc/target-rounded-in-comparison"

    def t1_gives(self, size: int, target: float) -> bool:
        return size >= target


class TargetRoundedToNearest(OpenArc):
    """B49: compares with the integer nearest to the target."""

    breaks = "arc/target-rounded-in-comparison"

    def t1_gives(self, size: int, target: float) -> bool:
        return size >= round(target)


class TargetIsInteger(OpenArc):
    """B49: rounds the target down whenever it moves."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def aim(self, target: float) -> None:
        super().aim(float(int(target)))


class SizeWithoutPending(OpenArc):
    """Compares the number of ready chunks in T1 with the target."""

    breaks = "arc/size-counts-busy-chunks"

    def t1_gives(self, size: int, target: float) -> bool:
        pending = sum(self.ref_cnt(key) < 0 for key in self.state.t1)
        return size - pending >= int(target)


class SizeWithoutProtected(OpenArc):
    """Compares the number of chunks in T1 that are not protected with the target."""

    breaks = "arc/size-counts-busy-chunks"
    protected: Collection[Key] = ()

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        self.protected = tuple(protected)
        return super().evict(n, protected)

    def t1_gives(self, size: int, target: float) -> bool:
        spared = sum(key in self.protected for key in self.state.t1)
        return size - spared >= int(target)


class SizeOfIdleOnly(OpenArc):
    """Compares the number of idle chunks in T1 with the target."""

    breaks = "arc/size-counts-busy-chunks"

    def t1_gives(self, size: int, target: float) -> bool:
        busy = sum(self.ref_cnt(key) != 0 for key in self.state.t1)
        return size - busy >= int(target)


class DecidesOnce(OpenArc):
    """Decides once for a batch which list gives."""

    breaks = "arc/each-victim-anew"

    def t1_gives(self, size: int, target: float) -> bool:
        return len(self.state.t1) >= int(target)


class TargetFullAtFirst(OpenArc):
    """B57: takes the target for the capacity until the first eviction."""

    breaks = "arc/target-starts-at-zero"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.evicts = False

    def t1_gives(self, size: int, target: float) -> bool:
        return super().t1_gives(size, target if self.evicts else self.cache_capacity)

    def hand_over(self, victims: Keys | None) -> Victims | None:
        self.evicts |= bool(victims)
        return super().hand_over(victims)

    def clear(self) -> None:
        super().clear()
        self.evicts = False


class StrictlyGreaterThanOne(OpenArc):
    """Lets T1 give at its target, unless that is 1."""

    breaks = "arc/t1-gives-at-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return size > 1 if int(target) == 1 else super().t1_gives(size, target)
