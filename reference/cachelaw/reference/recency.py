"""Recency lists: four moves on one tuple of keys, least recently used first.

Every list of this reference is such a tuple: LRU's order, ARC's T1 and T2 and its ghost lists
B1 and B2. What a policy *is* lies in which of these moves it makes when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

K = TypeVar("K")


def renew(order: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Return `order` with `key` at its most recently used end, wherever it stood, if at all."""
    return (*forget(order, key), key)


def forget(order: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Return `order` without `key`."""
    return tuple(other for other in order if other != key)


def trim(order: tuple[K, ...], limit: int) -> tuple[K, ...]:
    """Return the `limit` most recently used keys of `order`, 0 <= limit."""
    return order[max(0, len(order) - limit) :]


def eligible(
    order: tuple[K, ...], protected: Collection[K], ref_cnt: Callable[[K], int]
) -> tuple[K, ...]:
    """Return the keys of `order` that may be evicted: idle and not protected.

    Args:
        order: keys of resident chunks.
        protected: keys that the caller must keep.
        ref_cnt: the ref count of a resident chunk, as the manager keeps it.
    """
    return tuple(key for key in order if ref_cnt(key) == 0 and key not in protected)
