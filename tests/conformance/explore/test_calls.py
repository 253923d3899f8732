"""The alphabet calls: counts, invariants, rules, and mutants of the core that must break them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.assurance.record import counted, on_record

from cachelaw.conformance.explore import accesses
from cachelaw.conformance.explore.accesses import (
    Filter,
    FilterSymmetry,
    Textbook,
    TextbookSymmetry,
)
from cachelaw.conformance.explore.calls import Calls, Scope, settled
from cachelaw.conformance.explore.invariants import (
    PAPER_CONDITIONS,
    check_textbook,
    invariants_of,
    state_check,
    tracker_check,
)
from cachelaw.conformance.explore.plan import explore_policy, scope_of
from cachelaw.conformance.explore.search import explore
from cachelaw.conformance.explore.symmetry import KeySymmetry
from cachelaw.conformance.explore.transitions import known_faults, step_check
from cachelaw.reference import arc, lru, textbook_arc
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import Core, all_cores, core_of
from cachelaw.reference.editions import (
    EDITIONS,
    V019,
    V022,
    V024,
    V030,
    V031,
    V033,
    Edition,
    edition_named,
)
from cachelaw.reference.lru import EvictableOrder, RankedOrder, RequestRank
from cachelaw.reference.recency import eligible, forget, renew
from cachelaw.reference.reuse_filter import observe_all
from cachelaw.specs.registry import CLAUSES

EVERY = pytest.mark.parametrize("core", all_cores(), ids=lambda c: f"{c.profile}-{c.edition}")


@EVERY
def test_every_state(core: Core) -> None:
    """As the ledger has it on record, to the last count.

    A change of semantics, of the alphabet or of the checker shows here.
    """
    scope = scope_of(core.profile, core.edition, "calls", "states", full=False)
    row = explore_policy(core.profile, core.edition, "calls", scope)
    assert (row.extent, row.clause) == ("closed", "")
    assert counted(row) == on_record(core.profile, core.edition.name, "calls", "states")


# States up to the names of keys, all states, transitions, depth.
DEEP = {
    ("lru", "v0.33", Scope(3, 4, pins=1, groups=2)): (53777, 53777, 8215175, 11),
}


@pytest.mark.deep
@pytest.mark.parametrize("case", DEEP, ids=lambda case: f"{case[0]}-{case[1]}")
def test_every_state_at_larger_scopes(case: tuple[str, str, Scope]) -> None:
    profile, name, scope = case
    core = core_of(profile, edition_named(name))
    found = explore(Calls(core, scope), check_state=state_check(core))
    assert found.broken is None and found.closed
    assert (found.states, found.states, found.transitions, found.depth) == DEEP[case]


@pytest.mark.deep
@pytest.mark.parametrize("edition", [V019, V030, V031], ids=str)
def test_the_reduction_of_arc_at_capacity_3_with_4_keys(edition: Edition) -> None:
    core = core_of("arc", edition)
    found = explore(Calls(core, Scope(3, 4)), check_state=state_check(core))
    assert found.closed and found.broken is None
    assert found.states == (106196 if edition >= V031 else 76276)


@pytest.mark.parametrize(
    "core",
    [c for c in all_cores() if c.edition in (V019, V024, V030, V031)],
    ids=lambda c: f"{c.profile}-{c.edition}",
)
def test_the_reduction_agrees_with_what_it_stands_for(core: Core) -> None:
    machine, symmetry = Calls(core, Scope(2, 3)), KeySymmetry()
    plain, reduced = explore(machine), explore(machine, symmetry=symmetry)
    assert plain.closed and reduced.closed
    assert sum(map(symmetry.orbit, reduced.parents)) == plain.states
    assert reduced.depth == plain.depth
    for state in plain.parents:
        assert symmetry.rename(state, symmetry.renaming(state)) in reduced.parents
    # Interchangeable keys have as many steps each as their representative.
    assert plain.transitions == sum(
        symmetry.orbit(state) * len(list(machine.steps(state))) for state in reduced.parents
    )


def scope_for_rules(core: Core) -> Scope:
    ranked = core.profile == "lru" and core.edition >= V033
    return Scope(2, 3, requests=1, pins=1, groups=2) if ranked else Scope(2, 3)


def symmetry_of(core: Core) -> KeySymmetry | None:
    return None if core.profile == "lru" and core.edition >= V033 else KeySymmetry()


@EVERY
def test_every_step_keeps_the_rules(core: Core) -> None:
    """As the ledger has it on record, to the last count."""
    scope = scope_of(core.profile, core.edition, "calls", "steps", full=False)
    row = explore_policy(core.profile, core.edition, "calls", scope, "steps")
    assert (row.extent, row.clause) == ("closed", "")
    assert counted(row) == on_record(core.profile, core.edition.name, "calls", "steps")


def test_a_busy_chunk_that_is_not_counted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes three chunks: one of T1 that is busy, one that may leave, and one of T2."""

    def counts_idle_chunks(
        state: ArcState[int], n: int, protected: Any, ref_cnt: Any, **more: Any
    ) -> Any:
        busy = [key for key in state.t1 if ref_cnt(key) != 0]
        given = replace(state, target=state.target + len(busy))
        after, victims = EVICT(given, n, protected, ref_cnt, **more)
        return replace(after, target=state.target), victims

    core = core_of("arc", V030)
    scope = scope_of("arc", V030, "calls", "steps", full=False)
    machine = Calls(core, scope)
    monkeypatch.setattr(arc, "evict", counts_idle_chunks)
    found = explore(machine, symmetry=KeySymmetry(), check_step=step_check(machine))
    assert found.broken is not None
    assert found.broken.clause == "arc/t1-gives-at-target"


@pytest.mark.parametrize("edition", [e for e in EDITIONS if e < V030], ids=str)
def test_old_arc_refuses_in_eight_calls(edition: Edition) -> None:
    machine = Calls(core_of("arc", edition), Scope(2, 2, batch=1))
    found = explore(machine, symmetry=KeySymmetry(), check_step=step_check(machine))
    assert found.broken is not None
    assert found.broken.clause == "evict/none-only-when-short"
    assert [call.method for call in found.broken.path] == [
        "insert",
        "insert",
        "completes",
        "completes",
        "evict",
        "touch",
        "touch",
        "evict",
    ]
    # The path runs in the names that it is told in.
    here, answer = machine.start, None
    for action in found.broken.path:
        answer, here = next((said, s) for a, said, s in machine.steps(here) if a == action)
    assert answer is None and here[0].target == 2


@pytest.mark.parametrize(("capacity", "keys"), [(1, 3), (2, 6)])
def test_no_stronger_bound_on_ghosts_holds(capacity: int, keys: int) -> None:
    core = core_of("arc", V033)
    full = 3 * capacity

    def fills(state: Any) -> str | None:
        held: ArcState[int] = state[0]
        every = (*held.t1, *held.t2, *held.b1, *held.b2)
        return "full" if len(every) == full and len(held.b1) == len(held.b2) == capacity else None

    found = explore(
        Calls(core, Scope(capacity, keys, batch=1, pins=0)),
        symmetry=KeySymmetry(),
        check_state=fills,
    )
    assert found.broken is not None


# --- One key after another -----------------------------------------------------------------------

TEXTBOOK = {
    (1, 3): (8, 37, 24, 6),
    (2, 5): (25, 1991, 125, 11),
    (3, 4): (21, 405, 84, 8),
    (3, 7): (62, 179061, 434, 12),
    (4, 8): (138, 3974729, 1104, 16),
    (4, 9): (138, 25025851, 1242, 16),
    (5, 11): (342, 7530348233, 3762, 26),
}


@pytest.mark.parametrize(("capacity", "keys"), TEXTBOOK)
def test_every_state_of_the_textbook(capacity: int, keys: int) -> None:
    symmetry = TextbookSymmetry(keys)
    found = explore(Textbook(capacity, keys), symmetry=symmetry, check_state=check_textbook)
    assert found.broken is None and found.closed
    unreduced = sum(map(symmetry.orbit, found.parents))
    counts = (found.states, unreduced, found.transitions, found.depth)
    assert counts == TEXTBOOK[capacity, keys]
    if capacity < 3:
        assert explore(Textbook(capacity, keys)).states == unreduced


@pytest.mark.parametrize(
    ("limit", "keys", "counts"), [(2, 3, (7, 31, 182, 2)), (3, 4, (15, 249, 630, 3))]
)
def test_every_state_of_the_tracker(
    limit: int, keys: int, counts: tuple[int, int, int, int]
) -> None:
    machine, symmetry = Filter(limit, keys), FilterSymmetry(keys)
    found = explore(
        machine,
        symmetry=symmetry,
        check_state=tracker_check(limit),
        check_step=machine.broken,
    )
    assert found.broken is None and found.closed
    unreduced = sum(map(symmetry.orbit, found.parents))
    assert (found.states, unreduced, found.transitions, found.depth) == counts
    assert explore(machine).states == unreduced


# --- The machine and the registry ----------------------------------------------------------------


@EVERY
def test_invariants_name_clauses_that_the_edition_has(core: Core) -> None:
    for holds, clause in invariants_of(core).items():
        assert CLAUSES[clause].holds_in(core.edition.name), clause
        assert holds.__doc__


def test_numbers_are_settled_by_their_order_alone() -> None:
    order = RankedOrder((((4, -16), 1), ((9, 0), 0)), serial=12, generation=3)
    memories = (RequestRank(4, 3), RequestRank(11, 3), RequestRank(5, 2), None)
    core, refs, kept = settled(order, (0, 0), memories)
    assert core == RankedOrder((((1, -16), 1), ((2, 0), 0)), serial=3, generation=0)
    assert kept == (RequestRank(1, 0), RequestRank(3, 0), None, None)
    assert settled(core, refs, kept) == (core, refs, kept)


# --- Mutants of the core -------------------------------------------------------------------------


def no_trim(order: tuple[int, ...], limit: int) -> tuple[int, ...]:
    return order


def unclamped(state: ArcState[int], key: int) -> ArcState[int]:
    if key in state.b1:
        return replace(state, target=state.target + 1.0, b1=renew(state.b1, key))
    if key in state.b2:
        return replace(state, target=max(state.target - 1.0, 0.0), b2=renew(state.b2, key))
    return state


def step_of_one(state: ArcState[int], key: int) -> ArcState[int]:
    if key in state.b1:
        target = min(state.target + 1.0, float(state.capacity))
        return replace(state, target=target, b1=renew(state.b1, key))
    if key in state.b2:
        return replace(state, target=max(state.target - 1.0, 0.0), b2=renew(state.b2, key))
    return state


def keeps_ghost(state: ArcState[int], key: int) -> ArcState[int]:
    return replace(state, t1=renew(state.t1, key))


def keeps_in_t1(state: ArcState[int], key: int) -> ArcState[int]:
    return replace(state, t2=renew(state.t2, key))


def remove_to_ghosts(state: ArcState[int], key: int) -> ArcState[int]:
    return replace(
        state, t1=forget(state.t1, key), t2=forget(state.t2, key), b1=renew(state.b1, key)
    )


def keeps_target(state: ArcState[int]) -> ArcState[int]:
    return replace(ArcState(state.capacity), target=state.target)


def ignores_protected(
    order: tuple[int, ...], protected: Collection[int], ref_cnt: Callable[[int], int]
) -> tuple[int, ...]:
    return tuple(key for key in order if ref_cnt(key) == 0)


def ignores_pins(
    order: tuple[int, ...], protected: Collection[int], ref_cnt: Callable[[int], int]
) -> tuple[int, ...]:
    return tuple(key for key in order if ref_cnt(key) >= 0 and key not in protected)


def never_falls_back(*arguments: Any, falls_back_to_t1: bool) -> Any:
    return EVICT(*arguments, falls_back_to_t1=False)


EVICT = arc.evict
TOUCH = arc.touch


def promotes_pending(
    state: ArcState[int], keys: Iterable[int], ref_cnt: Callable[[int], int]
) -> ArcState[int]:
    return TOUCH(state, keys, lambda key: 0)


def no_place(state: EvictableOrder[int], key: int) -> EvictableOrder[int]:
    return state


def still_resident(
    state: EvictableOrder[int], n: int, protected: Collection[int]
) -> tuple[EvictableOrder[int], tuple[int, ...] | None]:
    victims = tuple(key for key in state.idle if key not in protected)[:n]
    if len(victims) < n:
        return state, None
    idle = tuple(key for key in state.idle if key not in victims)
    return EvictableOrder(state.resident, idle), victims


def not_atomic(
    order: tuple[int, ...], n: int, protected: Collection[int], ref_cnt: Callable[[int], int]
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    victims = eligible(order, protected, ref_cnt)[:n]
    left = tuple(key for key in order if key not in victims)
    if len(victims) == n:
        return left, victims
    return left + victims, None  # what was taken goes back to the wrong end


def head_first(order: tuple[int, ...], keys: Iterable[int]) -> tuple[int, ...]:
    for key in keys:
        if key in order:
            order = renew(order, key)
    return order


def youngest_first(
    order: tuple[int, ...], n: int, protected: Collection[int], ref_cnt: Callable[[int], int]
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    victims = eligible(order[::-1], protected, ref_cnt)[:n]
    if len(victims) < n:
        return order, None
    return tuple(key for key in order if key not in victims), victims


def same_generation(state: RankedOrder[int]) -> RankedOrder[int]:
    return RankedOrder(generation=state.generation)


def demotes(
    state: RankedOrder[int], keys: Any, memory: RequestRank | None
) -> tuple[RankedOrder[int], RequestRank]:
    state, memory = lru.number_request(state, memory)
    for key, position in keys:
        if lru.rank_of(state, key) is not None and position is not None:
            state = lru.place(state, key, (memory.serial, -position))
    return state, memory


def keeps_all(order: tuple[int, ...], key: int) -> tuple[int, ...]:
    return order


def invents_numbers(state: RankedOrder[int], keys: Iterable[int]) -> RankedOrder[int]:
    for key in reversed(list(keys)):
        if lru.rank_of(state, key) is not None:
            state = lru.place(state, key, (state.serial + 1, 0))  # and does not count it
    return state


def unsorted(state: RankedOrder[int], key: int, rank: tuple[int, int]) -> RankedOrder[int]:
    entries = tuple(entry for entry in state.entries if entry[1] != key)
    return replace(state, entries=(*entries, (rank, key)))


BY_STATES = [
    ("arc", V033, arc, "trim", no_trim, "arc/ghosts-trimmed-to-capacity"),
    ("arc", V033, arc, "_adapt", unclamped, "arc/target-bounded"),
    ("arc", V033, arc, "insert", keeps_ghost, "arc/lists-disjoint"),
    ("arc", V033, arc, "_promote", keeps_in_t1, "arc/lists-disjoint"),
    ("arc", V030, arc, "touch", promotes_pending, "arc/pending-stays-in-t1"),
    ("lru", V024, lru, "evictable_mark", no_place, "lru/becoming-idle-is-use"),
    ("lru", V024, lru, "evictable_unmark", no_place, "lru/becoming-idle-is-use"),
    ("lru", V024, lru, "evictable_evict", still_resident, "insert/makes-resident"),
    ("lru", V031, lru, "list_remove", keeps_all, "insert/makes-resident"),
    ("lru", V033, lru, "place", unsorted, "lru/equal-rank-by-key-order"),
    ("lru", V033, lru, "ranked_touch", invents_numbers, "lru/touch-is-use"),
]
"""Mutants that an invariant of states finds."""

BY_STEPS = [
    ("arc", V033, arc, "trim", no_trim, "arc/ghosts-trimmed-to-capacity"),
    ("arc", V033, arc, "_adapt", unclamped, "arc/b1-hit-raises-target"),
    ("arc", V033, arc, "_adapt", step_of_one, "arc/b1-hit-raises-target"),
    ("arc", V033, arc, "insert", keeps_ghost, "arc/insert-takes-ghost"),
    ("arc", V033, arc, "_promote", keeps_in_t1, "arc/reuse-promotes"),
    ("arc", V030, arc, "_promote", keeps_in_t1, "arc/second-use-promotes"),
    ("arc", V033, arc, "remove", remove_to_ghosts, "arc/remove-leaves-no-ghost"),
    ("arc", V033, arc, "clear", keeps_target, "clear/equals-new"),
    ("arc", V033, arc, "eligible", ignores_protected, "evict/protected-honoured"),
    ("arc", V033, arc, "eligible", ignores_pins, "evict/idle-only"),
    ("arc", V030, arc, "evict", never_falls_back, "evict/none-only-when-short"),
    ("arc", V030, arc, "touch", promotes_pending, "arc/pending-stays-in-t1"),
    ("lru", V024, lru, "evictable_mark", no_place, "lru/becoming-idle-is-use"),
    ("lru", V024, lru, "evictable_evict", still_resident, "evict/forgets-victims"),
    ("lru", V022, lru, "list_evict", not_atomic, "evict/none-changes-nothing"),
    ("lru", V022, lru, "list_evict", youngest_first, "lru/oldest-leaves-first"),
    ("lru", V022, lru, "list_touch", head_first, "lru/batch-tail-first"),
    ("lru", V031, lru, "list_remove", keeps_all, "remove/forgets"),
    ("lru", V033, lru, "ranked_clear", same_generation, "clear/equals-new"),
    ("lru", V033, lru, "ranked_access", demotes, "lru/access-never-demotes"),
]
"""Mutants that a rule of steps finds."""


def _named(mutants: list[Any]) -> list[Any]:
    return [pytest.param(*mutant, id=f"{mutant[3]}-{mutant[5]}") for mutant in mutants]


@pytest.mark.parametrize(
    ("profile", "edition", "module", "name", "mutant", "clause"), _named(BY_STATES)
)
def test_mutants_are_found_by_invariants_of_states(
    profile: str,
    edition: Edition,
    module: Any,
    name: str,
    mutant: Any,
    clause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = core_of(profile, edition)
    machine, check = Calls(core, scope_for_rules(core)), state_check(core)
    monkeypatch.setattr(module, name, mutant)
    found = explore(machine, check_state=check)
    assert found.broken is not None
    assert found.broken.clause == clause
    # The path leads there: every state before is sound, the last is not.
    here = machine.start
    for action in found.broken.path:
        assert check(here) is None
        here = next(after for other, _, after in machine.steps(here) if other == action)
    assert check(here) == clause


@pytest.mark.parametrize(
    ("profile", "edition", "module", "name", "mutant", "clause"), _named(BY_STEPS)
)
def test_mutants_are_found_by_rules_of_steps(
    profile: str,
    edition: Edition,
    module: Any,
    name: str,
    mutant: Any,
    clause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = core_of(profile, edition)
    machine = Calls(core, scope_for_rules(core))
    monkeypatch.setattr(module, name, mutant)
    found = explore(machine, check_step=step_check(machine, excused=known_faults(core)))
    assert found.broken is not None
    assert found.broken.clause == clause


def test_a_textbook_that_forgets_a_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case_1 = textbook_arc._case_1

    def keeps_t1(state: Any, key: int) -> Any:
        return replace(case_1(state, key), t1=state.t1)

    monkeypatch.setattr(textbook_arc, "_case_1", keeps_t1)
    found = explore(Textbook(2, 4), check_state=check_textbook)
    assert found.broken is not None
    assert (found.broken.clause, found.broken.path) == (PAPER_CONDITIONS, (0, 0))


def test_a_tracker_that_drops_the_wrong_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def drops_newest(tracker: Any, keys: tuple[int, ...], limit: int) -> Any:
        for key in keys:
            if len(tracker) == limit and key not in dict(tracker):
                tracker = tracker[:-1]
            tracker = observe_all(tracker, (key,), limit)
        return tracker

    monkeypatch.setattr(accesses, "observe_all", drops_newest)
    machine = Filter(2, 3)
    found = explore(machine, check_state=tracker_check(2), check_step=machine.broken)
    assert found.broken is not None
    assert found.broken.clause == "reuse-filter/tracker-drops-least-recent"
