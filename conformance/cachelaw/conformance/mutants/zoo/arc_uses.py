"""Wrong as ARC: inserts, uses and requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cachelaw.conformance.mutants.zoo.words import Groups, Key, Keys, KeySet
from cachelaw.reference import arc, v030, v031, v033
from cachelaw.reference.context import ReqContext
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import Victims
from cachelaw.reference.recency import eligible, forget, renew, trim
from cachelaw.reference.resident import declaration


class OpenArc(v033.ARC):
    """Right: ARC with each decision in a method of its own."""

    def insert(self, key: Key, chunk: Any, req_context: ReqContext | None = None) -> None:
        self.chunks[key] = chunk
        self.admit(key)

    def admit(self, key: Key) -> None:
        self.state = arc.insert(self.state, key)

    def touch(self, keys: Keys, req_context: ReqContext | None = None) -> None:
        for key in reversed(list(keys)):
            self.use(key)

    def use(self, key: Key) -> None:
        if key in self.state.t1 and self.ref_cnt(key) >= 0:
            self.promote(key)
        elif key in self.chunks:
            self.renew(key)
        else:
            self.adapt(key)

    def promote(self, key: Key) -> None:
        t1, t2 = self.state.t1, self.state.t2
        self.state = replace(self.state, t1=forget(t1, key), t2=renew(t2, key))

    def renew(self, key: Key) -> None:
        t1, t2 = self.state.t1, self.state.t2
        if key in t1:
            self.state = replace(self.state, t1=renew(t1, key))
        elif key in t2:
            self.state = replace(self.state, t2=renew(t2, key))

    def adapt(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        if key in b1:
            self.aim(self.state.target + self.step(len(b1), len(b2)))
        elif key in b2:
            self.aim(self.state.target - self.step(len(b2), len(b1)))
        self.renew_ghost(key)

    def step(self, own: int, other: int) -> float:
        return max(1.0, other / own)

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=min(max(target, 0.0), float(self.cache_capacity)))

    def renew_ghost(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        if key in b1:
            self.state = replace(self.state, b1=renew(b1, key))
        elif key in b2:
            self.state = replace(self.state, b2=renew(b2, key))

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None:
        for key in reversed(list(keys)):
            self.adapt(key)

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        for key in reversed(order_request_keys(groups, req_context)):
            self.finish(key, stored=key in inserted, reused=key in reused)

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        if stored:
            self.renew(key)
        elif reused and key in self.state.t1:
            self.promote(key)
        elif reused:
            self.renew(key)

    def t1_gives(self, size: int, target: float) -> bool:
        return size >= int(target)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        from_t1 = list(eligible(self.state.t1, protected, self.ref_cnt))
        from_t2 = list(eligible(self.state.t2, protected, self.ref_cnt))
        if len(from_t1) + len(from_t2) < n:
            return None
        victims = self.choose(n, from_t1, from_t2)
        if victims is None:
            return None
        self.bury(victims)
        return self.hand_over(victims)

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims: list[Key] = []
        size = len(self.state.t1)
        while len(victims) < n:
            if from_t1 and (not from_t2 or self.t1_gives(size, self.state.target)):
                victims.append(from_t1.pop(0))
                size -= 1
            else:
                victims.append(from_t2.pop(0))
        return victims

    def bury(self, victims: list[Key]) -> None:
        state = self.state
        gone_t1 = tuple(key for key in victims if key in state.t1)
        gone_t2 = tuple(key for key in victims if key in state.t2)
        self.state = replace(
            state,
            t1=tuple(key for key in state.t1 if key not in gone_t1),
            t2=tuple(key for key in state.t2 if key not in gone_t2),
        )
        if victims:
            self.remember(gone_t1, gone_t2)

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        self.state = replace(
            self.state,
            b1=trim(self.state.b1 + gone_t1, self.cache_capacity),
            b2=trim(self.state.b2 + gone_t2, self.cache_capacity),
        )


class PendingTouchRaises(OpenArc):
    """B04: takes a touched chunk out of T1 and then cannot find it, as it is pending."""

    breaks = "call/valid-call-returns"

    def use(self, key: Key) -> None:
        if key in self.chunks and self.ref_cnt(key) < 0:
            self.state = replace(self.state, t1=forget(self.state.t1, key))
            self.chunks.pop(key)
            raise KeyError(key)
        super().use(key)


class PendingTouchLoses(OpenArc):
    """B04: takes a touched chunk out of T1, and does not put it back if it is pending."""

    breaks = "touch/keeps-residency"

    def use(self, key: Key) -> None:
        if key in self.chunks and self.ref_cnt(key) < 0:
            self.state = replace(self.state, t1=forget(self.state.t1, key))
            self.chunks.pop(key)
        else:
            super().use(key)


class OldPendingTouchRaises(OpenArc):
    """B04, in the edition next to the release that had it; it says that it may refuse."""

    breaks = "call/valid-call-returns"
    cachelaw = declaration("arc", "v0.19") | {"may_refuse": True}
    falls_back_to_t1 = False

    def use(self, key: Key) -> None:
        if key in self.chunks and self.ref_cnt(key) < 0:
            raise KeyError(key)
        super().use(key)


class HitReplaces(OpenArc):
    """B52: makes room in T1 when a hit moves a chunk out of it."""

    breaks = "touch/keeps-residency"

    def promote(self, key: Key) -> None:
        super().promote(key)
        for victim in eligible(self.state.t1, (), self.ref_cnt)[:1]:
            self.bury([victim])
            self.chunks.pop(victim)


class BatchRefusalEvicts(OpenArc):
    """B03: has evicted part of a batch when it finds that it cannot evict the rest."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = [
            victim for _ in range(n) for victim in super(type(self), self).evict(1, protected) or ()
        ]
        return victims if len(victims) == n else None


class RefusalRemembers(OpenArc):
    """B34: makes ghosts of the chunks that it would have evicted."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        if victims is None:
            idle = eligible(self.state.t1, protected, self.ref_cnt)
            self.state = replace(self.state, b1=trim(self.state.b1 + idle, self.cache_capacity))
        return victims


class RefusalAdapts(OpenArc):
    """B34: lets the target drift when it has to refuse."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        if victims is None:
            self.aim(self.state.target + 1)
        return victims


class RefusesBelowTarget(OpenArc):
    """B01: refuses when T1 is below its target and T2 has nothing to give."""

    breaks = "evict/none-only-when-short"
    also = ("arc/falls-back-to-t1",)

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims: list[Key] = []
        size = len(self.state.t1)
        while len(victims) < n:
            if from_t1 and self.t1_gives(size, self.state.target):
                victims.append(from_t1.pop(0))
                size -= 1
            elif from_t2:
                victims.append(from_t2.pop(0))
            else:
                return None
        return victims


class RefusesAtTarget(OpenArc):
    """B01, mirrored: refuses when T1 is at its target and all of it is busy."""

    breaks = "evict/none-only-when-short"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims = super().choose(n, list(from_t1), list(from_t2))
        busy = len(self.state.t1) > len(from_t1)
        if busy and victims and not from_t1 and self.state.target == 0:
            return None
        return victims


class ClearKeepsTarget(OpenArc):
    """B45: clears the lists and keeps the target."""

    breaks = "arc/clear-forgets-all"
    also = ("clear/equals-new",)

    def clear(self) -> None:
        target = self.state.target
        super().clear()
        self.state = replace(self.state, target=target)


class ClearKeepsGhosts(OpenArc):
    """B45, companion: clears the chunks and keeps the ghosts."""

    breaks = "arc/clear-forgets-all"
    also = ("clear/equals-new",)

    def clear(self) -> None:
        b1, b2 = self.state.b1, self.state.b2
        super().clear()
        self.state = replace(self.state, b1=b1, b2=b2)


class GhostIntoT2(OpenArc):
    """Lets a ghost that is stored again enter T2, as the paper does."""

    breaks = "arc/insert-into-t1"

    def admit(self, key: Key) -> None:
        ghost = key in self.state.b1 or key in self.state.b2
        super().admit(key)
        if ghost:
            self.promote(key)


class EntersOldEnd(OpenArc):
    """Lets a ghost that is stored again enter T1 at the old end."""

    breaks = "arc/insert-into-t1"

    def admit(self, key: Key) -> None:
        ghost = key in self.state.b1 or key in self.state.b2
        super().admit(key)
        if ghost:
            self.state = replace(self.state, t1=(key, *forget(self.state.t1, key)))


class GhostStays(OpenArc):
    """Leaves the ghost where it is when its key is stored again."""

    breaks = "arc/insert-takes-ghost"

    def admit(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        super().admit(key)
        self.state = replace(self.state, b1=b1, b2=b2)


class GhostStaysInB2(OpenArc):
    """Takes a key that is stored again out of B1 and not out of B2."""

    breaks = "arc/insert-takes-ghost"

    def admit(self, key: Key) -> None:
        b2 = self.state.b2
        super().admit(key)
        self.state = replace(self.state, b2=b2)


class RemoveHaunts(OpenArc):
    """B47: makes a ghost of a chunk whose store failed."""

    breaks = "arc/remove-leaves-no-ghost"

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.remember((key,), ())


class NeverPromotes(OpenArc):
    """B08: leaves every chunk in T1."""

    breaks = "arc/second-use-promotes"

    def promote(self, key: Key) -> None:
        self.renew(key)


class ThirdUsePromotes(OpenArc):
    """Promotes at the second touch after the store."""

    breaks = "arc/second-use-promotes"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.once: set[Key] = set()

    def use(self, key: Key) -> None:
        if key in self.state.t1 and key not in self.once:
            self.once.add(key)
            self.renew(key)
        else:
            super().use(key)

    def admit(self, key: Key) -> None:
        super().admit(key)
        self.once.discard(key)


class PromotesToOldEnd(OpenArc):
    """Puts a promoted chunk at the old end of T2."""

    breaks = "arc/second-use-promotes"

    def promote(self, key: Key) -> None:
        super().promote(key)
        self.state = replace(self.state, t2=(key, *self.state.t2[:-1]))


class T2IsFifo(OpenArc):
    """Does not renew a touched chunk in T2."""

    breaks = "arc/use-renews-t2"

    def renew(self, key: Key) -> None:
        if key in self.state.t1:
            super().renew(key)


class PromotesPending(OpenArc):
    """B04: promotes a pending chunk like any other."""

    breaks = "arc/pending-stays-in-t1"

    def use(self, key: Key) -> None:
        if key in self.state.t1:
            self.promote(key)
        else:
            super().use(key)


class PendingTouchIgnored(OpenArc):
    """B04, sibling: does not renew a pending chunk that is touched."""

    breaks = "arc/pending-stays-in-t1"

    def use(self, key: Key) -> None:
        if key not in self.chunks or self.ref_cnt(key) >= 0:
            super().use(key)


class GhostsHeadFirst(OpenArc):
    """Takes in the ghosts of a batch head first."""

    breaks = "arc/batch-tail-first"

    def touch(self, keys: Keys, req_context: ReqContext | None = None) -> None:
        keys = list(keys)
        super().touch([key for key in keys if key in self.chunks])
        super().touch([key for key in reversed(keys) if key not in self.chunks])


class MissesHeadFirst(OpenArc):
    """Takes in the misses of an offer head first."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None:
        super().on_store_miss(list(keys)[::-1], req_context)


class ArcHeadFirst(v030.ARC):
    """B65: takes a batch in from its head, so that the tail ends most recent."""

    breaks = "arc/batch-tail-first"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        super().touch(list(keys)[::-1], req_context)


class TouchDoesNotAdapt(OpenArc):
    """Learns from misses alone, and not from a touch of a ghost."""

    breaks = "arc/touch-adapts"

    def touch(self, keys: Keys, req_context: ReqContext | None = None) -> None:
        super().touch([key for key in keys if key in self.chunks])


class MissUnheard(v031.ARC):
    """B50: is told of a miss and does not adapt."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None: ...


class AdaptsAtInsert(OpenArc):
    """B50: adapts when the key is stored, by which time it is no ghost."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None: ...

    def admit(self, key: Key) -> None:
        super().admit(key)
        self.adapt(key)


class AdaptsTwice(OpenArc):
    """B09: adapts when a key is missed and once more when the request is said to see it."""

    breaks = "arc/miss-adapts"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None:
        self.on_store_miss(keys, req_context)


class AdaptsOnceForABatch(OpenArc):
    """Takes a batch of misses for one."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None:
        super().on_store_miss(list(keys)[:1], req_context)


class StoreIsReuse(OpenArc):
    """B08: promotes at the end of a request what it only stored."""

    breaks = "arc/store-is-not-reuse"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=False, reused=stored or reused)


class StoreIsNoUse(OpenArc):
    """Leaves at the end of a request where it is what it only stored."""

    breaks = "arc/store-is-not-reuse"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=False, reused=reused)


class ReuseIsUse(OpenArc):
    """B08: never promotes at the end of a request."""

    breaks = "arc/reuse-promotes"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=stored or reused, reused=False)


class FinishOfArcUnheard(v033.ARC):
    """B75: does not listen to the end of a request."""

    breaks = "arc/store-is-not-reuse"
    also = ("arc/reuse-promotes",)

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None: ...


class FinishOfIdleOnly(OpenArc):
    """Passes over what is busy at the end of a request."""

    breaks = "arc/reuse-promotes"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        if key in self.chunks and not self.ref_cnt(key):
            super().finish(key, stored=stored, reused=reused)


class ReuseOfReadyOnly(OpenArc):
    """B13: does not promote a pending chunk that the request cannot have reused."""

    breaks = "arc/reuse-promotes"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        pending = key in self.chunks and self.ref_cnt(key) < 0
        super().finish(key, stored=stored or pending, reused=reused)


class SeenIsReuse(OpenArc):
    """B08: promotes at the end of a request whatever it saw and did not store."""

    breaks = "arc/merely-seen-stays"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        seen = not stored and key in self.chunks
        super().finish(key, stored=stored, reused=reused or seen)


class SeenIsUse(OpenArc):
    """Renews at the end of a request whatever it saw."""

    breaks = "arc/merely-seen-stays"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=not reused, reused=reused)


class FinishAdapts(OpenArc):
    """Takes a chunk that is gone when its request ends for a ghost hit."""

    breaks = "arc/merely-seen-stays"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        if key in self.chunks:
            super().finish(key, stored=stored, reused=reused)
        else:
            self.adapt(key)


class ArcByPositionAlways(OpenArc):
    """Puts keys of unknown position at the head, instead of giving up on positions."""

    breaks = "arc/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        position = req_context.get_offload_key_position
        keys = sorted((k for g in groups for k in g), key=lambda key: position(key) or 0)
        for key in reversed(keys):
            self.finish(key, stored=key in inserted, reused=key in reused)


class FinishGroupAfterGroup(OpenArc):
    """B11: takes in one group after the other at the end of a request."""

    breaks = "arc/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        for group in groups:
            super().on_request_finished([group], inserted, reused, req_context)


class RemoveHauntsOfNew(OpenArc):
    """B47: makes a ghost of a failed store, unless its key has been one."""

    breaks = "arc/remove-leaves-no-ghost"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.back: set[Key] = set()

    def admit(self, key: Key) -> None:
        if key in self.state.b1 or key in self.state.b2:
            self.back.add(key)
        super().admit(key)

    def remove(self, key: Key) -> None:
        super().remove(key)
        if key not in self.back:
            b1 = trim(renew(self.state.b1, key), self.cache_capacity)
            self.state = replace(self.state, b1=b1)

    def clear(self) -> None:
        super().clear()
        self.back.clear()


class PromotesWhenFull(OpenArc):
    """Takes a second use for a first one as long as there is room."""

    breaks = "arc/second-use-promotes"

    def promote(self, key: Key) -> None:
        if len(self.chunks) < self.cache_capacity:
            self.renew(key)
        else:
            super().promote(key)
