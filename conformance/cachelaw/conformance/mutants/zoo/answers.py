"""Wrong with the answers of `evict`."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Fifo, Queue
from cachelaw.conformance.mutants.zoo.words import Key, Keys
from cachelaw.reference import lru, v024, v026
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.policy import Victims


class ReturnsTuple(Fifo):
    """Returns a tuple of pairs."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return tuple(super().hand_over(victims))


class ReturnsGenerator(Fifo):
    """Returns a generator, so that nothing leaves before somebody looks."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return ((key, self.chunks.pop(key)) for key in victims)


class ReturnsTable(Fifo):
    """Returns a dict."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return dict(super().hand_over(victims))


class ReturnsKeys(Fifo):
    """Returns the keys alone."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return [key for key, _ in super().hand_over(victims)]


class ReturnsLists(Fifo):
    """Returns each pair as a list."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return [list(pair) for pair in super().hand_over(victims)]


class WipesCache(Fifo):
    """B68: evicts all that it can, whatever it is asked for."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        return self.hand_over(victims if n else ()) if len(victims) >= n else None


class OneTooMany(Fifo):
    """Evicts one chunk more than it is asked for, if it is there."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        return self.hand_over(victims[: n + 1 if n else 0]) if len(victims) >= n else None


class PartialBatch(Fifo):
    """Evicts what there is when it is asked for more."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return self.hand_over(self.idle(protected)[:n])


class EmptyForNone(Fifo):
    """Returns an empty list when it cannot evict enough."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        return [] if answer is None else answer


class SameTwice(Fifo):
    """Starts its scan over for each victim of a batch and finds the same one again."""

    breaks = "evict/distinct"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        if len(victims) < n:
            return None
        key = victims[0] if victims else None
        chosen = [(key, self.chunks[key]) for _ in range(n) if key is not None]
        if chosen and key is not None:
            del self.chunks[key]
        return chosen


class ForgottenRecord(Queue):
    """Removes a chunk and leaves its record in the queue."""

    breaks = "evict/resident-only"

    def remove(self, key: Key) -> None:
        chunk = self.chunks.pop(key)
        self.queue = [(k, ChunkStatus(0) if c is chunk else c) for k, c in self.queue]
        for k, c in self.queue:
            if k == key:
                c.ref_cnt = 0


class ClearKeepsQueue(Queue):
    """Clears the table and leaves the queue as it was."""

    breaks = "evict/resident-only"

    def clear(self) -> None:
        self.chunks.clear()


class OffersGhosts(Queue):
    """A cursor that was not moved off its victims proposes them again."""

    breaks = "evict/resident-only"
    last: Any = None

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer and self.last is not None and len(answer) > 1:
            return [self.last, *answer[1:]]
        self.last = answer[-1] if answer else self.last
        return answer

    def clear(self) -> None:
        super().clear()
        self.last = None


class EvictsPending(Fifo):
    """Takes every chunk that no load has pinned for idle."""

    breaks = "evict/idle-only"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, chunk in self.chunks.items() if chunk.ref_cnt <= 0 and k not in protected]


class EvictsPinned(Fifo):
    """Takes every ready chunk for idle."""

    breaks = "evict/idle-only"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, chunk in self.chunks.items() if chunk.ref_cnt >= 0 and k not in protected]


class PinsAreFlags(Fifo):
    """B70: takes the ref count for a flag and looks at its lowest bit."""

    breaks = "evict/idle-only"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, c in self.chunks.items() if not c.ref_cnt & 1 and k not in protected]


class ChoosesAhead(Fifo):
    """Chooses its next victim at the end of an eviction, and does not look again."""

    breaks = "evict/idle-only"
    chosen: Key | None = None

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        keys = super().idle(protected)
        chosen = self.chosen
        if chosen is None or chosen not in self.chunks or chosen in protected:
            return keys
        return [chosen, *(key for key in keys if key != chosen)]

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.chosen = next(iter(self.idle()), None)
        return pairs

    def clear(self) -> None:
        super().clear()
        self.chosen = None


class IgnoresPinMark(v024.LRU):
    """Learns what becomes idle, and not what is pinned again."""

    breaks = "evict/idle-only"

    def mark_non_evictable(self, key: Key) -> None: ...


class TouchMakesIdle(v026.LRU):
    """Gives a touched chunk a place among the idle ones, busy as it may be."""

    breaks = "evict/idle-only"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.state = lru.evictable_mark(self.state, key)


class IgnoresProtected(Fifo):
    """B17: evicts what the caller asked it to keep."""

    breaks = "evict/protected-honoured"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return super().idle()


class ProtectsIfItCan(Fifo):
    """Evicts protected chunks rather than refuse."""

    breaks = "evict/protected-honoured"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return super().idle(protected) + [key for key in super().idle() if key in protected]


class ProtectsOneByOne(Fifo):
    """Checks protection for the first victim of a batch only."""

    breaks = "evict/protected-honoured"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        first = super().idle(protected)[:1]
        return first + [key for key in super().idle() if key not in first]


class HandsBackCopy(Fifo):
    """Hands back a copy of the status."""

    breaks = "evict/same-object"

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, copy.copy(chunk)) for key, chunk in super().hand_over(victims)]


class SwapsObjects(Fifo):
    """Pairs the victims of a batch with each other's objects."""

    breaks = "evict/same-object"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        chunks = [chunk for _, chunk in reversed(pairs)]
        return [(key, chunk) for (key, _), chunk in zip(pairs, chunks, strict=True)]


class HandsBackOldObject(Fifo):
    """Hands back the object of a key's earlier residence."""

    breaks = "evict/same-object"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.objects: dict[Key, Any] = {}

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.objects.setdefault(key, chunk)

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, self.objects[key]) for key, _ in super().hand_over(victims)]


class KeepsVictims(Fifo):
    """B55: takes its victims off its list and leaves them in its table."""

    breaks = "evict/forgets-victims"

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, self.chunks[key]) for key in victims]


class KeepsLastVictim(Fifo):
    """Forgets all victims of a batch but the last."""

    breaks = "evict/forgets-victims"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.chunks.update(pairs[1:][-1:])
        return pairs


class DropsTwo(Fifo):
    """Loses one more chunk at each eviction, without a word."""

    breaks = "evict/keeps-others"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        for key in self.idle()[:1] if pairs else ():
            del self.chunks[key]
        return pairs


class DropsBusy(Fifo):
    """Loses the busy chunks that it passes over on its way to a victim."""

    breaks = "evict/keeps-others"

    def hand_over(self, victims: Keys) -> Victims:
        victims = list(victims)
        for key in list(self.chunks)[: list(self.chunks).index(victims[-1])] if victims else ():
            if key not in victims and self.chunks[key].ref_cnt != 0:
                del self.chunks[key]
        return super().hand_over(victims)


class InventsVictim(Fifo):
    """Makes up the last of three victims and more."""

    breaks = "evict/resident-only"

    def hand_over(self, victims: Keys) -> Victims:
        victims = list(victims)
        if len(victims) < 3:
            return super().hand_over(victims)
        return [*super().hand_over(victims[:-1]), (Key(b"nobody"), ChunkStatus(0))]


class ProtectsSingly(Fifo):
    """Looks at what is protected only if it is asked for one victim."""

    breaks = "evict/protected-honoured"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected if n == 1 else set())
