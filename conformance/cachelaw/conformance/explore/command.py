"""The command `cachelaw explore`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cachelaw.conformance.explore.calls import Scope
from cachelaw.conformance.explore.plan import (
    ALPHABETS,
    BENCHMARK,
    CHECKS,
    POLICIES,
    Difference,
    Row,
    benchmark,
    checks_of,
    differences,
    explore_policy,
    rows,
    scope_of,
)
from cachelaw.conformance.subject import Unusable
from cachelaw.reference.editions import EDITIONS, Edition, edition_named

EXIT_HOLDS = 0
EXIT_BROKEN = 1

EPILOG = """\
exit status:
  0  no invariant is broken, as far as the table says
  1  one is; a shortest way there is shown
  2  wrong usage
"""


def add_explore(commands: Any) -> None:
    """Add the command to those of the command line.

    Args:
        commands: what `add_subparsers` returned.
    """
    made: argparse.ArgumentParser = commands.add_parser(
        "explore",
        help="explore every state of the reference at small scope",
        description="Explore every state that the reference can be in at small scope, and say "
        "which invariants hold in all of them. Without bounds, each policy has its own.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--policy", choices=POLICIES, help="default: all")
    made.add_argument("--edition", metavar="EDITION", help="such as v0.31 (default: all)")
    made.add_argument(
        "--alphabet",
        choices=ALPHABETS,
        help="calls: any call that the protocol makes, in any order; protocol: the programs of a "
        "manager (default: both)",
    )
    bound = "the bound of the scope; all that are not given have a default"
    made.add_argument("--capacity", type=int, metavar="N", help=bound)
    made.add_argument("--keys", type=int, metavar="N", help="default: one more than the capacity")
    made.add_argument("--requests", type=int, metavar="N", help="that run at a time (default: 1)")
    made.add_argument("--depth", type=int, metavar="D", help="no more than so many steps")
    made.add_argument(
        "--checks",
        choices=CHECKS,
        help="states: what holds in every state; steps: that, and the rules of every step, which "
        "cost several times as much; class: the edition's class beside the core; restated: the "
        "textbook's rules written down a second time (default: all there is; with bounds of your "
        "own, steps of calls and states of the protocol)",
    )
    made.add_argument("--full", action="store_true", help="larger scopes; takes many minutes")
    made.add_argument("--json", type=Path, metavar="F", help="write the table to F as JSON")
    made.add_argument(
        "--benchmark",
        action="store_true",
        help="measure the search instead: transitions a second, without checks",
    )
    made.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carry the command out; return the exit status.

    Raises:
        Unusable: a bound is out of range, an edition unknown, or the file cannot be written.
    """
    if options.benchmark:
        return _benchmark()
    if options.json is not None and not options.json.parent.is_dir():
        raise Unusable(f"--json: there is no folder {options.json.parent}")
    for name, least in (("capacity", 1), ("keys", 1), ("requests", 1), ("depth", 0)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise Unusable(f"--{name} must be {least} or more")
    policies = POLICIES if options.policy is None else (options.policy,)
    try:
        editions = EDITIONS if options.edition is None else (edition_named(options.edition),)
    except ValueError as error:
        raise Unusable(str(error)) from None
    alphabets = ALPHABETS if options.alphabet is None else (options.alphabet,)
    if policies[0] in ("textbook", "filter") and "calls" not in alphabets:
        raise Unusable(f"the {policies[0]} has no protocol; explore its calls")
    possible = {checks for p in policies for a in alphabets for checks in checks_of(p, a)}
    if options.checks not in (None, *possible):
        raise Unusable(
            f"--checks {options.checks}: what is explored here has {', '.join(sorted(possible))}"
        )

    given = (options.capacity, options.keys, options.requests, options.depth, options.checks)
    if given == (None,) * 5:
        made: Iterable[Row] = rows(policies, editions, alphabets, full=options.full)
        told: Iterable[Difference] = differences(policies, editions)
    else:
        made = _bounded(policies, editions, alphabets, options)
        told = ()
    return _report(made, told, options.json)


def _bounded(
    policies: tuple[str, ...],
    editions: tuple[Edition, ...],
    alphabets: tuple[str, ...],
    options: argparse.Namespace,
) -> Iterable[Row]:
    for policy in policies:
        without = policy in ("textbook", "filter")
        for edition in EDITIONS[-1:] if without else editions:
            for alphabet in ("calls",) if without else alphabets:
                possible = checks_of(policy, alphabet)
                if options.checks in (None, *possible):
                    usual = "steps" if "steps" in possible else "states"
                    checks = options.checks or usual
                    scope = _scope(policy, edition, alphabet, checks, options)
                    yield explore_policy(policy, edition, alphabet, scope, checks, options.depth)


def _scope(
    policy: str, edition: Edition, alphabet: str, checks: str, options: argparse.Namespace
) -> Scope:
    usual = scope_of(policy, edition, alphabet, checks, full=options.full)
    capacity = options.capacity or usual.capacity
    keys = options.keys or (capacity + 1 if options.capacity else usual.keys)
    requests = options.requests or usual.requests
    return Scope(capacity, keys, requests, usual.batch, usual.pins, usual.groups)


def _benchmark() -> int:
    rates = benchmark()
    print(
        f"LRU v0.24, calls, capacity {BENCHMARK.capacity}, {BENCHMARK.keys} keys, no checks, one "
        f"process: median {median(rates):,.0f} transitions a second, "
        f"{rates[0]:,.0f} to {rates[-1]:,.0f} in {len(rates)} rounds"
    )
    return EXIT_HOLDS


def _report(made: Iterable[Row], told: Iterable[Difference], file: Path | None) -> int:
    console = Console(highlight=False)
    progress = Console(stderr=True, highlight=False)
    all_rows: list[Row] = []
    found: list[Difference] = []
    with progress.status("exploring") as status:
        for row in made:
            all_rows.append(row)
            status.update(f"{row.policy} {row.edition}, {row.alphabet}: {row.extent}")
        for difference in told:
            found.append(difference)
            status.update(difference.what)
    if file is not None:
        data = {
            "explorations": [row.as_json() for row in all_rows],
            "differences": [
                {
                    "what": difference.what,
                    "steps": list(difference.steps),
                    "extent": difference.extent,
                    "trace": difference.trace,
                }
                for difference in found
            ],
        }
        try:
            file.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise Unusable(f"--json: {file} cannot be written: {error.strerror}") from None
    console.print(_table(all_rows))
    for difference in found:
        console.print(_sentence(difference), soft_wrap=True)
    broken = [row for row in all_rows if row.clause]
    for row in broken:
        console.print(f"\n{row.policy} {row.edition} breaks {row.clause}:", soft_wrap=True)
        for at, step in enumerate(row.path, 1):
            console.print(f"  {at}. {step}", soft_wrap=True, markup=False)
    return EXIT_BROKEN if broken else EXIT_HOLDS


def _table(all_rows: list[Row]) -> Table:
    """Make the table; editions with equal counts share a line."""
    alike: dict[Any, list[Row]] = {}
    for row in all_rows:
        counts = (row.states, row.unreduced, row.transitions, row.depth, row.extent, row.clause)
        alike.setdefault((row.policy, row.alphabet, row.checks, row.scope, counts), []).append(row)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("policy", no_wrap=True)
    table.add_column("checked", no_wrap=True)
    table.add_column("c k r p", no_wrap=True)
    for name in ("states", "transitions", "extent", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    for same in alike.values():
        row, scope = same[0], same[0].scope
        editions = row.edition if len(same) == 1 else f"{row.edition}-{same[-1].edition[1:]}"
        told_apart = row.policy in ("lru", "arc")
        table.add_row(
            f"{row.policy} {editions}",
            row.alphabet if row.checks == "states" else f"{row.alphabet}, {row.checks}",
            f"{scope.capacity} {scope.keys}"
            + (f" {scope.requests} {scope.pins}" if told_apart else ""),
            f"{row.states:,}",
            f"{row.transitions:,}",
            f"closed at {row.depth}" if row.extent == "closed" else row.extent,
            f"{sum(one.seconds for one in same):.1f}",
        )
    table.caption = (
        "c capacity, k keys, r requests at a time, p highest ref count. Invariants of states are "
        "asked everywhere; steps: rules of every step too; class: the edition's class beside the "
        "core; restated: the paper's rules written down twice. Where keys are interchangeable, "
        "states are counted up to their names."
    )
    return table


def _sentence(difference: Difference) -> str:
    if difference.steps:
        return f"{difference.what}, shortest: {'; '.join(difference.steps)}"
    return f"{difference.what}: alike ({difference.extent})"
