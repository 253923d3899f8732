"""LRU: the chunk whose last use lies furthest back leaves first.

What counts as a use, and when it is taken in, is the whole difference between the editions. This
file tells it as three orders, each a pure functional core: a state that never changes, and
functions from a state to the next one. The classes that hosts drive are in the modules of the
editions (`v019.py` to `v033.py`), a few lines each over these functions.

1. *One list* (v0.19 to v0.22, and again in v0.31): every resident chunk has a place, and keeps it
   while loads pin it.
2. *The evictable order* (v0.24 to v0.30): only idle chunks have a place. A chunk takes it when it
   becomes idle, so that the end of a transfer is a use, and a touch of a busy chunk is lost.
3. *Request ranks* (v0.33): one list again, in which all batches of a running request share one
   rank, ordered by where the chunks end in the prefix: the tail leaves before the head even
   across batches.

Operations stand in the order of the interface. Those that an order does not have are not there.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from cachelaw.reference.recency import eligible, forget, renew

K = TypeVar("K", bound=Hashable)


# --- 1. One list ---------------------------------------------------------------------------------
#
# The state is the list itself: a tuple of all residents, least recently used first.


def list_insert(order: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Insert: a new chunk is the most recently used (`lru/insert-is-use`)."""
    return renew(order, key)


def list_remove(order: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Remove: the chunk leaves no trace (`remove/forgets`)."""
    return forget(order, key)


def list_touch(order: tuple[K, ...], keys: Iterable[K]) -> tuple[K, ...]:
    """Touch: residents move to the recent end, tail first (`lru/batch-tail-first`).

    A pinned or pending chunk moves like any other (`lru/touch-of-busy-counts`), an absent key
    changes nothing (`touch/absent-ignored`).
    """
    for key in reversed(list(keys)):
        if key in order:
            order = renew(order, key)
    return order


def list_evict(
    order: tuple[K, ...], n: int, protected: Collection[K], ref_cnt: Callable[[K], int]
) -> tuple[tuple[K, ...], tuple[K, ...] | None]:
    """Evict: the `n` oldest that are eligible (`lru/oldest-leaves-first`), or none at all.

    What is passed over keeps its place (`lru/passed-over-keeps-place`).
    """
    victims = eligible(order, protected, ref_cnt)[:n]
    if len(victims) < n:
        return order, None  # evict/none-changes-nothing
    return tuple(key for key in order if key not in victims), victims


# --- 2. The evictable order ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvictableOrder(Generic[K]):
    """State of LRU from v0.24 to v0.30.

    Attributes:
        resident: every chunk in the cache.
        idle: those with ref count 0, longest idle first, unless touched since.
    """

    resident: frozenset[K] = frozenset()
    idle: tuple[K, ...] = ()


def evictable_insert(state: EvictableOrder[K], key: K, ref_cnt: int) -> EvictableOrder[K]:
    """Insert: a pending chunk has no place yet; one that is idle already takes the last."""
    idle = renew(state.idle, key) if ref_cnt == 0 else state.idle
    return EvictableOrder(state.resident | {key}, idle)


def evictable_remove(state: EvictableOrder[K], key: K) -> EvictableOrder[K]:
    """Remove: the chunk leaves no trace (`remove/forgets`)."""
    return EvictableOrder(state.resident - {key}, forget(state.idle, key))


def evictable_touch(state: EvictableOrder[K], keys: Iterable[K]) -> EvictableOrder[K]:
    """Touch: idle chunks move to the recent end, tail first (`lru/batch-tail-first`).

    A pinned or pending chunk has no place to move from: its touch is lost
    (`lru/touch-of-busy-lost`).
    """
    idle = state.idle
    for key in reversed(list(keys)):
        if key in idle:
            idle = renew(idle, key)
    return EvictableOrder(state.resident, idle)


def evictable_evict(
    state: EvictableOrder[K], n: int, protected: Collection[K]
) -> tuple[EvictableOrder[K], tuple[K, ...] | None]:
    """Evict: the first `n` of the order that are not protected (`lru/oldest-leaves-first`)."""
    victims = tuple(key for key in state.idle if key not in protected)[:n]
    if len(victims) < n:
        return state, None  # evict/none-changes-nothing
    idle = tuple(key for key in state.idle if key not in victims)
    return EvictableOrder(state.resident - set(victims), idle), victims


def evictable_mark(state: EvictableOrder[K], key: K) -> EvictableOrder[K]:
    """Mark evictable: becoming idle is a use (`lru/becoming-idle-is-use`)."""
    return EvictableOrder(state.resident, renew(state.idle, key))


def evictable_unmark(state: EvictableOrder[K], key: K) -> EvictableOrder[K]:
    """Mark non-evictable: a busy chunk has no place (`lru/touch-of-busy-lost`)."""
    return EvictableOrder(state.resident, forget(state.idle, key))


# --- 3. Request ranks ----------------------------------------------------------------------------

Rank = tuple[int, int]
"""When, and where in the prefix: (serial number, minus the end token). Lower leaves first."""


@dataclass(frozen=True, slots=True)
class RankedOrder(Generic[K]):
    """State of LRU from v0.33 on.

    Attributes:
        entries: every resident with its rank, lowest first. Equal ranks stand in the order of
            their keys (`lru/equal-rank-by-key-order`).
        serial: the last serial number given out. A use on its own takes the next one; a running
            request takes one and shares it among its chunks.
        generation: how often the cache was cleared. It tells a request that was given its number
            before the last clear from one that was given it after.
    """

    entries: tuple[tuple[Rank, K], ...] = ()
    serial: int = 0
    generation: int = 0


@dataclass(frozen=True, slots=True)
class RequestRank:
    """What a request remembers: the serial number it was given, and in which generation."""

    serial: int
    generation: int


def rank_of(state: RankedOrder[K], key: K) -> Rank | None:
    """Return the rank of `key`, or None if it is not resident."""
    return next((rank for rank, other in state.entries if other == key), None)


def place(state: RankedOrder[K], key: K, rank: Rank) -> RankedOrder[K]:
    """Give `key` the rank `rank`, whether or not it had one."""
    entries = [entry for entry in state.entries if entry[1] != key]
    insort(entries, (rank, key))
    return replace(state, entries=tuple(entries))


def number_request(
    state: RankedOrder[K], memory: RequestRank | None
) -> tuple[RankedOrder[K], RequestRank]:
    """Return the request's serial number: the one it remembers, or the next.

    A number from before the last clear is void (`lru/clear-voids-request-ranks`).
    """
    if memory is not None and memory.generation == state.generation:
        return state, memory
    state = replace(state, serial=state.serial + 1)
    return state, RequestRank(state.serial, state.generation)


def ranked_insert(
    state: RankedOrder[K], key: K, position: int | None, memory: RequestRank | None
) -> tuple[RankedOrder[K], RequestRank | None]:
    """Insert: the new chunk joins its request, or is the most recent on its own.

    Args:
        state: the order before.
        key: the new chunk's key.
        position: where the chunk ends in the request's prefix, None if not known.
        memory: what the storing request remembers.

    Returns:
        The order after, and what the request then remembers.
    """
    if position is None:
        state = replace(state, serial=state.serial + 1)
        return place(state, key, (state.serial, 0)), memory  # lru/insert-is-use
    state, memory = number_request(state, memory)
    return place(state, key, (memory.serial, -position)), memory  # lru/batches-share-a-rank


def ranked_remove(state: RankedOrder[K], key: K) -> RankedOrder[K]:
    """Remove: the chunk leaves no trace (`remove/forgets`)."""
    return replace(state, entries=tuple(entry for entry in state.entries if entry[1] != key))


def ranked_touch(state: RankedOrder[K], keys: Iterable[K]) -> RankedOrder[K]:
    """Touch: each resident takes the next number, tail first (`lru/batch-tail-first`).

    The order that a request built up by ranks is thereby replaced; at its end that is how its
    accesses become final (`lru/finish-is-use`).
    """
    for key in reversed(list(keys)):
        if rank_of(state, key) is not None:
            state = replace(state, serial=state.serial + 1)
            state = place(state, key, (state.serial, 0))
    return state


def ranked_access(
    state: RankedOrder[K],
    keys: Sequence[tuple[K, int | None]],
    memory: RequestRank | None,
) -> tuple[RankedOrder[K], RequestRank]:
    """Access: residents that a running request sees for the first time join its rank.

    Args:
        state: the order before.
        keys: each key with its end token in the request's prefix, None if not known.
        memory: what the request remembers.

    Returns:
        The order after, and what the request then remembers.
    """
    state, memory = number_request(state, memory)
    for key, position in keys:
        rank = rank_of(state, key)
        if rank is None or position is None:
            continue  # lru/access-needs-position
        joined = (memory.serial, -position)
        if rank < joined:  # lru/access-never-demotes
            state = place(state, key, joined)
    return state, memory


def ranked_evict(
    state: RankedOrder[K], n: int, protected: Collection[K], ref_cnt: Callable[[K], int]
) -> tuple[RankedOrder[K], tuple[K, ...] | None]:
    """Evict: the `n` of lowest rank that are eligible (`lru/oldest-leaves-first`)."""
    order = tuple(key for _, key in state.entries)
    victims = eligible(order, protected, ref_cnt)[:n]
    if len(victims) < n:
        return state, None  # evict/none-changes-nothing
    entries = tuple(entry for entry in state.entries if entry[1] not in victims)
    return replace(state, entries=entries), victims


def ranked_clear(state: RankedOrder[K]) -> RankedOrder[K]:
    """Clear: as new, in the next generation (`lru/clear-voids-request-ranks`)."""
    return RankedOrder(generation=state.generation + 1)
