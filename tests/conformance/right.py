"""Right policies that no release has: whatever their order, they keep the contract.

Each is written from scratch, as somebody outside would write it, against the interface that its
first paragraph names. Evictions are planned on copies and carried out only if they succeed.
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from typing import Any, ClassVar

Key = bytes
Victims = list[tuple[Key, Any]]


class Table:
    """What all of them share, against v0.33: the chunks, in the order of their insertion."""

    def __init__(self, cache_capacity: int) -> None:
        self.capacity = cache_capacity
        self.chunks: dict[Key, Any] = {}

    def get(self, key: Key) -> Any:
        return self.chunks.get(key)

    def insert(self, key: Key, chunk: Any, req_context: Any) -> None:
        self.chunks[key] = chunk

    def remove(self, key: Key) -> None:
        del self.chunks[key]

    def touch(self, keys: Iterable[Key], req_context: Any) -> None: ...

    def on_store_miss(self, keys: Iterable[Key], req_context: Any) -> None: ...

    def on_request_access(self, keys: Iterable[Key], req_context: Any) -> None: ...

    def on_request_finished(
        self, key_groups: Any, insertion_only_keys: Any, reused_keys: Any, req_context: Any
    ) -> None:
        for keys in key_groups:
            self.touch(keys, req_context)

    def mark_evictable(self, key: Key) -> None: ...

    def mark_non_evictable(self, key: Key) -> None: ...

    def clear(self) -> None:
        self.chunks.clear()

    def free(self, key: Key, protected: set[Key]) -> bool:
        return self.chunks[key].ref_cnt == 0 and key not in protected

    def candidates(self, protected: set[Key]) -> list[Key]:
        return [key for key in self.chunks if self.free(key, protected)]

    def hand_over(self, victims: Iterable[Key]) -> Victims:
        return [(key, self.chunks.pop(key)) for key in victims]

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = self.candidates(protected)[:n]
        return self.hand_over(victims) if len(victims) == n else None


class Fifo(Table):
    """First in, first out, against v0.33."""


class Lfu(Table):
    """Least frequently used, against v0.33; older chunks first among equals."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.uses: Counter[Key] = Counter()

    def insert(self, key: Key, chunk: Any, req_context: Any) -> None:
        super().insert(key, chunk, req_context)
        self.uses[key] = 0

    def touch(self, keys: Iterable[Key], req_context: Any) -> None:
        self.uses.update(key for key in keys if key in self.chunks)

    def remove(self, key: Key) -> None:
        super().remove(key)
        del self.uses[key]

    def candidates(self, protected: set[Key]) -> list[Key]:
        return sorted(super().candidates(protected), key=self.uses.__getitem__)

    def hand_over(self, victims: Iterable[Key]) -> Victims:
        pairs = super().hand_over(victims)
        for key, _ in pairs:
            del self.uses[key]
        return pairs

    def clear(self) -> None:
        super().clear()
        self.uses.clear()


class Slru(Table):
    """Segmented LRU, against v0.33: a second use leads from probation to the protected segment."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.probation: dict[Key, None] = {}
        self.kept: dict[Key, None] = {}

    def insert(self, key: Key, chunk: Any, req_context: Any) -> None:
        super().insert(key, chunk, req_context)
        self.probation[key] = None

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.forget(key)

    def forget(self, key: Key) -> None:
        self.probation.pop(key, None)
        self.kept.pop(key, None)

    def touch(self, keys: Iterable[Key], req_context: Any) -> None:
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.forget(key)
                self.kept[key] = None
        while len(self.kept) > max(1, self.capacity * 4 // 5):
            oldest = next(iter(self.kept))
            del self.kept[oldest]
            self.probation[oldest] = None

    def candidates(self, protected: set[Key]) -> list[Key]:
        return [key for key in (*self.probation, *self.kept) if self.free(key, protected)]

    def hand_over(self, victims: Iterable[Key]) -> Victims:
        pairs = super().hand_over(victims)
        for key, _ in pairs:
            self.forget(key)
        return pairs

    def clear(self) -> None:
        super().clear()
        self.probation.clear()
        self.kept.clear()


class Sieve(Table):
    """SIEVE, against v0.33: a hand that walks from old to young and spares what was visited."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.behind: dict[Key, None] = {}
        self.ahead: dict[Key, None] = {}
        self.visited: set[Key] = set()

    def insert(self, key: Key, chunk: Any, req_context: Any) -> None:
        super().insert(key, chunk, req_context)
        self.ahead[key] = None

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.behind.pop(key, None)
        self.ahead.pop(key, None)
        self.visited.discard(key)

    def touch(self, keys: Iterable[Key], req_context: Any) -> None:
        self.visited.update(key for key in keys if key in self.chunks)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        if len(self.candidates(protected)) < n:
            return None
        victims: list[Key] = []
        while len(victims) < n:
            if not self.ahead:
                self.behind, self.ahead = {}, self.behind
            key = next(iter(self.ahead))
            del self.ahead[key]
            if self.free(key, protected) and key not in self.visited:
                victims.append(key)
                continue
            if self.free(key, protected):
                self.visited.remove(key)
            self.behind[key] = None
        return self.hand_over(victims)

    def clear(self) -> None:
        super().clear()
        self.behind.clear()
        self.ahead.clear()
        self.visited.clear()


class S3Fifo(Table):
    """Something like S3-FIFO, against v0.33: a small queue, a main queue and ghosts."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.small: dict[Key, int] = {}
        self.main: dict[Key, int] = {}
        self.ghosts: dict[Key, int] = {}

    def insert(self, key: Key, chunk: Any, req_context: Any) -> None:
        super().insert(key, chunk, req_context)
        queue = self.main if key in self.ghosts else self.small
        self.ghosts.pop(key, None)
        queue[key] = 0

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.small.pop(key, None)
        self.main.pop(key, None)

    def touch(self, keys: Iterable[Key], req_context: Any) -> None:
        for key in keys:
            for queue in (self.small, self.main):
                if key in queue:
                    queue[key] = min(3, queue[key] + 1)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        if len(self.candidates(protected)) < n:
            return None
        victims: list[Key] = []
        small = deque(key for key in self.small if self.free(key, protected))
        main = deque(key for key in self.main if self.free(key, protected))
        while len(victims) < n:
            from_small = small and (not main or len(self.small) * 10 > self.capacity)
            key = small.popleft() if from_small else main.popleft()
            stays = self.stays_from_small(key) if from_small else self.stays_in_main(key)
            (main if stays else victims).append(key)
        while len(self.ghosts) > self.capacity:
            del self.ghosts[next(iter(self.ghosts))]
        return self.hand_over(victims)

    def stays_from_small(self, key: Key) -> bool:
        queue: dict[Key, Any] = self.main if self.small.pop(key) > 1 else self.ghosts
        queue[key] = 0
        return queue is self.main

    def stays_in_main(self, key: Key) -> bool:
        uses = self.main.pop(key)
        if uses:
            self.main[key] = uses - 1
        return uses > 0

    def clear(self) -> None:
        super().clear()
        self.small.clear()
        self.main.clear()
        self.ghosts.clear()


class AtRandom(Table):
    """Random eviction, against v0.33; it says so."""

    cachelaw: ClassVar = {"randomized": True}
    rng: ClassVar[random.Random] = random.Random(1)

    def candidates(self, protected: set[Key]) -> list[Key]:
        keys = super().candidates(protected)
        return self.rng.sample(keys, len(keys))


class Gate(Lfu):
    """LFU that will not give up a used chunk for an unused one, against v0.33; it says so."""

    cachelaw: ClassVar = {"may_refuse": True}

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        if any(self.uses[key] for key in self.candidates(protected)[:n]):
            return None
        return super().evict(n, protected)


class MostRecent:
    """Most recently used first, against v0.24: told what is idle, it reads no ref count."""

    def __init__(self, cache_capacity: int) -> None:
        self.blocks: dict[Key, Any] = {}
        self.idle: dict[Key, None] = {}

    def get(self, key: Key) -> Any:
        return self.blocks.get(key)

    def insert(self, key: Key, block: Any) -> None:
        self.blocks[key] = block

    def remove(self, key: Key) -> None:
        del self.blocks[key]
        self.idle.pop(key, None)

    def touch(self, keys: Iterable[Key]) -> None:
        for key in keys:
            if key in self.idle:
                del self.idle[key]
                self.idle[key] = None

    def mark_evictable(self, key: Key) -> None:
        self.idle[key] = None

    def mark_non_evictable(self, key: Key) -> None:
        del self.idle[key]

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = [key for key in reversed(self.idle) if key not in protected][:n]
        if len(victims) < n:
            return None
        for key in victims:
            del self.idle[key]
        return [(key, self.blocks.pop(key)) for key in victims]

    def clear(self) -> None:
        self.blocks.clear()
        self.idle.clear()


class SecondChance:
    """CLOCK, against v0.19, where a host knows no clear and no marks."""

    def __init__(self, cache_capacity: int) -> None:
        self.ring: OrderedDict[Key, Any] = OrderedDict()
        self.used: set[Key] = set()

    def get(self, key: Key) -> Any:
        return self.ring.get(key)

    def insert(self, key: Key, block: Any) -> None:
        self.ring[key] = block

    def remove(self, key: Key) -> None:
        del self.ring[key]
        self.used.discard(key)

    def touch(self, keys: Iterable[Key]) -> None:
        self.used.update(key for key in keys if key in self.ring)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        free = [k for k, block in self.ring.items() if not block.ref_cnt and k not in protected]
        if len(free) < n:
            return None
        return [self.turn(protected) for _ in range(n)]

    def turn(self, protected: set[Key]) -> tuple[Key, Any]:
        while True:
            key, block = self.ring.popitem(last=False)
            if key not in self.used and not block.ref_cnt and key not in protected:
                return key, block
            self.ring[key] = block
            self.used.discard(key)


def made_by_a_function(cache_capacity: int) -> Fifo:
    """Return a policy; a subject may be a factory."""
    return Fifo(cache_capacity)
