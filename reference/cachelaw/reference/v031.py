"""Edition v0.31 (vLLM 0.31 and 0.32, the seed): one request, one access.

Until then every step of the scheduler touched the prefix of every running request, so one long
request looked like many uses. Now a policy hears of a request when it ends, once, with all that
it used in prefix order and with what it only stored told from what it found
(`on_request_finished`); a miss that is about to be stored is reported apart (`on_store_miss`).
LRU is one list of all chunks again: recency belongs to requests, not to transfers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from cachelaw.reference import arc, lru, v022, v030
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import CachePolicyV031 as CachePolicy
from cachelaw.reference.resident import declaration

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


class LRU(v022.LRU, CachePolicy):
    """LRU as one list of all chunks."""

    cachelaw = declaration("lru", "v0.31")

    def touch(  # type: ignore[override]  # the interface broke in v0.26
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> None:
        """Move residents to the recent end, tail first."""
        self.state = lru.list_touch(self.state, keys)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Move all that the request saw to the recent end, the tail of the prefix first."""
        self.state = lru.list_touch(self.state, order_request_keys(key_groups, req_context))


class ARC(v030.ARC, CachePolicy):
    """ARC that counts a request's use of a chunk once, when the request ends."""

    cachelaw = declaration("arc", "v0.31")

    def on_store_miss(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Adapt to ghosts."""
        self.state = arc.store_miss(self.state, keys)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Promote what was reused, renew what was only stored, the tail of the prefix first."""
        keys = order_request_keys(key_groups, req_context)
        self.state = arc.finish(self.state, keys, insertion_only_keys, reused_keys)
