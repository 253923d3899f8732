"""Expected failures: a file that names the clauses a subject is known to break.

One clause a line; what follows a `#` is a comment. An expected violation does not fail the run. An
entry that does not fail is stale, and that is an error: the file says what is not so.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
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
    near = [clause for clause in CLAUSES if name in clause][:5] or get_close_matches(name, CLAUSES)
    hint = f"did you mean {', '.join(near)}?" if near else "cachelaw clauses lists them"
    return f"there is no clause {name!r}; {hint}"


def apply(data: Mapping[str, Any], expected: Mapping[str, str]) -> dict[str, Any]:
    """Hold a run against what was expected of it.

    Args:
        data: the report's data.
        expected: by clause, why it is expected to be violated.

    Returns:
        The data with the exit status that follows, under `status`: 1 if a law is violated that is
        not expected to be, or an entry is stale; else 3 if a law is undetermined; else 0. Each
        expected violation has the entry's comment under `expected_failure`, and `expectations`
        holds the entries whose clauses are not violated.
    """
    verdicts = {law["clause"]: law["verdict"] for law in data["laws"]}
    open_entries: list[dict[str, Any]] = []
    failed = undetermined = False
    for name in expected:
        verdict = verdicts.get(name)
        if verdict == Verdict.VIOLATED.value:
            continue
        if verdict == Verdict.UNDETERMINED.value:
            says = f"expected to fail, but undetermined: {name}"
            open_entries.append({"clause": name, "says": says, "stale": False})
            continue
        said = "holds" if verdict == Verdict.HOLDS.value else "is not applicable"
        why = "is not judged in this run" if verdict is None else said
        says = f"stale: {name} {why}; take it out of the file"
        open_entries.append({"clause": name, "says": says, "stale": True})
    for name, verdict in verdicts.items():
        undetermined |= verdict == Verdict.UNDETERMINED.value
        failed |= verdict == Verdict.VIOLATED.value and name not in expected
    status = EXIT_UNDETERMINED if undetermined else EXIT_CONFORMS
    if failed or any(entry["stale"] for entry in open_entries):
        status = EXIT_VIOLATED
    elif not any(verdict != Verdict.NOT_APPLICABLE.value for verdict in verdicts.values()):
        status = EXIT_UNDETERMINED
    laws = [
        {**law, "expected_failure": expected[law["clause"]]}
        if law["clause"] in expected and law["verdict"] == Verdict.VIOLATED.value
        else law
        for law in data["laws"]
    ]
    return {**data, "status": status, "laws": laws, "expectations": open_entries}
