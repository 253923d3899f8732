"""The law of cost: what grows too fast is rejected, what does not passes, and why it is so."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_right_policies import RIGHT

from cachelaw.conformance import cost
from cachelaw.conformance.cost import CLAUSE, Cost, Meter, cost_of, counting_keys, growth
from cachelaw.conformance.finding import Tally
from cachelaw.conformance.mutants.zoo import cost as cost_zoo
from cachelaw.conformance.releases import UnreachableError, fetch
from cachelaw.conformance.subject import Subject, resolve
from cachelaw.conformance.trace import Trace
from cachelaw.conformance.unjudged import Measured
from cachelaw.reference.editions import EDITIONS, V033, Edition
from cachelaw.reference.protocol import Evict, StoreOffered, StoreSucceeds, Touch, objection

ZOO = Path(cost_zoo.__file__)
SOURCE = Path(__file__).with_name("right.py")

CLASSES = {
    name: made
    for name, made in vars(cost_zoo).items()
    if inspect.isclass(made) and made.__module__ == cost_zoo.__name__
}
WRONG = [name for name, made in CLASSES.items() if "breaks" in vars(made)]
PASSING = ["SkipsFromTheFront", "SortsAtEvict", "RebuildsNowAndThen"]


def judged(subject: Subject, tally: Tally | None = None) -> Measured:
    return cost.judge(subject, tally or Tally(Counter()))


@pytest.mark.parametrize("name", WRONG)
def test_what_grows_too_fast_is_rejected(name: str) -> None:
    subject = resolve(f"{ZOO}:{name}")
    measured = judged(subject)
    (finding,) = measured.findings
    assert (finding.clause, finding.how) == (CLAUSE, "cost")
    assert measured.excuse is measured.unclear is None
    # The trace is a run of the smallest capacity, and every event of it happens.
    assert finding.trace.capacity == cost.SIZES[0]
    assert cost_of(subject, finding.trace).spent > 0
    assert "times the chunks" in finding.expected and "times, from" in finding.actual


def test_each_wrong_policy_is_rejected_for_its_own_fault() -> None:
    shown = {
        "ScansAnewForEachVictim": "evict half of a full cache",
        "RemovesFromList": "touch all in one call",
        "SortsAtEachInsert": "touch all in one call",  # the first program that is not an eviction
        "RehashesForEachVictim": "evict half of a full cache",
        "ScansProtected": "evict a quarter past protected chunks",
        "ScansAtMark": "touch all in one call",
        "SearchesRecords": "fail all stores in two events",
        "WalksAllGhosts": "touch and store what was evicted",
        "LooksThroughAllSeen": "serve many short requests",
    }
    assert set(shown) == set(WRONG)
    for name, program in shown.items():
        (finding,) = judged(resolve(f"{ZOO}:{name}")).findings
        assert finding.expected.startswith(f"asked to {program} with"), name


@pytest.mark.parametrize("name", PASSING)
def test_what_does_not_grow_passes(name: str) -> None:
    tally = Tally(Counter())
    assert judged(resolve(f"{ZOO}:{name}"), tally) == Measured()
    assert tally.met[CLAUSE] > 10
    assert tally.calls > 10_000


@pytest.mark.parametrize("name", RIGHT)
def test_right_policies_pass(name: str) -> None:
    subject = resolve(f"{SOURCE}:{name}", edition=RIGHT[name].name)
    assert judged(subject) == Measured()


def test_a_logarithm_is_allowed_at_wide_sizes() -> None:
    subject = resolve(f"{ZOO}:SortsAtEvict")
    assert cost.judge(subject, Tally(Counter()), cost.WIDE_SIZES) == Measured()


def test_a_policy_that_converts_its_keys_cannot_be_judged() -> None:
    tally = Tally(Counter())
    assert judged(resolve(f"{ZOO}:Converts"), tally) == Measured(excuse=cost.NEVER_ASKED)
    assert tally.met[CLAUSE] == 0


def test_a_specification_is_excused_and_only_that() -> None:
    excused = Measured(excuse=cost.SPECIFICATION)
    assert judged(resolve(f"{ZOO}:Specification")) == excused
    assert judged(resolve("cachelaw.reference:ARC")) == excused
    # Without the declaration it is rejected.
    silent = replace(resolve(f"{ZOO}:Specification"), specification=False)
    assert [one.clause for one in judged(silent).findings] == [CLAUSE]


def test_a_policy_that_cannot_be_driven_is_left_open() -> None:
    measured = judged(resolve(f"{ZOO}:RaisesAtEvict"))
    assert measured.findings == ()
    assert measured.unclear == "evict raised RuntimeError, so that its cost could not be counted"


def test_the_same_is_counted_each_time() -> None:
    subject = resolve(f"{ZOO}:SortsAtEvict")
    trace = cost.PROGRAMS[3].trace(subject, 64)
    assert cost_of(subject, trace) == cost_of(subject, trace)


# --- What is counted -----------------------------------------------------------------------------


def test_keys_count_and_are_the_bytes_they_are_made_of() -> None:
    meter = Meter()
    key = counting_keys(meter)(b"abc")
    assert meter.count == 0
    asks: tuple[Callable[[], bool], ...] = (
        lambda: hash(key) == hash(b"abc"),
        lambda: key == b"abc",
        lambda: key != b"abd",
        lambda: key < b"abd",
        lambda: key <= b"abc",
        lambda: key > b"abb",
        lambda: key >= b"abc",
    )
    for ask in asks:
        before = meter.count
        assert ask()
        assert meter.count == before + 1
    assert isinstance(key, bytes) and key[:1] == b"a"


def test_only_what_the_policy_asks_for_is_counted() -> None:
    # Per key: `get`, insert, `get`, mark; and all are passed as missed and as seen. Fifo hashes a
    # key at each `get` and at the insert, and finds it by one comparison at the second `get`.
    subject = resolve(f"{SOURCE}:Fifo")
    keys = tuple(range(4))
    trace = Trace(V033, 4, (StoreOffered(keys, "u1"), StoreSucceeds(keys)))
    assert cost_of(subject, trace) == Cost(spent=4 * (1 + 1 + 2), work=4 * 6, calls=4 * 4 + 2)


def test_the_last_event_alone() -> None:
    subject = resolve(f"{ZOO}:SkipsFromTheFront")
    keys = tuple(range(8))
    filled = (StoreOffered(keys, "u1"), StoreSucceeds(keys))
    trace = Trace(V033, 8, (*filled, Evict(2, frozenset((0, 7)))))
    alone = cost_of(subject, trace, last_alone=True)
    assert alone.work == 2 + 2 * 2 + 6  # two passed, two evicted, six left
    assert alone.calls == 1
    # 0, 1 and 2 are looked for among the protected: three hashes and one comparison. 1 and 2 are
    # taken out of the table.
    assert 3 + 1 + 2 <= alone.spent <= 3 + 1 + 2 * 5
    assert cost_of(subject, trace).spent > alone.spent


def test_growth() -> None:
    linear = growth(64, Cost(640, 64, 1), 512, Cost(5120, 512, 1))
    assert linear == pytest.approx(6 / 9)
    assert growth(64, Cost(384, 64, 1), 512, Cost(4608, 512, 1)) == pytest.approx(1.0)
    assert growth(64, Cost(64 * 64, 64, 1), 512, Cost(512 * 512, 512, 1)) == pytest.approx(16 / 3)
    assert growth(64, Cost(0, 64, 1), 512, Cost(0, 512, 1)) == 0
    assert growth(64, Cost(0, 0, 1), 512, Cost(9, 0, 1)) == 0


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_programs_are_valid_and_do_what_they_say(edition: Edition) -> None:
    """Every event could be issued by a manager whose policy evicts the oldest."""
    subject = resolve("cachelaw.conformance.mutants.zoo.right:Fifo", edition=edition.name)
    left_out = []
    for program in (*cost.PROGRAMS, cost._mix(0)):
        trace = program.trace(subject, 16)
        run = cost._CostRun(subject, trace)
        for event in trace.events:
            if objection(trace.setting, run.state, event) is not None:
                left_out.append(program.name)
            run.live(event)
        if trace.events and program.name.startswith("evict"):
            assert len(run.state.chunks) < 16, program.name
    # There, what was evicted is stored, and whatever the policy kept is not.
    assert set(left_out) <= {"touch and store what was evicted"}
    names = [program.name for program in cost.PROGRAMS if program.trace(subject, 16).events]
    assert ("serve one long request" in names) == edition.has_request_hooks
    assert ("reset a full cache again and again" in names) == edition.has_clear


def test_touches_reach_every_chunk() -> None:
    subject = resolve(f"{SOURCE}:Fifo")
    for size in (*cost.SIZES, *cost.WIDE_SIZES):
        events = next(p for p in cost.PROGRAMS if p.name == "touch one after the other")
        touched = [
            event.keys for event in events.trace(subject, size).events if isinstance(event, Touch)
        ]
        assert {key for keys in touched for key in keys} == set(range(size))


# --- Releases ------------------------------------------------------------------------------------

VERSIONS = (
    *("0.19.1", "0.20.2", "0.22.1", "0.24.0", "0.26.0", "0.27.1"),
    *("0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0"),
)
QUADRATIC = ("0.19.1", "0.20.2", "0.22.1", "0.24.0", "0.26.0", "0.27.1")
"""Releases whose ARC starts its scan over for each victim (known bug B02)."""

SCRIPT = """
import json, sys
from collections import Counter
from cachelaw.conformance import cost, memory
from cachelaw.conformance.finding import Tally
from cachelaw.conformance.mutants.zoo import cost as cost_zoo
from cachelaw.conformance.subject import resolve

judge = {"cost": cost.judge, "memory": memory.judge}[sys.argv[1]]
said = {}
for policy in ("lru", "arc"):
    measured = judge(resolve(f"vllm=={sys.argv[2]}:{policy}"), Tally(Counter()))
    shown = [[one.clause, one.expected, one.actual] for one in measured.findings]
    said[policy] = [shown, measured.excuse, measured.unclear]
print(json.dumps(said))
"""


def said_of_release(law: str, version: str) -> Any:
    """Judge both policies of a release by a law, in a process of its own."""
    try:
        fetch(version)
    except UnreachableError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(f"vllm {version} cannot be fetched: {error}")
    command = [sys.executable, "-c", SCRIPT, law, version]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.interop
@pytest.mark.parametrize("version", VERSIONS)
def test_releases(version: str) -> None:
    said = said_of_release("cost", version)
    assert said["lru"] == [[], None, None]
    shown, excuse, unclear = said["arc"]
    assert excuse is unclear is None
    assert [clause for clause, _, _ in shown] == ([CLAUSE] if version in QUADRATIC else [])
    for _, expected, actual in shown:
        assert expected.startswith("asked to evict half of a full cache")
        assert actual == "those of the last event grow 59.9 times, from 2208 to 132352"
