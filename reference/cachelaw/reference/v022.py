"""Edition v0.22 (vLLM 0.22 and 0.23): a cache can be reset.

`clear` joins the interface: all blocks go, pinned and pending ones included, and whatever the
policy had learned goes with them.
"""

from __future__ import annotations

from cachelaw.reference import arc, v019
from cachelaw.reference.chunk import BlockStatus as ChunkStatus
from cachelaw.reference.policy import CachePolicyV022 as CachePolicy
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


class LRU(v019.LRU, CachePolicy):
    """LRU as one list of all blocks."""

    cachelaw = declaration("lru", "v0.22")

    def clear(self) -> None:
        """Become as new."""
        self.chunks.clear()
        self.state = ()


class ARC(v019.ARC, CachePolicy):
    """ARC without the fallback to T1."""

    cachelaw = declaration("arc", "v0.22")

    def clear(self) -> None:
        """Become as new, ghosts and target included."""
        self.chunks.clear()
        self.state = arc.clear(self.state)
