"""Drop a clause: what else a wrong policy breaks if one clause is not judged.

A clause carries weight if some wrong policy breaks it and nothing else. Where none can, since
whoever breaks it breaks another clause too, the registry says so (`implied_by`). This module finds
out, for a policy of the zoo, which clauses have to be dropped until it passes.

Refinement is set aside: of the clauses of LRU, ARC and the filter, each is judged by the probes
that are there for it, since a random program that diverges from the reference says that something
is wrong, and not what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from pytest import MonkeyPatch

from cachelaw.conformance import lockstep
from cachelaw.conformance.certify import Budget, certify
from cachelaw.conformance.contract import Breach, Witness
from cachelaw.conformance.course import Course
from cachelaw.conformance.filters.probes import filter_probes
from cachelaw.conformance.filters.search import FilterRun
from cachelaw.conformance.finding import Tally
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.lockstep import DIVERGED, Answers, Lockstep
from cachelaw.conformance.mutants.trial import PROBES_ALONE, SEED, count_of_probes
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event
from cachelaw.reference.protocol import Call

SOME_SEARCH = Budget("some search", programs=20, events=100, twins=2)
"""How long a policy is watched after its clauses have been dropped."""


ENDS = "the run ends"
"""In place of a clause, where a run cannot go on for what was overlooked."""


class Lenient(Witness):
    """A witness that looks away from some clauses and goes on where a host could.

    A key of which something was overlooked is not looked at again before it is inserted anew: what
    comes of one fault is not held against other clauses. A run still ends where a call raises or
    fewer chunks leave than a host has to have.

    Args:
        waived: the clauses.
        arguments: those of a witness.
    """

    def __init__(self, waived: frozenset[str], *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._waived = waived
        self._overlooked: set[int] = set()

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        if call.method == "insert":
            self._overlooked.discard(call.arguments[0])
        victims = super().carry_out(call)
        if call.method == "evict" and victims is not None and len(victims) < call.arguments[0]:
            raise Breach(ENDS, "as many as a host needs", "fewer")
        return victims

    # A Breach is frozen and cannot pass a context manager, which would set its traceback.

    def _unless_waived(self, judge: Callable[[], None], key: int | None = None) -> None:
        if key in self._overlooked:
            return
        try:
            judge()
        except Breach as breach:
            if breach.clause not in self._waived:
                raise
            if key is not None:
                self._overlooked.add(key)

    def _judge_argument(self, passed: Any, before: Any) -> None:
        self._unless_waived(partial(super()._judge_argument, passed, before))

    def _judge_status(self, key: int, chunk: Any) -> None:
        self._unless_waived(partial(super()._judge_status, key, chunk), key)

    def _judge_get(self, key: int, answer: Any) -> None:
        self._unless_waived(partial(super()._judge_get, key, answer), key)

    def _judge_residency(self, clause: str, keys: Sequence[int]) -> None:
        for key in keys:
            self._unless_waived(partial(super()._judge_residency, clause, (key,)), key)

    def _judge_refusal(self, n: int, protected: frozenset[int]) -> None:
        apart = {key: self._ref_cnt.pop(key) for key in self._overlooked & self._ref_cnt.keys()}
        super()._judge_refusal(n, protected)
        self._ref_cnt |= apart

    def _judge_evict(
        self, answer: Any, n: int, protected: frozenset[int]
    ) -> tuple[int, ...] | None:
        try:
            return super()._judge_evict(answer, n, protected)
        except Breach as breach:
            if breach.clause != "evict/zero-is-empty" or breach.clause not in self._waived:
                raise
        if not answer:
            return ()
        if "evict/exact-count" not in self._waived:
            raise Breach("evict/exact-count", "no victim", f"{len(answer)} of them")
        return super()._judge_evict(answer, len(answer), protected)

    def _judge_victims(self, answer: Any, n: int, protected: frozenset[int]) -> tuple[int, ...]:
        try:
            return super()._judge_victims(answer, n, protected)
        except Breach as found:
            if found.clause not in self._waived:
                raise
            breach = found
        match breach.clause:
            case "evict/list-of-pairs":
                try:
                    pairs = [(key, chunk) for key, chunk in answer]
                except (TypeError, ValueError):
                    raise breach from None
                return self._judge_victims(pairs, n, protected)
            case "evict/exact-count":
                return self._judge_victims(answer, len(answer), protected)
            case "evict/distinct":
                once = list({key: (key, chunk) for key, chunk in reversed(answer)}.values())
                return self._judge_victims(once, len(once), protected)
        return self._without_offender(breach, answer, protected)

    def _without_offender(
        self, breach: Breach, answer: list[Any], protected: frozenset[int]
    ) -> tuple[int, ...]:
        """Judge all entries but the one at fault, which counts all the same if it was resident."""
        for at, entry in enumerate(answer):
            try:
                super()._judge_victims([entry], 1, protected)
            except Breach as found:
                if found.clause == breach.clause:
                    rest = [*answer[:at], *answer[at + 1 :]]
                    others = self._judge_victims(rest, len(rest), protected)
                    key = self.instance.codec.decode(entry[0])
                    if key is None or key not in self._ref_cnt or key in others:
                        return others
                    return (*others[:at], key, *others[at:])
        raise breach


@contextmanager
def looking_away(waived: frozenset[str]) -> Iterator[None]:
    """Let every run in this block look away from some clauses."""
    right_step = Lockstep.step

    def step(run: Lockstep, event: Event) -> Answers:
        try:
            return right_step(run, event)
        except (KeyError, IndexError):
            if not waived:
                raise
            # A chunk left that the manager's books say cannot have.
            raise Breach(ENDS, "books that are right", "a chunk is missing") from None

    with MonkeyPatch.context() as patch:
        patch.setattr(lockstep, "Witness", partial(Lenient, waived))
        patch.setattr(Lockstep, "step", step)
        yield


def violated(subject: Subject, waived: frozenset[str], budget: Budget) -> tuple[str, ...]:
    """Return the clauses that a subject breaks when some are dropped, in the order found.

    Args:
        subject: the policy or filter.
        waived: the clauses that are dropped.
        budget: how much random search to do.
    """
    if subject.profile == "reuse-filter":
        return _by_filter_probes(subject, waived)
    search = count_of_probes(subject) + budget.programs + budget.twins

    def reached(course: Course) -> None:
        if course.unit >= search:
            course.cut = "what is found need not be short"

    course = Course()
    with looking_away(waived):
        certify(subject, budget, SEED, without=waived, course=course, reached=reached)
    return tuple(course.found)


def _by_filter_probes(subject: Subject, waived: frozenset[str]) -> tuple[str, ...]:
    """Judge each probe by itself; one that diverges breaks the clause that it is there for."""
    found: list[str] = []
    for probe in filter_probes():
        run = FilterRun(subject, probe.trace(subject.edition), Tally(Counter()))
        for finding in run.live_all():
            found.append(probe.clause if finding.clause == DIVERGED else finding.clause)
    return tuple(name for name in dict.fromkeys(found) if name not in waived)


def to_drop(subject: Subject, clause: str) -> tuple[str, ...] | None:
    """Return the clauses that have to be dropped besides `clause` until a subject passes.

    None if the subject does not break `clause` first.
    """
    if LAWS[clause].clause.profile == "contract":
        # Refinement set aside, and what only the universal laws can tell.
        subject, budget = replace(subject, profile="contract"), SOME_SEARCH
    else:
        budget = PROBES_ALONE
    away = frozenset() if clause in PROCESS_LAWS else frozenset(PROCESS_LAWS)
    if violated(subject, away, PROBES_ALONE)[:1] != (clause,) and clause not in PROCESS_LAWS:
        return None
    dropped: list[str] = [clause]
    while more := violated(subject, away | frozenset(dropped), budget):
        dropped += more
    return tuple(dropped[1:])
