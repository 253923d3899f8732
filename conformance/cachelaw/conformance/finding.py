"""Findings: a clause that is broken, with a trace that shows it.

An experiment runs a trace on a fresh instance of the subject and says what it found: in lockstep,
judged call by call, or as one of the twin laws. It can be repeated on any trace, which is what
makes counterexamples short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

from typing_extensions import TypeVar

from cachelaw.conformance import flight
from cachelaw.conformance.any_trace import AnyTrace
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.lockstep import DIVERGED, Answers, Lockstep
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.conformance.twins import TWINS
from cachelaw.reference.protocol import objection

T = TypeVar("T", bound=AnyTrace, default=Trace)
"""What a finding's trace is a run of: a policy, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """A broken clause.

    Attributes:
        clause: the clause's name, or `DIVERGED` while it is not known which.
        trace: what happened, the last event being the one that shows it.
        expected: what the clause demands of the last event, in words.
        actual: what the subject did, in words.
        how: what found it: `lockstep` (also the exhaustive search), `twin`, `process`, `cost`,
            `memory`, `large`, or `death` where the subject's process came to its end.
        shortest: whether no shorter trace exists at its scope, or it was only made shorter.
    """

    clause: str
    trace: T
    expected: str
    actual: str
    how: str = "lockstep"
    shortest: bool = False


Experiment = Callable[[Trace], list[Finding]]
"""Runs a trace; returns what it found, a finding that ended the run last."""


@dataclass(slots=True)
class Tally:
    """What a series of experiments has done.

    Attributes:
        met: by clause, how often its condition was met.
        calls: calls made on the subject.
        events: events performed.
    """

    met: Counter[str]
    calls: int = 0
    events: int = 0


class JudgedRun:
    """A run in lockstep that collects what it finds.

    Args:
        subject: the policy under test, compared with the reference if its profile has one.
        trace: the scope; its events are not performed.
        tally: where to count.
        thorough: look at every key after every call.
    """

    def __init__(
        self, subject: Subject, trace: Trace, tally: Tally, *, thorough: bool = True
    ) -> None:
        flight.recorder.begin("lockstep", None, trace.with_events(()))
        self.lockstep = Lockstep(
            subject, trace.setting, subject.profile, tally.met, thorough=thorough
        )
        self.found: list[Finding] = []
        self._trace = trace
        self._tally = tally
        self._lived: list[Event] = []

    def live(self, event: Event) -> Answers | None:
        """Let one event happen, if a manager could issue it.

        Returns:
            The answers to its evictions; None if a clause is broken and the run is over.
        """
        lockstep = self.lockstep
        if objection(lockstep.setting, lockstep.state, event) is not None:
            return []
        self._lived.append(event)
        flight.recorder.add(event)
        self._tally.events += 1
        calls, refusals = lockstep.steps, len(lockstep.witness.refusals)
        answers: Answers | None = None
        fatal: list[Breach] = []
        try:
            answers = lockstep.step(event)
        except Breach as caught:
            fatal.append(caught)
        self._tally.calls += lockstep.steps - calls
        for breach in (*lockstep.witness.refusals[refusals:], *fatal):
            trace = self._trace.with_events(self._lived)
            self.found.append(Finding(breach.clause, trace, breach.expected, breach.actual))
        return answers

    def live_all(self) -> list[Finding]:
        """Perform the events of the trace and then empty the cache."""
        if all(self.live(event) is not None for event in self._trace.events):
            self.drain()
        return self.found

    def drain(self) -> None:
        """Empty the cache one chunk at a time, so that every order shows."""
        all(self.live(event) is not None for event in self.lockstep.drain())


def lockstep_experiment(
    subject: Subject, clause: str | None = None, tally: Tally | None = None
) -> Experiment:
    """Return the experiment that judges every call, against the reference if there is one.

    Args:
        subject: the policy under test.
        clause: what a divergence from the reference breaks, if the run met its condition.
        tally: where to count; None counts nowhere.
    """

    def run(trace: Trace) -> list[Finding]:
        counted = Tally(Counter()) if tally is None else tally
        found = JudgedRun(subject, trace, counted).live_all()
        if clause is None or not counted.met[clause]:
            return found
        return [
            replace(finding, clause=clause) if finding.clause == DIVERGED else finding
            for finding in found
        ]

    return run


def twin_experiment(subject: Subject, clause: str, tally: Tally | None = None) -> Experiment:
    """Return the experiment of one twin law.

    Args:
        subject: the policy under test; its profile plays no part.
        clause: a key of `TWINS`.
        tally: where to count; None counts nowhere.
    """

    def run(trace: Trace) -> list[Finding]:
        flight.recorder.begin("twin", clause, trace)
        try:
            met = TWINS[clause](subject, trace)
        except Breach as breach:
            return [Finding(breach.clause, trace, breach.expected, breach.actual, "twin")]
        if tally is not None:
            tally.met[clause] += met
            tally.events += 2 * len(trace.events)
        return []

    return run


def twins_experiment(subject: Subject, clause: str) -> Experiment:
    """Return the experiment that finds a clause again that some run of twins has broken.

    That of the clause itself, if it is a twin law; but a disturbance can meet with an answer that
    breaks another one.

    Args:
        subject: the policy under test.
        clause: what was broken.
    """
    if clause in TWINS:
        return twin_experiment(subject, clause)
    experiments = [twin_experiment(subject, law) for law in TWINS]

    def run(trace: Trace) -> list[Finding]:
        found = (experiment(trace) for experiment in experiments)
        return next((f for f in found if any(one.clause == clause for one in f)), [])

    return run
