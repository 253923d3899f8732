"""The search itself, against a naive twin and against a machine whose counts are known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb, factorial, prod

import pytest

from cachelaw.conformance.explore.search import explore, path_to
from cachelaw.conformance.explore.symmetry import orbit, ranks

Edges = dict[int, list[tuple[str, int]]]


@dataclass
class Graph:
    """A machine given by its edges."""

    edges: Edges
    start: int = 0

    def steps(self, state: int) -> Iterator[tuple[str, None, int]]:
        for name, after in self.edges[state]:
            yield name, None, after


def random_graph(rng: random.Random) -> Graph:
    size = rng.randint(1, 12)
    return Graph(
        {
            state: [
                (f"{state}.{at}", rng.randrange(size)) for at in range(rng.choice((0, 1, 2, 3)))
            ]
            for state in range(size)
        }
    )


def twin(graph: Graph, depth: int | None) -> tuple[dict[int, int], int, bool]:
    """Return the distance of each state, the transitions, and whether all were taken; naively."""
    distance, transitions = {graph.start: 0}, 0
    taken: set[int] = set()
    while True:
        todo = [s for s in distance if s not in taken and (depth is None or distance[s] < depth)]
        if not todo:
            return distance, transitions, taken == set(distance)
        state = min(todo, key=distance.__getitem__)
        taken.add(state)
        for _, after in graph.edges[state]:
            transitions += 1
            distance.setdefault(after, distance[state] + 1)


@pytest.mark.parametrize("seed", range(300))
def test_counts_and_paths_are_those_of_a_naive_twin(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    depth = rng.choice((None, None, 0, 1, 2, 3))
    found = explore(graph, depth=depth)
    distance, transitions, complete = twin(graph, depth)
    assert set(found.parents) == set(distance)
    assert found.states == len(distance)
    assert found.transitions == transitions
    assert found.depth == max(distance.values())
    # At the bound, states without a step are taken by the twin and not by the search.
    assert found.closed == complete or depth is not None
    for state, steps in distance.items():
        path = path_to(graph, found, state)
        assert len(path) == steps
        here = graph.start
        for name in path:
            here = dict(graph.edges[here])[name]
        assert here == state


@pytest.mark.parametrize("seed", range(100))
def test_what_breaks_is_the_nearest(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    distance, _, _ = twin(graph, None)
    bad = {state for state in graph.edges if rng.random() < 0.3}
    found = explore(graph, check_state=lambda state: "bad" if state in bad else None)
    nearest = min((distance[state] for state in bad if state in distance), default=None)
    if nearest is None:
        assert found.broken is None and found.closed and found.extent == "closed"
        return
    assert found.broken is not None and found.broken.state in bad
    assert len(found.broken.path) == nearest
    assert found.extent == "broken" and not found.closed


def test_a_step_that_breaks_ends_the_path() -> None:
    graph = Graph({0: [("a", 1)], 1: [("b", 2), ("c", 0)], 2: [("d", 2)]})
    found = explore(
        graph, check_step=lambda before, action, answer, after: "no c" if action == "c" else None
    )
    assert found.broken is not None
    assert (found.broken.clause, found.broken.path, found.broken.state) == ("no c", ("a", "c"), 1)


def test_to_a_depth_is_not_closed() -> None:
    graph = Graph({0: [("a", 1)], 1: [("b", 2)], 2: []})
    found = explore(graph, depth=1)
    assert (found.states, found.transitions, found.extent) == (2, 1, "to depth 1")
    assert explore(graph).extent == "closed"


# --- Symmetry ------------------------------------------------------------------------------------

Counters = tuple[int, ...]


@dataclass
class Wheels:
    """Interchangeable counters, each from 0 to a top; any may be turned up or set back."""

    count: int
    top: int

    @property
    def start(self) -> Counters:
        return (0,) * self.count

    def steps(self, state: Counters) -> Iterator[tuple[tuple[str, int], None, Counters]]:
        for at, value in enumerate(state):
            if value < self.top:
                yield ("up", at), None, (*state[:at], value + 1, *state[at + 1 :])
            yield ("back", at), None, (*state[:at], 0, *state[at + 1 :])


class WheelSymmetry:
    def renaming(self, state: Counters) -> tuple[int, ...]:
        return ranks(list(state))

    def rename(self, state: Counters, names: tuple[int, ...]) -> Counters:
        renamed = [0] * len(state)
        for at, value in enumerate(state):
            renamed[names[at]] = value
        return tuple(renamed)

    def rename_action(self, action: tuple[str, int], names: tuple[int, ...]) -> tuple[str, int]:
        return action[0], names[action[1]]

    def orbit(self, state: Counters) -> int:
        return orbit(list(state))


@pytest.mark.parametrize(("count", "top"), [(1, 3), (2, 2), (3, 2), (4, 3)])
def test_reduction_counts_each_kind_of_state_once(count: int, top: int) -> None:
    machine, symmetry = Wheels(count, top), WheelSymmetry()
    plain, reduced = explore(machine), explore(machine, symmetry=symmetry)
    assert plain.states == (top + 1) ** count
    assert reduced.states == comb(top + count, count)
    assert sum(map(symmetry.orbit, reduced.parents)) == plain.states
    assert reduced.depth == plain.depth
    for state in plain.parents:
        assert symmetry.rename(state, symmetry.renaming(state)) in reduced.parents


@pytest.mark.parametrize("target", [(0, 1, 2), (2, 2, 2), (1, 1, 2)])
def test_a_path_found_by_reduction_can_be_run(target: Counters) -> None:
    machine, symmetry = Wheels(3, 2), WheelSymmetry()
    found = explore(
        machine, symmetry=symmetry, check_state=lambda s: "there" if s == target else None
    )
    assert found.broken is not None and len(found.broken.path) == sum(target)
    here = machine.start
    for action in found.broken.path:
        here = next(after for other, _, after in machine.steps(here) if other == action)
    assert tuple(sorted(here)) == target


def test_a_step_at_fault_is_told_in_names_that_can_be_run() -> None:
    machine, symmetry = Wheels(3, 2), WheelSymmetry()

    def check(before: Counters, action: tuple[str, int], _: None, after: Counters) -> str | None:
        kind, at = action
        at_fault = kind == "back" and sorted(before) == [0, 1, 2] and before[at] == 2
        return "lost" if at_fault else None

    found = explore(machine, symmetry=symmetry, check_step=check)
    assert found.broken is not None and len(found.broken.path) == 4
    here = machine.start
    for action in found.broken.path[:-1]:
        here = next(after for other, _, after in machine.steps(here) if other == action)
    assert check(here, found.broken.path[-1], None, here) == "lost"


def test_an_orbit_has_as_many_states_as_renamings_that_show() -> None:
    assert orbit([3, 3, 3]) == 1
    assert orbit([1, 2, 3, 4]) == factorial(4)
    assert orbit([1, 1, 2, 2]) == factorial(4) // prod([2, 2])
