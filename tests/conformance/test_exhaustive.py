"""The exhaustive engine: it finds what is wrong by a shortest trace, closes, and says its limit."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, deque
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import exhaustive_zoo

from cachelaw.conformance import exhaustive
from cachelaw.conformance.exhaustive import PLANS, Exhausted, search
from cachelaw.conformance.explore.calls import Scope
from cachelaw.conformance.finding import Finding, Tally, lockstep_experiment
from cachelaw.conformance.lockstep import DIVERGED, Lockstep
from cachelaw.conformance.subject import resolve
from cachelaw.conformance.trace import Trace, describe

ZOO = Path(exhaustive_zoo.__file__)
RIGHT = Path(__file__).with_name("right.py")

TINY = Scope(capacity=1, keys=2, requests=1, batch=1, pins=1)
SMALL = Scope(capacity=2, keys=3, requests=1, batch=2, pins=1)
ONE_BY_ONE = Scope(capacity=2, keys=3, requests=1, batch=1, pins=1)


def searched(
    name: str, scope: Scope = SMALL, m: int = 4, limit: int = 4_000, edition: str | None = None
) -> Exhausted:
    subject = resolve(name if ":" in name else f"{ZOO}:{name}", edition=edition)
    return search(subject, scope, m, Tally(Counter()), limit)


def described(finding: Finding) -> list[str]:
    return [describe(event) for event in finding.trace.events]


# --- What is wrong -------------------------------------------------------------------------------

MUTANTS: dict[str, tuple[str, list[str]]] = {
    "answers:OneTooMany": (
        "evict/exact-count",
        ["u1 offers 0 1", "store of 0 1 succeeds", "evict 1"],
    ),
    "residency:RemovesTheRest": ("remove/forgets", ["u1 offers 0 1", "store of 0 fails"]),
    "residency:KeepsOldObject": (
        "get/same-object",
        ["u1 offers 0", "store of 0 fails", "u1 offers 0"],
    ),
    "lru_list:StaleRecord": (
        DIVERGED,
        ["u1 offers 0 1", "u1 touches 0", "store of 0 1 succeeds", "evict 1"],
    ),
    "arc_uses:PromotesToOldEnd": (
        DIVERGED,
        ["u1 offers 0 1", "store of 0 1 succeeds", "u1 touches 0 1", "evict 1"],
    ),
    "clear:ClearKeepsBusy": ("clear/forgets-all", ["u1 offers 0", "reset"]),
}
"""Mutants of the zoo, with what the search finds of each."""


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found_out_by_a_shortest_trace(name: str) -> None:
    module, _, made = name.partition(":")
    name = f"cachelaw.conformance.mutants.zoo.{module}:{made}"
    found = searched(name).findings
    assert (found[0].clause, described(found[0])) == MUTANTS[f"{module}:{made}"]
    assert found[0].shortest
    again = lockstep_experiment(resolve(name))(found[0].trace)
    assert again[0].trace == found[0].trace


def test_the_refusal_of_older_releases_takes_six_events() -> None:
    (finding,) = searched("cachelaw.reference.v027:ARC").findings
    assert finding.clause == "evict/none-only-when-short"
    assert described(finding) == [
        "u1 offers 0 1",
        "store of 0 1 succeeds",
        "evict 1",
        "u1 touches 0",
        "u1 touches 0",
        "evict 1",
    ]
    assert finding.shortest


# --- What is right -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edition", "policy", "states"),
    [("v024", "LRU", 10), ("v030", "ARC", 285), ("v022", "LRU", 13)],
)
def test_it_closes_for_the_reference(edition: str, policy: str, states: int) -> None:
    result = searched(f"cachelaw.reference.{edition}:{policy}", ONE_BY_ONE, limit=20_000)
    assert result.findings == ()
    assert (result.closed, result.snapshots, result.reduced) == (True, "state", True)
    assert result.states == states


@pytest.mark.parametrize("policy", ["LRU", "ARC"])
def test_it_finds_nothing_in_the_newest_reference(policy: str) -> None:
    result = searched(f"cachelaw.reference:{policy}", limit=3_000)
    assert (result.findings, result.closed, result.transitions) == ((), False, 3_000)
    # Positions play a part in the LRU of v0.33, which offers no state.
    assert result.reduced == (policy == "ARC")
    assert result.snapshots == ("state" if policy == "ARC" else "pickle")


@pytest.mark.parametrize("name", ["Fifo", "Sieve", "Lfu", "S3Fifo"])
def test_it_finds_nothing_in_right_policies(name: str) -> None:
    result = searched(f"{RIGHT}:{name}", TINY, limit=8_000)
    assert (result.findings, result.closed) == ((), True)
    assert result.states == 71  # the books alone, whatever the policy


def test_states_are_counted_up_to_the_names_of_keys() -> None:
    """Two keys: each state but those that treat both alike stands for two."""
    subject = resolve("cachelaw.reference.v024:LRU")
    counts = {}
    for reduced in (True, False):
        way = exhaustive._Search(
            subject, TINY, 4, Tally(Counter()), 9_000, "u", exhaustive._Pickles, reduced
        )
        counts[reduced] = way.run().states
    assert counts == {True: 4, False: 7}


# --- Its limit -----------------------------------------------------------------------------------


def test_more_hidden_states_than_m_are_not_seen() -> None:
    few = searched("TiresAfter", TINY, m=4, limit=20_000, edition="v0.30")
    assert (few.findings, few.closed, few.m) == ((), True, 4)
    many = searched("TiresAfter", TINY, m=16, limit=20_000, edition="v0.30")
    assert [one.clause for one in many.findings] == ["evict/none-only-when-short"]
    # Two events fill the cache, six wear it out.
    assert len(many.findings[0].trace.events) == 2 + 6 + 1


def test_what_a_subclass_hides_is_searched_like_anything_hidden() -> None:
    result = searched("TiresSecretly", ONE_BY_ONE, limit=4_000)
    assert result.snapshots == "state"
    assert result.findings[0].clause == "evict/none-only-when-short"


def test_the_limit_ends_the_search() -> None:
    result = searched("cachelaw.reference:ARC", limit=500)
    assert (result.transitions, result.closed) == (500, False)
    assert 0 < result.depth < 6


def test_met_conditions_are_counted() -> None:
    tally = Tally(Counter())
    search(resolve("cachelaw.reference.v030:ARC"), SMALL, 4, tally, 2_000)
    assert tally.met["arc/falls-back-to-t2"] > 0
    assert tally.met["evict/exact-count"] > 0
    assert tally.calls > tally.events > 2_000


# --- Snapshots -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "snapshots"),
    [("HoldsFunction", "deepcopy"), ("HoldsLock", "replay"), ("CopiesBadly", "replay")],
)
def test_what_cannot_be_pickled_is_copied_or_run_again(name: str, snapshots: str) -> None:
    result = searched(name, ONE_BY_ONE, limit=1_500, edition="v0.30")
    assert (result.findings, result.snapshots) == ((), snapshots)


@pytest.mark.parametrize("name", ["WrongWithFunction", "WrongWithLock"])
def test_it_is_searched_all_the_same(name: str) -> None:
    result = searched(name, ONE_BY_ONE, limit=1_500)
    finding = result.findings[0]
    assert (finding.clause, finding.shortest) == ("touch/keeps-residency", True)
    assert described(finding) == ["u1 offers 0", "u1 touches 0"]


@pytest.mark.parametrize("name", ["HoldsFunction", "HoldsLock"])
def test_all_ways_come_to_the_same(name: str) -> None:
    result = searched(name, TINY, limit=20_000, edition="v0.30")
    plain = searched(
        "cachelaw.conformance.mutants.zoo.right:Recent", TINY, limit=20_000, edition="v0.30"
    )
    assert (result.states, result.transitions) == (plain.states, plain.transitions)
    assert result.closed and plain.closed


# --- Keys ----------------------------------------------------------------------------------------


def test_keys_are_not_taken_to_be_alike_if_the_subject_tells_them_apart() -> None:
    result = searched("LeastKeyFirst", limit=2_000, edition="v0.30")
    assert (result.reduced, result.findings) == (False, ())
    assert searched("HoldsLock", limit=100, edition="v0.30").reduced


def test_equal_things_are_described_alike() -> None:
    subject = resolve(f"{RIGHT}:Fifo")

    def words(what: Any) -> str:
        run = Lockstep(subject, Trace(subject.edition, 2, ()).setting)
        described = exhaustive._Description(run.instance, ("u1",))
        described.take_in(what)
        return " ".join(described.words)

    assert words([1, 2]) == words([1, 2]) != words([2, 1])
    assert words({"a": 1, "b": 2}) != words({"b": 2, "a": 1})  # the order of a dict shows
    assert words({"a", "b", "c"}) == words({"c", "b", "a"})
    assert words([(1, 2), (1, 2)]) == words([(1, 2)] * 2)
    shared: list[int] = []
    assert words([shared, shared]) != words([[], []])  # one list or two makes a difference
    assert words(Counter("aab")) != words(Counter("ab"))
    assert words(lambda: shared) != words(lambda: 0)
    assert words([1]) != words((1,))
    assert words(random.Random(1)) != words(random.Random(2))
    assert words(exhaustive_zoo.Slotted(1)) != words(exhaustive_zoo.Slotted(2))
    assert words(deque([1], 2)) != words(deque([2], 2))
    assert words(OrderedDict(a=1)) != words(OrderedDict(a=2))
    assert words("u1") != words("u2")


def test_plans_stay_small() -> None:
    totals = {name: sum(limit for _, _, limit in plan) for name, plan in PLANS.items()}
    assert totals == {"quick": 3_000, "standard": 20_000, "deep": 500_000}
    assert all(scope.batch <= 2 and m >= 4 for plan in PLANS.values() for scope, m, _ in plan)


@pytest.mark.deep
@pytest.mark.parametrize("policy", ["LRU", "ARC"])
def test_the_deep_plan_finds_nothing_in_the_reference(policy: str) -> None:
    for scope, m, limit in PLANS["deep"]:
        assert searched(f"cachelaw.reference:{policy}", scope, m, limit).findings == ()
