"""Edition v0.33 (vLLM 0.33, the newest): the tail first, even while the request still runs.

A long prompt is stored in batches. Until its request ended, the first batch, the head, was the
oldest and left first. Now a policy hears of each chunk when a running request first sees it
(`on_request_access`), and `insert` says which request stores; LRU gives all of a request's chunks
one rank and orders them by where they end in the prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from cachelaw.reference import lru, v031
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import CachePolicyV033 as CachePolicy
from cachelaw.reference.policy import Victims
from cachelaw.reference.resident import Resident, declaration

__all__ = ["ARC", "LRU", "CachePolicy", "ChunkStatus"]


@dataclass(frozen=True, slots=True)
class _Numbered:
    """What an LRU leaves in a request's context: the request's rank in that one cache."""

    owner: object
    rank: lru.RequestRank


class LRU(Resident, CachePolicy):
    """LRU with request ranks."""

    cachelaw = declaration("lru", "v0.33")

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.state: lru.RankedOrder[OffloadKey] = lru.RankedOrder()

    def recall(self, req_context: ReqContext) -> lru.RequestRank | None:
        """Return the rank that this cache gave to the request, if it did."""
        kept = req_context.get_state(_Numbered)
        return kept.rank if kept is not None and kept.owner is self else None

    def _memorize(self, req_context: ReqContext, rank: lru.RequestRank | None) -> None:
        if rank is not None:
            req_context.set_state(_Numbered(self, rank))

    def insert(  # type: ignore[override]  # the interface broke here
        self, key: OffloadKey, chunk: Any, req_context: ReqContext
    ) -> None:
        """Give the chunk its request's rank, or the newest if its position is not known."""
        self.chunks[key] = chunk
        position = req_context.get_offload_key_position(key)
        self.state, rank = lru.ranked_insert(self.state, key, position, self.recall(req_context))
        self._memorize(req_context, rank)

    def remove(self, key: OffloadKey) -> None:
        """Forget the chunk."""
        del self.chunks[key]
        self.state = lru.ranked_remove(self.state, key)

    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Give residents the newest ranks, tail first."""
        self.state = lru.ranked_touch(self.state, keys)

    def on_request_access(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Let residents join the request's rank."""
        at = [(key, req_context.get_offload_key_position(key)) for key in keys]
        self.state, rank = lru.ranked_access(self.state, at, self.recall(req_context))
        self._memorize(req_context, rank)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Give all that the request saw the newest ranks, the tail of the prefix first."""
        self.state = lru.ranked_touch(self.state, order_request_keys(key_groups, req_context))

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict the `n` idle chunks of lowest rank that are not protected, or none."""
        self.state, victims = lru.ranked_evict(self.state, n, protected, self.ref_cnt)
        return self.hand_over(victims)

    def clear(self) -> None:
        """Become as new; ranks that requests remember are void."""
        self.chunks.clear()
        self.state = lru.ranked_clear(self.state)


class ARC(v031.ARC, CachePolicy):
    """ARC that counts a request's use of a chunk once, when the request ends."""

    cachelaw = declaration("arc", "v0.33")

    def insert(  # type: ignore[override]  # the interface broke here
        self, key: OffloadKey, chunk: Any, req_context: ReqContext
    ) -> None:
        """Put the chunk into T1."""
        super().insert(key, chunk)
