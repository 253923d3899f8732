"""Proofs for every capacity: what bounded search cannot reach, by induction, with Z3.

One file is one theorem. Each says in its docstring what it proves, about which abstraction of the
code, and why that abstraction is enough. `python -m proofs` proves all of them and prints a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import z3

from proofs import (
    arc_disjoint,
    arc_sizes,
    arc_target,
    arc_target_float64,
    filter_tracker,
    lru_idle_order,
)


class Theorem(Protocol):
    """What each module of this package but `theorem` and `__main__` is."""

    __name__: str
    __doc__: str | None
    PROVES: dict[str, str]

    def prove(self) -> z3.CheckSatResult:
        """Look for a counterexample; `unsat` is the proof."""

    def negated(self) -> Mapping[str, z3.CheckSatResult]:
        """Do so for variants that leave something out; `sat` shows that the proof can fail."""


THEOREMS: tuple[Theorem, ...] = (
    arc_target,
    arc_target_float64,
    arc_sizes,
    arc_disjoint,
    lru_idle_order,
    filter_tracker,
)
"""All theorems, in the order of the table."""


def name_of(theorem: Theorem) -> str:
    """Return the name of a theorem: that of its module."""
    return theorem.__name__.rpartition(".")[2]
