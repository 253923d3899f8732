"""The part of `specs/editions.md` that shows the shortest program for each difference of editions.

The programs are on record (`evidence.py`, section *differences*), found by the product of the two
editions' cores; the victims are read from the stored vectors of the difference, one for each side.
"""

from __future__ import annotations

import json
from typing import Any

from tests.assurance.faults import ROOT

PAGE = ROOT / "specs" / "editions.md"
VECTORS = ROOT / "specs" / "cachelaw" / "specs" / "vectors"

BEGINS = "<!-- shortest programs: made by tests/assurance/shortest.py -->"
ENDS = "<!-- end -->"


def sides() -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return the vectors of differences, by policy, edition and the edition it is told from."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in sorted(VECTORS.rglob("*.json")):
        if "itf" in path.parts:
            continue
        for vector in json.loads(path.read_text(encoding="utf-8")):
            if vector["kind"] == "edition-difference":
                found[vector["profile"], vector["edition"], vector["other"]] = vector
    return found


def victims(vector: dict[str, Any]) -> str:
    """Say what a right policy answers to the evictions of a vector."""
    said = []
    for step in vector["steps"]:
        if step["call"] == "evict":
            answer = step["answer"]
            said.append("refuses" if answer is None else " ".join(map(str, answer)))
    return ", then ".join(said)


def block(differences: list[dict[str, Any]]) -> str:
    """Return the two lists: pairs of editions that differ, and pairs that are alike.

    Args:
        differences: as on record: policy, the two editions, steps, and the extent of the search.
    """
    stored, lines, alike = sides(), [], []
    for each in differences:
        policy, older, newer = each["policy"], each["older"], each["newer"]
        if not each["steps"]:
            alike.append(f"- {policy} {older} and {newer}: {each['extent']}")
            continue
        ours, theirs = stored[policy, older, newer], stored[policy, newer, older]
        vectors = "<br>".join(f"`{vector['id']}`" for vector in (ours, theirs))
        for vector in (ours, theirs):
            if vector["scope"]["events"] != len(each["steps"]):
                raise ValueError(f"{vector['id']} is not the shortest program on record")
        cells = (
            f"{policy} {older}, {newer}",
            "; ".join(each["steps"]),
            victims(ours),
            victims(theirs),
            vectors,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(
        [
            "| Editions | Shortest program | The older evicts | The newer evicts | Vectors |",
            "|---|---|---|---|---|",
            *lines,
            "",
            "The other neighbours are alike in all that leaves, at these scopes and no further:",
            "",
            *alike,
        ]
    )


def rewritten(text: str, differences: list[dict[str, Any]]) -> str:
    """Return the page with its block brought up to date."""
    head, begins, rest = text.partition(BEGINS)
    _, ends, tail = rest.partition(ENDS)
    if not begins or not ends:
        raise ValueError(f"specs/editions.md has no block between {BEGINS} and {ENDS}")
    return f"{head}{BEGINS}\n\n{block(differences)}\n\n{ENDS}{tail}"
