"""The interface between a manager and its eviction policy, one class for each edition of it.

The seed's edition, v0.31, comes first and explains every method. The newest, v0.33, follows and
is the `CachePolicy` that this package exports. After it come the older ones, each of which says
only what it had that the one before it had not. All are to be subclassed by anyone.

Promises between the two sides, as named clauses: `specs/cache-policy.md`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey

Victims = list[tuple[OffloadKey, Any]]
"""Evicted chunks: each key with the very status object that was inserted under it."""


def check_capacity(cache_capacity: object) -> int:
    """Return `cache_capacity` if a cache can have it.

    The contract leaves this open, since the releases accept anything; our own classes do not.

    Raises:
        ValueError: it is not an integer of 1 or more.
    """
    if not isinstance(cache_capacity, int) or isinstance(cache_capacity, bool):
        raise ValueError(f"cache_capacity must be an int, got {cache_capacity!r}")
    if cache_capacity < 1:
        raise ValueError(f"cache_capacity must be 1 or more, got {cache_capacity}")
    return cache_capacity


class CachePolicyV031(ABC):
    """Holds the resident chunks and decides which leave (vLLM 0.31 and 0.32, the seed).

    Args:
        cache_capacity: the number of chunks that fit, 1 or more.
    """

    def __init__(self, cache_capacity: int) -> None:
        self.cache_capacity = cache_capacity

    @abstractmethod
    def get(self, key: OffloadKey) -> ChunkStatus | None:
        """Return the chunk resident under `key`, or None. Not a use (`get/no-side-effect`)."""

    @abstractmethod
    def insert(self, key: OffloadKey, chunk: ChunkStatus) -> None:
        """Make `chunk` resident under `key`, which is absent (`insert/makes-resident`)."""

    @abstractmethod
    def remove(self, key: OffloadKey) -> None:
        """Forget the resident `key` without evicting it: its store failed (`remove/forgets`)."""

    @abstractmethod
    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Mark chunks as used, head of the prefix first.

        Args:
            keys: keys in prefix order; any of them may be absent; may be a one-shot iterable.
            req_context: the request that used them.
        """

    def on_store_miss(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Observe absent keys that are about to be stored, before anything is evicted for them.

        The default is a touch (`hooks/store-miss-defaults-to-touch`).
        """
        self.touch(keys, req_context)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Take in all that a request used, once, when it has ended.

        The default touches group after group (`hooks/finish-defaults-to-touch`).

        Args:
            key_groups: the keys the request saw, a sequence for each KV cache group, head first.
            insertion_only_keys: those it stored and did not find resident before.
            reused_keys: those it found ready.
            req_context: the request.
        """
        for keys in key_groups:
            self.touch(keys, req_context)

    @abstractmethod
    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict exactly `n` idle chunks, none of them in `protected`, or change nothing.

        Args:
            n: how many, 0 or more; may exceed what is eligible, or the capacity.
            protected: keys to keep, resident or not.

        Returns:
            The evicted chunks, or None if fewer than `n` are eligible
            (`evict/none-only-when-short`); then nothing has changed
            (`evict/none-changes-nothing`).
        """

    @abstractmethod
    def clear(self) -> None:
        """Become as new, whatever the ref counts (`clear/equals-new`)."""

    # Not abstract: a policy that reads ref counts when it evicts needs no marks.

    def mark_evictable(self, key: OffloadKey) -> None:  # noqa: B027
        """Learn that the ref count of `key` has become 0. The default ignores it."""

    def mark_non_evictable(self, key: OffloadKey) -> None:  # noqa: B027
        """Learn that the ref count of `key` is about to leave 0. The default ignores it."""


class CachePolicyV033(CachePolicyV031):
    """New in v0.33: `on_request_access`; `insert` learns the storing request's context."""

    @abstractmethod
    def insert(  # type: ignore[override]  # the interface broke here
        self, key: OffloadKey, chunk: ChunkStatus, req_context: ReqContext
    ) -> None:
        """Make `chunk` resident under `key`, on behalf of `req_context`."""

    def on_request_access(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Observe keys that a running request sees for the first time, resident or not.

        The default ignores them (`hooks/access-defaults-to-nothing`).
        """


CachePolicy = CachePolicyV033
"""The newest interface."""


class CachePolicyV019(ABC):
    """The first interface (vLLM 0.19 to 0.21): five methods and a constructor."""

    @abstractmethod
    def __init__(self, cache_capacity: int) -> None: ...

    @abstractmethod
    def get(self, key: OffloadKey) -> Any:
        """Return the block resident under `key`, or None."""

    @abstractmethod
    def insert(self, key: OffloadKey, chunk: Any) -> None:
        """Make `chunk` resident under `key`."""

    @abstractmethod
    def remove(self, key: OffloadKey) -> None:
        """Forget `key`: its store failed."""

    @abstractmethod
    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Mark blocks as used, head of the prefix first."""

    @abstractmethod
    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict exactly `n` idle blocks, none of them in `protected`, or change nothing."""


class CachePolicyV022(CachePolicyV019):
    """New in v0.22: `clear`."""

    @abstractmethod
    def clear(self) -> None:
        """Become as new, whatever the ref counts."""


class CachePolicyV024(CachePolicyV022):
    """New in v0.24: the marks."""

    def mark_evictable(self, key: OffloadKey) -> None:
        """Learn that the ref count of `key` has become 0. The default ignores it."""

    def mark_non_evictable(self, key: OffloadKey) -> None:
        """Learn that the ref count of `key` is about to leave 0. The default ignores it."""


class CachePolicyV026(CachePolicyV024):
    """New in v0.26: `touch` learns the context of the request that used the blocks."""

    @abstractmethod
    def touch(  # type: ignore[override]  # the interface broke here
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> None:
        """Mark blocks as used, head of the prefix first, on behalf of `req_context`."""


class CachePolicyV027(CachePolicyV026):
    """New in v0.27: a constructor that keeps the capacity, no longer abstract."""

    def __init__(self, cache_capacity: int) -> None:
        self.cache_capacity = cache_capacity
