"""The suite can fail: each policy of the zoo is rejected, and for what it breaks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from cachelaw.conformance import cost, shrink
from cachelaw.conformance.certify import Budget, Report, certify
from cachelaw.conformance.finding import lockstep_experiment, twin_experiment
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants.zoo import classes, mutants, subject_name
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.replay import rows
from cachelaw.conformance.subject import resolve
from cachelaw.conformance.twins import TWINS
from cachelaw.conformance.verdict import Verdict, exit_status

PROBES_ALONE = Budget("probes alone", programs=0, events=0, twins=0)
"""Nearly every mutant fails a probe, which is what probes are for."""

SOME_SEARCH = Budget("some search", programs=12, events=60, twins=1)
"""For those that say `needs_search`."""

LONGEST = 12
LONGER = {"MissesHeadFirst": 16}
"""Events of a counterexample that is short, and of those that need more."""


CLASSES = classes()
MUTANTS = mutants()
RIGHT = [name for name in CLASSES if name not in MUTANTS]


@cache
def certified(name: str) -> Report:
    """Certify a class of the zoo, without the search for a counterexample that is the shortest."""
    budget = SOME_SEARCH if getattr(CLASSES[name], "needs_search", False) else PROBES_ALONE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrink, "shortest", lambda subject, finding, experiment: finding)
        if getattr(CLASSES[name], "breaks", "") not in PROCESS_LAWS:
            # Three more interpreters for each of hundreds of subjects would take too long.
            patch.setattr("cachelaw.conformance.processes.judge", lambda *arguments: ())
        return certify(resolve(subject_name(CLASSES[name])), budget, seed=1)


@pytest.mark.parametrize("name", list(MUTANTS))
def test_a_wrong_policy_is_rejected_for_what_it_breaks(name: str) -> None:
    report = certified(name)
    violated = [result.law.clause.name for result in report.violations]
    assert violated[:1] == [MUTANTS[name].breaks]
    assert set(getattr(MUTANTS[name], "also", ())) <= set(violated)
    assert report.verdict is Verdict.VIOLATED
    assert exit_status(report.verdict) == 1

    first, subject = report.violations[0], report.subject
    finding, clause = first.finding, first.law.clause.name
    assert finding is not None
    assert 0 < len(finding.trace.events) <= LONGER.get(name, LONGEST)
    assert " at 0x" not in finding.expected + finding.actual
    # It is found again, at its last event, and can be shown.
    experiments = [lockstep_experiment(subject, clause)]
    if clause in TWINS:
        experiments.append(twin_experiment(subject, clause))
    if clause not in PROCESS_LAWS:
        again = [
            found
            for experiment in experiments
            for found in experiment(finding.trace)
            if found.clause == clause
        ]
        assert [found.trace.events for found in again[:1]] == [finding.trace.events]
        assert (again[0].expected, again[0].actual) == (finding.expected, finding.actual)
    shown = rows(subject, finding)
    assert len(shown) == len(finding.trace.events)
    assert (shown[-1].expected, shown[-1].actual) == (finding.expected, finding.actual)


@pytest.mark.parametrize("name", RIGHT)
def test_what_mutants_are_made_of_is_right(name: str) -> None:
    budget = replace(SOME_SEARCH, sizes=cost.SIZES)
    report = certify(resolve(subject_name(CLASSES[name])), budget, seed=1)
    assert report.verdict is Verdict.HOLDS, report.violations


def test_every_law_is_broken_first_by_some_mutant() -> None:
    first = {made.breaks for made in MUTANTS.values()}
    assert first <= set(LAWS)
    of_policies = {name for name, law in LAWS.items() if law.kind != "filter"}
    of_their_own = {"cost/linear", "memory/bounded-by-residents"}
    assert of_policies - first <= of_their_own


def test_every_mutant_says_what_it_does_wrong() -> None:
    for name, made in MUTANTS.items():
        said = vars(made).get("__doc__")
        assert said and "\n" not in said and said.endswith("."), name
        assert "breaks" in vars(made), name
