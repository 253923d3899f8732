"""LRU on a tensor: the three orders of `cachelaw.reference.lru`, under the newest interface.

What is said there is not said again; the names in the comments are clauses of `specs/lru.md`.
Every key that has a place has a rank, a pair of numbers, and the lowest leaves first. A use takes
the next serial number; in v0.33 a running request takes one for all that it uses.

Which keys will leave next is looked up ahead of time, so that an eviction of few costs no call of a
kernel. What was found holds as long as nothing happens but evictions, and inserts of new keys at
higher ranks.

The modules of the editions (`v024.py`, `v031.py`, `v033.py`) give these classes the signatures of
their day.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from cachelaw.fast import kernels
from cachelaw.fast.table import FURTHEST, Policy, key_from, keys_from, ref_count
from cachelaw.reference import OffloadKey, ReqContext
from cachelaw.reference.policy import Victims

# What the queue can be open for, see Table: keys that take the next serial numbers. A request, as a
# third, stands for keys that take its rank.
PLACED, TOUCHED = object(), object()


class LRU(Policy):
    """What the orders share: touch, and eviction of the lowest rank.

    Args:
        cache_capacity: the number of chunks that fit.

    Raises:
        ValueError: `cache_capacity` is not an int of 1 or more.
    """

    has_busy_in_order = True
    """Whether busy chunks have places too."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self._serial = 0
        self._parked = False
        self._look_nowhere()

    def _look_nowhere(self) -> None:
        """Know nothing of what will leave next."""
        self._ahead: list[OffloadKey] = []  # what will leave next, lowest rank first
        self._next = 0  # how many of them have left
        self._moved = True  # whether something that was carried out may have changed that
        self._highest = 0  # the serial number of the last of them
        self._reach = 0  # how far to look ahead

    def remove(self, key: OffloadKey) -> None:
        """Forget the chunk (`remove/forgets`).

        Raises:
            KeyError: it is not resident.
        """
        del self._chunks[key]
        self._note(kernels.FORGET, 0, [key_from(key)])

    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext | None) -> None:
        """Give those that have a place the last ones, tail first (`lru/batch-tail-first`)."""
        self._use(keys_from(keys))

    def _use(self, keys: list[OffloadKey]) -> None:
        """Touch `keys`, a list that is the caller's no more."""
        if keys:
            keys.reverse()
            if self._open is not TOUCHED:
                self._begin(TOUCHED, kernels.TOUCH)
            self._keys += keys
            if len(self._keys) >= self._limit:
                self._step(0)

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict the `n` of lowest rank that may leave, or none (`lru/oldest-leaves-first`)."""
        if n < 1:
            return []
        chunks, first = self._chunks, self._next
        changed = self._moved or self._has_more_than_inserts()
        if changed or first + n > len(self._ahead):
            if n > len(chunks):
                return None
            # As long as what was found holds, look further the next time.
            self._reach = 0 if changed else min(2 * self._reach + 8, FURTHEST)
            self._step(n)
            first = 0
            if n == 1 and len(self._ahead) > 1:
                self._chunks_of(self._ahead)
        keys = self._ahead[first : first + n]
        if n == 1 and keys:
            # As below, without what only many are worth.
            (key,) = keys
            if key not in protected:
                chunk = chunks.pop(key)
                if not (self.has_busy_in_order and chunk.ref_cnt):
                    self._next = first + 1
                    self._settled -= 1
                    return [(key, chunk)]
                chunks[key] = chunk
        elif len(keys) == n:
            victims = self._take_out(keys, protected, may_be_busy=self.has_busy_in_order)
            if victims:
                self._next = first + n
                self._settled -= n
                return victims
        return self._evict_among(n, protected)

    def _evict_among(self, n: int, protected: AbstractSet[OffloadKey]) -> Victims | None:
        """Evict when some that are next may not leave."""
        victims, busy, kept = self._found(n, protected)
        if not victims and self._parked:
            # What is idle again had a mark. Should one have failed to come, this is seen here, and
            # the chunk is not lost.
            kernels.lru_unpark(self._view)
            self._step(n)
            victims, busy, kept = self._found(n, protected)
        for at in busy:
            self._header[self._out + at] |= kernels.PARK
        self._parked |= bool(busy)
        if not victims:
            self._moved |= bool(busy)
            return None
        # What has left comes first. lru/passed-over-keeps-place: what is protected is still next.
        first, end = self._next, self._next + n + len(busy) + len(kept)
        passed = {*busy, *kept}
        order = [at for at in range(first, end) if at not in passed] + busy + kept
        self._ahead[first:end] = [self._ahead[at] for at in order]
        header, out = self._header, self._out
        for at, row in enumerate([header[out + at] for at in order], out + first):
            header[at] = row
        self._next = end - len(kept)
        self._settled = len(self._chunks) - len(self._keys)
        return victims

    def _found(
        self, n: int, protected: AbstractSet[OffloadKey]
    ) -> tuple[Victims, list[int], list[int]]:
        """Take the next `n` chunks that may leave out of the cache, or none if there are fewer.

        Returns:
            The chunks; which in `out` are busy; and which are protected.
        """
        chunks, at = self._chunks, self._next
        victims: Victims = []
        busy: list[int] = []
        kept: list[int] = []
        while len(victims) < n:
            some = self._ahead[at : at + n - len(victims)]
            if not some:
                # Twice as many each time, so that few rounds do, however many are passed over.
                chunks.update(victims)
                gone, known = self._next, len(self._ahead)
                self._step(2 * (known - gone) + n)
                at -= gone
                busy, kept = [i - gone for i in busy], [i - gone for i in kept]
                if len(self._ahead) == known - gone:
                    return [], busy, kept
                for key, _ in victims:
                    del chunks[key]
                continue
            passed = set(filter(protected.__contains__, some)) if protected else set()
            if passed:
                kept += [i for i, key in enumerate(some, at) if key in passed]
            found = [key for key in some if key not in passed] if passed else some
            statuses = self._chunks_of(found)
            if self.has_busy_in_order and any(map(ref_count, statuses)):
                held = {key for key, chunk in zip(found, statuses, strict=True) if chunk.ref_cnt}
                busy += [i for i, key in enumerate(some, at) if key in held]
                found = [key for key in found if key not in held]
                statuses = [chunk for chunk in statuses if not chunk.ref_cnt]
            for key in found:
                del chunks[key]
            victims += zip(found, statuses, strict=True)
            at += len(some)
        return victims, busy, kept

    def clear(self) -> None:
        """Become as new."""
        super().clear()
        self._parked = False
        self._look_nowhere()

    def _close(self) -> int:
        takes_numbers = self._open is PLACED or self._open is TOUCHED
        count = super()._close()
        if takes_numbers:
            self._serial += count
        return count

    def _begin(self, what: object, kind: int, rank: int | None = None) -> None:
        self._close()
        super()._begin(what, kind, self._serial + 1 if rank is None else rank)

    def _step(self, n: int) -> int:
        self._moved |= self._has_more_than_inserts()
        data, words, length = self._packed()  # which may move the memory
        found = kernels.lru_step(self._view, data, words, length, self._next, n, self._reach)
        self._name_rows()
        if n:
            self._ahead = self._names[self._view[self._out : self._out + found]].tolist()
            self._moved = False
            self._highest = self._header[kernels.HIGHEST]
            self._parked = self._header[kernels.PARKED] > 0
        elif self._next:
            del self._ahead[: self._next]
        self._next = 0
        self._settled = len(self._chunks)
        return found

    def _order(self) -> list[tuple[int, int, OffloadKey]]:
        """Return all ranks, lowest first, each with its key."""
        self._step(0)
        rows = self._records[: self._header[kernels.USED]]
        return sorted(
            (int(rows[row, kernels.HI]), int(rows[row, kernels.LO]), self._key_of(row))
            for row in (rows[:, kernels.META] & 255).nonzero()[0].tolist()
        )


class ListLRU(LRU):
    """One list of all chunks (v0.31)."""

    def insert(  # type: ignore[override]  # the interface broke in v0.33
        self, key: OffloadKey, chunk: Any, req_context: ReqContext | None
    ) -> None:
        """Put the chunk at the recent end (`lru/insert-is-use`)."""
        if type(key) is not bytes:
            key = key_from(key)
        self._chunks[key] = chunk
        if self._open is not PLACED:
            self._begin(PLACED, kernels.LAST)
        self._keys.append(key)
        if len(self._keys) >= self._limit:
            self._step(0)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the chunk its place again, if an eviction found it busy."""
        if self._parked:
            self._note(kernels.READY, 0, [key_from(key)])

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Use all that the request saw, the tail of its prefix first (`lru/finish-is-use`)."""
        self._use(in_request_order(key_groups, req_context))

    def cachelaw_state(self, *requests: ReqContext) -> Hashable:
        """Return a value that is equal for two caches exactly if they will behave alike."""
        return tuple(key for _, _, key in self._order())


class EvictableLRU(LRU):
    """The order in which chunks became idle (v0.24 to v0.30)."""

    has_busy_in_order = False

    def insert(  # type: ignore[override]  # the interface broke in v0.33
        self, key: OffloadKey, chunk: Any, req_context: ReqContext | None
    ) -> None:
        """Take in the chunk; it has no place before it is idle."""
        if type(key) is not bytes:
            key = key_from(key)
        self._chunks[key] = chunk
        self._moved = True  # a chunk that is not in the queue
        if chunk.ref_cnt == 0:
            self.mark_evictable(key)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the chunk, now idle, the last place (`lru/becoming-idle-is-use`)."""
        if key in self._chunks:
            if self._open is not PLACED:
                self._begin(PLACED, kernels.LAST)
            self._keys.append(key_from(key))
            if len(self._keys) >= self._limit:
                self._step(0)

    def mark_non_evictable(self, key: OffloadKey) -> None:
        """Take the chunk's place away: it is about to be pinned (`lru/touch-of-busy-lost`)."""
        self._note(kernels.FORGET, 0, [key_from(key)])

    def cachelaw_state(self, *requests: ReqContext) -> Hashable:
        """Return a value that is equal for two caches exactly if they will behave alike."""
        return tuple(key for _, _, key in self._order()), frozenset(self._chunks)


@dataclass(frozen=True, slots=True)
class RequestRank:
    """What a cache leaves in a request's context.

    Attributes:
        owner: the cache.
        generation: how often it had been cleared.
        serial: the serial number that the request was given.
    """

    owner: object
    generation: int
    serial: int


class RankedLRU(LRU):
    """One list, in which the chunks of a running request share a rank (v0.33)."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self._generation = 0
        self._request: ReqContext | None = None
        self._request_serial = 0

    def _number(self, req_context: ReqContext) -> int:
        """Return the request's serial number: the one it was given, or the next.

        One from before the last clear is void (`lru/clear-voids-request-ranks`).
        """
        if req_context is self._request:
            return self._request_serial
        self._close()
        kept = req_context.get_state(RequestRank)
        if kept is None or kept.owner is not self or kept.generation != self._generation:
            self._serial += 1
            kept = RequestRank(self, self._generation, self._serial)
            req_context.set_state(kept)
        self._request, self._request_serial = req_context, kept.serial
        return kept.serial

    def insert(  # type: ignore[override]  # the interface broke here
        self, key: OffloadKey, chunk: Any, req_context: ReqContext
    ) -> None:
        """Give the chunk its request's rank (`lru/batches-share-a-rank`)."""
        if type(key) is not bytes:
            key = key_from(key)
        self._chunks[key] = chunk
        position = req_context.get_offload_key_position(key)
        if position is None:
            if self._open is not PLACED:
                self._begin(PLACED, kernels.LAST)  # lru/insert-is-use
        else:
            if self._open is not req_context:
                serial = self._number(req_context)
                self._begin(req_context, kernels.AT, serial)
                self._moved |= serial <= self._highest
            self._program.append(-position)
        self._keys.append(key)
        if len(self._keys) >= self._limit:
            self._step(0)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the chunk its place again, if an eviction found it busy."""
        if self._parked:
            self._note(kernels.READY, 0, [key_from(key)])

    def on_request_access(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Let residents join the request's rank (`lru/access-joins-rank`)."""
        seen = keys_from(keys)
        serial = self._number(req_context)
        positions = list(map(req_context.get_offload_key_position, seen))
        if None in positions:  # lru/access-needs-position
            known = [at is not None for at in positions]
            seen = [key for key, is_known in zip(seen, known, strict=True) if is_known]
        if seen:
            self._close()
            self._keys += seen
            self._program += (kernels.JOIN + kernels.ONE * len(seen), serial)
            self._program += [-at for at in positions if at is not None]
            if len(self._keys) >= self._limit:
                self._step(0)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Use all that the request saw, the tail of its prefix first (`lru/finish-is-use`)."""
        self._use(in_request_order(key_groups, req_context))

    def clear(self) -> None:
        """Become as new; serial numbers that requests were given are void."""
        super().clear()
        self._generation += 1
        self._request = None

    def cachelaw_state(self, *requests: ReqContext) -> Hashable:
        """Return a value that is equal for two caches exactly if they will behave alike.

        Args:
            requests: the requests that may make further calls; the state says what number each was
                given. Without them it holds for calls of other requests.
        """
        order = self._order()
        kept = [request.get_state(RequestRank) for request in requests]
        given = [
            rank.serial
            if rank and rank.owner is self and rank.generation == self._generation
            else None
            for rank in kept
        ]
        used = {hi for hi, _, _ in order}.union(serial for serial in given if serial is not None)
        dense = {serial: number for number, serial in enumerate(sorted(used))}
        return (
            tuple((dense[hi], lo, key) for hi, lo, key in order),
            tuple(None if serial is None else dense[serial] for serial in given),
        )


def in_request_order(
    key_groups: Sequence[Sequence[OffloadKey]], req_context: ReqContext
) -> list[OffloadKey]:
    """Return one head-to-tail order across all KV cache groups.

    It is `cachelaw.reference.order_request_keys`, fast where the keys are in order already.
    """
    keys = keys_from([key for group in key_groups for key in group])
    found = list(map(req_context.get_offload_key_position, keys))
    positions = [at for at in found if at is not None]
    if len(positions) < len(keys):
        return keys  # request-order/partly-known-keeps-call-order
    in_order = sorted(positions)
    if in_order == positions:
        return keys
    if len(set(keys)) < len(keys):
        return keys  # request-order/duplicates-keep-call-order
    # request-order/by-end-token, request-order/ties-keep-call-order
    return [keys[at] for at in sorted(range(len(keys)), key=positions.__getitem__)]
