"""The report as SARIF 2.1.0, for code scanning: one result a violation, one rule a clause.

An entry of --expect that is stale is a result too, of a rule of its own.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/ says what each part means.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from cachelaw.conformance.reports import shown
from cachelaw.conformance.reports.shown import Data
from cachelaw.conformance.verdict import Verdict

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


STALE = "expectations/stale"
"""The rule of which a stale entry of --expect is a result."""


def write_sarif(data: Data, path: Path) -> None:
    """Write a report as SARIF.

    Args:
        data: the report's data.
        path: where to.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(json.dumps(as_sarif(data), indent=2) + "\n", encoding="utf-8")


def as_sarif(data: Data) -> dict[str, Any]:
    """Return a report as a SARIF log."""
    at = {law["clause"]: number for number, law in enumerate(data["laws"])}
    stale = shown.stale(data)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "cachelaw",
                        "version": data["cachelaw"],
                        "rules": [*map(_rule, data["laws"]), *([_stale_rule()] if stale else ())],
                    }
                },
                "invocations": [_invocation(data)],
                "columnKind": "unicodeCodePoints",
                "results": [
                    *(_result(data, law, at[law["clause"]]) for law in shown.violated(data)),
                    *(_stale_result(data, entry, len(at)) for entry in stale),
                ],
                "properties": {
                    "subject": data["subject"],
                    "edition": data["edition"],
                    "profiles": list(data["profiles"]),
                    "verdict": data["verdict"],
                    "budget": data["budget"],
                    "seed": data["seed"],
                    "digest": data["certificate"]["digest"],
                },
            }
        ],
    }


def _rule(law: Data) -> dict[str, Any]:
    topic, _, rule = law["clause"].partition("/")
    words = rule.replace("-", " ")
    return {
        "id": law["clause"],
        "name": "".join(map(str.capitalize, law["clause"].replace("/", "-").split("-"))),
        "shortDescription": {"text": f"{topic}: {words}."},
        "fullDescription": {"text": law["statement"]},
        "help": {
            "text": f"{law['statement']}\n\nRead {law['read']} or run: "
            f"cachelaw clauses {law['clause']}"
        },
        "defaultConfiguration": {"level": "error"},
    }


def _invocation(data: Data) -> dict[str, Any]:
    """Say how the run went; laws that it leaves open are notifications."""
    return {
        "executionSuccessful": True,
        "exitCode": data["status"],
        "toolExecutionNotifications": [
            {
                "level": "warning",
                "message": {"text": f"undetermined: {law['clause']} ({shown.note(data, law)})"},
                "associatedRule": {"id": law["clause"]},
            }
            for law in data["laws"]
            if law["verdict"] == Verdict.UNDETERMINED.value
        ],
    }


def _result(data: Data, law: Data, index: int) -> dict[str, Any]:
    found = law["counterexample"]
    events = "; ".join("..." if row is None else row["event"] for _, row in shown.rows(found))
    lines = [
        f"{data['subject']} breaks {law['clause']}: {law['statement']}",
        f"After: {events}.",
        f"Expected: {found['expected']}. Actual: {found['actual']}.",
        f"Once more: cachelaw replay {found['id']}",
    ]
    result: dict[str, Any] = {
        "ruleId": law["clause"],
        "ruleIndex": index,
        "level": "error",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(data)],
        "partialFingerprints": {"cachelaw/v1": found["id"]},
    }
    if "expected_failure" in law:
        suppression = {"kind": "external", "justification": law["expected_failure"]}
        result["suppressions"] = [suppression if law["expected_failure"] else {"kind": "external"}]
    return result


def _stale_rule() -> dict[str, Any]:
    says = "An entry of --expect names a clause that is not violated."
    return {
        "id": STALE,
        "name": "ExpectationsStale",
        "shortDescription": {"text": says},
        "help": {"text": f"{says} Take it out of the file."},
        "defaultConfiguration": {"level": "error"},
    }


def _stale_result(data: Data, entry: Data, index: int) -> dict[str, Any]:
    return {
        "ruleId": STALE,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": f"{data['subject']}: {entry['says']}"},
        "locations": [_location(data)],
        "partialFingerprints": {"cachelaw/v1": f"stale {entry['clause']}"},
    }


def _location(data: Data) -> dict[str, Any]:
    """Say where the subject is: its file as far as one is known, and its name."""
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": data["subject"]}]}
    uri = _uri(data)
    if uri is not None:
        # No line is to blame; viewers want one.
        location["physicalLocation"] = {
            "artifactLocation": {"uri": uri},
            "region": {"startLine": 1},
        }
    return location


def _uri(data: Data) -> str | None:
    place = data["subject"].rpartition(":")[0]
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_absolute():
            return PurePosixPath(path).as_posix()
        try:
            return path.relative_to(Path.cwd()).as_posix()
        except ValueError:
            return path.as_uri()
    sources = list(data["certificate"]["subject"]["sources"])
    own = place.replace(".", "/")
    return next((name for name in sources if name.startswith(own)), next(iter(sources), None))
