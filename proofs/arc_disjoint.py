"""ARC's lists have no key in common (`arc/lists-disjoint`).

A key stands in at most one of T1, T2, B1 and B2, and there at most once. Every operation keeps
that, for every capacity and any number of keys, if the caller keeps `caller/inserts-absent-keys`.
It holds of a new policy, whose lists are empty, and hence always.

**What is abstracted.** The proof follows one arbitrary key and counts how often it stands in each
list; all else is left out. That is enough because the lists are disjoint and free of repetitions
exactly when no key has a sum above 1, and because what an operation does to the copies of one
key depends on other keys only in ways that are left open here: whether an eviction chooses
this key, and whether trimming drops it from a ghost list. An operation on other keys changes none
of the counts. A batch is one such step after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import z3

from proofs.theorem import preserved

PROVES = {"arc/lists-disjoint": "if the caller keeps `caller/inserts-absent-keys`"}
"""The clauses that are proved, each with what of it and under which assumption."""


class Copies(NamedTuple):
    """How often the key stands in each list."""

    t1: z3.ArithRef
    t2: z3.ArithRef
    b1: z3.ArithRef
    b2: z3.ArithRef


BEFORE = Copies(*z3.Ints("t1 t2 b1 b2"))
AFTER = Copies(*z3.Ints("t1' t2' b1' b2'"))


def invariant(copies: Copies) -> z3.BoolRef:
    """Say that the key stands in at most one place."""
    return z3.And(*(count >= 0 for count in copies), z3.Sum(*copies) <= 1)


def steps(a: Copies, b: Copies) -> dict[str, z3.BoolRef]:
    """Relate the counts `a` before each operation on the key to the counts `b` after it.

    `forget` leaves no copy and `renew` leaves one, whatever there was.
    """
    same = _same(a, b, "t1", "t2", "b1", "b2")
    renewed_in_t1 = z3.And(b.t1 == 1, _same(a, b, "t2", "b1", "b2"))
    renewed_in_t2 = z3.And(b.t2 == 1, _same(a, b, "t1", "b1", "b2"))
    promoted = z3.And(b.t1 == 0, b.t2 == 1, _same(a, b, "b1", "b2"))
    adapted = z3.If(
        a.b1 > 0,
        z3.And(b.b1 == 1, _same(a, b, "t1", "t2", "b2")),
        z3.If(a.b2 > 0, z3.And(b.b2 == 1, _same(a, b, "t1", "t2", "b1")), same),
    )
    return {
        "insert": z3.And(a.t1 == 0, a.t2 == 0, b.t1 == 1, b.t2 == 0, b.b1 == 0, b.b2 == 0),
        "remove": z3.And(b.t1 == 0, b.t2 == 0, _same(a, b, "b1", "b2")),
        "touch": z3.If(
            a.t1 > 0,
            z3.Or(renewed_in_t1, promoted),  # pending or ready
            z3.If(a.t2 > 0, renewed_in_t2, adapted),
        ),
        "on_store_miss": adapted,
        "on_request_finished": z3.Or(
            same,  # merely seen, or not resident
            z3.And(a.t1 > 0, z3.Or(renewed_in_t1, promoted)),  # stored or reused
            z3.And(a.t1 == 0, a.t2 > 0, renewed_in_t2),
        ),
        "evict": z3.Or(
            z3.And(a.t1 > 0, b.t1 == 0, b.t2 == a.t2, _trimmed(a.b1 + a.t1, b.b1), _kept_b2(a, b)),
            z3.And(a.t2 > 0, b.t2 == 0, b.t1 == a.t1, _trimmed(a.b2 + a.t2, b.b2), _kept_b1(a, b)),
            z3.And(b.t1 == a.t1, b.t2 == a.t2, _kept_b1(a, b), _kept_b2(a, b)),
        ),
        "evict, refused": same,
        "clear": z3.And(b.t1 == 0, b.t2 == 0, b.b1 == 0, b.b2 == 0),
        "an operation on other keys": same,
    }


def _same(a: Copies, b: Copies, *lists: str) -> z3.BoolRef:
    """Say that these lists hold the key as often as before."""
    return z3.And(*(getattr(a, name) == getattr(b, name) for name in lists))


def _trimmed(count: z3.ArithRef, left: z3.ArithRef) -> z3.BoolRef:
    """Say that `left` copies out of `count` may be left by trimming."""
    return z3.And(left >= 0, left <= count)


def _kept_b1(a: Copies, b: Copies) -> z3.BoolRef:
    return _trimmed(a.b1, b.b1)


def _kept_b2(a: Copies, b: Copies) -> z3.BoolRef:
    return _trimmed(a.b2, b.b2)


def prove() -> z3.CheckSatResult:
    """Prove that every operation keeps the key in at most one place."""
    return preserved(invariant(BEFORE), steps(BEFORE, AFTER), invariant(AFTER))


def negated() -> Mapping[str, z3.CheckSatResult]:
    """Leave out what the theorem rests on; each time Z3 must find a counterexample."""
    a, b = BEFORE, AFTER
    variants = {
        "a resident may be inserted": z3.And(b.t1 == 1, b.b1 == 0, b.b2 == 0, b.t2 == a.t2),
        "an insert leaves the ghost": z3.And(
            a.t1 == 0, a.t2 == 0, b.t1 == 1, _same(a, b, "t2", "b1", "b2")
        ),
        "a promotion leaves a copy": z3.And(a.t1 > 0, b.t2 == 1, _same(a, b, "t1", "b1", "b2")),
        "an eviction leaves the chunk": z3.And(
            a.t1 > 0, b.b1 == a.b1 + a.t1, _same(a, b, "t1", "t2", "b2")
        ),
    }
    return {
        name: preserved(invariant(a), {name: step}, invariant(b)) for name, step in variants.items()
    }
