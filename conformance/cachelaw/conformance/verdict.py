"""What a verdict means. Everything that reports one takes its meaning from here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Verdict(Enum):
    """The outcome of one law, or of a whole run.

    Undetermined never counts as holds: a law whose condition was never met has not been tested.
    """

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDETERMINED = "undetermined"
    NOT_APPLICABLE = "not applicable"


EXIT_CONFORMS = 0
EXIT_VIOLATED = 1
EXIT_UNUSABLE = 2
EXIT_UNDETERMINED = 3


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict over all laws: violated, else undetermined, else holds.

    Laws that are not applicable change nothing; no applicable law at all is undetermined.
    """
    found = set(verdicts)
    for verdict in (Verdict.VIOLATED, Verdict.UNDETERMINED, Verdict.HOLDS):
        if verdict in found:
            return verdict
    return Verdict.UNDETERMINED


def exit_status(verdict: Verdict) -> int:
    """Return the exit status of a run with this overall verdict.

    0 conforms, 1 violated, 3 undetermined. (2, an unusable subject, has no verdict.)
    """
    return {
        Verdict.HOLDS: EXIT_CONFORMS,
        Verdict.VIOLATED: EXIT_VIOLATED,
        Verdict.UNDETERMINED: EXIT_UNDETERMINED,
        Verdict.NOT_APPLICABLE: EXIT_UNDETERMINED,
    }[verdict]
