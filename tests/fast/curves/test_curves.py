"""The LRU curve against a list, against lanes, and one algorithm against the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachelaw.fast import curves
from cachelaw.fast.curves import earlier_and_smaller, lru_curve
from cachelaw.fast.lanes import LaneSpec, Trace, replay

METHODS = ("fenwick", "partition")


def hits_by_list(keys: list[int], capacity: int, threshold: int = 0) -> int:
    """Count the hits of one LRU cache in the plainest way."""
    order: list[int] = []
    hits = 0
    for t, key in enumerate(keys):
        if key in order:
            hits += 1
            order.remove(key)
        elif keys[: t + 1].count(key) < threshold:
            continue
        order = [*order, key][-capacity:] if capacity else []
    return hits


@pytest.mark.parametrize("method", METHODS)
@given(keys=st.lists(st.integers(-3, 9), max_size=60), threshold=st.sampled_from([0, 2, 3]))
def test_the_curve_is_that_of_a_list(method: str, keys: list[int], threshold: int) -> None:
    trace = Trace(np.array(keys, dtype=np.int64))
    curve = lru_curve(trace, method=method, store_threshold=threshold)
    assert curve.references == len(keys)
    assert curve.hits.tolist() == [
        hits_by_list(keys, capacity, threshold) for capacity in range(len(set(keys)) + 1)
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("threshold", [0, 2])
def test_the_curve_goes_through_the_lanes(method: str, threshold: int) -> None:
    # Long enough that the time axis is closed up many times.
    keys = np.random.default_rng(7).zipf(1.2, 60_000) % 700
    capacities = [1, 2, 3, 10, 64, 65, 300, 699, 700, 5_000]
    trace = Trace(keys)
    curve = lru_curve(trace, method=method, store_threshold=threshold)
    result = replay(trace, [LaneSpec("lru", c, store_threshold=threshold) for c in capacities])
    assert [curve.at(c) for c in capacities] == result.hits.tolist()
    assert result.hits[0] < result.hits[5] < result.hits[-1]  # or it would say nothing


@pytest.mark.parametrize("keys", [40, 5_000])
def test_both_methods_agree(keys: int) -> None:
    trace = Trace(np.random.default_rng(keys).integers(0, keys, 30_000))
    by_tree, by_bits = (lru_curve(trace, method=method) for method in METHODS)
    assert (by_tree.method, by_bits.method) == METHODS
    assert np.array_equal(by_tree.hits, by_bits.hits)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace(np.random.default_rng(3).integers(0, 90, 2_000))
    whole, said = lru_curve(trace).hits, []
    monkeypatch.setattr(curves, "BLOCK", 7)
    assert np.array_equal(lru_curve(trace, progress=lambda *done: said.append(done)).hits, whole)
    assert said[0] == (7, 2_000)
    assert said[-1] == (2_000, 2_000)


@given(st.permutations(range(23)))
def test_earlier_and_smaller_counts(order: list[int]) -> None:
    import torch

    counted = earlier_and_smaller(torch.tensor(order, dtype=torch.int32))
    assert counted.tolist() == [
        sum(other < value for other in order[: order.index(value)]) for value in range(len(order))
    ]


def test_miss_ratio_and_bounds() -> None:
    curve = lru_curve(Trace([5, 5, 6, 5]))
    assert curve.hits.tolist() == [0, 1, 2]
    assert curve.miss_ratio.tolist() == [1.0, 0.75, 0.5]
    assert curve.at(99) == 2
    with pytest.raises(ValueError, match="0 or more"):
        curve.at(-1)
    assert lru_curve(Trace([])).miss_ratio.tolist() == [0.0]


def test_what_there_is_not_is_said() -> None:
    with pytest.raises(ValueError, match="no device 'cudasim'"):
        lru_curve(Trace([1]), "cudasim")
    with pytest.raises(ValueError, match="no method 'sort' on cpu"):
        lru_curve(Trace([1]), method="sort")
    with pytest.raises(ValueError, match="no method 'fenwick' on cuda"):
        lru_curve(Trace([1]), "cuda", method="fenwick")
