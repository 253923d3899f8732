"""The store: counterexamples that were found on this machine, to be run again by their id.

Each is one JSON file in a folder of the user's, named after its id. The id is a hash of what the
counterexample says, so that the same one found twice is one file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cachelaw.conformance.certificate import portable, read_json
from cachelaw.conformance.script import from_anywhere
from cachelaw.conformance.subject import Unusable

FORMAT = 1
"""Version of the form of a stored counterexample."""

LENGTH = 10
"""Hex digits of an id."""

LEAST = 4
"""Hex digits that suffice to name one, if no other begins with them."""


def counterexample_id(data: Mapping[str, Any], clause: str, shown: Mapping[str, Any]) -> str:
    """Return the id of a counterexample.

    It depends on the subject's name without its folder, on what it was judged as, and on the
    trace; not on where or when it was found.

    Args:
        data: the report's data.
        clause: the clause that it breaks.
        shown: the counterexample.
    """
    said = {
        "subject": portable(data["subject"]),
        "host": data["host"],
        "parameters": dict(data["parameters"]),
        "profiles": list(data["profiles"]),
        "clause": clause,
        "found_by": shown["found_by"],
        "trace": shown["trace"],
    }
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:LENGTH]


def folder() -> Path:
    """Return the folder of the store, which need not exist.

    It is `counterexamples` in $CACHELAW_STATE, else in `cachelaw` in $XDG_STATE_HOME, else in
    ~/.local/state/cachelaw.

    Raises:
        Unusable: there is no home folder.
    """
    if given := os.environ.get("CACHELAW_STATE"):
        return Path(given).expanduser() / "counterexamples"
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "cachelaw" / "counterexamples"
    try:
        return Path.home() / ".local" / "state" / "cachelaw" / "counterexamples"
    except RuntimeError:
        raise Unusable(
            "there is no home folder to keep counterexamples in: set CACHELAW_STATE to a folder"
        ) from None


def entries(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the counterexamples of a report, each as one that can stand alone."""
    return [
        {
            "format": FORMAT,
            "id": law["counterexample"]["id"],
            "cachelaw": data["cachelaw"],
            "subject": _lasting(data["subject"]),
            "host": data["host"],
            "parameters": dict(data["parameters"]),
            "edition": data["edition"],
            "profile": data["profiles"][-1],
            "declared": sorted(name for name, said in data["declared"].items() if said),
            "clause": law["clause"],
            "statement": law["statement"],
            "read": law["read"],
            "kind": law["kind"],
            "counterexample": law["counterexample"],
        }
        for law in data["laws"]
        if "counterexample" in law
    ]


def _lasting(name: str) -> str:
    """Return a subject's name as it can be found from any folder."""
    place, colon, attribute = name.rpartition(":")
    return f"{Path(place).absolute()}{colon}{attribute}" if place.endswith(".py") else name


def keep(data: Mapping[str, Any]) -> str | None:
    """Store the counterexamples of a report.

    Returns:
        None; or why they could not be stored, in one line.
    """
    try:
        place = folder()
        found = entries(data)
        if found:
            place.mkdir(parents=True, exist_ok=True)
        for entry in found:
            text = entry["counterexample"].get("reproduction", {}).get("text")
            if text is not None:
                _write(place / f"{entry['id']}.py", from_anywhere(text, data["subject"]))
            _write(place / f"{entry['id']}.json", json.dumps(entry, indent=1) + "\n")
    except Unusable as error:
        return str(error)
    except OSError as error:
        return f"counterexamples cannot be stored in {place}: {error.strerror}"
    return None


def _write(path: Path, text: str) -> None:
    """Write a file at once or not at all: another run may write the same one."""
    written = path.with_name(f".{path.name}.{os.getpid()}")
    written.write_text(text, encoding="utf-8")
    written.replace(path)


def reproduction_path(name: str) -> Path | None:
    """Return the file that holds a counterexample's reproduction; None if none is stored."""
    try:
        path = folder() / f"{name}.py"
        return path if path.is_file() else None
    except (Unusable, OSError):
        return None


def stored() -> list[dict[str, Any]]:
    """Return all counterexamples in the store, the latest first; files that are none are skipped.

    Raises:
        Unusable: the store cannot be read.
    """
    made: list[tuple[float, dict[str, Any]]] = []
    try:
        for path in folder().glob("*.json"):
            try:
                (entry,) = load(path)
            except (Unusable, ValueError):
                continue
            made.append((path.stat().st_mtime, entry))
    except OSError as error:
        raise Unusable(f"{folder()} cannot be read: {error.strerror}") from None
    return [entry for _, entry in sorted(made, key=lambda item: (-item[0], item[1]["id"]))]


def find(name: str) -> list[dict[str, Any]]:
    """Find counterexamples: one by its id, or all in a file.

    Args:
        name: an id or how one begins; or a report, or a stored counterexample.

    Raises:
        Unusable: there is none, or the beginning fits several.
    """
    if Path(name).is_file():
        return load(Path(name))
    if len(name) < LEAST or set(name) - set("0123456789abcdef"):
        raise Unusable(f"{name!r} is neither an id nor a file; cachelaw replay lists the ids")
    fitting = sorted(folder().glob(f"{name}*.json"))
    if not fitting:
        raise Unusable(f"no counterexample {name} is stored; cachelaw replay lists those there are")
    if len(fitting) > 1:
        ids = ", ".join(path.stem for path in fitting)
        raise Unusable(f"{name} is the beginning of {ids}: write more of it")
    return load(fitting[0])


def load(path: Path) -> list[dict[str, Any]]:
    """Read the counterexamples in a file.

    Args:
        path: a report, which may hold none, or a stored counterexample.

    Raises:
        Unusable: it is neither.
    """
    data = read_json(path)
    try:
        found = entries(data) if "laws" in data else [data]
        for entry in found:
            _ = entry["counterexample"]["trace"]["edition"], entry["counterexample"]["found_by"]
            _ = [entry[name] for name in ("id", "subject", "clause", "profile", "declared")]
    except (KeyError, TypeError, AttributeError, IndexError):
        raise Unusable(f"{path} holds neither a report nor a counterexample of cachelaw") from None
    if any(entry.get("format") != FORMAT for entry in found):
        raise Unusable(f"{path} has another format than {FORMAT}, which this cachelaw reads")
    return found
