"""Policies that break `cost/linear`, each in one way, and right ones that come near it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Fifo, Recent
from cachelaw.conformance.mutants.zoo.words import Key


class ScansAnewForEachVictim(Fifo):
    """B02: each victim of a batch is searched for from the front, past those already chosen."""

    breaks = "cost/linear"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims: dict[Key, None] = {}
        for _ in range(n):
            for key, chunk in self.chunks.items():
                if chunk.ref_cnt == 0 and key not in protected and key not in victims:
                    victims[key] = None
                    break
            else:
                return None
        return self.hand_over(victims)


class RemovesFromList(Fifo):
    """A touch looks for the chunk in a list, from the front."""

    breaks = "cost/linear"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.order: list[Key] = []

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.order.append(key)

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.order = list(self.chunks)  # of the table, in its order: no look at the list

    def touch(self, keys: Any, context: Any = None) -> None:
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.order.remove(key)
                self.order.append(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        free = [k for k in self.order if not self.chunks[k].ref_cnt and k not in protected]
        if len(free) < n:
            return None
        victims = self.hand_over(free[:n])
        self.order = [key for key in self.order if key in self.chunks]
        return victims

    def clear(self) -> None:
        super().clear()
        self.order.clear()


class SortsAtEachInsert(Fifo):
    """Every insert sorts all keys again."""

    breaks = "cost/linear"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        # In the opposite order each time, so that no run of sorted keys makes it cheap.
        self.sorted = sorted(self.chunks, reverse=len(self.chunks) % 2 == 0)


class RehashesForEachVictim(Fifo):
    """After each victim the whole table is built anew."""

    breaks = "cost/linear"

    def hand_over(self, victims: Any) -> Any:
        pairs = []
        for victim in victims:
            pairs.append((victim, self.chunks[victim]))
            self.chunks = {key: chunk for key, chunk in self.chunks.items() if key != victim}
        return pairs


class ScansProtected(Fifo):
    """The protected keys are searched one by one for each chunk that is considered."""

    breaks = "cost/linear"

    def evict(self, n: int, protected: set[Key]) -> Any:
        kept = list(protected)
        victims = [key for key in self.idle() if key not in kept][:n]
        return self.hand_over(victims) if len(victims) == n else None


class ScansAtMark(Fifo):
    """Whenever a chunk becomes idle, all chunks are looked through."""

    breaks = "cost/linear"

    def mark_evictable(self, key: Key) -> None:
        self.known_idle = self.idle({key})


class SearchesRecords(Fifo):
    """A failed store looks for its record from the front."""

    breaks = "cost/linear"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.records: list[tuple[Key, Any]] = []

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.records.append((key, chunk))

    def remove(self, key: Key) -> None:
        super().remove(key)
        del self.records[next(at for at, (other, _) in enumerate(self.records) if other == key)]

    def hand_over(self, victims: Any) -> Any:
        pairs = super().hand_over(victims)
        self.records = list(self.chunks.items())
        return pairs

    def clear(self) -> None:
        super().clear()
        self.records.clear()


class WalksAllGhosts(Recent):
    """A touch of an absent key goes through all ghosts."""

    breaks = "cost/linear"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.ghosts: list[Key] = []

    def hand_over(self, victims: Any) -> Any:
        pairs = super().hand_over(victims)
        self.ghosts = (self.ghosts + [key for key, _ in pairs])[-self.capacity :]
        return pairs

    def touch(self, keys: Any, context: Any = None) -> None:
        keys = list(keys)
        super().touch(keys)
        self.hits = sum(key in self.ghosts for key in keys if key not in self.chunks)

    def clear(self) -> None:
        super().clear()
        self.ghosts.clear()


class LooksThroughAllSeen(Fifo):
    """The end of a request compares what it saw with all chunks."""

    breaks = "cost/linear"

    def on_request_finished(self, groups: Any, inserted: Any, reused: Any, context: Any) -> None:
        self.last_reused = [key for key in self.chunks if key in reused]


# --- Right ---------------------------------------------------------------------------------------


class SkipsFromTheFront(Recent):
    """Right: walks from the oldest chunk and stops when it has enough."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.chunks: OrderedDict[Key, Any] = OrderedDict()

    def renew(self, key: Key) -> None:
        if key in self.chunks:
            self.chunks.move_to_end(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims: list[Key] = []
        for key, chunk in self.chunks.items():
            if len(victims) == n:
                break
            if chunk.ref_cnt == 0 and key not in protected:
                victims.append(key)
        return self.hand_over(victims) if len(victims) == n else None


class SortsAtEvict(Fifo):
    """Right: sorts all idle chunks at each eviction, which costs a logarithm."""

    def idle(self, protected: Any = ()) -> list[Key]:
        return sorted(super().idle(protected))


class RebuildsNowAndThen(Recent):
    """Right: keeps a record for each touch and builds them anew when they are too many."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.records: list[Key] = []

    def renew(self, key: Key) -> None:
        super().renew(key)
        self.records.append(key)
        if len(self.records) > max(64, 2 * len(self.chunks)):
            self.records = [key for key in self.chunks if key in self.chunks]


class Converts(Fifo):
    """Right, but nobody can count: it turns each key into another object first."""

    def get(self, key: Key) -> Any:
        return super().get(Key(bytes(key)))

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(Key(bytes(key)), chunk)

    def remove(self, key: Key) -> None:
        super().remove(Key(bytes(key)))

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, {Key(bytes(key)) for key in protected})


class Specification(Fifo):
    """Written to be read: it says so, and is excused."""

    cachelaw = {"specification": True}  # noqa: RUF012

    def get(self, key: Key) -> Any:
        return next((chunk for other, chunk in self.chunks.items() if other == key), None)


class RaisesAtEvict(Fifo):
    """It cannot be driven, so nothing can be said of its cost."""

    def evict(self, n: int, protected: set[Key]) -> Any:
        raise RuntimeError
