"""Wrong with inserts, removes and uses: who is resident and who is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Clock, Fifo, Lfu, Recent
from cachelaw.conformance.mutants.zoo.words import Groups, Key, Keys
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.policy import Victims


class Doorkeeper(Fifo):
    """Does not let a key in that it evicted, until it comes a second time."""

    breaks = "insert/makes-resident"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.banned: set[Key] = set()

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        if key in self.banned:
            self.banned.remove(key)
        else:
            super().insert(key, chunk)

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.banned.update(key for key, _ in pairs)
        return pairs


class KeepsOldObject(Fifo):
    """Keeps the object of a key's first residence when the key is inserted again."""

    breaks = "get/same-object"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.objects: dict[Key, Any] = {}

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, self.objects.setdefault(key, chunk))


class EvictsAtInsert(Fifo):
    """Makes room itself when an insert fills the cache."""

    breaks = "insert/makes-resident"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        if len(self.chunks) == self.capacity and self.capacity > 1:
            del self.chunks[next(iter(self.chunks))]


class LeavesOneFree(Fifo):
    """Allows one chunk less than fit, by an error of one in its bound."""

    breaks = "insert/makes-resident"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        if len(self.chunks) < self.capacity - 1:
            super().insert(key, chunk)


class LazyRemove(Fifo):
    """Leaves removed chunks in place until the next eviction."""

    breaks = "remove/forgets"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.removed: set[Key] = set()

    def remove(self, key: Key) -> None:
        self.removed.add(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        for key in self.removed:
            self.chunks.pop(key, None)
        self.removed.clear()
        return super().evict(n, protected)


class RemovesAllPending(Fifo):
    """Takes the failure of one store for the failure of all that are under way."""

    breaks = "remove/forgets"

    def remove(self, key: Key) -> None:
        self.chunks = {k: chunk for k, chunk in self.chunks.items() if chunk.ref_cnt >= 0}


class RemovesTheRest(Fifo):
    """Gives up the rest of a prefix when one of its chunks fails."""

    breaks = "remove/forgets"

    def remove(self, key: Key) -> None:
        for other in list(self.chunks)[list(self.chunks).index(key) :]:
            del self.chunks[other]


class TouchMakesResident(Recent):
    """Makes an entry for a key that is touched while it is absent."""

    breaks = "touch/keeps-residency"

    def renew(self, key: Key) -> None:
        self.chunks[key] = self.chunks.pop(key, None) or ChunkStatus(0)


class FinishReleases(Fifo):
    """Drops at the end of a request what it only stored."""

    breaks = "touch/keeps-residency"

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        for key in inserted:
            if key in self.idle():
                del self.chunks[key]


class AccessReleases(Fifo):
    """Drops the oldest idle chunk when a request sees something new."""

    breaks = "touch/keeps-residency"

    def on_request_access(self, keys: Keys, context: Any) -> None:
        for key in self.idle(set(keys))[:1]:
            del self.chunks[key]


class MissInvites(Fifo):
    """Makes room for a miss as soon as it hears of it, before it is asked to evict."""

    breaks = "touch/keeps-residency"

    def on_store_miss(self, keys: Keys, context: Any) -> None:
        if len(self.chunks) == self.capacity:
            for key in self.idle()[: len(list(keys))]:
                del self.chunks[key]


class AbsentTurnsRing(Clock):
    """Moves the ring on for every key that it does not know."""

    breaks = "touch/absent-ignored"

    def touch(self, keys: Keys, context: Any = None) -> None:
        for key in keys:
            if key in self.chunks:
                self.used.add(key)
            elif self.chunks:
                first = next(iter(self.chunks))
                self.chunks[first] = self.chunks.pop(first)


class AbsentAgesCounts(Lfu):
    """Halves all counts after every eight keys touched, absent ones included."""

    breaks = "touch/absent-ignored"
    seen = 0

    def touch(self, keys: Keys, context: Any = None) -> None:
        keys = list(keys)
        super().touch(keys)
        for _ in keys:
            self.seen = (self.seen + 1) % 8
            if not self.seen:
                self.counts = Counter({key: n // 2 for key, n in self.counts.items()})

    def clear(self) -> None:
        super().clear()
        self.seen = 0


class CountsAbsent(Lfu):
    """Counts a key's uses before it was ever stored."""

    breaks = "touch/absent-ignored"

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.counts.update(keys)


class WalksTwice(Recent):
    """Walks the keys of a touch twice: first to see whether any is there."""

    breaks = "touch/any-iterable"

    def touch(self, keys: Keys, context: Any = None) -> None:
        if any(key in self.chunks for key in keys):
            super().touch(keys)


class SlicesKeys(Recent):
    """Slices the keys of a touch, which not every iterable allows."""

    breaks = "touch/any-iterable"

    def touch(self, keys: Any, context: Any = None) -> None:
        for key in keys[::-1]:
            self.renew(key)


class MissWalksTwice(Recent):
    """Walks the keys of a miss twice, the second time to let missed keys start young."""

    breaks = "touch/any-iterable"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.missed: list[Key] = []

    def on_store_miss(self, keys: Keys, context: Any) -> None:
        self.missed = [key for key in self.missed if key not in list(keys)]
        self.missed.extend(keys)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        place = {key: at for at, key in enumerate(self.missed)}
        return sorted(super().idle(protected), key=lambda key: -place.get(key, -1))

    def clear(self) -> None:
        super().clear()
        self.missed.clear()


class AccessWalksTwice(Recent):
    """Walks the keys that a request sees for the first time twice."""

    breaks = "touch/any-iterable"

    def on_request_access(self, keys: Keys, context: Any) -> None:
        if set(keys) & set(self.chunks):
            self.touch(keys)


class TurnsAway(LeavesOneFree):
    """Allows one chunk less than fit, and takes what is said of the others in silence."""

    breaks = "insert/makes-resident"

    def remove(self, key: Key) -> None:
        self.chunks.pop(key, None)


class RemovedUntilInserted(Fifo):
    """Hands out the status of a failed store until its key is inserted again."""

    breaks = "remove/forgets"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.removed: dict[Key, Any] = {}

    def get(self, key: Key) -> Any:
        return self.chunks.get(key, self.removed.get(key))

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.removed.pop(key, None)

    def remove(self, key: Key) -> None:
        self.removed[key] = self.chunks.pop(key)

    def clear(self) -> None:
        super().clear()
        self.removed.clear()
