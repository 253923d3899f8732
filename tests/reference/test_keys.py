"""Offload keys: what is packed can be unpacked, and lies where hosts expect it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachelaw.reference import (
    get_offload_block_hash,
    get_offload_group_idx,
    make_offload_key,
)

HASHES = st.binary(max_size=40)
GROUPS = st.integers(0, 2**32 - 1)


@settings(derandomize=True, deadline=None)
@given(HASHES, GROUPS)
def test_a_key_holds_its_hash_and_its_group(block_hash: bytes, group: int) -> None:
    key = make_offload_key(block_hash, group)
    assert get_offload_block_hash(key) == block_hash
    assert get_offload_group_idx(key) == group
    assert isinstance(key, bytes)
    assert len(key) == len(block_hash) + 4


@settings(derandomize=True, deadline=None)
@given(HASHES, GROUPS, HASHES, GROUPS)
def test_different_chunks_have_different_keys(
    one_hash: bytes, one_group: int, other_hash: bytes, other_group: int
) -> None:
    same = (one_hash, one_group) == (other_hash, other_group)
    assert (
        make_offload_key(one_hash, one_group) == make_offload_key(other_hash, other_group)
    ) is same


@pytest.mark.parametrize(
    ("block_hash", "group", "key"),
    [
        (b"ab", 0, b"ab\x00\x00\x00\x00"),
        (b"ab", 258, b"ab\x00\x00\x01\x02"),  # big end first
        (b"", 2**32 - 1, b"\xff\xff\xff\xff"),
    ],
)
def test_the_group_follows_the_hash_in_four_bytes(
    block_hash: bytes, group: int, key: bytes
) -> None:
    assert make_offload_key(block_hash, group) == key


@pytest.mark.parametrize("group", [-1, 2**32])
def test_a_group_that_does_not_fit_raises(group: int) -> None:
    with pytest.raises(OverflowError):
        make_offload_key(b"ab", group)
