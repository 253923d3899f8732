"""Products: classes beside cores, editions beside editions, and ARC beside the textbook's."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from tests.assurance.record import counted, on_record

from cachelaw.conformance.explore.calls import Calls, Scope
from cachelaw.conformance.explore.plan import explore_policy, scope_of
from cachelaw.conformance.explore.products import (
    EDITION_SCOPES,
    class_check,
    compare_editions,
    one_after_another,
)
from cachelaw.conformance.explore.search import explore
from cachelaw.conformance.explore.symmetry import KeySymmetry
from cachelaw.conformance.explore.textbook import (
    DIFFERENCES,
    PAPER,
    SHIPPED,
    TEXTBOOK,
    VLLM,
    compare_ways,
    serve_vllm,
    way_of,
)
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.oracle import Oracle
from cachelaw.conformance.trace import Trace, describe
from cachelaw.reference import textbook_arc, v030
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import Core, all_cores, core_of
from cachelaw.reference.editions import (
    EDITIONS,
    V022,
    V024,
    V027,
    V030,
    V031,
    V033,
    Edition,
)
from cachelaw.reference.protocol import objection, perform, start

# --- Classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", all_cores(), ids=lambda c: f"{c.profile}-{c.edition}")
def test_classes_do_what_their_cores_do(core: Core) -> None:
    """As the ledger has it on record, to the last count."""
    scope = scope_of(core.profile, core.edition, "calls", "class", full=False)
    row = explore_policy(core.profile, core.edition, "calls", scope, "class")
    assert (row.extent, row.clause) == ("closed", "")
    assert counted(row) == on_record(core.profile, core.edition.name, "calls", "class")


def test_a_class_that_departs_from_its_core_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(v030.ARC, "falls_back_to_t1", False)
    machine = Calls(core_of("arc", V030), Scope(2, 2))
    found = explore(machine, symmetry=KeySymmetry(), check_step=class_check(machine))
    assert found.broken is not None
    assert found.broken.path[-1].method == "evict"


# --- Editions ------------------------------------------------------------------------------------

APART = {
    ("lru", V022, V024): ["u1 offers 0 1", "store of 1 0 succeeds", "evict 1"],
    ("lru", V030, V031): ["u1 offers 0 1", "store of 1 0 succeeds", "evict 1"],
    ("lru", V031, V033): ["r1 offers 0 1", "store of 0 1 succeeds", "evict 1"],
    ("arc", V027, V030): [
        "u1 offers 0 1",
        "store of 0 1 succeeds",
        "evict 1",
        "u1 touches 0",
        "u1 touches 0",
        "evict 1",
    ],
    ("arc", V030, V031): [
        "u1 offers 0 1",
        "store of 0 1 succeeds",
        "evict 1",
        "u1 touches 1 0",
        "u2 offers 0",
        "store of 0 succeeds",
        "evict 1",
    ],
}


def victims(trace: Trace, profile: str, edition: Edition) -> list[Any]:
    """Run a trace on the class of an edition, objecting to nothing; return what was evicted."""
    trace = Trace(edition, trace.capacity, trace.events, trace.groups)
    oracle = Oracle(profile, trace.setting)
    books, answers = start(trace.setting), []
    for event in trace.events:
        assert objection(trace.setting, books, event) is None
        steps, answer = perform(trace.setting, books, event), None
        try:
            while True:
                call = steps.send(answer)
                answer = oracle.carry_out(call)
                if call.method == "evict":
                    answers.append(answer)
        except StopIteration as end:
            books = end.value
    return answers


@pytest.mark.parametrize("case", APART, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_the_shortest_program_that_tells_two_editions_apart(
    case: tuple[str, Edition, Edition],
) -> None:
    profile, older, newer = case
    found = compare_editions(profile, older, newer, EDITION_SCOPES[:1])
    assert found.shortest is not None and not found.proved_alike
    assert [describe(event) for event in found.shortest.events] == APART[case]
    assert victims(found.shortest, profile, older) != victims(found.shortest, profile, newer)


SAME = [
    (profile, *pair)
    for profile in ("lru", "arc")
    for pair in pairwise(EDITIONS)
    if (profile, *pair) not in APART
]


@pytest.mark.parametrize("case", SAME, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_the_other_neighbours_are_alike(case: tuple[str, Edition, Edition]) -> None:
    profile, older, newer = case
    scopes = (Scope(1, 2, requests=1, pins=1),) if older >= V031 else EDITION_SCOPES
    assert compare_editions(profile, older, newer, scopes).proved_alike


def test_one_request_is_too_few_to_tell_arc_of_v030_from_v031() -> None:
    """A miss counts once a request, so one request hits a ghost once, and once is not enough."""
    found = compare_editions("arc", V030, V031, (Scope(2, 2, requests=1, pins=1),))
    assert found.proved_alike


@pytest.mark.deep
def test_arc_of_v031_and_v033_are_alike_for_two_requests() -> None:
    assert compare_editions("arc", V031, V033, EDITION_SCOPES[:1]).proved_alike


# --- ARC and the textbook's ----------------------------------------------------------------------


def test_the_reading_without_differences_is_the_papers() -> None:
    assert compare_ways(
        TEXTBOOK, way_of(PAPER), ((1, 3), (2, 5), (3, 7), (4, 9), (5, 11))
    ).proved_alike


def test_a_wrong_textbook_is_told_from_the_rules_restated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps in whole numbers show from capacity 5 on."""

    def in_whole_numbers(state: Any, key: int) -> Any:
        step = max(1.0, len(state.b1) // len(state.b2))
        moved = replace(state, p=max(state.p - step, 0.0))
        room = textbook_arc.replace(moved, True)
        b2 = tuple(other for other in room.b2 if other != key)
        return replace(room, b2=b2, t2=(*room.t2, key))

    scope = scope_of("textbook", V033, "calls", "restated", full=False)
    assert scope.keys == 2 * scope.capacity + 1
    assert explore_policy("textbook", V033, "calls", scope, "restated").extent == "closed"
    monkeypatch.setattr(textbook_arc, "_case_3", in_whole_numbers)
    assert explore_policy("textbook", V033, "calls", scope, "restated").clause == DIVERGED
    small = Scope(4, 9)
    assert explore_policy("textbook", V033, "calls", small, "restated").extent == "closed"


def test_the_reading_with_all_differences_is_vllms() -> None:
    assert compare_ways(SHIPPED, way_of(VLLM), ((1, 4), (2, 7), (3, 10))).proved_alike


def test_at_capacity_1_arc_and_the_textbook_are_alike() -> None:
    assert compare_ways(TEXTBOOK, SHIPPED, ((1, 3),)).proved_alike


@pytest.mark.parametrize(
    ("capacity", "keys", "shortest"),
    [(2, 6, (0, 0, 1, 2, 1)), (3, 7, (0, 0, 1, 1, 2, 3, 2))],
)
def test_the_shortest_sequence_that_tells_arc_from_the_textbook(
    capacity: int, keys: int, shortest: tuple[int, ...]
) -> None:
    assert compare_ways(TEXTBOOK, SHIPPED, ((capacity, keys),)).shortest == shortest


# Each difference added to the paper's ARC alone, and taken from vLLM's alone.
ISOLATED = {
    "takes_at_target": ((0, 0, 1, 2, 1), (0, 0, 1, 2, 1)),
    "ghosts_enter_t1": ((0, 0, 1, 2, 1, 3), (0, 1, 2, 0, 1)),
    "ghosts_bounded_apart": ((0, 1, 2, 1, 0), (0, 1, 2, 1, 0, 2)),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_each_difference_shows_by_itself(name: str) -> None:
    scopes = ((2, 6), (3, 7))
    added = compare_ways(way_of(PAPER), way_of(PAPER.flipped(name)), scopes)
    taken = compare_ways(way_of(VLLM), way_of(VLLM.flipped(name)), scopes)
    assert (added.shortest, taken.shortest) == ISOLATED[name]


@pytest.mark.parametrize("sequence", [(0, 0, 1, 2, 1), (0, 1, 2, 1, 0, 2), (0, 0, 1, 1, 2, 3, 2)])
def test_a_sequence_of_keys_is_a_program(sequence: tuple[int, ...]) -> None:
    """Served by a manager, one request for each key, the class ends with the same lists."""
    state: ArcState[int] = ArcState(3)
    hits, left = [], []
    for key in sequence:
        state, (hit, victim) = serve_vllm(state, key)
        hits.append(hit)
        left += [(victim,)] if victim is not None else []
    trace = Trace(V033, 3, one_after_another(sequence, hits))
    assert victims(trace, "arc", V033) == left
