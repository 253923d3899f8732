"""Which clauses the explorer's rules can tell to be broken, shown on steps that are wrong.

A rule that no step ever puts to the test would hold at every scope and say nothing. So each step of
a machine is offered to the rules once more with another answer or another state after it, as it
would come of a slip: a key too many or too few, lists turned round, a key in the wrong list, the
state left as it was. A clause counts as explored only if the rules name it for one of these.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

from cachelaw.conformance.explore.accesses import Filter
from cachelaw.conformance.explore.calls import Calls, Scope, State
from cachelaw.conformance.explore.invariants import tracker_check
from cachelaw.conformance.explore.search import explore
from cachelaw.conformance.explore.symmetry import KeySymmetry
from cachelaw.conformance.explore.transitions import RULES, known_faults
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import Core, Outcome, World
from cachelaw.reference.lru import EvictableOrder, RankedOrder
from cachelaw.reference.protocol import Call
from cachelaw.specs.registry import CLAUSES

LISTS = ("t1", "t2", "b1", "b2")

BATCHES = ("touch", "on_store_miss", "on_request_finished")
"""Calls that are told their keys in an order."""


PATIENCE = 40
"""After so many states, taken at random, at which nothing else was noticed, the search ends."""


def noticed(core: Core, scope: Scope, enough: frozenset[str] = frozenset()) -> set[str]:
    """Return the clauses that the rules of steps can tell to be broken.

    Args:
        core: whose steps are made wrong.
        scope: where.
        enough: no more is looked for than these, if they are given.
    """
    machine = Calls(core, scope)
    ranked = isinstance(core.start(1), RankedOrder)
    symmetry = None if ranked else KeySymmetry()
    states = list(explore(machine, symmetry=symmetry).parents)
    random.Random(1).shuffle(states)
    rules = RULES["all"] + RULES[core.profile]
    found: set[str] = set()
    in_vain = 0

    def ask(before: State, call: Call, answer: Any, after: State) -> None:
        for rule in rules:
            found.update(rule(machine, before, call, answer, after))

    # The rule about batches makes them itself, of a core that takes them in the wrong order.
    machine.core = replace(core, apply=_head_first(core))
    for before in states[:PATIENCE]:
        ask(before, Call("touch", ((), "u0")), None, before)
    machine.core = core
    for before in states:
        if in_vain == PATIENCE or (enough and found >= enough):
            break
        known = len(found)
        others = {step[2] for step in machine.steps(before)}
        for call, answer, after in machine.steps(before):
            if call.method == "evict":
                for other in _answers(answer, scope.keys):
                    ask(before, call, other, after)
            for wrong in (before, machine.start, *_slips(after, scope.keys), *others):
                ask(before, call, answer, wrong)
        in_vain = in_vain + 1 if len(found) == known else 0
    here = {clause for clause in found if CLAUSES[clause].holds_in(core.edition.name)}
    return here - known_faults(core)


def noticed_in_filter(limit: int, keys: int) -> set[str]:
    """Return the clauses that the rules of the filter's tracker can tell to be broken."""
    machine = Filter(limit, keys)
    held = tracker_check(limit)
    found: set[str | None] = set()
    for before in explore(machine).parents:
        for call, answer, after in machine.steps(before):
            for key in range(keys):
                found.add(machine.broken(before, call, (key,), after))
            for wrong in _trackers(after, keys):
                found.update((machine.broken(before, call, answer, wrong), held(wrong)))
    return {clause for clause in found if clause}


def _answers(answer: Any, keys: int) -> Iterator[tuple[int, ...] | None]:
    yield None
    yield (0, 0)
    for length in range(4):
        yield from permutations(range(keys), length)


def _slips(after: State, keys: int) -> Iterator[State]:
    """Yield states that differ from the right one in the policy's part."""
    core, refs, memories = after
    for wrong in _cores(core, keys):
        yield wrong, refs, memories


def _cores(core: Any, keys: int) -> Iterator[Any]:
    match core:
        case ArcState():
            for by in (-1.0, 1.0):
                yield replace(core, target=core.target + by)
            for name in LISTS:
                for order in _orders(getattr(core, name), keys):
                    yield _with_lists(core, {name: order})
            for key in range(keys):
                gone = {name: tuple(k for k in getattr(core, name) if k != key) for name in LISTS}
                for name in LISTS:
                    yield _with_lists(core, {**gone, name: (*gone[name], key)})
        case EvictableOrder():
            for order in _orders(core.idle, keys):
                yield replace(core, idle=order)
            for key in range(keys):
                yield replace(core, resident=core.resident ^ {key})
        case RankedOrder():
            for entries in (core.entries[::-1], core.entries[1:], core.entries[:-1]):
                yield replace(core, entries=entries)
        case tuple():
            yield from _orders(core, keys)


def _with_lists(core: ArcState[int], lists: Any) -> ArcState[int]:
    changed: ArcState[int] = replace(core, **lists)
    return changed


def _orders(order: tuple[int, ...], keys: int) -> Iterator[tuple[int, ...]]:
    yield from (order[::-1], order[1:], order[:-1])
    for key in range(keys):
        if key not in order:
            yield (*order, key)


def _trackers(tracker: Any, keys: int) -> Iterator[Any]:
    yield from (tracker[::-1], tracker[1:], tracker[:-1])
    for key in range(keys):
        yield (*tracker, (key, 1))
        yield ((key, 0), *tracker)


def _head_first(core: Core) -> Any:
    def apply(state: Any, call: Call, world: World) -> Outcome:
        if call.method not in BATCHES:
            return core.apply(state, call, world)
        keys, *rest = call.arguments
        if call.method == "on_request_finished":
            turned: Any = tuple(group[::-1] for group in keys)
        else:
            turned = keys[::-1]
        return core.apply(state, Call(call.method, (turned, *rest)), world)

    return apply
