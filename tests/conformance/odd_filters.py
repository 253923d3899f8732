"""Filters to find subjects by: of two forms, of none, and with two faults."""

from __future__ import annotations

from typing import Any

from cachelaw.conformance.mutants.zoo.filters import FirstInFirstOut, RightV019, SkipsEmptyOffers


class SkipsEmptyOffersFirstInFirstOut(SkipsEmptyOffers, FirstInFirstOut):
    """Skips empty offers first in first out."""


class FitsBothForms(RightV019):
    """Right as either."""

    def lookup(self, *args: Any) -> Any:
        if len(args) == 1:
            return super().lookup(*args)
        self.see(args[0])
        return self.backing.lookup(*args)

    def prepare_load(self, *args: Any) -> Any:
        return self.backing.prepare_load(*args)

    def prepare_store(self, keys: Any, *context: Any) -> Any:
        return self.backing.prepare_store([key for key in keys if self.passes(key)], *context)


class DeclaredFilter(RightV019):
    """Declared filter."""

    cachelaw = {"profile": "reuse-filter", "edition": "v0.19"}  # noqa: RUF012


class TakesNothing:
    """Takes nothing."""
