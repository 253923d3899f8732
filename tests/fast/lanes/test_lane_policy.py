"""Lanes behind the CachePolicy interface, judged by the suite."""

from __future__ import annotations

import random
from typing import Any

import pytest

from cachelaw.conformance import shrink
from cachelaw.conformance.certify import BUDGETS, Report, certify
from cachelaw.conformance.subject import Unusable, resolve
from cachelaw.conformance.verdict import Verdict
from cachelaw.fast import lane_policy
from cachelaw.fast.lane_policy import LaneARC, LaneLRU, LanePolicy, Names
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey

NAME = "cachelaw.fast.lane_policy:{}"


def judged(kind: type[LanePolicy], edition: str) -> Report:
    subject = resolve(NAME.format(kind.__name__), edition=edition, parameters={"edition": edition})
    return certify(subject, BUDGETS["quick"], seed=1)


def test_a_slip_of_the_pen_is_told_of_lanes_too() -> None:
    with pytest.raises(Unusable, match=r"it has ARC, .*LaneARC, LaneLRU"):
        resolve("cachelaw.fast:LaneARCC")


@pytest.mark.parametrize("edition", ["v0.24", "v0.31", "v0.33"])
def test_lane_lru_conforms(edition: str) -> None:
    report = judged(LaneLRU, edition)
    assert (report.subject.profile, report.verdict) == ("lru", Verdict.HOLDS), report.violations


@pytest.mark.parametrize("edition", ["v0.31", "v0.33"])
def test_lane_arc_conforms(edition: str) -> None:
    report = judged(LaneARC, edition)
    assert (report.subject.profile, report.verdict) == ("arc", Verdict.HOLDS), report.violations


def test_lane_arc_of_v024_has_the_fault_of_its_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 100)
    report = judged(LaneARC, "v0.24")
    violated = [result.law.clause.name for result in report.violations]
    assert violated == ["evict/none-only-when-short"]


def test_the_suite_tells_a_lane_of_another_edition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 100)
    subject = resolve(NAME.format("LaneLRU"), parameters={"edition": "v0.31"})
    report = certify(subject, BUDGETS["quick"], seed=1)
    assert report.verdict is Verdict.VIOLATED


def key(number: int) -> OffloadKey:
    return OffloadKey(number.to_bytes(36, "big"))


def full(policy: Any, count: int) -> None:
    for number in range(count):
        policy.insert(key(number), ChunkStatus(number), ReqContext("r"))


def test_more_than_fits_is_an_error_of_the_host() -> None:
    policy = LaneLRU(3)
    full(policy, 3)
    with pytest.raises(RuntimeError, match="more than 3 chunks"):
        full(policy, 4)


def test_numbers_are_used_again() -> None:
    policy = LaneARC(2)
    for number in range(50):
        if number >= 2:
            assert policy.evict(1, set()) is not None
        policy.insert(key(number), ChunkStatus(number), ReqContext("r"))
        policy.mark_evictable(key(number))
    assert sorted(policy._numbers) == sorted(map(key, (46, 47, 48, 49)))  # two of them ghosts


def test_a_rank_from_before_a_clear_does_not_come_back_with_an_insert() -> None:
    policy, context = LaneLRU(4), ReqContext("r")
    context.set_offload_key_position(key(0), 16)
    policy.insert(key(0), ChunkStatus(0), context)
    policy.clear()
    policy.insert(key(1), ChunkStatus(0), context)  # no position is known: no rank either
    context.set_offload_key_position(key(2), 16)
    policy.insert(key(2), ChunkStatus(1), context)
    for number in (1, 2):
        policy.mark_evictable(key(number))
    victims = policy.evict(2, set())
    assert victims is not None
    assert [gone for gone, _ in victims] == [key(1), key(2)]


def test_names_keep_the_order_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_policy, "GAP", 4)  # so that room runs out at once
    rng, names, renamed = random.Random(1), Names(), 0
    kept: dict[int, int] = {}
    for number in rng.sample(range(500), 300):
        kept[number] = names.add(number)
        if names.changed:
            names.changed, renamed = False, renamed + 1
            kept = dict(names.items())
        if rng.random() < 0.3:
            gone = rng.choice(list(kept))
            names.drop(gone)
            del kept[gone]
        in_order = [kept[number] for number in sorted(kept)]
        assert in_order == sorted(set(in_order))
    assert renamed > 10
