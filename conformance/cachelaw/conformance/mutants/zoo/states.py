"""Wrong where a policy is asked for its state."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Lfu, Recent
from cachelaw.conformance.mutants.zoo.words import Key, Keys
from cachelaw.reference.policy import Victims


class SaysOrder(Recent):
    """Right: says in which order its chunks stand."""

    def cachelaw_state(self) -> Hashable:
        return tuple(self.chunks)


class AskedSorts(SaysOrder):
    """Sorts its chunks to say which there are, and leaves them so."""

    breaks = "state/no-side-effect"

    def cachelaw_state(self) -> Hashable:
        self.chunks = dict(sorted(self.chunks.items()))
        return super().cachelaw_state()


class AskedCounts(Lfu):
    """Makes a count for each chunk that it is asked about."""

    breaks = "state/no-side-effect"

    def cachelaw_state(self) -> Hashable:
        for key in list(self.chunks)[-1:]:
            self.counts[key] += 1
        return tuple(self.chunks), frozenset(self.counts.items())


class AskedForgetsUses(SaysOrder):
    """Puts uses off until the order matters, and throws them away when it is asked before."""

    breaks = "state/no-side-effect"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.uses: dict[Key, None] = {}

    def renew(self, key: Key) -> None:
        if key in self.chunks:
            self.uses.pop(key, None)
            self.uses[key] = None

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        self.settle()
        super().insert(key, chunk)

    def remove(self, key: Key) -> None:
        self.settle()
        super().remove(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        self.settle()
        return super().evict(n, protected)

    def clear(self) -> None:
        self.uses.clear()
        super().clear()

    def settle(self) -> None:
        for key in self.uses:
            super().renew(key)
        self.uses.clear()

    def cachelaw_state(self) -> Hashable:
        self.uses.clear()
        return super().cachelaw_state()


class AskedTurnsRound(SaysOrder):
    """Turns its order round when it is asked, where it has handed out an odd number of chunks."""

    breaks = "state/no-side-effect"
    handed_over = 0

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.handed_over += len(pairs)
        return pairs

    def cachelaw_state(self) -> Hashable:
        if self.handed_over % 2:
            self.chunks = dict(reversed(self.chunks.items()))
        return super().cachelaw_state()


class AskedRefuses(SaysOrder):
    """Cannot say its state while a chunk is pinned."""

    breaks = "state/no-side-effect"

    def cachelaw_state(self) -> Hashable:
        assert all(chunk.ref_cnt <= 0 for chunk in self.chunks.values())
        return super().cachelaw_state()
