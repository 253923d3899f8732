"""Edition v0.24 (vLLM 0.24 and 0.25): a policy is told which blocks are idle.

The marks join the interface, called when a ref count becomes 0 and when it leaves 0. LRU uses
them to keep only idle blocks in its order, so that it never walks past pinned ones; the price is
that the end of a transfer becomes a use and a touch of a busy block is lost. From here on a
manager counts idle blocks itself and does not ask the policy to evict more than there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cachelaw.reference import lru, v022
from cachelaw.reference.chunk import BlockStatus as ChunkStatus
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.policy import CachePolicyV024 as CachePolicy
from cachelaw.reference.policy import Victims
from cachelaw.reference.resident import Resident, declaration

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


class LRU(Resident, CachePolicy):
    """LRU as the order in which blocks became idle (the seed's `evictable_blocks`)."""

    cachelaw = declaration("lru", "v0.24")

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.state: lru.EvictableOrder[OffloadKey] = lru.EvictableOrder()

    def cachelaw_state(self) -> lru.EvictableOrder[OffloadKey]:
        """Return all that tells this cache from another with the same chunks."""
        return self.state

    def insert(self, key: OffloadKey, chunk: Any) -> None:
        """Take in the block; it has no place in the order until it is idle."""
        self.chunks[key] = chunk
        self.state = lru.evictable_insert(self.state, key, chunk.ref_cnt)

    def remove(self, key: OffloadKey) -> None:
        """Forget the block."""
        del self.chunks[key]
        self.state = lru.evictable_remove(self.state, key)

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Move idle blocks to the recent end, tail first."""
        self.state = lru.evictable_touch(self.state, keys)

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict the first `n` of the order that are not protected, or none."""
        self.state, victims = lru.evictable_evict(self.state, n, protected)
        return self.hand_over(victims)

    def clear(self) -> None:
        """Become as new."""
        self.chunks.clear()
        self.state = lru.EvictableOrder()

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the block, now idle, the last place."""
        self.state = lru.evictable_mark(self.state, key)

    def mark_non_evictable(self, key: OffloadKey) -> None:
        """Take the block's place away: it is about to be pinned."""
        self.state = lru.evictable_unmark(self.state, key)


class ARC(v022.ARC, CachePolicy):
    """ARC without the fallback to T1; it ignores the marks."""

    cachelaw = declaration("arc", "v0.24")
