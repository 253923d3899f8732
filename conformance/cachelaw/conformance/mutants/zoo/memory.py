"""Policies that break `memory/bounded-by-residents`, and right ones that come near it."""

from __future__ import annotations

import functools
import heapq
import itertools
import weakref
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Fifo, Recent
from cachelaw.conformance.mutants.zoo.words import Key


class TouchLog(Recent):
    """B14: a record for each touch, and nobody tidies up."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.log: list[Key] = []

    def renew(self, key: Key) -> None:
        super().renew(key)
        self.log.append(key)


class LazyHeap(Recent):
    """B14: stale records of a heap are dropped when they surface, which takes an eviction."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.heap: list[tuple[int, Key]] = []
        self.clock = itertools.count()

    def mark_evictable(self, key: Key) -> None:
        heapq.heappush(self.heap, (next(self.clock), key))

    def hand_over(self, victims: Any) -> Any:
        pairs = super().hand_over(victims)
        self.heap = [record for record in self.heap if record[1] in self.chunks]
        heapq.heapify(self.heap)
        return pairs

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.heap = [record for record in self.heap if record[1] != key]


class GhostsOfFailures(Fifo):
    """A failed store leaves its key behind."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.failed: set[Key] = set()

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.failed.add(key)


class KeepsRequests(Fifo):
    """The contexts of requests that touched are never let go."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.requests: dict[str, Any] = {}

    def touch(self, keys: Any, context: Any = None) -> None:
        if context is not None:
            self.requests[context.req_id] = context


class EndlessGhosts(Fifo):
    """A list of ghosts that is never cut."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.ghosts: dict[Key, None] = {}

    def hand_over(self, victims: Any) -> Any:
        pairs = super().hand_over(victims)
        self.ghosts.update((key, None) for key, _ in pairs)
        return pairs


class MarksLog(Fifo):
    """Each mark is written down, one bit of it in a growing number of bytes."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.marks = bytearray()

    def mark_evictable(self, key: Key) -> None:
        self.marks.append(1)

    def mark_non_evictable(self, key: Key) -> None:
        self.marks.append(0)


class FinishedRequests(Fifo):
    """The names of ended requests are kept, to see whether one ends twice."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.finished: set[str] = set()

    def on_request_finished(self, groups: Any, inserted: Any, reused: Any, context: Any) -> None:
        self.finished.add(context.req_id)


class CountsStrangers(Recent):
    """Uses are counted of keys that were never stored."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.counts: dict[Key, int] = {}

    def touch(self, keys: Any, context: Any = None) -> None:
        for key in list(keys):
            self.counts[key] = self.counts.get(key, 0) + 1


class SeenAtLookup(Fifo):
    """Even a look-up leaves a trace."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.asked: list[bool] = []

    def get(self, key: Key) -> Any:
        self.asked.append(key in self.chunks)
        return super().get(key)


class RefusalsKept(Fifo):
    """What a refused eviction was to protect is kept, in case it comes again."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.refused: list[set[Key]] = []

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None:
            self.refused.append(set(protected))
        return answer


class KeepsWhatWasCleared(Fifo):
    """Keys that were in the cache when it was cleared are kept for good."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.before: tuple[Any, ...] = ()

    def clear(self) -> None:
        # Links, not a list: no single object grows.
        self.before = (self.before, *self.chunks)
        super().clear()


class CachedScores(Fifo):
    """A cache of a method, without a bound, that remembers all keys."""

    breaks = "memory/bounded-by-residents"

    def touch(self, keys: Any, context: Any = None) -> None:
        for key in keys:
            self.score(key)

    @functools.lru_cache(maxsize=None)  # noqa: B019, UP033
    def score(self, key: Key) -> int:
        return key[0]


class DefaultArgument(Fifo):
    """A default argument that all calls share grows."""

    breaks = "memory/bounded-by-residents"

    def remove(self, key: Key, _removed: list[Key] = []) -> None:  # noqa: B006
        super().remove(key)
        _removed.append(key)


_OFFERED: list[Key] = []


class GlobalLog(Fifo):
    """The log is no attribute but a global of its module."""

    breaks = "memory/bounded-by-residents"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        _OFFERED.append(key)


class ClosureLog(Fifo):
    """The log is in the closure of a function that the policy made for itself."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        log: list[Key] = []

        def note(key: Key) -> None:
            log.append(key)

        self.note = note

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.note(key)


# --- Right ---------------------------------------------------------------------------------------


class TidiesUp(Recent):
    """Right: a record for each touch, tidied up at 64, as the LRU of vLLM 0.31 and later does."""

    limit = 64

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.records: list[Key] = []

    def renew(self, key: Key) -> None:
        super().renew(key)
        self.records.append(key)
        if len(self.records) >= self.limit:
            self.records = list(self.chunks)


class TidiesUpLate(TidiesUp):
    """Right: the same, at a number that a short run does not reach."""

    limit = 1000


class BoundedGhosts(Fifo):
    """Right: as many ghosts as chunks fit."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.ghosts: dict[Key, None] = {}

    def hand_over(self, victims: Any) -> Any:
        pairs = super().hand_over(victims)
        for key, _ in pairs:
            self.ghosts[key] = None
        while len(self.ghosts) > self.capacity:
            del self.ghosts[next(iter(self.ghosts))]
        return pairs


class HoldsRequestsWeakly(Fifo):
    """Right: remembers running requests for as long as somebody else does."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.requests: weakref.WeakSet[Any] = weakref.WeakSet()

    def touch(self, keys: Any, context: Any = None) -> None:
        self.requests.add(context)


class HoldsRunningRequests(Fifo):
    """Right: remembers what a running request sees, until it ends or the cache is cleared."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.running: dict[str, Any] = {}

    def on_request_access(self, keys: Any, context: Any) -> None:
        self.running[context.req_id] = context

    def on_request_finished(self, groups: Any, inserted: Any, reused: Any, context: Any) -> None:
        self.running.pop(context.req_id, None)

    def clear(self) -> None:
        super().clear()
        self.running.clear()


class _Hidden:
    """Something like compiled code: what it holds cannot be reached."""

    tables: dict[int, dict[Key, Any]] = {}  # noqa: RUF012


def _table(number: int) -> dict[Key, Any]:
    return _Hidden.tables.setdefault(number, {})


class OutOfSight:
    """Right, but its chunks lie where nobody can see them."""

    numbers = itertools.count()

    def __init__(self, cache_capacity: int) -> None:
        self.number = next(self.numbers)

    def __getattr__(self, name: str) -> Any:
        fifo = Fifo(1)
        fifo.chunks = _table(object.__getattribute__(self, "number"))
        return getattr(fifo, name)


class RaisesAtEvict(Fifo):
    """It cannot be driven, so nothing can be said of its memory."""

    def evict(self, n: int, protected: set[Key]) -> Any:
        raise RuntimeError
