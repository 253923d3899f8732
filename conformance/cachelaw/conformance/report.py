"""Reports: what a run found, as text for people and as plain data for programs.

Everything the text says is in the data. What a verdict means is said in `verdict.py` alone.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cachelaw.conformance.certify import Report, Result
from cachelaw.conformance.replay import calls_heading, rows, scope
from cachelaw.conformance.verdict import Verdict, exit_status

FORMAT = 1
"""Version of the JSON report's form."""

SHOWN_BY = {
    "twin": "twins: two instances, the same events, one disturbed",
    "process": "two processes: a new instance in each, the same events",
}

STYLES = {
    Verdict.HOLDS: "green",
    Verdict.VIOLATED: "bold red",
    Verdict.UNDETERMINED: "yellow",
    Verdict.NOT_APPLICABLE: "dim",
}


def as_json(report: Report) -> dict[str, Any]:
    """Return a report as plain data."""
    subject = report.subject
    return {
        "format": FORMAT,
        "cachelaw": version("cachelaw"),
        "subject": subject.name,
        "edition": subject.edition.name,
        "fits": [edition.name for edition in subject.fits],
        "profiles": profiles_of(report),
        "declared": {"randomized": subject.randomized, "may_refuse": subject.may_refuse},
        "budget": report.budget.name,
        "seed": report.seed,
        "calls": report.calls,
        "events": report.events,
        "verdict": report.verdict.value,
        "status": exit_status(report.verdict),
        "violations": [result.law.clause.name for result in report.violations],
        "laws": [_law_as_json(report, result) for result in report.results],
    }


def _law_as_json(report: Report, result: Result) -> dict[str, Any]:
    data: dict[str, Any] = {
        "clause": result.law.clause.name,
        "statement": result.law.clause.statement,
        "read": result.law.clause.where,
        "kind": result.law.kind,
        "verdict": result.verdict.value,
        "met": result.met,
    }
    if result.note:
        data["note"] = result.note
    if result.finding is not None:
        finding = result.finding
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
                for row in rows(report.subject, finding)
            ],
        }
    return data


def write_json(report: Report, path: Path) -> None:
    """Write a report as JSON.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(json.dumps(as_json(report), indent=2) + "\n", encoding="utf-8")


def profiles_of(report: Report) -> list[str]:
    """Return the profiles that the subject was judged by."""
    profile = report.subject.profile
    return [profile] if profile in ("contract", "reuse-filter") else ["contract", profile]


# --- Text ----------------------------------------------------------------------------------------


def show(report: Report, console: Console) -> None:
    """Print a report for people: the laws by topic, the counterexamples, the verdict."""
    subject = report.subject
    console.print(
        Text.assemble(
            ("cachelaw ", "bold"),
            (version("cachelaw"), "bold"),
            f"  {subject.name}  edition {subject.edition}  "
            f"profile {', '.join(profiles_of(report))}",
        )
    )
    others = [edition.name for edition in subject.fits if edition != subject.edition]
    if others:
        console.print(Text(f"its methods also fit hosts of {', '.join(others)}", style="dim"))
    console.print()
    _show_topics(report, console)
    for result in report.violations:
        console.print()
        _show_violation(report, result, console)
    console.print()
    _show_verdict(report, console)


def _show_topics(report: Report, console: Console) -> None:
    topics: dict[str, list[Result]] = {}
    for result in report.results:
        topics.setdefault(result.law.clause.name.split("/")[0], []).append(result)
    width = max(map(len, topics), default=0)
    for topic, results in topics.items():
        counts = Counter(result.verdict for result in results)
        line = Text(f"  {topic:<{width}}  ")
        said = [
            (f"{counts[verdict]} {verdict.value}", STYLES[verdict])
            for verdict in Verdict
            if counts[verdict]
        ]
        for at, (words, style) in enumerate(said):
            line.append(" · " if at else "").append(words, style=style)
        console.print(line)
        for result in results:
            name = result.law.clause.name
            if result.verdict is Verdict.VIOLATED:
                console.print(Text(f"      violated: {name}", style=STYLES[result.verdict]))
            elif result.verdict is not Verdict.HOLDS:
                words = f"      {result.verdict.value}: {name} ({result.note})"
                console.print(Text(words, style=STYLES[result.verdict]))


def _show_violation(report: Report, result: Result, console: Console) -> None:
    clause, finding = result.law.clause, result.finding
    assert finding is not None
    console.print(Text.assemble(("VIOLATED ", STYLES[Verdict.VIOLATED]), (clause.name, "bold")))
    console.print(Text(f"  {clause.statement}"))
    console.print()
    for line in scope(finding.trace):
        console.print(Text(f"  {line}"))
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "event", calls_heading(finding.trace), "answer"):
        table.add_column(heading, overflow="fold")
    shown = rows(report.subject, finding)
    for number, row in enumerate(shown, 1):
        last = number == len(shown)
        table.add_row(
            Text(f"  {number}"),
            Text(row.event),
            Text(", ".join(row.calls)),
            Text(row.actual, style=STYLES[Verdict.VIOLATED] if last else ""),
        )
    console.print(table)
    console.print(Text(f"  expected: {finding.expected}"))
    console.print(Text(f"  actual:   {finding.actual}", style=STYLES[Verdict.VIOLATED]))
    if finding.how in SHOWN_BY:
        console.print(Text(f"  shown by {SHOWN_BY[finding.how]}"))
    console.print(Text(f"  {_how_short(report, result)}", style="dim"))
    console.print(Text(f"  read {clause.where} or run: cachelaw clauses {clause.name}"))


def _how_short(report: Report, result: Result) -> str:
    assert result.finding is not None
    count = len(result.finding.trace.events)
    if count == 0:
        return "the construction alone shows it"
    events = "1 event" if count == 1 else f"{count} events"
    if result.finding.shortest:
        return f"{events}: a breadth-first search at this scope found no shorter trace"
    return f"{events}: made short by delta debugging; a shorter trace may exist"


def _show_verdict(report: Report, console: Console) -> None:
    counts = Counter(result.verdict for result in report.results)
    tally = ", ".join(
        f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]
    )
    effort = f"{report.calls:,} calls, budget {report.budget.name}, seed {report.seed}"
    words = {
        Verdict.HOLDS: "conforms",
        Verdict.VIOLATED: "does not conform",
        Verdict.UNDETERMINED: "undetermined",
    }[report.verdict]
    console.print(
        Text.assemble(
            (f"{report.subject.name} {words}", STYLES[report.verdict]),
            f"  ({tally}; {effort})",
        )
    )
