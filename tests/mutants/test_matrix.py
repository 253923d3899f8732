"""What is on record of every mutant is so, is about the sources as they are, and explains all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants import matrix, trial
from cachelaw.conformance.mutants.trial import PROBES_ALONE, Candidate, staged
from cachelaw.conformance.subject import resolve

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("matrix.json")
PAGE = ROOT / "specs" / "mutants.md"

ROWS = matrix.read(RECORD)
BY_NAME = {row.trial.name: row for row in ROWS}
MADE = matrix.generated_candidates()
SOME = matrix.sample(MADE, 120, seed=2)


def test_the_record_is_of_the_mutants_that_there_are() -> None:
    """If not: `make mutants`."""
    there_are = [candidate.name for candidate in (*matrix.zoo_candidates(), *MADE)]
    assert [row.trial.name for row in ROWS] == there_are
    for row in ROWS:
        assert matrix.row_of(row.trial) == row


def test_there_are_enough_of_them() -> None:
    assert sum(row.kind == "zoo" for row in ROWS) >= 300
    assert len(MADE) >= 1000
    assert len({candidate.name for candidate in MADE}) == len(MADE)


def test_nothing_is_unexplained() -> None:
    assert [row.trial.name for row in ROWS if row.verdict == "unexplained"] == []
    assert all(row.reason for row in ROWS if row.verdict != "killed")
    assert all(row.verdict == "killed" for row in ROWS if row.kind == "zoo")


def test_every_law_kills_somebody() -> None:
    kills = {clause for row in ROWS for clause in row.trial.clauses}
    assert set(LAWS) <= kills


def test_the_page_says_what_is_on_record() -> None:
    page = PAGE.read_text(encoding="utf-8")
    ran = page.partition("## What came of it\n\n")[2].partition("\n")[0]
    assert page == matrix.markdown(ROWS, ran)
    assert ran


@pytest.mark.parametrize("candidate", SOME, ids=lambda candidate: candidate.name)
def test_a_mutant_fares_as_is_on_record(candidate: Candidate) -> None:
    """Of some of the generated mutants, as far as the probes go; of the zoo see `test_zoo.py`."""
    recorded = BY_NAME[candidate.name].trial
    if recorded.ended == trial.UNUSABLE:
        assert trial.tried(candidate).ended == trial.UNUSABLE
        return
    found = staged(candidate, resolve(candidate.subject), PROBES_ALONE)
    if recorded.stage == PROBES_ALONE.name:
        assert found == recorded
    else:
        assert not found.killed


@pytest.mark.deep
@pytest.mark.parametrize("candidate", MADE, ids=lambda candidate: candidate.name)
def test_every_mutant_fares_as_is_on_record(candidate: Candidate) -> None:
    assert trial.tried(candidate) == BY_NAME[candidate.name].trial
