"""A product search: a fast policy beside the core, in every pair of states that can be reached.

Both alphabets of the explorer are there. Where nothing but the names of keys tells states of the
core apart, one of them can stand for all: the policy's state is renamed as the core's is, and what
it knows and the core does not still makes two pairs of one. But the search then goes on from one
renaming alone, and misses a policy that answers otherwise for certain names and does not say so.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from cachelaw.conformance.explore.calls import Calls, Scope
from cachelaw.conformance.explore.plan import interchangeable
from cachelaw.conformance.explore.products import real_calls
from cachelaw.conformance.explore.programs import Asked, Programs, ProgramSymmetry
from cachelaw.conformance.explore.symmetry import KeySymmetry
from cachelaw.conformance.instance import Build, Codec, Instance
from cachelaw.conformance.trace import Event, Layout
from cachelaw.reference.cores import core_of
from cachelaw.reference.editions import edition_named
from cachelaw.reference.protocol import Call, RequestEnds, Setting, perform
from cachelaw.reference.protocol import State as Books


class Closed(NamedTuple):
    """What a search came to.

    Attributes:
        pairs: pairs of states that were reached; one may stand for those of other names.
        states: states of the core among them, counted likewise.
        unreduced: the same with names told apart.
        transitions: steps made.
    """

    pairs: int
    states: int
    unreduced: int
    transitions: int


def product(
    profile: str,
    edition: str,
    scope: Scope,
    alphabet: str = "calls",
    build: Build | None = None,
    *,
    by_names: bool = True,
) -> Closed:
    """Search until there is no pair that was not met.

    Args:
        profile: `lru` or `arc`.
        edition: the edition's name.
        scope: the bounds.
        alphabet: `calls` or `protocol`.
        build: makes the policy; None for the fast one.
        by_names: let one pair stand for those that differ from it in the names of keys alone.

    Raises:
        AssertionError: an answer differs from the core's.
    """
    core = core_of(profile, edition_named(edition))
    by_names = by_names and interchangeable(core)
    layout = Layout(scope.groups)
    setting: Setting[int] = Setting(
        core.edition, scope.capacity, layout.group_of, layout.position_of
    )
    side: _Calls | _Programs
    symmetry: KeySymmetry | ProgramSymmetry
    if alphabet == "calls":
        side, symmetry = _Calls(Calls(core, scope)), KeySymmetry()
    else:
        side, symmetry = _Programs(Programs(core, scope)), ProgramSymmetry()

    def label(state: Any, instance: Instance) -> tuple[Any, Any]:
        knows = instance.policy.cachelaw_state(*map(instance.context, side.requests))
        names: tuple[int, ...] = tuple(range(scope.keys))
        if by_names:
            names = symmetry.renaming(state)
            state = symmetry.rename(state, names)
        return state, _renamed(knows, instance.codec, names)

    name = edition.replace(".", "")
    build = build or getattr(importlib.import_module(f"cachelaw.fast.{name}"), profile.upper())
    status = importlib.import_module(f"cachelaw.reference.{name}").ChunkStatus
    codec = Codec(setting.group_of, fresh=True)
    first = Instance(build, setting, status, codec)
    shared = {id(codec): codec, id(setting): setting}
    found = {label(side.start, first)}
    waiting = [(side.start, first)]
    transitions = 0
    while waiting:
        state, instance = waiting.pop()
        for make, after in side.steps(state):
            transitions += 1
            other = copy.deepcopy(instance, dict(shared))
            make(other)
            pair = label(after, other)
            if pair not in found:
                found.add(pair)
                waiting.append((after, other))
    states = {state for state, _ in found}
    unreduced = sum(map(symmetry.orbit, states)) if by_names else len(states)
    return Closed(len(found), len(states), unreduced, transitions)


def _renamed(knows: Any, codec: Any, names: tuple[int, ...]) -> Any:
    """Return a policy's state with numbers for its keys."""
    match knows:
        case bytes():
            return "key", names[codec.decode(knows)]
        case tuple():
            return tuple([_renamed(one, codec, names) for one in knows])
        case frozenset():
            return frozenset([_renamed(one, codec, names) for one in knows])
    return knows


Make = Callable[[Instance], None]
"""Makes the calls of a step, and demands the answers of the core."""


class _Calls:
    """The alphabet in which a step is one call."""

    def __init__(self, machine: Calls) -> None:
        self._machine = machine
        self.start: Any = machine.start
        self.requests = machine.requests[:-1]  # a stranger remembers nothing

    def steps(self, state: Any) -> Iterator[tuple[Make, Any]]:
        """Yield each step that there is in a state of the core, and the state after."""
        edition = self._machine.core.edition
        for call, answer, after in self._machine.steps(state):
            calls = tuple(real_calls(call, state[1], edition))
            yield partial(self._make, calls, answer), after

    def _make(self, calls: tuple[Call, ...], answer: Any, instance: Instance) -> None:
        victims = None
        for call in calls:
            if call.method == "evict":
                victims = _evicted(instance, call)
            else:
                instance.carry_out(call)
        assert victims == answer, calls


class _Programs:
    """The alphabet in which a step is an event of the protocol."""

    def __init__(self, machine: Programs) -> None:
        self._machine = machine
        self.start: Any = machine.start
        self.requests = machine.names

    def steps(self, state: Any) -> Iterator[tuple[Make, Any]]:
        """Yield each step that there is in a state of the core, and the state after."""
        books = self._machine.books(state)
        for event, asked, after in self._machine.steps(state):
            yield partial(self._make, books, event, asked), after

    def _make(
        self, books: Books[int], event: Event, asked: tuple[Asked, ...], instance: Instance
    ) -> None:
        steps = perform(self._machine.setting, books, event)
        answer: tuple[int, ...] | None = None
        given = []
        with suppress(StopIteration):
            while True:
                call = steps.send(answer)
                answer = None
                if call.method == "evict":
                    answer = _evicted(instance, call)
                    given.append(answer)
                else:
                    found = instance.carry_out(call)
                    if call.method == "get":
                        assert found is instance.chunks.get(call.arguments[0]), event
        assert given == [one.victims for one in asked], event
        if isinstance(event, RequestEnds):  # a new one takes its name
            instance.forget(event.request)


def _evicted(instance: Instance, call: Call) -> tuple[int, ...] | None:
    given = instance.carry_out(call)
    if given is None:
        return None
    victims = tuple(instance.codec.decode(key) or 0 for key, _ in given)
    assert [chunk for _, chunk in given] == [instance.chunks.pop(key) for key in victims]
    return victims
