"""Subjects behind a pipe: the protocol of specs/INTERPRETING.md, kept and broken."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import foreign, shrink, trial
from cachelaw.conformance.certify import FOREIGN_BUDGETS, Budget, Report, certify
from cachelaw.conformance.finding import lockstep_experiment
from cachelaw.conformance.foreign import EXCUSES, Trouble
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants.zoo import classes, subject_name
from cachelaw.conformance.sources import sources_of
from cachelaw.conformance.subject import Subject, Unusable, Wanted, find, resolve
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trace import Trace
from cachelaw.conformance.trial import certified
from cachelaw.conformance.verdict import Verdict
from cachelaw.reference.chunk import BlockStatus, ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import EDITIONS, V024
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.protocol import Evict

ROOT = Path(__file__).parents[2]
FOREIGN = ROOT / "tests" / "foreign"
PROBES = Budget("probes", programs=0, events=0, twins=0)
LITTLE = Budget("little", programs=2, events=30, twins=1)
STRIKES = Trace(V024, 1, (Evict(1),) * 3)
"""What `odd.py` answers as it should, but for the last event."""


def in_c(folder: Path, *flags: str) -> str:
    """Build the subject in C; return its name."""
    compiler = shutil.which("cc")
    if compiler is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs a C compiler as cc")
        pytest.skip("there is no C compiler")
    made = folder / "-".join(["lru", *flags])
    strict = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror")
    subprocess.run([compiler, *strict, *flags, "-o", made, FOREIGN / "lru.c"], check=True)
    return f"exec:{made}"


@pytest.fixture(scope="module")
def lru(tmp_path_factory: pytest.TempPathFactory) -> str:
    return in_c(tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def fifo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the example of the page into a file."""
    page = (ROOT / "specs" / "INTERPRETING.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(text.splitlines()) < 60
    path = tmp_path_factory.mktemp("python") / "fifo.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    for command in foreign._COMMANDS.values():
        command.close()
    foreign._COMMANDS.clear()


def odd(fifo: Path, what: str) -> str:
    return f"exec:{sys.executable} {FOREIGN / 'odd.py'} {fifo} {what}"


def served(name: str, **wanted: Any) -> str:
    """Return the name of a Python subject that is served by a command."""
    said = json.dumps(Wanted(name, **wanted).as_json())
    return f"exec:{sys.executable} -m cachelaw.conformance.serve '{said}'"


def violated(report: Report) -> list[str]:
    return [result.law.clause.name for result in report.violations]


# --- Right and wrong -----------------------------------------------------------------------------


def test_the_subject_in_c_conforms(lru: str) -> None:
    subject = resolve(lru)
    assert (subject.profile, subject.edition.name) == ("lru", "v0.22")
    assert [row.edition.name for row in subject.hosts if row.runs] == ["v0.19", "v0.20", "v0.22"]
    report = certify(subject, FOREIGN_BUDGETS["quick"], seed=1)
    assert report.verdict is Verdict.HOLDS, violated(report)
    excused = {result.law.clause.name: result.note for result in report.results}
    for clause, why in EXCUSES.items():
        assert excused.get(clause, why) == why
    held = [result for result in report.results if result.verdict is Verdict.HOLDS]
    assert {"lru", "evict", "instances", "determinism"} <= {
        result.law.clause.name.partition("/")[0] for result in held
    }


def test_the_wrong_one_is_rejected_with_a_short_trace(tmp_path: Path) -> None:
    report = certify(resolve(in_c(tmp_path, "-DHEAD_FIRST")), PROBES, seed=1)
    assert violated(report)[0] == "lru/batch-tail-first"
    finding = report.violations[0].finding
    assert finding is not None and len(finding.trace.events) <= 5
    assert (finding.expected, finding.actual) == ("[2]", "[1]")


def test_the_example_of_the_page_conforms(fifo: Path) -> None:
    subject = resolve(f"exec:{sys.executable} {fifo}")
    assert subject.fits == EDITIONS and subject.edition == EDITIONS[-1]
    report = certify(subject, LITTLE, seed=1)
    assert report.verdict is Verdict.HOLDS, violated(report)
    rejected = certify(resolve(subject.name, profile="lru"), PROBES, seed=1)
    assert rejected.verdict is Verdict.VIOLATED


def test_every_excuse_is_of_a_law_and_no_other_is_excused(lru: str) -> None:
    subject = resolve(lru)
    laws = [law for law in LAWS.values() if law.clause.holds_in("v0.22") and law.kind != "filter"]
    excused = {law.clause.name for law in laws if law.excuse(subject) is not None}
    assert excused == set(EXCUSES) & set(LAWS)


@pytest.mark.parametrize("name", ["Lfu", "StepIsOne"])
def test_a_python_subject_answers_alike_behind_a_pipe(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = classes()[name]
    monkeypatch.setattr("cachelaw.conformance.processes.judge", lambda *arguments: ())
    monkeypatch.setattr(shrink, "shortest", lambda subject, finding, experiment: finding)
    here = certify(resolve(subject_name(made)), PROBES, seed=1)
    there = certify(resolve(served(subject_name(made))), PROBES, seed=1)
    assert there.verdict is here.verdict
    assert violated(there)[:1] == [one for one in violated(here) if one not in EXCUSES][:1]


# --- One line a call -----------------------------------------------------------------------------


def lines_of(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Note every line that is said."""
    said: list[dict[str, Any]] = []
    ask = foreign.Command.ask

    def noted(self: Any, line: dict[str, Any], process: Any) -> list[Any]:
        said.append(line)
        return ask(self, line, process)

    monkeypatch.setattr(foreign.Command, "ask", noted)
    return said


def test_ref_counts_are_told_before_the_next_call(
    lru: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = resolve(lru)
    said = lines_of(subject, monkeypatch)
    policy = subject.build(2)
    one, two = BlockStatus(1), BlockStatus(0)
    policy.insert(b"\x0a", one)
    policy.insert(b"\x0b", two)
    assert policy.evict(1, set()) is None
    one.ref_cnt = two.ref_cnt = 0
    policy.touch(iter([b"\x0a"]))
    assert policy.get(b"\x0a") is one and policy.get(b"\x0c") is None
    ((key, chunk),) = policy.evict(1, {b"\x0c"})
    assert (key, chunk) == (b"\x0b", two) and chunk is two
    calls = [line["calls"] for line in said]
    assert said[0]["new"] == {"edition": "v0.22", "capacity": 2} and calls[0] == []
    assert calls[4] == [["ref_cnt", "0a", 0], ["ref_cnt", "0b", 0], ["touch", ["0a"]]]
    assert calls[-1] == [["evict", 1, ["0c"]]]
    policy.clear()
    assert policy.get(b"\x0a") is None


def test_positions_and_requests_are_told(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = resolve(f"exec:{sys.executable} {fifo}")
    said = lines_of(subject, monkeypatch)
    policy, context = subject.build(2), ReqContext("r1")
    context.set_offload_key_position(OffloadKey(b"\x0a"), 16)
    policy.insert(b"\x0a", ChunkStatus(0), context)
    policy.on_request_finished(((b"\x0a", b"\x0b"),), {b"\x0b"}, {b"\x0a"}, context)
    request = {"request": "r1", "positions": {"0a": 16}}
    assert said[1]["calls"] == [["insert", "0a", 0, request]]
    assert said[2]["calls"] == [["on_request_finished", [["0a", "0b"]], ["0b"], ["0a"], request]]


def test_instances_that_are_let_go_are_dropped(lru: str) -> None:
    subject = resolve(lru)
    written: list[bytes] = []
    policy = subject.build(1)
    pipe = policy.command.process.stdin
    policy.command.process.stdin = _Spy(pipe, written)
    subject.build(2)
    policy.get(b"\x0a")
    assert b'"drop":[2]' in written[-1]
    policy.get(b"\x0a")
    assert b"drop" not in written[-1]
    policy.command.process.stdin = pipe


class _Spy:
    def __init__(self, pipe: Any, written: list[bytes]) -> None:
        self._pipe, self._written = pipe, written

    def write(self, data: bytes) -> None:
        self._written.append(data)
        self._pipe.write(data)

    def flush(self) -> None:
        self._pipe.flush()


def test_a_whole_replay_costs_one_round_trip(lru: str) -> None:
    command = resolve(lru).build(2).command
    calls = [["insert", "0a", 1], ["ref_cnt", "0a", 0], ["evict", 1, []], ["get", "0a"]]
    line = {"id": command.number(), "new": {"edition": "v0.22", "capacity": 2}, "calls": calls}
    assert command.ask(line, None) == [None, None, [["0a", 1]], None]


def test_parameters_reach_the_instance(tmp_path: Path, fifo: Path) -> None:
    text = fifo.read_text(encoding="utf-8").replace(
        'instances[line["id"]] = Fifo()',
        'instances[line["id"]] = Fifo(); assert line["new"]["parameters"] == {"k": 2}',
    )
    path = tmp_path / "with.py"
    path.write_text(text, encoding="utf-8")
    resolve(f"exec:{sys.executable} {path}", parameters={"k": 2}).build(1)
    with pytest.raises(Unusable, match="exited with status 1"):
        resolve(f"exec:{sys.executable} {path}").build(1)
    with pytest.raises(Unusable, match="written as JSON"):
        resolve(f"exec:{sys.executable} {path}", parameters={"k": object()})


# --- Copies --------------------------------------------------------------------------------------


def test_an_instance_that_cannot_be_saved_cannot_be_copied(lru: str) -> None:
    policy = resolve(lru).build(2)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(policy)


def test_an_instance_that_can_be_saved_goes_on_as_it_was() -> None:
    policy = resolve(served("cachelaw.reference.v022:LRU")).build(3)
    chunks = [BlockStatus(slot) for slot in range(3)]
    for key, chunk in zip((b"\x0a", b"\x0b", b"\x0c"), chunks, strict=True):
        policy.insert(key, chunk)
        chunk.ref_cnt = 0
    other, others = pickle.loads(pickle.dumps((policy, chunks)))
    policy.touch([b"\x0a"])
    assert policy.evict(1, set()) == [(b"\x0b", chunks[1])]
    ((key, chunk),) = other.evict(1, set())
    assert key == b"\x0a" and chunk is others[0]
    assert pickle.dumps(other) == pickle.dumps(pickle.loads(pickle.dumps(other)))


def test_the_shortest_trace_is_searched_for_where_instances_can_be_saved() -> None:
    made = subject_name(classes()["StepIsOne"])
    report = certify(resolve(served(made), profile="lru", edition="v0.22"), PROBES, seed=1)
    finding = report.violations[0].finding
    assert finding is not None and finding.shortest


# --- Trouble -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("crash", r"the command's process was ended by signal 11 \(SIGSEGV\)"),
        ("exit", "the command's process exited with status 5"),
        ("garbage", "answered what is no JSON object: no JSON"),
        ("endless", "answered a line without end: xxx"),
        ("list", r"answered what is no JSON object: \[\]"),
        ("few", "did not answer with"),
        ("raise", r"the command says: ZeroDivisionError\('division by zero'\)"),
    ],
)
def test_a_command_that_fails_breaks_a_clause(fifo: Path, what: str, says: str) -> None:
    found = lockstep_experiment(resolve(odd(fifo, what)))(STRIKES)
    assert [finding.clause for finding in found] == ["call/valid-call-returns"]
    assert re.search(f"it raised Trouble: .*{says}", found[0].actual)
    assert "\n" not in found[0].actual
    assert found[0].trace == STRIKES


def test_a_crash_ends_in_a_report_with_a_short_trace(fifo: Path) -> None:
    report = certify(resolve(odd(fifo, "crash")), PROBES, seed=1)
    assert violated(report)[0] == "call/valid-call-returns"
    finding = report.violations[0].finding
    assert finding is not None and finding.trace.events == (Evict(0),) * 3


@pytest.mark.parametrize(
    ("what", "clause"),
    [("victims", "evict/list-of-pairs"), ("unknown", "evict/resident-only")],
)
def test_an_answer_of_another_form_breaks_its_clause(fifo: Path, what: str, clause: str) -> None:
    (finding,) = lockstep_experiment(resolve(odd(fifo, what)))(STRIKES)
    assert finding.clause == clause


def test_a_process_that_has_ended_is_asked_no_more(fifo: Path) -> None:
    subject = resolve(odd(fifo, "crash"))
    policy, other = subject.build(1), subject.build(1)
    for _ in range(2):
        policy.evict(0, set())
    with pytest.raises(Trouble, match="SIGSEGV"):
        policy.evict(0, set())
    for one in (policy, other):
        with pytest.raises(Trouble, match="has ended"):
            one.get(b"\x0a")
    assert subject.build(1).get(b"\x0a") is None


def test_a_hang_ends_in_a_report_with_its_trace(
    fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "MOST_TRIES", 6)
    name = odd(fifo, "hang")
    limits = Limits(seconds=2.5)
    data = certified(Wanted(name, edition="v0.24"), FOREIGN_BUDGETS["quick"], 1, limits)
    assert data["violations"] == ["call/valid-call-returns"]
    law = next(law for law in data["laws"] if law["clause"] == "call/valid-call-returns")
    assert "gave no answer" in law["counterexample"]["actual"]
    assert len(law["counterexample"]["trace"]["events"]) <= 12
    assert law["counterexample"]["reproduction"]["text"] is None
    assert not _running(str(fifo))


def test_the_memory_of_a_command_is_watched(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MOST_TRIES", 2)
    wanted = Wanted(odd(fifo, "bomb"), edition="v0.24")
    data = certified(wanted, FOREIGN_BUDGETS["quick"], 1, Limits(mebibytes=600))
    assert data["violations"] == ["call/valid-call-returns"]
    law = next(law for law in data["laws"] if law["clause"] == "call/valid-call-returns")
    assert "grew beyond 600 MiB" in law["counterexample"]["actual"]


def _running(word: str) -> list[int]:
    """Return the processes in whose command line a word stands."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


# --- What cannot be used -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("talks", "at its start the command answered what is no JSON object: ready"),
        ("future", 'must have "cachelaw": 1'),
        ("nowhere", 'must have "editions"'),
        ("leaves", "at its start the command's process exited with status 3"),
        ("greets", "cannot be constructed from the capacity 1: .*status 4"),
        ("silent", "said nothing for 0.3 seconds"),
    ],
)
def test_a_command_that_cannot_be_used(
    fifo: Path, what: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "silent":
        monkeypatch.setattr(foreign, "GREETING_SECONDS", 0.3)
    with pytest.raises(Unusable, match=says) as caught:
        resolve(odd(fifo, what)).build(1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (Wanted("exec:"), "names no command"),
        (Wanted("exec:'"), "no closing quotation"),
        (Wanted("exec:/nowhere/at/all"), "cannot be started: No such file"),
        (Wanted("exec:true", host="vllm==0.30.0"), "leave out --host"),
        (Wanted("LRU", profile="reuse-filter"), "is a policy"),
        (Wanted("LRU", edition="v0.33"), "does not fit v0.33: its first line"),
        (Wanted("LRU", edition="v9"), "no edition is called"),
    ],
)
def test_wrong_usage(lru: str, wanted: Wanted, says: str) -> None:
    name = lru if wanted.name == "LRU" else wanted.name
    with pytest.raises(Unusable, match=says):
        find(Wanted(name, wanted.profile, wanted.edition, host=wanted.host))


def test_a_served_subject_that_cannot_be_found_says_why() -> None:
    with pytest.raises(Unusable, match="there is no module nowhere"):
        resolve(served("nowhere:Policy"))


def test_what_it_declares(tmp_path: Path, fifo: Path) -> None:
    text = fifo.read_text(encoding="utf-8").replace(
        '"editions": editions',
        '"editions": editions, "edition": "v0.30", "randomized": True, "profile": "arc"',
    )
    path = tmp_path / "says.py"
    path.write_text(text, encoding="utf-8")
    subject = find(Wanted(f"exec:{sys.executable} {path}", declared=("may_refuse",)))
    assert (subject.edition.name, subject.profile) == ("v0.30", "arc")
    assert subject.randomized and subject.may_refuse and not subject.specification


def test_the_files_that_a_command_names_are_its_sources(fifo: Path) -> None:
    sources = sources_of(resolve(f"exec:python3 {fifo}"))
    assert list(sources) == ["fifo.py"]
