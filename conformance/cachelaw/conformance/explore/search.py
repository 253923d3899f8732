"""Breadth-first search over a machine: its states, its transitions, a shortest path to each.

A machine is a start and a function from a state to the steps that leave it. States are hashable
values; two that are equal are one. Whatever breaks first breaks at the least depth, so the path
that leads there is a shortest one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)

Step = tuple[A, Any, S]
"""An action, what it was answered (None if nothing), and the state after it."""


class Machine(Protocol[S, A_co]):
    """What can be explored."""

    @property
    def start(self) -> S:
        """The state in which it begins."""

    def steps(self, state: S) -> Iterable[tuple[A_co, Any, S]]:
        """Return every step that leaves `state`; a step that changes nothing counts as one.

        A machine gives back `state` itself, not an equal value, where it cheaply can.
        """


@dataclass(frozen=True, slots=True)
class Break(Generic[S, A]):
    """An invariant that does not hold, and how to get there.

    Attributes:
        clause: its name.
        path: the actions from the start; if a step is at fault, it is the last of them.
        state: the state at fault, or from which the step at fault leaves.
    """

    clause: str
    path: tuple[A, ...]
    state: S


@dataclass(slots=True)
class Exploration(Generic[S, A]):
    """What a search found.

    Attributes:
        states: distinct states; representatives alone, if the search was given a symmetry.
        transitions: steps taken from them.
        depth: the number of actions to the states that lie furthest from the start.
        closed: whether every step from every state was taken. If not, the search ended at the
            depth it was given, or at a break.
        broken: the first invariant that does not hold, None if all do.
        seconds: how long it took.
        parents: each state with the one it was first reached from and by which action.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    closed: bool = False
    broken: Break[S, A] | None = None
    seconds: float = 0.0
    parents: dict[S, tuple[S, A] | None] = field(default_factory=dict, repr=False)

    @property
    def rate(self) -> float:
        """Transitions per second."""
        return self.transitions / self.seconds if self.seconds else 0.0

    @property
    def extent(self) -> str:
        """`closed`, `to depth d`, or `broken`: how far the counts go."""
        if self.broken is not None:
            return "broken"
        return "closed" if self.closed else f"to depth {self.depth}"


class Symmetry(Protocol[S, A]):
    """States and actions that differ in the names of keys alone.

    Names are 0, 1, 2, ...; a renaming is a tuple, the new name of each old one. Sound if renaming
    maps the steps of a state to those of the renamed state, and invariants to themselves.
    """

    def renaming(self, state: S) -> tuple[int, ...]:
        """Return a renaming that takes `state` to the representative of its like."""

    def rename(self, state: S, names: tuple[int, ...]) -> S:
        """Return `state` with other names."""

    def rename_action(self, action: A, names: tuple[int, ...]) -> A:
        """Return `action` with other names."""

    def orbit(self, state: S) -> int:
        """Return how many states `state` stands for, itself among them."""


StateCheck = Callable[[S], "str | None"]
"""From a state to the name of a clause that does not hold in it, None if all do."""

StepCheck = Callable[[S, A, Any, S], "str | None"]
"""From a step (before, action, answer, after) to a clause that it breaks, None if there is none."""


def explore(
    machine: Machine[S, A],
    *,
    symmetry: Symmetry[S, A] | None = None,
    check_state: StateCheck[S] | None = None,
    check_step: StepCheck[S, A] | None = None,
    depth: int | None = None,
) -> Exploration[S, A]:
    """Visit every state of `machine` once, nearest first, and take every step from it.

    Args:
        machine: where to begin, and the steps.
        symmetry: visit one state alone of those that differ in names. The start has to be its own
            representative.
        check_state: asked once of each state.
        check_step: asked of each step, with the state after it as the machine gave it.
        depth: take no step from states that are this many actions away; None for no such bound.
    """
    began = time.perf_counter()
    found: Exploration[S, A] = Exploration()
    with _without_garbage_collection():
        _walk(machine, found, symmetry, check_state, check_step, depth)
    found.states = len(found.parents)
    found.seconds = time.perf_counter() - began
    return found


def _walk(
    machine: Machine[S, A],
    found: Exploration[S, A],
    symmetry: Symmetry[S, A] | None,
    check_state: StateCheck[S] | None,
    check_step: StepCheck[S, A] | None,
    depth: int | None,
) -> None:
    parents, steps, first = found.parents, machine.steps, machine.start
    parents[first] = None
    if check_state is not None and (clause := check_state(first)) is not None:
        found.broken = Break(clause, (), first)
        return
    frontier, transitions = [first], 0
    while frontier:
        if depth is not None and found.depth >= depth:
            return
        reached: list[S] = []
        for state in frontier:
            near: set[S] = set()  # many steps lead to one state; it is renamed once
            for action, answer, after in steps(state):
                transitions += 1
                if check_step is not None:
                    clause = check_step(state, action, answer, after)
                    if clause is not None:
                        found.transitions = transitions
                        path = _path(machine, parents, symmetry, state, action)
                        found.broken = Break(clause, path, state)
                        return
                if after is state:
                    continue
                if symmetry is not None:
                    if after in near:
                        continue
                    near.add(after)
                    after = symmetry.rename(after, symmetry.renaming(after))
                if after in parents:
                    continue
                parents[after] = (state, action)
                reached.append(after)
                if check_state is not None and (clause := check_state(after)) is not None:
                    found.transitions = transitions
                    path = _path(machine, parents, symmetry, after)
                    found.broken = Break(clause, path, after)
                    return
        found.transitions = transitions
        if reached:
            found.depth += 1
        frontier = reached
    found.closed = True


def path_to(
    machine: Machine[S, A],
    found: Exploration[S, A],
    state: S,
    symmetry: Symmetry[S, A] | None = None,
) -> tuple[A, ...]:
    """Return a shortest sequence of actions from the start to `state`.

    Args:
        machine: the machine that was explored.
        found: what the search returned.
        state: a state that it visited.
        symmetry: as the search was given it; the path then leads to a state that differs from
            `state` in names alone.

    Raises:
        KeyError: the search did not visit `state`.
    """
    return _path(machine, found.parents, symmetry, state)


def _path(
    machine: Machine[S, A],
    parents: dict[S, tuple[S, A] | None],
    symmetry: Symmetry[S, A] | None,
    state: S,
    last: A | None = None,
) -> tuple[A, ...]:
    """Return a path to `state`, and `last` after it if it is given."""
    legs: list[tuple[S, A]] = [] if last is None else [(state, last)]
    while (parent := parents[state]) is not None:
        legs.append(parent)
        state = parent[0]
    legs.reverse()
    if symmetry is None:
        return tuple(action for _, action in legs)

    # Each leg begins at a representative, in names of its own. `called` leads from those back to
    # the names at the start, so that the path can be run.
    path: list[A] = []
    called: tuple[int, ...] | None = None
    for before, action in legs:
        path.append(action if called is None else symmetry.rename_action(action, called))
        after = next(after for other, _, after in machine.steps(before) if other == action)
        names = symmetry.renaming(after)
        old = tuple(names.index(new) for new in range(len(names)))
        called = old if called is None else tuple(called[name] for name in old)
    return tuple(path)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Switch the cyclic collector off: states hold no cycles, and there are many of them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
