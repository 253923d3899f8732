"""Edition v0.33 (vLLM 0.33, the newest) on a tensor: see `cachelaw.reference.v033`."""

from __future__ import annotations

from cachelaw.fast import arc, lru
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU"]


class LRU(lru.RankedLRU):
    """LRU with request ranks."""

    cachelaw = declaration("lru", "v0.33", specification=False)


class ARC(arc.ARC):
    """ARC that counts a request's use of a chunk once, when the request ends."""

    cachelaw = declaration("arc", "v0.33", specification=False)
