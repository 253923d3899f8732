"""Edition v0.20 (vLLM 0.20 and 0.21): keys name their group.

A block's key is now an offload key, the block hash with the index of its KV cache group. The
policies are those of v0.19.
"""

from __future__ import annotations

from cachelaw.reference.chunk import BlockStatus as ChunkStatus
from cachelaw.reference.policy import CachePolicyV019 as CachePolicy
from cachelaw.reference.reuse_filter import (
    FilterReusedOffloadingManagerV020 as FilterReusedOffloadingManager,
)
from cachelaw.reference.v019 import ARC, LRU

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus", "FilterReusedOffloadingManager"]
