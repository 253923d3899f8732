"""Request order: one head-to-tail order of everything a request used.

A request's chunks come group by group, one KV cache group after the other. A prefix is usable
only from its head, whatever the group, so before anything is made old the groups are woven
together by where the chunks end in the prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey

K = TypeVar("K")


def by_position(keys: Sequence[K], position_of: Callable[[K], int | None]) -> list[K]:
    """Sort `keys` head to tail if every position is known, else leave them as they are.

    A key that stands there twice counts as unknown: the order is then that of the call
    (`request-order/duplicates-keep-call-order`). Equal positions keep the order of the call
    (`request-order/ties-keep-call-order`).

    Args:
        keys: keys in the order of the call.
        position_of: end token of a key in the request's prefix, None if not known.
    """
    positions = {key: at for key in keys if (at := position_of(key)) is not None}
    if len(positions) != len(keys):
        # request-order/partly-known-keeps-call-order
        return list(keys)
    # request-order/by-end-token
    return sorted(keys, key=positions.__getitem__)


def order_request_keys(
    key_groups: Sequence[Sequence[OffloadKey]], req_context: ReqContext
) -> list[OffloadKey]:
    """Return one head-to-tail order across all KV cache groups (vLLM 0.31).

    Args:
        key_groups: the keys of each group, head first, groups by index.
        req_context: the request whose positions order them.
    """
    keys = [key for group in key_groups for key in group]
    return by_position(keys, req_context.get_offload_key_position)
