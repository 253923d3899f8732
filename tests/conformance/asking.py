"""Policies with a `cachelaw_state` that is not as it should be."""

from __future__ import annotations

from typing import Any

from tests.conformance.right import Fifo


class Property(Fifo):
    """Has an attribute that raises."""

    @property
    def cachelaw_state(self) -> Any:
        raise RuntimeError("no state today")


class Leaves(Fifo):
    def cachelaw_state(self) -> Any:
        raise SystemExit(3)


class Deep(Fifo):
    """Says something that cannot be gone through."""

    def cachelaw_state(self) -> Any:
        state: Any = ()
        for _ in range(3_000):
            state = (state,)
        return state


class RarelySilent(Fifo):
    """Cannot say its state if it has one place, and a chunk with a low number is pinned there."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.places = cache_capacity

    def cachelaw_state(self) -> Any:
        for key, chunk in self.chunks.items():
            if self.places == 1 and chunk.ref_cnt > 0 and key[31] == 0:
                raise RuntimeError("no state for this")
        return tuple(self.chunks)
