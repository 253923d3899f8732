"""Reproductions: a counterexample as a Python file that anybody can run.

The file holds the calls literally and checks the outcome of the last, so that it fails on the
subject that broke the clause and passes on one that does not. It is written in the process that has
the subject, and run in one of its own, by pytest where there is one, before anybody is shown it.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import SkipTest

from cachelaw.conformance import policy_script, processes, twins
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.filters.script import filter_script
from cachelaw.conformance.filters.trace import FilterTrace
from cachelaw.conformance.finding import Finding
from cachelaw.conformance.instance import Codec
from cachelaw.conformance.lockstep import DIVERGED, Answers, Lockstep
from cachelaw.conformance.recording import Puppet, Recorder, Step
from cachelaw.conformance.script import Place, Script, assemble, place_of
from cachelaw.conformance.sources import factory_of
from cachelaw.conformance.subject import Subject, Unusable, Wanted
from cachelaw.conformance.trace import Event, Trace, describe
from cachelaw.reference.protocol import objection
from cachelaw.specs.registry import CLAUSES

NOT_RUN = "not run"
FAILS = "fails as it should"
PASSES = "passes: the violation does not show in it"
ANOTHER_COURSE = "takes another course than the run that was recorded"

SECONDS = 60
"""How long one reproduction may take; it makes a few dozen calls."""

WITHOUT = {
    "cost": "a cost is counted over runs of growing size, too long to be written down",
    "memory": "a size is measured over a run that is too long to be written down",
}
"""By how a violation was found, why no file is written for it."""


def reproduction(subject: Subject, finding: Finding[Any]) -> dict[str, Any]:
    """Return the reproduction of a finding as plain data, not run yet.

    Args:
        subject: in which it was found, in this process.
        finding: what was found.

    Returns:
        `text`, None if there is none, and `outcome`: `NOT_RUN`, or why there is none.
    """
    try:
        script = script_of(subject, finding)
    except _NoScriptError as reason:
        return {"text": None, "outcome": f"none: {reason}"}
    return {"text": script.text, "outcome": NOT_RUN}


ELSEWHERE = ("process", "death")
"""By what a violation was found that only another process can show."""


class _NoScriptError(Exception):
    """There is no reproduction, with the reason."""


def script_of(subject: Subject, finding: Finding[Any]) -> Script:
    """Write the script of a finding.

    Raises:
        _NoScriptError: there is none.
    """
    if finding.how in WITHOUT:
        raise _NoScriptError(WITHOUT[finding.how])
    wanted = subject.wanted or Wanted(subject.name)
    place = place_of(
        wanted.name, wanted.host, wanted.parameters, by_keyword=_by_keyword(wanted.name)
    )
    if place is None:
        raise _NoScriptError("the subject is a command, no Python class")
    if isinstance(finding.trace, FilterTrace):
        if finding.how == "death":
            raise _NoScriptError("none is written for a filter that ends its process")
        return filter_script(subject, finding, place)
    write = {
        "lockstep": _of_lockstep,
        "twin": _of_twins,
        "process": _of_processes,
        "death": _of_deaths,
    }
    if finding.how not in write or not isinstance(finding.trace, Trace):
        raise _NoScriptError(f"none is written for what is found by {finding.how}")
    candidates = write[finding.how](subject, finding, place)
    script: Script | None = None
    for script in candidates:
        if finding.how in ELSEWHERE or tried(script, subject.build) == FAILS:
            return script
    if script is None:
        raise _NoScriptError("the calls that break the clause could not be recorded")
    return script


def _by_keyword(name: str) -> bool:
    """Say whether a subject takes the capacity by name, as hosts pass it if they can."""
    factory = factory_of(name)
    try:
        inspect.signature(factory).bind_partial(cache_capacity=1)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return factory is None  # those of a release do
    return True


def tried(script: Script, make: Callable[..., Any]) -> str:
    """Run a script in this process and return its outcome, `FAILS` or another.

    Args:
        script: its subject is not imported.
        make: makes the subject, in place of the script's own function.
    """
    space: dict[str, Any] = {"__name__": "cachelaw_trial"}
    exec(compile(f"{script.header}\n{script.body}", "<reproduction>", "exec"), space)
    space["make"] = make
    try:
        space[script.test]()
    except AssertionError as error:
        if str(error).startswith(f"{space['CLAUSE']}: "):
            return FAILS
        return f"could not be run: {error!r}"
    except SkipTest:
        return ANOTHER_COURSE
    except Exception as error:
        return f"could not be run: {error!r}"
    return PASSES


# --- In lockstep ---------------------------------------------------------------------------------


def _of_lockstep(subject: Subject, finding: Finding, place: Place) -> Iterator[Script]:
    # What is found among random programs at wide scope may show only if nobody looks at every key.
    for thorough in (True, False):
        steps, breach = _recorded(subject, finding, thorough=thorough)
        if breach is None:
            continue
        for gets in (False, True):
            lines = policy_script.checked_life(finding.trace.edition, steps, breach, gets=gets)
            if lines is not None:
                test = policy_script.function("{test}", "", lines)
                yield _assembled(subject, finding, place, [test])


def _recorded(
    subject: Subject, finding: Finding, *, thorough: bool
) -> tuple[list[Step], Breach | None]:
    """Run a finding's trace once more; return its calls up to the breach, and that."""
    trace = finding.trace
    recorder = Recorder(subject, trace)
    run = Lockstep(recorder.subject, trace.setting, subject.profile, thorough=thorough)
    breach: Breach | None = None
    try:
        for event in trace.events:
            if objection(run.setting, run.state, event) is None:
                recorder.note(describe(event))
                run.step(event)
    except Breach as caught:
        breach = caught
    for refusal in run.witness.refusals:
        if refusal.clause == finding.clause:
            # A run goes on after a refusal; the last one, at the end of the trace, is meant.
            breach = refusal
            at = max(i for i, step in enumerate(recorder.log) if step.method == "evict")
            del recorder.log[at + 1 :]
    if breach is None or breach.clause not in (finding.clause, DIVERGED):
        return [], None
    return recorder.log, breach


def _assembled(
    subject: Subject, finding: Finding, place: Place, functions: Sequence[str], main: str = ""
) -> Script:
    trace, clause = finding.trace, CLAUSES[finding.clause]
    body = policy_script.body_of(trace.edition, trace.groups, place, functions)
    return assemble(clause, subject.name, trace.edition.name, place, body, main)


# --- By twins ------------------------------------------------------------------------------------


class _Twins:
    """Twins once more, recorded: `compare` takes the place of that of `twins.py`.

    Attributes:
        clause: the clause that was broken, empty if none was.
        plain: the calls of the twin that is left alone, up to the difference.
        disturbed: those of the other.
        breach: what the disturbed twin broke by itself, None if it only answered differently.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.clause = ""
        self.plain: list[Step] = []
        self.disturbed: list[Step] = []
        self.breach: Breach | None = None
        self._log = recorder.log
        self._note = recorder.note

    def compare(
        self,
        clause: str,
        how: str,
        plain: Callable[[], Lockstep],
        disturbed: Callable[[], Lockstep],
        trace: Trace,
        disturb: Callable[[Lockstep], int] = lambda run: 1,
        rename: Callable[[Event], Event] = lambda event: event,
        *,
        at_the_end: bool = False,
    ) -> int:
        """Let twins live through a trace, as `twins.compare` does, and keep their calls."""
        started = len(self._log)
        life = self._lived(plain(), trace)
        began = len(self._log)
        try:
            run = disturbed()
            for event, expected, ended in life:
                at = len(self._log)
                self._note(f"{how}: this makes no difference")
                disturb(run)
                if len(self._log) == at + 1:
                    self._log.pop()  # it was nothing
                self._note(describe(event))
                try:
                    answers = run.step(rename(event))
                except Breach as breach:
                    self._keep(clause, began, breach)
                    break
                if answers != expected:
                    self.plain = self._log[started:ended]
                    self._keep(clause, began)
                    break
            else:
                if at_the_end:
                    disturb(run)
        except Breach as breach:
            self._keep(breach.clause, began, breach)
        return 0

    def _lived(self, run: Lockstep, trace: Trace) -> list[tuple[Event, Answers, int]]:
        """Return what happened, each event with its answers and where its calls end."""
        life: list[tuple[Event, Answers, int]] = []
        try:
            for event in chain(trace.events, run.drain()):
                if objection(run.setting, run.state, event) is None:
                    self._note(describe(event))
                    life.append((event, run.step(event), len(self._log)))
        except Breach:
            pass  # for other laws to judge
        return life

    def _keep(self, clause: str, began: int, breach: Breach | None = None) -> None:
        self.clause = clause
        self.disturbed = self._log[began:]
        self.breach = breach


def _of_twins(subject: Subject, finding: Finding, place: Place) -> Iterator[Script]:
    lives = _twins_that_break(subject, finding)
    if lives is None:
        return
    edition = finding.trace.edition
    for gets in (False, True):
        if lives.breach is not None:
            lines = policy_script.checked_life(edition, lives.disturbed, lives.breach, gets=gets)
            if lines is not None:
                test = policy_script.function("{test}", "", lines)
                yield _assembled(subject, finding, place, [test])
            continue
        plain = policy_script.answered_life(edition, lives.plain, gets=gets)
        other = policy_script.answered_life(edition, lives.disturbed, gets=gets)
        if plain is not None and other is not None:
            comparing = [
                "expected, actual = undisturbed(), disturbed()",
                'check(actual == expected, f"{expected} if undisturbed, but {actual}")',
            ]
            functions = [
                policy_script.function("undisturbed", "", plain),
                policy_script.function("disturbed", "", other),
                policy_script.function("{test}", "", comparing),
            ]
            yield _assembled(subject, finding, place, functions)


def _twins_that_break(subject: Subject, finding: Finding) -> _Twins | None:
    """Let twins live until they break the clause of a finding: those of its own law first."""
    for clause in sorted(twins.TWINS, key=lambda name: name != finding.clause):
        recorder = Recorder(subject, finding.trace)
        lives = _Twins(recorder)
        with _in_place_of(twins, "compare", lives.compare):
            twins.TWINS[clause](recorder.subject, finding.trace)
        if lives.clause == finding.clause:
            return lives
    return None


@contextmanager
def _in_place_of(module: Any, name: str, other: Any) -> Iterator[None]:
    """Put something in place of a module's function for a while."""
    original = getattr(module, name)
    setattr(module, name, other)
    try:
        yield
    finally:
        setattr(module, name, original)


# --- By processes --------------------------------------------------------------------------------


def _of_processes(subject: Subject, finding: Finding, place: Place) -> Iterator[Script]:
    trace = finding.trace
    seed = processes.SEEDS[finding.clause][0]
    steps = _puppet_steps(subject, trace, _answers_elsewhere(subject, trace, seed))
    functions = policy_script.process_functions(trace.edition, steps, finding.clause)
    yield _assembled(subject, finding, place, functions, policy_script.PROCESS_MAIN)


def _of_deaths(subject: Subject, finding: Finding, place: Place) -> Iterator[Script]:
    trace = finding.trace
    survived = trace.with_events(trace.events[:-1])
    answers = _answers_elsewhere(subject, survived, "1")
    before = len(_puppet_steps(subject, survived, answers))
    steps = _puppet_steps(subject, trace, answers)
    functions = policy_script.death_functions(trace.edition, steps[:before], steps[before:])
    limit = policy_script.MEMORY_LIMIT if "MiB of memory" in finding.actual else ""
    main = policy_script.DEATH_MAIN.format(limit=limit)
    yield _assembled(subject, finding, place, functions, main)


def _answers_elsewhere(subject: Subject, trace: Trace, seed: str) -> list[tuple[int, ...] | None]:
    """Return how a subject answers to evictions in another process, with a certain hash seed."""
    try:
        ((life,),) = processes._elsewhere(subject, [trace], (seed,))
    except Unusable as error:
        raise _NoScriptError(str(error)) from None
    return [answer for event in life for answer in event]


def _puppet_steps(
    subject: Subject, trace: Trace, answers: Sequence[tuple[int, ...] | None]
) -> list[Step]:
    """Return the calls of a life in which evictions are answered so."""
    encode = Codec(trace.setting.group_of, fresh=False).encode
    puppet = replace(subject, build=lambda capacity: Puppet(answers, encode))
    recorder = Recorder(puppet, trace)
    run = Lockstep(recorder.subject, trace.setting)
    with suppress(Breach):  # then the life ended there
        for event in trace.events:
            if objection(run.setting, run.state, event) is None:
                recorder.note(describe(event))
                run.step(event)
    return recorder.log


# --- Running them --------------------------------------------------------------------------------


def run_all(data: Mapping[str, Any], seconds: float = SECONDS) -> None:
    """Run every reproduction of a report that was not run yet, and write down the outcome.

    Args:
        data: the report's data; the outcomes are changed in place.
        seconds: how long each may take.
    """
    waiting = [
        law["counterexample"]["reproduction"]
        for law in data["laws"]
        if law.get("counterexample", {}).get("reproduction", {}).get("outcome") == NOT_RUN
    ]
    with ThreadPoolExecutor(max_workers=2) as pool:
        outcomes = pool.map(lambda one: outcome(one["text"], seconds), waiting)
        for one, said in zip(waiting, outcomes, strict=True):
            one["outcome"] = said


def outcome(text: str, seconds: float = SECONDS) -> str:
    """Run a reproduction in a process of its own and say how it ended.

    It runs in the current folder, by pytest where that is installed, else by itself.

    Args:
        text: the file.
        seconds: how long it may take.

    Returns:
        `FAILS`, `PASSES`, `ANOTHER_COURSE`, or what went wrong, in words.
    """
    with tempfile.TemporaryDirectory(prefix="cachelaw-") as folder:
        path = Path(folder) / "test_reproduction.py"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, str(path)]
        if importlib.util.find_spec("pytest") is not None:
            # Whatever the folder configures for its own tests has no part in this one.
            isolated = ["--rootdir", folder, "-c", os.devnull, "-p", "no:cacheprovider"]
            command[1:1] = ["-m", "pytest", "-q", "--tb=short", *isolated]
        environment = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        printed = Path(folder) / "printed"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                status = process.wait(seconds)
            except subprocess.TimeoutExpired:
                return f"did not end within {seconds:g} s"
            finally:
                with suppress(ProcessLookupError):  # nobody is left of it
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return _meaning(status, printed.read_bytes().decode("utf-8", "replace"), text)


def _meaning(status: int, printed: str, text: str) -> str:
    named = re.search(r'^CLAUSE = "(.*)"$', text, re.MULTILINE)
    if status < 0:
        return f"died of signal {-status}"
    if named is not None and status == 1 and f"AssertionError: {named[1]}: " in printed:
        return FAILS
    if "SkipTest" in printed or re.search(r"\b1 skipped\b", printed):
        return ANOTHER_COURSE
    if status == 0:
        return PASSES
    errors = [line for line in printed.splitlines() if re.match(r"(E +)?\w*(Error|Exit)\b", line)]
    said = errors[-1].removeprefix("E").strip() if errors else f"exit status {status}"
    return f"could not be run: {said[:200]}"
