"""Laws: the executable check of each clause, and which engine makes it.

A law of kind `call` is judged on every call by the witness (`contract.py`), one of kind `twin` by
two instances (`twins.py`), one of kind `process` by several processes (`processes.py`), one of kind
`refinement` by comparison with the reference (`oracle.py`), one of kind `filter` beside the
reference filter (`filters/`). Those of kinds `cost` and `memory` measure what a policy spends over
runs in which nothing else is judged (`cost.py`, `memory.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from cachelaw.conformance import cost, memory
from cachelaw.conformance.foreign import EXCUSES
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.twins import ASKING, TWINS
from cachelaw.specs.clause import Clause
from cachelaw.specs.registry import CLAUSES


@dataclass(frozen=True, slots=True)
class Law:
    """The check of one clause.

    Attributes:
        clause: the clause.
        kind: the engine that makes it: `call`, `twin`, `process`, `refinement`, `filter`, `cost` or
            `memory`.
    """

    clause: Clause
    kind: str

    def excuse(self, subject: Subject) -> str | None:
        """Say why the law is not applicable to a subject, None if it is."""
        edition = subject.edition.name
        if not self.clause.holds_in(edition):
            return f"no clause of edition {edition}"
        needs_twins = self.kind in ("twin", "process") and self.clause.name not in ALSO_BY_CALL
        if subject.randomized and needs_twins:
            return "needs determinism; the subject declares itself randomized"
        if subject.may_refuse and self.clause.name == "evict/none-only-when-short":
            return "the subject declares that it may refuse"
        if subject.specification and self.kind == "cost":
            return cost.SPECIFICATION
        if subject.foreign:
            return EXCUSES.get(self.clause.name)
        if self.clause.name == ASKING and not subject.offers_state:
            return OFFERS_NONE
        return None


OFFERS_NONE = "the subject offers no cachelaw_state"
"""Why most subjects are not asked for their state."""

CALL_LAWS = (
    "chunk-status/manager-writes",
    "call/valid-call-returns",
    "call/arguments-unchanged",
    "get/same-object",
    "get/absent-is-none",
    "insert/makes-resident",
    "remove/forgets",
    "touch/keeps-residency",
    "evict/list-of-pairs",
    "evict/exact-count",
    "evict/distinct",
    "evict/resident-only",
    "evict/idle-only",
    "evict/protected-honoured",
    "evict/same-object",
    "evict/forgets-victims",
    "evict/keeps-others",
    "evict/none-only-when-short",
    "clear/forgets-all",
    "marks/keep-residency",
)
"""The clauses that the witness alone judges."""


ALSO_BY_CALL = (
    "evict/none-changes-nothing",
    "evict/zero-is-empty",
)
"""Twin laws of which the witness judges a part, also where there can be no twins."""


def _kind(clause: Clause) -> str | None:
    if clause.name in TWINS:
        return "twin"
    if clause.name in PROCESS_LAWS:
        return "process"
    if clause.name in CALL_LAWS:
        return "call"
    if clause.name in (cost.CLAUSE, memory.CLAUSE):
        return "cost" if clause.name == cost.CLAUSE else "memory"
    if clause.no_law or clause.profile is None:
        return None
    return "filter" if clause.profile == "reuse-filter" else "refinement"


LAWS: dict[str, Law] = {
    name: Law(clause, kind)
    for name, clause in CLAUSES.items()
    if (kind := _kind(clause)) is not None
}
"""Every law, by the name of its clause."""


def laws_for(subject: Subject) -> tuple[Law, ...]:
    """Return the laws of the profiles that a subject claims, in the order of the registry."""
    return laws_of(subject.profile)


def laws_of(profile: str) -> tuple[Law, ...]:
    """Return the laws that whoever claims a profile is judged by, in the order of the registry."""
    if profile == "reuse-filter":
        return tuple(law for law in LAWS.values() if law.kind == "filter")
    return tuple(law for law in LAWS.values() if law.clause.profile in ("contract", profile))
