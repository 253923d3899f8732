"""Edition v0.30 (vLLM 0.30): blocks are chunks, and ARC no longer refuses.

The status object is called `ChunkStatus` and its slot `chunk_id`. ARC falls back to T1 when T1 is
below its target but T2 has nothing to give; before, it refused, and a cache full of idle chunks
could turn away every store for good.
"""

from __future__ import annotations

from cachelaw.reference import v027
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.policy import CachePolicyV027 as CachePolicy
from cachelaw.reference.resident import declaration
from cachelaw.reference.v027 import LRU

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


class ARC(v027.ARC):
    """ARC that falls back to T1."""

    cachelaw = declaration("arc", "v0.30")

    falls_back_to_t1 = True
