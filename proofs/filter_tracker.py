"""The reuse filter's tracker never outgrows its limit, and counts from 1.

It holds no more than `max_tracker_size` keys, for every such limit of 1 or more
(`reuse-filter/tracker-at-least-one`), since a new key makes room for itself
(`reuse-filter/tracker-drops-least-recent`); and whatever it holds was seen at least once
(`reuse-filter/lookup-counts-each-key`).

**What is abstracted.** Of the tracker the limit, the size and what it holds of one arbitrary key
are left: whether it is there, and its count. That is enough because the bound speaks of the size
alone, and because observing a key changes the entries of other keys only by dropping one; whether
it is this one is left open. That there is an entry to drop rests on the limit being at least 1. A
lookup of many keys is one such step after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import z3

from proofs.theorem import preserved

PROVES = {
    "reuse-filter/tracker-drops-least-recent": "the bound on the tracker's size, not who goes",
    "reuse-filter/lookup-counts-each-key": "that a key is there from a count of 1 on, no more",
}
"""The clauses that are proved, each with what of it and under which assumption."""


class Tracked(NamedTuple):
    """The limit and size of the tracker; whether it holds the key, and with which count."""

    limit: z3.ArithRef
    size: z3.ArithRef
    held: z3.BoolRef
    count: z3.ArithRef


BEFORE = Tracked(z3.Int("limit"), z3.Int("size"), z3.Bool("held"), z3.Int("count"))
AFTER = Tracked(z3.Int("limit'"), z3.Int("size'"), z3.Bool("held'"), z3.Int("count'"))


def invariant(tracked: Tracked) -> z3.BoolRef:
    """Say that the tracker is within its limit, and that a key it holds was seen."""
    return z3.And(tracked.limit >= 1, _but_the_limit(tracked))


def _but_the_limit(tracked: Tracked) -> z3.BoolRef:
    return z3.And(
        tracked.size >= 0,
        tracked.size <= tracked.limit,
        z3.If(tracked.held, z3.And(tracked.count >= 1, tracked.size >= 1), tracked.count == 0),
    )


def steps(a: Tracked, b: Tracked) -> dict[str, z3.BoolRef]:
    """Relate what is known before a key is observed to what is known after it."""
    full = a.size >= a.limit
    # `others[1:]` of an empty tuple is empty: what is not there cannot be dropped.
    dropped = z3.If(z3.And(full, a.size > 0), 1, 0)
    relations = {
        "observe, known": z3.And(
            a.held, a.count > 0, b.held, b.count == a.count + 1, b.size == a.size
        ),
        "observe, new": z3.And(a.count == 0, b.held, b.count == 1, b.size == a.size - dropped + 1),
        "observe another, known": z3.And(
            a.size >= 1, b.size == a.size, b.held == a.held, b.count == a.count
        ),
        "observe another, new": z3.And(
            b.size == a.size - dropped + 1,
            z3.Or(
                # With one entry in all, held here, a drop can only be of it.
                z3.And(b.held == a.held, b.count == a.count, z3.Implies(b.held, b.size >= 2)),
                z3.And(dropped == 1, a.held, z3.Not(b.held), b.count == 0),
            ),
        ),
    }
    return {name: z3.And(step, b.limit == a.limit) for name, step in relations.items()}


def prove() -> z3.CheckSatResult:
    """Prove that observing any key keeps the bounds."""
    return preserved(invariant(BEFORE), steps(BEFORE, AFTER), invariant(AFTER))


def negated() -> Mapping[str, z3.CheckSatResult]:
    """Leave out what the theorem rests on; each time Z3 must find a counterexample."""
    a, b = BEFORE, AFTER
    no_room = z3.And(a.count == 0, b.held, b.count == 1, b.size == a.size + 1, b.limit == a.limit)
    from_zero = z3.And(a.count == 0, b.held, b.count == 0, b.size == a.size, b.limit == a.limit)
    return {
        "the limit may be 0": preserved(_but_the_limit(a), steps(a, b), _but_the_limit(b)),
        "a new key makes no room": preserved(invariant(a), {"new": no_room}, invariant(b)),
        "a new key starts at 0": preserved(invariant(a), {"new": from_zero}, invariant(b)),
    }
