"""Contracts that CrossHair confirms: what the small functions of the reference promise.

Each function below calls one function of the reference and returns whether it did what it should.
Its docstring is the claim: the sentence in words, then, in the notation of PEP 316, `pre`, which
bounds the arguments, and `post: _`, which says that True must come back. CrossHair runs the
function on symbolic arguments and follows every path through it and through the reference. When
it says *confirmed*, no arguments within the bound make the function return False or raise. Beyond
the bound nothing is claimed, and the confirmation is only as good as CrossHair's model of Python.

The bounds are small because every comparison of two symbolic keys doubles the paths. Where a
function looks at the keys only to pass them on, the keys are the numbers 0, 1, 2, ... and what
varies is what is known *about* each key: its ref count, its position, its count. Keys are integers
throughout; symbolic bytes take too long.

`Clauses:` names those of the registry that a contract speaks of; it confirms them of this function
within this bound, not of a policy. Contracts of functions that many clauses rest on name none.

What is expected is written out by index and slice, never by a second copy of the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

from cachelaw.reference import arc, lru, recency
from cachelaw.reference.chunk import BlockStatus, ChunkStatus
from cachelaw.reference.editions import V030
from cachelaw.reference.order import by_position
from cachelaw.reference.protocol import (
    Call,
    Chunk,
    Event,
    LoadEnds,
    LoadStarts,
    Setting,
    State,
    StoreFails,
    StoreSucceeds,
    objection,
    perform,
)
from cachelaw.reference.reuse_filter import admitted, observe, observe_all, qualifies, times_seen

# --- Recency lists -------------------------------------------------------------------------------


def renew_puts_the_key_last(order: list[int], key: int) -> bool:
    """A key that was not there is appended; one that was moves to the end past the others.

    Bound: lists of up to four keys that differ, any key.

    pre: len(order) <= 4
    pre: all(order[i] != order[j] for i in range(len(order)) for j in range(i))
    post: _
    """
    before = tuple(order)
    after = recency.renew(before, key)
    if key not in before:
        return after == (*before, key)
    at = before.index(key)
    return after == (*before[:at], *before[at + 1 :], key)


def renew_leaves_one_copy(order: list[int], key: int) -> bool:
    """The key then stands there once, at the end, even if it stood there several times.

    Bound: lists of up to four keys, equal or not, any key.

    pre: len(order) <= 4
    post: _
    """
    after = recency.renew(tuple(order), key)
    return after[-1] == key and key not in after[:-1]


def forget_takes_out_the_key_alone(order: list[int], key: int) -> bool:
    """The key is gone; the others stand as they stood.

    Bound: lists of up to four keys that differ, any key.

    pre: len(order) <= 4
    pre: all(order[i] != order[j] for i in range(len(order)) for j in range(i))
    post: _
    """
    before = tuple(order)
    after = recency.forget(before, key)
    if key not in before:
        return after == before
    at = before.index(key)
    return after == (*before[:at], *before[at + 1 :])


def trim_keeps_the_recent_end(order: list[int], limit: int) -> bool:
    """What remains is the end of the list, as long as the limit allows.

    Bound: lists of up to four keys, any limit of 0 or more.

    pre: len(order) <= 4
    pre: limit >= 0
    post: _
    """
    before = tuple(order)
    after = recency.trim(before, limit)
    dropped = len(before) - len(after)
    return len(after) == min(limit, len(before)) and before[dropped:] == after


def eligible_are_the_idle_and_unprotected(ref_counts: list[int], protected: int) -> bool:
    """A key is eligible exactly when its ref count is 0 and it is not protected; order is kept.

    Bound: up to four keys with any ref counts, one protected key, of the list or not.

    pre: len(ref_counts) <= 4
    post: _
    """
    found = list(recency.eligible(_keys(ref_counts), (protected,), ref_counts.__getitem__))
    for key in range(len(ref_counts)):
        is_eligible = ref_counts[key] == 0 and key != protected
        if is_eligible and (not found or found.pop(0) != key):
            return False
    return not found


# --- Chunks --------------------------------------------------------------------------------------


def chunk_is_ready_when_not_negative(ref_cnt: int) -> bool:
    """`is_ready` is true exactly when the ref count is 0 or more, before v0.30 and since.

    The property is run on a stand-in for the ctypes structure, whose field cannot be symbolic.
    Bound: none; any integer.
    Clauses: `chunk-status/ready-when-not-negative`.

    post: _
    """
    chunk = SimpleNamespace(ref_cnt=ref_cnt)
    ready = [_getter(kind.is_ready)(chunk) for kind in (ChunkStatus, BlockStatus)]
    return ready == [ref_cnt >= 0] * 2


def load_start_pins(ref_cnt: int) -> bool:
    """A load adds one to the ref count of a ready chunk, and unmarks it first if it was idle.

    Bound: one chunk with any ref count of 0 or more.
    Clauses: `caller/marks-transitions`, `chunk-status/ref-count-counts-loads`.

    pre: ref_cnt >= 0
    post: _
    """
    calls, after = _happen(ref_cnt, LoadStarts((7,), "r"))
    expected = [Call("get", (7,))]
    if ref_cnt == 0:
        expected.append(Call("mark_non_evictable", (7,)))
    expected.append(Call("set_ref_cnt", (7, ref_cnt + 1)))
    return calls == expected and after.chunks == {7: Chunk(ref_cnt + 1, 0)}


def load_end_unpins(ref_cnt: int) -> bool:
    """The end of a load takes one away again, and marks the chunk after it has become idle.

    Bound: one chunk with any ref count of 1 or more.
    Clauses: `caller/marks-transitions`, `chunk-status/ref-count-counts-loads`.

    pre: ref_cnt >= 1
    post: _
    """
    calls, after = _happen(ref_cnt, LoadEnds((7,)))
    expected = [Call("get", (7,)), Call("set_ref_cnt", (7, ref_cnt - 1))]
    if ref_cnt == 1:
        expected.append(Call("mark_evictable", (7,)))
    return calls == expected and after.chunks == {7: Chunk(ref_cnt - 1, 0)}


def load_starts_and_ends_cancel(ref_cnt: int, loads: int) -> bool:
    """After as many ends as starts the chunk is what it was, and until then it is pinned.

    Bound: one chunk with any ref count of 0 or more, one to three loads.
    Clauses: `chunk-status/ref-count-counts-loads`.

    pre: ref_cnt >= 0
    pre: 1 <= loads <= 3
    post: _
    """
    at = ref_cnt
    for _ in range(loads):
        at = _happen(at, LoadStarts((7,), "r"))[1].chunks[7].ref_cnt
    for _ in range(loads):
        if at <= 0:
            return False
        at = _happen(at, LoadEnds((7,)))[1].chunks[7].ref_cnt
    return at == ref_cnt


def store_end_makes_idle_or_absent(ref_cnt: int, success: bool) -> bool:
    """A pending chunk becomes idle and marked if its store succeeds, else absent, its slot free.

    Bound: one chunk with any ref count below 0.
    Clauses: `caller/marks-transitions`, `caller/removes-pending-keys`.

    pre: ref_cnt < 0
    post: _
    """
    if success:
        calls, after = _happen(ref_cnt, StoreSucceeds((7,)))
        last = [Call("set_ref_cnt", (7, 0)), Call("mark_evictable", (7,))]
        return calls[1:] == last and after.chunks == {7: Chunk(0, 0)} and after.free == ()
    calls, after = _happen(ref_cnt, StoreFails((7,)))
    return calls[1:] == [Call("remove", (7,))] and after.chunks == {} and after.free == (0,)


def transfers_need_the_right_status(ref_cnt: int) -> bool:
    """A load starts on a ready chunk only, ends on a pinned one, and a store ends on a pending one.

    Bound: one chunk with any ref count.
    Clauses: `caller/removes-pending-keys`.

    post: _
    """
    setting, state = _one_chunk(ref_cnt)
    return (
        (objection(setting, state, LoadStarts((7,), "r")) is None) == (ref_cnt >= 0)
        and (objection(setting, state, LoadEnds((7,))) is None) == (ref_cnt >= 1)
        and (objection(setting, state, StoreSucceeds((7,))) is None) == (ref_cnt <= -1)
        and (objection(setting, state, StoreFails((7,))) is None) == (ref_cnt <= -1)
    )


# --- LRU -----------------------------------------------------------------------------------------


def list_insert_is_a_use(order: list[int], key: int) -> bool:
    """A new chunk is the most recent; the others stand as they stood.

    Bound: lists of up to four keys without the new one.
    Clauses: `lru/insert-is-use`.

    pre: len(order) <= 4
    pre: key not in order
    post: _
    """
    return lru.list_insert(tuple(order), key) == (*order, key)


def list_touch_moves_residents_tail_first(order: list[int], first: int, second: int) -> bool:
    """Of two touched keys the first ends more recent; an absent key changes nothing.

    Bound: lists of up to three keys that differ, two touched keys that differ.
    Clauses: `lru/touch-is-use`, `lru/batch-tail-first`, `touch/absent-ignored`.

    pre: len(order) <= 3
    pre: all(order[i] != order[j] for i in range(len(order)) for j in range(i))
    pre: first != second
    post: _
    """
    after = lru.list_touch(tuple(order), (first, second))
    expected = [key for key in order if key != first and key != second]
    expected += [key for key in (second, first) if key in order]
    return after == tuple(expected)


def list_evict_takes_the_oldest(ref_counts: list[int], n: int, protected: int) -> bool:
    """Exactly `n` eligible chunks leave, the oldest first, or none; who stays keeps its place.

    Bound: up to three residents with any ref counts, one protected key, up to four victims asked.
    Clauses: `lru/oldest-leaves-first`, `lru/passed-over-keeps-place`, `evict/exact-count`,
    `evict/idle-only`, `evict/protected-honoured`, `evict/none-only-when-short`,
    `evict/none-changes-nothing`.

    pre: len(ref_counts) <= 3
    pre: 0 <= n <= 4
    post: _
    """
    order = _keys(ref_counts)
    after, victims = lru.list_evict(order, n, (protected,), ref_counts.__getitem__)
    may_leave = tuple(key for key in order if ref_counts[key] == 0 and key != protected)
    if n > len(may_leave):
        return victims is None and after == order
    gone = may_leave[:n]
    return victims == gone and after == tuple(key for key in order if key not in gone)


def evictable_evict_takes_the_oldest(size: int, n: int, first: int, second: int) -> bool:
    """The same of the evictable order: exactly `n` idle chunks that are not protected, or none.

    Bound: up to three idle chunks and one busy one, two protected keys, up to four victims asked.
    Clauses: `lru/oldest-leaves-first`, `lru/passed-over-keeps-place`, `evict/exact-count`,
    `evict/protected-honoured`, `evict/none-only-when-short`, `evict/none-changes-nothing`,
    `evict/forgets-victims`.

    pre: 0 <= size <= 3
    pre: 0 <= n <= 4
    post: _
    """
    idle = tuple(range(size))
    before = lru.EvictableOrder(frozenset((*idle, -1)), idle)
    after, victims = lru.evictable_evict(before, n, (first, second))
    may_leave = tuple(key for key in idle if key != first and key != second)
    if n > len(may_leave):
        return victims is None and after == before
    gone = may_leave[:n]
    stays = tuple(key for key in idle if key not in gone)
    return victims == gone and after.idle == stays and after.resident == {*stays, -1}


def evictable_marks_give_and_take_a_place(idle: list[int], key: int) -> bool:
    """A mark gives the last place, its opposite none; neither changes who is resident.

    Bound: up to three idle chunks that differ, any chunk that is marked.
    Clauses: `lru/becoming-idle-is-use`, `marks/keep-residency`.

    pre: len(idle) <= 3
    pre: all(idle[i] != idle[j] for i in range(len(idle)) for j in range(i))
    post: _
    """
    state = lru.EvictableOrder(frozenset({-1}), tuple(idle))
    marked, unmarked = lru.evictable_mark(state, key), lru.evictable_unmark(state, key)
    others = tuple(other for other in idle if other != key)
    return (
        marked.idle == (*others, key)
        and unmarked.idle == others
        and marked.resident == unmarked.resident == state.resident
    )


def evictable_touch_needs_a_place(idle: list[int], first: int, second: int) -> bool:
    """Idle chunks move to the recent end, the first key last; others get no place by it.

    Bound: up to three idle chunks that differ, two touched keys that differ.
    Clauses: `lru/touch-of-busy-lost`, `lru/batch-tail-first`, `touch/keeps-residency`.

    pre: len(idle) <= 3
    pre: all(idle[i] != idle[j] for i in range(len(idle)) for j in range(i))
    pre: first != second
    post: _
    """
    state = lru.EvictableOrder(frozenset({-1}), tuple(idle))
    after = lru.evictable_touch(state, (first, second))
    expected = [key for key in idle if key != first and key != second]
    expected += [key for key in (second, first) if key in idle]
    return after.idle == tuple(expected) and after.resident == state.resident


# --- Request order -------------------------------------------------------------------------------


def by_position_sorts_if_all_is_known(positions: list[int]) -> bool:
    """Known positions sort the keys, lowest first; equal ones keep the order of the call.

    Bound: up to three keys with any positions.
    Clauses: `request-order/by-end-token`, `request-order/ties-keep-call-order`.

    pre: len(positions) <= 3
    post: _
    """
    ordered = by_position(_keys(positions), positions.__getitem__)
    if len(ordered) != len(positions) or set(ordered) != set(range(len(positions))):
        return False
    return all(
        positions[left] < positions[right] or (positions[left] == positions[right] and left < right)
        for left, right in pairwise(ordered)
    )


def by_position_needs_every_position(positions: list[int], unknown: int) -> bool:
    """One position that is not known leaves the order of the call.

    Bound: up to four keys with any positions, any one of them not known.
    Clauses: `request-order/partly-known-keeps-call-order`.

    pre: len(positions) <= 4
    pre: 0 <= unknown < len(positions)
    post: _
    """
    keys = _keys(positions)
    ordered = by_position(keys, lambda key: None if key == unknown else positions[key])
    return ordered == list(keys)


def by_position_keeps_duplicates(first: int, second: int) -> bool:
    """A key that stands there twice leaves the order of the call, and stays there twice.

    Bound: two keys and the first of them again; each key is its own position.
    Clauses: `request-order/duplicates-keep-call-order`.

    post: _
    """
    keys = [first, second, first]
    return by_position(keys, lambda key: key) == keys


# --- The reuse filter ----------------------------------------------------------------------------


def observe_counts_and_renews(counts: list[int], key: int) -> bool:
    """The key counts one more and is the most recently seen; with room, no other changes.

    Bound: up to three tracked keys with any counts of 1 or more, any key, one place free.
    Clauses: `reuse-filter/lookup-counts-each-key`, `reuse-filter/repeat-renews`.

    pre: len(counts) <= 3
    pre: all(count >= 1 for count in counts)
    post: _
    """
    tracker = tuple(enumerate(counts))
    after = observe(tracker, key, len(counts) + 1)
    if 0 <= key < len(counts):
        return after == (*tracker[:key], *tracker[key + 1 :], (key, counts[key] + 1))
    return after == (*tracker, (key, 1))


def observe_drops_the_least_recent(counts: list[int], key: int) -> bool:
    """A new key in a full tracker takes the place of the least recently seen, and of no other.

    Bound: one to four tracked keys with any counts of 1 or more, any key that is not tracked.
    Clauses: `reuse-filter/tracker-drops-least-recent`.

    pre: 1 <= len(counts) <= 4
    pre: all(count >= 1 for count in counts)
    pre: key < 0 or key >= len(counts)
    post: _
    """
    tracker = tuple(enumerate(counts))
    return observe(tracker, key, len(counts)) == (*tracker[1:], (key, 1))


def observe_stays_within_its_limit(size: int, limit: int, first: int, second: int) -> bool:
    """The tracker never outgrows its limit, and what it holds was seen at least once.

    Bound: up to three keys seen once each, any limit that is no less and at least 1, two keys
    observed.
    Clauses: `reuse-filter/tracker-drops-least-recent`.

    pre: 0 <= size <= 3
    pre: limit >= 1
    pre: limit >= size
    post: _
    """
    tracker = tuple((key, 1) for key in range(size))
    after = observe_all(tracker, (first, second), limit)
    return len(after) <= limit and all(count >= 1 for _, count in after)


def admission_needs_the_threshold(counts: list[int], threshold: int) -> bool:
    """A key is admitted exactly when it was seen often enough; admission keeps the order.

    Bound: up to three tracked keys with any counts of 1 or more, one that is not tracked, any
    threshold of 1 or more.
    Clauses: `reuse-filter/store-needs-threshold`.

    pre: len(counts) <= 3
    pre: all(count >= 1 for count in counts)
    pre: threshold >= 1
    post: _
    """
    tracker = tuple(enumerate(counts))
    passed = list(admitted(tracker, range(len(counts) + 1), threshold))
    for key, count in tracker:
        if qualifies(tracker, key, threshold) != (count >= threshold):
            return False
        if count >= threshold and (not passed or passed.pop(0) != key):
            return False
    return not passed and times_seen(tracker, len(counts)) == 0


# --- ARC -----------------------------------------------------------------------------------------


def arc_evicts_from_t1_alone(ref_counts: list[int], target: int, n: int) -> bool:
    """With T2 empty, the `n` oldest idle chunks of T1 become its most recent ghosts, or none does.

    Whether T1 is at its target makes no difference, since it gives when T2 has none to give.
    Bound: up to three chunks in T1 with any ref counts, whole targets of 0 or more, any `n` of 0
    or more.
    Clauses: `arc/oldest-of-its-list-first`, `arc/falls-back-to-t1`, `arc/victim-becomes-ghost`,
    `evict/exact-count`, `evict/idle-only`, `evict/none-changes-nothing`.

    pre: len(ref_counts) <= 3
    pre: target >= 0
    pre: n >= 0
    post: _
    """
    t1 = _keys(ref_counts)
    before = arc.ArcState(4, target, t1, (), (9,), (8,))
    after, victims = arc.evict(before, n, (), ref_counts.__getitem__)
    may_leave = tuple(key for key in t1 if ref_counts[key] == 0)
    if n > len(may_leave):
        return victims is None and after == before
    gone = may_leave[:n]
    stays = tuple(key for key in t1 if key not in gone)
    return victims == gone and _lists(after) == (stays, (), (9, *gone), (8,), target)


def arc_evicts_from_t2_alone(ref_counts: list[int], target: int, n: int) -> bool:
    """With T1 empty, the `n` oldest idle chunks of T2 become its most recent ghosts, or none does.

    Bound: up to three chunks in T2 with any ref counts, whole targets of 0 or more, any `n` of 0
    or more.
    Clauses: `arc/oldest-of-its-list-first`, `arc/falls-back-to-t2`, `arc/victim-becomes-ghost`,
    `evict/exact-count`, `evict/idle-only`, `evict/none-changes-nothing`.

    pre: len(ref_counts) <= 3
    pre: target >= 0
    pre: n >= 0
    post: _
    """
    t2 = _keys(ref_counts)
    before = arc.ArcState(4, target, (), t2, (9,), (8,))
    after, victims = arc.evict(before, n, (), ref_counts.__getitem__)
    may_leave = tuple(key for key in t2 if ref_counts[key] == 0)
    if n > len(may_leave):
        return victims is None and after == before
    gone = may_leave[:n]
    stays = tuple(key for key in t2 if key not in gone)
    return victims == gone and _lists(after) == ((), stays, (9,), (8, *gone), target)


def arc_before_v030_refuses_below_its_target(size: int, target: int) -> bool:
    """With T2 empty and T1 idle, one chunk leaves exactly when T1 is at its target or above it.

    Bound: one to four chunks in T1, whole targets of 0 or more.
    Clauses: `arc/no-fallback-to-t1`.

    pre: 1 <= size <= 4
    pre: target >= 0
    post: _
    """
    before: arc.ArcState[int] = arc.ArcState(4, target, tuple(range(size)))
    _, victims = arc.evict(before, 1, (), lambda key: 0, falls_back_to_t1=False)
    return victims == ((0,) if size >= target else None)


def arc_chooses_the_list_by_its_target(
    old_t1: int, new_t1: int, only_t2: int, target: int, falls_back: bool
) -> bool:
    """T1 gives if it is at its target, else T2; each steps in for the other, T1 since v0.30.

    Bound: two chunks in T1 and one in T2 with any ref counts, whole targets of 0 or more, one
    victim.
    Clauses: `arc/t1-gives-at-target`, `arc/t2-gives-below-target`, `arc/falls-back-to-t2`,
    `arc/falls-back-to-t1`, `arc/no-fallback-to-t1`, `arc/size-counts-busy-chunks`.

    pre: target >= 0
    post: _
    """
    ref_counts = (old_t1, new_t1, only_t2)
    before = arc.ArcState(3, target, (0, 1), (2,))
    after, victims = arc.evict(before, 1, (), ref_counts.__getitem__, falls_back_to_t1=falls_back)
    from_t1 = 0 if old_t1 == 0 else 1 if new_t1 == 0 else None
    from_t2 = 2 if only_t2 == 0 else None
    if target <= 2:
        chosen = from_t2 if from_t1 is None else from_t1
    else:
        chosen = from_t1 if from_t2 is None and falls_back else from_t2
    if chosen is None:
        return victims is None and after == before
    return victims == (chosen,) and (after.b2 if chosen == 2 else after.b1) == (chosen,)


def arc_recounts_t1_for_each_victim(target: int, n: int) -> bool:
    """In a batch T1 gives until it is below its target, then T2, then whoever has any left.

    Bound: two idle chunks in T1 and two in T2, whole targets of 0 or more, up to five victims.
    Clauses: `arc/each-victim-anew`.

    pre: target >= 0
    pre: 0 <= n <= 5
    post: _
    """
    before = arc.ArcState(4, target, (0, 1), (2, 3))
    after, victims = arc.evict(before, n, (), lambda key: 0)
    if n > 4:
        return victims is None and after == before
    if target <= 1:
        return victims == (0, 1, 2, 3)[:n]
    if target == 2:
        return victims == (0, 2, 3, 1)[:n]
    return victims == (2, 3, 0, 1)[:n]


def arc_trims_its_ghosts(size: int, capacity: int, n: int) -> bool:
    """After an eviction B1 holds the most recent ghosts, no more than the capacity.

    Bound: up to three ghosts, two idle chunks in T1 of which one or two leave, any capacity of 1
    or more.
    Clauses: `arc/ghosts-trimmed-to-capacity`.

    pre: 0 <= size <= 3
    pre: capacity >= 1
    pre: 1 <= n <= 2
    post: _
    """
    ghosts = tuple(range(10, 10 + size))
    after, _ = arc.evict(arc.ArcState(capacity, 0.0, (0, 1), (), ghosts), n, (), lambda key: 0)
    every = (*ghosts, *(0, 1)[:n])
    dropped = len(every) - len(after.b1)
    return len(after.b1) == min(capacity, len(every)) and every[dropped:] == after.b1


def arc_insert_enters_t1_and_takes_the_ghost(ghosts: list[int], key: int, in_b1: bool) -> bool:
    """A new chunk is the most recent of T1 and no ghost any more; the target does not move.

    Bound: up to three ghosts that differ, all in B1 or all in B2, one chunk each in T1 and T2,
    any key that is not in the cache.
    Clauses: `arc/insert-into-t1`, `arc/insert-takes-ghost`.

    pre: len(ghosts) <= 3
    pre: all(ghosts[i] != ghosts[j] for i in range(len(ghosts)) for j in range(i))
    pre: key != -1 and key != -2
    post: _
    """
    before = arc.ArcState(4, 1.0, (-1,), (-2,), *_either(tuple(ghosts), in_b1))
    others = tuple(other for other in ghosts if other != key)
    expected = ((-1, key), (-2,), *_either(others, in_b1), 1.0)
    return _lists(arc.insert(before, key)) == expected


def arc_remove_leaves_no_ghost(cached: list[int], key: int, in_t1: bool) -> bool:
    """The chunk leaves its list; no ghost comes of it and the target does not move.

    Bound: up to three chunks that differ, all in T1 or all in T2, one ghost in each ghost list,
    any key.
    Clauses: `arc/remove-leaves-no-ghost`, `remove/forgets`.

    pre: len(cached) <= 3
    pre: all(cached[i] != cached[j] for i in range(len(cached)) for j in range(i))
    post: _
    """
    before = arc.ArcState(4, 1.0, *_either(tuple(cached), in_t1), (-1,), (-2,))
    others = tuple(other for other in cached if other != key)
    return _lists(arc.remove(before, key)) == (*_either(others, in_t1), (-1,), (-2,), 1.0)


def arc_touch_promotes_ready_chunks_of_t1(key: int, ref_cnt: int) -> bool:
    """Touched in T1, a ready chunk moves to T2, a pending one to the end of T1; T2 renews.

    Bound: three chunks in T1 and two in T2, any ref count of the one that is touched.
    Clauses: `arc/second-use-promotes`, `arc/use-renews-t2`, `arc/pending-stays-in-t1`.

    pre: 0 <= key <= 4
    post: _
    """
    before = arc.ArcState(5, 1.0, (0, 1, 2), (3, 4), (8,), (9,))
    after = arc.touch(before, (key,), lambda touched: ref_cnt)
    t1 = tuple(other for other in (0, 1, 2) if other != key)
    t2 = tuple(other for other in (3, 4) if other != key)
    t1, t2 = ((*t1, key), t2) if key <= 2 and ref_cnt < 0 else (t1, (*t2, key))
    return _lists(after) == (t1, t2, (8,), (9,), 1.0)


def arc_finish_tells_stores_from_reuse(key: int, inserted: bool, reused: bool) -> bool:
    """Only stored, a chunk is renewed where it is; reused, it ends in T2; else nothing happens.

    Bound: two chunks each in T1 and T2, one ghost in each ghost list, a request of one key, which
    is any of these or none.
    Clauses: `arc/store-is-not-reuse`, `arc/reuse-promotes`, `arc/merely-seen-stays`.

    pre: not (inserted and reused)
    post: _
    """
    before = arc.ArcState(4, 1.0, (0, 1), (2, 3), (8,), (9,))
    after = arc.finish(before, (key,), (key,) if inserted else (), (key,) if reused else ())
    if not (inserted or reused) or key < 0 or key > 3:
        return after == before
    t1 = tuple(other for other in (0, 1) if other != key)
    t2 = tuple(other for other in (2, 3) if other != key)
    t1, t2 = ((*t1, key), t2) if inserted and key <= 1 else (t1, (*t2, key))
    return _lists(after) == (t1, t2, (8,), (9,), 1.0)


# --- What the contracts share --------------------------------------------------------------------


def _keys(known: Sequence[int]) -> tuple[int, ...]:
    """Return the keys that a list of ref counts or positions is about."""
    return tuple(range(len(known)))


def _either(keys: tuple[int, ...], first: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return two lists, one of which is empty."""
    return (keys, ()) if first else ((), keys)


def _lists(state: arc.ArcState[int]) -> tuple[object, ...]:
    """Return all of a state but its capacity."""
    return (state.t1, state.t2, state.b1, state.b2, state.target)


def _getter(prop: object) -> Callable[[Any], Any]:
    """Return the function under a property."""
    getter = cast(property, prop).fget
    assert getter is not None
    return getter


def _one_chunk(ref_cnt: int) -> tuple[Setting[int], State[int]]:
    """Return a full cache of one slot, held by a chunk of this ref count.

    The edition is one that marks chunks and has no request hooks, which would only add paths.
    """
    return Setting(V030, 1), State({7: Chunk(ref_cnt, 0)}, (), {})


def _happen(ref_cnt: int, event: Event[int]) -> tuple[Sequence[Call], State[int]]:
    """Return the calls that an event on that chunk takes, and the books after it."""
    steps = perform(*_one_chunk(ref_cnt), event)
    calls: list[Call] = []
    try:
        while True:
            calls.append(next(steps))
    except StopIteration as end:
        return calls, cast("State[int]", end.value)
