"""The command line: `cachelaw certify` and all other commands."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from cachelaw.conformance import expect, store
from cachelaw.conformance.certificate import add_verify, values
from cachelaw.conformance.certify import BUDGETS
from cachelaw.conformance.difference import add_diff
from cachelaw.conformance.explore.command import add_explore
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.replay import add_replay
from cachelaw.conformance.reports.data import write_json
from cachelaw.conformance.reports.html import write_html
from cachelaw.conformance.reports.junit import write_junit
from cachelaw.conformance.reports.sarif import write_sarif
from cachelaw.conformance.reports.text import show, show_editions
from cachelaw.conformance.subject import DECLARATIONS, PROFILES, Unusable, Wanted
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trial import certified, editions_that_run, replayed
from cachelaw.conformance.verdict import (
    EXIT_CONFORMS,
    EXIT_UNDETERMINED,
    EXIT_UNUSABLE,
    EXIT_VIOLATED,
)
from cachelaw.reference.editions import edition_named
from cachelaw.specs.clause import Clause
from cachelaw.specs.registry import CLAUSES

SUBJECT_HELP = (
    "package.module:Class, path/file.py:Class, a release, vllm==0.29.0:arc or vllm==0.20.2:filter, "
    "or exec:COMMAND, a program that speaks JSON lines (specs/INTERPRETING.md)"
)

LIMITS = Limits()

EXIT_FAULT = 70
"""The exit status where cachelaw itself is at fault (EX_SOFTWARE of sysexits.h)."""

STATUS_HELP = """\
exit status:
  0  every applicable law of the claimed profiles holds
  1  a law is violated
  2  wrong usage, or the subject cannot be used
  3  no law is violated, but one is undetermined
  70 cachelaw itself is at fault
  130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # of a terminal that cannot show all we print
    options = parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except Unusable as error:
        print(f"cachelaw: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        print("cachelaw: interrupted; nothing is known of what was not run", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has enough
        return EXIT_CONFORMS
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        where = f" in {error.filename}; TMPDIR names another folder" if error.filename else ""
        print(f"cachelaw: the output cannot be written: no space is left{where}", file=sys.stderr)
        os._exit(EXIT_UNUSABLE)  # what is still to be written cannot be written either
    except Exception:
        traceback.print_exc()
        print(
            "cachelaw: this is a fault of cachelaw, and says nothing of the subject",
            file=sys.stderr,
        )
        return EXIT_FAULT
    return status


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; `run` of its result carries the command out."""
    made = argparse.ArgumentParser(
        prog="cachelaw",
        description="The contract of vLLM's KV-cache eviction policies, and who keeps it.",
    )
    made.add_argument("--version", action="version", version=f"cachelaw {version('cachelaw')}")
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    certifying = commands.add_parser(
        "certify",
        help="judge a policy, or a reuse filter, by the contract",
        description="Judge a policy, or a reuse filter, by every law of the profiles it claims.",
        epilog=STATUS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    certifying.add_argument("subject", metavar="SUBJECT", help=SUBJECT_HELP)
    certifying.add_argument(
        "--profile",
        choices=PROFILES,
        help="what to judge it as (default: what the release or the class says, else contract)",
    )
    certifying.add_argument(
        "--edition",
        default="auto",
        metavar="EDITION",
        help="the contract to judge it by, such as v0.31 (default: auto, the newest that fits)",
    )
    certifying.add_argument(
        "--budget",
        choices=tuple(BUDGETS),
        default="standard",
        help="how much random search follows the probes (default: standard)",
    )
    certifying.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of all random choices (default: 1)"
    )
    certifying.add_argument(
        "--declare",
        action="append",
        default=[],
        choices=DECLARATIONS,
        help="say of the subject what its class does not say",
    )
    certifying.add_argument(
        "--host",
        metavar="vllm==X",
        help="a release whose modules the subject gets where it imports vllm",
    )
    certifying.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what its constructor is given besides the capacity; VALUE is a literal of Python, "
        "or else text",
    )
    certifying.add_argument(
        "--editions",
        metavar="all|LIST",
        help="judge it by each of these editions, such as v0.24,v0.31, or by all whose hosts could "
        "run it; the name of each file written gets that of the edition",
    )
    certifying.add_argument(
        "--time-limit",
        type=_positive,
        default=LIMITS.seconds,
        metavar="SECONDS",
        help="after which an event counts as a hang (default: %(default)g)",
    )
    certifying.add_argument(
        "--load-limit",
        type=_positive,
        default=LIMITS.loading,
        metavar="SECONDS",
        help="for being imported and made for the first time (default: %(default)g)",
    )
    certifying.add_argument(
        "--memory-limit",
        type=_positive,
        default=LIMITS.mebibytes,
        metavar="MIB",
        help="of resident memory that its process may take (default: %(default)g)",
    )
    certifying.add_argument(
        "--expect",
        type=Path,
        metavar="F",
        help="a file of clauses that it is known to break, one a line; an entry that does not "
        "fail is an error",
    )
    for name, (_, what) in WRITERS.items():
        certifying.add_argument(f"--{name}", type=Path, metavar="F", help=f"write {what} to F")
    certifying.set_defaults(run=_certify)

    clauses = commands.add_parser(
        "clauses",
        help="list the clauses, or explain one",
        description="List the clauses of the contract, or explain one.",
    )
    clauses.add_argument("name", nargs="?", metavar="NAME", help="such as evict/distinct")
    clauses.set_defaults(run=_clauses)

    add_verify(commands, _run_again)
    add_replay(commands, lambda job: replayed(job, LIMITS))
    add_diff(commands, LIMITS)
    add_explore(commands)
    return made


WRITERS: dict[str, tuple[Callable[[dict[str, Any], Path], None], str]] = {
    "json": (write_json, "the report as JSON, with a certificate,"),
    "junit": (write_junit, "a JUnit report, one test case a clause,"),
    "sarif": (write_sarif, "a SARIF report"),
    "html": (write_html, "the report as a page that needs nothing else"),
}
"""What can be written: by option, the writer, and what it writes."""


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def _certify(options: argparse.Namespace) -> int:
    _require_distinct(options)
    for name in WRITERS:
        path = getattr(options, name)
        if path is not None:
            _require_writable(name, path)
    expected = {} if options.expect is None else expect.read(options.expect)
    wanted = Wanted(
        options.subject,
        options.profile,
        None if options.edition == "auto" else options.edition,
        tuple(options.declare),
        options.host,
        _parameters(options.param),
    )
    limits = Limits(options.time_limit, int(options.memory_limit), options.load_limit)
    console = Console(highlight=False, soft_wrap=False)
    reports: list[dict[str, Any]] = []
    for one in _by_edition(wanted, options.editions, limits):
        data = _judged(one, options.budget, options.seed, limits)
        data = expect.apply(data, expected) if options.expect else data
        if reports:
            console.print()
        show(data, console)
        _write(data, options)
        reports.append(data)
    if len(reports) > 1:
        show_editions(reports, console)
    statuses = {data["status"] for data in reports}
    worst = (EXIT_VIOLATED, EXIT_UNDETERMINED, EXIT_CONFORMS)
    return next(status for status in worst if status in statuses)


def _require_writable(option: str, path: Path) -> None:
    """See that a file can be written, before a long run whose result would be lost."""
    if not path.parent.is_dir():
        raise Unusable(f"--{option}: there is no folder {path.parent}")
    there = path.exists()
    try:
        with path.open("ab"):
            pass
        if not there:
            path.unlink()
    except OSError as error:
        raise Unusable(f"--{option}: {path} cannot be written: {error.strerror}") from None


def _require_distinct(options: argparse.Namespace) -> None:
    """See that no two reports go to one file, of which only the last would be left."""
    taken: dict[Path, str] = {}
    for name in WRITERS:
        path = getattr(options, name)
        if path is None:
            continue
        other = taken.setdefault(path.resolve(), name)
        if other != name:
            raise Unusable(f"--{other} and --{name} name the same file: {path}")


def _by_edition(wanted: Wanted, editions: str | None, limits: Limits) -> list[Wanted]:
    """Return the subject as often as it is to be judged."""
    if editions is None:
        return [wanted]
    if wanted.edition is not None:
        raise Unusable("--edition and --editions say different things: leave one out")
    try:
        names = () if editions == "all" else editions.split(",")
        listed = [edition_named(name.strip()).name for name in names]
    except ValueError as error:
        raise Unusable(f"--editions: {error}") from None
    running = editions_that_run(wanted, limits)
    if editions == "all":
        return running
    chosen = [one for one in running if one.edition in listed]
    for name in listed:
        if name not in {one.edition for one in chosen}:
            fits = ", ".join(str(one.edition) for one in running)
            raise Unusable(f"--editions: {wanted.name} does not run on hosts of {name}; on {fits}")
    return chosen


def _judged(wanted: Wanted, budget: str, seed: int, limits: Limits) -> dict[str, Any]:
    """Certify a subject, with a line of progress on a terminal; keep its counterexamples."""
    progress = Console(stderr=True, highlight=False)
    with progress.status(f"{wanted.name}: loading") as status:
        data = certified(
            wanted,
            BUDGETS[budget],
            seed,
            limits,
            lambda line: status.update(f"{wanted.name}: {line}"),
            lambda line: progress.print(line, soft_wrap=True),
        )
    trouble = store.keep(data)
    if trouble is not None:
        print(f"cachelaw: {trouble}", file=sys.stderr)
    return data


def _run_again(job: dict[str, Any]) -> dict[str, Any]:
    """Certify what a certificate speaks of."""
    return _judged(Wanted(**job["wanted"]), job["budget"], job["seed"], LIMITS)


def _parameters(given: Sequence[str]) -> dict[str, Any]:
    texts: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise Unusable(f"--param: {text!r} is not NAME=VALUE")
        texts[name] = value
    return values(texts)


def _write(data: dict[str, Any], options: argparse.Namespace) -> None:
    for name, (write, _) in WRITERS.items():
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        if options.editions is not None:
            path = path.with_name(f"{path.stem}-{data['edition']}{path.suffix}")
        try:
            write(data, path)
        except OSError as error:
            raise Unusable(f"--{name}: {path} cannot be written: {error.strerror}") from None


def _clauses(options: argparse.Namespace) -> int:
    if options.name is None:
        for name in CLAUSES:
            print(name)
        return EXIT_CONFORMS
    clause = CLAUSES.get(options.name)
    if clause is None:
        raise Unusable(expect.unknown_clause(options.name))
    print(_explained(clause))
    return EXIT_CONFORMS


def _explained(clause: Clause) -> str:
    law = LAWS.get(clause.name)
    facts = {
        "editions": clause.editions,
        "modified": clause.modified,
        "profile": clause.profile or "none: it binds the host",
        "source": clause.source,
        "reason": clause.reason,
        "law": f"judged by {law.kind}" if law else f"none: {clause.no_law}",
        "read": clause.where,
    }
    wrap = textwrap.TextWrapper(78, break_on_hyphens=False, break_long_words=False)
    lines = [clause.name, "", wrap.fill(clause.statement), ""]
    wrap.initial_indent = wrap.subsequent_indent = " " * 11
    for fact, text in facts.items():
        if text:
            lines.append(f"{fact + ':':<11}{wrap.fill(text).lstrip()}")
    return "\n".join(lines)
