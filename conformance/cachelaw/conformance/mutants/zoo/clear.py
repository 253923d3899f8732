"""Wrong with `clear` and with marks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Clock, Fifo, Lfu, Recent
from cachelaw.conformance.mutants.zoo.words import Groups, Key


class ClearKeepsBusy(Fifo):
    """B29: clears what is idle."""

    breaks = "clear/forgets-all"

    def clear(self) -> None:
        for key in self.idle():
            del self.chunks[key]


class ClearKeepsAll(Fifo):
    """Does nothing when it is cleared."""

    breaks = "clear/forgets-all"

    def clear(self) -> None: ...


class ClearKeepsCounts(Lfu):
    """Clears the chunks and leaves how often they were used."""

    breaks = "clear/equals-new"

    def clear(self) -> None:
        self.chunks.clear()


class ClearKeepsBits(Clock):
    """Clears the chunks and leaves their reference bits."""

    breaks = "clear/equals-new"

    def clear(self) -> None:
        self.chunks.clear()


class ClearKeepsFinished(Recent):
    """Clears the chunks and leaves which of them finished requests had stored."""

    breaks = "clear/equals-new"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.finished: set[Key] = set()

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        self.finished |= inserted

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=lambda key: key not in self.finished)


class ClearKeepsClock(Recent):
    """Counts inserts, spares every third from eviction if it can, and counts on after a clear."""

    breaks = "clear/equals-new"
    inserts = 0

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.spared: set[Key] = set()

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.inserts += 1
        (self.spared.discard if self.inserts % 3 else self.spared.add)(key)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=lambda key: key in self.spared)


class MarkHides(Fifo):
    """Puts a pinned chunk away where it cannot be found."""

    breaks = "marks/keep-residency"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.away: dict[Key, Any] = {}

    def mark_non_evictable(self, key: Key) -> None:
        self.away[key] = self.chunks.pop(key)

    def mark_evictable(self, key: Key) -> None:
        if key in self.away:
            self.chunks[key] = self.away.pop(key)


class MarkTrims(Fifo):
    """Keeps no more idle chunks than half the capacity."""

    breaks = "marks/keep-residency"

    def mark_evictable(self, key: Key) -> None:
        for victim in self.idle()[: -max(1, self.capacity // 2)]:
            del self.chunks[victim]


class MarkForgets(Fifo):
    """Lets go of a chunk that was pinned when its last load ends."""

    breaks = "marks/keep-residency"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.pinned: set[Key] = set()

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.pinned.discard(key)

    def mark_non_evictable(self, key: Key) -> None:
        self.pinned.add(key)

    def mark_evictable(self, key: Key) -> None:
        if key in self.pinned:
            self.chunks.pop(key, None)
