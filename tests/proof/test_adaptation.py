"""ARC's target in doubles against the target in exact fractions, enumerated.

The doubles are those of the reference: every target here is computed by `arc.store_miss`. The exact
target is a fraction moved by the exact ratio. What is found:

- One step is the exact ratio rounded once, for all ghost lists of up to 64 keys.
- For capacities 1 to 3 the two targets are equal, whatever the sizes of the ghost lists within the
  capacity and whatever the order of the hits: no reachable ratio above 1 has a denominator other
  than 1 or 2.
- From capacity 4 on they can differ after three hits, by the last bit of the double, and so that
  `int(target)` differs too: 2 + 4/3 - 4/3 is 2, and 1.9999999999999998 in doubles. A run that a
  manager of v0.30 could make gets there, and then another chunk is evicted.

So a policy that computes the target exactly is told from the releases, but not below capacity 4.
"""

from __future__ import annotations

import math
from collections import deque
from fractions import Fraction
from functools import lru_cache

import pytest
from tests.proof.runs import Run

from cachelaw.reference import arc
from cachelaw.reference.editions import V030
from cachelaw.reference.protocol import Event, Evict, StoreOffered, StoreSucceeds, Touch

pytestmark = pytest.mark.proof

LARGEST = 64
"""The largest ghost list of the table of steps."""


def _state(capacity: int, target: float, in_b1: int, in_b2: int) -> arc.ArcState[int]:
    """Return a state with ghosts 0, 1, ... in B1 and -1, -2, ... in B2."""
    b1, b2 = tuple(range(in_b1)), tuple(range(-1, -in_b2 - 1, -1))
    return arc.ArcState(capacity, target, (), (), b1, b2)


def _hit(capacity: int, target: float, own: int, other: int, up: bool) -> float:
    """Return the target after a hit in the ghost list of `own` keys, B1 if it goes `up`."""
    if up:
        return arc.store_miss(_state(capacity, target, own, other), (0,)).target
    return arc.store_miss(_state(capacity, target, other, own), (-1,)).target


def _exact_hit(capacity: int, target: Fraction, own: int, other: int, up: bool) -> Fraction:
    """Return what `_hit` does without rounding."""
    step = max(Fraction(1), Fraction(other, own))
    return min(target + step, Fraction(capacity)) if up else max(target - step, Fraction(0))


def _is_rounded_once(found: float, exact: Fraction) -> bool:
    """Say whether no double is nearer to `exact`, and that a tie went to the even one."""
    distance = abs(Fraction(found) - exact)
    for neighbour in (math.nextafter(found, math.inf), math.nextafter(found, -math.inf)):
        away = abs(Fraction(neighbour) - exact)
        if away < distance or (away == distance and _significand(found) % 2 == 1):
            return False
    return True


def _significand(value: float) -> int:
    """Return the 53 bits of `value`, normalized."""
    return int(math.ldexp(math.frexp(value)[0], 53))


def test_step_is_the_exact_ratio_rounded_once() -> None:
    for own in range(1, LARGEST + 1):
        for other in range(LARGEST + 1):
            exact = max(Fraction(1), Fraction(other, own))
            # From 0 nothing is added to the step, so that the new target is the step itself.
            step = _hit(LARGEST, 0.0, own, other, up=True)
            assert _is_rounded_once(step, exact), (own, other)
            # The way down rounds the difference once more, and takes the same step.
            down = _hit(LARGEST, float(LARGEST), own, other, up=False)
            assert _is_rounded_once(down, LARGEST - Fraction(step)), (own, other)


Targets = tuple[Fraction, float]
"""The exact target and the double after the same hits."""


def _moves(capacity: int) -> list[tuple[int, int, bool]]:
    """Return one pair of sizes for every step that ghost lists within the capacity allow."""
    ratios: dict[Fraction, tuple[int, int]] = {}
    for own in range(1, capacity + 1):
        for other in range(capacity + 1):
            ratios.setdefault(max(Fraction(1), Fraction(other, own)), (own, other))
    return [(own, other, up) for own, other in ratios.values() for up in (True, False)]


def _after(capacity: int, most: int) -> dict[Targets, int]:
    """Return all pairs of targets that up to `most` hits lead to, with the fewest hits.

    The ghost lists may have any sizes within the capacity at every hit, which includes all that a
    cache can make of them.
    """
    moves = _moves(capacity)
    hit = lru_cache(maxsize=None)(_hit)
    found: dict[Targets, int] = {(Fraction(0), 0.0): 0}
    waiting = deque(found)
    while waiting:
        exact, double = pair = waiting.popleft()
        if found[pair] == most:
            continue
        for own, other, up in moves:
            moved = hit(capacity, double, own, other, up)
            after = (_exact_hit(capacity, exact, own, other, up), moved)
            if after not in found:
                found[after] = found[pair] + 1
                waiting.append(after)
    return found


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_targets_are_exact_below_capacity_4(capacity: int) -> None:
    found = _after(capacity, most=10**6)
    assert max(found.values()) < 10  # all there is, not all there was time for
    assert all(exact == double for exact, double in found)


@pytest.mark.parametrize("capacity", [4, 5, 6, 7, 8])
def test_targets_differ_from_capacity_4_on(capacity: int) -> None:
    found = _after(capacity, most=4)
    for exact, double in found:
        assert 0.0 <= double <= capacity  # arc/target-bounded
        if exact == double:
            assert int(double) == math.floor(exact)
    differ = [pair for pair in found if int(pair[1]) != math.floor(pair[0])]
    assert min(found[pair] for pair in differ) == (3 if capacity < 8 else 2)
    for exact, double in differ:
        # They disagree only where one is a whole number and the other lies just beside it.
        assert abs(Fraction(double) - exact) < Fraction(1, 2**48)
        assert abs(exact - round(exact)) < Fraction(1, 2**48)


@pytest.mark.deep
@pytest.mark.parametrize("capacity", [9, 12, 16])
def test_targets_differ_at_larger_capacities(capacity: int) -> None:
    found = _after(capacity, most=3)
    assert all(0.0 <= double <= capacity for _, double in found)
    assert any(int(double) != math.floor(exact) for exact, double in found)


def _stored(*keys: int, reused: tuple[int, ...] = ()) -> list[Event[int]]:
    """Return the events that store keys and use some of them again."""
    events: list[Event[int]] = [StoreOffered(keys, "r"), StoreSucceeds(keys)]
    return [*events, Touch(reused, "r")] if reused else events


def test_at_capacity_4_a_double_evicts_another_chunk() -> None:
    run = Run("arc", V030, 4)
    exact = Fraction(0)

    run.play([*_stored(0, 1, 2, reused=(1, 2)), Evict(3)])
    assert (len(run.state.b1), len(run.state.b2)) == (1, 2)
    run.play([Touch((0,), "r")])
    exact += Fraction(2, 1)
    assert run.state.target == exact == 2

    run.play([*_stored(3, 4, reused=(3, 4)), Evict(2), *_stored(5, 6), Evict(2)])
    assert (len(run.state.b1), len(run.state.b2)) == (3, 4)
    run.play([Touch((0,), "r")])
    exact += Fraction(4, 3)

    run.play([*_stored(1), Evict(1)])
    assert (len(run.state.b1), len(run.state.b2)) == (4, 3)
    run.play([Touch((2,), "r")])
    exact -= Fraction(4, 3)
    assert exact == 2
    assert run.state.target == 1.9999999999999998

    run.play(_stored(7, 8, reused=(8,)))
    (called,) = run.happen(Evict(1)).calls
    assert called.victims == (7,)
    rounded_right = arc.ArcState(4, 2.0, called.before.t1, called.before.t2)
    _, victims = arc.evict(rounded_right, 1, (), lambda key: 0)
    assert victims == (8,)
