"""The report as plain data: all that a run found, in a form that JSON can hold.

This is the only place where a `Report` and its subject are looked at. What is written for people
and for other programs is made from the data alone, so that a run may happen in another process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cachelaw.conformance import flight
from cachelaw.conformance.certificate import certificate, written
from cachelaw.conformance.certify import SMALL_SCOPE, WIDE_SCOPE, Report, Result
from cachelaw.conformance.replay import rows
from cachelaw.conformance.reproduction import reproduction
from cachelaw.conformance.sources import sources_of
from cachelaw.conformance.store import counterexample_id
from cachelaw.conformance.subject import DECLARATIONS, Subject, Wanted
from cachelaw.conformance.verdict import exit_status

FORMAT = 1
"""Version of the form of the data."""

NOTHING_PRINTED: Mapping[str, Any] = {"bytes": 0, "start": ""}


def as_json(
    report: Report,
    *,
    host: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    compatibility: Sequence[Mapping[str, Any]] | None = None,
    printed: Mapping[str, Any] = NOTHING_PRINTED,
    diagnosis: Sequence[Mapping[str, str]] = (),
    deaths: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a report as plain data.

    Reproductions are written but not run yet: `reproduction.run_all` does that.

    Args:
        report: what a run found, in the process that ran it.
        host: the release that supplied vllm's modules, `vllm==X`; None takes the subject's.
        parameters: what the constructor was given besides the capacity; None takes the subject's.
        compatibility: for each edition `edition`, `runs` (None where that is not known) and,
            where it does not, what `breaks`; None takes what the subject's signatures say.
        printed: what the subject wrote to its standard output and error: how many `bytes`, and
            the `start` of it.
        diagnosis: known readings of the policy that explain the violations: `reading`, and what it
            `says`.
        deaths: how the subject's process came to its end, if it did: in which `clause` that shows,
            `how` it was driven, what that `says`, whether it came about `again`, and the `trace`.
    """
    subject = report.subject
    wanted = subject.wanted or Wanted(subject.name)
    if compatibility is None:
        compatibility = [
            {"edition": row.edition.name, "runs": row.runs, "breaks": row.breaks}
            for row in subject.hosts
        ]
    given = wanted.parameters if parameters is None else parameters
    data: dict[str, Any] = {
        "format": FORMAT,
        "cachelaw": version("cachelaw"),
        "subject": subject.name,
        "host": host or wanted.host,
        "parameters": written(given),
        "edition": subject.edition.name,
        "fits": [edition.name for edition in subject.fits],
        "compatibility": [dict(row) for row in compatibility],
        "profiles": profiles_of(subject),
        "declared": {name: bool(getattr(subject, name)) for name in DECLARATIONS},
        "budget": report.budget.name,
        "scopes": _scopes(report),
        "seed": report.seed,
        "calls": report.calls,
        "events": report.events,
        "verdict": report.verdict.value,
        "status": exit_status(report.verdict),
        "searches": [dict(search) for search in report.searches],
        "violations": [result.law.clause.name for result in report.violations],
        "printed": dict(printed),
        "diagnosis": [dict(reading) for reading in diagnosis],
        "deaths": [dict(death) for death in deaths],
        "laws": [_law(subject, result) for result in report.results],
    }
    for law in data["laws"]:
        if "counterexample" in law:
            shown = law["counterexample"]
            law["counterexample"] = {"id": counterexample_id(data, law["clause"], shown), **shown}
    data["certificate"] = certificate(data, sources_of(subject))
    return data


def write_json(data: Mapping[str, Any], path: Path) -> None:
    """Write the data of a report as JSON.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def profiles_of(subject: Subject) -> list[str]:
    """Return the profiles that a subject is judged by."""
    profile = subject.profile
    return [profile] if profile in ("contract", "reuse-filter") else ["contract", profile]


def _scopes(report: Report) -> dict[str, Any]:
    """Return how much the budget searched, in numbers."""
    budget = report.budget
    scopes: dict[str, Any] = {"programs": budget.programs, "events": budget.events}
    if report.subject.profile != "reuse-filter":
        scopes["twins"] = budget.twins
        scopes["capacities"] = [*SMALL_SCOPE, *WIDE_SCOPE]
        scopes["cost"] = list(budget.sizes)
        scopes["large"] = budget.large
        scopes["exhaustive"] = [
            f"capacity {scope.capacity}, {scope.keys} keys, {scope.requests} requests, "
            f"batches of {scope.batch}, m {m}, {limit} transitions"
            for scope, m, limit in budget.plan
        ]
    return scopes


def _law(subject: Subject, result: Result) -> dict[str, Any]:
    flight.recorder.beat()
    clause, finding = result.law.clause, result.finding
    data: dict[str, Any] = {
        "clause": clause.name,
        "statement": clause.statement,
        "read": clause.where,
        "kind": result.law.kind,
        "verdict": result.verdict.value,
        "met": result.met,
    }
    if result.note:
        data["note"] = result.note
    if result.blocked_by:
        data["blocked_by"] = result.blocked_by
    if finding is not None:
        data["counterexample"] = {
            "trace": finding.trace.as_json(),
            "expected": finding.expected,
            "actual": finding.actual,
            "found_by": finding.how,
            "shortest": finding.shortest,
            "rows": [
                {
                    "event": row.event,
                    "calls": list(row.calls),
                    "expected": row.expected,
                    "actual": row.actual,
                }
                for row in rows(subject, finding)
            ],
            "reproduction": reproduction(subject, finding),
        }
    return data
