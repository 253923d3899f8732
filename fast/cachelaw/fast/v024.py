"""Edition v0.24 (vLLM 0.24 and 0.25) on a tensor: see `cachelaw.reference.v024`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cachelaw.fast import arc, lru
from cachelaw.reference import OffloadKey
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU"]


class LRU(lru.EvictableLRU):
    """LRU as the order in which blocks became idle."""

    cachelaw = declaration("lru", "v0.24", specification=False)

    def insert(  # type: ignore[override]  # the interface of its day
        self, key: OffloadKey, chunk: Any
    ) -> None:
        """Take in the block; it has no place before it is idle."""
        super().insert(key, chunk, None)

    def touch(  # type: ignore[override]  # the interface of its day
        self, keys: Iterable[OffloadKey]
    ) -> None:
        """Move idle blocks to the recent end, tail first."""
        super().touch(keys, None)


class ARC(arc.RefusingARC):
    """ARC without the fallback to T1."""

    cachelaw = declaration("arc", "v0.24", specification=False)

    def insert(  # type: ignore[override]  # the interface of its day
        self, key: OffloadKey, chunk: Any
    ) -> None:
        """Put the block into T1."""
        super().insert(key, chunk, None)

    def touch(  # type: ignore[override]  # the interface of its day
        self, keys: Iterable[OffloadKey]
    ) -> None:
        """Promote, renew, or adapt to ghosts, tail first."""
        super().touch(keys, None)
