"""LRU on a tensor: the three orders of `cachelaw.reference.lru`, under the newest interface.

What is said there is not said again; the names in the comments are clauses of `specs/lru.md`.
Every key that has a place has a rank, a pair of numbers, and the lowest leaves first. A use takes
the next serial number; in v0.33 a running request takes one for all that it uses.

The modules of the editions (`v024.py`, `v031.py`, `v033.py`) give these classes the signatures of
their day.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from cachelaw.fast import kernels
from cachelaw.fast.table import LIMIT, Policy, key_from, keys_from
from cachelaw.reference import OffloadKey, ReqContext
from cachelaw.reference.policy import Victims

LAST_ONE = kernels.LAST + kernels.ONE
AT_ONE = kernels.AT + kernels.ONE
FORGET_ONE = kernels.FORGET + kernels.ONE
READY_ONE = kernels.READY + kernels.ONE


class LRU(Policy):
    """What the orders share: touch, and eviction of the lowest rank.

    Args:
        cache_capacity: the number of chunks that fit.

    Raises:
        ValueError: `cache_capacity` is not an int of 1 or more.
    """

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self._serial = 0
        self._parked = False

    def remove(self, key: OffloadKey) -> None:
        """Forget the chunk (`remove/forgets`).

        Raises:
            KeyError: it is not resident.
        """
        del self._chunks[key]
        self._note(key_from(key), FORGET_ONE, 0)

    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext | None) -> None:
        """Give those that have a place the last ones, tail first (`lru/batch-tail-first`)."""
        self._use(keys_from(keys))

    def _use(self, keys: list[OffloadKey]) -> None:
        """Touch `keys`, a list that is the caller's no more."""
        count = len(keys)
        if count:
            keys.reverse()
            self._keys += keys
            self._program += (kernels.TOUCH + kernels.ONE * count, self._serial + 1)
            self._serial += count
            if len(self._keys) >= LIMIT:
                self._step(0)

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict the `n` of lowest rank that may leave, or none (`lru/oldest-leaves-first`)."""
        if n < 1:
            return []
        if n > len(self._chunks):
            return None
        taken = self._step(n)
        if taken == n == 1:
            # As below, without what only many are worth.
            key = self._first_key_out()
            chunk = self._chunks.pop(key)
            if key not in protected and not self._any_busy([chunk]):
                return [(key, chunk)]
            self._chunks[key] = chunk
            return self._evict_among(n, protected, [key])
        keys = self._keys_out(0, taken)
        chunks = list(map(self._chunks.pop, keys))
        if (
            taken == n
            and not self._any_busy(chunks)
            and (not protected or protected.isdisjoint(keys))
        ):
            return list(zip(keys, chunks, strict=True))
        self._chunks.update(zip(keys, chunks, strict=True))
        return self._evict_among(n, protected, keys)

    def _any_busy(self, chunks: list[Any]) -> bool:
        """Say whether one of `chunks`, which have places, may not leave."""
        return any([chunk.ref_cnt for chunk in chunks])  # noqa: C419  # the list is faster

    def _evict_among(
        self, n: int, protected: AbstractSet[OffloadKey], keys: list[OffloadKey]
    ) -> Victims | None:
        """Evict when some that were taken first, `keys`, may not leave: take more."""
        victims: Victims = []
        chosen: list[int] = []
        first = 0
        while True:
            for at, key in enumerate(keys, self._out + first):
                chunk = self._chunks[key]
                if self._any_busy([chunk]):
                    self._header[at] |= kernels.PARK
                elif len(victims) == n or key in protected:
                    self._header[at] |= kernels.KEEP
                else:
                    victims.append((key, chunk))
                    chosen.append(at)
            first += len(keys)
            if len(victims) == n:
                break
            # Twice as many each time, so that few rounds do, however many are passed over.
            wanted = max(n - len(victims), first)
            taken = kernels.lru_more(self._view, wanted)
            if not taken and self._parked:
                # What is idle again had a mark. Should one have failed to come, this is seen here,
                # and the chunk is not lost.
                self._parked = False
                kernels.lru_unpark(self._view)
                taken = kernels.lru_more(self._view, wanted)
            if not taken:
                for at in chosen:
                    self._header[at] |= kernels.KEEP
                victims.clear()
                break
            keys = self._keys_out(first, taken)
        kernels.lru_settle(self._view)
        self._parked = self._header[kernels.PARKED] > 0
        for key, _ in victims:
            del self._chunks[key]
        return victims or None

    def clear(self) -> None:
        """Become as new."""
        super().clear()
        self._parked = False

    def _step(self, n: int) -> int:
        data, words, length = self._packed()  # which may move the memory
        return kernels.lru_step(self._view, data, words, length, n)

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
        self._serial += 1
        self._note(key, LAST_ONE, self._serial)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the chunk its place again, if an eviction found it busy."""
        if self._parked:
            self._note(key_from(key), READY_ONE, 0)

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

    def insert(  # type: ignore[override]  # the interface broke in v0.33
        self, key: OffloadKey, chunk: Any, req_context: ReqContext | None
    ) -> None:
        """Take in the chunk; it has no place before it is idle."""
        if type(key) is not bytes:
            key = key_from(key)
        self._chunks[key] = chunk
        if chunk.ref_cnt == 0:
            self.mark_evictable(key)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the chunk, now idle, the last place (`lru/becoming-idle-is-use`)."""
        if key in self._chunks:
            self._serial += 1
            self._note(key_from(key), LAST_ONE, self._serial)

    def mark_non_evictable(self, key: OffloadKey) -> None:
        """Take the chunk's place away: it is about to be pinned (`lru/touch-of-busy-lost`)."""
        self._note(key_from(key), FORGET_ONE, 0)

    def _any_busy(self, chunks: list[Any]) -> bool:
        """Say no: what is busy has no place, by the marks."""
        return False

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
        self._keys.append(key)
        if position is None:
            self._serial += 1
            self._program += (LAST_ONE, self._serial)  # lru/insert-is-use
        else:
            self._program += (AT_ONE, self._number(req_context), -position)
        if len(self._keys) >= LIMIT:
            self._step(0)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Give the chunk its place again, if an eviction found it busy."""
        if self._parked:
            self._note(key_from(key), READY_ONE, 0)

    def on_request_access(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Let residents join the request's rank (`lru/access-joins-rank`)."""
        seen = keys_from(keys)
        serial = self._number(req_context)
        positions = list(map(req_context.get_offload_key_position, seen))
        if None in positions:  # lru/access-needs-position
            known = [at is not None for at in positions]
            seen = [key for key, is_known in zip(seen, known, strict=True) if is_known]
        if seen:
            self._keys += seen
            self._program += (kernels.JOIN + kernels.ONE * len(seen), serial)
            self._program += [-at for at in positions if at is not None]
            if len(self._keys) >= LIMIT:
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
