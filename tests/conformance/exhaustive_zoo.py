"""Policies for the exhaustive engine: what it finds, what it cannot, and how it copies them."""

from __future__ import annotations

import threading
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Fifo, Recent
from cachelaw.conformance.mutants.zoo.words import Key
from cachelaw.reference import v024


class TiresAfter(Fifo):
    """Gives one victim too many once it has been touched so often: a state nobody sees."""

    patience = 6

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.touches = 0

    def touch(self, keys: Any, context: Any = None) -> None:
        self.touches += 1

    def evict(self, n: int, protected: set[Key]) -> Any:
        tired = self.touches >= self.patience and n > 0
        return super().evict(n + tired, protected)


class TiresSecretly(v024.LRU):
    """The same of a class that offers its state, which does not tell of the touches."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.touches = 0

    def touch(self, keys: Any) -> None:
        self.touches += 1
        super().touch(keys)

    def evict(self, n: int, protected: set[Any]) -> Any:
        if self.touches >= 3 and n > 0:
            return None
        return super().evict(n, protected)


class HoldsFunction(Recent):
    """Right: cannot be pickled, for it holds a function of its own."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.order = lambda key: key


class HoldsLock(Recent):
    """Right: can be neither pickled nor copied, for it holds a lock."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.lock = threading.Lock()


class WrongWithFunction(HoldsFunction):
    """A touch lets the chunk go."""

    def renew(self, key: Key) -> None:
        self.chunks.pop(key, None)


class WrongWithLock(HoldsLock):
    """A touch lets the chunk go."""

    def renew(self, key: Key) -> None:
        self.chunks.pop(key, None)


class CopiesBadly(Recent):
    """Right: but a copy of it has forgotten the order of its chunks."""

    def __getstate__(self) -> dict[str, Any]:
        return {"capacity": self.capacity, "chunks": dict(sorted(self.chunks.items()))}


class LeastKeyFirst(Fifo):
    """Right: looks at the bytes of the keys, so that they are not interchangeable."""

    def idle(self, protected: Any = ()) -> list[Key]:
        return sorted(super().idle(protected))


class Slotted:
    """No policy: an object that keeps what it knows in a private slot, and does not show it."""

    __slots__ = ("__number",)

    def __init__(self, number: int) -> None:
        self.__number = number

    def __getstate__(self) -> None: ...
