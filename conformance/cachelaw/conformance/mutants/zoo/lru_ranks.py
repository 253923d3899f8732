"""Wrong as LRU of request ranks (v0.33)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cachelaw.conformance.mutants.zoo.words import Key, Keys
from cachelaw.reference import lru, v033
from cachelaw.reference.context import ReqContext
from cachelaw.reference.policy import Victims


class NewcomersOldestRank(v033.LRU):
    """B63: ranks a chunk of unknown position as the oldest."""

    breaks = "lru/insert-is-use"

    def insert(self, key: Key, chunk: Any, req_context: ReqContext) -> None:  # type: ignore[override]
        super().insert(key, chunk, req_context)
        if req_context.get_offload_key_position(key) is None:
            self.state = lru.place(self.state, key, (0, -self.state.serial))


class BatchAfterBatch(v033.LRU):
    """B10: gives every batch of a running request a rank of its own."""

    breaks = "lru/batches-share-a-rank"

    def insert(self, key: Key, chunk: Any, req_context: ReqContext) -> None:  # type: ignore[override]
        super().insert(key, chunk, ReqContext(req_context.req_id))


class HeadOfRankFirst(v033.LRU):
    """B10: orders the chunks of a running request by position, and the head leaves first."""

    breaks = "lru/batches-share-a-rank"

    def insert(self, key: Key, chunk: Any, req_context: ReqContext) -> None:  # type: ignore[override]
        super().insert(key, chunk, req_context)
        serial, position = next(rank for rank, other in self.state.entries if other == key)
        self.state = lru.place(self.state, key, (serial, -position))


class RankMovesOn(v033.LRU):
    """Renews a request's rank with every batch that it stores."""

    breaks = "lru/batches-share-a-rank"

    def insert(self, key: Key, chunk: Any, req_context: ReqContext) -> None:  # type: ignore[override]
        rank = self.recall(req_context)
        self.chunks[key] = chunk
        position = req_context.get_offload_key_position(key)
        newest = rank is None or rank.serial == self.state.serial
        self.state, rank = lru.ranked_insert(self.state, key, position, rank if newest else None)
        self._memorize(req_context, rank)


class AccessUnheard(v033.LRU):
    """Does not listen to what a running request sees."""

    breaks = "lru/access-joins-rank"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None: ...


class AccessIsTouch(v033.LRU):
    """Takes what a running request sees for a touch on its own."""

    breaks = "lru/access-joins-rank"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None:
        known = [k for k in keys if req_context.get_offload_key_position(k) is not None]
        self.touch(known, req_context)


class AccessSkipsBusy(v033.LRU):
    """Lets only idle chunks join the rank of a running request."""

    breaks = "lru/access-joins-rank"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None:
        there = [key for key in keys if key in self.chunks and not self.ref_cnt(key)]
        super().on_request_access(there, req_context)


class AccessDemotes(v033.LRU):
    """B10, companion: an older request takes a chunk down to its own rank."""

    breaks = "lru/access-never-demotes"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None:
        for key in (keys := list(keys)):
            if lru.rank_of(self.state, key) and req_context.get_offload_key_position(key):
                self.state = lru.place(self.state, key, (0, 0))
        super().on_request_access(keys, req_context)


class UnknownJoins(v033.LRU):
    """Lets a chunk join a request that does not know its position, as its tail."""

    breaks = "lru/access-needs-position"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None:
        keys = list(keys)
        super().on_request_access(keys, req_context)
        serial = self.state.serial
        for key in keys:
            rank = lru.rank_of(self.state, key)
            unknown = req_context.get_offload_key_position(key) is None
            if unknown and rank is not None and rank < (serial, -1):
                self.state = lru.place(self.state, key, (serial, -1))


class TiesByInsertion(v033.LRU):
    """Lets the chunk that came first leave first when two end at the same token."""

    breaks = "lru/equal-rank-by-key-order"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        age = {key: at for at, key in enumerate(self.chunks)}
        entries = sorted(self.state.entries, key=lambda entry: (entry[0], age[entry[1]]))
        self.state = replace(self.state, entries=tuple(entries))
        victims = super().evict(n, protected)
        self.state = replace(self.state, entries=tuple(sorted(self.state.entries)))
        return victims


class TiesReversed(v033.LRU):
    """Lets the greater key leave first when two chunks end at the same token."""

    breaks = "lru/equal-rank-by-key-order"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        greater_first = sorted(self.state.entries, key=lambda entry: entry[1], reverse=True)
        entries = tuple(sorted(greater_first, key=lambda entry: entry[0]))
        self.state = replace(self.state, entries=entries)
        victims = super().evict(n, protected)
        self.state = replace(self.state, entries=tuple(sorted(self.state.entries)))
        return victims


class RanksOutliveClear(v033.LRU):
    """B29: goes on with the rank that a request was given before the clear."""

    breaks = "lru/clear-voids-request-ranks"
    also = ("clear/equals-new",)

    def clear(self) -> None:
        self.chunks.clear()
        self.state = lru.RankedOrder()


class RankKeepsTwoBatches(v033.LRU):
    """B10: forgets the rank of a request that has stored more than six chunks."""

    breaks = "lru/batches-share-a-rank"
    needs_search = True

    def insert(self, key: Key, chunk: Any, req_context: ReqContext) -> None:  # type: ignore[override]
        rank = self.recall(req_context)
        shared = rank and sum(other[0] == rank.serial for other, _ in self.state.entries)
        super().insert(key, chunk, ReqContext("new") if shared and shared > 6 else req_context)
