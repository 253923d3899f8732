"""Wrong with status objects and arguments."""

from __future__ import annotations

from typing import Any

from cachelaw.conformance.mutants.zoo.right import Fifo, Recent
from cachelaw.conformance.mutants.zoo.words import Groups, Key, Keys
from cachelaw.reference.policy import Victims


class PinsForItself(Fifo):
    """Keeps touched chunks by counting up their ref counts."""

    breaks = "chunk-status/manager-writes"

    def touch(self, keys: Keys, context: Any = None) -> None:
        for key in keys:
            if key in self.chunks:
                self.chunks[key].ref_cnt += 1


class StampsVictims(Fifo):
    """Marks what it hands back as pending."""

    breaks = "chunk-status/manager-writes"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        for _, chunk in pairs:
            chunk.ref_cnt = -1
        return pairs


class RenumbersSlots(Fifo):
    """Gives slots numbers of its own, counting from 1."""

    breaks = "chunk-status/manager-writes"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        chunk.chunk_id += 1


class RemoveScrubs(Fifo):
    """Wipes the slot out of the status of a failed store, which the manager is about to free."""

    breaks = "chunk-status/manager-writes"

    def remove(self, key: Key) -> None:
        self.chunks.pop(key).chunk_id = -1


class ReadiesAtTouch(Fifo):
    """Takes a touch of a pending chunk for the end of its store."""

    breaks = "chunk-status/manager-writes"

    def touch(self, keys: Keys, context: Any = None) -> None:
        for key in keys:
            if key in self.chunks and self.chunks[key].ref_cnt < 0:
                self.chunks[key].ref_cnt = 0


class TouchNeedsResidents(Recent):
    """Raises when an absent key is touched."""

    breaks = "call/valid-call-returns"

    def renew(self, key: Key) -> None:
        self.chunks[key] = self.chunks.pop(key)


class GetNeedsResidents(Fifo):
    """B58: a look-up of an absent key goes wrong."""

    breaks = "call/valid-call-returns"

    def get(self, key: Key) -> Any:
        return self.chunks[key]


class TouchNeedsKeys(Recent):
    """Looks at the last key of a touch before it knows that there is one."""

    breaks = "call/valid-call-returns"

    def touch(self, keys: Keys, context: Any = None) -> None:
        keys = list(keys)
        self.renew(keys.pop())
        super().touch(keys)


class EvictNeedsResidents(Fifo):
    """Looks at its oldest chunk before it knows that there is one."""

    breaks = "call/valid-call-returns"

    def evict(self, n: int, protected: set[Key]) -> Any:
        oldest = next(iter(self.chunks)) if n else None
        assert n == 0 or oldest is not None
        return super().evict(n, protected)


class FinishNeedsKeys(Fifo):
    """Raises at the end of a request that saw nothing."""

    breaks = "call/valid-call-returns"

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        max(len(group) for group in groups)


class FinishNeedsResidents(Recent):
    """Raises at the end of a request of whose chunks one has been evicted."""

    breaks = "call/valid-call-returns"

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        for group in groups:
            for key in group:
                self.chunks[key] = self.chunks.pop(key)


class MissOfResidents(Fifo):
    """Raises when a key is missed that it evicted before."""

    breaks = "call/valid-call-returns"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.evicted: set[Key] = set()

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.evicted.update(key for key, _ in pairs)
        return pairs

    def on_store_miss(self, keys: Keys, context: Any) -> None:
        assert self.evicted.isdisjoint(keys)


class AssertsEnough(Fifo):
    """Asserts that as many chunks are idle as are asked for."""

    breaks = "call/valid-call-returns"

    def evict(self, n: int, protected: set[Key]) -> Any:
        assert n <= len(self.idle())
        return super().evict(n, protected)


class DanglingHand(Fifo):
    """A cursor still points at the chunk that a failed store has taken away."""

    breaks = "call/valid-call-returns"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.hand: Key | None = None

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.hand = key

    def evict(self, n: int, protected: set[Key]) -> Any:
        if self.hand is not None and self.chunks[self.hand].ref_cnt == 0:
            self.hand = None
        return super().evict(n, protected)

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.hand = self.hand if self.hand in self.chunks else None
        return pairs

    def clear(self) -> None:
        super().clear()
        self.hand = None


class SecondStoreRaises(Fifo):
    """Keeps a record of failed stores and stumbles over it when the key comes again."""

    breaks = "call/valid-call-returns"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.failed: set[Key] = set()

    def remove(self, key: Key) -> None:
        super().remove(key)
        assert key not in self.failed
        self.failed.add(key)


class EmptiesProtected(Fifo):
    """Ticks off protected keys in the caller's own set."""

    breaks = "call/arguments-unchanged"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        protected.intersection_update(self.chunks)
        return answer


class ProtectsVictims(Fifo):
    """Adds its victims to the caller's set of protected keys."""

    breaks = "call/arguments-unchanged"

    def hand_over(self, victims: Keys) -> Victims:
        return super().hand_over(victims)

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        protected.update(key for key, _ in answer or ())
        return answer


class ReversesInPlace(Recent):
    """Turns the caller's list round to walk it from its tail."""

    breaks = "call/arguments-unchanged"

    def touch(self, keys: Any, context: Any = None) -> None:
        if isinstance(keys, list):
            keys.reverse()
        for key in keys:
            self.renew(key)


class ConsumesReused(Recent):
    """Takes the keys of a finished request out of the caller's set."""

    breaks = "call/arguments-unchanged"

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        while reused:
            self.renew(reused.pop())
