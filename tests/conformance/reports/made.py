"""Reports to write down: of a right policy, of wrong ones of every kind, and of a hostile one."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from cachelaw.conformance import cost, memory
from cachelaw.conformance.certify import Budget, certify
from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.mutants.zoo import FILTERS, classes, subject_name
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.reports.data import as_json
from cachelaw.conformance.subject import Subject, resolve
from cachelaw.conformance.trace import Trace

MEASURED = frozenset({cost.CLAUSE, memory.CLAUSE})
"""Clauses that are judged by long runs, and are left out."""

SOME_SEARCH = Budget("quick", programs=8, events=60, twins=1)

HOSTILE = (
    "</script><script>alert(1)</script><img src=http://page.invalid/x onerror=x>'\"&\x1b[31m\x00"
)
"""What a subject may have put into its name, its answers and its output."""


def _agreed(subject: Subject, traces: Sequence[Trace], tally: Tally) -> Iterator[Finding]:
    """Stand for other processes that answer alike: three for each subject take too long."""
    tally.met.update(PROCESS_LAWS)
    return iter(())


@cache
def _made(name: str, declared: tuple[str, ...]) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cachelaw.conformance.processes.judge", _agreed)
        subject = resolve(name, declared=declared)
        return as_json(certify(subject, SOME_SEARCH, seed=1, without=MEASURED))


def made(name: str, *declared: str) -> dict[str, Any]:
    """Return the report of a subject, whose reproductions have not been run."""
    return copy.deepcopy(_made(name, declared))


def named(name: str) -> str:
    """Return how one writes a class of the zoo as a subject."""
    found = classes().get(name) or classes(FILTERS)[name]
    return subject_name(found)


def right() -> dict[str, Any]:
    """Return the report of a right policy."""
    return made(named("Fifo"))


def wrong() -> dict[str, Any]:
    """Return the report of a policy that evicts more than was asked for."""
    return made(named("WipesCache"))


def hostile() -> dict[str, Any]:
    """Return a report in which every text that a subject can influence attacks the reader."""
    data = wrong()
    data["subject"] = f"{HOSTILE}:X"
    data["host"] = f"vllm=={HOSTILE}"
    data["parameters"] = {"size": HOSTILE}
    data["printed"] = {"bytes": 9999, "start": HOSTILE}
    data["diagnosis"] = [{"reading": HOSTILE, "says": HOSTILE}]
    data["compatibility"][0] = {"edition": "v0.19", "runs": False, "breaks": HOSTILE}
    data["deaths"] = [
        {
            "clause": "call/valid-call-returns",
            "how": "lockstep",
            "says": HOSTILE,
            "again": False,
            "trace": None,
        }
    ]
    (law,) = (law for law in data["laws"] if law["verdict"] == "violated")
    law["expected_failure"] = HOSTILE
    found = law["counterexample"]
    found["expected"] = found["actual"] = HOSTILE
    found["reproduction"] = {"text": HOSTILE.partition("\x1b")[0], "outcome": HOSTILE}
    for row in found["rows"]:
        row["event"] = row["actual"] = HOSTILE
        row["calls"] = [HOSTILE]
    open_law = next(law for law in data["laws"] if law["verdict"] == "holds")
    open_law.update(verdict="not applicable", note=HOSTILE)
    data["certificate"]["subject"]["name"] = HOSTILE
    return data


def unexpected(data: dict[str, Any]) -> dict[str, Any]:
    """Return a report without the mark of an expected failure."""
    for law in data["laws"]:
        law.pop("expected_failure", None)
    return data
