"""Traces, lanes and replays as their callers see them."""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from tests.fast.lanes.test_replay import random_lanes, random_requests

from cachelaw.fast import lanes
from cachelaw.fast.lanes import LaneSpec, State, Trace, replay


def test_keys_are_numbered_in_their_order() -> None:
    trace = Trace.of_requests([[70, -5], [], [9, 70]])
    assert trace.keys.tolist() == [2, 0, 1, 2]
    assert trace.names.tolist() == [-5, 9, 70]
    assert trace.starts.tolist() == [0, 2, 2, 4]
    assert (len(trace), trace.key_count, trace.has_requests) == (4, 3, True)
    before, after = Trace([5, 6, 5, 5]).occurrences
    assert (before.tolist(), after.tolist()) == ([-1, -1, 0, 2], [2, 4, 3, 4])


@pytest.mark.parametrize(
    ("keys", "starts", "message"),
    [
        ([[1, 2]], None, "in one dimension"),
        ([1.5], None, "must be integers"),
        ([1, 2], [0, 1], "rise from 0 to the number of keys"),
        ([1, 2], [0, 2, 1, 2], "rise from 0"),
        ([1, 2], [], "rise from 0"),
        ([1, 2, 3, 2, 2], [0, 2, 5], "twice in request 1"),
    ],
)
def test_a_trace_that_is_none_is_refused(keys: Any, starts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trace(keys, starts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lfu", 1), "no 'lfu' of 'v0.33'; there are lru v0.24"),
        (("lru", 1, "v0.30"), "no 'lru' of 'v0.30'"),
        (("lru", 0), "capacity of a lane must be from 1"),
        (("lru", 2.0), "capacity of a lane must be an int"),
        (("lru", True), "capacity of a lane must be an int"),
        (("lru", 1, "v0.33", 1), "store_threshold of a lane must be from 2"),
        (("lru", 1, "v0.33", 2, 0), "max_tracker_size of a lane must be from 1"),
    ],
)
def test_a_lane_that_is_none_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LaneSpec(*arguments)


def test_the_result_names_its_semantics() -> None:
    plain, requests = Trace([1, 2, 1]), Trace.of_requests([[1, 2], [1]])
    lane = [LaneSpec("lru", 2)]
    assert replay(plain, lane).semantics == "references"
    assert replay(requests, lane).semantics == "requests"
    result = replay(requests, lane, semantics="references")
    assert (result.semantics, result.requests, result.references) == ("references", 3, 3)
    assert result.hit_ratio.tolist() == [1 / 3]
    with pytest.raises(ValueError, match="no semantics 'tokens'"):
        replay(plain, lane, semantics="tokens")
    with pytest.raises(ValueError, match="threads must be 1 or more"):
        replay(plain, lane, threads=0)


def test_nothing_is_replayed_too() -> None:
    assert replay(Trace([]), [LaneSpec("arc", 3)]).hits.tolist() == [0]
    assert replay(Trace.of_requests([]), [LaneSpec("lru", 3)]).hit_ratio.tolist() == [0.0]
    assert replay(Trace.of_requests([[], []]), [LaneSpec("lru", 3)]).requests == 2
    assert replay(Trace([1]), []).hits.tolist() == []


@pytest.mark.parametrize("semantics", ["requests", "references"])
def test_threads_and_blocks_make_no_difference(
    semantics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    trace, specs = Trace.of_requests(random_requests(rng, 80, 20)), random_lanes(rng, 30)
    whole = replay(trace, specs, semantics=semantics, threads=1)
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(lanes, "BLOCK", 10)
    cut = replay(
        trace, specs, semantics=semantics, threads=3, progress=lambda *done: said.append(done)
    )
    for name in ("hits", "resident", "stores", "evictions", "refusals", "targets"):
        assert np.array_equal(getattr(whole, name), getattr(cut, name))
    assert len(said) > 20
    assert said == sorted(said)
    assert said[-1] == (len(trace) * 30, len(trace) * 30)


def test_a_replay_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "BLOCK", 10)
    said: list[int] = []

    def stop(done: int, of: int) -> None:
        said.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(Trace(range(1_000)), [LaneSpec("arc", 5)], progress=stop)
    assert said == [10]


def test_a_lane_takes_eleven_bytes_a_key_and_ranks_sixteen() -> None:
    for ranked, each in ((False, 11), (True, 27 + 8)):  # and 8 for all lanes, here one
        arrays = [State(1, keys, ranked=ranked, device="cpu").arrays for keys in (1, 1_001)]
        none, some = (sum(array.nbytes for array in one) for one in arrays)
        assert some - none == 1_000 * each


def hits_of_arc(keys: list[int], capacity: int) -> tuple[int, float]:
    """ARC as vLLM has it, one reference at a time, on ordered dicts."""
    t1, t2, b1, b2 = (OrderedDict[int, None]() for _ in range(4))
    target, hits = 0.0, 0
    for key in keys:
        if key in t1 or key in t2:
            hits += 1
            t1.pop(key, None)
            t2.pop(key, None)
            t2[key] = None
            continue
        if key in b1:
            target = min(target + max(1.0, len(b2) / len(b1)), float(capacity))
            b1.move_to_end(key)
        elif key in b2:
            target = max(target - max(1.0, len(b1) / len(b2)), 0.0)
            b2.move_to_end(key)
        if len(t1) + len(t2) == capacity:
            from_t1 = bool(t1) and (len(t1) >= int(target) or not t2)
            victim, _ = (t1 if from_t1 else t2).popitem(last=False)
            (b1 if from_t1 else b2)[victim] = None
            for ghosts in (b1, b2):
                while len(ghosts) > capacity:
                    ghosts.popitem(last=False)
        b1.pop(key, None)
        b2.pop(key, None)
        t1[key] = None
    return hits, target


@pytest.mark.parametrize("capacity", [1, 2, 7, 100, 900, 5_000])
def test_arc_at_sizes_that_the_reference_is_too_slow_for(capacity: int) -> None:
    keys = (np.random.default_rng(capacity).zipf(1.1, 60_000) % 8_000).tolist()
    result = replay(Trace(keys), [LaneSpec("arc", capacity)])
    assert (int(result.hits[0]), float(result.targets[0])) == hits_of_arc(keys, capacity)
