"""Certificates: what a run says of a subject, in a form that another run can be compared with.

A certificate names the subject with the hashes of its sources, by what it was judged, how far the
search went, and the verdict on each clause. Its digest is over all of that. Times, paths and names
of machines are not in it: the same subject, run through the same suite again, has the same digest.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cachelaw.conformance.plain import plain
from cachelaw.conformance.subject import Unusable, Wanted
from cachelaw.conformance.verdict import EXIT_CONFORMS, EXIT_VIOLATED

FORMAT = 1
"""Version of the form of a certificate."""

Run = Callable[[dict[str, Any]], dict[str, Any]]
"""Certifies what a job says, and returns the data of the report. See `job_of`."""


def certificate(data: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """Return the certificate of a run.

    Args:
        data: the report's data (`reports/data.py`).
        sources: the files that define the subject, each with the SHA-256 of its contents.
    """
    made: dict[str, Any] = {
        "format": FORMAT,
        "suite": data["cachelaw"],
        "subject": {
            "name": portable(data["subject"]),
            "host": data["host"],
            "parameters": dict(data["parameters"]),
            "declared": dict(data["declared"]),
            "sources": dict(sources),
        },
        "edition": data["edition"],
        "profiles": list(data["profiles"]),
        "budget": data["budget"],
        "scopes": dict(data["scopes"]),
        "seed": data["seed"],
        "steps": {"calls": data["calls"], "events": data["events"]},
        "verdict": data["verdict"],
        "clauses": {law["clause"]: law["verdict"] for law in data["laws"]},
    }
    made["digest"] = digest(made)
    return made


def recertified(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the certificate of a run whose data have been completed since it was made."""
    return certificate(data, data["certificate"]["subject"]["sources"])


def digest(made: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of a certificate without its digest.

    It is that of the JSON in UTF-8 with sorted keys and no spaces.
    """
    said = {name: value for name, value in made.items() if name != "digest"}
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def portable(name: str) -> str:
    """Return a subject's name without the folders that its files lie in."""
    if name.startswith("exec:"):
        return "exec:" + " ".join(word.rpartition("/")[2] for word in name[5:].split(" "))
    place, colon, attribute = name.rpartition(":")
    return f"{Path(place).name}{colon}{attribute}" if place.endswith(".py") else name


# --- Verifying -----------------------------------------------------------------------------------


def job_of(made: Mapping[str, Any], subject: str) -> dict[str, Any]:
    """Return what to run in order to verify a certificate.

    Args:
        made: the certificate.
        subject: where its subject is to be found, as one writes it to `cachelaw certify`.

    Returns:
        `wanted`, which `Wanted(**wanted)` reads, the name of the `budget`, and the `seed`.
    """
    wanted = Wanted(
        subject,
        made["profiles"][-1],
        made["edition"],
        tuple(sorted(name for name, said in made["subject"]["declared"].items() if said)),
        made["subject"]["host"],
        values(made["subject"]["parameters"]),
    )
    return {"wanted": wanted.as_json(), "budget": made["budget"], "seed": made["seed"]}


def written(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Write the values of a constructor's parameters as text, which `values` reads back."""
    return {
        name: value if isinstance(value, str) and _value(value) == value else repr(value)
        for name, value in parameters.items()
    }


def values(parameters: Mapping[str, str]) -> dict[str, Any]:
    """Read the values of parameters: literals of Python, and what is none as it is written."""
    return {name: _value(text) for name, text in parameters.items()}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def differences(made: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """Yield what another certificate says otherwise, a line each.

    The number of steps of a subject that is declared randomized is nobody's promise; nor is the
    name under which a subject was found, if its sources are the same.

    Args:
        made: the certificate to be verified.
        other: the one that the run now left behind.
    """
    for name in ("suite", "edition", "profiles", "budget", "scopes", "seed"):
        if made[name] != other[name]:
            yield f"{name}: {_said(made[name])} then, {_said(other[name])} now"
    was, now = made["subject"], other["subject"]
    for name in ("host", "parameters", "declared"):
        if was[name] != now[name]:
            yield f"{name}: {_said(was[name])} then, {_said(now[name])} now"
    yield from _changes("source", was["sources"], now["sources"])
    if not was["declared"].get("randomized"):
        yield from _changes("steps", made["steps"], other["steps"])
    yield from _changes("clause", made["clauses"], other["clauses"])
    if made["verdict"] != other["verdict"]:
        yield f"verdict: {made['verdict']} then, {other['verdict']} now"


def _changes(what: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*was, *now]):
        if name not in now:
            yield f"{what} {name}: not there now"
        elif name not in was:
            yield f"{what} {name}: was not there then"
        elif was[name] != now[name]:
            yield f"{what} {name}: {_said(was[name])} then, {_said(now[name])} now"


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value[:12] + "..." if len(value) == 64 else value
    return json.dumps(value, sort_keys=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Read a certificate out of a file.

    Args:
        path: a certificate, or a whole report.

    Returns:
        The certificate, and the report it stands in, None if it stands alone.

    Raises:
        Unusable: there is none.
    """
    data = read_json(path)
    whole = data if "certificate" in data else None
    made = data if whole is None else whole["certificate"]
    if not isinstance(made, dict) or not _is_whole(made):
        raise Unusable(f"{path} is neither a certificate nor a report of cachelaw certify --json")
    if made["format"] != FORMAT:
        raise Unusable(f"{path} has format {made['format']}; this cachelaw reads format {FORMAT}")
    return made, whole


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object out of a file.

    Raises:
        Unusable: there is none.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Unusable(f"{path} is not JSON") from None
    if not isinstance(data, dict):
        raise Unusable(f"{path} holds no JSON object")
    return data


def _is_whole(made: Mapping[str, Any]) -> bool:
    """Say whether all that verifying looks at is there, in the form that `certificate` gives it."""
    form: dict[str, type | tuple[type, ...]] = {
        "format": int,
        "suite": str,
        "subject": dict,
        "edition": str,
        "profiles": list,
        "budget": str,
        "scopes": dict,
        "seed": int,
        "steps": dict,
        "verdict": str,
        "clauses": dict,
        "digest": str,
    }
    parts: dict[str, type | tuple[type, ...]] = {
        "name": str,
        "host": (str, type(None)),
        "parameters": dict,
        "declared": dict,
        "sources": dict,
    }
    return (
        all(isinstance(made.get(name), kind) for name, kind in form.items())
        and all(isinstance(made["subject"].get(name, 0), kind) for name, kind in parts.items())
        and bool(made["profiles"])
    )


def verify(
    made: Mapping[str, Any], whole: Mapping[str, Any] | None, subject: str | None, run: Run
) -> tuple[int, list[str]]:
    """Run what a certificate speaks of again, and compare.

    Args:
        made: the certificate.
        whole: the report it stands in, None if it stands alone.
        subject: where to find the subject; None: where the report or the certificate says.
        run: certifies.

    Returns:
        The exit status, 0 if it reproduces and 1 if not, and what to say.

    Raises:
        Unusable: the subject cannot be run.
    """
    if digest(made) != made["digest"]:
        return EXIT_VIOLATED, ["its digest is not that of what it says: it has been changed"]
    if whole is not None and recertified(whole)["digest"] != made["digest"]:
        return EXIT_VIOLATED, ["the report around it says otherwise than the certificate"]
    place = subject or (made["subject"]["name"] if whole is None else whole["subject"])
    try:
        again = run(job_of(made, place))["certificate"]
    except Unusable as error:
        hint = "; say where it is: cachelaw verify CERTIFICATE SUBJECT" if subject is None else ""
        raise Unusable(f"{error}{hint}") from None
    lines = list(differences(made, again))
    if lines:
        return EXIT_VIOLATED, ["does not reproduce:", *lines]
    return EXIT_CONFORMS, [f"reproduces: {made['verdict']}, digest {made['digest'][:16]}"]


STATUS_HELP = """\
exit status:
  0  the run says the same again
  1  it differs, or the certificate has been changed; one line a difference
  2  wrong usage, or the subject cannot be run
"""


def add_verify(commands: Any, run: Run) -> None:
    """Add the command `verify` to those of the command line.

    Args:
        commands: what `add_subparsers` returned.
        run: certifies.
    """
    adding: argparse.ArgumentParser = commands.add_parser(
        "verify",
        help="run what a certificate speaks of again, and compare",
        description="Run what a certificate speaks of again, and say whether it reproduces.",
        epilog=STATUS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    adding.add_argument(
        "certificate",
        type=Path,
        metavar="CERTIFICATE",
        help="a file: a certificate, or a report of cachelaw certify --json",
    )
    adding.add_argument(
        "subject",
        nargs="?",
        metavar="SUBJECT",
        help="where the subject is (default: where the certificate says)",
    )
    adding.set_defaults(run=lambda options: run_verify(options, run))


def run_verify(options: argparse.Namespace, run: Run) -> int:
    """Carry the command out; return the exit status.

    Raises:
        Unusable: there is no certificate, or its subject cannot be run.
    """
    made, whole = read(options.certificate)
    status, lines = verify(made, whole, options.subject, run)
    print("\n".join(map(plain, lines)))
    return status
