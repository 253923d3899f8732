"""ARC's lists keep within the capacity.

|T1| + |T2| <= c after every operation, if the caller keeps `caller/inserts-absent-keys`: it
inserts only when a slot is free. And |B1| <= c and |B2| <= c after every successful eviction
(`arc/ghosts-trimmed-to-capacity`); since no other operation lets a ghost list grow, the bound
holds at all times. All three hold for every capacity.

**What is abstracted.** Of the state only the capacity and the sizes of the four lists are left.
That is enough because the bounds speak of sizes alone, and because each operation changes the
sizes in one of the ways below, whatever the keys are. That `renew` makes a list longer by one, not
by none, when a chunk comes from another list rests on the lists being disjoint, which
`arc_disjoint.py` proves. How many chunks a batch promotes, and how an eviction divides between T1
and T2, is left open: the proof covers all divisions, those that ARC would not choose included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import z3

from proofs.theorem import preserved

PROVES = {
    "arc/ghosts-trimmed-to-capacity": "the bound on the sizes of B1 and B2, not which ghosts go"
}
"""The clauses that are proved, each with what of it and under which assumption."""


class Sizes(NamedTuple):
    """The sizes of the four lists, and the capacity."""

    t1: z3.ArithRef
    t2: z3.ArithRef
    b1: z3.ArithRef
    b2: z3.ArithRef
    capacity: z3.ArithRef


BEFORE = Sizes(*z3.Ints("t1 t2 b1 b2 capacity"))
AFTER = Sizes(*z3.Ints("t1' t2' b1' b2' capacity'"))


def invariant(sizes: Sizes) -> z3.BoolRef:
    """Say that residents and each of the ghost lists fit the capacity."""
    return z3.And(
        *(size >= 0 for size in sizes),
        sizes.t1 + sizes.t2 <= sizes.capacity,
        sizes.b1 <= sizes.capacity,
        sizes.b2 <= sizes.capacity,
    )


def steps(a: Sizes, b: Sizes) -> dict[str, z3.BoolRef]:
    """Relate the sizes `a` before each operation to the sizes `b` after it."""
    same_cache = z3.And(b.t1 == a.t1, b.t2 == a.t2)
    same_ghosts = z3.And(b.b1 == a.b1, b.b2 == a.b2)
    one_ghost_less = z3.And(
        z3.Or(b.b1 == a.b1, b.b1 == a.b1 - 1), z3.Or(b.b2 == a.b2, b.b2 == a.b2 - 1), *_natural(b)
    )
    promoted = z3.And(b.t1 <= a.t1, b.t1 >= 0, b.t1 + b.t2 == a.t1 + a.t2)
    relations = {
        "insert": z3.And(a.t1 + a.t2 < a.capacity, b.t1 == a.t1 + 1, b.t2 == a.t2, one_ghost_less),
        "remove": z3.And(_fewer(a, b), a.t1 + a.t2 - b.t1 - b.t2 <= 1, same_ghosts),
        "touch": z3.And(promoted, same_ghosts),
        "on_store_miss": z3.And(same_cache, same_ghosts),
        "on_request_finished": z3.And(promoted, same_ghosts),
        "evict": z3.And(
            _fewer(a, b),
            b.b1 == _at_most(a.b1 + a.t1 - b.t1, a.capacity),
            b.b2 == _at_most(a.b2 + a.t2 - b.t2, a.capacity),
        ),
        "evict, refused": z3.And(same_cache, same_ghosts),
        "clear": z3.And(b.t1 == 0, b.t2 == 0, b.b1 == 0, b.b2 == 0),
    }
    return {name: z3.And(step, b.capacity == a.capacity) for name, step in relations.items()}


def _natural(sizes: Sizes) -> list[z3.BoolRef]:
    return [size >= 0 for size in sizes]


def _fewer(a: Sizes, b: Sizes) -> z3.BoolRef:
    """Say that chunks may have left the cache and none has come or moved."""
    return z3.And(b.t1 >= 0, b.t1 <= a.t1, b.t2 >= 0, b.t2 <= a.t2)


def _at_most(size: z3.ArithRef, limit: z3.ArithRef) -> z3.ArithRef:
    """Return the size of a list of `size` keys that is trimmed to `limit`."""
    return z3.If(size > limit, limit, size)


def prove() -> z3.CheckSatResult:
    """Prove that every operation keeps the bounds."""
    return preserved(invariant(BEFORE), steps(BEFORE, AFTER), invariant(AFTER))


def negated() -> Mapping[str, z3.CheckSatResult]:
    """Leave out what the theorem rests on; each time Z3 must find a counterexample."""
    a, b = BEFORE, AFTER
    unchanged = z3.And(b.t2 == a.t2, b.b1 == a.b1, b.b2 == a.b2, b.capacity == a.capacity)
    no_free_slot = {"insert": z3.And(b.t1 == a.t1 + 1, unchanged)}
    untrimmed = {
        "evict": z3.And(
            _fewer(a, b),
            b.b1 == a.b1 + a.t1 - b.t1,
            b.b2 == a.b2 + a.t2 - b.t2,
            b.capacity == a.capacity,
        )
    }
    return {
        "inserts need no free slot": preserved(invariant(a), no_free_slot, invariant(b)),
        "ghosts are not trimmed": preserved(invariant(a), untrimmed, invariant(b)),
    }
