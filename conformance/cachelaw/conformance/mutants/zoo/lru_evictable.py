"""Wrong as LRU of the evictable order (v0.24 to v0.30)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cachelaw.conformance.mutants.zoo.words import Key, Keys
from cachelaw.reference import lru, v024, v026, v027
from cachelaw.reference.context import ReqContext
from cachelaw.reference.recency import renew


class KeepsInsertionOrder(v024.LRU):
    """Orders idle chunks by insertion, as if transfers were no use."""

    breaks = "lru/becoming-idle-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.order: tuple[Key, ...] = ()

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.order = renew(self.order, key)

    def touch(self, keys: Keys) -> None:
        for key in reversed(list(keys)):
            if key in self.state.idle:
                self.order = renew(self.order, key)
        self.put_straight()

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        self.put_straight()

    def put_straight(self) -> None:
        idle = tuple(sorted(self.state.idle, key=self.order.index))
        self.state = replace(self.state, idle=idle)


class LoadsDoNotOrder(v027.LRU):
    """Lets a chunk take its old place again at the end of a load."""

    breaks = "lru/becoming-idle-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.younger: dict[Key, tuple[Key, ...]] = {}

    def mark_non_evictable(self, key: Key) -> None:
        idle = self.state.idle
        self.younger[key] = idle[idle.index(key) + 1 :]
        super().mark_non_evictable(key)

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        for other in self.younger.pop(key, ()):
            if other in self.state.idle:
                self.state = lru.evictable_mark(self.state, other)


class IdleAtTheOldEnd(v026.LRU):
    """Puts a chunk that becomes idle at the wrong end."""

    breaks = "lru/becoming-idle-is-use"

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        self.state = replace(self.state, idle=(key, *self.state.idle[:-1]))


class BusyTouchKept(v026.LRU):
    """Remembers a touch of a busy chunk and takes it in once the chunk is idle."""

    breaks = "lru/touch-of-busy-lost"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.owed: tuple[Key, ...] = ()

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        for key in reversed(list(keys)):
            if key in self.state.idle:
                self.state = lru.evictable_mark(self.state, key)
            elif key in self.chunks:
                self.owed = renew(self.owed, key)

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        for other in self.owed:
            if other in self.state.idle:
                self.state = lru.evictable_mark(self.state, other)


class UnusedLoadIsNoUse(v024.LRU):
    """Gives a chunk its place back at the end of its load, unless there was a touch meanwhile."""

    breaks = "lru/becoming-idle-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.before: dict[Key, tuple[Key, ...]] = {}

    def touch(self, keys: Keys) -> None:
        super().touch(keys)
        self.before.clear()

    def mark_non_evictable(self, key: Key) -> None:
        self.before[key] = self.state.idle
        super().mark_non_evictable(key)

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        younger = self.before.pop(key, ())
        younger = younger[younger.index(key) + 1 :] if key in younger else ()
        idle = [other for other in self.state.idle if other != key]
        after = [at for at, other in enumerate(idle) if other in younger]
        idle.insert(min(after, default=len(idle)), key)
        self.state = replace(self.state, idle=tuple(idle))
