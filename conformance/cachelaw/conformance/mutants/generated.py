"""Mutants of the reference: every first-order mutation of a policy's source, as a subject.

A mutant is a policy, or a filter, of the reference with one thing changed. It lives in a copy of
the reference's modules of its own, so that the reference beside which it is judged stays as it is.
Each is a subject like any other, by its name:

    cachelaw certify 'cachelaw.conformance.mutants.generated:arc/evict/31/gte-to-gt/arc-v0_31'

that is file, function, line within the function, what was done, policy and edition.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import cachelaw.reference.recency
from cachelaw.conformance.mutants.mutate import Mutation, mutations
from cachelaw.reference.editions import EDITIONS, Edition

REFERENCE = Path(cachelaw.reference.recency.__file__).parent

CHAPTERS = ("recency", "order", "lru", "arc", "cores", "resident", "reuse_filter")
CLASSES = tuple(f"v{edition.since[0]}{edition.since[1]:02d}" for edition in EDITIONS)
FAMILY = (*CHAPTERS, *CLASSES)
"""The modules that a mutant has copies of: those that decide an answer."""

LIST, EVICTABLE, RANKED = ("LRU v0.31",), ("LRU v0.24",), ("LRU v0.33",)
ARC, OLD_ARC = ("ARC v0.31",), ("ARC v0.27", "ARC v0.31")
ALL_ARC_AND_LISTS = (*LIST, *RANKED, *ARC)
BOTH_FILTERS = ("Filter v0.19", "Filter v0.20")

TARGETS: dict[str, dict[str, tuple[str, ...]]] = {
    "recency": {
        "trim": ARC,
        "eligible": ALL_ARC_AND_LISTS,
        "": (*LIST, *EVICTABLE, *ARC),
    },
    "order": {"": ALL_ARC_AND_LISTS},
    "lru": {
        "list": ("LRU v0.22", *LIST),
        "evictable": EVICTABLE,
        "EvictableOrder": EVICTABLE,
        "": RANKED,
    },
    "arc": {"evict": OLD_ARC, "": ARC},
    "resident": {"declaration": (), "": (*LIST, *ARC)},
    "v019": {
        "LRU-touch": ("LRU v0.22",),
        "LRU": LIST,
        "ARC-falls_back_to_t1": ("ARC v0.27",),
        "ARC": ARC,
    },
    "v022": {"LRU": LIST, "ARC": ARC},
    "v024": {"LRU": EVICTABLE},
    "v026": {"LRU": ("LRU v0.26",), "ARC": ARC},
    "v030": {"ARC": ARC},
    "v031": {"LRU": LIST, "ARC": ARC},
    "v033": {"LRU": RANKED, "ARC": ("ARC v0.33",)},
    "reuse_filter": {
        "_check": BOTH_FILTERS,
        "_ReuseFilter": BOTH_FILTERS,
        "FilterReusedOffloadingManagerV019": ("Filter v0.19",),
        "FilterReusedOffloadingManagerV020": ("Filter v0.20",),
    },
}
"""For each file, which policies of which editions run what is in it.

The longest beginning of a function's or class's name that is listed counts; what matches none is
not mutated: the tracker's functional core, which no filter runs (the tests compare the two).
"""


STATES = {
    "lru": ("EvictableOrder", "RankedOrder", "RequestRank"),
    "arc": ("ArcState",),
}
"""The classes of states."""

_HOME = "cachelaw.reference"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutation in one policy.

    Attributes:
        name: file, function, line, operator, and target, joined by slashes.
        file: the module's name.
        target: the policy and edition, as `ARC v0.31`.
        mutation: what was changed.
    """

    name: str
    file: str
    target: str
    mutation: Mutation

    @property
    def subject(self) -> str:
        """The name by which the suite finds it."""
        return f"{__name__}:{self.name}"

    @property
    def edition(self) -> Edition:
        """Whose semantics it was made from."""
        wanted = self.target.partition(" ")[2]
        return next(edition for edition in EDITIONS if edition.name == wanted)

    def module(self, name: str) -> ModuleType:
        """Return a module of the mutant's own copy of the reference."""
        return importlib.import_module(f"{_loaded(self)}.{name}")

    def build(self) -> Any:
        """Return the mutant's class."""
        policy = self.target.partition(" ")[0]
        attribute = "FilterReusedOffloadingManager" if policy == "Filter" else policy
        return getattr(self.module(self.edition.module.rpartition(".")[2]), attribute)


@cache
def mutants() -> dict[str, Mutant]:
    """Return every mutant by name, in the order of files, sources and editions."""
    found: dict[str, Mutant] = {}
    for file, targets in TARGETS.items():
        for mutation in mutations(_source(file)):
            if "-cachelaw" in mutation.where:
                continue  # what a class says of itself to the suite is no part of the policy
            for target in _targets(targets, mutation.where):
                suffix = target.lower().replace(" ", "-").replace(".", "_")
                name = f"{file}/{mutation.name}/{suffix}"
                found[name] = Mutant(name, file, target, mutation)
    return found


def _targets(targets: dict[str, tuple[str, ...]], where: str) -> tuple[str, ...]:
    matching = [beginning for beginning in targets if where.startswith(beginning)]
    return targets[max(matching, key=len)] if matching else ()


def __getattr__(name: str) -> Any:
    """Return the class of the mutant called `name`."""
    mutant = mutants().get(name)
    if mutant is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return mutant.build()


# --- Copies of the reference ---------------------------------------------------------------------


@cache
def _source(file: str) -> str:
    return (REFERENCE / f"{file}.py").read_text(encoding="utf-8")


class _Rehomed(ast.NodeTransformer):
    """Lets a module import its family from the copy instead of from the reference."""

    def __init__(self, package: str) -> None:
        self.package = package

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        module = node.module or ""
        head, _, tail = module.rpartition(".")
        if head == _HOME and tail in FAMILY:
            node.module = f"{self.package}.{tail}"
        elif module == _HOME:
            node.module = self.package
        return node


def _loaded(mutant: Mutant) -> str:
    """Load a mutant's copy of the reference, once; return the name of its package."""
    package = "cachelaw_mutant_" + "".join(c if c.isalnum() else "_" for c in mutant.name)
    if package in sys.modules:
        return package
    home = sys.modules[package] = ModuleType(package)
    home.__path__ = []
    for file in FAMILY:
        tree = mutant.mutation.tree() if file == mutant.file else ast.parse(_source(file))
        spec = importlib.util.spec_from_loader(f"{package}.{file}", loader=None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        code = compile(_Rehomed(package).visit(tree), f"<{mutant.name}>", "exec")
        exec(code, vars(module))
        setattr(home, file, module)
        for name in STATES.get(file, ()):
            # One class of states for the reference and the mutant, so that they can be compared.
            if not mutant.mutation.where.startswith(name):
                setattr(module, name, getattr(importlib.import_module(f"{_HOME}.{file}"), name))
    return package
