"""Reproductions fail on the subject that broke a clause and pass on what it was made from."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.reports.made import MEASURED

from cachelaw.conformance.certify import Budget, certify
from cachelaw.conformance.filters.script import maker
from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.mutants.zoo import FILTERS, classes, mutants, subject_name
from cachelaw.conformance.processes import PROCESS_LAWS, judge
from cachelaw.conformance.replay import rows
from cachelaw.conformance.reproduction import (
    ANOTHER_COURSE,
    FAILS,
    NOT_RUN,
    PASSES,
    outcome,
    reproduction,
    run_all,
    script_of,
    tried,
)
from cachelaw.conformance.script import assemble, place_of
from cachelaw.conformance.subject import Subject, resolve
from cachelaw.conformance.trace import Event, Trace
from cachelaw.reference.editions import EDITIONS
from cachelaw.reference.protocol import Evict, LoadStarts, StoreOffered, StoreSucceeds
from cachelaw.specs.registry import CLAUSES

POLICIES = {
    name: made
    for name, made in mutants().items()
    if made.breaks not in PROCESS_LAWS and made.breaks.partition("/")[0] not in ("cost", "memory")
}
WRONG_FILTERS = {
    f"filter {name}": made for name, made in classes(FILTERS).items() if "breaks" in vars(made)
}
CLASSES = POLICIES | WRONG_FILTERS

ONE_A_CLAUSE = list({made.breaks: name for name, made in reversed(POLICIES.items())}.values())
"""The first mutant of each clause."""

PROBES_ALONE = Budget("probes alone", programs=0, events=0, twins=0)
SOME_SEARCH = Budget("some search", programs=12, events=60, twins=1)


@cache
def first_finding(name: str) -> tuple[Subject, Finding[Any]]:
    """Return a subject of the zoo and the first violation that is found in it."""
    made = CLASSES[name]
    budget = SOME_SEARCH if getattr(made, "needs_search", False) else PROBES_ALONE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cachelaw.conformance.processes.judge", lambda *arguments: ())
        patch.setattr(
            "cachelaw.conformance.shrink.shortest", lambda subject, finding, experiment: finding
        )
        report = certify(resolve(subject_name(made)), budget, seed=1, without=MEASURED)
    found = report.violations[0].finding
    assert found is not None
    return report.subject, found


def origins(name: str) -> Iterator[type]:
    """Yield the right classes that a wrong policy derives from, the closest first."""
    for base in POLICIES[name].__mro__[1:]:
        right = not any("breaks" in vars(above) for above in base.__mro__)
        if right and hasattr(base, "evict") and not getattr(base, "__abstractmethods__", None):
            yield base


@pytest.mark.parametrize("name", ONE_A_CLAUSE)
def test_it_fails_on_the_mutant_and_passes_on_its_origin(name: str) -> None:
    subject, finding = first_finding(name)
    script = script_of(subject, finding)
    assert tried(script, subject.build) == FAILS
    origin = next(origins(name))
    if finding.clause == "arc/no-fallback-to-t1":
        # What the mutant does became right in a later edition, and it derives from that.
        assert tried(script, origin) == FAILS
    else:
        assert tried(script, origin) == PASSES


@pytest.mark.parametrize("name", WRONG_FILTERS)
def test_it_fails_on_the_wrong_filter_and_passes_on_a_right_one(name: str) -> None:
    subject, finding = first_finding(name)
    script = script_of(subject, finding)
    assert tried(script, maker(subject)) == FAILS
    form = "RightV021" if "FilterV021" in repr(subject.build) else "RightV020"
    if subject.edition == EDITIONS[0]:
        form = "RightV019"
    right = resolve(subject_name(classes(FILTERS)[form]))
    assert tried(script, maker(right)) == PASSES


def test_every_kind_of_finding_is_among_them() -> None:
    kinds = {first_finding(name)[1].how for name in ONE_A_CLAUSE}
    assert kinds == {"lockstep", "twin"}


@pytest.mark.parametrize(
    "name",
    [
        *("WipesCache", "MostRecentFirst", "SharedTable", "WalksTwice", "TouchNeedsResidents"),
        *("EmptiesProtected", "IdentityTable", "ClearKeepsCounts", "PinsForItself"),
        *(
            "GhostStays",
            "filter SkipsEmptyOffers",
            "filter AcceptsEmptyTracker",
            "filter ForgetsTheContextOfATouch",
        ),
    ],
)
def test_the_file_by_itself_fails_in_a_process_of_its_own(name: str) -> None:
    text = reproduction(*first_finding(name))["text"]
    assert outcome(text) == FAILS


@pytest.mark.parametrize("name", ["RandomVictim", "HashOrder"])
def test_it_compares_processes(name: str) -> None:
    subject = resolve(subject_name(mutants()[name]), profile="contract")
    finding = found_by_processes(subject)
    text = reproduction(subject, finding)["text"]
    assert outcome(text) == FAILS
    right = text.replace(
        f"Subject = {name}", "from cachelaw.conformance.mutants.zoo.right import *"
    )
    assert right != text
    assert outcome(right.replace("import *", "import Fifo as Subject")) == PASSES


def found_by_processes(subject: Subject) -> Finding:
    events = (StoreOffered((1, 2, 3, 4), "u1"), StoreSucceeds((1, 2, 3, 4)))
    return next(judge(subject, [Trace(subject.edition, 4, events)], Tally(Counter())))


HOSTILE = "tests.conformance.hostile"


@pytest.mark.parametrize("name", ["Segfaults", "Exits", "Hangs", "Bombs"])
def test_it_ends_a_process_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachelaw.conformance.policy_script.PATIENCE", 2)
    subject = resolve(f"{HOSTILE}:{name}", profile="contract")
    stored = (StoreOffered((1, 2), "u1"), StoreSucceeds((1, 2)))
    trace = Trace(subject.edition, 4, (*stored, Evict(1), Evict(2), Evict(1)))
    says = f"grew beyond {2048} MiB of memory" if name == "Bombs" else "came to its end"
    finding = Finding("call/valid-call-returns", trace, "the call returns", says, "death")
    text = reproduction(subject, finding)["text"]
    assert "went(policy.evict(1, set()), [1])" in text
    assert ("RLIMIT_DATA" in text) == (name == "Bombs")
    assert outcome(text) == FAILS
    if name == "Exits":
        right = text.replace("import Exits", "import Fifo").replace("= Exits", "= Fifo")
        assert outcome(right) == PASSES
        another = right.replace("set()), [1])", "set()), [2])")
        assert outcome(another) == ANOTHER_COURSE


@pytest.mark.parametrize(
    ("last", "calls"),
    [
        (Evict(2, frozenset({1})), ("evict(2, {1})",)),
        (
            StoreOffered((5, 6), "u2"),
            ("on_store_miss([5, 6])", "on_request_access([5, 6])", "evict(1, {5, 6})"),
        ),
        (LoadStarts((2,), "u2"), ("mark_non_evictable(2)", "ref_cnt of 2 = 1")),
    ],
)
def test_a_death_shows_the_calls_up_to_the_first_answer(
    last: Event, calls: tuple[str, ...]
) -> None:
    subject = resolve(f"{HOSTILE}:Segfaults", profile="contract")
    stored = (StoreOffered((1, 2, 3), "u1"), StoreSucceeds((1, 2, 3)))
    trace = Trace(subject.edition, 4, (*stored, last))
    finding = Finding("call/valid-call-returns", trace, "the call returns", "it ended", "death")
    shown = rows(subject, finding)[-1]
    assert shown.calls[: len(calls)] == calls
    assert shown.actual == "it ended"
    assert sum(call.startswith("evict") for call in shown.calls) <= 1
    assert not any(call.startswith("insert") for call in shown.calls)


SELF_CONTAINED = ("WipesCache", "SharedTable", "filter SkipsEmptyOffers", "GhostStays")


@pytest.mark.parametrize("name", SELF_CONTAINED)
def test_it_needs_the_subject_and_the_standard_library_alone(name: str, tmp_path: Path) -> None:
    subject, finding = first_finding(name)
    script = script_of(subject, finding)
    place = subject.name.partition(":")[0]
    lines = [line for line in script.text.splitlines() if "cachelaw" in line and line[0] != "#"]
    assert lines == [f"from {place} import {name.removeprefix('filter ')}"]
    assert all(len(line) <= 120 for line in script.text.splitlines())


def written(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(source)
    return path


MINE = """\
class Mine:
    def __init__(self, cache_capacity, keep=0, name=""):
        self.chunks, self.keep = {}, keep
        assert name in ("", "two words")
        print("made")

    def get(self, key):
        return self.chunks.get(key)

    def insert(self, key, chunk):
        self.chunks[key] = chunk

    def remove(self, key):
        del self.chunks[key]

    def touch(self, keys):
        pass

    def evict(self, n, protected):
        idle = [k for k, c in self.chunks.items() if c.ref_cnt == 0 and k not in protected]
        if len(idle) < n + self.keep:
            return None
        return [(k, self.chunks.pop(k)) for k in idle[:n]]
"""


def test_parameters_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, MINE)
    subject = resolve("mine.py:Mine", parameters={"keep": 1, "name": "two words"})
    finding = certify(subject, PROBES_ALONE, seed=1, without=MEASURED).violations[0].finding
    assert finding is not None and subject.edition.name == "v0.20"
    text = reproduction(subject, finding)["text"]
    assert "Subject(cache_capacity=capacity, keep=1, name='two words')" in text
    assert "class BlockStatus" in text
    assert "the folder that cachelaw was run in" in text
    assert outcome(text) == FAILS
    assert outcome(text.replace("keep=1", "keep=0")) == PASSES


def test_a_policy_that_evicts_others_is_not_judged() -> None:
    subject, finding = first_finding("TouchMakesResident")
    while "went(" not in script_of(subject, finding).text:
        name = next(n for n in POLICIES if "went(" in script_of(*first_finding(n)).text)
        subject, finding = first_finding(name)

    def stubborn(capacity: int) -> Any:
        made = subject.build(capacity)
        evict = made.evict
        made.evict = lambda n, protected: evict(n, protected) and None
        return made

    assert tried(script_of(subject, finding), stubborn) == ANOTHER_COURSE


@pytest.mark.interop
def test_one_of_a_release_fails_there_and_passes_in_the_next() -> None:
    program = (
        "import sys\n"
        "from cachelaw.conformance import processes\n"
        "processes.judge = lambda *arguments: ()\n"
        "from cachelaw.conformance.certify import Budget, certify\n"
        "from cachelaw.conformance.reproduction import reproduction\n"
        "from cachelaw.conformance.subject import resolve\n"
        "subject = resolve('vllm==0.29.0:arc')\n"
        f"without = frozenset({sorted(MEASURED)})\n"
        "(violation,) = certify(subject, Budget('', 0, 0, 0), 1, without=without).violations\n"
        "sys.stdout.write(reproduction(subject, violation.finding)['text'])\n"
    )
    # A process holds one release, and this one may hold another.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "It needs the subject, cachelaw to supply vllm 0.29.0 and the standard" in done.stdout
    assert outcome(done.stdout) == FAILS
    assert outcome(done.stdout.replace("0.29.0", "0.30.0")) == PASSES


@pytest.mark.interop
def test_a_release_as_host_is_loaded_before_the_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = place_of("mine.py:Mine", "vllm==0.30.0", {}, by_keyword=True)
    assert place is not None
    written(
        tmp_path,
        "from vllm.v1.kv_offload.cpu.policies.lru import LRUCachePolicy\n"
        "class Mine(LRUCachePolicy):\n"
        "    def evict(self, n, protected):\n"
        "        return None\n",
    )
    body = ["def make(capacity):\n    return Subject(cache_capacity=capacity)\n"]
    body.append("def {test}():\n    assert make(2).evict(0, set()) == [], f'{CLAUSE}: no'\n")
    clause = CLAUSES["evict/zero-is-empty"]
    text = assemble(clause, "mine.py:Mine", "v0.30", place, body).text
    assert outcome(text) == FAILS


# --- What comes of running one -------------------------------------------------------------------

HEAD = 'CLAUSE = "evict/distinct"\n\n\ndef test_it():\n'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("raise AssertionError(f'{CLAUSE}: no')", FAILS),
        ("pass", PASSES),
        ("import unittest; raise unittest.SkipTest('elsewhere')", ANOTHER_COURSE),
        ("raise AssertionError('something else')", "could not be run: AssertionError: something"),
        ("raise ValueError('bad')", "could not be run: ValueError: bad"),
        ("import no_such_module", "could not be run: ModuleNotFoundError: No module named"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died of signal 9"),
        ("import time; time.sleep(60)", "did not end within 1 s"),
    ],
)
@pytest.mark.parametrize("runner", ["pytest", "python"])
def test_outcomes(body: str, says: str, runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if runner == "python":
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    tail = '\n\n\nif __name__ == "__main__":\n    test_it()\n'
    seconds = 1 if "sleep" in body else 60
    assert outcome(f"{HEAD}    {body}{tail}", seconds).startswith(says)


def test_all_of_a_report_are_run_once() -> None:
    def law(outcome: str, text: str | None) -> dict[str, Any]:
        return {"counterexample": {"reproduction": {"text": text, "outcome": outcome}}}

    data = {
        "laws": [
            law(NOT_RUN, f"{HEAD}    pass\n"),
            law(NOT_RUN, f"{HEAD}    assert False, CLAUSE + ': no'\n"),
            law("none: a reason", None),
            law(FAILS, "not run again"),
            {},
        ]
    }
    run_all(data)
    outcomes = [one["counterexample"]["reproduction"]["outcome"] for one in data["laws"][:4]]
    assert outcomes == [PASSES, FAILS, "none: a reason", FAILS]


# --- Where there is none -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("cost", "none: a cost is counted"),
        ("memory", "none: a size is measured"),
        ("magic", "none: none is written for what is found by magic"),
    ],
)
def test_where_there_is_none_the_reason_is_given(how: str, says: str) -> None:
    subject, finding = first_finding("WipesCache")
    made = reproduction(subject, replace(finding, how=how))
    assert made["text"] is None
    assert made["outcome"].startswith(says)


def test_a_finding_that_is_not_there_has_none() -> None:
    _, finding = first_finding("WipesCache")
    right = resolve(subject_name(classes()["Fifo"]))
    made = reproduction(right, finding)
    assert made == {
        "text": None,
        "outcome": "none: the calls that break the clause could not be recorded",
    }


def test_a_command_has_none() -> None:
    subject, finding = first_finding("WipesCache")
    made = reproduction(replace(subject, name="exec:./policy", wanted=None), finding)
    assert made == {"text": None, "outcome": "none: the subject is a command, no Python class"}
