"""Chunk status: what the manager knows of one chunk, and the policy may read.

A chunk is pending while its data is on the way into the CPU buffer, then idle, and pinned while
loads read it. All three are one signed number, the ref count, so that they exclude each other:

    ref count   -1        0        1, 2, 3, ...
                pending   idle     pinned by that many loads

The manager alone writes it (`chunk-status/manager-writes`).
"""

from __future__ import annotations

import ctypes


class ChunkStatus(ctypes.Structure):
    """Status of one chunk, laid out as the seed lays it out.

    Args:
        chunk_id: index of the CPU buffer slot that holds the chunk's data.

    Attributes:
        ref_cnt: -1 pending, 0 idle, k > 0 pinned by k loads; a new chunk is pending
            (`chunk-status/starts-pending`).
        chunk_id: the slot, for as long as the chunk is resident.
    """

    _fields_ = (("ref_cnt", ctypes.c_int32), ("chunk_id", ctypes.c_int64))

    ref_cnt: int
    chunk_id: int

    def __init__(self, chunk_id: int) -> None:
        super().__init__()
        self.ref_cnt = -1
        self.chunk_id = chunk_id

    @property
    def is_ready(self) -> bool:
        """Whether the chunk's data may be read (`chunk-status/ready-when-not-negative`)."""
        return self.ref_cnt >= 0


class BlockStatus(ctypes.Structure):
    """What `ChunkStatus` was called before v0.30; its slot was called `block_id`."""

    _fields_ = (("ref_cnt", ctypes.c_int32), ("block_id", ctypes.c_int64))

    ref_cnt: int
    block_id: int

    def __init__(self, block_id: int) -> None:
        super().__init__()
        self.ref_cnt = -1
        self.block_id = block_id

    @property
    def is_ready(self) -> bool:
        """Whether the block's data may be read (`chunk-status/ready-when-not-negative`)."""
        return self.ref_cnt >= 0
