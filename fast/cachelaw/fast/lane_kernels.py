"""The lane core: one cache on integer keys, as plain functions that run on CPUs and on GPUs.

A *lane* is one cache. Its state lies in arrays, a lane's part of which is seen through `Lane`; keys
are the integers 0 to K - 1. The functions of this file are compiled by numba for the CPU
(`lanes.py`) and by numba-cuda for a GPU (`cuda.py`), and numba's CUDA simulator runs them as they
stand. They read like `cachelaw.reference.lru` and `arc`, whose clauses their comments name:

1. Lists: doubly linked, circular, in one array for all lists of a lane.
2. The operations of the CachePolicy interface.
3. Replay: a request through one lane, by the calls that `protocol.py` makes for it.
4. Replay of single references, where nothing is ever busy and less has to be kept.

What a lane is told apart by, policy and edition, is one number, its *rule*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba

from cachelaw.fast.compiled import kernel

Array = Any
"""A NumPy array, or what stands for one on a GPU: numba's kernels know no other type."""

F = TypeVar("F", bound=Callable[..., Any])


def shared(function: F) -> F:
    """Let kernels of either machine call a function, which stays a plain Python function."""
    made: F = numba.extending.register_jitable(function)
    return made


# --- Constants -----------------------------------------------------------------------------------

LRU_LIST = 0  # one list (v0.31)
LRU_IDLE = 1  # the evictable order (v0.24)
LRU_RANKED = 2  # request ranks (v0.33)
ARC_V024 = 3  # touched by the scheduler, no fallback to T1
ARC = 4  # v0.31 and v0.33

NOWHERE, T1, T2, B1, B2, UNPLACED = 0, 1, 2, 3, 4, 5
"""Where a key is. LRU's one list is T1; UNPLACED is a busy resident of the evictable order."""

LISTS = 4
PENDING, IDLE, PINNED = -1, 0, 1
OFFERED, STORED, FOUND = 1, 2, 4
"""What a request did with a key: bits of `Lane.flags`. An offered key is protected."""

SERIAL, GENERATION, HINT = 5, 6, 7
"""Places in `Lane.counts`, behind the sizes of the lists at T1 to B2."""
COUNTS = 8

RUN, RESIDENT, STORES, EVICTIONS, REFUSALS = range(5)
"""Places in a lane's tally."""
TALLIES = 5


class Lane(NamedTuple):
    """One lane's part of the state arrays; K is the number of keys.

    Attributes:
        links: int32, length 2 * (K + 4). Next and previous of each key, then of each list's own
            node, whose next is the list's oldest key and whose previous its newest.
        where: int8, length K. NOWHERE, T1, T2, B1, B2 or UNPLACED.
        busy: int8, length K. PENDING, IDLE or PINNED; means nothing for a key that is absent.
        flags: int8, length K. OFFERED, STORED, FOUND; 0 between calls.
        ranks: int64, length 2 * K for LRU_RANKED, else 1. Serial number and minus the end token.
        names: int64, length K for LRU_RANKED, else 1. Orders keys of equal rank.
        counts: int64, length 8. Sizes of the lists, serial, generation, where to look first.
        target: float64, length 1. ARC's target.
    """

    links: Array
    where: Array
    busy: Array
    flags: Array
    ranks: Array
    names: Array
    counts: Array
    target: Array


class Plan(NamedTuple):
    """What lanes are to be; each attribute is int64, one number a lane.

    Attributes:
        rules: policy and edition.
        capacities: the number of chunks that fit.
        thresholds: of the reuse filter; 0 is no filter.
        trackers: which row of `seen` counts for the filter.
    """

    rules: Array
    capacities: Array
    thresholds: Array
    trackers: Array


# --- 1. Lists ------------------------------------------------------------------------------------


@shared
def node_of(lane: Lane, which: int) -> int:
    """Return the node of a list, which stands between its newest and its oldest key."""
    size: int = lane.where.size
    return size - 1 + int(which)  # in the simulator an int8 plus an int is an int8


@shared
def oldest(lane: Lane, which: int) -> int:
    """Return the oldest key of a list, or its node if it is empty."""
    return int(lane.links[2 * node_of(lane, which)])


@shared
def join(lane: Lane, key: int, which: int, before: int) -> None:
    """Put `key`, which is in no list, into a list behind the node or key `before`."""
    links = lane.links
    after = links[2 * before]
    links[2 * before] = key
    links[2 * key + 1] = before
    links[2 * key] = after
    links[2 * after + 1] = key
    lane.where[key] = which
    lane.counts[which] += 1


@shared
def leave(lane: Lane, key: int) -> None:
    """Take `key` out of its list, if it is in one; it is nowhere then."""
    which = lane.where[key]
    if which != NOWHERE and which != UNPLACED:
        links = lane.links
        after, before = links[2 * key], links[2 * key + 1]
        links[2 * before] = after
        links[2 * after + 1] = before
        lane.counts[which] -= 1
    lane.where[key] = NOWHERE


@shared
def renew(lane: Lane, key: int, which: int) -> None:
    """Make `key` the newest of a list, wherever it was."""
    leave(lane, key)
    join(lane, key, which, lane.links[2 * node_of(lane, which) + 1])


@shared
def is_resident(lane: Lane, key: int) -> bool:
    """Say whether a key's chunk is in the cache."""
    which = lane.where[key]
    return bool(which in (T1, T2, UNPLACED))


@shared
def clear(lane: Lane) -> None:
    """Become as new, in the next generation (`clear/equals-new`)."""
    for key in range(lane.where.size):
        lane.where[key] = NOWHERE
        lane.flags[key] = 0
    for which in range(T1, T1 + LISTS):
        node = node_of(lane, which)
        lane.links[2 * node] = node
        lane.links[2 * node + 1] = node
        lane.counts[which] = 0
    lane.counts[SERIAL] = 0
    lane.counts[GENERATION] += 1  # lru/clear-voids-request-ranks
    lane.counts[HINT] = -1
    lane.target[0] = 0.0


# --- 2. Operations -------------------------------------------------------------------------------


@shared
def number_request(lane: Lane, serial: int, generation: int) -> int:
    """Return the serial number of a request that remembers these two; serial 0 is none yet."""
    if serial > 0 and generation == lane.counts[GENERATION]:
        return serial
    lane.counts[SERIAL] += 1
    return int(lane.counts[SERIAL])


@shared
def is_above(lane: Lane, key: int, serial: int, depth: int, name: int) -> bool:
    """Say whether the rank of `key` is above the one given; `depth` is minus the end token."""
    if lane.ranks[2 * key] != serial:
        return bool(lane.ranks[2 * key] > serial)
    if lane.ranks[2 * key + 1] != depth:
        return bool(lane.ranks[2 * key + 1] > depth)
    return bool(lane.names[key] > name)  # lru/equal-rank-by-key-order


@shared
def place(lane: Lane, key: int, serial: int, depth: int) -> None:
    """Give `key` a rank; the list is in the order of ranks, lowest first.

    Chunks of one request come one after the other, so the search begins where the last one ended.
    """
    leave(lane, key)
    links, node, name = lane.links, node_of(lane, T1), lane.names[key]
    at = links[2 * node + 1]
    if at != node and is_above(lane, at, serial, depth, name):
        hint = lane.counts[HINT]
        if hint >= 0 and lane.where[hint] == T1:
            at = hint
        while at != node and is_above(lane, at, serial, depth, name):
            at = links[2 * at + 1]
        after = links[2 * at]
        while after != node and not is_above(lane, after, serial, depth, name):
            at, after = after, links[2 * after]
    lane.ranks[2 * key] = serial
    lane.ranks[2 * key + 1] = depth
    join(lane, key, T1, at)
    lane.counts[HINT] = key


@shared
def insert(
    lane: Lane, rule: int, key: int, busy: int, position: int, serial: int, generation: int
) -> int:
    """Insert a chunk.

    Args:
        lane: the cache.
        rule: its policy and edition.
        key: an absent key.
        busy: PENDING, IDLE or PINNED.
        position: where the chunk ends in its request's prefix, -1 if that is not known.
        serial: the serial number that the request remembers, 0 if none.
        generation: the generation that it remembers with it.

    Returns:
        The serial number that the request then remembers, 0 if none.
    """
    lane.busy[key] = busy
    if rule == LRU_IDLE and busy != IDLE:
        leave(lane, key)
        lane.where[key] = UNPLACED
    elif rule == LRU_RANKED:
        if position < 0:
            lane.counts[SERIAL] += 1
            place(lane, key, lane.counts[SERIAL], 0)  # lru/insert-is-use
        else:
            serial = number_request(lane, serial, generation)
            place(lane, key, serial, -position)  # lru/batches-share-a-rank
    else:
        renew(lane, key, T1)  # lru/insert-is-use, arc/insert-into-t1, arc/insert-takes-ghost
    return serial


@shared
def adapt(lane: Lane, key: int, capacity: int) -> None:
    """Move the target if `key` is a ghost (`arc/step-is-ratio-of-ghosts`)."""
    which = lane.where[key]
    ones, twos = lane.counts[B1], lane.counts[B2]
    if which == B1:  # arc/b1-hit-raises-target
        lane.target[0] = min(lane.target[0] + max(1.0, twos / ones), float(capacity))
        renew(lane, key, B1)  # arc/ghost-hit-renews
    elif which == B2:  # arc/b2-hit-lowers-target
        lane.target[0] = max(lane.target[0] - max(1.0, ones / twos), 0.0)
        renew(lane, key, B2)


@shared
def touch_one(lane: Lane, rule: int, capacity: int, key: int) -> None:
    """Take in the use of one key."""
    which = lane.where[key]
    if rule < ARC_V024:
        if which == T1:
            if rule == LRU_RANKED:
                lane.counts[SERIAL] += 1
                lane.ranks[2 * key] = lane.counts[SERIAL]
                lane.ranks[2 * key + 1] = 0
            renew(lane, key, T1)  # lru/touch-is-use; UNPLACED is lru/touch-of-busy-lost
    elif which == T1 and lane.busy[key] == PENDING:
        renew(lane, key, T1)  # arc/pending-stays-in-t1
    elif which in (T1, T2):
        renew(lane, key, T2)  # arc/second-use-promotes, arc/use-renews-t2
    else:
        adapt(lane, key, capacity)


@shared
def touch(lane: Lane, rule: int, capacity: int, keys: Array, first: int, last: int) -> None:
    """Touch `keys[first:last]`, tail first (`lru/batch-tail-first`, `arc/batch-tail-first`)."""
    for i in range(last - 1, first - 1, -1):
        touch_one(lane, rule, capacity, keys[i])


@shared
def finish_one(lane: Lane, rule: int, capacity: int, key: int) -> None:
    """Take in what an ended request did with one key; its flags say what that was."""
    if rule < ARC_V024:
        touch_one(lane, rule, capacity, key)  # lru/finish-is-use
        return
    which = lane.where[key]
    if which in (T1, T2):
        if lane.flags[key] & STORED:
            renew(lane, key, which)  # arc/store-is-not-reuse
        elif lane.flags[key] & FOUND:
            renew(lane, key, T2)  # arc/reuse-promotes


@shared
def access_one(lane: Lane, key: int, position: int, serial: int) -> None:
    """Let a resident that a running request sees for the first time join its rank."""
    if position < 0 or lane.where[key] != T1:
        return  # lru/access-needs-position
    held, depth = lane.ranks[2 * key], lane.ranks[2 * key + 1]
    if held < serial or (held == serial and depth < -position):  # lru/access-never-demotes
        place(lane, key, serial, -position)


@shared
def mark(lane: Lane, rule: int, key: int, busy: int) -> None:
    """Learn that the resident `key` is IDLE now, or about to be PINNED."""
    lane.busy[key] = busy
    if rule == LRU_IDLE:
        if busy == IDLE:
            renew(lane, key, T1)  # lru/becoming-idle-is-use
        else:
            leave(lane, key)
            lane.where[key] = UNPLACED


@shared
def eligible_after(lane: Lane, at: int) -> int:
    """Return the next key behind `at` that may be evicted, or the list's node."""
    links, keys = lane.links, lane.where.size
    at = links[2 * at]
    while at < keys and (lane.busy[at] != IDLE or lane.flags[at] & OFFERED):
        at = links[2 * at]
    return at


@shared
def sweep(lane: Lane, rule: int, n: int, victims: Array, commit: bool) -> bool:
    """Choose `n` victims, and evict them if `commit`; return whether there are so many.

    LRU is the case of an empty T2 and the target 0.
    """
    keys = lane.where.size
    size, target = lane.counts[T1], int(lane.target[0])  # arc/target-rounded-in-comparison
    one = eligible_after(lane, node_of(lane, T1))
    two = eligible_after(lane, node_of(lane, T2))
    for i in range(n):
        gives = size >= target or (rule != ARC_V024 and two >= keys)  # arc/t1-gives-at-target
        if one < keys and gives:
            key, ghost = one, B1
            one = eligible_after(lane, one)
            size -= 1  # arc/each-victim-anew
        elif two < keys:
            key, ghost = two, B2
            two = eligible_after(lane, two)
        else:
            return False
        if commit:
            if rule < ARC_V024:
                leave(lane, key)
            else:
                renew(lane, key, ghost)  # arc/victim-becomes-ghost
            if i < victims.size:
                victims[i] = key
    return True


@shared
def evict(lane: Lane, rule: int, capacity: int, n: int, victims: Array) -> int:
    """Evict `n` chunks that are idle and have no flag OFFERED, or none at all.

    Args:
        lane: the cache.
        rule: its policy and edition.
        capacity: the number of chunks that fit.
        n: how many, 0 or more.
        victims: gets the victims in their order, then the ghosts that were forgotten, as far as
            it is long enough.

    Returns:
        How many ghosts were forgotten, or -1 if fewer than `n` chunks could leave.
    """
    if n > lane.counts[T1] + lane.counts[T2] or not sweep(lane, rule, n, victims, False):
        return -1  # evict/none-changes-nothing
    sweep(lane, rule, n, victims, True)
    forgotten = 0
    if n > 0:
        for ghosts in (B1, B2):
            while lane.counts[ghosts] > capacity:  # arc/ghosts-trimmed-to-capacity
                key = oldest(lane, ghosts)
                leave(lane, key)
                if n + forgotten < victims.size:
                    victims[n + forgotten] = key
                forgotten += 1
    return forgotten


# --- 3. Requests ---------------------------------------------------------------------------------


@shared
def serve(
    lane: Lane,
    rule: int,
    capacity: int,
    threshold: int,
    keys: Array,
    seen: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Serve one request, `keys[first:last]`, head of the prefix first.

    The events of `protocol.py`: until v0.30 a touch of all keys; a load of the leading run of
    residents starts; all keys that pass the reuse filter are offered; the store of those that were
    absent succeeds; the load ends; from v0.31 the request ends. Positions are in order.

    Args:
        lane: the cache; nothing in it is busy.
        rule: its policy and edition.
        capacity: the number of chunks that fit.
        threshold: how often a key must have been looked up before it is offered; 0 offers all.
        keys: of all requests.
        seen: how often each of them was looked up, this request included; any if no threshold.
        first: where the request begins.
        last: where it ends.
        tally: gets the counts of the request added.
    """
    if rule == LRU_RANKED:
        # A request that is served alone gives its chunks the newest ranks of all when it ends, in
        # the order of their positions, and until then they are pinned or protected or both: no
        # eviction can see the ranks that they had meanwhile.
        rule = LRU_LIST
    run = 0
    for i in range(first, last):
        key = keys[i]
        if is_resident(lane, key):
            lane.flags[key] = FOUND
            tally[RESIDENT] += 1
            if run == i - first:
                run += 1
    tally[RUN] += run
    hooks = rule != LRU_IDLE and rule != ARC_V024
    if not hooks:
        touch(lane, rule, capacity, keys, first, last)

    for i in range(first, first + run):  # the load starts
        mark(lane, rule, keys[i], PINNED)

    # The offer. Misses are reported before anything leaves, tail first (arc/miss-adapts).
    absent = 0
    for i in range(last - 1, first - 1, -1):
        key = keys[i]
        if threshold == 0 or seen[i] >= threshold:
            lane.flags[key] |= OFFERED
            if not lane.flags[key] & FOUND:
                absent += 1
                if rule == ARC:
                    adapt(lane, key, capacity)
    if absent > 0:
        residents = lane.counts[T1] + lane.counts[T2] + (run if rule == LRU_IDLE else 0)
        short = max(0, residents + absent - capacity)
        if evict(lane, rule, capacity, short, keys[0:0]) < 0:
            tally[REFUSALS] += 1
        else:
            tally[EVICTIONS] += short
            tally[STORES] += absent
            for i in range(first, last):
                key = keys[i]
                if lane.flags[key] & OFFERED and not lane.flags[key] & FOUND:
                    lane.flags[key] |= STORED
                    insert(lane, rule, key, PENDING, -1, 0, 0)
            for i in range(first, last):  # the store succeeds
                if lane.flags[keys[i]] & STORED:
                    mark(lane, rule, keys[i], IDLE)

    for i in range(first, first + run):  # the load ends
        mark(lane, rule, keys[i], IDLE)
    for i in range(last - 1, first - 1, -1):  # the request ends
        key = keys[i]
        if hooks and (i - first < run or lane.flags[key] & OFFERED):
            finish_one(lane, rule, capacity, key)
        lane.flags[key] = 0


@shared
def serve_all(
    lane: Lane,
    rule: int,
    capacity: int,
    threshold: int,
    keys: Array,
    seen: Array,
    starts: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Serve requests `first` to `last` - 1; request r is `keys[starts[r]:starts[r + 1]]`."""
    for r in range(first, last):
        serve(lane, rule, capacity, threshold, keys, seen, starts[r], starts[r + 1], tally)


# --- 4. References -------------------------------------------------------------------------------
#
# Each reference is a request of its own that loads nothing and whose store is complete before the
# next one: a hit is a touch, a miss is reported, evicts one chunk if the cache is full, and stores.


@shared
def refer_lru_window(
    previous: Array,
    following: Array,
    first: int,
    last: int,
    capacity: int,
    window: Array,
    tally: Array,
) -> None:
    """Replay references through LRU without a filter.

    What is resident are the keys last used in a window that ends now. So the whole state is where
    the window begins, and how many keys are in it: no list, no array of keys.

    Args:
        previous: for each reference the one before to the same key, -1 if there is none.
        following: for each reference the next one to the same key, or one beyond the end.
        first: the reference to begin with.
        last: the reference to end before.
        capacity: the number of chunks that fit.
        window: two numbers, where the window begins and its size; changed.
        tally: gets the counts added.
    """
    begin, size, hits = window[0], window[1], 0
    for t in range(first, last):
        if previous[t] >= begin:
            hits += 1
        elif size < capacity:
            size += 1
        else:
            while following[begin] <= t:  # used again since: not the last use of its key
                begin += 1
            begin += 1
    misses = last - first - hits
    tally[RUN] += hits
    tally[RESIDENT] += hits
    tally[STORES] += misses
    tally[EVICTIONS] += misses - (size - window[1])
    window[0] = begin
    window[1] = size


@shared
def refer_lru_list(
    lane: Lane,
    capacity: int,
    threshold: int,
    keys: Array,
    seen: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Replay references through LRU behind a reuse filter."""
    links, where = lane.links, lane.where
    node, size = where.size, lane.counts[T1]
    hits = stores = evictions = 0
    for t in range(first, last):
        key = keys[t]
        if where[key] != NOWHERE:
            hits += 1
            after, before = links[2 * key], links[2 * key + 1]
            links[2 * before] = after
            links[2 * after + 1] = before
        elif threshold > 0 and seen[t] < threshold:
            continue
        else:
            stores += 1
            if size == capacity:
                evictions += 1
                gone = links[2 * node]
                after = links[2 * gone]
                links[2 * node] = after
                links[2 * after + 1] = node
                where[gone] = NOWHERE
            else:
                size += 1
            where[key] = T1
        newest = links[2 * node + 1]
        links[2 * newest] = key
        links[2 * key + 1] = newest
        links[2 * key] = node
        links[2 * node + 1] = key
    lane.counts[T1] = size
    tally[RUN] += hits
    tally[RESIDENT] += hits
    tally[STORES] += stores
    tally[EVICTIONS] += evictions


@shared
def refer_arc(
    lane: Lane,
    rule: int,
    capacity: int,
    threshold: int,
    keys: Array,
    seen: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Replay references through ARC.

    The editions differ behind a filter only: until v0.30 a reference that is not offered moves
    the target too, for it was touched.
    """
    links, where = lane.links, lane.where
    base = where.size - 1  # the node of list w is base + w
    one, two, ghost1, ghost2 = (
        lane.counts[T1],
        lane.counts[T2],
        lane.counts[B1],
        lane.counts[B2],
    )
    target = lane.target[0]
    hits = stores = evictions = 0
    for t in range(first, last):
        key = keys[t]
        which = where[key]
        into = T1
        if which in (T1, T2):
            hits += 1
            into = T2
            if which == T1:
                one -= 1
                two += 1
                where[key] = T2
        else:
            offered = threshold == 0 or seen[t] >= threshold
            if which != NOWHERE and (offered or rule == ARC_V024):
                if which == B1:
                    target = min(target + max(1.0, ghost2 / ghost1), float(capacity))
                else:
                    target = max(target - max(1.0, ghost1 / ghost2), 0.0)
            if offered:
                stores += 1
                if one + two == capacity:
                    evictions += 1
                    # The ghost that was hit is the newest of its list until it is stored.
                    if one > 0 and (one >= int(target) or two == 0):
                        source, room = T1, ghost1
                        one -= 1
                        ghost1 += 1
                    else:
                        source, room = T2, ghost2
                        two -= 1
                        ghost2 += 1
                    ghosts = source + 2
                    if room == capacity:  # one too many: the oldest ghost is forgotten
                        gone = links[2 * (base + ghosts)]
                        if gone == key and room > 1:
                            gone = links[2 * gone]
                        after, before = links[2 * gone], links[2 * gone + 1]
                        links[2 * before] = after
                        links[2 * after + 1] = before
                        where[gone] = NOWHERE
                        if source == T1:
                            ghost1 -= 1
                        else:
                            ghost2 -= 1
                    gone = links[2 * (base + source)]
                    after = links[2 * gone]
                    links[2 * (base + source)] = after
                    links[2 * after + 1] = base + source
                    newest = links[2 * (base + ghosts) + 1]
                    links[2 * newest] = gone
                    links[2 * gone + 1] = newest
                    links[2 * gone] = base + ghosts
                    links[2 * (base + ghosts) + 1] = gone
                    where[gone] = ghosts
                which = where[key]  # its ghost may be the one that was forgotten
                if which == B1:
                    ghost1 -= 1
                elif which == B2:
                    ghost2 -= 1
                where[key] = T1
                one += 1
            elif which != NOWHERE and rule == ARC_V024:
                into = which  # arc/ghost-hit-renews
            else:
                continue
        if which != NOWHERE:
            after, before = links[2 * key], links[2 * key + 1]
            links[2 * before] = after
            links[2 * after + 1] = before
        node = base + into
        newest = links[2 * node + 1]
        links[2 * newest] = key
        links[2 * key + 1] = newest
        links[2 * key] = node
        links[2 * node + 1] = key
    lane.counts[T1] = one
    lane.counts[T2] = two
    lane.counts[B1] = ghost1
    lane.counts[B2] = ghost2
    lane.target[0] = target
    tally[RUN] += hits
    tally[RESIDENT] += hits
    tally[STORES] += stores
    tally[EVICTIONS] += evictions


@shared
def refer(
    lane: Lane,
    rule: int,
    capacity: int,
    threshold: int,
    keys: Array,
    seen: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Replay references `first` to `last` - 1 through a lane that has lists."""
    if rule < ARC_V024:
        refer_lru_list(lane, capacity, threshold, keys, seen, first, last, tally)
    else:
        refer_arc(lane, rule, capacity, threshold, keys, seen, first, last, tally)


# --- 5. Call by call -----------------------------------------------------------------------------
#
# Calls of the interface, encoded as numbers: the operation, three arguments, the number of keys,
# then for each key the key and a number that belongs to it.

INSERT, REMOVE, TOUCH, STORE_MISS, ACCESS, FINISH, EVICT, MARK, CLEAR = range(9)
HEAD = 5
"""How many numbers stand before the keys of a call."""


@shared
def perform(
    lane: Lane, rule: int, capacity: int, code: Array, at: int, answers: Array, to: int
) -> int:
    """Make one call on a lane.

    | operation | arguments | number of each key | answer |
    |---|---|---|---|
    | INSERT | busy, serial, generation | end token or -1; one key | the request's serial |
    | REMOVE | | one key | |
    | TOUCH, STORE_MISS | | | |
    | ACCESS | serial, generation | end token or -1 | the request's serial |
    | FINISH | | STORED, FOUND or 0 | |
    | EVICT | n | the keys are those protected | ghosts forgotten or -1, victims, ghosts |
    | MARK | IDLE or PINNED | one key | |
    | CLEAR | | | |

    Args:
        lane: the cache.
        rule: its policy and edition.
        capacity: the number of chunks that fit.
        code: int64, calls.
        at: where in `code` the call begins.
        answers: int64, gets the answer.
        to: where in `answers` it is to begin; it is cut off at the end of `answers`.

    Returns:
        Where in `answers` the next answer begins.
    """
    operation, a, b, c, n = (
        code[at],
        code[at + 1],
        code[at + 2],
        code[at + 3],
        code[at + 4],
    )
    at += HEAD
    key = code[at] if n > 0 else -1
    if operation == INSERT:
        answers[to] = insert(lane, rule, key, a, code[at + 1], b, c)
        return to + 1
    if operation == REMOVE:
        leave(lane, key)
    elif operation == MARK:
        mark(lane, rule, key, a)
    elif operation == CLEAR:
        clear(lane)
    elif operation == ACCESS:
        serial = number_request(lane, a, b)
        for i in range(n):
            access_one(lane, code[at + 2 * i], code[at + 2 * i + 1], serial)
        answers[to] = serial
        return to + 1
    elif operation == EVICT:
        for i in range(n):
            lane.flags[code[at + 2 * i]] = OFFERED
        forgotten = evict(lane, rule, capacity, a, answers[to + 1 :])
        for i in range(n):
            lane.flags[code[at + 2 * i]] = 0
        answers[to] = forgotten
        return to + 1 + (a + forgotten if forgotten >= 0 else 0)
    else:
        for i in range(n - 1, -1, -1):
            key = code[at + 2 * i]
            if operation == TOUCH:
                touch_one(lane, rule, capacity, key)
            elif operation == FINISH:
                lane.flags[key] = code[at + 2 * i + 1]
                finish_one(lane, rule, capacity, key)
                lane.flags[key] = 0
            elif rule == ARC:
                adapt(lane, key, capacity)  # arc/miss-adapts
            else:
                touch_one(lane, rule, capacity, key)  # hooks/store-miss-defaults-to-touch
    return to


@shared
def perform_all(
    lane: Lane, rule: int, capacity: int, code: Array, first: int, last: int, answers: Array
) -> None:
    """Make the calls in `code[first:last]` one after the other."""
    at, to = first, 0
    while at < last:
        to = perform(lane, rule, capacity, code, at, answers, to)
        at += HEAD + 2 * code[at + 4]


# --- 6. On the CPU -------------------------------------------------------------------------------
#
# State arrays are lane-major here, `[lanes, rows]`: each lane's part is one piece of memory. Every
# kernel takes the lanes that it is to work on, so that several threads can share them out.


@shared
def row_of(state: Lane, i: int) -> Lane:
    """Return lane `i` of lane-major arrays; `names` is one for all lanes."""
    return Lane(
        state.links[i],
        state.where[i],
        state.busy[i],
        state.flags[i],
        state.ranks[i],
        state.names,
        state.counts[i],
        state.target[i],
    )


@kernel(nogil=True, borrows=True)
def clear_rows(state: Lane) -> None:
    """Make every lane empty."""
    for i in range(state.target.shape[0]):
        clear(row_of(state, i))


@kernel(nogil=True, borrows=True)
def serve_rows(
    lower: int,
    upper: int,
    state: Lane,
    plan: Plan,
    keys: Array,
    seen: Array,
    starts: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Serve requests `first` to `last` - 1 in lanes `lower` to `upper` - 1."""
    for i in range(lower, upper):
        serve_all(
            row_of(state, i),
            plan.rules[i],
            plan.capacities[i],
            plan.thresholds[i],
            keys,
            seen[plan.trackers[i]],
            starts,
            first,
            last,
            tally[i],
        )


@kernel(nogil=True, borrows=True)
def refer_rows(
    lower: int,
    upper: int,
    state: Lane,
    plan: Plan,
    keys: Array,
    seen: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Replay references `first` to `last` - 1 in lanes `lower` to `upper` - 1."""
    for i in range(lower, upper):
        refer(
            row_of(state, i),
            plan.rules[i],
            plan.capacities[i],
            plan.thresholds[i],
            keys,
            seen[plan.trackers[i]],
            first,
            last,
            tally[i],
        )


@kernel(nogil=True, borrows=True)
def refer_window_rows(
    lower: int,
    upper: int,
    plan: Plan,
    previous: Array,
    following: Array,
    first: int,
    last: int,
    windows: Array,
    tally: Array,
) -> None:
    """Replay references `first` to `last` - 1 in lanes `lower` to `upper` - 1 of plain LRU."""
    for i in range(lower, upper):
        refer_lru_window(previous, following, first, last, plan.capacities[i], windows[i], tally[i])


@kernel(nogil=True, borrows=True)
def perform_rows(
    lower: int, upper: int, state: Lane, plan: Plan, code: Array, ends: Array, answers: Array
) -> None:
    """Make in lanes `lower` to `upper` - 1 the calls of their own programs."""
    for i in range(lower, upper):
        perform_all(
            row_of(state, i),
            plan.rules[i],
            plan.capacities[i],
            code,
            ends[i],
            ends[i + 1],
            answers[i],
        )


# --- 7. What is computed once for a trace --------------------------------------------------------


@kernel(nogil=True, borrows=True)
def find_occurrences(keys: Array, last: Array, previous: Array, following: Array) -> None:
    """For each reference find the one before and the next one to the same key.

    Args:
        keys: int32, the references.
        last: int32, as many as there are keys, all -1; changed.
        previous: int32, gets the reference before, -1 if there is none.
        following: int32, gets the next one, the number of references if there is none.
    """
    n = keys.size
    for t in range(n):
        key = keys[t]
        before = last[key]
        previous[t] = before
        if before >= 0:
            following[before] = t
        following[t] = n
        last[key] = t


@kernel(nogil=True, borrows=True)
def count_lookups(
    keys: Array, starts: Array, limit: int, links: Array, counts: Array, seen: Array
) -> None:
    """Count for each key of each request how often it was looked up when it could be offered.

    The tracker of the reuse filter, which does not depend on any cache. A request looks up all of
    its keys (`reuse-filter/lookup-counts-each-key`), then offers: a key that the tracker has
    dropped by then counts 0.

    Args:
        keys: int32, of all requests.
        starts: request r is `keys[starts[r]:starts[r + 1]]`.
        limit: how many keys the tracker holds; as many as there are keys if it drops none.
        links: int32, next and previous of each key and of the list's own node; changed.
        counts: int32, one a key, all 0; changed.
        seen: int32, gets the counts.
    """
    node, held = counts.size, 0
    links[2 * node] = node
    links[2 * node + 1] = node
    for r in range(starts.size - 1):
        for t in range(starts[r], starts[r + 1]):
            key = keys[t]
            if counts[key] > 0:
                after, before = links[2 * key], links[2 * key + 1]
                links[2 * before] = after
                links[2 * after + 1] = before
            elif held < limit:
                held += 1
            else:  # reuse-filter/tracker-drops-least-recent
                gone = links[2 * node]
                after = links[2 * gone]
                links[2 * node] = after
                links[2 * after + 1] = node
                counts[gone] = 0
            counts[key] += 1
            newest = links[2 * node + 1]
            links[2 * newest] = key
            links[2 * key + 1] = newest
            links[2 * key] = node
            links[2 * node + 1] = key
        for t in range(starts[r], starts[r + 1]):
            seen[t] = counts[keys[t]]
