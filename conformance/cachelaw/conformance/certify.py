"""Certification: every law of the profiles that a subject claims, and a verdict on each.

First the directed probes, which meet every law's condition, by themselves and by twins; then random
programs at small and wide scope, as many as the budget says, and some of them by twins and in other
processes. What is found is made as short as it can be.
Policies are searched here, filters in `filters/`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cachelaw.conformance import processes, shrink
from cachelaw.conformance.filters.search import FilterSearch
from cachelaw.conformance.finding import (
    Experiment,
    Finding,
    JudgedRun,
    Tally,
    lockstep_experiment,
    twin_experiment,
)
from cachelaw.conformance.generate import Program
from cachelaw.conformance.laws import LAWS, Law, laws_for
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.probes import PROBES, contract_probes, twin_probes
from cachelaw.conformance.subject import Subject, Unusable
from cachelaw.conformance.trace import Event, Trace
from cachelaw.conformance.verdict import Verdict, overall


@dataclass(frozen=True, slots=True)
class Budget:
    """How much random search follows the probes. Counted in programs and events, not in seconds.

    Attributes:
        name: what the user calls it.
        programs: random programs run in lockstep.
        events: events in each.
        twins: random programs run by twins, once for each twin law.
    """

    name: str
    programs: int
    events: int
    twins: int


BUDGETS = {
    "quick": Budget("quick", 60, 150, 4),
    "standard": Budget("standard", 600, 300, 20),
    "deep": Budget("deep", 12_000, 400, 200),
}

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
    """

    law: Law
    verdict: Verdict
    met: int
    note: str = ""
    finding: Finding[Any] | None = None


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
    """

    subject: Subject
    budget: Budget
    seed: int
    results: tuple[Result, ...]
    calls: int
    events: int
    found: tuple[str, ...] = ()

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
) -> Report:
    """Judge a subject by every law of its profiles.

    Args:
        subject: the policy, or the filter.
        budget: how much random search to do.
        seed: what all random choices come from.
        progress: told, now and then, what is going on.
    """
    search: _Search | FilterSearch
    if subject.profile == "reuse-filter":
        search = FilterSearch(subject, seed, progress)
        search.run_probes()
        search.run_programs(budget.programs, budget.events)
    else:
        search = _Search(subject, budget, seed, progress)
        search.run_probes()
        search.run_programs()
        search.run_twins()
        search.run_processes()
    search.shorten()
    results = tuple(_result(law, subject, search) for law in laws_for(subject))
    tally = search.tally
    return Report(subject, budget, seed, results, tally.calls, tally.events, tuple(search.found))


def _result(law: Law, subject: Subject, search: _Search | FilterSearch) -> Result:
    name = law.clause.name
    met = search.tally.met[name]
    finding: Finding[Any] | None = search.found.get(name)
    excuse = law.excuse(subject)
    if excuse is not None:
        return Result(law, Verdict.NOT_APPLICABLE, met, excuse)
    if finding is not None:
        return Result(law, Verdict.VIOLATED, met, finding=finding)
    if name in search.clouded:
        return Result(law, Verdict.UNDETERMINED, met, search.clouded[name])
    if met == 0:
        return Result(law, Verdict.UNDETERMINED, met, "its condition was never met in this run")
    return Result(law, Verdict.HOLDS, met)


class _Search:
    """The search for violations, and what it has found so far."""

    def __init__(
        self, subject: Subject, budget: Budget, seed: int, progress: Callable[[str], None]
    ) -> None:
        self.tally = Tally(Counter())
        self.found: dict[str, Finding] = {}
        self.clouded: dict[str, str] = {}
        """Laws that the search leaves open, with the reason."""
        self._subject = subject
        self._budget = budget
        self._seed = seed
        self._progress = progress
        self._applicable = {
            law.clause.name for law in laws_for(subject) if law.excuse(subject) is None
        }
        self._twin_laws = tuple(
            law.clause.name
            for law in laws_for(subject)
            if law.kind == "twin" and law.excuse(subject) is None and not subject.randomized
        )
        self._experiments: dict[str, Experiment] = {}
        self._has_reference = subject.profile in PROBES

    # --- probes ---

    def run_probes(self) -> None:
        """Run the directed probes, the basic ones first."""
        self._progress("probes")
        edition = self._subject.edition
        contract = replace(self._subject, profile="contract")
        for probe in contract_probes(edition):
            self._judge(JudgedRun(contract, probe.trace(edition), self.tally))
        for probe in PROBES[self._subject.profile](edition) if self._has_reference else ():
            run = JudgedRun(self._subject, probe.trace(edition), self.tally)
            self._judge(run, blamed=probe.clause)
        for probe in twin_probes(edition):
            self._run_twins_on(probe.trace(edition))

    def _judge(self, run: JudgedRun, blamed: str | None = None) -> bool:
        """Perform a run; return whether it diverged from the reference."""
        return self._take_in(run.live_all(), blamed)

    def _take_in(self, found: list[Finding], blamed: str | None = None) -> bool:
        """Keep what a lockstep run found; return whether it diverged from the reference."""
        for finding in found:
            if finding.clause != DIVERGED:
                self._keep(finding, lockstep_experiment(self._subject))
                continue
            if blamed is None and self._policy_is_refuted():
                continue  # the probes have said what is wrong
            clause = blamed or self._blamed(finding)
            again = lockstep_experiment(self._subject, clause)
            self._keep(replace(finding, clause=clause), again)
        return any(finding.clause == DIVERGED for finding in found)

    def _policy_is_refuted(self) -> bool:
        return any(LAWS[clause].kind == "refinement" for clause in self.found)

    def _blamed(self, finding: Finding) -> str:
        """Return the most specific clause that a divergence, made short, puts to the test.

        A divergence says that something is wrong, not what. In a trace from which nothing can be
        left out, every clause whose condition is met has a part in it.
        """
        short = shrink.Shrinker(lockstep_experiment(self._subject), finding).reduce()
        met: Counter[str] = Counter()
        lockstep_experiment(self._subject, tally=Tally(met))(short.trace)
        probes = PROBES[self._subject.profile](self._subject.edition)
        clauses = list(dict.fromkeys(probe.clause for probe in probes))
        return next((name for name in reversed(clauses) if met[name]), clauses[0])

    def _keep(self, finding: Finding, experiment: Experiment | None) -> None:
        """Keep the first finding of each clause, with the experiment that finds it again.

        Without one, the finding is as short as it gets.
        """
        if finding.clause in self._applicable and finding.clause not in self.found:
            self.found[finding.clause] = finding
            if experiment is not None:
                self._experiments[finding.clause] = experiment

    # --- random programs ---

    def run_programs(self) -> None:
        """Run random programs in lockstep, half of them at small scope."""
        diverged = 0
        for number in range(self._budget.programs):
            if number % 10 == 0:
                self._progress(f"random programs {number}/{self._budget.programs}")
            rng, trace = self._scope(number)
            run = JudgedRun(self._subject, trace, self.tally, thorough=_is_small(trace))
            _drive(run, rng, self._budget.events)
            found = run.found
            if found and not _is_small(trace):
                # A closer look at the same events may see the fault where it happens.
                found = lockstep_experiment(self._subject)(found[-1].trace) or found
            diverged += self._take_in(found)
            if diverged == ENOUGH_DIVERGENCES:
                return

    def run_twins(self) -> None:
        """Run random programs by twins."""
        for number in range(self._budget.twins if self._twin_laws else 0):
            self._progress(f"twins {number}/{self._budget.twins}")
            rng, trace = self._scope(-1 - number)
            contract = replace(self._subject, profile="contract")
            run = JudgedRun(contract, trace, Tally(Counter()), thorough=False)
            self._run_twins_on(trace.with_events(_drive(run, rng, self._budget.events)))

    def run_processes(self) -> None:
        """Run the probes of the twins, and some random programs, in other processes."""
        if self._subject.randomized:
            return
        self._progress("other processes")
        edition = self._subject.edition
        traces = [probe.trace(edition) for probe in twin_probes(edition)]
        for number in range(OTHER_PROCESSES):
            rng, trace = self._scope(-1000 - number)
            contract = replace(self._subject, profile="contract")
            run = JudgedRun(contract, trace, Tally(Counter()), thorough=False)
            traces.append(trace.with_events(_drive(run, rng, self._budget.events)))
        try:
            for finding in processes.judge(self._subject, traces, self.tally):
                self._keep(finding, None)
        except Unusable as error:
            self.clouded.update(dict.fromkeys(processes.PROCESS_LAWS, str(error)))

    def _run_twins_on(self, trace: Trace) -> None:
        for clause in self._twin_laws:
            for finding in twin_experiment(self._subject, clause, self.tally)(trace):
                self._keep(finding, twin_experiment(self._subject, clause))

    def _scope(self, number: int) -> tuple[random.Random, Trace]:
        """Draw the scope of a random program: capacity and groups, no events yet."""
        rng = random.Random(f"{self._seed}/{number}")
        capacity = rng.choice(SMALL_SCOPE if number % 2 == 0 else WIDE_SCOPE)
        trace = Trace(self._subject.edition, capacity, (), groups=rng.choice((1, 1, 2, 3)))
        return rng, trace

    # --- counterexamples ---

    def shorten(self) -> None:
        """Make every finding as short as it can be."""
        for clause in self._experiments:
            finding = self.found[clause]
            self._progress(f"shortening the trace for {clause}")
            short = shrink.Shrinker(self._experiments[clause], finding).reduce()
            if short.how == "lockstep":
                short = shrink.shortest(self._subject, short, self._experiments[clause])
            self.found[clause] = short


def _is_small(trace: Trace) -> bool:
    return trace.capacity <= SMALL_SCOPE[-1]


def _drive(run: JudgedRun, rng: random.Random, events: int) -> list[Event]:
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
