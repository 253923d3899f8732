"""The alphabet protocol: counts, shortest programs, and that calls are a superset of it."""

from __future__ import annotations

import pytest
from tests.assurance.record import counted as row_counts
from tests.assurance.record import on_record

from cachelaw.conformance.explore.calls import Calls, Scope
from cachelaw.conformance.explore.invariants import state_check
from cachelaw.conformance.explore.plan import (
    explore_policy,
    interchangeable,
    known_fault,
    scope_of,
)
from cachelaw.conformance.explore.programs import (
    UNBEGUN,
    Programs,
    ProgramSymmetry,
    as_trace,
    program_check,
    refusal_check,
)
from cachelaw.conformance.explore.search import explore
from cachelaw.conformance.oracle import Oracle
from cachelaw.conformance.trace import Trace, describe, trace_from_json
from cachelaw.reference.cores import Core, all_cores, core_of
from cachelaw.reference.editions import (
    EDITIONS,
    V019,
    V024,
    V030,
    V031,
    V033,
    edition_named,
)
from cachelaw.reference.protocol import (
    RequestEnds,
    Reset,
    StoreOffered,
    Touch,
    objection,
    perform,
    start,
)

ONE = Scope(3, 4, requests=1)
SMALL = Scope(2, 3, requests=1)

# States up to the names of keys where they are interchangeable, all states, transitions, depth.
# What is explored in every run is on record for the ledger.
DEEP = {
    ("lru", "v0.31", ONE): (4781, 113425, 406701, 9),
    ("lru", "v0.31", Scope(2, 3, requests=2, pins=1)): (2739, 16384, 142493, 8),
    ("lru", "v0.31", Scope(3, 4, requests=2, batch=1, pins=1)): (135538, 3249025, 8222772, 15),
    ("lru", "v0.33", Scope(3, 4, requests=1, pins=1, groups=2)): (33436, 33436, 2740236, 10),
    ("arc", "v0.30", ONE): (3320, 76276, 244652, 13),
    ("arc", "v0.31", Scope(2, 3, requests=1, pins=1)): (63528, 380862, 2310074, 20),
    ("arc", "v0.31", Scope(1, 2, requests=2, pins=1)): (51056, 102110, 1207712, 20),
    ("arc", "v0.31", Scope(2, 2, requests=2, pins=1)): (76743, 153483, 2370666, 16),
    ("lru", "v0.33", Scope(2, 3, requests=2, pins=1)): (27914, 27914, 1475806, 9),
}
FAR = {
    ("arc", "v0.31", Scope(3, 4, requests=1, pins=1)): (305684, 7301888, 7745930, 9),
}
"""Searches that end at the depth given last, and say nothing beyond it."""


def counted(
    profile: str, name: str, scope: Scope, depth: int | None = None
) -> tuple[int, int, int, int]:
    core = core_of(profile, edition_named(name))
    symmetry = ProgramSymmetry() if interchangeable(core) else None
    found = explore(
        Programs(core, scope),
        symmetry=symmetry,
        check_state=program_check(state_check(core)),
        depth=depth,
    )
    assert found.broken is None and found.closed == (depth is None)
    unreduced = found.states if symmetry is None else sum(map(symmetry.orbit, found.parents))
    return found.states, unreduced, found.transitions, found.depth


@pytest.mark.parametrize("core", all_cores(), ids=lambda c: f"{c.profile}-{c.edition}")
def test_every_state_of_the_protocol(core: Core) -> None:
    """As the ledger has it on record, to the last count."""
    scope = scope_of(core.profile, core.edition, "protocol", "states", full=False)
    row = explore_policy(core.profile, core.edition, "protocol", scope)
    assert (row.extent, row.clause) == ("closed", "")
    assert row_counts(row) == on_record(core.profile, core.edition.name, "protocol", "states")


@pytest.mark.deep
@pytest.mark.parametrize("case", DEEP, ids=lambda case: f"{case[0]}-{case[1]}")
def test_every_state_of_the_protocol_at_larger_scopes(case: tuple[str, str, Scope]) -> None:
    assert counted(*case) == DEEP[case]


@pytest.mark.deep
@pytest.mark.parametrize("case", FAR, ids=lambda case: f"{case[0]}-{case[1]}")
def test_states_of_the_protocol_to_a_depth(case: tuple[str, str, Scope]) -> None:
    assert counted(*case, depth=FAR[case][3]) == FAR[case]


def test_a_bound_on_the_depth_is_never_called_closed() -> None:
    core = core_of("arc", V031)
    scope = Scope(3, 4, requests=2, pins=1)
    found = explore(
        Programs(core, scope),
        symmetry=ProgramSymmetry(),
        check_state=program_check(state_check(core)),
        depth=3,
    )
    assert found.broken is None and not found.closed
    assert found.extent == "to depth 3"
    assert (found.states, found.transitions) == (361, 2842)


@pytest.mark.parametrize("core", all_cores(), ids=lambda c: f"{c.profile}-{c.edition}")
def test_calls_are_a_superset_of_the_protocol(core: Core) -> None:
    scope = Scope(2, 2, requests=1, pins=1)
    played, made = explore(Programs(core, scope)), explore(Calls(core, scope))
    assert played.closed and made.closed
    reached = {(policy, refs) for policy, refs, _ in made.parents}
    assert {(policy, refs) for policy, refs, _, _ in played.parents} <= reached


@pytest.mark.parametrize(
    "core",
    [c for c in all_cores() if c.edition in (V019, V024, V031) and interchangeable(c)],
    ids=lambda c: f"{c.profile}-{c.edition}",
)
def test_the_reduction_agrees_with_what_it_stands_for(core: Core) -> None:
    scope = SMALL if core.edition < V031 else Scope(2, 2, requests=1, pins=1)
    machine, symmetry = Programs(core, scope), ProgramSymmetry()
    plain, reduced = explore(machine), explore(machine, symmetry=symmetry)
    assert sum(map(symmetry.orbit, reduced.parents)) == plain.states
    assert reduced.depth == plain.depth
    for state in plain.parents:
        assert symmetry.rename(state, symmetry.renaming(state)) in reduced.parents


def replayed(trace: Trace) -> list[tuple[int, ...] | None]:
    """Run a trace on the class of its edition, objecting to nothing; return what was evicted."""
    oracle = Oracle("arc", trace.setting)
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


@pytest.mark.parametrize("edition", [e for e in EDITIONS if e < V030], ids=str)
def test_the_shortest_program_after_which_old_arc_refuses(edition: object) -> None:
    trace = known_fault(core_of("arc", edition_named(str(edition))))
    assert trace is not None
    assert [describe(event) for event in trace.events] == [
        "u1 offers 0 1",
        "store of 0 1 succeeds",
        "evict 1",
        "u1 touches 0",
        "u1 touches 0",
        "evict 1",
    ]
    assert replayed(trace) == [(0,), None]
    assert trace_from_json(trace.as_json()) == trace


@pytest.mark.parametrize("name", ["v0.30", "v0.31"])
def test_newer_arc_never_refuses(name: str) -> None:
    machine = Programs(core_of("arc", edition_named(name)), Scope(2, 2, requests=1, pins=1))
    found = explore(machine, symmetry=ProgramSymmetry(), check_step=refusal_check)
    assert found.broken is None and found.closed


def test_a_request_that_ended_is_replaced_by_a_new_one() -> None:
    core, scope = core_of("arc", V033), Scope(2, 2, requests=1)
    machine = Programs(core, scope)
    state = machine.start
    for event in (StoreOffered((0,), "u1"), RequestEnds("u1")):
        state = machine.happen(state, machine.books(state), event)[1]
    assert state[3] == (UNBEGUN,)
    path = (
        StoreOffered((0,), "u1"),
        RequestEnds("u1"),
        Touch((0,), "u1"),
        Reset(),
        StoreOffered((1,), "u1"),
        RequestEnds("u1"),
    )
    trace = as_trace(scope, core, path)
    assert [getattr(event, "request", "") for event in trace.events] == [
        "u1",
        "u1",
        "u2",
        "",
        "u3",
        "u3",
    ]
    replayed(trace)


@pytest.mark.parametrize(
    "core", [core_of("arc", V031), core_of("lru", V033)], ids=lambda c: f"{c.profile}-{c.edition}"
)
def test_every_path_is_a_valid_trace(core: Core) -> None:
    """Some state far away, as a program of real requests, is reached by the class too."""
    scope = Scope(2, 2, requests=2, pins=1)
    machine = Programs(core, scope)
    found = explore(machine, depth=4)
    for state in list(found.parents)[:: max(1, found.states // 50)]:
        path = []
        here = state
        while (parent := found.parents[here]) is not None:
            here = parent[0]
            path.append(parent[1])
        trace = as_trace(scope, core, path[::-1])
        books = start(trace.setting)
        oracle = Oracle(core.profile, trace.setting)
        for event in trace.events:
            assert objection(trace.setting, books, event) is None
            steps, answer = perform(trace.setting, books, event), None
            try:
                while True:
                    answer = oracle.carry_out(steps.send(answer))
            except StopIteration as end:
                books = end.value
        kept = {key: ref for key, ref in enumerate(state[1]) if ref != -2}
        assert {key: chunk.ref_cnt for key, chunk in books.chunks.items()} == kept
