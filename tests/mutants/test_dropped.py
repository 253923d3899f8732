"""Every clause carries weight: without it, some wrong policy of the zoo would pass."""

from __future__ import annotations

import random

import pytest
from tests.mutants.dropped import SOME_SEARCH, to_drop, violated

from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants.trial import PROBES_ALONE
from cachelaw.conformance.mutants.zoo import FILTERS, POLICIES, classes, mutants, subject_name
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.subject import resolve
from cachelaw.specs.registry import CLAUSES

ALONE = {
    "chunk-status/manager-writes": "StampsVictims",
    "call/valid-call-returns": "TouchNeedsResidents",
    "call/arguments-unchanged": "EmptiesProtected",
    "keys/equal-is-same": "TouchByIdentity",
    "instances/share-nothing": "SharedTable",
    "determinism/same-calls-same-results": "RandomSalt",
    "determinism/independent-of-hash-seed": "HashOrder",
    "get/same-object": "CopiesAtGet",
    "get/absent-is-none": "InventsForStrangers",
    "insert/makes-resident": "TurnsAway",
    "remove/forgets": "RemovedUntilInserted",
    "touch/keeps-residency": "FinishReleases",
    "touch/absent-ignored": "AbsentTurnsRing",
    "touch/any-iterable": "WalksTwice",
    "evict/list-of-pairs": "ReturnsLists",
    "evict/exact-count": "WipesCache",
    "evict/distinct": "SameTwice",
    "evict/resident-only": "InventsVictim",
    "evict/idle-only": "PinsAreFlags",
    "evict/protected-honoured": "ProtectsSingly",
    "evict/same-object": "HandsBackCopy",
    "evict/forgets-victims": "GhostUntilInserted",
    "evict/keeps-others": "DropsTwo",
    "evict/none-only-when-short": "ScanLimit",
    "evict/none-changes-nothing": "RefusalEvicts",
    "evict/zero-is-empty": "RandomZeroIsNone",
    "clear/forgets-all": "ClearKeepsBusy",
    "clear/equals-new": "ClearKeepsCounts",
    "marks/keep-residency": "MarkForgets",
    "state/no-side-effect": "AskedSorts",
    "lru/oldest-leaves-first": "VictimsReversed",
    "lru/insert-is-use": "NewcomersZero",
    "lru/touch-is-use": "RecencyWraps",
    "lru/batch-tail-first": "ShortBatchHeadFirst",
    "lru/passed-over-keeps-place": "PassedOverRenewed",
    "lru/transfer-is-no-use": "CompletionOrdersUntouched",
    "lru/becoming-idle-is-use": "UnusedLoadIsNoUse",
    "lru/touch-of-busy-counts": "BusyTouchLostOfOld",
    "lru/touch-of-busy-lost": "BusyTouchKept",
    "lru/finish-is-use": "FinishOfStoresOnly",
    "lru/finish-in-prefix-order": "GroupAfterGroup",
    "lru/batches-share-a-rank": "RankMovesOn",
    "lru/access-joins-rank": "AccessUnheard",
    "lru/access-never-demotes": "AccessDemotes",
    "lru/access-needs-position": "UnknownJoins",
    "lru/equal-rank-by-key-order": "TiesByInsertion",
    "lru/clear-voids-request-ranks": "RanksOutliveClear",
    "arc/insert-into-t1": "GhostIntoT2",
    "arc/insert-takes-ghost": "GhostStays",
    "arc/remove-leaves-no-ghost": "RemoveHauntsOfNew",
    "arc/pending-stays-in-t1": "PromotesPending",
    "arc/batch-tail-first": "GhostsHeadFirst",
    "arc/miss-adapts": "MissesHeadFirst",
    "arc/reuse-promotes": "ReuseIsUse",
    "arc/merely-seen-stays": "SeenIsReuse",
    "arc/finish-in-prefix-order": "ArcByPositionAlways",
    "arc/step-is-ratio-of-ghosts": "StepTruncated",
    "arc/target-bounded": "TargetBelowZero",
    "arc/size-counts-busy-chunks": "SizeWithoutPending",
    "arc/each-victim-anew": "DecidesOnce",
    "arc/oldest-of-its-list-first": "ListByList",
    "arc/ghosts-trimmed-to-capacity": "GhostsUnbounded",
    "arc/clear-forgets-all": "ClearKeepsTarget",
    "reuse-filter/threshold-at-least-two": "AcceptsThresholdOfOne",
    "reuse-filter/tracker-at-least-one": "AcceptsEmptyTracker",
    "reuse-filter/lookup-counts-each-key": "CountsMissesOnly",
    "reuse-filter/lookup-delegates-all": "PassesOnAnExhaustedIterator",
    "reuse-filter/repeat-renews": "FirstInFirstOut",
    "reuse-filter/tracker-drops-least-recent": "DropsTheRarest",
    "reuse-filter/store-needs-threshold": "AsksForExactlyTheThreshold",
    "reuse-filter/filtered-before-backing": "OffersOneByOne",
    "reuse-filter/empty-offer-delegated": "SkipsEmptyOffers",
    "reuse-filter/all-else-delegated": "TakesEveryStoreForSuccess",
    "reuse-filter/counts-outlive-chunks": "ForgetsWhatItAdmits",
}
"""For each clause, a wrong policy that nothing but it, and what implies it, rejects."""

TOGETHER = {
    "get/no-side-effect": "GetRenews",
    "arc/second-use-promotes": "PromotesWhenFull",
    "arc/use-renews-t2": "T2IsFifo",
    "arc/touch-adapts": "TouchDoesNotAdapt",
    "arc/store-is-not-reuse": "StoreIsReuse",
    "arc/target-starts-at-zero": "TargetStartsHalf",
    "arc/b1-hit-raises-target": "T1Always",
    "arc/b2-hit-lowers-target": "OnlyRaises",
    "arc/ghost-hit-renews": "GhostKeepsPlace",
    "arc/t1-gives-at-target": "StrictlyGreaterThanOne",
    "arc/t2-gives-below-target": "BelowByTwo",
    "arc/target-rounded-in-comparison": "TargetRoundedUp",
    "arc/falls-back-to-t2": "FallsBackToYoungT2",
    "arc/falls-back-to-t1": "FallsBackToYoungT1",
    "arc/no-fallback-to-t1": "FallsBackTooEarly",
    "arc/victim-becomes-ghost": "LastBecomesGhost",
}
"""Clauses that no policy of the zoo breaks alone, with one that breaks the fewest besides.

By `get` the suite looks whether other clauses hold, so that a policy which it changes breaks one of
those too. As for the others, all that ever shows of ARC is who leaves. So the probes of its other
clauses are built on these: on chunks in T2, on ghosts, on a target that was moved. Whoever breaks
one of them fails some of those.
"""

ALL = [*ALONE, *TOGETHER]
SOME = random.Random(1).sample(sorted(set(ALL) - set(PROCESS_LAWS)), 12)


def test_every_law_has_its_policy() -> None:
    assert set(ALL) <= set(LAWS) and len(set(ALL)) == len(ALL)
    assert set(LAWS) - set(ALL) <= OF_THEIR_OWN
    wrong = mutants((*POLICIES, *FILTERS))
    for clause, name in {**ALONE, **TOGETHER}.items():
        breaks = wrong[name].breaks
        assert clause == breaks or clause in getattr(wrong[name], "also", ()), name


OF_THEIR_OWN = {"cost/linear", "memory/bounded-by-residents"}
"""Clauses with engines of their own, which look at nothing that another clause speaks of."""


def test_implications_are_of_clauses_with_laws() -> None:
    for clause in CLAUSES.values():
        assert set(clause.implied_by) <= set(LAWS) - {clause.name}, clause.name


def passes_without(clause: str) -> None:
    name = {**ALONE, **TOGETHER}[clause]
    subject = resolve(subject_name(classes((*POLICIES, *FILTERS))[name]))
    others = to_drop(subject, clause)
    assert others is not None, f"{name} does not break {clause} first"
    if clause in TOGETHER:
        profile = CLAUSES[clause].profile
        assert others and all(CLAUSES[other].profile == profile for other in others), others
    else:
        assert set(others) <= set(CLAUSES[clause].implied_by), (name, others)


@pytest.mark.parametrize("clause", SOME)
def test_without_a_clause_a_wrong_policy_passes(clause: str) -> None:
    passes_without(clause)


@pytest.mark.deep
@pytest.mark.parametrize("clause", ALL)
def test_without_any_clause_a_wrong_policy_passes(clause: str) -> None:
    passes_without(clause)


@pytest.mark.parametrize("clause", [c.name for c in CLAUSES.values() if c.implied_by])
def test_whoever_breaks_an_implied_clause_breaks_what_implies_it(clause: str) -> None:
    away = frozenset(PROCESS_LAWS)
    for name, made in mutants().items():
        if made.breaks == clause:
            found = violated(resolve(subject_name(made)), away, SOME_SEARCH)
            assert clause in found and set(CLAUSES[clause].implied_by) <= set(found), name


def test_looking_away_changes_nothing_else() -> None:
    """Nothing is overlooked but what is dropped: a wrong policy fails by its clause as before."""
    away = frozenset(PROCESS_LAWS)
    for name in ("WipesCache", "TurnsAway", "RemovedUntilInserted", "GhostUntilInserted"):
        subject = resolve(subject_name(classes()[name]))
        breaks = classes()[name].breaks
        assert violated(subject, away, PROBES_ALONE)[0] == breaks
        # Another clause that is dropped saves nobody.
        assert breaks in violated(subject, away | {"touch/any-iterable"}, PROBES_ALONE)
