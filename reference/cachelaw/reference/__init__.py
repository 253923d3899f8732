"""The executable specification of vLLM's KV-cache eviction policies.

Names here are those of the newest edition; `cachelaw.reference.v031` and its siblings hold the
others. Read `lru.py` and `arc.py` first, then `protocol.py`.
"""

from __future__ import annotations

from cachelaw.reference.chunk import BlockStatus, ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import EDITIONS, NEWEST, Edition, edition_named, edition_of_release
from cachelaw.reference.keys import (
    OffloadKey,
    get_offload_block_hash,
    get_offload_group_idx,
    make_offload_key,
)
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import CachePolicy
from cachelaw.reference.v033 import ARC, LRU

__all__ = [
    "ARC",
    "EDITIONS",
    "LRU",
    "NEWEST",
    "BlockStatus",
    "CachePolicy",
    "ChunkStatus",
    "Edition",
    "OffloadKey",
    "ReqContext",
    "edition_named",
    "edition_of_release",
    "get_offload_block_hash",
    "get_offload_group_idx",
    "make_offload_key",
    "order_request_keys",
]
