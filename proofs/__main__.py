"""Prove everything: `python -m proofs` prints one row a theorem and fails unless all are proved."""

from __future__ import annotations

import sys
from time import perf_counter

import z3

from proofs import THEOREMS, name_of


def main() -> int:
    """Print the table; return 0 if every theorem is proved and every variant refuted, else 1."""
    print(f"{'theorem':22}{'result':12}{'seconds':>8}  variants that must be refuted")
    sound = True
    for theorem in THEOREMS:
        begun = perf_counter()
        answer = theorem.prove()
        seconds = perf_counter() - begun
        result = "proved" if answer == z3.unsat else "refuted" if answer == z3.sat else "unknown"
        variants = theorem.negated()
        refuted = sum(found == z3.sat for found in variants.values())
        print(
            f"{name_of(theorem):22}{result:12}{seconds:8.2f}  {refuted} of {len(variants)} refuted",
            flush=True,
        )
        sound = sound and result == "proved" and refuted == len(variants)
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
