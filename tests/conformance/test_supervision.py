"""Subjects in processes of their own: whatever a subject does, a clean report comes of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import cli, flight
from cachelaw.conformance.certify import BUDGETS, Budget, certify
from cachelaw.conformance.course import Course
from cachelaw.conformance.filters.trace import FilterEvent, FilterTrace
from cachelaw.conformance.subject import Unusable, Wanted, resolve
from cachelaw.conformance.supervisor import Limits, carry_out
from cachelaw.conformance.trace import EVENT_KINDS, Trace, trace_from_json
from cachelaw.conformance.trial import certified, replayed
from cachelaw.conformance.worker import Reporter
from cachelaw.reference.editions import V019, V033
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
)

HOSTILE = "tests.conformance.hostile"
RIGHT = "tests.conformance.right"
STRICT = Limits(seconds=2, mebibytes=500)


def tried(name: str, limits: Limits = STRICT) -> dict[str, Any]:
    return certified(Wanted(f"{HOSTILE}:{name}"), BUDGETS["quick"], 1, limits)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Crashes", "was ended by signal 6 (SIGABRT)"),
        ("Segfaults", "was ended by signal 11 (SIGSEGV)"),
        ("Exits", "exited with status 0"),
        ("Hangs", "gave no answer for 2 seconds"),
        ("Bombs", "grew beyond 500 MiB of memory"),
        ("TakesSignals", "gave no answer for 2 seconds"),
        ("Babbles", "wrote into the file over which the suite reports"),
        ("ClosesAll", "closed the file over which the suite reports"),
    ],
)
def test_the_end_of_the_process_is_a_violation_with_a_trace(name: str, says: str) -> None:
    data = tried(name)
    assert data["violations"] == ["call/valid-call-returns"]
    law = next(law for law in data["laws"] if law["verdict"] == "violated")
    shown = law["counterexample"]
    assert shown["found_by"] == "death"
    assert shown["actual"] == f"the subject's process {says}"
    assert len(shown["rows"]) == len(shown["trace"]["events"])
    assert len(shown["rows"]) <= 6
    assert data["deaths"][0]["again"]
    # What was not run is open, and nothing else is called broken.
    assert {law["verdict"] for law in data["laws"]} <= {
        "violated",
        "undetermined",
        "not applicable",
    }


def test_a_full_disk_is_no_fault_of_the_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ended(Exception):
        pass

    def end(status: int) -> None:
        raise Ended

    record = tmp_path / "flight"
    flight.make(record)
    full = os.open("/dev/full", os.O_WRONLY)
    reporter = Reporter(full)
    with monkeypatch.context() as patch:
        patch.setattr(flight, "recorder", flight.Recorder(record, reporter.meddled))
        patch.setattr(os, "_exit", end)
        with pytest.raises(Ended):
            reporter.say({"announce": "something"})
    os.close(full)
    assert flight.why_ended(record) == flight.NO_ROOM

    # The parent of such a child says so in a line, and nothing of the subject.
    monkeypatch.setattr(flight, "why_ended", lambda path: flight.NO_ROOM)
    with pytest.raises(OSError, match="No space left"):
        tried("Exits")
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(Ended):
        cli.main(["certify", f"{HOSTILE}:Exits", "--budget", "quick"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "no space is left in " in line and line.endswith("TMPDIR names another folder")


def test_the_trace_of_a_death_ends_where_it_strikes() -> None:
    # It strikes at the third eviction: no trace with fewer can end in it.
    data = tried("Crashes")
    law = next(law for law in data["laws"] if law["verdict"] == "violated")
    trace = trace_from_json(law["counterexample"]["trace"])
    assert sum(isinstance(event, Evict) for event in trace.events) <= 3
    job = {
        "wanted": Wanted(f"{HOSTILE}:Crashes").as_json(),
        "clause": "call/valid-call-returns",
        "trace": law["counterexample"]["trace"],
        "found_by": "death",
    }
    assert replayed(job, STRICT)["outcome"] == "fails"
    job["wanted"] = Wanted(f"{RIGHT}:Fifo").as_json()
    assert replayed(job, STRICT)["outcome"] == "fixed"


def test_what_a_subject_prints_reaches_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    data = tried("Spams")
    assert data["verdict"] == "holds"
    assert data["printed"]["bytes"] > 1_000_000
    assert "looking" in data["printed"]["start"]
    captured = capfd.readouterr()
    assert "looking" not in captured.out + captured.err


def test_a_thread_left_behind_keeps_nobody_waiting() -> None:
    assert tried("LeavesThread")["verdict"] == "holds"


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("OddAnswer", "evict/list-of-pairs"),
        ("OddVictims", "evict/list-of-pairs"),
        ("OddChunk", "get/same-object"),
    ],
)
def test_answers_that_fight_back_are_violations(name: str, clause: str) -> None:
    assert clause in tried(name)["violations"]


def test_an_end_while_loading_is_no_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["certify", f"{HOSTILE}:LeavesAtLoading"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("its process exited with status 7 while it was loaded")


def test_limits_are_adjustable_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    hang = ["certify", f"{HOSTILE}:Hangs", "--budget", "quick", "--time-limit", "1.5"]
    assert cli.main(hang) == 1
    assert "gave no answer for 1.5 seconds" in capsys.readouterr().out.replace("\n", " ")
    for limit in ("0", "-1", "inf", "nan", "much"):
        with pytest.raises(SystemExit) as caught:
            cli.main(["certify", f"{RIGHT}:Fifo", "--memory-limit", limit])
        assert caught.value.code == 2


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    source = tmp_path / "forks.py"
    source.write_text(
        "import pathlib, subprocess, sys\n"
        "from tests.conformance.right import Fifo\n"
        "class Forks(Fifo):\n"
        "    def __init__(self, cache_capacity):\n"
        "        super().__init__(cache_capacity)\n"
        "        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"        with open({str(tmp_path / 'pids')!r}, 'a') as file:\n"
        "            print(child.pid, file=file)\n"
    )
    wanted = Wanted(f"{source}:Forks")
    outcome = carry_out({"job": "hosts", "wanted": wanted.as_json()}, STRICT, lambda message: None)
    assert outcome.death is None
    pids = (tmp_path / "pids").read_text().split()
    assert pids
    deadline = time.monotonic() + 60  # until the system has done as it was told
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_runs, pids))


def _runs(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_our_own_faults_are_not_the_subjects() -> None:
    job: dict[str, Any] = {"job": "certify", "budget": "none such", "course": None, "skip": 0}
    job |= {"cut": "", "deaths": [], "seed": 1, "wanted": Wanted(f"{RIGHT}:Fifo").as_json()}
    heard: list[dict[str, Any]] = []
    carry_out(job, STRICT, heard.append)
    assert "KeyError: 'none such'" in heard[-1]["bug"]


def test_subjects_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="there is no file"):
        certified(Wanted(str(tmp_path / "none.py:Policy")), BUDGETS["quick"], 1, STRICT)


# --- The course of a run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [f"{RIGHT}:Fifo", "cachelaw.conformance.mutants.zoo.answers:WipesCache"]
)
def test_a_run_taken_up_again_comes_to_the_same(name: str) -> None:
    subject = resolve(name)
    budget = Budget("some", 20, 60, 2)
    courses: list[bytes] = []
    whole = certify(subject, budget, 3, reached=lambda course: courses.append(course.as_bytes()))
    assert len(courses) > 40
    for at in (0, len(courses) // 3, len(courses) - 1):
        again = certify(subject, budget, 3, course=Course.from_bytes(courses[at]))
        assert [(r.verdict, r.met, r.finding) for r in again.results] == [
            (r.verdict, r.met, r.finding) for r in whole.results
        ]


# --- The flight recorder -------------------------------------------------------------------------

EVENTS = (
    Lookup(3),
    StoreOffered((1, 2), "r1"),
    StoreSucceeds((1,)),
    StoreFails((2,)),
    LoadStarts((1,), "u2", recorded=False),
    LoadEnds((1,)),
    Touch((1, 4), "s1"),
    Evict(1, frozenset((4, 5))),
    RequestEnds("r1"),
    Reset(),
)


def test_every_event_can_be_read_back(tmp_path: Path) -> None:
    assert {type(event) for event in EVENTS} == set(EVENT_KINDS)
    path = tmp_path / "flight"
    flight.make(path)
    assert flight.read(path) is None
    recorder = flight.Recorder(path)
    trace = Trace(V033, 3, EVENTS[:1], groups=2)
    recorder.begin("lockstep", None, trace)
    for event in EVENTS[1:]:
        recorder.add(event)
    assert flight.read(path) == flight.Flight("lockstep", None, trace.with_events(EVENTS))
    calls = (FilterEvent("lookup", (1, 2)), FilterEvent("prepare_store", (1,), refused=True))
    of_filter = FilterTrace(V019, 2, 8)
    recorder.begin("lockstep", "reuse-filter/defaults", of_filter)
    for call in calls:
        recorder.add(call)
    read = flight.read(path)
    assert read is not None
    assert read.trace == of_filter.with_events(calls)


def test_a_full_record_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "flight"
    flight.make(path)
    recorder = flight.Recorder(path)
    trace = Trace(V033, 3, ())
    recorder.begin("lockstep", None, trace)
    large = Touch(tuple(range(200_000)), "r1")
    for _ in range(5):
        recorder.add(large)
    read = flight.read(path)
    assert read is not None
    assert read.trace is not None
    assert 0 < len(read.trace.events) < 5


def test_a_damaged_record_says_so(tmp_path: Path) -> None:
    path = tmp_path / "flight"
    flight.make(path)
    recorder = flight.Recorder(path)
    recorder.begin("lockstep", None, Trace(V033, 3, ()))
    data = bytearray(path.read_bytes())
    data[20:30] = b"\xff" * 10
    path.write_bytes(data)
    assert flight.read(path) == flight.Flight("unknown", None, None)


def test_reports_come_out_the_same_in_this_process_and_in_another(tmp_path: Path) -> None:
    name = "cachelaw.conformance.mutants.zoo.answers:WipesCache"
    there = certified(Wanted(name), BUDGETS["quick"], 1, Limits())
    here = certify(resolve(name), BUDGETS["quick"], 1)
    assert there["violations"] == [result.law.clause.name for result in here.violations]
    assert there["calls"] == here.calls
    assert json.dumps(there)
    assert str(os.getcwd()) not in json.dumps(there["certificate"])
