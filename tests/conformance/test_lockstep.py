"""What lockstep runs see that they could miss: each wrong policy here was missed by something less.

The classes are subjects, found by the suite in this very file.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from benchmarks import lockstep as benchmark

from cachelaw.conformance.finding import Finding, JudgedRun, Tally, lockstep_experiment
from cachelaw.conformance.generate import Program
from cachelaw.conformance.lockstep import DIVERGED, Lockstep
from cachelaw.conformance.probes import (
    Events,
    contract_probes,
    done,
    evicted,
    lru_probes,
    offered,
    pinned,
    stored,
    stored_singly,
    touched,
    unpinned,
)
from cachelaw.conformance.shrink import Shrinker
from cachelaw.conformance.subject import Subject, resolve
from cachelaw.conformance.trace import Event, Trace, describe, keys_of
from cachelaw.reference import lru, v022, v024, v033
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import EDITIONS, V022, V031, V033, Edition
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.policy import Victims
from cachelaw.reference.protocol import LoadStarts, StoreOffered, Touch, objection, perform

HERE = Path(__file__)


def by_probes(subject: Subject, up_to: int = 1000) -> list[Finding]:
    """Return what the probes find, those of capacity `up_to` or less."""
    edition = subject.edition
    probes = [*contract_probes(edition), *lru_probes(edition)]
    return [
        finding
        for probe in probes
        if probe.capacity <= up_to
        for finding in JudgedRun(subject, probe.trace(edition), Tally(Counter())).live_all()
    ]


def by_programs(subject: Subject, capacity: int) -> Finding:
    """Return the first thing that random programs find, made short."""
    for seed in range(20):
        run = JudgedRun(subject, Trace(subject.edition, capacity, ()), Tally(Counter()))
        program = Program(random.Random(seed), run.lockstep.setting, keys=2 * capacity + 2)
        for _ in range(150):
            answers = run.live(program.next(run.lockstep.state))
            if answers is None:
                return Shrinker(lockstep_experiment(subject), run.found[0]).reduce()
            for victims in answers:
                program.saw(victims)
    raise AssertionError("nothing was found")


# --- Transfers are no uses -----------------------------------------------------------------------


class HeadFirstInFives(v022.LRU):
    """Takes batches of five to seven keys head first."""

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        batch = list(keys)
        super().touch(batch[::-1] if 5 <= len(batch) <= 7 else batch)


TRANSFERS: dict[str, tuple[Events, bool]] = {
    "a batch that ends in the order of its keys": ((*stored(1, 2, 3), *evicted(1)), False),
    "a batch of which all is evicted": ((*offered(1, 2), *done(2, 1), *evicted(2, 3)), True),
    "stores that overtake each other": (
        (*offered(1), *offered(2), *done(2), *done(1), *evicted(1)),
        True,
    ),
    "a load": ((*stored_singly(1, 2), *pinned(1), *unpinned(1), *evicted(1)), True),
    "a load of the newest": ((*stored_singly(1, 2), *pinned(2), *unpinned(2), *evicted(1)), False),
    "a load before a use": (
        (*stored_singly(1, 2), *pinned(1), *unpinned(1), *touched(1, 2), *evicted(1)),
        False,
    ),
    "a refused eviction": ((*offered(1), *offered(2), *done(2), *done(1), *evicted(3)), False),
}


@pytest.mark.parametrize("edition", [V022, V031, V033], ids=str)
@pytest.mark.parametrize("case", TRANSFERS)
def test_transfers_are_put_to_the_test_where_they_would_decide(case: str, edition: Edition) -> None:
    events, would_decide = TRANSFERS[case]
    subject = resolve(f"{edition.module}:LRU", edition=edition.name)
    run = Lockstep(subject, Trace(edition, 3, events).setting, "lru")
    for event in events:
        run.step(event)
    assert (run.met["lru/transfer-is-no-use"] > 0) is would_decide


def test_a_divergence_is_not_blamed_on_transfers_that_decide_nothing() -> None:
    subject = resolve(f"{HERE}:HeadFirstInFives")
    assert by_probes(subject) == []
    batch = (1, 2, 3, 4, 5)
    trace = Trace(subject.edition, 5, (*stored(*batch), *touched(*batch), *evicted(1)))
    blamed = {
        clause: lockstep_experiment(subject, clause)(trace)[0].clause
        for clause in ("lru/batch-tail-first", "lru/transfer-is-no-use")
    }
    assert blamed == {
        "lru/batch-tail-first": "lru/batch-tail-first",
        "lru/transfer-is-no-use": DIVERGED,
    }


# --- Empty batches -------------------------------------------------------------------------------


class EmptyTouchRenews(v033.LRU):
    """Takes a touch of nothing for a touch of the chunk that would leave next."""

    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        batch = list(keys)
        if not batch and len(self.state.entries) > 1:
            batch = [self.state.entries[0][1]]
        self.state = lru.ranked_touch(self.state, batch)


def test_an_empty_touch_with_much_resident_is_tried() -> None:
    subject = resolve(f"{HERE}:EmptyTouchRenews")
    assert by_probes(subject) == []
    finding = by_programs(subject, capacity=3)
    assert len(finding.trace.events) <= 5
    assert Touch in {type(e) for e in finding.trace.events if not tuple(keys_of(e))}
    assert "touches nothing" in " ".join(map(describe, finding.trace.events))


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_programs_issue_what_a_manager_could_and_leave_nothing_out(edition: Edition) -> None:
    made: Counter[tuple[type, bool]] = Counter()
    for seed in range(12):
        rng = random.Random(seed)
        setting = Trace(edition, rng.choice((1, 2, 3, 5, 8)), ()).setting
        program = Program(rng, setting, keys=3 * setting.capacity)
        run = Lockstep(resolve(f"{edition.module}:LRU", edition=edition.name), setting)
        for _ in range(400):
            event = program.next(run.state)
            assert objection(setting, run.state, event) is None
            made[type(event), bool(tuple(keys_of(event)))] += 1
            for victims in run.step(event):
                program.saw(victims)
    for kind in (Touch, StoreOffered, LoadStarts):
        assert 0 < made[kind, False] < made[kind, True]
    usual = {kind.__name__ for kind, _ in made}
    assert ("RequestEnds" in usual) is edition.has_request_hooks
    assert ("Reset" in usual) is edition.has_clear
    assert usual >= {"Evict", "Lookup", "LoadEnds", "StoreSucceeds", "StoreFails"}


# --- Large caches --------------------------------------------------------------------------------


class ScansAHundred(v024.LRU):
    """Gives up after the hundred oldest chunks of its order."""

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        found = [key for key in self.state.idle[:100] if key not in protected]
        return super().evict(n, protected) if len(found) >= min(n, 1) else None


def test_a_limit_of_the_scan_shows() -> None:
    subject = resolve(f"{HERE}:ScansAHundred")
    assert by_probes(subject, up_to=40) == []
    assert "evict/none-only-when-short" in {finding.clause for finding in by_probes(subject)}


# --- Whose load, whose context -------------------------------------------------------------------


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_a_load_that_is_not_recorded_is_nobodys(edition: Edition) -> None:
    setting = Trace(edition, 2, ()).setting
    run = Lockstep(resolve(f"{edition.module}:LRU", edition=edition.name), setting)
    for event in stored(1, by="u1"):
        run.step(event)
    books = run.state.requests
    load: Event = LoadStarts((1,), "u8", recorded=False)
    told = [argument for call in perform(setting, run.state, load) for argument in call.arguments]
    assert "u8" not in told
    run.step(load)
    assert run.state.requests == books and "u8" not in books


@pytest.mark.parametrize(
    "subject",
    ["cachelaw.reference.v033:LRU", pytest.param("vllm==0.33.0:lru", marks=pytest.mark.interop)],
)
@pytest.mark.parametrize("shared", [False, True])
def test_two_caches_that_share_a_context_are_not_kept_apart_by_v033_itself(
    subject: str, shared: bool
) -> None:
    """Why `instances/share-nothing` does not ask for it: see decisions.md."""
    build: Any = resolve(subject).build
    one, other = build(4), build(4)
    context = ReqContext("r1")
    keys = [OffloadKey(bytes([number]) * 36) for number in range(3)]
    for number, key in enumerate(keys):
        context.set_offload_key_position(key, 16 * (number + 1))
    for number, key in enumerate(keys[:2]):
        chunk = ChunkStatus(number)
        one.insert(key, chunk, context)
        chunk.ref_cnt = 0
        one.mark_evictable(key)
        if shared:
            other.insert(keys[2], ChunkStatus(0), context)
            other.remove(keys[2])
    # The tail of the prefix leaves first, unless the request has lost its number.
    ((victim, _),) = one.evict(1, set())
    assert victim == keys[0 if shared else 1]


# --- The benchmark -------------------------------------------------------------------------------


def test_the_benchmark_counts_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "PROGRAMS", 1)
    monkeypatch.setattr(benchmark, "EVENTS", 60)
    subject = resolve("cachelaw.reference.v024:LRU")
    work, watched = benchmark.count(subject)
    methods = Counter(call.method for calls in watched for call in calls)
    assert work.steps == methods.total() and work.calls == work.steps - methods["set_ref_cnt"]
    assert work.all_calls > work.calls > work.events > 60
    benchmark.bare(subject, watched)
