"""The zoo: policies and filters that are wrong on purpose, each in one way.

`breaks` names the clause that must be the first violation reported, `also` others that must be
reported besides; `breaks_one_of` stands where only random programs tell, and may blame either;
`unusable` where no host can drive the class, so that it gets no verdict.
Where a mutant is a bug that somebody had, its number in the list of known bugs stands first in the
docstring. Classes with none of these are right; mutants are made of them.

Each is a subject: `cachelaw certify cachelaw.conformance.mutants.zoo.right:Fifo`.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

POLICIES = (
    "right",
    "status",
    "instances",
    "get",
    "residency",
    "answers",
    "refusals",
    "clear",
    "states",
    "lru_list",
    "lru_evictable",
    "lru_ranks",
    "arc_uses",
    "arc_target",
    "arc_ghosts",
)
"""The modules that hold policies, from the basic to the specific."""

MEASURED = ("cost", "memory")
"""The modules that hold policies of which only what they spend is wrong."""

FILTERS = ("filters",)
"""The modules that hold reuse filters."""

ALL = (*POLICIES, *MEASURED, *FILTERS)
"""All modules."""


def classes(modules: tuple[str, ...] = POLICIES) -> dict[str, Any]:
    """Return the classes of some modules by name, right and wrong ones, in their order."""
    found: dict[str, Any] = {}
    for name in modules:
        module = importlib.import_module(f"{__name__}.{name}")
        found |= classes_of(module)
    return found


def classes_of(module: Any) -> dict[str, Any]:
    """Return the classes that a module defines itself, by name, in their order."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }


def is_wrong(made: Any) -> bool:
    """Say whether a class of the zoo is wrong: it says itself what it breaks."""
    return not vars(made).keys().isdisjoint(("breaks", "breaks_one_of", "unusable"))


def mutants(modules: tuple[str, ...] = POLICIES) -> dict[str, Any]:
    """Return the wrong classes of some modules by name, in their order."""
    return {name: made for name, made in classes(modules).items() if is_wrong(made)}


def subject_name(made: Any) -> str:
    """Return the name by which the suite finds a class."""
    return f"{made.__module__}:{made.__name__}"
