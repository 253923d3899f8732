"""Certification: every law of the profiles that a subject claims, and a verdict on each.

First the directed probes, which meet every law's condition, by themselves and by twins; then random
programs at small and wide scope, as many as the budget says, and some of them by twins and in other
processes. What is found is made as short as it can be.
Policies are searched here, filters in `filters/`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cachelaw.conformance import cost, exhaustive, large, memory, processes, shrink
from cachelaw.conformance.course import Course
from cachelaw.conformance.explore.calls import Scope
from cachelaw.conformance.filters.search import FilterSearch
from cachelaw.conformance.finding import (
    Experiment,
    Finding,
    JudgedRun,
    Tally,
    lockstep_experiment,
    twin_experiment,
    twins_experiment,
)
from cachelaw.conformance.generate import Program
from cachelaw.conformance.laws import LAWS, Law, laws_for
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.probes import PROBES, contract_probes, twin_probes
from cachelaw.conformance.subject import Subject, Unusable
from cachelaw.conformance.trace import Event, Trace
from cachelaw.conformance.twins import ASKING
from cachelaw.conformance.unjudged import Measured
from cachelaw.conformance.verdict import Verdict, overall
from cachelaw.reference.editions import Edition


@dataclass(frozen=True, slots=True)
class Budget:
    """How much random search follows the probes. Counted in programs and events, not in seconds.

    Attributes:
        name: what the user calls it.
        programs: random programs run in lockstep.
        events: events in each.
        twins: random programs run by twins, once for each twin law.
        sizes: capacities at which cost is counted, rising; none counts neither cost nor memory.
        large: whether to go to capacities in the thousands.
        plan: scopes to search exhaustively: the scope, how many snapshots to keep for each state,
            and the number of transitions to stop at.
    """

    name: str
    programs: int
    events: int
    twins: int
    sizes: tuple[int, ...] = ()
    large: bool = False
    plan: tuple[tuple[Scope, int, int], ...] = ()


BUDGETS = {
    "quick": Budget("quick", 60, 150, 4, cost.SIZES, plan=exhaustive.PLANS["quick"]),
    "standard": Budget(
        "standard", 600, 300, 20, cost.SIZES, large=True, plan=exhaustive.PLANS["standard"]
    ),
    "deep": Budget(
        "deep", 12_000, 400, 200, cost.WIDE_SIZES, large=True, plan=exhaustive.PLANS["deep"]
    ),
}

FOREIGN_BUDGETS = {
    "quick": Budget("quick", 20, 60, 2),
    "standard": Budget("standard", 120, 150, 6),
    "deep": Budget("deep", 1_500, 300, 40),
}
"""The same for subjects behind a pipe, where every call costs a round trip.

Cost and memory cannot be counted there, and small scopes are not searched exhaustively."""


def budget_for(subject: Subject, name: str) -> Budget:
    """Return the budget that a user's word means for a subject."""
    return (FOREIGN_BUDGETS if subject.foreign else BUDGETS)[name]


ENOUGH_DIVERGENCES = 3
"""Random programs that may diverge from the reference before the search for more stops."""

OTHER_PROCESSES = 4
"""Random programs that are run in other processes besides the probes."""

SMALL_SCOPE = (1, 2, 3, 4)
WIDE_SCOPE = (5, 6, 8, 12, 16, 24, 32, 64)


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on one law.

    Attributes:
        law: the law.
        verdict: holds, violated, undetermined or not applicable.
        met: how often the law's condition was met.
        note: why it is not applicable or undetermined; empty otherwise.
        finding: what shows the violation.
        blocked_by: of what is undetermined, a violation that may be why.
    """

    law: Law
    verdict: Verdict
    met: int
    note: str = ""
    finding: Finding[Any] | None = None
    blocked_by: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found.

    Attributes:
        subject: what was certified.
        budget: how much was run.
        seed: what all random choices came from.
        results: one for each law, in the order of the registry.
        calls: calls made on the subject in lockstep.
        events: events performed.
        found: the violated clauses in the order in which they were found.
        searches: of each small scope that was searched exhaustively, what came of it.
    """

    subject: Subject
    budget: Budget
    seed: int
    results: tuple[Result, ...]
    calls: int
    events: int
    found: tuple[str, ...] = ()
    searches: tuple[dict[str, Any], ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict over all laws."""
        return overall(result.verdict for result in self.results)

    @property
    def violations(self) -> tuple[Result, ...]:
        """The violated laws, the one that says most first.

        Violations that are likely to cause others stand first, then the others in the order in
        which they were found, which is from the basic to the specific.
        """
        broken = [result for result in self.results if result.verdict is Verdict.VIOLATED]
        return tuple(sorted(broken, key=self._rank))

    def _rank(self, result: Result) -> tuple[int, int]:
        name = result.law.clause.name
        if name in EXPLAIN_OTHERS:
            return 0, EXPLAIN_OTHERS.index(name)
        return 1, self.found.index(name)


EXPLAIN_OTHERS = (
    "determinism/same-calls-same-results",
    "instances/share-nothing",
    "keys/equal-is-same",
)
"""Violations that are likely to cause others."""


def certify(
    subject: Subject,
    budget: Budget,
    seed: int,
    progress: Callable[[str], None] = lambda line: None,
    *,
    without: frozenset[str] = frozenset(),
    course: Course | None = None,
    reached: Callable[[Course], None] = lambda course: None,
) -> Report:
    """Judge a subject by every law of its profiles, in this process.

    Args:
        subject: the policy, or the filter.
        budget: how much random search to do.
        seed: what all random choices come from.
        progress: told, now and then, what is going on.
        without: clauses that are not judged.
        course: where to go on, None from the start.
        reached: told after each unit of work how far the run has come.
    """
    course = Course() if course is None else course
    laws = tuple(law for law in laws_for(subject) if law.clause.name not in without)
    applicable = frozenset(law.clause.name for law in laws if law.excuse(subject) is None)
    search: _Search | FilterSearch
    if subject.profile == "reuse-filter":
        search = FilterSearch(subject, seed, progress, course)
    else:
        search = _Search(subject, budget, seed, progress, course, applicable)
    units = search.units(budget.programs, budget.events)
    for number, unit in enumerate(units):
        if number >= course.unit and not course.cut:
            unit()
            course.unit = number + 1
            reached(course)
    results = tuple(_result(law, subject, course) for law in laws)
    tally = course.tally
    return Report(
        *(subject, budget, seed, results, tally.calls, tally.events),
        tuple(course.found),
        tuple(course.searches),
    )


def _result(law: Law, subject: Subject, course: Course) -> Result:
    name = law.clause.name
    met = course.tally.met[name]
    finding = course.found.get(name)
    excuse = law.excuse(subject) or course.excused.get(name)
    if excuse is not None:
        return Result(law, Verdict.NOT_APPLICABLE, met, excuse)
    if finding is not None:
        return Result(law, Verdict.VIOLATED, met, finding=finding)
    note = course.clouded.get(name) or course.cut
    if not note and met == 0:
        note = "its condition was never met in this run"
    if not note:
        return Result(law, Verdict.HOLDS, met)
    blocked_by = next(iter(course.found), "")
    if blocked_by and met == 0:
        note += f", perhaps because {blocked_by} is violated"
    return Result(law, Verdict.UNDETERMINED, met, note, blocked_by=blocked_by)


class _Search:
    """The search for violations. What it finds goes into the course."""

    def __init__(
        self,
        subject: Subject,
        budget: Budget,
        seed: int,
        progress: Callable[[str], None],
        course: Course,
        applicable: frozenset[str],
    ) -> None:
        self.tally = course.tally
        self.found = course.found
        self._course = course
        self._subject = subject
        self._contract = replace(subject, profile="contract")
        self._budget = budget
        self._seed = seed
        self._progress = progress
        self._applicable = applicable
        self._twin_laws = tuple(
            name
            for name in LAWS
            if name in applicable and LAWS[name].kind == "twin" and not subject.randomized
        )
        self._has_reference = subject.profile in PROBES

    def units(self, programs: int, events: int) -> Iterator[Callable[[], None]]:
        """Yield the work, the basic things first, in units after each of which a run can stop.

        Args:
            programs: random programs to run in lockstep.
            events: events in each.
        """
        edition = self._subject.edition
        for probe in contract_probes(edition):
            yield partial(self._run_probe, self._contract, probe.trace(edition), None)
        for probe in PROBES[self._subject.profile](edition) if self._has_reference else ():
            yield partial(self._run_probe, self._subject, probe.trace(edition), probe.clause)
        for probe in twin_probes(edition):
            yield partial(self._run_twins_on, probe.trace(edition))
        if self._budget.sizes:
            yield self._count_cost
            yield self._watch_memory
        for number in range(programs):
            yield partial(self._run_program, number, events)
        for number in range(self._budget.twins if self._twin_laws else 0):
            yield partial(self._run_twins, number)
        if not self._subject.randomized:
            yield self._run_processes
        if self._budget.large:
            yield self._run_large
        if not self._subject.randomized and not self._subject.foreign:
            for scope, m, limit in self._budget.plan:
                yield partial(self._exhaust, scope, m, limit)
        for clause in LAWS:
            yield partial(self._shorten, clause)

    # --- probes ---

    def _run_probe(self, subject: Subject, trace: Trace, blamed: str | None) -> None:
        self._progress("probes")
        self._judge(JudgedRun(subject, trace, self.tally), blamed)

    def _judge(self, run: JudgedRun, blamed: str | None = None) -> bool:
        """Perform a run; return whether it diverged from the reference."""
        return self._take_in(run.live_all(), blamed)

    def _take_in(self, found: list[Finding], blamed: str | None = None) -> bool:
        """Keep what a lockstep run found; return whether it diverged from the reference."""
        for finding in found:
            if finding.clause != DIVERGED:
                self._keep(finding)
            elif blamed is not None or not self._policy_is_refuted():
                # Else the probes have said what is wrong.
                self._keep(replace(finding, clause=blamed or self._blamed(finding)))
        return any(finding.clause == DIVERGED for finding in found)

    def _policy_is_refuted(self) -> bool:
        return any(LAWS[clause].kind == "refinement" for clause in self.found)

    def _blamed(self, finding: Finding) -> str:
        """Return the most specific clause that a divergence, made short, puts to the test.

        A divergence says that something is wrong, not what. In a trace from which nothing can be
        left out, every clause whose condition is met has a part in it.
        """
        short = shrink.Shrinker(
            lockstep_experiment(self._subject), finding, foreign=self._subject.foreign
        ).reduce()
        met: Counter[str] = Counter()
        lockstep_experiment(self._subject, tally=Tally(met))(short.trace)
        probes = PROBES[self._subject.profile](self._subject.edition)
        clauses = list(dict.fromkeys(probe.clause for probe in probes))
        return next((name for name in reversed(clauses) if met[name]), clauses[0])

    def _keep(self, finding: Finding) -> None:
        """Keep the first finding of each clause."""
        if finding.clause in self._applicable:
            self.found.setdefault(finding.clause, finding)

    # --- random programs ---

    def _run_program(self, number: int, events: int) -> None:
        """Run a random program in lockstep; every other one is at small scope."""
        if self._course.diverged >= ENOUGH_DIVERGENCES:
            return
        if number % 10 == 0:
            self._progress(f"random programs {number}/{self._budget.programs}")
        rng, trace = self._scope(number)
        run = JudgedRun(self._subject, trace, self.tally, thorough=_is_small(trace))
        drive(run, rng, events)
        found = run.found
        if found and not _is_small(trace):
            # A closer look at the same events may see the fault where it happens.
            found = lockstep_experiment(self._subject)(found[-1].trace) or found
        self._course.diverged += self._take_in(found)

    def _run_twins(self, number: int) -> None:
        """Run a random program by twins, once for each twin law."""
        self._progress(f"twins {number}/{self._budget.twins}")
        self._run_twins_on(self._lived(-1 - number))

    def _run_twins_on(self, trace: Trace) -> None:
        for clause in self._twin_laws:
            for finding in twin_experiment(self._subject, clause, self.tally)(trace):
                self._keep(finding)

    def _run_processes(self) -> None:
        """Run the probes of the twins, and some random programs, in other processes."""
        self._progress("other processes")
        edition = self._subject.edition
        traces = [probe.trace(edition) for probe in twin_probes(edition)]
        traces += [self._lived(-1000 - number) for number in range(OTHER_PROCESSES)]
        try:
            for finding in processes.judge(self._subject, traces, self.tally):
                self._keep(finding)
        except Unusable as error:
            self._course.clouded.update(dict.fromkeys(processes.PROCESS_LAWS, str(error)))

    def _lived(self, number: int) -> Trace:
        """Return what happens in a random program."""
        rng, trace = self._scope(number)
        run = JudgedRun(self._contract, trace, Tally(Counter()), thorough=False)
        return trace.with_events(drive(run, rng, self._budget.events))

    def _scope(self, number: int) -> tuple[random.Random, Trace]:
        return scope_of(self._seed, number, self._subject.edition)

    # --- what is measured, what is large, and what is small enough for all of it ---

    def _count_cost(self) -> None:
        self._progress("cost")
        sizes = self._budget.sizes
        self._take_measure(cost.CLAUSE, lambda: cost.judge(self._subject, self.tally, sizes))

    def _watch_memory(self) -> None:
        self._progress("memory")
        self._take_measure(memory.CLAUSE, lambda: memory.judge(self._subject, self.tally))

    def _take_measure(self, clause: str, measure: Callable[[], Measured]) -> None:
        if clause not in self._applicable:
            return
        measured = measure()
        for finding in measured.findings:
            self._keep(finding)
        if measured.excuse is not None:
            self._course.excused[clause] = measured.excuse
        if measured.unclear is not None:
            self._course.clouded[clause] = measured.unclear

    def _run_large(self) -> None:
        self._progress("large capacities")
        self._take_in(large.judge(self._subject, self.tally, self._seed))

    def _exhaust(self, scope: Scope, m: int, limit: int) -> None:
        """Search a small scope, unless what is known already would make nothing of it."""
        if self._policy_is_refuted() or any(clause in self.found for clause in EXPLAIN_OTHERS):
            return
        self._progress(f"every sequence: capacity {scope.capacity}, {scope.keys} keys")
        # To ask for a state that does not keep its clause would change what is searched.
        offers = self._subject.offers_state and ASKING not in self.found
        subject = replace(self._subject, offers_state=offers)
        done = exhaustive.search(subject, scope, m, self.tally, limit)
        if done.snapshots == exhaustive.NO_SNAPSHOTS:
            return
        self._take_in(list(done.findings))
        self._course.searches.append(
            {
                "capacity": scope.capacity,
                "keys": scope.keys,
                "states": done.states,
                "transitions": done.transitions,
                "closed": done.closed,
                "depth": done.depth,
                "m": done.m,
                "snapshots": done.snapshots,
            }
        )

    # --- counterexamples ---

    def _shorten(self, clause: str) -> None:
        """Make what was found of a clause as short as it can be."""
        finding = self.found.get(clause)
        experiment = None if finding is None else experiment_for(self._subject, finding)
        if finding is None or experiment is None:
            return
        self._progress(f"shortening the trace for {clause}")
        short = shrink.Shrinker(experiment, finding, foreign=self._subject.foreign).reduce()
        if short.how == "lockstep":
            short = shrink.shortest(self._subject, short, experiment)
        self.found[clause] = short


def experiment_for(subject: Subject, finding: Finding) -> Experiment | None:
    """Return the experiment that finds a finding on a policy again.

    None if there is none, because the finding is as short as it gets.
    """
    if finding.how == "twin":
        return twins_experiment(subject, finding.clause)
    if finding.how == "lockstep":
        blamed = finding.clause if LAWS[finding.clause].kind == "refinement" else None
        return lockstep_experiment(subject, blamed)
    return None


def scope_of(seed: int, number: int, edition: Edition) -> tuple[random.Random, Trace]:
    """Draw the scope of a random program: capacity and groups, no events yet.

    Args:
        seed: what all random choices of a run come from.
        number: which program; those of even numbers are at small scope.
        edition: whose protocol it follows.

    Returns:
        Where the program's own choices come from, and the trace.
    """
    rng = random.Random(f"{seed}/{number}")
    capacity = rng.choice(SMALL_SCOPE if number % 2 == 0 else WIDE_SCOPE)
    return rng, Trace(edition, capacity, (), groups=rng.choice((1, 1, 2, 3)))


def _is_small(trace: Trace) -> bool:
    return trace.capacity <= SMALL_SCOPE[-1]


def drive(run: JudgedRun, rng: random.Random, events: int) -> list[Event]:
    """Drive a run by a random program; return what happened."""
    setting = run.lockstep.setting
    keys = 2 * setting.capacity + rng.randint(0, setting.capacity + 2)
    program = Program(rng, setting, keys)
    lived: list[Event] = []
    while len(lived) < events:
        lived.append(program.next(run.lockstep.state))
        answers = run.live(lived[-1])
        if answers is None:
            return lived
        for victims in answers:
            program.saw(victims)
    run.drain()
    return lived
