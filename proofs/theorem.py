"""What the theorems share: how a claim is put to Z3, and what its answer means.

A theorem here is an implication over all integers, reals or doubles of its variables: whatever
state satisfies the invariant, whatever step the code may take from it, the next state satisfies
the invariant too. Z3 is asked for a state and a step that break it.

`unsat`: there is none, the theorem is proved. `sat`: here is one. `unknown`: Z3 gave up, and
nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping

import z3

TIMEOUT_MS = 120_000
"""Longest time for one question to Z3, far above what any of them takes."""


def search(*claims: z3.BoolRef) -> z3.CheckSatResult:
    """Ask for values of the variables that satisfy all `claims`."""
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*claims)
    return solver.check()


def counterexample(assumed: z3.BoolRef, claimed: z3.BoolRef) -> z3.CheckSatResult:
    """Ask for values that satisfy `assumed` and break `claimed`; `unsat` proves the implication."""
    return search(assumed, z3.Not(claimed))


def preserved(
    invariant: z3.BoolRef, steps: Mapping[str, z3.BoolRef], afterwards: z3.BoolRef
) -> z3.CheckSatResult:
    """Ask for a step that leads from within the invariant to without; `unsat` proves induction.

    That each step can be taken at all from within the invariant is asked first: of a step that
    cannot, anything would be proved.

    Args:
        invariant: on the state before.
        steps: what each operation does, as a relation of the states before and after.
        afterwards: the invariant on the state after.

    Returns:
        `sat` or `unknown` as soon as one step has that answer.
    """
    for name, step in steps.items():
        if search(invariant, step) != z3.sat:
            raise AssertionError(f"{name} cannot happen in the abstraction; its proof is empty")
    for step in steps.values():
        answer = counterexample(z3.And(invariant, step), afterwards)
        if answer != z3.unsat:
            return answer
    return z3.unsat
