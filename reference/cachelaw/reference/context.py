"""Request context: what a policy may know of the request on whose behalf it is called.

Three things are asked of it: who the request is, where in the request's prefix a key stands, and
a place where anyone may keep what he needs to remember until the request ends.
"""

from __future__ import annotations

from typing import Any, TypeVar

from cachelaw.reference.keys import OffloadKey

T = TypeVar("T")


class ReqContext:
    """One request, as managers and policies see it (vLLM 0.31).

    Args:
        req_id: the request's identity; two live requests never share one.
    """

    def __init__(self, req_id: str) -> None:
        self.req_id = req_id
        self._positions: dict[OffloadKey, int] = {}
        self._state: dict[type, Any] = {}

    def set_offload_key_position(self, key: OffloadKey, end_token: int) -> None:
        """Record that the chunk `key` ends at token `end_token` of this request's prefix."""
        self._positions[key] = end_token

    def get_offload_key_position(self, key: OffloadKey) -> int | None:
        """Return the end token of `key` in this request's prefix, or None if it is not known."""
        return self._positions.get(key)

    def set_state(self, value: object) -> None:
        """Keep `value` for the rest of the request, in place of an earlier one of its type."""
        self._state[type(value)] = value

    def get_state(self, kind: type[T]) -> T | None:
        """Return what was kept of type `kind`, or None."""
        return self._state.get(kind)

    def __repr__(self) -> str:
        return f"ReqContext({self.req_id!r})"
