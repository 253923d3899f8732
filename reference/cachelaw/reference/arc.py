"""ARC: a cache that learns how much of itself to give to recency and how much to frequency.

LRU is ruined by a scan: a long run of chunks that are used once pushes out all that is used often.
ARC keeps two lists of resident chunks, each least recently used first:

    T1  used once lately        T2  used more than once lately

A chunk enters T1 and moves to T2 when it is used again, so a scan flows through T1 and leaves T2
alone. How large T1 should be is learned from mistakes. Two ghost lists remember the keys of
chunks that were evicted, without the chunks:

    B1  evicted from T1         B2  evicted from T2

A miss whose key is found in B1 says that T1 was too small: the *target* size of T1 grows. One
found in B2 says the same of T2: the target shrinks. Eviction takes from T1 as long as T1 is at
its target or above it, else from T2.

This is ARC as vLLM ships it, which departs from Megiddo and Modha's algorithm of FAST'03 at named
places; `textbook_arc.py` has the original, `specs/arc.md` the differences.

The state is one immutable value, and every operation a pure function from a state to the next
one. Operations stand in the order of the interface; inside each, what it does stands under four
banners, always the same: LOOKUP, ADAPT, SELECT, COMMIT. The classes that hosts drive are in the
modules of the editions (`v019.py` to `v033.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from cachelaw.reference.recency import eligible, forget, renew, trim

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ArcState(Generic[K]):
    """All that ARC knows.

    Attributes:
        capacity: the number of chunks that fit, c.
        target: the size that T1 should have, a double in [0, c]; the paper's p.
        t1, t2: keys of resident chunks, least recently used first.
        b1, b2: keys of evicted chunks, least recently evicted first.

    The four lists are disjoint (`arc/lists-disjoint`).
    """

    capacity: int
    target: float = 0.0  # arc/target-starts-at-zero
    t1: tuple[K, ...] = ()
    t2: tuple[K, ...] = ()
    b1: tuple[K, ...] = ()
    b2: tuple[K, ...] = ()


def insert(state: ArcState[K], key: K) -> ArcState[K]:
    """Insert a new chunk: always into T1, even if its key was a ghost (`arc/insert-into-t1`)."""
    # LOOKUP  nothing: the caller inserts absent keys only
    # ADAPT   nothing: a ghost hit was observed when the key missed
    # SELECT  nothing: the caller has evicted before
    # COMMIT
    return replace(
        state,
        t1=renew(state.t1, key),
        b1=forget(state.b1, key),
        b2=forget(state.b2, key),
    )


def remove(state: ArcState[K], key: K) -> ArcState[K]:
    """Remove a chunk whose store failed: it was no eviction (`arc/remove-leaves-no-ghost`)."""
    # LOOKUP  nothing
    # ADAPT   nothing
    # SELECT  nothing
    # COMMIT
    return replace(state, t1=forget(state.t1, key), t2=forget(state.t2, key))


def touch(state: ArcState[K], keys: Iterable[K], ref_cnt: Callable[[K], int]) -> ArcState[K]:
    """Touch a batch, tail first, so that the head ends most recent (`arc/batch-tail-first`)."""
    for key in reversed(list(keys)):
        # LOOKUP
        if key in state.t1:
            # ADAPT   nothing
            # SELECT  nothing
            # COMMIT
            if ref_cnt(key) < 0:
                # Still being stored: this use belongs to the store (arc/pending-stays-in-t1).
                state = replace(state, t1=renew(state.t1, key))
            else:
                state = _promote(state, key)  # arc/second-use-promotes
        elif key in state.t2:
            state = replace(state, t2=renew(state.t2, key))  # arc/use-renews-t2
        else:
            state = _adapt(state, key)
    return state


def store_miss(state: ArcState[K], keys: Iterable[K]) -> ArcState[K]:
    """Observe misses before they are stored: ghosts move the target (`arc/miss-adapts`)."""
    for key in reversed(list(keys)):
        # LOOKUP  in _adapt
        # ADAPT
        state = _adapt(state, key)
        # SELECT  nothing
        # COMMIT  nothing
    return state


def finish(
    state: ArcState[K], keys: Iterable[K], inserted: Collection[K], reused: Collection[K]
) -> ArcState[K]:
    """Take in what a request used, as one use of each chunk, tail first.

    Args:
        state: the state before.
        keys: all that the request saw, head of the prefix first.
        inserted: the keys that the request only stored.
        reused: the keys that it found ready.
    """
    for key in reversed(list(keys)):
        # LOOKUP
        if key in inserted:
            # ADAPT   nothing: misses were observed when they happened
            # SELECT  nothing
            # COMMIT
            if key in state.t1:
                # A store is not a second use (arc/store-is-not-reuse).
                state = replace(state, t1=renew(state.t1, key))
            elif key in state.t2:
                state = replace(state, t2=renew(state.t2, key))
        elif key in reused:
            if key in state.t1:
                # Whatever chunk holds the key now, pending or not (arc/reuse-promotes).
                state = _promote(state, key)
            elif key in state.t2:
                state = replace(state, t2=renew(state.t2, key))  # arc/use-renews-t2
    return state


def evict(
    state: ArcState[K],
    n: int,
    protected: Collection[K],
    ref_cnt: Callable[[K], int],
    *,
    falls_back_to_t1: bool = True,
) -> tuple[ArcState[K], tuple[K, ...] | None]:
    """Evict `n` chunks, in the order in which they were chosen, or none at all.

    Args:
        state: the state before.
        n: how many, 0 or more.
        protected: keys to keep.
        ref_cnt: the ref count of a resident chunk, as the manager keeps it.
        falls_back_to_t1: whether T1 below its target gives up chunks when T2 has none to give;
            releases before v0.30 refused instead (`arc/no-fallback-to-t1`).
    """
    # LOOKUP
    from_t1 = eligible(state.t1, protected, ref_cnt)
    from_t2 = eligible(state.t2, protected, ref_cnt)

    # ADAPT   nothing

    # SELECT
    taken_t1 = taken_t2 = 0
    victims: list[K] = []
    for _ in range(n):
        # |T1| as it will be, pinned and pending chunks included (arc/size-counts-busy-chunks),
        # against the target rounded down (arc/t1-gives-at-target).
        at_target = len(state.t1) - taken_t1 >= int(state.target)
        more_t1 = taken_t1 < len(from_t1)
        more_t2 = taken_t2 < len(from_t2)
        if more_t1 and (at_target or (falls_back_to_t1 and not more_t2)):
            victims.append(from_t1[taken_t1])  # arc/oldest-of-its-list-first
            taken_t1 += 1
        elif more_t2:
            victims.append(from_t2[taken_t2])  # arc/t2-gives-below-target
            taken_t2 += 1
        else:
            return state, None  # evict/none-changes-nothing

    # COMMIT
    if n == 0:
        return state, ()  # evict/zero-is-empty
    gone_t1, gone_t2 = from_t1[:taken_t1], from_t2[:taken_t2]
    return (
        replace(
            state,
            t1=tuple(key for key in state.t1 if key not in gone_t1),
            t2=tuple(key for key in state.t2 if key not in gone_t2),
            # arc/victim-becomes-ghost, arc/ghosts-trimmed-to-capacity
            b1=trim(state.b1 + gone_t1, state.capacity),
            b2=trim(state.b2 + gone_t2, state.capacity),
        ),
        tuple(victims),
    )


def clear(state: ArcState[K]) -> ArcState[K]:
    """Become as new: ghosts and target are forgotten too (`arc/clear-forgets-all`)."""
    # LOOKUP  nothing
    # ADAPT   nothing
    # SELECT  nothing
    # COMMIT
    return ArcState(state.capacity)


def _promote(state: ArcState[K], key: K) -> ArcState[K]:
    """Move a chunk from T1 to the recent end of T2."""
    return replace(state, t1=forget(state.t1, key), t2=renew(state.t2, key))


def _adapt(state: ArcState[K], key: K) -> ArcState[K]:
    """Move the target if `key` is a ghost, by the ratio of the ghost lists, at least by one.

    The sizes are those before anything moves, and the step is real-valued
    (`arc/step-is-ratio-of-ghosts`). The ghost stays, as the most recent of its list
    (`arc/ghost-hit-renews`): only an insert takes it away.
    """
    if key in state.b1:
        step = max(1.0, len(state.b2) / len(state.b1))
        target = min(state.target + step, float(state.capacity))  # arc/b1-hit-raises-target
        return replace(state, target=target, b1=renew(state.b1, key))
    if key in state.b2:
        step = max(1.0, len(state.b1) / len(state.b2))
        target = max(state.target - step, 0.0)  # arc/b2-hit-lowers-target
        return replace(state, target=target, b2=renew(state.b2, key))
    return state
