"""LRU from v0.24 to v0.30 offers for eviction the idle chunks, and no others.

Between two events of the protocol a resident stands in the evictable order, once, exactly when its
ref count is 0, and an absent key does not stand there. Every event keeps that, for every capacity,
if the caller keeps `caller/marks-transitions`, `caller/inserts-absent-keys` and
`caller/removes-pending-keys`. Hence an eviction returns no pending and no pinned chunk
(`evict/idle-only`) and no absent one (`evict/resident-only`), although it never reads a ref count.

**What is abstracted.** The proof follows one arbitrary key: whether it is resident, its ref count,
and how often it stands in the order. That is enough because what an event does to one key depends
on other keys only in whether an eviction reaches it, which is left open. A step is what an event
does to the key from the first call about it to the last; in between the order and the ref count
differ, since the manager marks before it pins and after it releases, and no eviction can fall in
between. An event with several keys is one such step after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import z3

from proofs.theorem import counterexample, preserved

PROVES = {
    "evict/idle-only": "of LRU v0.24 to v0.30, if the caller keeps what the file names",
    "evict/resident-only": "of LRU v0.24 to v0.30, if the caller keeps what the file names",
}
"""The clauses that are proved, each with what of it and under which assumption."""


class Key(NamedTuple):
    """What is known of the key: resident or not, its ref count, its copies in the order."""

    resident: z3.BoolRef
    ref_cnt: z3.ArithRef
    places: z3.ArithRef


BEFORE = Key(z3.Bool("resident"), *z3.Ints("ref_cnt places"))
AFTER = Key(z3.Bool("resident'"), *z3.Ints("ref_cnt' places'"))


def invariant(key: Key) -> z3.BoolRef:
    """Say that the key has a place in the order if and only if it is resident and idle."""
    return z3.And(
        key.ref_cnt >= -1,
        key.places == z3.If(z3.And(key.resident, key.ref_cnt == 0), 1, 0),
    )


def steps(a: Key, b: Key) -> dict[str, z3.BoolRef]:
    """Relate what is known before each event to what is known after it.

    `renew` gives one place and `forget` leaves none, whatever there was.
    """
    same = z3.And(b.resident == a.resident, b.ref_cnt == a.ref_cnt, b.places == a.places)
    absent = z3.And(z3.Not(b.resident), b.ref_cnt >= -1, b.places == 0)
    pending = z3.And(a.resident, a.ref_cnt == -1)
    return {
        "StoreOffered": z3.And(
            z3.Not(a.resident), b.resident, b.ref_cnt == -1, b.places == a.places
        ),
        "StoreSucceeds": z3.And(pending, b.resident, b.ref_cnt == 0, b.places == 1),
        "StoreFails": z3.And(pending, absent),
        "LoadStarts": z3.And(
            a.resident,
            a.ref_cnt >= 0,
            b.resident,
            b.ref_cnt == a.ref_cnt + 1,
            b.places == z3.If(a.ref_cnt == 0, 0, a.places),
        ),
        "LoadEnds": z3.And(
            a.resident,
            a.ref_cnt >= 1,
            b.resident,
            b.ref_cnt == a.ref_cnt - 1,
            b.places == z3.If(a.ref_cnt == 1, 1, a.places),
        ),
        "Touch": z3.And(
            b.resident == a.resident,
            b.ref_cnt == a.ref_cnt,
            b.places == z3.If(a.places > 0, 1, a.places),
        ),
        "Evict": z3.And(a.places > 0, absent),
        "Reset": absent,
        "an event about other keys": same,
    }


def prove() -> z3.CheckSatResult:
    """Prove that every event keeps idle chunks, and no others, in the order."""
    answer = preserved(invariant(BEFORE), steps(BEFORE, AFTER), invariant(AFTER))
    if answer != z3.unsat:
        return answer
    return counterexample(
        z3.And(invariant(BEFORE), steps(BEFORE, AFTER)["Evict"]),
        z3.And(BEFORE.resident, BEFORE.ref_cnt == 0),
    )


def negated() -> Mapping[str, z3.CheckSatResult]:
    """Leave out what the theorem rests on; each time Z3 must find a counterexample."""
    a, b = BEFORE, AFTER
    same_chunk = z3.And(b.resident == a.resident, b.ref_cnt == a.ref_cnt)
    loading = z3.And(a.resident, b.resident, a.ref_cnt >= 0, b.ref_cnt == a.ref_cnt + 1)
    ending = z3.And(a.resident, b.resident, a.ref_cnt >= 1, b.ref_cnt == a.ref_cnt - 1)
    variants = {
        "a pinned chunk is not unmarked": z3.And(loading, b.places == a.places),
        "an idle chunk is not marked": z3.And(ending, b.places == a.places),
        "every end of a load marks": z3.And(ending, b.places == 1),
        "a touch gives a place": z3.And(same_chunk, b.places == 1),
        "a remove leaves the place": z3.And(
            a.resident, z3.Not(b.resident), b.ref_cnt >= -1, b.places == a.places
        ),
    }
    return {
        name: preserved(invariant(a), {name: step}, invariant(b)) for name, step in variants.items()
    }
