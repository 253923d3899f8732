"""Edition v0.19 (vLLM 0.19): eviction becomes a plug-in.

Until then a manager per policy did everything; now one manager drives a `CachePolicy`. LRU is one
list of all blocks; a policy is told nothing of loads and stores and reads ref counts when it
evicts. ARC learns from every touch, and refuses to evict from T1 below its target, even when T2
has nothing to give.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cachelaw.reference import arc, lru
from cachelaw.reference.chunk import BlockStatus as ChunkStatus
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.policy import CachePolicyV019 as CachePolicy
from cachelaw.reference.policy import Victims
from cachelaw.reference.resident import Resident, declaration
from cachelaw.reference.reuse_filter import (
    FilterReusedOffloadingManagerV019 as FilterReusedOffloadingManager,
)

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus", "FilterReusedOffloadingManager"]


class LRU(Resident, CachePolicy):
    """LRU as one list of all blocks."""

    cachelaw = declaration("lru", "v0.19")

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.state: tuple[OffloadKey, ...] = ()

    def cachelaw_state(self) -> tuple[OffloadKey, ...]:
        """Return all that tells this cache from another with the same chunks."""
        return self.state

    def insert(self, key: OffloadKey, chunk: Any) -> None:
        """Put the block at the recent end."""
        self.chunks[key] = chunk
        self.state = lru.list_insert(self.state, key)

    def remove(self, key: OffloadKey) -> None:
        """Forget the block."""
        del self.chunks[key]
        self.state = lru.list_remove(self.state, key)

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Move residents to the recent end, tail first."""
        self.state = lru.list_touch(self.state, keys)

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict the `n` oldest idle blocks that are not protected, or none."""
        self.state, victims = lru.list_evict(self.state, n, protected, self.ref_cnt)
        return self.hand_over(victims)


class ARC(Resident, CachePolicy):
    """ARC without the fallback to T1."""

    cachelaw = declaration("arc", "v0.19")

    falls_back_to_t1 = False

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.state: arc.ArcState[OffloadKey] = arc.ArcState(cache_capacity)

    def cachelaw_state(self) -> arc.ArcState[OffloadKey]:
        """Return all that tells this cache from another with the same chunks."""
        return self.state

    def insert(self, key: OffloadKey, chunk: Any) -> None:
        """Put the block into T1."""
        self.chunks[key] = chunk
        self.state = arc.insert(self.state, key)

    def remove(self, key: OffloadKey) -> None:
        """Forget the block, leaving no ghost."""
        self.chunks.pop(key, None)
        self.state = arc.remove(self.state, key)

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Promote, renew, or adapt to ghosts, tail first."""
        self.state = arc.touch(self.state, keys, self.ref_cnt)

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict `n` blocks from T1 or T2 as the target says, or none."""
        self.state, victims = arc.evict(
            self.state, n, protected, self.ref_cnt, falls_back_to_t1=self.falls_back_to_t1
        )
        return self.hand_over(victims)
