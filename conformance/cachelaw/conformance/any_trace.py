"""What every trace has in common, whatever it is a run of.

A policy's run and a filter's consist of different events at different scopes. Findings, shrinking
and reports need no more of either than this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from typing_extensions import Self


class AnyTrace(Protocol):
    """A run that can be repeated."""

    @property
    def events(self) -> tuple[Any, ...]:
        """What happened, in order."""

    def with_events(self, events: Sequence[Any], /) -> Self:
        """Return the same run with other events."""

    def as_json(self) -> dict[str, Any]:
        """Return the trace as plain data."""
