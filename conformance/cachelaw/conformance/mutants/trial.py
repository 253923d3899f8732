"""The trial: what the suite says of one mutant, and how soon.

Three stages, each only if the one before found nothing: the directed probes, all of them, so that
every clause that a probe finds broken is known; then the budgets `quick` and `standard`, up to the
first finding. A mutant of the reference that survives `quick` is compared with it for good
(`equivalence`); one that nothing tells from it needs no `standard`. Each mutant is tried in a
process of its own, which may crash, hang or eat memory.
"""

from __future__ import annotations

import multiprocessing
import resource
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

from cachelaw.conformance.certify import BUDGETS, Budget, certify
from cachelaw.conformance.course import Course
from cachelaw.conformance.filters.probes import filter_probes
from cachelaw.conformance.mutants import generated
from cachelaw.conformance.mutants.equivalence import Equivalence, equivalence
from cachelaw.conformance.probes import PROBES, contract_probes, twin_probes
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.subject import Subject, Unusable, resolve

PROBES_ALONE = Budget("probes", programs=0, events=0, twins=0)
QUICK, STANDARD = BUDGETS["quick"], BUDGETS["standard"]

SEED = 1

SECONDS = 1800
"""How long a mutant may take: far longer than any does that comes to an end."""

MEMORY = 4 << 30
"""Bytes that a mutant may use."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is to be tried.

    Attributes:
        name: what to call it.
        subject: where the suite finds it.
        excused: clauses that what it was made from breaks too, which tell nothing.
    """

    name: str
    subject: str
    excused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it.

    Attributes:
        name: the mutant's.
        clause: the first clause that was found broken, None if none was.
        stage: the budget that found it, or the last one.
        steps: events performed until then.
        clauses: every clause found broken by then; at the stage of the probes, by all of them.
        ended: how it ended without a verdict, in a few words; empty if there is one.
        equal: what shows that a survivor is no mutant, None if nothing does.
    """

    name: str
    clause: str | None
    stage: str
    steps: int
    clauses: tuple[str, ...] = ()
    ended: str = ""
    equal: Equivalence | None = None

    @property
    def killed(self) -> bool:
        """Whether the suite found the mutant out."""
        return self.clause is not None or self.ended in (UNUSABLE, CRASHED, HUNG)


UNUSABLE = "unusable: no host can make or drive it"
CRASHED = "its process crashed"
HUNG = "no answer in time"
SEARCHED = "the search for a difference from the reference did not end"


def tried(candidate: Candidate, searching: Callable[[Trial], None] = lambda trial: None) -> Trial:
    """Put one mutant on trial, in this process.

    Args:
        candidate: the mutant.
        searching: told, before a survivor is searched for a difference, how far it came.
    """
    trial = Trial(candidate.name, None, "", 0)
    try:
        subject = resolve(candidate.subject)
    except Unusable:
        return replace(trial, ended=UNUSABLE)
    for stage in (PROBES_ALONE, QUICK, STANDARD):
        trial = staged(candidate, subject, stage)
        if trial.killed:
            break
        mutant = generated.mutants().get(candidate.name)
        if stage is QUICK and mutant is not None:
            searching(replace(trial, ended=SEARCHED))
            equal = equivalence(mutant)
            if equal is not None:
                return replace(trial, equal=equal)
    return trial


def staged(candidate: Candidate, subject: Subject, stage: Budget) -> Trial:
    """Put one mutant to one stage of its trial, whatever came of the others."""
    probes = count_of_probes(subject)
    steps = 0

    def reached(course: Course) -> None:
        nonlocal steps
        if course.found and not steps:
            # A filter may be found out by its construction, before the first event.
            steps = max(1, course.tally.events)
        done = course.unit >= probes if stage is PROBES_ALONE else bool(course.found)
        if done:
            course.cut = "enough is known"

    # What processes alone can show is left to the later stages: three interpreters take a second.
    without = candidate.excused | frozenset(PROCESS_LAWS if stage is PROBES_ALONE else ())
    course = Course()
    certify(subject, stage, SEED, without=without, course=course, reached=reached)
    clauses = tuple(course.found)
    first = clauses[0] if clauses else None
    return Trial(candidate.name, first, stage.name, steps or course.tally.events, clauses)


def count_of_probes(subject: Subject) -> int:
    """Return how many units of a certification are probes. They are the first."""
    edition = subject.edition
    if subject.profile == "reuse-filter":
        return len(list(filter_probes()))
    named = PROBES[subject.profile](edition) if subject.profile in PROBES else ()
    every = contract_probes(edition), named, twin_probes(edition)
    return sum(len(list(probes)) for probes in every)


# --- Many of them --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    """A mutant on trial in a process of its own."""

    name: str
    process: BaseProcess
    deadline: float
    known: Trial | None = None
    """What is known of it if it never comes back."""

    def ended(self, how: str) -> Trial:
        """Return what to say of it when its process has ended without an answer."""
        return self.known or Trial(self.name, None, "", 0, ended=how)


def try_all(candidates: Sequence[Candidate], jobs: int) -> Iterator[Trial]:
    """Put many mutants on trial, each in a process of its own; yield trials as they end.

    Args:
        candidates: the mutants.
        jobs: how many at a time.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(candidates))
    running: dict[Connection, _Run] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            candidate = waiting.pop()
            ours, theirs = context.Pipe(duplex=False)
            process: BaseProcess = context.Process(target=_child, args=(candidate, theirs))
            process.start()
            theirs.close()
            running[ours] = _Run(candidate.name, process, monotonic() + SECONDS)
        ready: list[Any] = wait(list(running), timeout=1.0)
        for ours, run in list(running.items()):
            trial = _heard(ours, run) if ours in ready else None
            if trial is None and monotonic() >= run.deadline:
                run.process.kill()
                trial = run.ended(HUNG)
            if trial is not None:
                del running[ours]
                run.process.join()
                ours.close()
                yield trial


def _heard(ours: Connection, run: _Run) -> Trial | None:
    """Take in what a process says; return its trial if that is the end."""
    try:
        trial = ours.recv()
    except EOFError:
        return run.ended(CRASHED)
    assert isinstance(trial, Trial)
    if trial.ended == SEARCHED:
        run.known = trial
        return None
    return trial


def _child(candidate: Candidate, answer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        trial = tried(candidate, answer.send)
    except Exception:
        # The suite looks after what subjects raise, so that this is a fault of the suite's own.
        last = traceback.format_exc().strip().splitlines()[-1]
        trial = Trial(candidate.name, None, "", 0, ended=f"the suite failed: {last}")
    answer.send(trial)
    answer.close()
