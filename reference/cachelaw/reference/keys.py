"""Offload keys: how a chunk is named.

A chunk is identified by the hash of the tokens it holds together with the KV cache group it
belongs to, packed into one bytes object: the block hash, then four bytes of group index, big
end first (vLLM 0.20; 0.19 had the hash alone).
"""

from __future__ import annotations

from typing import NewType

OffloadKey = NewType("OffloadKey", bytes)
"""The name of one chunk: block hash + 4-byte big-endian group index."""


def make_offload_key(block_hash: bytes, group_idx: int) -> OffloadKey:
    """Pack a block hash and the index of its KV cache group into one key.

    Args:
        block_hash: hash of the chunk's tokens and of all before them; any length.
        group_idx: index of the KV cache group, 0 to 2**32 - 1.

    Raises:
        OverflowError: `group_idx` does not fit into four unsigned bytes.
    """
    return OffloadKey(block_hash + group_idx.to_bytes(4, "big", signed=False))


def get_offload_block_hash(key: OffloadKey) -> bytes:
    """Return the block hash that `make_offload_key` packed into `key`."""
    return key[:-4]


def get_offload_group_idx(key: OffloadKey) -> int:
    """Return the group index that `make_offload_key` packed into `key`."""
    return int.from_bytes(key[-4:], "big", signed=False)
