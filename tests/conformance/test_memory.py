"""The law of memory: what keeps growing is rejected, what has a bound passes."""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.conformance import numpy_zoo
from tests.conformance.test_cost import VERSIONS, said_of_release
from tests.conformance.test_right_policies import RIGHT

from cachelaw.conformance import memory
from cachelaw.conformance.finding import Tally
from cachelaw.conformance.instance import Codec
from cachelaw.conformance.memory import ALLOWANCE, CLAUSE, PROGRAMS, ROUNDS, Watched, retained
from cachelaw.conformance.mutants.zoo import memory as memory_zoo
from cachelaw.conformance.mutants.zoo import subject_name
from cachelaw.conformance.subject import Subject, resolve
from cachelaw.conformance.trace import Trace
from cachelaw.conformance.unjudged import Measured, Unjudged
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import EDITIONS, V019, V024, V033, Edition
from cachelaw.reference.protocol import objection

ZOO = Path(memory_zoo.__file__)
SOURCE = Path(__file__).with_name("right.py")

CLASSES = {
    name: made
    for module in (memory_zoo, numpy_zoo)
    for name, made in vars(module).items()
    if inspect.isclass(made) and made.__module__ == module.__name__
}
WRONG = [name for name, made in CLASSES.items() if "breaks" in vars(made)]
PASSING = [
    "TidiesUp",
    "TidiesUpLate",
    "BoundedGhosts",
    "AllInAdvance",
    "HoldsRequestsWeakly",
    "HoldsRunningRequests",
]


def judged(subject: Subject, tally: Tally | None = None) -> Measured:
    return memory.judge(subject, tally or Tally(Counter()))


SHOWN = {
    "TouchLog": "touches",
    "LazyHeap": "loads",
    "GhostsOfFailures": "stores that fail",
    "KeepsRequests": "touches by requests that are over then",
    "EndlessGhosts": "stores and evictions",
    "MarksLog": "loads",
    "FinishedRequests": "loads by requests that end",
    "CountsStrangers": "touches of absent keys",
    "SeenAtLookup": "look-ups",
    "RefusalsKept": "evictions that must be refused",
    "KeepsWhatWasCleared": "resets",
    "CachedScores": "touches of absent keys",
    "DefaultArgument": "stores that fail",
    "GlobalLog": "stores that fail",
    "GrowingArray": "touches",
    "ClosureLog": "stores that fail",
}
"""The first program under which each wrong policy grows."""


def test_every_wrong_policy_has_its_program() -> None:
    assert set(SHOWN) == set(WRONG)


@pytest.mark.parametrize("name", SHOWN)
def test_what_keeps_growing_is_rejected(name: str) -> None:
    measured = judged(resolve(subject_name(CLASSES[name])))
    (finding,) = measured.findings
    assert (finding.clause, finding.how) == (CLAUSE, "memory")
    assert measured.excuse is measured.unclear is None
    assert finding.expected.startswith(f"{SHOWN[name]}, repeated over ")
    assert 0 < len(finding.trace.events) <= 12


@pytest.mark.parametrize("name", PASSING)
def test_what_has_a_bound_passes(name: str) -> None:
    tally = Tally(Counter())
    assert judged(resolve(subject_name(CLASSES[name])), tally) == Measured()
    assert tally.met[CLAUSE] == len(PROGRAMS)


def test_a_bound_that_a_short_run_does_not_reach() -> None:
    """It takes the longer run to tell the late tidier from one who never tidies up."""
    program = PROGRAMS[0]
    late = resolve(f"{ZOO}:TidiesUpLate")
    assert memory.watch(late, program).grows
    first, second = memory.watch(late, program, memory.CONFIRMED_BY * ROUNDS).halves
    assert second <= memory.LEAST_RATIO * first


@pytest.mark.parametrize("name", RIGHT)
def test_right_policies_pass(name: str) -> None:
    subject = resolve(f"{SOURCE}:{name}", edition=RIGHT[name].name)
    assert judged(subject) == Measured()


@pytest.mark.parametrize("edition", [V019, V024, V033], ids=str)
@pytest.mark.parametrize("policy", ["LRU", "ARC"])
def test_the_reference_passes(edition: Edition, policy: str) -> None:
    tally = Tally(Counter())
    subject = resolve(f"{edition.module}:{policy}", edition=edition.name)
    assert judged(subject, tally) == Measured()
    assert tally.met[CLAUSE] == sum(program.since(edition) for program in PROGRAMS)


def test_chunks_out_of_sight_cannot_be_judged() -> None:
    assert judged(resolve(f"{ZOO}:OutOfSight")) == Measured(excuse=memory.NOT_REACHED)


def test_a_policy_that_cannot_be_driven_is_left_open() -> None:
    measured = judged(resolve(f"{ZOO}:RaisesAtEvict"))
    assert measured.findings == ()
    assert measured.unclear == "evict raised RuntimeError, so that its memory could not be watched"


# --- What is seen --------------------------------------------------------------------------------


def size(policy: Any) -> int:
    return retained(policy)[0]


def test_what_is_reached_is_counted_once() -> None:
    big = bytes(10_000)
    once, twice = SimpleNamespace(a=big), SimpleNamespace(a=big, b=[big, big])
    assert size(once) > 10_000
    assert size(twice) < size(once) + 1_000


def test_contexts_count_little_and_hold_nothing() -> None:
    context = ReqContext("r1")
    context.set_state(bytes(10_000))
    assert size([context]) - size([]) < 200


def test_modules_classes_and_foreign_functions_are_not_entered() -> None:
    assert size([inspect, Path, inspect.getsource]) < 1_000


def test_arrays_count_by_their_buffers() -> None:
    array = np.zeros(10_000)
    assert size([array]) > 80_000
    assert size([array[:10]]) > 80_000  # the view keeps all of it alive
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(10_000, dtype=torch.float64)
    assert size([tensor]) > 80_000
    assert size([tensor[:10]]) > 80_000


def test_a_broken_sizeof_is_survived() -> None:
    class Odd:
        def __sizeof__(self) -> int:
            raise RuntimeError

    assert size(Odd()) > 0


def test_a_constant_is_allowed_and_no_more() -> None:
    def watched(*sizes: int) -> Watched:
        return Watched(sizes, True, 1, 1)

    assert not watched(100, 500, 500 + ALLOWANCE, 100).grows
    assert watched(100, 500, 501 + ALLOWANCE, 100).grows
    assert watched(100, 500, 501 + ALLOWANCE, 100).halves == (500, 501 + ALLOWANCE)


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_programs_are_valid_and_keep_their_rhythm(edition: Edition) -> None:
    """Every event could be issued, in the first round and in the hundredth."""
    subject = resolve("cachelaw.conformance.mutants.zoo.right:Fifo", edition=edition.name)
    for program in PROGRAMS:
        if not program.since(edition):
            continue
        trace = Trace(edition, memory.CAPACITY, ())
        run = Unjudged(subject, trace, Codec(trace.setting.group_of, fresh=True), CLAUSE)
        for event in program.before:
            assert run.live(event), program.name
        for at in range(100):
            for event in program.round(at):
                ends = type(event).__name__ == "RequestEnds"
                if ends and not edition.has_request_hooks:
                    continue
                valid = objection(run.setting, run.state, event) is None
                # What came back may still be there, and then is not stored again.
                assert valid or program.name == "stores of keys that come back", program.name
                run.live(event)
            run.forget(f"r{at}")
        assert len(run.state.requests) <= 3, program.name


# --- Releases ------------------------------------------------------------------------------------


@pytest.mark.interop
@pytest.mark.parametrize("version", VERSIONS)
def test_releases(version: str) -> None:
    """No release breaks it as managers drive it; B14 (b) takes an insert that no manager makes."""
    passed: list[Any] = [[], None, None]
    assert said_of_release("memory", version) == {"lru": passed, "arc": passed}
