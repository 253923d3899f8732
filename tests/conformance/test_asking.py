"""Subjects that are asked for their state, and what they may do then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.right import Fifo

from cachelaw.conformance import flight
from cachelaw.conformance.certify import BUDGETS, certify
from cachelaw.conformance.finding import twin_experiment
from cachelaw.conformance.probes import twin_probes
from cachelaw.conformance.subject import Wanted, resolve
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trial import replayed
from cachelaw.conformance.verdict import Verdict

ASKING = "tests.conformance.asking"
CLAUSE = "state/no-side-effect"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Property", "cachelaw_state raised RuntimeError: no state today"),
        ("Leaves", "cachelaw_state raised SystemExit: 3"),
        ("RarelySilent", "cachelaw_state raised RuntimeError: no state for this"),
    ],
)
def test_who_cannot_be_asked_breaks_the_clause(name: str, says: str) -> None:
    report = certify(resolve(f"{ASKING}:{name}"), BUDGETS["quick"], seed=1)
    (broken,) = report.violations
    assert broken.law.clause.name == CLAUSE and broken.finding is not None
    assert broken.finding.actual == says


def test_a_state_that_cannot_be_gone_through_is_not_searched_by() -> None:
    report = certify(resolve(f"{ASKING}:Deep"), BUDGETS["quick"], seed=1)
    assert report.verdict is Verdict.HOLDS
    assert {search["snapshots"] for search in report.searches} == {"pickle"}


def test_each_asking_is_a_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To be a little slow with each answer is no hanging."""
    flight.make(tmp_path / "flight")
    recorder = flight.Recorder(tmp_path / "flight")
    monkeypatch.setattr(flight, "recorder", recorder)
    seen: list[int] = []

    class Asked(Fifo):
        def cachelaw_state(self) -> Any:
            seen.append(recorder._beats)
            return tuple(self.chunks)

    subject = resolve("tests.conformance.right:Fifo")
    trace = next(twin_probes(subject.edition)).trace(subject.edition)
    asked = replace(subject, build=Asked, offers_state=True)
    assert twin_experiment(asked, CLAUSE)(trace) == []
    assert len(seen) > 50
    assert max(seen.count(beats) for beats in set(seen)) <= 2  # the last one, and once at the end


def test_who_offers_no_state_any_more_is_mended() -> None:
    report = certify(resolve(f"{ASKING}:Property"), BUDGETS["quick"], seed=1)
    finding = report.violations[0].finding
    assert finding is not None
    job = {
        "wanted": Wanted("tests.conformance.right:Fifo").as_json(),
        "clause": CLAUSE,
        "trace": finding.trace.as_json(),
        "found_by": "twin",
    }
    assert replayed(job, Limits())["outcome"] == "fixed"
