"""Edition v0.26 (vLLM 0.26): a touch says on whose behalf.

`touch` takes the context of the request as a second, required argument. It is the first of the
two changes that broke every policy written before it. The policies do the same as before.
"""

from __future__ import annotations

from collections.abc import Iterable

from cachelaw.reference import v024
from cachelaw.reference.chunk import BlockStatus as ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.policy import CachePolicyV026 as CachePolicy
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


class LRU(v024.LRU, CachePolicy):
    """LRU as the order in which blocks became idle."""

    cachelaw = declaration("lru", "v0.26")

    def touch(  # type: ignore[override]  # the interface broke here
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> None:
        """Move idle blocks to the recent end, tail first."""
        super().touch(keys)


class ARC(v024.ARC, CachePolicy):
    """ARC without the fallback to T1."""

    cachelaw = declaration("arc", "v0.26")

    def touch(  # type: ignore[override]  # the interface broke here
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> None:
        """Promote, renew, or adapt to ghosts, tail first."""
        super().touch(keys)
