"""How much memory a chunk costs, and that it stays so."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

from cachelaw.fast import ARC, LRU
from cachelaw.reference import ChunkStatus, ReqContext

STATED = {LRU: 210, ARC: 390}
"""Bytes of the tensor for each chunk that fits, at most, as `fast/README.md` says."""


@pytest.mark.parametrize("policy", STATED, ids=["LRU", "ARC"])
@pytest.mark.parametrize("capacity", [20_000, 60_000, 90_000, 130_000])
def test_a_chunk_costs_what_is_stated(policy: Any, capacity: int) -> None:
    assert policy(capacity).memory_bytes() / capacity <= STATED[policy]


def churn(policy: Any, rng: random.Random, capacity: int, calls: int) -> None:
    """Drive a policy with keys that never come back, and some that do."""
    context = ReqContext("r")
    resident: list[bytes] = []
    for step in range(calls // 8):
        key: Any = rng.randbytes(rng.choice((36, 36, 36, 60)))
        if len(resident) == capacity:
            victims = policy.evict(rng.randint(1, 3), set())
            gone = {key for key, _ in victims}
            resident = [key for key in resident if key not in gone]
        chunk = ChunkStatus(step)
        policy.insert(key, chunk, context)
        chunk.ref_cnt = 0
        policy.mark_evictable(key)
        resident.append(key)
        some = rng.choices(resident, k=2)
        policy.touch(some, context)
        policy.mark_non_evictable(some[0])
        policy.mark_evictable(some[0])
        policy.on_store_miss([key[:-1]], context)
        if step % 100 == 0:
            context = ReqContext("r")


def grown(policy: Any, calls: int) -> tuple[int, int]:
    """Return by how many bytes the tensor and all of Python's objects grew in the second half."""
    rng = random.Random(3)
    made = policy(50)
    churn(made, rng, 50, calls // 2)
    made.clear()
    tracemalloc.start()
    before, tensor = tracemalloc.get_traced_memory()[0], made.memory_bytes()
    churn(made, rng, 50, calls // 2)
    made.clear()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made.memory_bytes() - tensor, after - before


@pytest.mark.parametrize("policy", STATED, ids=["LRU", "ARC"])
def test_nothing_grows(policy: Any) -> None:
    tensor, objects = grown(policy, 200_000)
    assert tensor < 10_000  # the room for long keys follows what there was of them
    assert objects < 100_000


@pytest.mark.deep
@pytest.mark.parametrize("policy", STATED, ids=["LRU", "ARC"])
def test_nothing_grows_over_ten_million_operations(policy: Any) -> None:
    tensor, objects = grown(policy, 10_000_000)
    assert tensor < 10_000  # the room for long keys follows what there was of them
    assert objects < 100_000
