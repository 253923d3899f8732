"""Read what is on record of runs, without what it takes to run them again (`evidence.py`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cachelaw.conformance.explore.plan import Row

RECORD = Path(__file__).with_name("evidence.json")


def record() -> dict[str, Any]:
    """Return what is on record."""
    if not RECORD.exists():
        return {}
    read: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return read


def counted(row: Row) -> dict[str, Any]:
    """Return what of an exploration does not depend on the machine."""
    data = row.as_json()
    del data["seconds"], data["path"]
    return data


def on_record(policy: str, edition: str, alphabet: str, checks: str) -> dict[str, Any]:
    """Return the exploration on record of a policy of an edition."""
    wanted = (policy, edition, alphabet, checks)
    return next(
        row
        for row in record()["explorations"]["found"]
        if (row["policy"], row["edition"], row["alphabet"], row["checks"]) == wanted
    )
