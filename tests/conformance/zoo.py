"""The zoo: policies that are wrong on purpose, each in one way, to show that the suite can fail.

`breaks` names the clause that must be the first violation reported, `also` others that must be
reported besides. Where a mutant is a bug that somebody had, its number in the list of known bugs
stands first in the docstring. Classes without `breaks` are right; mutants are made of them.

This file is loaded as a subject, by path: `cachelaw certify tests/conformance/zoo.py:Fifo`.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, ClassVar

from cachelaw.reference import arc, lru, v019, v022, v024, v026, v027, v030, v031, v033
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import Victims
from cachelaw.reference.recency import eligible, forget, renew, trim
from cachelaw.reference.resident import declaration

Key = OffloadKey
Keys = Iterable[OffloadKey]
Groups = Sequence[Sequence[OffloadKey]]
KeySet = AbstractSet[OffloadKey]


# --- Right policies that claim no profile --------------------------------------------------------


class Fifo:
    """Right: first in, first out, for hosts of every edition."""

    def __init__(self, cache_capacity: int) -> None:
        self.capacity = cache_capacity
        self.chunks: dict[Key, Any] = {}

    def get(self, key: Key) -> Any:
        return self.chunks.get(key)

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        self.chunks[key] = chunk

    def remove(self, key: Key) -> None:
        del self.chunks[key]

    def touch(self, keys: Keys, context: Any = None) -> None: ...

    def on_store_miss(self, keys: Keys, context: Any) -> None: ...

    def on_request_access(self, keys: Keys, context: Any) -> None: ...

    def on_request_finished(
        self, groups: Groups, inserted: Any, reused: Any, context: Any
    ) -> None: ...

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, chunk in self.chunks.items() if chunk.ref_cnt == 0 and k not in protected]

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)[:n]
        return self.hand_over(victims) if len(victims) == n else None

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, self.chunks.pop(key)) for key in victims]

    def clear(self) -> None:
        self.chunks.clear()

    def mark_evictable(self, key: Key) -> None: ...

    def mark_non_evictable(self, key: Key) -> None: ...


class Recent(Fifo):
    """Right: least recently touched first."""

    def touch(self, keys: Keys, context: Any = None) -> None:
        for key in reversed(list(keys)):
            self.renew(key)

    def renew(self, key: Key) -> None:
        if key in self.chunks:
            self.chunks[key] = self.chunks.pop(key)


class Lfu(Fifo):
    """Right: least often touched first, older ones before younger ones."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.counts: Counter[Key] = Counter()

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.counts.update(key for key in keys if key in self.chunks)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=self.counts.__getitem__)

    def remove(self, key: Key) -> None:
        super().remove(key)
        del self.counts[key]

    def hand_over(self, victims: Keys) -> Victims:
        victims = list(victims)
        for key in victims:
            del self.counts[key]
        return super().hand_over(victims)

    def clear(self) -> None:
        super().clear()
        self.counts.clear()


class Clock(Fifo):
    """Right: a ring with reference bits; what is used since the hand came by is passed over."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.used: set[Key] = set()

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.used.update(key for key in keys if key in self.chunks)

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.used.discard(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        if len(self.idle(protected)) < n:
            return None
        victims: list[Key] = []
        while len(victims) < n:
            self.pass_over(victims, protected)
        return self.hand_over(victims)

    def pass_over(self, victims: list[Key], protected: set[Key]) -> None:
        """Let the hand meet the chunk at the front of the ring."""
        key = next(iter(self.chunks))
        self.chunks[key] = self.chunks.pop(key)
        if key in self.used:
            self.used.remove(key)
        elif self.chunks[key].ref_cnt == 0 and key not in protected and key not in victims:
            victims.append(key)

    def clear(self) -> None:
        super().clear()
        self.used.clear()


class Queue(Fifo):
    """Right: a queue of records beside the table; a chunk is evicted by its record."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.queue: list[tuple[Key, Any]] = []

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.queue.append((key, chunk))

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.queue = [record for record in self.queue if record[0] != key]

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = [r for r in self.queue if r[1].ref_cnt == 0 and r[0] not in protected][:n]
        if len(victims) < n:
            return None
        for key, _ in victims:
            self.chunks.pop(key, None)
        self.queue = [record for record in self.queue if record not in victims]
        return victims

    def clear(self) -> None:
        super().clear()
        self.queue.clear()


# --- Status objects and arguments ----------------------------------------------------------------


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


# --- What makes two instances differ -------------------------------------------------------------


class IdentityTable(Fifo):
    """Finds chunks by the identity of the key object."""

    breaks = "keys/equal-is-same"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.keys: list[Key] = []

    def get(self, key: Key) -> Any:
        return self.chunks[key] if any(key is known for known in self.keys) else None

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.keys.append(key)


class TouchByIdentity(Recent):
    """Renews a touched chunk only if the key is the very object that was inserted."""

    breaks = "keys/equal-is-same"

    def renew(self, key: Key) -> None:
        if any(key is known for known in self.chunks):
            super().renew(key)


class ProtectsByIdentity(Fifo):
    """Looks for protected keys by identity."""

    breaks = "keys/equal-is-same"
    also = ("evict/protected-honoured",)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [key for key in super().idle() if not any(key is other for other in protected)]


class SharedTable(Fifo):
    """Keeps the chunks of all instances in one table."""

    breaks = "instances/share-nothing"
    table: ClassVar[dict[Key, Any]] = {}

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.table.clear()
        self.chunks = self.table


class SharedCounts(Lfu):
    """Counts uses for all instances together."""

    breaks = "instances/share-nothing"
    all_counts: ClassVar[Counter[Key]] = Counter()

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.all_counts.clear()
        self.counts = self.all_counts


class RandomVictim(Fifo):
    """Draws its victims, without saying so."""

    breaks = "determinism/same-calls-same-results"
    rng: ClassVar[random.Random] = random.Random()

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        keys = super().idle(protected)
        return self.rng.sample(keys, len(keys))


class CoinTouch(Recent):
    """Takes in a touch with a probability of one half, without saying so."""

    breaks = "determinism/same-calls-same-results"
    rng: ClassVar[random.Random] = random.Random()

    def renew(self, key: Key) -> None:
        if self.rng.random() < 0.5:
            super().renew(key)


class HashOrder(Fifo):
    """Takes its victims in the order in which a set of keys is iterated."""

    breaks = "determinism/independent-of-hash-seed"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return list(set(super().idle(protected)))


# --- get -----------------------------------------------------------------------------------------


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


# --- insert, remove, uses ------------------------------------------------------------------------


class Doorkeeper(Fifo):
    """Does not let a key in that it evicted, until it comes a second time."""

    breaks = "insert/makes-resident"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.banned: set[Key] = set()

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        if key in self.banned:
            self.banned.remove(key)
        else:
            super().insert(key, chunk)

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.banned.update(key for key, _ in pairs)
        return pairs


class KeepsOldObject(Fifo):
    """Keeps the object of a key's first residence when the key is inserted again."""

    breaks = "get/same-object"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.objects: dict[Key, Any] = {}

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, self.objects.setdefault(key, chunk))


class EvictsAtInsert(Fifo):
    """Makes room itself when an insert fills the cache."""

    breaks = "insert/makes-resident"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        if len(self.chunks) == self.capacity and self.capacity > 1:
            del self.chunks[next(iter(self.chunks))]


class LeavesOneFree(Fifo):
    """Allows one chunk less than fit, by an error of one in its bound."""

    breaks = "insert/makes-resident"

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        if len(self.chunks) < self.capacity - 1:
            super().insert(key, chunk)


class LazyRemove(Fifo):
    """Leaves removed chunks in place until the next eviction."""

    breaks = "remove/forgets"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.removed: set[Key] = set()

    def remove(self, key: Key) -> None:
        self.removed.add(key)

    def evict(self, n: int, protected: set[Key]) -> Any:
        for key in self.removed:
            self.chunks.pop(key, None)
        self.removed.clear()
        return super().evict(n, protected)


class RemovesAllPending(Fifo):
    """Takes the failure of one store for the failure of all that are under way."""

    breaks = "remove/forgets"

    def remove(self, key: Key) -> None:
        self.chunks = {k: chunk for k, chunk in self.chunks.items() if chunk.ref_cnt >= 0}


class RemovesTheRest(Fifo):
    """Gives up the rest of a prefix when one of its chunks fails."""

    breaks = "remove/forgets"

    def remove(self, key: Key) -> None:
        for other in list(self.chunks)[list(self.chunks).index(key) :]:
            del self.chunks[other]


class TouchMakesResident(Recent):
    """Makes an entry for a key that is touched while it is absent."""

    breaks = "touch/keeps-residency"

    def renew(self, key: Key) -> None:
        self.chunks[key] = self.chunks.pop(key, None) or ChunkStatus(0)


class FinishReleases(Fifo):
    """Drops at the end of a request what it only stored."""

    breaks = "touch/keeps-residency"

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        for key in inserted:
            if key in self.idle():
                del self.chunks[key]


class AccessReleases(Fifo):
    """Drops the oldest idle chunk when a request sees something new."""

    breaks = "touch/keeps-residency"

    def on_request_access(self, keys: Keys, context: Any) -> None:
        for key in self.idle(set(keys))[:1]:
            del self.chunks[key]


class MissInvites(Fifo):
    """Makes room for a miss as soon as it hears of it, before it is asked to evict."""

    breaks = "touch/keeps-residency"

    def on_store_miss(self, keys: Keys, context: Any) -> None:
        if len(self.chunks) == self.capacity:
            for key in self.idle()[: len(list(keys))]:
                del self.chunks[key]


class AbsentTurnsRing(Clock):
    """Moves the ring on for every key that it does not know."""

    breaks = "touch/absent-ignored"

    def touch(self, keys: Keys, context: Any = None) -> None:
        for key in keys:
            if key in self.chunks:
                self.used.add(key)
            elif self.chunks:
                first = next(iter(self.chunks))
                self.chunks[first] = self.chunks.pop(first)


class AbsentAgesCounts(Lfu):
    """Halves all counts after every eight keys touched, absent ones included."""

    breaks = "touch/absent-ignored"
    seen = 0

    def touch(self, keys: Keys, context: Any = None) -> None:
        keys = list(keys)
        super().touch(keys)
        for _ in keys:
            self.seen = (self.seen + 1) % 8
            if not self.seen:
                self.counts = Counter({key: n // 2 for key, n in self.counts.items()})

    def clear(self) -> None:
        super().clear()
        self.seen = 0


class CountsAbsent(Lfu):
    """Counts a key's uses before it was ever stored."""

    breaks = "touch/absent-ignored"

    def touch(self, keys: Keys, context: Any = None) -> None:
        self.counts.update(keys)


class WalksTwice(Recent):
    """Walks the keys of a touch twice: first to see whether any is there."""

    breaks = "touch/any-iterable"

    def touch(self, keys: Keys, context: Any = None) -> None:
        if any(key in self.chunks for key in keys):
            super().touch(keys)


class SlicesKeys(Recent):
    """Slices the keys of a touch, which not every iterable allows."""

    breaks = "touch/any-iterable"

    def touch(self, keys: Any, context: Any = None) -> None:
        for key in keys[::-1]:
            self.renew(key)


class MissWalksTwice(Recent):
    """Walks the keys of a miss twice, the second time to let missed keys start young."""

    breaks = "touch/any-iterable"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.missed: list[Key] = []

    def on_store_miss(self, keys: Keys, context: Any) -> None:
        self.missed = [key for key in self.missed if key not in list(keys)]
        self.missed.extend(keys)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        place = {key: at for at, key in enumerate(self.missed)}
        return sorted(super().idle(protected), key=lambda key: -place.get(key, -1))

    def clear(self) -> None:
        super().clear()
        self.missed.clear()


class AccessWalksTwice(Recent):
    """Walks the keys that a request sees for the first time twice."""

    breaks = "touch/any-iterable"

    def on_request_access(self, keys: Keys, context: Any) -> None:
        if set(keys) & set(self.chunks):
            self.touch(keys)


# --- evict: the answer ---------------------------------------------------------------------------


class ReturnsTuple(Fifo):
    """Returns a tuple of pairs."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return tuple(super().hand_over(victims))


class ReturnsGenerator(Fifo):
    """Returns a generator, so that nothing leaves before somebody looks."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return ((key, self.chunks.pop(key)) for key in victims)


class ReturnsTable(Fifo):
    """Returns a dict."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return dict(super().hand_over(victims))


class ReturnsKeys(Fifo):
    """Returns the keys alone."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return [key for key, _ in super().hand_over(victims)]


class ReturnsLists(Fifo):
    """Returns each pair as a list."""

    breaks = "evict/list-of-pairs"

    def hand_over(self, victims: Keys) -> Any:
        return [list(pair) for pair in super().hand_over(victims)]


class WipesCache(Fifo):
    """B68: evicts all that it can, whatever it is asked for."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        return self.hand_over(victims if n else ()) if len(victims) >= n else None


class OneTooMany(Fifo):
    """Evicts one chunk more than it is asked for, if it is there."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        return self.hand_over(victims[: n + 1 if n else 0]) if len(victims) >= n else None


class PartialBatch(Fifo):
    """Evicts what there is when it is asked for more."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return self.hand_over(self.idle(protected)[:n])


class EmptyForNone(Fifo):
    """Returns an empty list when it cannot evict enough."""

    breaks = "evict/exact-count"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        return [] if answer is None else answer


class SameTwice(Fifo):
    """Starts its scan over for each victim of a batch and finds the same one again."""

    breaks = "evict/distinct"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        if len(victims) < n:
            return None
        key = victims[0] if victims else None
        chosen = [(key, self.chunks[key]) for _ in range(n) if key is not None]
        if chosen and key is not None:
            del self.chunks[key]
        return chosen


class ForgottenRecord(Queue):
    """Removes a chunk and leaves its record in the queue."""

    breaks = "evict/resident-only"

    def remove(self, key: Key) -> None:
        chunk = self.chunks.pop(key)
        self.queue = [(k, ChunkStatus(0) if c is chunk else c) for k, c in self.queue]
        for k, c in self.queue:
            if k == key:
                c.ref_cnt = 0


class ClearKeepsQueue(Queue):
    """Clears the table and leaves the queue as it was."""

    breaks = "evict/resident-only"

    def clear(self) -> None:
        self.chunks.clear()


class OffersGhosts(Queue):
    """A cursor that was not moved off its victims proposes them again."""

    breaks = "evict/resident-only"
    last: Any = None

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer and self.last is not None and len(answer) > 1:
            return [self.last, *answer[1:]]
        self.last = answer[-1] if answer else self.last
        return answer

    def clear(self) -> None:
        super().clear()
        self.last = None


class EvictsPending(Fifo):
    """Takes every chunk that no load has pinned for idle."""

    breaks = "evict/idle-only"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, chunk in self.chunks.items() if chunk.ref_cnt <= 0 and k not in protected]


class EvictsPinned(Fifo):
    """Takes every ready chunk for idle."""

    breaks = "evict/idle-only"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, chunk in self.chunks.items() if chunk.ref_cnt >= 0 and k not in protected]


class PinsAreFlags(Fifo):
    """B70: takes the ref count for a flag and looks at its lowest bit."""

    breaks = "evict/idle-only"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [k for k, c in self.chunks.items() if not c.ref_cnt & 1 and k not in protected]


class ChoosesAhead(Fifo):
    """Chooses its next victim at the end of an eviction, and does not look again."""

    breaks = "evict/idle-only"
    chosen: Key | None = None

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        keys = super().idle(protected)
        chosen = self.chosen
        if chosen is None or chosen not in self.chunks or chosen in protected:
            return keys
        return [chosen, *(key for key in keys if key != chosen)]

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.chosen = next(iter(self.idle()), None)
        return pairs

    def clear(self) -> None:
        super().clear()
        self.chosen = None


class IgnoresPinMark(v024.LRU):
    """Learns what becomes idle, and not what is pinned again."""

    breaks = "evict/idle-only"

    def mark_non_evictable(self, key: Key) -> None: ...


class TouchMakesIdle(v026.LRU):
    """Gives a touched chunk a place among the idle ones, busy as it may be."""

    breaks = "evict/idle-only"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.state = lru.evictable_mark(self.state, key)


class IgnoresProtected(Fifo):
    """B17: evicts what the caller asked it to keep."""

    breaks = "evict/protected-honoured"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return super().idle()


class ProtectsIfItCan(Fifo):
    """Evicts protected chunks rather than refuse."""

    breaks = "evict/protected-honoured"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return super().idle(protected) + [key for key in super().idle() if key in protected]


class ProtectsOneByOne(Fifo):
    """Checks protection for the first victim of a batch only."""

    breaks = "evict/protected-honoured"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        first = super().idle(protected)[:1]
        return first + [key for key in super().idle() if key not in first]


class HandsBackCopy(Fifo):
    """Hands back a copy of the status."""

    breaks = "evict/same-object"

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, copy.copy(chunk)) for key, chunk in super().hand_over(victims)]


class SwapsObjects(Fifo):
    """Pairs the victims of a batch with each other's objects."""

    breaks = "evict/same-object"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        chunks = [chunk for _, chunk in reversed(pairs)]
        return [(key, chunk) for (key, _), chunk in zip(pairs, chunks, strict=True)]


class HandsBackOldObject(Fifo):
    """Hands back the object of a key's earlier residence."""

    breaks = "evict/same-object"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.objects: dict[Key, Any] = {}

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.objects.setdefault(key, chunk)

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, self.objects[key]) for key, _ in super().hand_over(victims)]


class KeepsVictims(Fifo):
    """B55: takes its victims off its list and leaves them in its table."""

    breaks = "evict/forgets-victims"

    def hand_over(self, victims: Keys) -> Victims:
        return [(key, self.chunks[key]) for key in victims]


class KeepsLastVictim(Fifo):
    """Forgets all victims of a batch but the last."""

    breaks = "evict/forgets-victims"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        self.chunks.update(pairs[1:][-1:])
        return pairs


class DropsTwo(Fifo):
    """Loses one more chunk at each eviction, without a word."""

    breaks = "evict/keeps-others"

    def hand_over(self, victims: Keys) -> Victims:
        pairs = super().hand_over(victims)
        for key in self.idle()[:1] if pairs else ():
            del self.chunks[key]
        return pairs


class DropsBusy(Fifo):
    """Loses the busy chunks that it passes over on its way to a victim."""

    breaks = "evict/keeps-others"

    def hand_over(self, victims: Keys) -> Victims:
        victims = list(victims)
        for key in list(self.chunks)[: list(self.chunks).index(victims[-1])] if victims else ():
            if key not in victims and self.chunks[key].ref_cnt != 0:
                del self.chunks[key]
        return super().hand_over(victims)


# --- evict: refusals -----------------------------------------------------------------------------


class ScanLimit(Fifo):
    """Looks at the three oldest chunks only."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        near = list(self.chunks)[:3]
        return [key for key in super().idle(protected) if key in near]


class FarScanLimit(Fifo):
    """Looks at the thirty oldest chunks only."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        near = list(self.chunks)[:30]
        return [key for key in super().idle(protected) if key in near]


class StrictCount(Fifo):
    """B21: wants one idle chunk more than it is asked for."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) if not n or n < len(self.idle(protected)) else None


class CountsProtected(Fifo):
    """Takes every protected key for an idle chunk less."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        enough = not n or len(self.idle()) - len(protected) >= n
        return super().evict(n, protected) if enough else None


class StopsAtBusy(Fifo):
    """Ends its search at the first chunk that is busy."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        busy = next((at for at, c in enumerate(self.chunks.values()) if c.ref_cnt), None)
        return [key for key in list(self.chunks)[:busy] if key not in protected]


class StopsAtProtected(Fifo):
    """Ends its search at the first chunk that is protected."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        keys = super().idle()
        stop = next((at for at, key in enumerate(keys) if key in protected), None)
        return keys[:stop]


class OneSegment(Lfu):
    """Takes a batch from the chunks that were never touched or from the others, not from both."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        keys = self.idle(protected)
        cold = [key for key in keys if not self.counts[key]]
        for segment in (cold, [key for key in keys if key not in cold]):
            if len(segment) >= n:
                return self.hand_over(segment[:n])
        return None


class NeverHot(Lfu):
    """Never evicts a chunk that was touched twice."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [key for key in super().idle(protected) if self.counts[key] < 2]


class AdmissionGate(Lfu):
    """Refuses to give up a chunk that was touched for one that was not, without saying so."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        if n and any(self.counts[key] for key in self.idle(protected)[:n]):
            return None
        return super().evict(n, protected)


class HalfAtATime(Fifo):
    """Refuses batches of more than half the capacity."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) if n <= max(1, self.capacity // 2) else None


class HandDoesNotWrap(Fifo):
    """A cursor that ends at the youngest chunk and goes back to the oldest at the next call."""

    breaks = "evict/none-only-when-short"
    hand = 0

    def evict(self, n: int, protected: set[Key]) -> Any:
        ahead = [key for key in self.idle(protected) if key in list(self.chunks)[self.hand :]]
        if len(ahead) < n:
            self.hand = 0
            return None
        self.hand = list(self.chunks).index(ahead[n - 1]) + 1 - n if n else self.hand
        return self.hand_over(ahead[:n])

    def clear(self) -> None:
        super().clear()
        self.hand = 0


class OnceBusyNeverIdle(v024.LRU):
    """Misses the end of a load, so that what was pinned once is never evicted."""

    breaks = "evict/none-only-when-short"

    def mark_evictable(self, key: Key) -> None:
        if key not in self.pinned:
            super().mark_evictable(key)

    def mark_non_evictable(self, key: Key) -> None:
        super().mark_non_evictable(key)
        self.pinned.add(key)

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.pinned: set[Key] = set()


class ForgetsCandidates(Fifo):
    """Never proposes a chunk again that it proposed for a batch which came to nothing."""

    breaks = "evict/none-only-when-short"
    also = ("evict/none-changes-nothing",)

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.proposed: set[Key] = set()

    def evict(self, n: int, protected: set[Key]) -> Any:
        candidates = [key for key in self.idle(protected) if key not in self.proposed][:n]
        if len(candidates) == n:
            return self.hand_over(candidates)
        self.proposed.update(candidates)
        return None


class RefusalEvicts(Fifo):
    """B03: evicts one by one, and has nothing to undo it with when it runs out."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.hand_over(self.idle(protected)[:n])
        return victims if len(victims) == n else None


class RefusalClearsBits(Clock):
    """Clears reference bits on its way to a refusal."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None:
            self.used.clear()
        return answer


class RefusalTurnsRing(Clock):
    """Leaves its hand where a refused search ended."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None and self.chunks:
            first = next(iter(self.chunks))
            self.chunks[first] = self.chunks.pop(first)
        return answer


class RefusalDecays(Lfu):
    """Ages all counts, also when it then refuses."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if n:
            self.counts = Counter({key: count // 2 for key, count in self.counts.items()})
        return answer


class RefusalSorts(Recent):
    """B34: puts its order straight by key before it finds out that it must refuse."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None:
            self.chunks = dict(sorted(self.chunks.items()))
        return answer


class RandomRefusalEvicts(RefusalEvicts):
    """B03, by a policy that says that it is randomized, which is no excuse."""

    breaks = "evict/none-changes-nothing"
    cachelaw: ClassVar = {"randomized": True}


class GateEvicts(RefusalEvicts):
    """B03, by a policy that says that it may refuse, which is no excuse."""

    breaks = "evict/none-changes-nothing"
    cachelaw: ClassVar = {"may_refuse": True}


class RandomZeroIsNone(Fifo):
    """Returns None when it is asked for nothing, and says that it is randomized."""

    breaks = "evict/zero-is-empty"
    cachelaw: ClassVar = {"randomized": True}

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) or None


class ZeroIsNone(Fifo):
    """Returns None when it is asked for nothing."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) or None


class ZeroIsOne(Fifo):
    """Evicts at least one chunk."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n if n or not self.idle(protected) else 1, protected)


class ZeroIsAll(Fifo):
    """Takes its victims by a slice whose end is minus nothing."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        return self.hand_over(victims[::-1][-n:][::-1]) if len(victims) >= n else None


class ZeroTurnsRing(Clock):
    """Moves its hand before it looks at how many are wanted."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        if not n and self.chunks:
            self.pass_over([], protected)
        return super().evict(n, protected)


# --- clear and marks -----------------------------------------------------------------------------


class ClearKeepsBusy(Fifo):
    """B29: clears what is idle."""

    breaks = "clear/forgets-all"

    def clear(self) -> None:
        for key in self.idle():
            del self.chunks[key]


class ClearKeepsAll(Fifo):
    """Does nothing when it is cleared."""

    breaks = "clear/forgets-all"

    def clear(self) -> None: ...


class ClearKeepsCounts(Lfu):
    """Clears the chunks and leaves how often they were used."""

    breaks = "clear/equals-new"

    def clear(self) -> None:
        self.chunks.clear()


class ClearKeepsBits(Clock):
    """Clears the chunks and leaves their reference bits."""

    breaks = "clear/equals-new"

    def clear(self) -> None:
        self.chunks.clear()


class ClearKeepsFinished(Recent):
    """Clears the chunks and leaves which of them finished requests had stored."""

    breaks = "clear/equals-new"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.finished: set[Key] = set()

    def on_request_finished(self, groups: Groups, inserted: Any, reused: Any, context: Any) -> None:
        self.finished |= inserted

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=lambda key: key not in self.finished)


class ClearKeepsClock(Recent):
    """Counts inserts, spares every third from eviction if it can, and counts on after a clear."""

    breaks = "clear/equals-new"
    inserts = 0

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.spared: set[Key] = set()

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.inserts += 1
        (self.spared.discard if self.inserts % 3 else self.spared.add)(key)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=lambda key: key in self.spared)


class MarkHides(Fifo):
    """Puts a pinned chunk away where it cannot be found."""

    breaks = "marks/keep-residency"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.away: dict[Key, Any] = {}

    def mark_non_evictable(self, key: Key) -> None:
        self.away[key] = self.chunks.pop(key)

    def mark_evictable(self, key: Key) -> None:
        if key in self.away:
            self.chunks[key] = self.away.pop(key)


class MarkTrims(Fifo):
    """Keeps no more idle chunks than half the capacity."""

    breaks = "marks/keep-residency"

    def mark_evictable(self, key: Key) -> None:
        for victim in self.idle()[: -max(1, self.capacity // 2)]:
            del self.chunks[victim]


# --- LRU: one list (v0.19 to v0.22, v0.31) -------------------------------------------------------


class MostRecentFirst(v019.LRU):
    """B66: evicts from the wrong end."""

    breaks = "lru/oldest-leaves-first"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        order, victims = lru.list_evict(self.state[::-1], n, protected, self.ref_cnt)
        self.state = order[::-1]
        return self.hand_over(victims)


class VictimsReversed(v024.LRU):
    """Chooses the right victims and returns the youngest of them first."""

    breaks = "lru/oldest-leaves-first"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        return victims and victims[::-1]


class VictimsSorted(v033.LRU):
    """Chooses the right victims and returns them in the order of their slots."""

    breaks = "lru/oldest-leaves-first"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        return victims and sorted(victims, key=lambda pair: -pair[1].chunk_id)


class NewcomersOldest(v022.LRU):
    """B63: ranks new chunks as the oldest."""

    breaks = "lru/insert-is-use"

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.state = (key, *self.state[:-1])


class NewcomersZero(v031.LRU):
    """B63: gives new chunks the time 0, so that only touched ones are ever young."""

    breaks = "lru/insert-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.untouched: set[Key] = set()

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.untouched.add(key)
        self.state = tuple(sorted(self.state, key=lambda k: k not in self.untouched))

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        keys = list(keys)
        self.untouched.difference_update(keys)
        super().touch(keys, req_context)


class FirstInFirstOut(v019.LRU):
    """B66: a FIFO sold as LRU: a touch changes nothing."""

    breaks = "lru/touch-is-use"

    def touch(self, keys: Keys) -> None: ...


class StaleRecord(v022.LRU):
    """B60: takes an old record of a touched chunk for its place, as the chunk is still there."""

    breaks = "lru/touch-is-use"

    def touch(self, keys: Keys) -> None:
        self.state += tuple(key for key in reversed(list(keys)) if key in self.chunks)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        there = tuple(dict.fromkeys(key for key in self.state if key in self.chunks))
        left, victims = lru.list_evict(there, n, protected, self.ref_cnt)
        self.state = tuple(key for key in self.state if key in left)
        return self.hand_over(victims)


class MovesUpOne(v031.LRU):
    """Lets a touched chunk change places with its younger neighbour only."""

    breaks = "lru/touch-is-use"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        for key in reversed(list(keys)):
            if key in self.state:
                at = self.state.index(key)
                rest = forget(self.state, key)
                self.state = (*rest[: at + 1], key, *rest[at + 1 :])


class HeadFirst(v019.LRU):
    """B65: takes a batch in from its head, so that the tail ends most recent."""

    breaks = "lru/batch-tail-first"

    def touch(self, keys: Keys) -> None:
        super().touch(list(keys)[::-1])


class BatchIsOneTime(v024.LRU):
    """B65: gives all chunks of a batch one time, and they keep the order they had."""

    breaks = "lru/batch-tail-first"

    def touch(self, keys: Keys) -> None:
        touched = set(keys)
        super().touch([key for key in reversed(self.state.idle) if key in touched])


class PassedOverRenewed(v022.LRU):
    """Gives what it passes over a second round: chunks that are busy or protected move back."""

    breaks = "lru/passed-over-keeps-place"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        for key in self.state if victims else ():
            if self.ref_cnt(key) or key in protected:
                self.state = renew(self.state, key)
        return victims


class ProtectedRenewed(v024.LRU):
    """Takes protection for a use."""

    breaks = "lru/passed-over-keeps-place"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        for key in sorted(protected) if victims else ():
            if key in self.state.idle:
                self.state = lru.evictable_mark(self.state, key)
        return victims


class BusyOnesRenewed(v033.LRU):
    """Takes the wait of a busy chunk for a use: it is the youngest after each eviction."""

    breaks = "lru/passed-over-keeps-place"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        if victims:
            busy = [key for _, key in self.state.entries if self.ref_cnt(key)]
            self.state = lru.ranked_touch(self.state, busy[::-1])
        return victims


class CompletionOrders(v031.LRU):
    """B06: orders chunks by the end of their transfers."""

    breaks = "lru/transfer-is-no-use"

    def mark_evictable(self, key: Key) -> None:
        self.state = renew(self.state, key)


class PinRenews(v033.LRU):
    """B06: takes the start of a load for a use."""

    breaks = "lru/transfer-is-no-use"

    def mark_non_evictable(self, key: Key) -> None:
        self.state = lru.ranked_touch(self.state, [key])


class LoadsOrder(v033.LRU):
    """B06: takes the end of a load for a use."""

    breaks = "lru/transfer-is-no-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.loading: set[Key] = set()

    def mark_non_evictable(self, key: Key) -> None:
        self.loading.add(key)

    def mark_evictable(self, key: Key) -> None:
        if key in self.loading:
            self.loading.remove(key)
            self.state = lru.ranked_touch(self.state, [key])

    def clear(self) -> None:
        super().clear()
        self.loading.clear()


class BusyTouchLostOfOld(v019.LRU):
    """B07: drops a touch of a busy chunk."""

    breaks = "lru/touch-of-busy-counts"

    def touch(self, keys: Keys) -> None:
        super().touch([key for key in keys if key in self.chunks and not self.ref_cnt(key)])


class PinnedTouchLost(v031.LRU):
    """B07: drops a touch of a pinned chunk."""

    breaks = "lru/touch-of-busy-counts"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        idle = [key for key in keys if key in self.chunks and self.ref_cnt(key) <= 0]
        super().touch(idle, req_context)


class PendingTouchLost(v033.LRU):
    """B07: drops a touch of a pending chunk."""

    breaks = "lru/touch-of-busy-counts"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:
        ready = [key for key in keys if key in self.chunks and self.ref_cnt(key) >= 0]
        super().touch(ready, req_context)


class FinishUnheard(v031.LRU):
    """B75: does not listen to the end of a request."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None: ...


class FinishOfStoresOnly(v033.LRU):
    """B31: at the end of a request uses what it stored, and not what it found."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        stored = [[key for key in group if key in inserted] for group in groups]
        super().on_request_finished(stored, inserted, reused, req_context)


class FinishOfReuseOnly(v031.LRU):
    """At the end of a request uses what it found, and not what it stored."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        found = [[key for key in group if key in reused] for group in groups]
        super().on_request_finished(found, inserted, reused, req_context)


class FinishSkipsBusy(v033.LRU):
    """At the end of a request passes over what is busy."""

    breaks = "lru/finish-is-use"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        there = [[k for k in g if k in self.chunks and not self.ref_cnt(k)] for g in groups]
        super().on_request_finished(there, inserted, reused, req_context)


class GroupAfterGroup(v031.LRU):
    """B11: uses one group after the other at the end of a request."""

    breaks = "lru/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        for group in groups:
            self.touch(group, req_context)


class FinishHeadFirst(v033.LRU):
    """B65: at the end of a request leaves the tail most recent."""

    breaks = "lru/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        self.touch(order_request_keys(groups, req_context)[::-1], req_context)


class FinishByPositionAlways(v031.LRU):
    """Puts keys of unknown position at the head, instead of giving up on positions."""

    breaks = "lru/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        position = req_context.get_offload_key_position
        keys = [key for group in groups for key in group]
        self.touch(sorted(keys, key=lambda key: position(key) or 0), req_context)


class RecencyWraps(v019.LRU):
    """Counts time in four bits, so that it starts over after sixteen uses."""

    breaks = "lru/touch-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.time = 0
        self.last: dict[Key, int] = {}

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.use(key)

    def touch(self, keys: Keys) -> None:
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.use(key)

    def use(self, key: Key) -> None:
        self.time = (self.time + 1) % 16
        self.last[key] = self.time
        self.state = tuple(sorted(renew(self.state, key), key=self.last.__getitem__))


class RecencyRounds(v022.LRU):
    """Adds ever smaller steps to its time, until they are rounded away."""

    breaks = "lru/touch-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.step = 2.0**-40
        self.time = 0.0
        self.last: dict[Key, float] = {}

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.use(key)

    def touch(self, keys: Keys) -> None:
        for key in reversed(list(keys)):
            if key in self.chunks:
                self.use(key)

    def use(self, key: Key) -> None:
        self.step /= 2
        self.time += self.step
        self.last[key] = self.time
        renewed = (key, *forget(self.state, key))
        self.state = tuple(sorted(renewed, key=self.last.__getitem__))

    def clear(self) -> None:
        super().clear()
        self.step, self.time = 2.0**-40, 0.0


# --- LRU: the evictable order (v0.24 to v0.30) ---------------------------------------------------


class KeepsInsertionOrder(v024.LRU):
    """Orders idle chunks by insertion, as if transfers were no use."""

    breaks = "lru/becoming-idle-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.order: tuple[Key, ...] = ()

    def insert(self, key: Key, chunk: Any) -> None:
        super().insert(key, chunk)
        self.order = renew(self.order, key)

    def touch(self, keys: Keys) -> None:
        for key in reversed(list(keys)):
            if key in self.state.idle:
                self.order = renew(self.order, key)
        self.put_straight()

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        self.put_straight()

    def put_straight(self) -> None:
        idle = tuple(sorted(self.state.idle, key=self.order.index))
        self.state = replace(self.state, idle=idle)


class LoadsDoNotOrder(v027.LRU):
    """Lets a chunk take its old place again at the end of a load."""

    breaks = "lru/becoming-idle-is-use"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.younger: dict[Key, tuple[Key, ...]] = {}

    def mark_non_evictable(self, key: Key) -> None:
        idle = self.state.idle
        self.younger[key] = idle[idle.index(key) + 1 :]
        super().mark_non_evictable(key)

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        for other in self.younger.pop(key, ()):
            if other in self.state.idle:
                self.state = lru.evictable_mark(self.state, other)


class IdleAtTheOldEnd(v026.LRU):
    """Puts a chunk that becomes idle at the wrong end."""

    breaks = "lru/becoming-idle-is-use"

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        self.state = replace(self.state, idle=(key, *self.state.idle[:-1]))


class BusyTouchKept(v026.LRU):
    """Remembers a touch of a busy chunk and takes it in once the chunk is idle."""

    breaks = "lru/touch-of-busy-lost"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.owed: tuple[Key, ...] = ()

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        for key in reversed(list(keys)):
            if key in self.state.idle:
                self.state = lru.evictable_mark(self.state, key)
            elif key in self.chunks:
                self.owed = renew(self.owed, key)

    def mark_evictable(self, key: Key) -> None:
        super().mark_evictable(key)
        for other in self.owed:
            if other in self.state.idle:
                self.state = lru.evictable_mark(self.state, other)


# --- LRU: request ranks (v0.33) ------------------------------------------------------------------


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


# --- ARC -----------------------------------------------------------------------------------------


class OpenArc(v033.ARC):
    """Right: ARC with each decision in a method of its own."""

    def insert(self, key: Key, chunk: Any, req_context: ReqContext | None = None) -> None:
        self.chunks[key] = chunk
        self.admit(key)

    def admit(self, key: Key) -> None:
        self.state = arc.insert(self.state, key)

    def touch(self, keys: Keys, req_context: ReqContext | None = None) -> None:
        for key in reversed(list(keys)):
            self.use(key)

    def use(self, key: Key) -> None:
        if key in self.state.t1 and self.ref_cnt(key) >= 0:
            self.promote(key)
        elif key in self.chunks:
            self.renew(key)
        else:
            self.adapt(key)

    def promote(self, key: Key) -> None:
        t1, t2 = self.state.t1, self.state.t2
        self.state = replace(self.state, t1=forget(t1, key), t2=renew(t2, key))

    def renew(self, key: Key) -> None:
        t1, t2 = self.state.t1, self.state.t2
        if key in t1:
            self.state = replace(self.state, t1=renew(t1, key))
        elif key in t2:
            self.state = replace(self.state, t2=renew(t2, key))

    def adapt(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        if key in b1:
            self.aim(self.state.target + self.step(len(b1), len(b2)))
        elif key in b2:
            self.aim(self.state.target - self.step(len(b2), len(b1)))
        self.renew_ghost(key)

    def step(self, own: int, other: int) -> float:
        return max(1.0, other / own)

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=min(max(target, 0.0), float(self.cache_capacity)))

    def renew_ghost(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        if key in b1:
            self.state = replace(self.state, b1=renew(b1, key))
        elif key in b2:
            self.state = replace(self.state, b2=renew(b2, key))

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None:
        for key in reversed(list(keys)):
            self.adapt(key)

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        for key in reversed(order_request_keys(groups, req_context)):
            self.finish(key, stored=key in inserted, reused=key in reused)

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        if stored:
            self.renew(key)
        elif reused and key in self.state.t1:
            self.promote(key)
        elif reused:
            self.renew(key)

    def t1_gives(self, size: int, target: float) -> bool:
        return size >= int(target)

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        from_t1 = list(eligible(self.state.t1, protected, self.ref_cnt))
        from_t2 = list(eligible(self.state.t2, protected, self.ref_cnt))
        if len(from_t1) + len(from_t2) < n:
            return None
        victims = self.choose(n, from_t1, from_t2)
        if victims is None:
            return None
        self.bury(victims)
        return self.hand_over(victims)

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims: list[Key] = []
        size = len(self.state.t1)
        while len(victims) < n:
            if from_t1 and (not from_t2 or self.t1_gives(size, self.state.target)):
                victims.append(from_t1.pop(0))
                size -= 1
            else:
                victims.append(from_t2.pop(0))
        return victims

    def bury(self, victims: list[Key]) -> None:
        state = self.state
        gone_t1 = tuple(key for key in victims if key in state.t1)
        gone_t2 = tuple(key for key in victims if key in state.t2)
        self.state = replace(
            state,
            t1=tuple(key for key in state.t1 if key not in gone_t1),
            t2=tuple(key for key in state.t2 if key not in gone_t2),
        )
        if victims:
            self.remember(gone_t1, gone_t2)

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        self.state = replace(
            self.state,
            b1=trim(self.state.b1 + gone_t1, self.cache_capacity),
            b2=trim(self.state.b2 + gone_t2, self.cache_capacity),
        )


class PendingTouchRaises(OpenArc):
    """B04: takes a touched chunk out of T1 and then cannot find it, as it is pending."""

    breaks = "call/valid-call-returns"

    def use(self, key: Key) -> None:
        if key in self.chunks and self.ref_cnt(key) < 0:
            self.state = replace(self.state, t1=forget(self.state.t1, key))
            self.chunks.pop(key)
            raise KeyError(key)
        super().use(key)


class PendingTouchLoses(OpenArc):
    """B04: takes a touched chunk out of T1, and does not put it back if it is pending."""

    breaks = "touch/keeps-residency"

    def use(self, key: Key) -> None:
        if key in self.chunks and self.ref_cnt(key) < 0:
            self.state = replace(self.state, t1=forget(self.state.t1, key))
            self.chunks.pop(key)
        else:
            super().use(key)


class OldPendingTouchRaises(OpenArc):
    """B04, in the edition next to the release that had it; it says that it may refuse."""

    breaks = "call/valid-call-returns"
    cachelaw = declaration("arc", "v0.19") | {"may_refuse": True}  # type: ignore[assignment]
    falls_back_to_t1 = False

    def use(self, key: Key) -> None:
        if key in self.chunks and self.ref_cnt(key) < 0:
            raise KeyError(key)
        super().use(key)


class HitReplaces(OpenArc):
    """B52: makes room in T1 when a hit moves a chunk out of it."""

    breaks = "touch/keeps-residency"

    def promote(self, key: Key) -> None:
        super().promote(key)
        for victim in eligible(self.state.t1, (), self.ref_cnt)[:1]:
            self.bury([victim])
            self.chunks.pop(victim)


class BatchRefusalEvicts(OpenArc):
    """B03: has evicted part of a batch when it finds that it cannot evict the rest."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = [
            victim for _ in range(n) for victim in super(type(self), self).evict(1, protected) or ()
        ]
        return victims if len(victims) == n else None


class RefusalRemembers(OpenArc):
    """B34: makes ghosts of the chunks that it would have evicted."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        if victims is None:
            idle = eligible(self.state.t1, protected, self.ref_cnt)
            self.state = replace(self.state, b1=trim(self.state.b1 + idle, self.cache_capacity))
        return victims


class RefusalAdapts(OpenArc):
    """B34: lets the target drift when it has to refuse."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        victims = super().evict(n, protected)
        if victims is None:
            self.aim(self.state.target + 1)
        return victims


class RefusesBelowTarget(OpenArc):
    """B01: refuses when T1 is below its target and T2 has nothing to give."""

    breaks = "evict/none-only-when-short"
    also = ("arc/falls-back-to-t1",)

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims: list[Key] = []
        size = len(self.state.t1)
        while len(victims) < n:
            if from_t1 and self.t1_gives(size, self.state.target):
                victims.append(from_t1.pop(0))
                size -= 1
            elif from_t2:
                victims.append(from_t2.pop(0))
            else:
                return None
        return victims


class RefusesAtTarget(OpenArc):
    """B01, mirrored: refuses when T1 is at its target and all of it is busy."""

    breaks = "evict/none-only-when-short"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims = super().choose(n, list(from_t1), list(from_t2))
        busy = len(self.state.t1) > len(from_t1)
        if busy and victims and not from_t1 and self.state.target == 0:
            return None
        return victims


class ClearKeepsTarget(OpenArc):
    """B45: clears the lists and keeps the target."""

    breaks = "arc/clear-forgets-all"
    also = ("clear/equals-new",)

    def clear(self) -> None:
        target = self.state.target
        super().clear()
        self.state = replace(self.state, target=target)


class ClearKeepsGhosts(OpenArc):
    """B45, companion: clears the chunks and keeps the ghosts."""

    breaks = "arc/clear-forgets-all"
    also = ("clear/equals-new",)

    def clear(self) -> None:
        b1, b2 = self.state.b1, self.state.b2
        super().clear()
        self.state = replace(self.state, b1=b1, b2=b2)


class GhostIntoT2(OpenArc):
    """Lets a ghost that is stored again enter T2, as the paper does."""

    breaks = "arc/insert-into-t1"

    def admit(self, key: Key) -> None:
        ghost = key in self.state.b1 or key in self.state.b2
        super().admit(key)
        if ghost:
            self.promote(key)


class EntersOldEnd(OpenArc):
    """Lets a ghost that is stored again enter T1 at the old end."""

    breaks = "arc/insert-into-t1"

    def admit(self, key: Key) -> None:
        ghost = key in self.state.b1 or key in self.state.b2
        super().admit(key)
        if ghost:
            self.state = replace(self.state, t1=(key, *forget(self.state.t1, key)))


class GhostStays(OpenArc):
    """Leaves the ghost where it is when its key is stored again."""

    breaks = "arc/insert-takes-ghost"

    def admit(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        super().admit(key)
        self.state = replace(self.state, b1=b1, b2=b2)


class GhostStaysInB2(OpenArc):
    """Takes a key that is stored again out of B1 and not out of B2."""

    breaks = "arc/insert-takes-ghost"

    def admit(self, key: Key) -> None:
        b2 = self.state.b2
        super().admit(key)
        self.state = replace(self.state, b2=b2)


class RemoveHaunts(OpenArc):
    """B47: makes a ghost of a chunk whose store failed."""

    breaks = "arc/remove-leaves-no-ghost"

    def remove(self, key: Key) -> None:
        super().remove(key)
        self.remember((key,), ())


class NeverPromotes(OpenArc):
    """B08: leaves every chunk in T1."""

    breaks = "arc/second-use-promotes"

    def promote(self, key: Key) -> None:
        self.renew(key)


class ThirdUsePromotes(OpenArc):
    """Promotes at the second touch after the store."""

    breaks = "arc/second-use-promotes"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.once: set[Key] = set()

    def use(self, key: Key) -> None:
        if key in self.state.t1 and key not in self.once:
            self.once.add(key)
            self.renew(key)
        else:
            super().use(key)

    def admit(self, key: Key) -> None:
        super().admit(key)
        self.once.discard(key)


class PromotesToOldEnd(OpenArc):
    """Puts a promoted chunk at the old end of T2."""

    breaks = "arc/second-use-promotes"

    def promote(self, key: Key) -> None:
        super().promote(key)
        self.state = replace(self.state, t2=(key, *self.state.t2[:-1]))


class T2IsFifo(OpenArc):
    """Does not renew a touched chunk in T2."""

    breaks = "arc/use-renews-t2"

    def renew(self, key: Key) -> None:
        if key in self.state.t1:
            super().renew(key)


class PromotesPending(OpenArc):
    """B04: promotes a pending chunk like any other."""

    breaks = "arc/pending-stays-in-t1"

    def use(self, key: Key) -> None:
        if key in self.state.t1:
            self.promote(key)
        else:
            super().use(key)


class PendingTouchIgnored(OpenArc):
    """B04, sibling: does not renew a pending chunk that is touched."""

    breaks = "arc/pending-stays-in-t1"

    def use(self, key: Key) -> None:
        if key not in self.chunks or self.ref_cnt(key) >= 0:
            super().use(key)


class GhostsHeadFirst(OpenArc):
    """Takes in the ghosts of a batch head first."""

    breaks = "arc/batch-tail-first"

    def touch(self, keys: Keys, req_context: ReqContext | None = None) -> None:
        keys = list(keys)
        super().touch([key for key in keys if key in self.chunks])
        super().touch([key for key in reversed(keys) if key not in self.chunks])


class MissesHeadFirst(OpenArc):
    """Takes in the misses of an offer head first."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None:
        super().on_store_miss(list(keys)[::-1], req_context)


class ArcHeadFirst(v030.ARC):
    """B65: takes a batch in from its head, so that the tail ends most recent."""

    breaks = "arc/batch-tail-first"

    def touch(self, keys: Keys, req_context: ReqContext) -> None:  # type: ignore[override]
        super().touch(list(keys)[::-1], req_context)


class TouchDoesNotAdapt(OpenArc):
    """Learns from misses alone, and not from a touch of a ghost."""

    breaks = "arc/touch-adapts"

    def touch(self, keys: Keys, req_context: ReqContext | None = None) -> None:
        super().touch([key for key in keys if key in self.chunks])


class MissUnheard(v031.ARC):
    """B50: is told of a miss and does not adapt."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None: ...


class AdaptsAtInsert(OpenArc):
    """B50: adapts when the key is stored, by which time it is no ghost."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None: ...

    def admit(self, key: Key) -> None:
        super().admit(key)
        self.adapt(key)


class AdaptsTwice(OpenArc):
    """B09: adapts when a key is missed and once more when the request is said to see it."""

    breaks = "arc/miss-adapts"

    def on_request_access(self, keys: Keys, req_context: ReqContext) -> None:
        self.on_store_miss(keys, req_context)


class AdaptsOnceForABatch(OpenArc):
    """Takes a batch of misses for one."""

    breaks = "arc/miss-adapts"

    def on_store_miss(self, keys: Keys, req_context: ReqContext) -> None:
        super().on_store_miss(list(keys)[:1], req_context)


class StoreIsReuse(OpenArc):
    """B08: promotes at the end of a request what it only stored."""

    breaks = "arc/store-is-not-reuse"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=False, reused=stored or reused)


class StoreIsNoUse(OpenArc):
    """Leaves at the end of a request where it is what it only stored."""

    breaks = "arc/store-is-not-reuse"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=False, reused=reused)


class ReuseIsUse(OpenArc):
    """B08: never promotes at the end of a request."""

    breaks = "arc/reuse-promotes"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=stored or reused, reused=False)


class FinishOfArcUnheard(v033.ARC):
    """B75: does not listen to the end of a request."""

    breaks = "arc/store-is-not-reuse"
    also = ("arc/reuse-promotes",)

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None: ...


class FinishOfIdleOnly(OpenArc):
    """Passes over what is busy at the end of a request."""

    breaks = "arc/reuse-promotes"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        if key in self.chunks and not self.ref_cnt(key):
            super().finish(key, stored=stored, reused=reused)


class ReuseOfReadyOnly(OpenArc):
    """B13: does not promote a pending chunk that the request cannot have reused."""

    breaks = "arc/reuse-promotes"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        pending = key in self.chunks and self.ref_cnt(key) < 0
        super().finish(key, stored=stored or pending, reused=reused)


class SeenIsReuse(OpenArc):
    """B08: promotes at the end of a request whatever it saw and did not store."""

    breaks = "arc/merely-seen-stays"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        seen = not stored and key in self.chunks
        super().finish(key, stored=stored, reused=reused or seen)


class SeenIsUse(OpenArc):
    """Renews at the end of a request whatever it saw."""

    breaks = "arc/merely-seen-stays"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        super().finish(key, stored=not reused, reused=reused)


class FinishAdapts(OpenArc):
    """Takes a chunk that is gone when its request ends for a ghost hit."""

    breaks = "arc/merely-seen-stays"

    def finish(self, key: Key, *, stored: bool, reused: bool) -> None:
        if key in self.chunks:
            super().finish(key, stored=stored, reused=reused)
        else:
            self.adapt(key)


class ArcByPositionAlways(OpenArc):
    """Puts keys of unknown position at the head, instead of giving up on positions."""

    breaks = "arc/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        position = req_context.get_offload_key_position
        keys = sorted((k for g in groups for k in g), key=lambda key: position(key) or 0)
        for key in reversed(keys):
            self.finish(key, stored=key in inserted, reused=key in reused)


class FinishGroupAfterGroup(OpenArc):
    """B11: takes in one group after the other at the end of a request."""

    breaks = "arc/finish-in-prefix-order"

    def on_request_finished(
        self, groups: Groups, inserted: KeySet, reused: KeySet, req_context: ReqContext
    ) -> None:
        for group in groups:
            super().on_request_finished([group], inserted, reused, req_context)


class TargetStartsFull(OpenArc):
    """B57: starts with the capacity for a target."""

    breaks = "arc/target-starts-at-zero"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.aim(float(cache_capacity))

    def clear(self) -> None:
        super().clear()
        self.aim(float(self.cache_capacity))


class TargetStartsHalf(OpenArc):
    """B57: starts with half the capacity for a target."""

    breaks = "arc/target-starts-at-zero"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.aim(cache_capacity / 2)

    def clear(self) -> None:
        super().clear()
        self.aim(self.cache_capacity / 2)


class SignsSwapped(OpenArc):
    """B49: a hit in B1 lowers the target and one in B2 raises it."""

    breaks = "arc/b1-hit-raises-target"

    def aim(self, target: float) -> None:
        super().aim(2 * self.state.target - target)


class OnlyRaises(OpenArc):
    """B50: moves the target in one direction only."""

    breaks = "arc/b2-hit-lowers-target"

    def aim(self, target: float) -> None:
        super().aim(max(target, self.state.target))


class AnyGhostRaises(OpenArc):
    """Raises the target for a hit in either list."""

    breaks = "arc/b2-hit-lowers-target"

    def aim(self, target: float) -> None:
        super().aim(self.state.target + abs(target - self.state.target))


class StepIsOne(OpenArc):
    """B49, B52: always moves the target by one."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return 1.0


class StepTruncated(OpenArc):
    """B49: divides integers."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1, other // own)


class StepRoundedUp(OpenArc):
    """B49: rounds the step up."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1, -(-other // own))


class StepRoundedToEven(OpenArc):
    """B49: rounds the step to the nearest integer."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1, round(other / own))


class RatioInverted(OpenArc):
    """B49: divides the list that was hit by the other."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1.0, own / max(1, other))


class StepMayVanish(OpenArc):
    """B49: has no least step."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return other / own if other else 1.0


class SizesTakenAfter(OpenArc):
    """B50: takes the sizes of the ghost lists after the ghost has left its own."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def step(self, own: int, other: int) -> float:
        return max(1.0, other / max(1, own - 1))


class StepOfB1IsOne(OpenArc):
    """B49: uses the ratio for hits in B2 only."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def aim(self, target: float) -> None:
        super().aim(min(target, self.state.target + 1))


class StepOfB2IsOne(OpenArc):
    """B49: uses the ratio for hits in B1 only."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def aim(self, target: float) -> None:
        super().aim(max(target, self.state.target - 1))


class TargetUnbounded(OpenArc):
    """B05: lets the target grow beyond the capacity."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=max(target, 0.0))


class TargetBelowZero(OpenArc):
    """B05: lets the target fall below 0."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=min(target, float(self.cache_capacity)))


class TargetBoundIsConstant(OpenArc):
    """B05: bounds the target by a constant."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        self.state = replace(self.state, target=min(max(target, 0.0), 1024.0))


class TargetLeavesOne(OpenArc):
    """Bounds the target by one less than the capacity."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        super().aim(min(target, self.cache_capacity - 1.0))


class GhostKeepsPlace(OpenArc):
    """Does not renew a ghost that is hit."""

    breaks = "arc/ghost-hit-renews"

    def renew_ghost(self, key: Key) -> None: ...


class GhostTaken(OpenArc):
    """Takes a ghost away when it is hit, as the paper does."""

    breaks = "arc/ghost-hit-renews"

    def renew_ghost(self, key: Key) -> None:
        b1, b2 = self.state.b1, self.state.b2
        self.state = replace(self.state, b1=forget(b1, key), b2=forget(b2, key))


class GhostOfB2KeepsPlace(OpenArc):
    """Renews a ghost that is hit in B1 only."""

    breaks = "arc/ghost-hit-renews"

    def renew_ghost(self, key: Key) -> None:
        if key in self.state.b1:
            super().renew_ghost(key)


class StrictlyGreater(OpenArc):
    """B49: takes from T1 only when it is greater than its target, as the paper does."""

    breaks = "arc/t1-gives-at-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return size > int(target)


class BelowByTwo(OpenArc):
    """Takes from T2 only when T1 is two chunks below its target."""

    breaks = "arc/t2-gives-below-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return size + 1 >= int(target)


class T1Always(OpenArc):
    """Takes from T1 as long as it has anything to give, whatever the target is."""

    breaks = "arc/b1-hit-raises-target"

    def t1_gives(self, size: int, target: float) -> bool:
        return True


class T1AsLastResort(OpenArc):
    """Takes from T2 as long as it has anything to give, whatever the target is."""

    breaks = "arc/target-starts-at-zero"

    def t1_gives(self, size: int, target: float) -> bool:
        return False


class TargetRoundedUp(OpenArc):
    """B49: compares with the target as it is, which amounts to rounding it up."""

    breaks = "arc/target-rounded-in-comparison"

    def t1_gives(self, size: int, target: float) -> bool:
        return size >= target


class TargetRoundedToNearest(OpenArc):
    """B49: compares with the integer nearest to the target."""

    breaks = "arc/target-rounded-in-comparison"

    def t1_gives(self, size: int, target: float) -> bool:
        return size >= round(target)


class TargetIsInteger(OpenArc):
    """B49: rounds the target down whenever it moves."""

    breaks = "arc/step-is-ratio-of-ghosts"

    def aim(self, target: float) -> None:
        super().aim(float(int(target)))


class SizeWithoutPending(OpenArc):
    """Compares the number of ready chunks in T1 with the target."""

    breaks = "arc/size-counts-busy-chunks"

    def t1_gives(self, size: int, target: float) -> bool:
        pending = sum(self.ref_cnt(key) < 0 for key in self.state.t1)
        return size - pending >= int(target)


class SizeWithoutProtected(OpenArc):
    """Compares the number of chunks in T1 that are not protected with the target."""

    breaks = "arc/size-counts-busy-chunks"
    protected: Collection[Key] = ()

    def evict(self, n: int, protected: set[Key]) -> Victims | None:
        self.protected = tuple(protected)
        return super().evict(n, protected)

    def t1_gives(self, size: int, target: float) -> bool:
        spared = sum(key in self.protected for key in self.state.t1)
        return size - spared >= int(target)


class SizeOfIdleOnly(OpenArc):
    """Compares the number of idle chunks in T1 with the target."""

    breaks = "arc/size-counts-busy-chunks"

    def t1_gives(self, size: int, target: float) -> bool:
        busy = sum(self.ref_cnt(key) != 0 for key in self.state.t1)
        return size - busy >= int(target)


class DecidesOnce(OpenArc):
    """Decides once for a batch which list gives."""

    breaks = "arc/each-victim-anew"

    def t1_gives(self, size: int, target: float) -> bool:
        return len(self.state.t1) >= int(target)


class T1MostRecentFirst(OpenArc):
    """B66: evicts from the wrong end of T1."""

    breaks = "arc/oldest-of-its-list-first"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        return super().choose(n, from_t1[::-1], from_t2)


class T2MostRecentFirst(OpenArc):
    """B66: evicts from the wrong end of T2."""

    breaks = "arc/oldest-of-its-list-first"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        return super().choose(n, from_t1, from_t2[::-1])


class ListByList(OpenArc):
    """Returns the victims from T1 first, in whatever order they were chosen."""

    breaks = "arc/oldest-of-its-list-first"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        victims = super().choose(n, from_t1, from_t2)
        return victims and sorted(victims, key=lambda key: key in self.state.t2)


class PassedOverMoves(OpenArc):
    """Moves what it passes over in T1 to the recent end."""

    breaks = "arc/oldest-of-its-list-first"

    def bury(self, victims: list[Key]) -> None:
        super().bury(victims)
        for key in self.state.t1 if victims else ():
            if self.ref_cnt(key):
                self.renew(key)


class FallsBackToYoungT2(OpenArc):
    """Takes the youngest of T2 when T1 should give and is busy."""

    breaks = "arc/falls-back-to-t2"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        busy = self.state.t1 and not from_t1
        return super().choose(n, from_t1, from_t2[::-1] if busy else from_t2)


class FallsBackToYoungT1(OpenArc):
    """Takes the youngest of T1 when T2 should give and has nothing."""

    breaks = "arc/falls-back-to-t1"

    def choose(self, n: int, from_t1: list[Key], from_t2: list[Key]) -> list[Key] | None:
        below = not from_t2 and not self.t1_gives(len(self.state.t1), self.state.target)
        return super().choose(n, from_t1[::-1] if below else from_t1, from_t2)


class FallsBackTooEarly(OpenArc):
    """Has the fallback that came with v0.30, under an older edition."""

    breaks = "arc/no-fallback-to-t1"
    cachelaw = declaration("arc", "v0.24")


class NoGhosts(OpenArc):
    """B50: remembers nothing that it evicts, and so never learns."""

    breaks = "arc/b1-hit-raises-target"
    also = ("arc/victim-becomes-ghost",)

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None: ...


class LastBecomesGhost(OpenArc):
    """Remembers the last victim of a batch only."""

    breaks = "arc/victim-becomes-ghost"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1[-1:], gone_t2[-1:])


class GhostsInB1Only(OpenArc):
    """Remembers in B1 whatever it evicts."""

    breaks = "arc/b2-hit-lowers-target"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1 + gone_t2, ())


class NoGhostsOfT2(OpenArc):
    """Remembers only what it evicts from T1."""

    breaks = "arc/b2-hit-lowers-target"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1, ())


class GhostsUnbounded(OpenArc):
    """B05: remembers every key for ever."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1, b2 = self.state.b1 + gone_t1, self.state.b2 + gone_t2
        self.state = replace(self.state, b1=b1, b2=b2)


class GhostsTrimmedByOne(OpenArc):
    """B05: drops one ghost at each eviction, however many have come."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1, b2 = self.state.b1 + gone_t1, self.state.b2 + gone_t2
        c = self.cache_capacity
        self.state = replace(self.state, b1=b1[len(b1) > c :], b2=b2[len(b2) > c :])


class GhostsTrimmedAtWrongEnd(OpenArc):
    """B05: drops the youngest ghosts."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1, b2 = self.state.b1 + gone_t1, self.state.b2 + gone_t2
        c = self.cache_capacity
        self.state = replace(self.state, b1=b1[:c], b2=b2[:c])


class GhostsOfT1Unbounded(OpenArc):
    """B05: bounds B2 only."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b2 = trim(self.state.b2 + gone_t2, self.cache_capacity)
        self.state = replace(self.state, b1=self.state.b1 + gone_t1, b2=b2)


class GhostsOfT2Unbounded(OpenArc):
    """B05: bounds B1 only."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        b1 = trim(self.state.b1 + gone_t1, self.cache_capacity)
        self.state = replace(self.state, b1=b1, b2=self.state.b2 + gone_t2)


class GhostsShareBudget(OpenArc):
    """Bounds T1 and B1 together by the capacity, as the paper does."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1, gone_t2)
        left = self.cache_capacity - len(self.state.t1)
        self.state = replace(self.state, b1=trim(self.state.b1, left))


class GhostsBoundIsConstant(OpenArc):
    """B05: bounds the ghost lists by 10, however large the cache is."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        super().remember(gone_t1, gone_t2)
        b1, b2 = trim(self.state.b1, 10), trim(self.state.b2, 10)
        self.state = replace(self.state, b1=b1, b2=b2)


class TargetIsSmall(OpenArc):
    """B05: bounds the target by 8, however large the cache is."""

    breaks = "arc/target-bounded"

    def aim(self, target: float) -> None:
        super().aim(min(target, 8.0))


class RankKeepsTwoBatches(v033.LRU):
    """B10: forgets the rank of a request that has stored more than six chunks."""

    breaks = "lru/batches-share-a-rank"
    needs_search = True

    def insert(self, key: Key, chunk: Any, req_context: ReqContext) -> None:  # type: ignore[override]
        rank = self.recall(req_context)
        shared = rank and sum(other[0] == rank.serial for other, _ in self.state.entries)
        super().insert(key, chunk, ReqContext("new") if shared and shared > 6 else req_context)


class GhostsOneTooMany(OpenArc):
    """Bounds the ghost lists by one more than the capacity."""

    breaks = "arc/ghosts-trimmed-to-capacity"

    def remember(self, gone_t1: tuple[Key, ...], gone_t2: tuple[Key, ...]) -> None:
        c = self.cache_capacity + 1
        b1, b2 = trim(self.state.b1 + gone_t1, c), trim(self.state.b2 + gone_t2, c)
        self.state = replace(self.state, b1=b1, b2=b2)
