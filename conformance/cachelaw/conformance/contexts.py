"""Request contexts with the attributes that hosts set and no law speaks of.

A policy may read them; with none of them set by the user they are what stands here. Source: the
fields of `ReqContext` in the releases.
"""

from __future__ import annotations

from typing import Any

from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import V027, V031, Edition


class HostContext(ReqContext):
    """A request before v0.27: it may bring parameters of the transfer, and here brings none."""

    kv_transfer_params: dict[str, Any] | None = None


class EveryTier:
    """The filter of a request that may load from every tier."""

    matchers: tuple[Any, ...] = ()

    def allows(self, medium: Any, locality: Any) -> bool:
        """Say yes."""
        return True


class HostContextV027(HostContext):
    """A request from v0.27 on: it says from which tiers it may load, and here from all."""

    load_tier_filter = EveryTier()


class HostContextV031(HostContextV027):
    """A request from v0.31 on: it may bring hints, and here brings none."""

    kv_hints: Any = None


def context_class(edition: Edition) -> type[HostContext]:
    """Return the class of the contexts that hosts of an edition pass."""
    if edition >= V031:
        return HostContextV031
    return HostContextV027 if edition >= V027 else HostContext
