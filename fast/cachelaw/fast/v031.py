"""Edition v0.31 (vLLM 0.31 and 0.32, the seed) on a tensor: see `cachelaw.reference.v031`."""

from __future__ import annotations

from typing import Any

from cachelaw.fast import arc, lru
from cachelaw.reference import OffloadKey
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU"]


class LRU(lru.ListLRU):
    """LRU as one list of all chunks."""

    cachelaw = declaration("lru", "v0.31", specification=False)

    def insert(  # type: ignore[override]  # the interface of its day
        self, key: OffloadKey, chunk: Any
    ) -> None:
        """Put the chunk at the recent end."""
        super().insert(key, chunk, None)


class ARC(arc.ARC):
    """ARC that counts a request's use of a chunk once, when the request ends."""

    cachelaw = declaration("arc", "v0.31", specification=False)

    def insert(  # type: ignore[override]  # the interface of its day
        self, key: OffloadKey, chunk: Any
    ) -> None:
        """Put the chunk into T1."""
        super().insert(key, chunk, None)
