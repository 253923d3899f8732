"""Expected failures: a file that names the clauses a subject is known to break.

One clause a line; what follows a `#` is a comment. An expected violation does not fail the run. An
entry that does not fail is stale, and that is an error: the file says what is not so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachelaw.conformance.subject import Unusable
from cachelaw.conformance.verdict import (
    EXIT_CONFORMS,
    EXIT_UNDETERMINED,
    EXIT_VIOLATED,
    Verdict,
)
from cachelaw.specs.registry import CLAUSES


@dataclass(frozen=True, slots=True)
class Applied:
    """What expectations make of a run.

    Attributes:
        status: the exit status: 1 if a law is violated that is not expected to be, or an entry is
            stale; else 3 if a law is undetermined; else 0.
        lines: what there is to say, a line each.
        data: the report's data with that status; each expected violation has the entry's comment
            under `expected_failure`.
    """

    status: int
    lines: tuple[str, ...]
    data: dict[str, Any]


def read(path: Path) -> dict[str, str]:
    """Read a file of expected failures.

    Returns:
        The comment of each clause, empty if it has none.

    Raises:
        Unusable: it cannot be read, or names a clause that there is not, or one twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Unusable(f"--expect: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unusable(f"--expect: {path} is not UTF-8 text") from None
    expected: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, comment = (part.strip() for part in line.partition("#"))
        if not name:
            continue
        where = f"--expect: {path}, line {number}"
        if trouble := unknown_clause(name):
            raise Unusable(f"{where}: {trouble}")
        if name in expected:
            raise Unusable(f"{where}: {name} stands there twice")
        expected[name] = comment
    return expected


def unknown_clause(name: str) -> str:
    """Say that there is no clause of that name, and which may be meant; nothing if there is."""
    if name in CLAUSES:
        return ""
    near = [clause for clause in CLAUSES if name in clause][:3]
    hint = f"did you mean {', '.join(near)}?" if near else "cachelaw clauses lists them"
    return f"there is no clause {name!r}; {hint}"


def apply(data: Mapping[str, Any], expected: Mapping[str, str]) -> Applied:
    """Hold a run against what was expected of it.

    Args:
        data: the report's data.
        expected: by clause, why it is expected to be violated.
    """
    verdicts = {law["clause"]: law["verdict"] for law in data["laws"]}
    lines: list[str] = []
    stale = failed = undetermined = False
    for name in expected:
        verdict = verdicts.get(name)
        if verdict == Verdict.VIOLATED.value:
            continue
        if verdict == Verdict.UNDETERMINED.value:
            lines.append(f"expected to fail, but undetermined: {name}")
            continue
        stale = True
        said = "holds" if verdict == Verdict.HOLDS.value else "is not applicable"
        why = "is not judged in this run" if verdict is None else said
        lines.append(f"stale: {name} {why}; take it out of the file")
    for name, verdict in verdicts.items():
        undetermined |= verdict == Verdict.UNDETERMINED.value
        failed |= verdict == Verdict.VIOLATED.value and name not in expected
    count = sum(verdicts.get(name) == Verdict.VIOLATED.value for name in expected)
    if count:
        lines.insert(0, f"{count} violation{'s' if count > 1 else ''} expected")
    status = EXIT_UNDETERMINED if undetermined else EXIT_CONFORMS
    if failed or stale:
        status = EXIT_VIOLATED
    elif not any(verdict != Verdict.NOT_APPLICABLE.value for verdict in verdicts.values()):
        status = EXIT_UNDETERMINED
    laws = [
        {**law, "expected_failure": expected[law["clause"]]}
        if law["clause"] in expected and law["verdict"] == Verdict.VIOLATED.value
        else law
        for law in data["laws"]
    ]
    return Applied(status, tuple(lines), {**data, "status": status, "laws": laws})
