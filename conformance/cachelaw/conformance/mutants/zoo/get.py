"""Wrong with `get`."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection
from typing import Any

from cachelaw.conformance.mutants.zoo.right import Fifo, Lfu, Recent
from cachelaw.conformance.mutants.zoo.words import Groups, Key, Keys
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.policy import Victims


class CopiesAtGet(Fifo):
    """Hands out a copy of the status, into which the manager then writes."""

    breaks = "get/same-object"

    def get(self, key: Key) -> Any:
        return copy.copy(self.chunks.get(key))


class SnapshotsPinned(Fifo):
    """Hands out a copy of the status once the chunk is pinned."""

    breaks = "get/same-object"

    def get(self, key: Key) -> Any:
        chunk = self.chunks.get(key)
        return copy.copy(chunk) if chunk is not None and chunk.ref_cnt > 0 else chunk


class IgnoresGroups(Fifo):
    """Tells chunks by their block hash alone, though two groups have the same."""

    breaks = "insert/makes-resident"

    def get(self, key: Key) -> Any:
        return self.chunks.get(Key(key[:-4]))

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(Key(key[:-4]), chunk)
        self.names[Key(key[:-4])] = key

    def remove(self, key: Key) -> None:
        del self.chunks[Key(key[:-4])]

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return super().idle([Key(key[:-4]) for key in protected])

    def hand_over(self, victims: Keys) -> Victims:
        return [(self.names[key], chunk) for key, chunk in super().hand_over(victims)]

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.names: dict[Key, Key] = {}


class InventsStatus(Fifo):
    """Answers with a fresh status when the key is absent."""

    breaks = "get/absent-is-none"

    def get(self, key: Key) -> Any:
        return self.chunks[key] if key in self.chunks else ChunkStatus(0)


class RemembersGhost(Fifo):
    """B58: hands out the status of a key that is a ghost."""

    breaks = "evict/forgets-victims"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.ghosts: dict[Key, Any] = {}

    def get(self, key: Key) -> Any:
        return self.chunks.get(key, self.ghosts.get(key))

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.ghosts.update(pairs)
        return pairs

    def clear(self) -> None:
        super().clear()
        self.ghosts.clear()


class GetRenews(Recent):
    """B74: takes an existence check for a use."""

    breaks = "get/no-side-effect"

    def get(self, key: Key) -> Any:
        self.renew(key)
        return super().get(key)


class GetScores(Lfu):
    """B74: raises the score of whatever is asked for."""

    breaks = "get/no-side-effect"

    def get(self, key: Key) -> Any:
        if key in self.chunks:
            self.counts[key] += 1
        return super().get(key)


class GetLeases(Fifo):
    """B74: spares the chunk that was asked for last, if it can."""

    breaks = "get/no-side-effect"
    leased: Key | None = None

    def get(self, key: Key) -> Any:
        self.leased = key
        return super().get(key)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=lambda key: key == self.leased)


class GetHarderLeases(GetLeases):
    """B74: never evicts the chunk that was asked for last."""

    breaks = "evict/none-only-when-short"
    also = ("get/no-side-effect",)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [key for key in super().idle(protected) if key != self.leased]


class GetOpensSessions(Recent):
    """Takes a look-up of an absent key for the announcement of its use."""

    breaks = "get/no-side-effect"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.asked: Counter[Key] = Counter()

    def get(self, key: Key) -> Any:
        self.asked[key] += key not in self.chunks
        return super().get(key)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=self.asked.__getitem__)

    def clear(self) -> None:
        super().clear()
        self.asked.clear()


class InventsForStrangers(Fifo):
    """Answers with a fresh status when it has never heard of the key."""

    breaks = "get/absent-is-none"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.heard: set[Key] = set()

    def get(self, key: Key) -> Any:
        return super().get(key) if key in self.heard else ChunkStatus(0)

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.heard.add(key)

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.heard.update(keys)

    def on_store_miss(self, keys: Keys, context: Any) -> None:
        self.heard.update(keys)

    def on_request_access(self, keys: Keys, context: Any) -> None:
        self.heard.update(keys)

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        for group in groups:
            self.heard.update(group)


class GhostUntilInserted(RemembersGhost):
    """B58: hands out the status of a ghost until its key is inserted again."""

    breaks = "evict/forgets-victims"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.ghosts.pop(key, None)
