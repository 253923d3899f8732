"""What every form of a report says in the same words: scopes, hosts, tallies, how short a trace is.

All of it is made from the report's data. What a subject has put in there is somebody else's text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cachelaw.conformance.plain import counted, plain
from cachelaw.conformance.replay import calls_heading, scope
from cachelaw.conformance.verdict import Verdict

BUDGETS = ("quick", "standard", "deep")
"""The names of the budgets, from the smallest."""

NEVER_MET = "its condition was never met"
"""How the note of an undetermined law begins that more search may reach."""

CONCLUSIONS = {
    Verdict.HOLDS.value: "conforms",
    Verdict.VIOLATED.value: "does not conform",
    Verdict.UNDETERMINED.value: "undetermined",
}

SHOWN_BY = {
    "twin": "twins: two instances, the same events, one disturbed",
    "process": "two processes: a new instance in each, the same events",
    "death": "a process of its own, which came to its end",
    "cost": "calls of hash and comparison, counted over runs of growing size",
    "memory": "the size that is retained, measured over a long run",
}
"""By how a violation was found, what shows it, where that is not one run."""

Data = Mapping[str, Any]


def topics(data: Data) -> dict[str, list[Data]]:
    """Return the laws by the topic of their clause, in the order of the report."""
    found: dict[str, list[Data]] = {}
    for law in data["laws"]:
        found.setdefault(law["clause"].partition("/")[0], []).append(law)
    return found


def violated(data: Data) -> list[Data]:
    """Return the violated laws, the one that says most first."""
    laws = {law["clause"]: law for law in data["laws"]}
    return [laws[clause] for clause in data["violations"]]


def tally(laws: Sequence[Data]) -> list[tuple[str, int]]:
    """Return how many laws have each verdict, without those that none has."""
    counts = Counter(law["verdict"] for law in laws)
    return [(verdict.value, counts[verdict.value]) for verdict in Verdict if counts[verdict.value]]


def tally_line(data: Data) -> str:
    """Return the tally of all laws in one line."""
    return ", ".join(f"{count} {verdict}" for verdict, count in tally(data["laws"]))


def note(data: Data, law: Data) -> str:
    """Say why a law has no verdict, and of an undetermined one what may give it one."""
    said = str(law.get("note", ""))
    searching_helps = said.startswith(NEVER_MET) and not law.get("blocked_by")
    if law["verdict"] != Verdict.UNDETERMINED.value or not searching_helps:
        return said
    at = BUDGETS.index(data["budget"]) + 1 if data["budget"] in BUDGETS else 0
    if at == len(BUDGETS):
        return f"{said}; no budget searches further"
    return f"{said}; --budget {' or '.join(BUDGETS[at:])} searches further"


def expectations(data: Data) -> list[str]:
    """Say what became of the entries of --expect, a line each; nothing without that option."""
    count = sum("expected_failure" in law for law in data["laws"])
    met = [f"{counted(count, 'violation')} expected"] if count else []
    return met + [entry["says"] for entry in data.get("expectations", ())]


def stale(data: Data) -> list[Data]:
    """Return the entries of --expect that are stale, each of which fails a run."""
    return [entry for entry in data.get("expectations", ()) if entry["stale"]]


def scope_lines(counterexample: Data) -> list[str]:
    """Say at which scope a counterexample runs."""
    return scope(counterexample["trace"])


def heading_of_calls(counterexample: Data) -> str:
    """Say what the calls in a counterexample's rows are."""
    return calls_heading(counterexample["trace"])


def how_short(counterexample: Data) -> str:
    """Say how many events a counterexample has, and whether fewer would do."""
    count = len(counterexample["trace"]["events"])
    events = counted(count, "event")
    if counterexample["found_by"] == "memory":
        return f"{events}, of which the run repeats many"
    if counterexample["found_by"] == "cost":
        return f"{events} in the smallest run"
    if count == 0:
        return "the construction alone shows it"
    if counterexample["shortest"]:
        return f"{events}: a breadth-first search at this scope found no shorter trace"
    return f"{events}: made short by delta debugging; a shorter trace may exist"


MOST_CALLS = 12
"""Calls of one event that are shown; of more, the first and the last."""

_LONG_LIST = re.compile(r"((?:\b\d+,? ){4})(?:\d+,? ){9,}(\d+)")
"""Fourteen numbers in a row, or more."""

MOST_ROWS = 40
"""Rows of a counterexample that are shown; in the middle of a longer one some are left out."""


def rows(counterexample: Data) -> list[tuple[int, Data | None]]:
    """Return the rows to show, with their numbers; None stands for those that are left out.

    Long lists within them are cut short too. All of it is in the data.
    """
    numbered: list[tuple[int, Data | None]] = [
        (number, _brief(row)) for number, row in enumerate(counterexample["rows"], 1)
    ]
    if len(numbered) <= MOST_ROWS:
        return numbered
    head, tail = MOST_ROWS // 2, MOST_ROWS // 4
    return [*numbered[:head], (len(numbered) - head - tail, None), *numbered[-tail:]]


def _brief(row: Data) -> dict[str, Any]:
    calls = [_LONG_LIST.sub(r"\1... \2", call) for call in row["calls"]]
    if len(calls) > MOST_CALLS:
        left_out = len(calls) - 5
        calls = [*calls[:3], f"... {left_out} more calls ...", *calls[-2:]]
    texts = {
        name: _LONG_LIST.sub(r"\1... \2", row[name]) for name in ("event", "expected", "actual")
    }
    return {**texts, "calls": calls}


def told(law: Data) -> str:
    """Tell a violation in lines of text, as it is: a reader must escape what it cannot show."""
    found = law["counterexample"]
    width = max((len(row["event"]) for row in found["rows"]), default=0)
    lines = [law["statement"], "", *scope_lines(found)]
    for number, row in rows(found):
        if row is None:
            lines.append(f"     ... {number} more events ...")
            continue
        answer = f"  -> {row['actual']}" if row["actual"] else ""
        lines.append(f"{number:3}  {row['event']:<{width}}  {', '.join(row['calls'])}{answer}")
    lines += [f"expected: {found['expected']}", f"actual:   {found['actual']}"]
    if found["found_by"] in SHOWN_BY:
        lines.append(f"shown by {SHOWN_BY[found['found_by']]}")
    lines.append(how_short(found))
    lines.append(f"once more: cachelaw replay {found['id']}")
    lines.append(f"read {law['read']} or run: cachelaw clauses {law['clause']}")
    return "\n".join(lines)


def functions(reproduction: Data) -> str:
    """Return the part of a reproduction that is about this subject: the calls and the check."""
    text = str(reproduction["text"] or "")
    _, _, after = text.partition("\ndef make(")
    _, _, after = after.partition("\n\n\n")
    return after.partition("\nif __name__ ==")[0].strip("\n")


def printed(data: Data) -> str:
    """Say what the subject wrote to its output; empty if nothing."""
    size, start = data["printed"]["bytes"], data["printed"]["start"]
    if not size:
        return ""
    more = "" if len(start.encode()) >= size else " ..."
    return f"the subject printed {size:,} bytes: {plain(start.strip())[:200]}{more}"


# --- Hosts ---------------------------------------------------------------------------------------


def hosts(data: Data) -> str:
    """Say in one line on which hosts the subject runs and what breaks elsewhere."""
    rows = data["compatibility"]
    if not rows:
        return ""
    names = [row["edition"] for row in rows]
    if all(row["runs"] for row in rows):
        return f"runs on all hosts, {names[0]} to {names[-1]}"
    parts = []
    running = _ranges([row["runs"] is True for row in rows], names)
    parts.append(f"runs on hosts {', '.join(running)}" if running else "runs on no host")
    for state, words in ((False, "not on"), (None, "not known on")):
        reasons = dict.fromkeys(_reason(row) for row in rows if row["runs"] is state)
        broken = [
            f"{', '.join(_ranges([_is(row, state, why) for row in rows], names))} ({why})"
            for why in reasons
        ]
        if broken:
            parts.append(f"{words} {', '.join(broken)}")
    return "; ".join(parts)


def _is(row: Data, state: bool | None, why: str) -> bool:
    return row["runs"] is state and _reason(row) == why


def _reason(row: Data) -> str:
    """Return what breaks on a host, short and without the host's name."""
    said = plain(row["breaks"])
    called = re.fullmatch(r"hosts of \S+ call (\w+) with (\d+ arguments?), .*", said)
    if called is not None:
        return f"{called[1]} is called with {called[2]}"
    return re.sub(r"^it has no method", "no method", said)


def _ranges(chosen: Sequence[bool], names: Sequence[str]) -> list[str]:
    """Return runs of chosen names: `v0.24 to v0.30`."""
    made: list[str] = []
    at = 0
    while at < len(names):
        if not chosen[at]:
            at += 1
            continue
        end = at
        while end + 1 < len(names) and chosen[end + 1]:
            end += 1
        made.append(names[at] if end == at else f"{names[at]} to {names[end]}")
        at = end + 1
    return made


def searches(data: Data) -> Iterator[str]:
    """Yield a line for each small scope that was searched exhaustively."""
    for one in data["searches"]:
        sequences = f"every sequence of {counted(one['depth'], 'event')}"
        how_far = "closed" if one["closed"] else sequences
        states = counted(one["m"], "hidden state")
        up_to = f"m = {one['m']}: up to {states} of the subject for each state of the oracle"
        kept = "a true product" if one["snapshots"] == "state" else up_to
        yield (
            f"exhaustive at capacity {one['capacity']}, {counted(one['keys'], 'key')}: "
            f"{how_far}, {counted(one['transitions'], 'transition')}, {kept}"
        )
