"""Wrong as LRU of one list (v0.19 to v0.22, v0.31)."""

from __future__ import annotations

from typing import Any

from cachelaw.conformance.mutants.zoo.words import Groups, Key, Keys, KeySet
from cachelaw.reference import lru, v019, v022, v024, v031, v033
from cachelaw.reference.context import ReqContext
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import Victims
from cachelaw.reference.recency import forget, renew


class MostRecentFirst(v019.LRU):
    """B66: evicts from the wrong end."""

    breaks = "lru/oldest-leaves-first"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        order, victims = lru.list_evict(self.state[::-1], n, protected, self.ref_cnt)
        self.state = order[::-1]
        return self.hand_over(victims)


class VictimsReversed(v024.LRU):
    """Chooses the right victims and returns the youngest of them first."""

    breaks = "lru/oldest-leaves-first"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        return victims and victims[::-1]


class VictimsSorted(v033.LRU):
    """Chooses the right victims and returns them in the order of their slots."""

    breaks = "lru/oldest-leaves-first"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        return victims and sorted(victims, key=lambda pair: -pair[1].chunk_id)


class NewcomersOldest(v022.LRU):
    """B63: ranks new chunks as the oldest."""

    breaks = "lru/insert-is-use"

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.state = (key, *self.state[:-1])


class NewcomersZero(v031.LRU):
    """B63: gives new chunks the time 0, so that only touched ones are ever young."""

    breaks = "lru/insert-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.untouched: set[Key] = set()

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.untouched.add(key)
        self.state = tuple(sorted(self.state, key=lambda k: k not in self.untouched))

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        keys = list(keys)
        self.untouched.difference_update(keys)
        super().touch(keys, req_context)


class FirstInFirstOut(v019.LRU):
    """B66: a FIFO sold as LRU: a touch changes nothing."""

    breaks = "lru/touch-is-use"

    def touch(self, keys: Keys) -> None: ...


class StaleRecord(v022.LRU):
    """B60: takes an old record of a touched chunk for its place, as the chunk is still there."""

    breaks = "lru/touch-is-use"

    def touch(self, keys: Keys) -> None:
        self.state += tuple(key for key in reversed(list(keys)) if key in self.chunks)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        there = tuple(dict.fromkeys(key for key in self.state if key in self.chunks))
        left, victims = lru.list_evict(there, n, protected, self.ref_cnt)
        self.state = tuple(key for key in self.state if key in left)
        return self.hand_over(victims)


class MovesUpOne(v031.LRU):
    """Lets a touched chunk change places with its younger neighbour only."""

    breaks = "lru/touch-is-use"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        for key in reversed(list(keys)):
            if key in self.state:
                at = self.state.index(key)
                rest = forget(self.state, key)
                self.state = (*rest[: at + 1], key, *rest[at + 1 :])


class HeadFirst(v019.LRU):
    """B65: takes a batch in from its head, so that the tail ends most recent."""

    breaks = "lru/batch-tail-first"

    def touch(self, keys: Keys) -> None:
        super().touch(list(keys)[::-1])


class BatchIsOneTime(v024.LRU):
    """B65: gives all chunks of a batch one time, and they keep the order they had."""

    breaks = "lru/batch-tail-first"

    def touch(self, keys: Keys) -> None:
        touched = set(keys)
        super().touch([key for key in reversed(self.state.idle) if key in touched])


class PassedOverRenewed(v022.LRU):
    """Gives what it passes over a second round: chunks that are busy or protected move back."""

    breaks = "lru/passed-over-keeps-place"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        for key in self.state if victims else ():
            if self.ref_cnt(key) or key in protected:
                self.state = renew(self.state, key)
        return victims


class ProtectedRenewed(v024.LRU):
    """Takes protection for a use."""

    breaks = "lru/passed-over-keeps-place"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        for key in sorted(protected) if victims else ():
            if key in self.state.idle:
                self.state = lru.evictable_mark(self.state, key)
        return victims


class BusyOnesRenewed(v033.LRU):
    """Takes the wait of a busy chunk for a use: it is the youngest after each eviction."""

    breaks = "lru/passed-over-keeps-place"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        if victims:
            busy = [key for _, key in self.state.entries if self.ref_cnt(key)]
            self.state = lru.ranked_touch(self.state, busy[::-1])
        return victims


class CompletionOrders(v031.LRU):
    """B06: orders chunks by the end of their transfers."""

    breaks = "lru/transfer-is-no-use"

    def mark_evictable(self, key: Key) -> None:
        self.state = renew(self.state, key)


class PinRenews(v033.LRU):
    """B06: takes the start of a load for a use."""

    breaks = "lru/transfer-is-no-use"

    def mark_non_evictable(self, key: Key) -> None:
        self.state = lru.ranked_touch(self.state, [key])


class LoadsOrder(v033.LRU):
    """B06: takes the end of a load for a use."""

    breaks = "lru/transfer-is-no-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.loading: set[Key] = set()

    def mark_non_evictable(self, key: Key) -> None:
        self.loading.add(key)

    def mark_evictable(self, key: Key) -> None:
        if key in self.loading:
            self.loading.remove(key)
            self.state = lru.ranked_touch(self.state, [key])

    def clear(self) -> None:
        super().clear()
        self.loading.clear()


class BusyTouchLostOfOld(v019.LRU):
    """B07: drops a touch of a busy chunk."""

    breaks = "lru/touch-of-busy-counts"

    def touch(self, keys: Keys) -> None:
        super().touch([key for key in keys if key in self.chunks and not self.ref_cnt(key)])


class PinnedTouchLost(v031.LRU):
    """B07: drops a touch of a pinned chunk."""

    breaks = "lru/touch-of-busy-counts"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        idle = [key for key in keys if key in self.chunks and self.ref_cnt(key) <= 0]
        super().touch(idle, req_context)


class PendingTouchLost(v033.LRU):
    """B07: drops a touch of a pending chunk."""

    breaks = "lru/touch-of-busy-counts"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:
        ready = [key for key in keys if key in self.chunks and self.ref_cnt(key) >= 0]
        super().touch(ready, req_context)


class FinishUnheard(v031.LRU):
    """B75: does not listen to the end of a request."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None: ...


class FinishOfStoresOnly(v033.LRU):
    """B31: at the end of a request uses what it stored, and not what it found."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        stored = [[key for key in group if key in inserted] for group in groups]
        super().on_request_finished(stored, inserted, reused, req_context)


class FinishOfReuseOnly(v031.LRU):
    """At the end of a request uses what it found, and not what it stored."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        found = [[key for key in group if key in reused] for group in groups]
        super().on_request_finished(found, inserted, reused, req_context)


class FinishSkipsBusy(v033.LRU):
    """At the end of a request passes over what is busy."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        there = [[k for k in g if k in self.chunks and not self.ref_cnt(k)] for g in groups]
        super().on_request_finished(there, inserted, reused, req_context)


class GroupAfterGroup(v031.LRU):
    """B11: uses one group after the other at the end of a request."""

    breaks = "lru/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        for group in groups:
            self.touch(group, req_context)


class FinishHeadFirst(v033.LRU):
    """B65: at the end of a request leaves the tail most recent."""

    breaks = "lru/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        self.touch(order_request_keys(groups, req_context)[::-1], req_context)


class FinishByPositionAlways(v031.LRU):
    """Puts keys of unknown position at the head, instead of giving up on positions."""

    breaks = "lru/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        position = req_context.get_offload_key_position
        keys = [key for group in groups for key in group]
        self.touch(sorted(keys, key=lambda key: position(key) or 0), req_context)


class RecencyWraps(v019.LRU):
    """Counts time in four bits, so that it starts over after sixteen uses."""

    breaks = "lru/touch-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.time = 0
        self.last: dict[Key, int] = {}

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.use(key)

    def touch(self, keys: Keys) -> None:
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.use(key)

    def use(self, key: Key) -> None:
        self.time = (self.time + 1) % 16
        self.last[key] = self.time
        self.state = tuple(sorted(renew(self.state, key), key=self.last.__getitem__))


class RecencyRounds(v022.LRU):
    """Adds ever smaller steps to its time, until they are rounded away."""

    breaks = "lru/touch-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.step = 2.0**-40
        self.time = 0.0
        self.last: dict[Key, float] = {}

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.use(key)

    def touch(self, keys: Keys) -> None:
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.use(key)

    def use(self, key: Key) -> None:
        self.step /= 2
        self.time += self.step
        self.last[key] = self.time
        renewed = (key, *forget(self.state, key))
        self.state = tuple(sorted(renewed, key=self.last.__getitem__))

    def clear(self) -> None:
        super().clear()
        self.step, self.time = 2.0**-40, 0.0


class ShortBatchHeadFirst(v031.LRU):
    """B65: takes a batch in from its head, unless it is a long one."""

    breaks = "lru/batch-tail-first"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        keys = list(keys)
        super().touch(keys if len(keys) > 8 else keys[::-1], req_context)


class CompletionOrdersUntouched(v031.LRU):
    """B06: the end of a store is a use, unless somebody has used a chunk since it began."""

    breaks = "lru/transfer-is-no-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.fresh: set[Key] = set()

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.fresh.add(key)

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        keys = list(keys)
        super().touch(keys, req_context)
        if not self.chunks.keys().isdisjoint(keys):
            self.fresh.clear()

    def mark_evictable(self, key: Key) -> None:
        if key in self.fresh:
            self.fresh.remove(key)
            self.state = renew(self.state, key)

    def clear(self) -> None:
        super().clear()
        self.fresh.clear()
