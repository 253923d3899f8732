"""The status objects, clause by clause (`specs/chunk-status.md`)."""

from __future__ import annotations

import ctypes
import importlib

import pytest

from cachelaw.reference import BlockStatus, ChunkStatus
from cachelaw.reference.editions import EDITIONS, Edition

# The two classes, each with the name of its slot.
Status = type[ChunkStatus] | type[BlockStatus]
BOTH = pytest.mark.parametrize(
    ("status", "slot"), [(ChunkStatus, "chunk_id"), (BlockStatus, "block_id")]
)


@BOTH
def test_layout(status: Status, slot: str) -> None:
    """chunk-status/layout."""
    assert issubclass(status, ctypes.Structure)
    assert list(status._fields_) == [("ref_cnt", ctypes.c_int32), (slot, ctypes.c_int64)]
    count, number = status.__dict__["ref_cnt"], status.__dict__[slot]
    assert (count.offset, count.size) == (0, 4)
    assert (number.offset, number.size) == (8, 8)  # aligned as C does it
    assert ctypes.sizeof(status) == 16


@BOTH
@pytest.mark.parametrize("number", [0, 7, 2**40])
def test_starts_pending(status: Status, slot: str, number: int) -> None:
    """chunk-status/starts-pending: from the slot alone, by place or by name."""
    for chunk in (status(number), status(**{slot: number})):
        assert chunk.ref_cnt == -1
        assert getattr(chunk, slot) == number
    with pytest.raises(TypeError):
        status()  # type: ignore[call-arg]


@BOTH
@pytest.mark.parametrize(
    ("ref_cnt", "ready"),
    [(-(2**31), False), (-1, False), (0, True), (1, True), (2**31 - 1, True)],
)
def test_ready_when_not_negative(status: Status, slot: str, ref_cnt: int, ready: bool) -> None:
    """chunk-status/ready-when-not-negative."""
    chunk = status(3)
    chunk.ref_cnt = ref_cnt
    assert chunk.is_ready is ready
    assert (chunk.ref_cnt, getattr(chunk, slot)) == (ref_cnt, 3)  # asking changes nothing


@BOTH
def test_ready_cannot_be_written(status: Status, slot: str) -> None:
    with pytest.raises(AttributeError):
        status(0).is_ready = True  # type: ignore[misc]


@BOTH
def test_a_status_is_told_by_identity(status: Status, slot: str) -> None:
    """Managers and the suite compare status objects with `is`; equal contents mean nothing."""
    assert status(1) != status(1)


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_each_edition_has_the_status_of_its_day(edition: Edition) -> None:
    found = importlib.import_module(edition.module).ChunkStatus
    assert found is (ChunkStatus if edition.says_chunk else BlockStatus)
