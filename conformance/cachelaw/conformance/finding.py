"""Findings: a clause that is broken, with a trace that shows it.

An experiment runs a trace on a fresh instance of the subject and says what it found: in lockstep,
judged call by call, or as one of the twin laws. It can be repeated on any trace, which is what
makes counterexamples short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from cachelaw.conformance.contract import Breach
from cachelaw.conformance.lockstep import Lockstep
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.conformance.twins import TWINS
from cachelaw.reference.protocol import objection


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken clause.

    Attributes:
        clause: the clause's name, or `DIVERGED` while it is not known which.
        trace: what happened, the last event being the one that shows it.
        expected: what the clause demands of the last event, in words.
        actual: what the subject did, in words.
        shortest: whether no shorter trace exists at its scope, or it was only made shorter.
    """

    clause: str
    trace: Trace
    expected: str
    actual: str
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


def lockstep_experiment(
    subject: Subject, tally: Tally | None = None, *, thorough: bool = True
) -> Experiment:
    """Return the experiment that judges every call, against the reference if there is one.

    Args:
        subject: the policy under test.
        tally: where to count; None counts nowhere.
        thorough: look at every key after every call.
    """

    def run(trace: Trace) -> list[Finding]:
        met = Counter[str]() if tally is None else tally.met
        lockstep = Lockstep(subject, trace.setting, subject.profile, met, thorough=thorough)
        lived: list[Event] = []
        found: list[Finding] = []

        def live(event: Event) -> bool:
            if objection(lockstep.setting, lockstep.state, event) is not None:
                return True
            lived.append(event)
            refusals = len(lockstep.witness.refusals)
            breach: Breach | None = None
            try:
                lockstep.step(event)
            except Breach as caught:
                breach = caught
            for refusal in lockstep.witness.refusals[refusals:]:
                found.append(_finding(refusal, trace, lived))
            if breach is not None:
                found.append(_finding(breach, trace, lived))
            return breach is None

        if all(live(event) for event in trace.events):
            all(live(event) for event in lockstep.drain())
        if tally is not None:
            tally.calls += lockstep.steps
            tally.events += len(lived)
        return found

    return run


def twin_experiment(subject: Subject, clause: str, tally: Tally | None = None) -> Experiment:
    """Return the experiment of one twin law.

    Args:
        subject: the policy under test; its profile plays no part.
        clause: a key of `TWINS`.
        tally: where to count; None counts nowhere.
    """

    def run(trace: Trace) -> list[Finding]:
        try:
            met = TWINS[clause](subject, trace)
        except Breach as breach:
            return [_finding(breach, trace, trace.events)]
        if tally is not None:
            tally.met[clause] += met
            tally.events += 2 * len(trace.events)
        return []

    return run


def _finding(breach: Breach, trace: Trace, events: list[Event] | tuple[Event, ...]) -> Finding:
    return Finding(breach.clause, trace.with_events(events), breach.expected, breach.actual)


def named(finding: Finding, clause: str) -> Finding:
    """Return the finding under the name of a clause."""
    return replace(finding, clause=clause)
