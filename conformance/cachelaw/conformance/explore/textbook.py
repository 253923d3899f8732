"""Where vLLM's ARC departs from the paper's, difference by difference.

Served one key at a time, the two differ in three things, and `Reading` has a switch for each. All
off it is the paper's algorithm, all on vLLM's; both are proved by product at small scope. With one
switch flipped alone, the shortest sequence of keys that shows the difference belongs to that
difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cachelaw.conformance.explore.calls import Scope
from cachelaw.conformance.explore.products import Comparison, Serving, ServingSymmetry, differs
from cachelaw.conformance.explore.search import Exploration, explore
from cachelaw.reference import arc, textbook_arc
from cachelaw.reference.arc import ArcState
from cachelaw.reference.recency import forget, renew, trim
from cachelaw.reference.textbook_arc import TextbookState

Said = tuple[bool, "int | None"]
"""Whether the key was resident, and who left for it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of ARC between the paper's and vLLM's.

    Attributes:
        takes_at_target: T1 gives from its target rounded down on, whatever was hit. The paper: T1
            gives above its target, and at it if the key is in B2.
        ghosts_enter_t1: a ghost that is hit comes back into T1. The paper: into T2.
        ghosts_bounded_apart: B1 and B2 hold up to c each. The paper: T1 and B1 hold up to c
            together, and all four lists up to 2c.
    """

    takes_at_target: bool = False
    ghosts_enter_t1: bool = False
    ghosts_bounded_apart: bool = False

    def flipped(self, name: str) -> Reading:
        """Return the reading with one difference more, or less."""
        flipped: Reading = replace(self, **{name: not getattr(self, name)})
        return flipped

    def serve(self, state: TextbookState[int], key: int) -> tuple[TextbookState[int], Said]:
        """Serve one key."""
        c, p = state.capacity, state.p
        t1, t2, b1, b2 = state.t1, state.t2, state.b1, state.b2

        if key in t1 or key in t2:
            return TextbookState(c, p, forget(t1, key), renew(t2, key), b1, b2), (True, None)

        was_in_b1, was_in_b2 = key in b1, key in b2
        if was_in_b1:
            p = min(p + max(1.0, len(b2) / len(b1)), float(c))
            b1 = renew(b1, key)
        elif was_in_b2:
            p = max(p - max(1.0, len(b1) / len(b2)), 0.0)
            b2 = renew(b2, key)

        victim: int | None = None
        if len(t1) + len(t2) == c:
            if self.takes_at_target:
                t1_gives = len(t1) >= int(p)
            else:
                t1_gives = len(t1) > p or (was_in_b2 and len(t1) == p)
            if t1 and (t1_gives or not t2):
                victim, t1, b1 = t1[0], t1[1:], (*b1, t1[0])
            else:
                victim, t2, b2 = t2[0], t2[1:], (*b2, t2[0])
            if self.ghosts_bounded_apart:
                b1, b2 = trim(b1, c), trim(b2, c)

        b1, b2 = forget(b1, key), forget(b2, key)
        if (was_in_b1 or was_in_b2) and not self.ghosts_enter_t1:
            t2 = (*t2, key)
        else:
            t1 = (*t1, key)
        if not self.ghosts_bounded_apart:
            b1 = trim(b1, c - len(t1))
            b2 = trim(b2, 2 * c - len(t1) - len(t2) - len(b1))
        return TextbookState(c, p, t1, t2, b1, b2), (False, victim)


DIFFERENCES = tuple(field.name for field in fields(Reading))
"""The names of the switches."""

PAPER = Reading()
VLLM = Reading(True, True, True)


def serve_paper(state: TextbookState[int], key: int) -> tuple[TextbookState[int], Said]:
    """Serve one key as the paper's ARC does."""
    after, hit = textbook_arc.request(state, key)
    left = {*state.t1, *state.t2} - {*after.t1, *after.t2}
    return after, (hit, min(left, default=None))


def serve_vllm(state: ArcState[int], key: int) -> tuple[ArcState[int], Said]:
    """Serve one key as a manager with vLLM's ARC does: touch it, or make room and store it."""
    if key in state.t1 or key in state.t2:
        return arc.touch(state, (key,), _idle), (True, None)
    state = arc.store_miss(state, (key,))
    victims: tuple[int, ...] | None = ()
    if len(state.t1) + len(state.t2) == state.capacity:
        state, victims = arc.evict(state, 1, {key}, _idle)
    return arc.insert(state, key), (False, victims[0] if victims else None)


def _idle(key: int) -> int:
    return 0


def rename_lists(state: Any, names: tuple[int, ...]) -> Any:
    """Return a state of either ARC with other names."""
    return replace(
        state,
        **{
            name: tuple([names[key] for key in getattr(state, name)])
            for name in ("t1", "t2", "b1", "b2")
        },
    )


Way = tuple[Callable[[int], Any], Callable[[Any, int], "tuple[Any, Any]"]]
"""From a capacity to the first state, and how a key is served."""

TEXTBOOK: Way = (textbook_arc.empty, serve_paper)
SHIPPED: Way = (ArcState, serve_vllm)


def way_of(reading: Reading) -> Way:
    """Return the way of a reading."""
    return textbook_arc.empty, reading.serve


def serving(one: Way, other: Way, capacity: int, keys: int) -> tuple[Serving, ServingSymmetry]:
    """Return two ways side by side, and the symmetry of their keys."""
    pair = Serving((one[0](capacity), other[0](capacity)), (one[1], other[1]), keys)
    return pair, ServingSymmetry(keys, rename_lists)


def compare_ways(
    one: Way, other: Way, scopes: Sequence[tuple[int, int]], depth: int | None = None
) -> Comparison[tuple[int, ...]]:
    """Search for the shortest sequence of keys that two ways answer differently.

    Args:
        one: a way to serve keys.
        other: another.
        scopes: capacity and number of keys, one after the other.
        depth: how many keys at most, None for no bound.
    """
    best: tuple[int, ...] | None = None
    searched: list[tuple[Scope, Exploration[Any, Any]]] = []
    for capacity, keys in scopes:
        pair, by_names = serving(one, other, capacity, keys)
        found = explore(
            pair,
            symmetry=by_names,
            check_step=differs,
            depth=depth if best is None else len(best) - 1,
        )
        searched.append((Scope(capacity, keys), found))
        if found.broken is not None and (best is None or len(found.broken.path) < len(best)):
            best = found.broken.path
    return Comparison(best, tuple(searched))
