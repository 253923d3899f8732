"""ARC's target stays within 0 and the capacity, in doubles (`arc/target-bounded`).

The theorem of `arc_target.py` for the arithmetic that the code runs on: IEEE 754 doubles, rounded
to the nearest, ties to even. The target never becomes a NaN or infinite either. So rounding may
put the target a little off its exact value, but never outside of its range.

**What is abstracted.** Of the state only capacity and target are left, as in `arc_target.py`. The
ratio of the ghost lists is any double of 0 or more, infinity included; Python's division of two
lengths, the second at least 1, gives no other. The capacity is any finite double of 0 or more,
which covers `float(c)` of every capacity that a double can hold. `min` and `max` are Python's: the
first argument, unless the second is strictly smaller or larger.
"""

from __future__ import annotations

from collections.abc import Mapping

import z3

from proofs.theorem import preserved

PROVES = {"arc/target-bounded": "in IEEE 754 doubles, as the code computes"}
"""The clauses that are proved, each with what of it and under which assumption."""

DOUBLE = z3.Float64()
NEAREST = z3.RNE()
ZERO, ONE = z3.FPVal(0.0, DOUBLE), z3.FPVal(1.0, DOUBLE)

capacity, target, after, ratio = (
    z3.FP(name, DOUBLE) for name in ("capacity", "target", "after", "ratio")
)


def smaller(first: z3.FPRef, second: z3.FPRef) -> z3.FPRef:
    """Return Python's `min(first, second)`."""
    return z3.If(z3.fpLT(second, first), second, first)


def larger(first: z3.FPRef, second: z3.FPRef) -> z3.FPRef:
    """Return Python's `max(first, second)`."""
    return z3.If(z3.fpGT(second, first), second, first)


def within(value: z3.FPRef) -> z3.BoolRef:
    """Say that `value` is from 0 to the capacity; no NaN is."""
    return z3.And(z3.fpLEQ(ZERO, value), z3.fpLEQ(value, capacity))


step = larger(ONE, ratio)
raised = smaller(z3.fpAdd(NEAREST, target, step), capacity)
lowered = larger(z3.fpSub(NEAREST, target, step), ZERO)

is_ratio = z3.fpGEQ(ratio, ZERO)
bounded = z3.And(z3.Not(z3.fpIsInf(capacity)), within(target))

STEPS = {
    "hit in B1": z3.And(is_ratio, after == raised),
    "hit in B2": z3.And(is_ratio, after == lowered),
    "clear": after == ZERO,
    "anything else": after == target,
}


def prove() -> z3.CheckSatResult:
    """Prove that every operation keeps the target in its range."""
    return preserved(bounded, STEPS, within(after))


def negated() -> Mapping[str, z3.CheckSatResult]:
    """Leave out what the theorem rests on; each time Z3 must find a counterexample."""
    unbounded = {"hit in B1": z3.And(is_ratio, after == z3.fpAdd(NEAREST, target, step))}
    any_step = {"hit in B1": after == smaller(z3.fpAdd(NEAREST, ratio, target), capacity)}
    return {
        "the capacity does not limit": preserved(bounded, unbounded, within(after)),
        "the step may be any double": preserved(bounded, any_step, within(after)),
    }
