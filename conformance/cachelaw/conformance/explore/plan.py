"""What is explored, at which scope, and what came of it.

Every policy has a scope at which its exploration takes seconds, and a larger one. Invariants of
states are asked at both. Rules of steps, and the product with the edition's class, cost several
times the step and have scopes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from cachelaw.conformance.explore.accesses import (
    Filter,
    FilterSymmetry,
    Textbook,
    TextbookSymmetry,
)
from cachelaw.conformance.explore.calls import Calls, Scope
from cachelaw.conformance.explore.invariants import (
    check_textbook,
    invariants_of,
    state_check,
    tracker_check,
)
from cachelaw.conformance.explore.products import class_check, compare_editions, differs
from cachelaw.conformance.explore.programs import (
    Programs,
    ProgramSymmetry,
    as_trace,
    program_check,
    refusal_check,
)
from cachelaw.conformance.explore.search import Exploration, Symmetry, explore
from cachelaw.conformance.explore.symmetry import KeySymmetry
from cachelaw.conformance.explore.textbook import (
    DIFFERENCES,
    PAPER,
    SHIPPED,
    TEXTBOOK,
    VLLM,
    compare_ways,
    serving,
    way_of,
)
from cachelaw.conformance.explore.transitions import known_faults, step_check
from cachelaw.conformance.trace import Event, Trace, describe
from cachelaw.reference.cores import Core, core_of
from cachelaw.reference.editions import EDITIONS, V024, V031, V033, Edition
from cachelaw.reference.protocol import Call

POLICIES = ("lru", "arc", "textbook", "filter")
ALPHABETS = ("calls", "protocol")
CHECKS = ("states", "steps", "class", "restated")


@dataclass(frozen=True, slots=True)
class Row:
    """One exploration.

    Attributes:
        policy: one of `POLICIES`.
        edition: the edition's name, empty for what has none.
        alphabet: `calls` or `protocol`.
        checks: what was asked, one of `CHECKS`: `states`; `steps`, the rules of every step and
            `states` too; `class`, the edition's class beside the core and `states` too;
            `restated`, the textbook's rules written down a second time beside it.
        scope: the bounds.
        states: distinct states; where keys are interchangeable, up to their names.
        unreduced: distinct states with the names told apart.
        transitions: steps taken.
        depth: the number of steps to the states furthest away.
        extent: `closed`, `to depth d`, or `broken`.
        seconds: how long it took.
        invariants: the number of invariants asked of each state.
        clause: what broke, empty if nothing did.
        path: a shortest way there, a line for each step.
    """

    policy: str
    edition: str
    alphabet: str
    checks: str
    scope: Scope
    states: int
    unreduced: int
    transitions: int
    depth: int
    extent: str
    seconds: float
    invariants: int
    clause: str = ""
    path: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {**asdict(self), "path": list(self.path)}


@dataclass(frozen=True, slots=True)
class Difference:
    """The shortest way to tell two things apart, or a fault that an edition is known for.

    Attributes:
        what: which two, or which clause.
        steps: a line for each step; empty if none was found.
        extent: where none was found, how far the search went.
        trace: the same as a trace that can be replayed, as plain data; None if it is none.
    """

    what: str
    steps: tuple[str, ...]
    extent: str = ""
    trace: dict[str, Any] | None = None


def interchangeable(core: Core) -> bool:
    """Whether the keys of a policy are interchangeable: not where ranks order them."""
    return not (core.profile == "lru" and core.edition >= V033)


# --- Scopes --------------------------------------------------------------------------------------


def scope_of(policy: str, edition: Edition, alphabet: str, checks: str, *, full: bool) -> Scope:
    """Return the scope at which a policy is explored.

    Args:
        policy: one of `POLICIES`.
        edition: whose; of no account for the textbook and the filter.
        alphabet: `calls` or `protocol`.
        checks: as in `Row`.
        full: the larger one, which may take minutes.
    """
    ranked = policy == "lru" and edition >= V033
    if policy == "textbook":
        # Its directory holds 2c keys, so that one more is always unknown. Below capacity 5 no ratio
        # of ghosts that is no whole number shows.
        return Scope(5, 11)
    if policy == "filter":
        return Scope(3, 4)
    if checks == "steps" and policy == "arc":
        return Scope(3, 4, pins=1)  # a busy chunk of T1 is counted where others are left to choose
    if checks != "states":
        return Scope(2, 3, requests=1, pins=1, groups=2) if ranked else Scope(2, 3)
    if alphabet == "calls":
        if ranked:
            return Scope(3, 4, pins=1, groups=2) if full else Scope(2, 3, groups=2)
        return Scope(3, 4)
    if ranked:
        return Scope(3, 4, requests=1, pins=1, groups=2) if full else Scope(2, 3, 1, groups=2)
    if policy == "arc" and edition >= V031:
        return Scope(2, 3, requests=1, pins=1) if full else Scope(2, 2, requests=1)
    if policy == "arc":
        return Scope(3, 4, requests=1) if full else Scope(2, 3, requests=1)
    if edition >= V031 and not full:
        return Scope(2, 3, requests=1)
    return Scope(3, 4, requests=1)


def checks_of(policy: str, alphabet: str) -> tuple[str, ...]:
    """Return what can be asked of a policy's exploration, as in `Row`."""
    if policy == "textbook":
        return "states", "restated"
    if policy == "filter":
        return ("steps",)
    return ("states", "steps", "class") if alphabet == "calls" else ("states",)


# --- One exploration -----------------------------------------------------------------------------


def explore_policy(
    policy: str,
    edition: Edition,
    alphabet: str,
    scope: Scope,
    checks: str = "states",
    depth: int | None = None,
) -> Row:
    """Explore one policy.

    Args:
        policy: one of `POLICIES`.
        edition: whose; of no account for the textbook and the filter.
        alphabet: `calls` or `protocol`; the textbook and the filter have calls alone.
        scope: the bounds.
        checks: as in `Row`; `steps` and `class` are there for `calls` alone, `restated` for the
            textbook alone, and the filter has `steps` alone.
        depth: a bound on the number of steps, None for none.
    """
    if policy == "textbook" and checks == "restated":
        pair, by_names = serving(TEXTBOOK, way_of(PAPER), scope.capacity, scope.keys)
        alike = explore(pair, symmetry=by_names, check_step=differs, depth=depth)
        return _row(policy, "", alphabet, checks, scope, alike, by_names, 0, str)
    if policy == "textbook":
        textbook = Textbook(scope.capacity, scope.keys)
        found_there = explore(
            textbook,
            symmetry=TextbookSymmetry(scope.keys),
            check_state=check_textbook,
            depth=depth,
        )
        return _row(
            policy, "", alphabet, "states", scope, found_there, TextbookSymmetry(scope.keys), 7, str
        )
    if policy == "filter":
        tracker = Filter(scope.capacity, scope.keys, batch=scope.batch)
        found_in = explore(
            tracker,
            symmetry=FilterSymmetry(scope.keys),
            check_state=tracker_check(scope.capacity),
            check_step=tracker.broken,
            depth=depth,
        )
        of_filter = FilterSymmetry(scope.keys)
        return _row(policy, "", alphabet, "steps", scope, found_in, of_filter, 3, describe_call)

    core = core_of(policy, edition)
    held, count = state_check(core), len(invariants_of(core))
    if alphabet == "protocol":
        programs = Programs(core, scope)
        by_programs = ProgramSymmetry() if interchangeable(core) else None
        played = explore(
            programs, symmetry=by_programs, check_state=program_check(held), depth=depth
        )
        return _row(
            policy, edition.name, alphabet, checks, scope, played, by_programs, count, describe
        )
    calls = Calls(core, scope)
    by_keys = KeySymmetry() if interchangeable(core) else None
    step = None
    if checks == "steps":
        step = step_check(calls, excused=known_faults(core))
    elif checks == "class":
        step = class_check(calls)
    made = explore(calls, symmetry=by_keys, check_state=held, check_step=step, depth=depth)
    return _row(policy, edition.name, alphabet, checks, scope, made, by_keys, count, describe_call)


def _row(
    policy: str,
    edition: str,
    alphabet: str,
    checks: str,
    scope: Scope,
    found: Exploration[Any, Any],
    symmetry: Symmetry[Any, Any] | None,
    invariants: int,
    said: Callable[[Any], str],
) -> Row:
    unreduced = found.states
    if symmetry is not None:
        unreduced = sum(map(symmetry.orbit, found.parents))
    broken = found.broken
    return Row(
        policy,
        edition,
        alphabet,
        checks,
        scope,
        found.states,
        unreduced,
        found.transitions,
        found.depth,
        found.extent,
        round(found.seconds, 3),
        invariants,
        broken.clause if broken else "",
        tuple(map(said, broken.path)) if broken else (),
    )


def describe_call(call: Call) -> str:
    """Say a call of the alphabet `calls` in a few words."""
    shown = []
    for argument in call.arguments:
        if isinstance(argument, frozenset):
            shown.append("{" + ", ".join(map(str, sorted(argument))) + "}")
        else:
            shown.append(str(argument))
    return f"{call.method}({', '.join(shown)})"


# --- All of it -----------------------------------------------------------------------------------


def planned(
    policies: tuple[str, ...] = POLICIES,
    editions: tuple[Edition, ...] = EDITIONS,
    alphabets: tuple[str, ...] = ALPHABETS,
    *,
    full: bool = False,
) -> Iterator[tuple[str, Edition, str, Scope, str]]:
    """Yield what is explored: policy, edition, alphabet, scope, and what is asked."""
    for policy in policies:
        without = policy in ("textbook", "filter")
        for edition in EDITIONS[-1:] if without else editions:
            for alphabet in alphabets:
                if without and alphabet != "calls":
                    continue
                for checks in checks_of(policy, alphabet):
                    scope = scope_of(policy, edition, alphabet, checks, full=full)
                    yield policy, edition, alphabet, scope, checks


def rows(
    policies: tuple[str, ...] = POLICIES,
    editions: tuple[Edition, ...] = EDITIONS,
    alphabets: tuple[str, ...] = ALPHABETS,
    *,
    full: bool = False,
) -> Iterator[Row]:
    """Explore policies of editions, each at the scope that it has; yield a row at a time."""
    for one in planned(policies, editions, alphabets, full=full):
        yield explore_policy(*one)


SMALLEST = Scope(2, 2, requests=1, pins=1)
"""Where the refusals of ARC up to v0.27 show first."""


def known_fault(core: Core, scope: Scope = SMALLEST) -> Trace | None:
    """Return the shortest program after which a policy refuses although enough is eligible.

    Args:
        core: the policy.
        scope: where to search.
    """
    machine = Programs(core, scope)
    found = explore(machine, symmetry=ProgramSymmetry(), check_step=refusal_check)
    return None if found.broken is None else as_trace(scope, core, found.broken.path)


def differences(
    policies: tuple[str, ...] = POLICIES, editions: tuple[Edition, ...] = EDITIONS
) -> Iterator[Difference]:
    """Yield known faults, what tells neighbouring editions apart, and ARC from the textbook's."""
    for policy in policies:
        if policy not in ("lru", "arc"):
            continue
        yield from _faults(policy, editions)
        for older, newer in pairwise(editions):
            if policy == "arc" and older >= V031:
                found = compare_editions(policy, older, newer, (Scope(1, 2, requests=1, pins=1),))
            else:
                found = compare_editions(policy, older, newer)
            extent = "; ".join(
                f"{one.extent} at capacity {scope.capacity}, {scope.keys} keys"
                for scope, one in found.explorations
            )
            yield _told(f"{policy} {older} and {newer}", found.shortest, extent)
    if "textbook" in policies:
        scopes = ((2, 6), (3, 7))
        pairs = {"textbook and arc v0.33": (TEXTBOOK, SHIPPED)}
        for name in DIFFERENCES:
            pairs[f"textbook, and with {name} alone"] = way_of(PAPER), way_of(PAPER.flipped(name))
            pairs[f"arc v0.33, and without {name}"] = way_of(VLLM), way_of(VLLM.flipped(name))
        for what, ways in pairs.items():
            keys = compare_ways(*ways, scopes).shortest or ()
            yield Difference(what, tuple(f"key {key}" for key in keys))


def _faults(policy: str, editions: tuple[Edition, ...]) -> Iterator[Difference]:
    """Yield each clause that editions are known to break, once for all with one shortest trace."""
    shown: dict[tuple[str, tuple[Event, ...]], list[Trace]] = {}
    for edition in editions:
        core = core_of(policy, edition)
        for clause in sorted(known_faults(core)):
            trace = known_fault(core)
            if trace is not None:
                shown.setdefault((clause, trace.events), []).append(trace)
    for (clause, _), traces in shown.items():
        names = ", ".join(trace.edition.name for trace in traces)
        yield _told(f"known fault: {policy} {names} breaks {clause}", traces[0])


def _told(what: str, trace: Trace | None, extent: str = "") -> Difference:
    if trace is None:
        return Difference(what, (), extent)
    events: tuple[Event, ...] = trace.events
    return Difference(what, tuple(map(describe, events)), trace=trace.as_json())


# --- A recorded benchmark ------------------------------------------------------------------------


BENCHMARK = Scope(4, 5)


def benchmark(scope: Scope = BENCHMARK, rounds: int = 5) -> list[float]:
    """Measure the search: transitions a second, LRU v0.24, calls, no invariants, one process.

    Args:
        scope: what is explored.
        rounds: how many times.

    Returns:
        The rate of each round, the slowest first.
    """
    machine = Calls(core_of("lru", V024), scope)
    return sorted(explore(machine).rate for _ in range(rounds))
