"""Edition v0.27 (vLLM 0.27 to 0.29): policies from anywhere.

A host can be told the module of a policy that is not its own, and the constructor of
`CachePolicy` keeps the capacity for its subclasses. The policies do the same as before.
"""

from __future__ import annotations

from cachelaw.reference import v026
from cachelaw.reference.chunk import BlockStatus as ChunkStatus
from cachelaw.reference.policy import CachePolicyV027 as CachePolicy
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


class LRU(v026.LRU, CachePolicy):
    """LRU as the order in which blocks became idle."""

    cachelaw = declaration("lru", "v0.27")


class ARC(v026.ARC, CachePolicy):
    """ARC without the fallback to T1."""

    cachelaw = declaration("arc", "v0.27")
