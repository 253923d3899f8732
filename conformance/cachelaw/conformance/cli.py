"""The command line: `cachelaw certify`, `cachelaw clauses`, `cachelaw explore`."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from cachelaw.conformance import report as reports
from cachelaw.conformance.certify import BUDGETS, certify
from cachelaw.conformance.explore.command import add_explore
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.subject import PROFILES, Unusable, resolve
from cachelaw.conformance.verdict import EXIT_CONFORMS, EXIT_UNUSABLE, exit_status
from cachelaw.specs.clause import Clause
from cachelaw.specs.registry import CLAUSES

SUBJECT_HELP = (
    "package.module:Class, path/file.py:Class, or a release: vllm==0.29.0:arc, vllm==0.20.2:filter"
)

STATUS_HELP = """\
exit status:
  0  every applicable law of the claimed profiles holds
  1  a law is violated
  2  wrong usage, or the subject cannot be used
  3  no law is violated, but one is undetermined
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except Unusable as error:
        print(f"cachelaw: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        print("cachelaw: interrupted; nothing is known of what was not run", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read the output has enough
        return EXIT_CONFORMS
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
        choices=("randomized", "may_refuse"),
        help="say of the subject what its class does not say",
    )
    certifying.add_argument("--json", type=Path, metavar="F", help="write the report to F as JSON")
    certifying.set_defaults(run=_certify)

    clauses = commands.add_parser(
        "clauses",
        help="list the clauses, or explain one",
        description="List the clauses of the contract, or explain one.",
    )
    clauses.add_argument("name", nargs="?", metavar="NAME", help="such as evict/distinct")
    clauses.set_defaults(run=_clauses)

    add_explore(commands)
    return made


def _certify(options: argparse.Namespace) -> int:
    if options.json is not None and not options.json.parent.is_dir():
        raise Unusable(f"--json: there is no folder {options.json.parent}")
    console = Console(highlight=False, soft_wrap=False)
    progress = Console(stderr=True, highlight=False)
    with progress.status("loading the subject") as status:
        subject = resolve(
            options.subject,
            profile=options.profile,
            edition=None if options.edition == "auto" else options.edition,
            declared=options.declare,
            announce=progress.print,
        )
        report = certify(
            subject,
            BUDGETS[options.budget],
            options.seed,
            lambda line: status.update(f"{options.subject}: {line}"),
        )
        if report.violations:
            status.update("replaying")
    if options.json is not None:
        try:
            reports.write_json(report, options.json)
        except OSError as error:
            raise Unusable(f"--json: {options.json} cannot be written: {error.strerror}") from None
    reports.show(report, console)
    return exit_status(report.verdict)


def _clauses(options: argparse.Namespace) -> int:
    if options.name is None:
        for name in CLAUSES:
            print(name)
        return EXIT_CONFORMS
    clause = CLAUSES.get(options.name)
    if clause is None:
        near = [name for name in CLAUSES if options.name in name]
        hint = f"did you mean {', '.join(near[:5])}?" if near else "cachelaw clauses lists them"
        raise Unusable(f"there is no clause {options.name!r}; {hint}")
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
