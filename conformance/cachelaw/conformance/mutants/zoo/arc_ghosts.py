"""Wrong as ARC: who leaves its list, and who is remembered."""

from __future__ import annotations

from dataclasses import replace

from cachelaw.conformance.mutants.zoo.arc_uses import OpenArc
from cachelaw.conformance.mutants.zoo.words import Key
from cachelaw.reference.recency import trim
from cachelaw.reference.resident import declaration


class T1MostRecentFirst(OpenArc):
    """B66: evicts from the wrong end of T1."""

    breaks = "arc/oldest-of-its-list-first"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        return super().choose(n, from_t1[::-1], from_t2)


class T2MostRecentFirst(OpenArc):
    """B66: evicts from the wrong end of T2."""

    breaks = "arc/oldest-of-its-list-first"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        return super().choose(n, from_t1, from_t2[::-1])


class ListByList(OpenArc):
    """Returns the victims from T1 first, in whatever order they were chosen."""

    breaks = "arc/oldest-of-its-list-first"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims = super().choose(n, from_t1, from_t2)
        return victims and sorted(victims, key=lambda key: key in self.state.t2)


class PassedOverMoves(OpenArc):
    """Moves what it passes over in T1 to the recent end."""

    breaks = "arc/oldest-of-its-list-first"

    def bury(self, victims: list[Key]) -> None:
        super().bury(victims)
        for key in self.state.t1 if victims else ():
            if self.ref_cnt(key):
                self.renew(key)


class FallsBackToYoungT2(OpenArc):
    """Takes the youngest of T2 when T1 should give and is busy."""

    breaks = "arc/falls-back-to-t2"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        busy = self.state.t1 and not from_t1
        return super().choose(n, from_t1, from_t2[::-1] if busy else from_t2)


class FallsBackToYoungT1(OpenArc):
    """Takes the youngest of T1 when T2 should give and has nothing."""

    breaks = "arc/falls-back-to-t1"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        below = not from_t2 and not self.t1_gives(len(self.state.t1), self.state.target)
        return super().choose(n, from_t1[::-1] if below else from_t1, from_t2)


class FallsBackTooEarly(OpenArc):
    """Has the fallback that came with v0.30, under an older edition."""

    breaks = "arc/no-fallback-to-t1"
    cachelaw = declaration("arc", "v0.24")


class NoGhosts(OpenArc):
    """B50: remembers nothing that it evicts, and so never learns."""

    breaks = "arc/b1-hit-raises-target"
    also = ("arc/victim-becomes-ghost",)

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None: ...


class LastBecomesGhost(OpenArc):
    """Remembers the last victim of a batch only."""

    breaks = "arc/victim-becomes-ghost"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1[-1:], gone_t2[-1:])


class GhostsInB1Only(OpenArc):
    """Remembers in B1 whatever it evicts."""

    breaks = "arc/b2-hit-lowers-target"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1 + gone_t2, ())


class NoGhostsOfT2(OpenArc):
    """Remembers only what it evicts from T1."""

    breaks = "arc/b2-hit-lowers-target"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1, ())


class GhostsUnbounded(OpenArc):
    """B05: remembers every key for ever."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1, b2 = self.state.b1 + gone_t1, self.state.b2 + gone_t2
        self.state = replace(self.state, b1=b1, b2=b2)


class GhostsTrimmedByOne(OpenArc):
    """B05: drops one ghost at each eviction, however many have come."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1, b2 = self.state.b1 + gone_t1, self.state.b2 + gone_t2
        c = self.cache_capacity
        self.state = replace(self.state, b1=b1[len(b1) > c :], b2=b2[len(b2) > c :])


class GhostsTrimmedAtWrongEnd(OpenArc):
    """B05: drops the youngest ghosts."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1, b2 = self.state.b1 + gone_t1, self.state.b2 + gone_t2
        c = self.cache_capacity
        self.state = replace(self.state, b1=b1[:c], b2=b2[:c])


class GhostsOfT1Unbounded(OpenArc):
    """B05: bounds B2 only."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b2 = trim(self.state.b2 + gone_t2, self.cache_capacity)
        self.state = replace(self.state, b1=self.state.b1 + gone_t1, b2=b2)


class GhostsOfT2Unbounded(OpenArc):
    """B05: bounds B1 only."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1 = trim(self.state.b1 + gone_t1, self.cache_capacity)
        self.state = replace(self.state, b1=b1, b2=self.state.b2 + gone_t2)


class GhostsShareBudget(OpenArc):
    """Bounds T1 and B1 together by the capacity, as the paper does."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1, gone_t2)
        left = self.cache_capacity - len(self.state.t1)
        self.state = replace(self.state, b1=trim(self.state.b1, left))


class GhostsBoundIsConstant(OpenArc):
    """B05: bounds the ghost lists by 10, however large the cache is."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1, gone_t2)
        b1, b2 = trim(self.state.b1, 10), trim(self.state.b2, 10)
        self.state = replace(self.state, b1=b1, b2=b2)


class TargetIsSmall(OpenArc):
    """B05: bounds the target by 8, however large the cache is."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        super().aim(min(target, 8.0))


class GhostsOneTooMany(OpenArc):
    """Bounds the ghost lists by one more than the capacity."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        c = self.cache_capacity + 1
        b1, b2 = trim(self.state.b1 + gone_t1, c), trim(self.state.b2 + gone_t2, c)
        self.state = replace(self.state, b1=b1, b2=b2)
