"""ARC's target stays within 0 and the capacity, in exact arithmetic (`arc/target-bounded`).

If 0 <= target <= c holds before an operation it holds after it, for every capacity c, whatever
the ghost lists hold (`arc/b1-hit-raises-target`, `arc/b2-hit-lowers-target`,
`arc/step-is-ratio-of-ghosts`). It holds of a new policy (`arc/target-starts-at-zero`), and hence
always. Besides, the step is at least 1, so that a hit moves the target by at least one unless
that would leave the range.

**What is abstracted.** Of the state only capacity and target are left. The sizes of the ghost
lists enter through their ratio, and here the ratio is any real of 0 or more: the proof covers
more ratios than there are sizes. That is enough because no operation uses keys or lists to compute
the target in any other way. Reals do not round; `arc_target_float64.py` is the theorem for the
doubles that the code computes with.
"""

from __future__ import annotations

from collections.abc import Mapping

import z3

from proofs.theorem import counterexample, preserved

PROVES = {"arc/target-bounded": "in exact arithmetic"}
"""The clauses that are proved, each with what of it and under which assumption."""

capacity, target, after, ratio = z3.Reals("capacity target after ratio")

step = z3.If(ratio > 1, ratio, 1)
raised = z3.If(capacity < target + step, capacity, target + step)
lowered = z3.If(target - step < 0, 0, target - step)

bounded = z3.And(target >= 0, target <= capacity)
bounded_after = z3.And(after >= 0, after <= capacity)

STEPS = {
    "hit in B1": z3.And(ratio >= 0, after == raised),
    "hit in B2": z3.And(ratio >= 0, after == lowered),
    "clear": after == 0,
    "anything else": after == target,
}


def prove() -> z3.CheckSatResult:
    """Prove that every operation keeps the target in its range, and moves it by one at least."""
    answer = preserved(bounded, STEPS, bounded_after)
    if answer != z3.unsat:
        return answer
    moves = z3.And(
        z3.Or(raised >= target + 1, raised == capacity),
        z3.Or(lowered <= target - 1, lowered == 0),
    )
    return counterexample(z3.And(bounded, ratio >= 0), moves)


def negated() -> Mapping[str, z3.CheckSatResult]:
    """Leave out what the theorem rests on; each time Z3 must find a counterexample."""
    unbounded_above = {"hit in B1": z3.And(ratio >= 0, after == target + step)}
    unbounded_below = {"hit in B2": z3.And(ratio >= 0, after == target - step)}
    unbounded_step = z3.If(capacity < target + ratio, capacity, target + ratio)
    return {
        "the capacity does not limit": preserved(bounded, unbounded_above, bounded_after),
        "zero does not limit": preserved(bounded, unbounded_below, bounded_after),
        "the step may be below one": counterexample(
            z3.And(bounded, ratio >= 0),
            z3.Or(unbounded_step >= target + 1, unbounded_step == capacity),
        ),
    }
