"""The course of a run: how far it has come, so that another process can take it up."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cachelaw.conformance.finding import Finding, Tally


@dataclass(slots=True)
class Course:
    """How far a run has come.

    Attributes:
        unit: the number of the next unit of work.
        tally: what was done.
        found: the first finding of each clause.
        blamed: clauses of findings that were a divergence from the reference, from which the clause
            was concluded.
        clouded: laws that the run leaves open, with the reason.
        excused: laws that turned out not to be applicable, with the reason.
        searches: of each small scope that was searched exhaustively, what came of it.
        diverged: random programs that diverged from the reference.
        cut: why no more is to be run, empty if all is.
    """

    unit: int = 0
    tally: Tally = field(default_factory=lambda: Tally(Counter()))
    found: dict[str, Finding[Any]] = field(default_factory=dict)
    blamed: set[str] = field(default_factory=set)
    clouded: dict[str, str] = field(default_factory=dict)
    excused: dict[str, str] = field(default_factory=dict)
    searches: list[dict[str, Any]] = field(default_factory=list)
    diverged: int = 0
    cut: str = ""

    def as_bytes(self) -> bytes:
        """Write it down."""
        return pickle.dumps(self)

    @staticmethod
    def from_bytes(data: bytes) -> Course:
        """Read it back. Only for what a process of this run has written."""
        course = pickle.loads(data)
        assert isinstance(course, Course)
        return course
