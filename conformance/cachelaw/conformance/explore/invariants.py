"""What holds in every state of a policy, and which clause says so.

Each invariant is a statement about one state, written without the functions of the reference. A
closed exploration that breaks none of them proves them for its scope. They are stronger than the
clauses whose names they bear, which speak of answers: they say how the reference keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from cachelaw.conformance.explore.calls import ABSENT, State
from cachelaw.reference import textbook_arc
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import Core
from cachelaw.reference.editions import V031
from cachelaw.reference.lru import EvictableOrder, RankedOrder

Invariant = Callable[[Any, tuple[int, ...]], bool]
"""From a policy's state and the ref count of every key to whether it holds."""


def _residents(refs: tuple[int, ...]) -> set[int]:
    return {key for key, ref in enumerate(refs) if ref != ABSENT}


# --- LRU -----------------------------------------------------------------------------------------


def list_holds_residents(order: tuple[int, ...], refs: tuple[int, ...]) -> bool:
    """Each resident has one place in the list, and nobody else has one."""
    return sorted(order) == sorted(_residents(refs))


def residents_known(state: EvictableOrder[int], refs: tuple[int, ...]) -> bool:
    """The policy's residents are those of the manager."""
    return state.resident == _residents(refs)


def idle_have_places(state: EvictableOrder[int], refs: tuple[int, ...]) -> bool:
    """Exactly the chunks with ref count 0 have a place, one each."""
    return sorted(state.idle) == [key for key, ref in enumerate(refs) if ref == 0]


def ranks_hold_residents(state: RankedOrder[int], refs: tuple[int, ...]) -> bool:
    """Each resident has one rank, and nobody else has one."""
    return sorted(key for _, key in state.entries) == sorted(_residents(refs))


def ranks_sorted(state: RankedOrder[int], refs: tuple[int, ...]) -> bool:
    """Entries stand by rank, and by key where ranks are equal."""
    return list(state.entries) == sorted(state.entries)


def numbers_given(state: RankedOrder[int], refs: tuple[int, ...]) -> bool:
    """No rank is higher than the last number given out, so that the next is the highest."""
    return all(1 <= rank[0] <= state.serial for rank, _ in state.entries)


# --- ARC -----------------------------------------------------------------------------------------


def lists_disjoint(state: ArcState[int], refs: tuple[int, ...]) -> bool:
    """The four lists have no key in common or twice; T1 and T2 hold exactly the residents."""
    every = (*state.t1, *state.t2, *state.b1, *state.b2)
    return len(set(every)) == len(every) and {*state.t1, *state.t2} == _residents(refs)


def ghosts_bounded(state: ArcState[int], refs: tuple[int, ...]) -> bool:
    """Neither ghost list ever holds more keys than chunks fit, in any state.

    No stronger bound holds: at capacity 1 and 2 some state fills all three of the cache, B1 and B2.
    """
    return max(len(state.b1), len(state.b2)) <= state.capacity


def target_bounded(state: ArcState[int], refs: tuple[int, ...]) -> bool:
    """The target lies within 0 and the capacity."""
    return 0 <= state.target <= state.capacity


def pending_in_t1(state: ArcState[int], refs: tuple[int, ...]) -> bool:
    """A pending chunk is in T1. From v0.31 the end of a request may promote it."""
    return all(refs[key] >= 0 for key in state.t2)


# --- Which hold where ----------------------------------------------------------------------------


def invariants_of(core: Core) -> dict[Invariant, str]:
    """Return the invariants of a policy, each with the clause that it upholds."""
    match core.start(1):
        case ArcState():
            held: dict[Invariant, str] = {
                lists_disjoint: "arc/lists-disjoint",
                ghosts_bounded: "arc/ghosts-trimmed-to-capacity",
                target_bounded: "arc/target-bounded",
            }
            if core.edition < V031:
                held[pending_in_t1] = "arc/pending-stays-in-t1"
            return held
        case EvictableOrder():
            return {
                residents_known: "insert/makes-resident",
                idle_have_places: "lru/becoming-idle-is-use",
            }
        case RankedOrder():
            return {
                ranks_hold_residents: "insert/makes-resident",
                ranks_sorted: "lru/equal-rank-by-key-order",
                numbers_given: "lru/touch-is-use",
            }
    return {list_holds_residents: "insert/makes-resident"}


def state_check(core: Core) -> Callable[[State], str | None]:
    """Return the check that names the first clause which a state of `core` breaks."""
    held = tuple(invariants_of(core).items())

    def check(state: State) -> str | None:
        policy, refs, _ = state
        for holds, clause in held:
            if not holds(policy, refs):
                return clause
        return None

    return check


PAPER_CONDITIONS = "FAST'03, conditions A.1 to A.3, directory and target"
"""Stands for a clause: what `textbook_arc.check` recounts. The paper's ARC has no clauses."""


def check_textbook(state: textbook_arc.TextbookState[int]) -> str | None:
    """Name the conditions of the paper if one of them does not hold."""
    try:
        textbook_arc.check(state)
    except AssertionError:
        return PAPER_CONDITIONS
    return None


def tracker_check(limit: int) -> Callable[[tuple[tuple[int, int], ...]], str | None]:
    """Return the check of the filter's tracker.

    Args:
        limit: how many keys it may hold.
    """

    def broken(tracker: tuple[tuple[int, int], ...]) -> Iterator[str]:
        if len(tracker) > limit:
            yield "reuse-filter/tracker-drops-least-recent"
        if len({key for key, _ in tracker}) != len(tracker):
            yield "reuse-filter/repeat-renews"
        if any(count < 1 for _, count in tracker):
            yield "reuse-filter/lookup-counts-each-key"

    return lambda tracker: next(broken(tracker), None)
