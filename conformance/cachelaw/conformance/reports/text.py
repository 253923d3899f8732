"""The report as text, for people: the laws by topic, the counterexamples, the verdict.

Good at 80 columns, in a pipe, and without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachelaw.conformance import store
from cachelaw.conformance.plain import plain
from cachelaw.conformance.reports import shown
from cachelaw.conformance.reports.shown import Data
from cachelaw.conformance.reproduction import FAILS, NOT_RUN
from cachelaw.conformance.verdict import Verdict

STYLES = {
    Verdict.HOLDS.value: "green",
    Verdict.VIOLATED.value: "bold red",
    Verdict.UNDETERMINED.value: "yellow",
    Verdict.NOT_APPLICABLE.value: "dim",
}

MOST_LINES = 36
"""Lines of a reproduction that is shown; longer ones are named."""


MOST_NAMED = 4
"""Clauses without a verdict that are named with the reason they share; more are counted."""


def show(data: Data, console: Console) -> None:
    """Print a report.

    Args:
        data: the report's data.
        console: where to; colours are its affair.
    """
    _Shown(data, console).show()


def show_editions(reports: Sequence[Data], console: Console) -> None:
    """Print what came of each edition, in a table.

    Args:
        reports: the data of a report for each edition.
        console: where to.
    """
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for heading in ("edition", "verdict", "status", "violated"):
        table.add_column(heading, overflow="fold")
    for data in reports:
        verdict = Text(data["verdict"], style=STYLES[data["verdict"]])
        violations = ", ".join(data["violations"])
        table.add_row(data["edition"], verdict, str(data["status"]), violations)
    console.print()
    console.print(table)


class _Shown:
    def __init__(self, data: Data, console: Console) -> None:
        self._data = data
        self._console = console

    def show(self) -> None:
        """Print all of it."""
        self._show_subject()
        self._line()
        self._show_topics()
        for at, law in enumerate(shown.violated(self._data)):
            self._line()
            self._show_violation(law, first=at == 0)
        self._show_diagnosis()
        self._line()
        self._show_verdict()

    def _show_subject(self) -> None:
        data = self._data
        said = [f"edition {data['edition']}", f"profile {', '.join(data['profiles'])}"]
        if data["host"]:
            said.append(f"host {data['host']}")
        said.extend(f"{name}={value}" for name, value in data["parameters"].items())
        said.extend(f"declared {name}" for name, declared in data["declared"].items() if declared)
        start = f"cachelaw {data['cachelaw']}"
        self._print(Text.assemble((start, "bold"), f"  {plain(data['subject'])}"))
        self._line(" · ".join(said))
        for line in (shown.hosts(data), shown.printed(data)):
            if line:
                self._line(line, style="dim")

    def _show_topics(self) -> None:
        """Count the verdicts by topic; name what is violated there, and the rest at the end."""
        topics = shown.topics(self._data)
        width = max(map(len, topics), default=0)
        for topic, laws in topics.items():
            line = Text(f"  {topic:<{width}}  ")
            for at, (verdict, count) in enumerate(shown.tally(laws)):
                line.append(" · " if at else "").append(f"{count} {verdict}", STYLES[verdict])
            self._print(line)
            self._show_violated(laws)
        self._show_unjudged()

    def _show_violated(self, laws: Sequence[Data]) -> None:
        """Name the laws of a topic that are violated; those for one reason in one line."""
        named: dict[tuple[str, str], list[str]] = {}
        for law in laws:
            if "expected_failure" in law:
                why = law["expected_failure"]
                key = "violated, as expected", f" ({why})" if why else ""
                named.setdefault(key, []).append(law["clause"])
            elif law["verdict"] == Verdict.VIOLATED.value:
                named.setdefault(("violated", ""), []).append(law["clause"])
        for (says, reason), clauses in named.items():
            self._line(f"{says}: {', '.join(clauses)}{reason}", 6, STYLES["violated"])

    def _show_unjudged(self) -> None:
        """Say what has no verdict, a line each reason: many clauses are counted, few are named."""
        open_laws: dict[tuple[str, str], list[str]] = {}
        for verdict in (Verdict.UNDETERMINED.value, Verdict.NOT_APPLICABLE.value):
            for law in self._data["laws"]:
                if law["verdict"] == verdict:
                    key = verdict, shown.note(self._data, law)
                    open_laws.setdefault(key, []).append(law["clause"])
        for (verdict, why), clauses in open_laws.items():
            if len(clauses) > MOST_NAMED:
                line = f"{len(clauses)} {verdict}: {why}"
            else:
                line = f"{verdict}: {', '.join(clauses)} ({why})"
            self._line(line, 2, STYLES[verdict])

    def _show_violation(self, law: Data, *, first: bool) -> None:
        found = law["counterexample"]
        self._print(Text.assemble(("VIOLATED ", STYLES["violated"]), (law["clause"], "bold")))
        self._line(law["statement"], indent=2)
        self._line()
        for line in shown.scope_lines(found):
            self._line(line, indent=2)
        self._console.print(Padding(self._table(found), (0, 0, 0, 2)))
        self._line(f"expected: {found['expected']}", indent=2)
        self._line(f"actual:   {found['actual']}", indent=2, style=STYLES["violated"])
        if found["found_by"] in shown.SHOWN_BY:
            self._line(f"shown by {shown.SHOWN_BY[found['found_by']]}", indent=2)
        self._line(shown.how_short(found), indent=2, style="dim")
        self._show_reproduction(found, first=first)
        self._line(f"once more: cachelaw replay {found['id']}", indent=2)
        where = f"read {law['read']} or run: cachelaw clauses {law['clause']}"
        self._line(where, indent=2)

    def _table(self, found: Data) -> Table:
        table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
        for heading in ("", "event", shown.heading_of_calls(found), "answer"):
            table.add_column(heading, overflow="fold")
        for number, row in shown.rows(found):
            if row is None:
                table.add_row("", Text(f"... {number} more events ...", style="dim"), "", "")
                continue
            last = number == len(found["rows"])
            table.add_row(
                Text(str(number)),
                Text(plain(row["event"])),
                Text(plain(", ".join(row["calls"]))),
                Text(plain(row["actual"]), style=STYLES["violated"] if last else ""),
            )
        return table

    def _show_reproduction(self, found: Data, *, first: bool) -> None:
        reproduction = found["reproduction"]
        if reproduction["text"] is None:
            self._line(f"reproduction: {reproduction['outcome']}", indent=2, style="dim")
            return
        outcome = reproduction["outcome"]
        style = "dim" if outcome in (FAILS, NOT_RUN) else STYLES["undetermined"]
        path = store.reproduction_path(found["id"])
        if path is not None:
            self._line(f"reproduction: python {_at_home(path)}", indent=2)
        self._line(f"it was run, and {outcome}" if outcome != NOT_RUN else outcome, 2, style)
        lines = shown.functions(reproduction).splitlines()
        if first and len(lines) <= MOST_LINES:
            self._line()
            for line in lines:
                self._console.print(Text(f"    {plain(line)}"), soft_wrap=True)
            self._line()
        elif path is None:
            self._line("its text is in the report of --json", indent=2, style="dim")

    def _show_diagnosis(self) -> None:
        if self._data["diagnosis"]:
            self._line()
        for reading in self._data["diagnosis"]:
            said = Text.assemble((f"DIAGNOSIS {plain(reading['reading'])} ", "bold"))
            self._print(said.append(plain(reading["says"])))

    def _show_verdict(self) -> None:
        data = self._data
        for line in shown.searches(data):
            self._line(line, style="dim")
        effort = f"{data['calls']:,} calls, budget {data['budget']}, seed {data['seed']}"
        said = f"{plain(data['subject'])} {shown.CONCLUSIONS[data['verdict']]}"
        tally = shown.tally_line(data)
        self._print(Text.assemble((said, STYLES[data["verdict"]]), f"  ({tally}; {effort})"))
        for line in shown.expectations(data):
            self._line(line, style=STYLES["violated"] if line.startswith("stale") else "")

    def _line(self, text: str = "", indent: int = 0, style: str = "") -> None:
        self._print(Text(plain(text), style=style), indent)

    def _print(self, text: Text, indent: int = 0) -> None:
        """Print text, wrapped and without spaces at the ends of lines."""
        for line in text.wrap(self._console, self._console.width - indent) or [Text()]:
            line.rstrip()
            self._console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def _at_home(path: Path) -> str:
    """Write a path shortly."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
