"""Right policies that claim no profile, of which wrong ones are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, ClassVar

from cachelaw.conformance.mutants.zoo.words import Groups, Key, Keys
from cachelaw.reference.policy import Victims


class Fifo:
    """Right: first in, first out, for hosts of every edition."""

    def __init__(self, cache_capacity: int) -> None:
        self.capacity = cache_capacity
        self.chunks: dict[Key, Any] = {}

    def get(self, key: Key) -> Any:
        return self.chunks.get(key)

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        self.chunks[key] = chunk

    def remove(self, key: Key) -> None:
        del self.chunks[key]

    def touch(self, keys: Keys, context: Any = None) -> None: ...

    def on_store_miss(self, keys: Keys, context: Any) -> None: ...

    def on_request_access(self, keys: Keys, context: Any) -> None: ...

    def on_request_finished(
        self, groups: Groups, inserted: Any, reused: Any, context: Any
    ) -> None: ...

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, chunk in self.chunks.items() if chunk.ref_cnt == 0 and k not in protected]

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)[:n]
        return self.hand_over(victims) if len(victims) == n else None

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, self.chunks.pop(key)) for key in victims]

    def clear(self) -> None:
        self.chunks.clear()

    def mark_evictable(self, key: Key) -> None: ...

    def mark_non_evictable(self, key: Key) -> None: ...


class Recent(Fifo):
    """Right: least recently touched first."""

    def touch(self, keys: Keys, context: Any = None) -> None:
        for key in reversed(list(keys)):
            self.renew(key)

    def renew(self, key: Key) -> None:
        if key in self.chunks:
            self.chunks[key] = self.chunks.pop(key)


class Lfu(Fifo):
    """Right: least often touched first, older ones before younger ones."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.counts: Counter[Key] = Counter()

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.counts.update(key for key in keys if key in self.chunks)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=self.counts.__getitem__)

    def remove(self, key: Key) -> None:
        super().remove(key)
        del self.counts[key]

    def hand_over(self, victims: Keys) -> Victims:
        victims = list(victims)
        for key in victims:
            del self.counts[key]
        return super().hand_over(victims)

    def clear(self) -> None:
        super().clear()
        self.counts.clear()


class Clock(Fifo):
    """Right: a ring with reference bits; what is used since the hand came by is passed over."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.used: set[Key] = set()

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.used.update(key for key in keys if key in self.chunks)

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.used.discard(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        if len(self.idle(protected)) < n:
            return None
        victims: dict[Key, None] = {}
        while len(victims) < n:
            self.pass_over(victims, protected)
        return self.hand_over(victims)

    def pass_over(self, victims: dict[Key, None], protected: set[Key]) -> None:
        """Let the hand meet the chunk at the front of the ring."""
        key = next(iter(self.chunks))
        self.chunks[key] = self.chunks.pop(key)
        if key in self.used:
            self.used.remove(key)
        elif self.chunks[key].ref_cnt == 0 and key not in protected and key not in victims:
            victims[key] = None

    def clear(self) -> None:
        super().clear()
        self.used.clear()


class Queue(Fifo):
    """Right: a queue of records beside the table; a chunk is evicted by its record."""

    # It searches its queue, which is not what its mutants are about.
    cachelaw: ClassVar = {"specification": True}

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.queue: list[tuple[Key, Any]] = []

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.queue.append((key, chunk))

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.queue = [record for record in self.queue if record[0] != key]

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = [r for r in self.queue if r[1].ref_cnt == 0 and r[0] not in protected][:n]
        if len(victims) < n:
            return None
        for key, _ in victims:
            self.chunks.pop(key, None)
        self.queue = [record for record in self.queue if record not in victims]
        return victims

    def clear(self) -> None:
        super().clear()
        self.queue.clear()
