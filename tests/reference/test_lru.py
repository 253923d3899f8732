"""LRU, clause by clause (`specs/lru.md`), in every edition that has the clause.

Each test is a short sequence with the victims it must give and the state it must leave. Where
positions play a part, request `p` knows that key k ends at token 10 k; others know nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from cachelaw.reference import ReqContext, make_offload_key
from cachelaw.reference.editions import EDITIONS, V024, V031, V033, Edition
from cachelaw.reference.lru import EvictableOrder, RankedOrder, evictable_insert
from cachelaw.specs.registry import CLAUSES

if TYPE_CHECKING:
    from tests.reference.conftest import Host

EVERY = pytest.mark.parametrize("edition", EDITIONS, ids=str)
KNOWN = {"p": {key: 10 * key for key in range(1, 8)}, "q": {key: 10 * key for key in range(1, 8)}}

COVERED: set[str] = set()
"""The clauses that a test here says it is about."""


def having(clause: str) -> pytest.MarkDecorator:
    """Run a test for each edition that has `clause`."""
    COVERED.add(clause)
    found = [edition for edition in EDITIONS if CLAUSES[clause].holds_in(edition.name)]
    return pytest.mark.parametrize("edition", found, ids=str)


def order_of(cache: Host) -> tuple[int, ...]:
    """Return the keys that have a place in the order, the next to leave first."""
    state = cache.state
    if isinstance(state, EvictableOrder):
        return state.idle
    if isinstance(state, RankedOrder):
        return tuple(key for _, key in state.entries)
    order: tuple[int, ...] = state
    return order


def expect(cache: Host, *order: int) -> None:
    """Check the state of the core: `order`, and nothing that contradicts the manager's books."""
    assert order_of(cache) == order
    check(cache)


def check(cache: Host) -> None:
    """Check all that is true of every state."""
    state, order = cache.state, order_of(cache)
    assert len(set(order)) == len(order)
    if isinstance(state, EvictableOrder):
        assert state.resident == cache.residents
        assert set(order) == cache.books.eligible()
        return
    assert set(order) == cache.residents
    if isinstance(state, RankedOrder):
        assert list(state.entries) == sorted(state.entries)
        assert all(0 < serial <= state.serial for (serial, _), _ in state.entries)


# --- All editions --------------------------------------------------------------------------------


@having("lru/oldest-leaves-first")
def test_oldest_leaves_first(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    for key in (1, 2, 3, 4):
        cache.store(key)
    expect(cache, 1, 2, 3, 4)
    assert cache.evict(1) == (1,)
    assert cache.evict(2) == (2, 3)
    expect(cache, 4)


@having("lru/oldest-leaves-first")
def test_an_offer_evicts_the_oldest(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    for key in (1, 2, 3):
        cache.store(key)
    assert cache.store(4, 5) == (1, 2)
    expect(cache, 3, 4, 5)


@having("lru/touch-is-use")
def test_touch_is_use(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    for key in (1, 2, 3):
        cache.store(key)
    cache.touch(1)
    expect(cache, 2, 3, 1)
    cache.touch(2)
    expect(cache, 3, 1, 2)
    assert cache.evict(3) == (3, 1, 2)
    expect(cache)


@having("lru/batch-tail-first")
def test_batch_tail_first(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    for key in (1, 2, 3, 4):
        cache.store(key)
    cache.touch(1, 2, 3)
    expect(cache, 4, 3, 2, 1)
    cache.touch(4, 9, 2)  # an absent key leaves no trace
    expect(cache, 3, 1, 2, 4)
    assert cache.evict(4) == (3, 1, 2, 4)


@having("lru/passed-over-keeps-place")
def test_the_protected_keeps_its_place(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    for key in (1, 2, 3, 4):
        cache.store(key)
    assert cache.evict(1, 1, 9) == (2,)
    expect(cache, 1, 3, 4)
    assert cache.evict(2, 3) == (1, 4)
    expect(cache, 3)


@having("lru/passed-over-keeps-place")
def test_the_busy_keeps_its_place(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    for key in (1, 2):
        cache.store(key)
    cache.offer(3)
    cache.store(4)
    cache.load(1)
    assert cache.evict(1) == (2,)
    if V024 <= edition < V031:
        expect(cache, 4)  # a busy chunk has no place to lose
    else:
        expect(cache, 1, 3, 4)
    assert cache.evict(2) is None
    assert cache.evict(1) == (4,)


@EVERY
def test_a_refusal_changes_nothing(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    for key in (1, 2, 3):
        cache.store(key)
    before = cache.state
    assert cache.evict(4) is None
    assert cache.evict(3, 2) is None
    assert cache.evict(0) == ()
    assert cache.state == before
    assert cache.evict(3) == (1, 2, 3)


@EVERY
def test_a_failed_store_leaves_no_trace(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    cache.store(1)
    cache.offer(2)
    cache.store(3)
    cache.fail(2)
    expect(cache, 1, 3)
    assert cache.policy.get(2) is None


@pytest.mark.parametrize("edition", [e for e in EDITIONS if e.has_clear], ids=str)
def test_clear_forgets_pinned_and_pending(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    cache.store(1)
    cache.store(2)
    cache.load(1)
    cache.offer(3)
    cache.reset()
    expect(cache)
    for key in (3, 1):
        cache.store(key)
    expect(cache, 3, 1)


# --- What counts as a use, by edition ------------------------------------------------------------


@having("lru/insert-is-use")
def test_insert_is_use(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    cache.offer(1)
    cache.offer(2)
    expect(cache, 1, 2)
    cache.succeed(2)
    cache.succeed(1)
    cache.touch(1)
    cache.offer(3)
    expect(cache, 2, 1, 3)
    cache.succeed(3)
    assert cache.evict(3) == (2, 1, 3)


@having("lru/insert-is-use")
def test_the_last_of_a_batch_is_the_most_recent(host: type[Host], edition: Edition) -> None:
    """Chunks of unknown position are inserted one after the other, head first."""
    cache = host(edition, "lru", 3)
    cache.store(1, 2, 3)
    expect(cache, 1, 2, 3)


@having("lru/transfer-is-no-use")
def test_transfer_is_no_use(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    cache.offer(1, 2, 3)
    for key in (3, 1, 2):
        cache.succeed(key)
    expect(cache, 1, 2, 3)
    cache.load(2, 1)
    expect(cache, 1, 2, 3)
    cache.load(1, recorded=False)
    cache.unload(2, 1)
    cache.unload(1)
    expect(cache, 1, 2, 3)
    assert cache.evict(3) == (1, 2, 3)


@having("lru/becoming-idle-is-use")
def test_becoming_idle_is_use(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    cache.offer(1, 2, 3)
    assert cache.state == EvictableOrder(frozenset({1, 2, 3}), ())
    for key in (3, 1, 2):
        cache.succeed(key)
    assert cache.state == EvictableOrder(frozenset({1, 2, 3}), (3, 1, 2))
    cache.load(3)
    cache.load(3)
    cache.unload(3)
    assert cache.state == EvictableOrder(frozenset({1, 2, 3}), (1, 2))  # one pin is left
    cache.unload(3)
    assert cache.state == EvictableOrder(frozenset({1, 2, 3}), (1, 2, 3))
    assert cache.evict(2) == (1, 2)
    assert cache.state == EvictableOrder(frozenset({3}), (3,))


@having("lru/touch-of-busy-counts")
def test_touch_of_busy_counts(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    for key in (1, 2, 3):
        cache.store(key)
    cache.load(2, by="u")
    cache.touch(2)
    cache.touch(1)
    expect(cache, 3, 2, 1)
    cache.unload(2)
    cache.offer(4)
    cache.touch(3)
    cache.touch(4)  # still pending
    cache.touch(1)
    cache.succeed(4)
    expect(cache, 2, 3, 4, 1)
    assert cache.evict(4) == (2, 3, 4, 1)


@having("lru/touch-of-busy-lost")
def test_touch_of_busy_lost(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    for key in (1, 2, 3):
        cache.store(key)
    cache.load(2)
    before = cache.state
    cache.touch(2)
    assert cache.state == before
    cache.touch(1)
    cache.unload(2)
    expect(cache, 3, 1, 2)
    cache.offer(4)
    before = cache.state
    cache.touch(4)
    assert cache.state == before
    assert cache.evict(3) == (3, 1, 2)


# --- Requests, from v0.31 ------------------------------------------------------------------------


@having("lru/finish-is-use")
def test_finish_is_use(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4)
    cache.store(1, by="r")
    cache.store(2, by="u")
    cache.store(3, by="u")
    cache.offer(2, by="r")  # finds it ready
    expect(cache, 1, 2, 3)
    cache.finish("r")
    expect(cache, 3, 2, 1)
    cache.finish("u")
    expect(cache, 1, 3, 2)
    assert cache.evict(3) == (1, 3, 2)


@having("lru/finish-is-use")
def test_finish_is_a_use_of_busy_chunks_too(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3)
    cache.offer(1, by="r")
    cache.store(2, by="u")
    cache.load(2, by="r")
    cache.store(3, by="u")
    cache.finish("r")
    expect(cache, 3, 2, 1)


@having("lru/finish-is-use")
def test_what_has_left_does_not_come_back(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 2)
    cache.store(1, 2, by="r")
    cache.store(3, by="u")
    cache.finish("r")
    expect(cache, 3, 2)


@having("lru/finish-in-prefix-order")
def test_finish_in_prefix_order(host: type[Host], edition: Edition) -> None:
    """Tails leave before heads, across the KV cache groups of the request."""
    cache = host(
        edition,
        "lru",
        4,
        groups={1: 0, 2: 0, 3: 1, 4: 1},
        positions={"p": {1: 10, 2: 20, 3: 15, 4: 25}},
    )
    cache.store(4, 3, by="p")
    cache.store(2, 1, by="p")
    cache.finish("p")
    expect(cache, 4, 2, 3, 1)
    assert cache.evict(3) == (4, 2, 3)


@having("lru/finish-in-prefix-order")
def test_finish_without_positions_goes_by_group(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4, groups={1: 0, 2: 0, 3: 1, 4: 1})
    cache.store(3, 1, 4, 2, by="r")
    cache.finish("r")
    expect(cache, 4, 3, 2, 1)


@having("lru/finish-in-prefix-order")
def test_finish_with_one_position_unknown(host: type[Host], edition: Edition) -> None:
    """Each group is in its own order of positions, but the groups are not woven together."""
    cache = host(
        edition,
        "lru",
        4,
        groups={1: 0, 2: 0, 3: 1, 4: 1},
        positions={"p": {1: 20, 2: 10, 3: 15}},
    )
    cache.store(1, 2, 3, 4, by="u")
    cache.load(1, 2, 3, 4, by="p")
    cache.finish("p")
    expect(cache, 4, 3, 1, 2)


# --- Request ranks, from v0.33 -------------------------------------------------------------------


def ranks(cache: Host) -> RankedOrder[int]:
    """Return the whole state, after a check."""
    check(cache)
    state: RankedOrder[int] = cache.state
    return state


@pytest.mark.parametrize("edition", [V033], ids=str)
def test_ranks_of_chunks_without_positions(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 2)
    cache.store(2, by="r")  # its first sight takes number 1, its insert number 2
    assert ranks(cache) == RankedOrder((((2, 0), 2),), serial=2)
    cache.store(1, by="r")
    assert ranks(cache) == RankedOrder((((2, 0), 2), ((3, 0), 1)), serial=3)


@having("lru/batches-share-a-rank")
def test_batches_share_a_rank(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 5, positions=KNOWN)
    cache.store(1, 2, by="p")
    cache.store(7, by="u")
    cache.store(3, 4, by="p")
    assert ranks(cache) == RankedOrder(
        (((1, -40), 4), ((1, -30), 3), ((1, -20), 2), ((1, -10), 1), ((3, 0), 7)), serial=3
    )
    assert cache.evict(5) == (4, 3, 2, 1, 7)


@having("lru/batches-share-a-rank")
def test_an_older_request_is_older_with_all_it_stores(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4, positions=KNOWN)
    cache.store(1, by="p")
    cache.store(2, by="q")
    cache.store(3, by="p")
    assert ranks(cache) == RankedOrder((((1, -30), 3), ((1, -10), 1), ((2, -20), 2)), serial=2)
    cache.finish("p")
    # The end of a request makes its use final: it is newer than q's now.
    assert ranks(cache) == RankedOrder((((2, -20), 2), ((3, 0), 3), ((4, 0), 1)), serial=4)
    assert cache.evict(3) == (2, 3, 1)


@having("lru/batches-share-a-rank")
def test_batches_share_a_rank_whatever_completes_first(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4, positions=KNOWN)
    cache.offer(1, 2, by="p")
    cache.offer(3, 4, by="p")
    for key in (4, 1, 3, 2):
        cache.succeed(key)
    expect(cache, 4, 3, 2, 1)


@having("lru/batches-share-a-rank")
@pytest.mark.parametrize("seen_first", [False, True])
def test_an_insert_alone_gives_the_request_its_rank(edition: Edition, seen_first: bool) -> None:
    """Managers report the access before the insert; the rank does not depend on that."""
    module = importlib.import_module(edition.module)
    cache, context = module.LRU(4), ReqContext("p")
    keys = [make_offload_key(bytes([number]), 0) for number in range(5)]
    for number in (1, 2, 3, 4):
        context.set_offload_key_position(keys[number], 10 * number)
    for batch in ((1, 2), (3, 4)):
        if seen_first:
            cache.on_request_access([keys[number] for number in batch], context)
        for number in batch:
            chunk = module.ChunkStatus(number - 1)
            chunk.ref_cnt = 0
            cache.insert(keys[number], chunk, context)
    assert [key for key, _ in cache.evict(4, set())] == [keys[4], keys[3], keys[2], keys[1]]


@having("lru/batches-share-a-rank")
def test_a_request_has_a_rank_in_each_cache(edition: Edition) -> None:
    module = importlib.import_module(edition.module)
    one, other, context = module.LRU(2), module.LRU(2), ReqContext("p")
    key, alone = make_offload_key(b"a", 0), make_offload_key(b"b", 0)
    context.set_offload_key_position(key, 10)
    other.insert(alone, module.ChunkStatus(0), ReqContext("u"))
    for cache in (one, other):
        cache.insert(key, module.ChunkStatus(1), context)
    assert one.state == RankedOrder((((1, -10), key),), serial=1)
    assert other.state == RankedOrder((((1, 0), alone), ((2, -10), key)), serial=2)


@having("lru/access-joins-rank")
def test_access_joins_rank(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4, positions=KNOWN)
    cache.store(1, 2, 3, by="u")
    assert ranks(cache) == RankedOrder((((2, 0), 1), ((3, 0), 2), ((4, 0), 3)), serial=4)
    cache.load(1, 2, by="p")
    joined = RankedOrder((((4, 0), 3), ((5, -20), 2), ((5, -10), 1)), serial=5)
    assert ranks(cache) == joined
    cache.load(1, 2, by="p")  # no first sight
    assert ranks(cache) == joined
    cache.unload(1, 2)
    cache.unload(1, 2)
    assert cache.evict(3) == (3, 2, 1)


@having("lru/access-joins-rank")
def test_access_joins_rank_while_busy(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 4, positions=KNOWN)
    cache.store(1, 2, by="u")
    cache.load(1, by="v")
    cache.load(1, by="p")
    assert ranks(cache) == RankedOrder((((3, 0), 2), ((5, -10), 1)), serial=5)


@having("lru/access-joins-rank")
def test_an_offer_of_residents_joins_rank(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3, positions=KNOWN)
    cache.store(1, 2, by="u")
    cache.store(1, 3, by="p")
    assert ranks(cache) == RankedOrder((((3, 0), 2), ((4, -30), 3), ((4, -10), 1)), serial=4)


@having("lru/access-joins-rank")
def test_an_unrecorded_load_joins_nothing(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3, positions=KNOWN)
    cache.store(1, 2, by="u")
    before = ranks(cache)
    cache.load(1, by="p", recorded=False)
    assert ranks(cache) == before


@having("lru/access-never-demotes")
def test_access_never_demotes(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3, positions=KNOWN)
    cache.store(3, by="p")
    cache.store(1, 2, by="q")
    before = RankedOrder((((1, -30), 3), ((2, -20), 2), ((2, -10), 1)), serial=2)
    assert ranks(cache) == before
    cache.load(1, by="p")  # p is the older request
    assert ranks(cache) == before
    cache.unload(1)
    assert cache.evict(3) == (3, 2, 1)


@having("lru/access-never-demotes")
def test_an_equal_rank_is_kept(host: type[Host], edition: Edition) -> None:
    """What p stored keeps its place when p offers it again, together with a newer chunk."""
    cache = host(edition, "lru", 3, positions=KNOWN)
    cache.store(1, by="p")
    cache.store(2, 1, by="p")
    assert ranks(cache) == RankedOrder((((1, -20), 2), ((1, -10), 1)), serial=1)


@having("lru/access-needs-position")
def test_access_needs_position(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3, positions={"p": {1: 10}})
    cache.store(1, 2, by="u")
    cache.load(2, 1, by="p")
    assert ranks(cache) == RankedOrder((((3, 0), 2), ((4, -10), 1)), serial=4)
    cache.unload(1, 2)
    assert cache.evict(2) == (2, 1)


@having("lru/access-needs-position")
def test_a_request_that_knows_nothing_takes_a_number(host: type[Host], edition: Edition) -> None:
    """Its accesses move nothing, yet what it sees first is when its rank is given."""
    cache = host(edition, "lru", 3, positions={"p": {3: 30}})
    cache.store(1, by="u")
    cache.load(1, by="p")
    cache.store(2, by="u")
    cache.store(3, by="p")
    assert ranks(cache) == RankedOrder((((2, 0), 1), ((3, -30), 3), ((4, 0), 2)), serial=4)


@having("lru/equal-rank-by-key-order")
def test_equal_rank_by_key_order(host: type[Host], edition: Edition) -> None:
    """Two groups end at the same token."""
    cache = host(
        edition,
        "lru",
        4,
        groups={1: 0, 2: 1, 3: 0, 4: 1},
        positions={"p": {1: 20, 2: 20, 3: 10, 4: 10}},
    )
    cache.store(4, 2, 3, 1, by="p")
    assert ranks(cache) == RankedOrder(
        (((1, -20), 1), ((1, -20), 2), ((1, -10), 3), ((1, -10), 4)), serial=1
    )
    assert cache.evict(1) == (1,)
    assert cache.evict(3) == (2, 3, 4)


@having("lru/clear-voids-request-ranks")
def test_clear_voids_request_ranks(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3, positions=KNOWN)
    cache.store(7, by="u")
    cache.store(1, by="p")
    cache.reset()
    assert ranks(cache) == RankedOrder(generation=1)
    cache.store(2, by="u")
    cache.store(1, by="p")  # with the number it had it would be the oldest
    assert ranks(cache) == RankedOrder((((2, 0), 2), ((3, -10), 1)), serial=3, generation=1)
    assert cache.evict(2) == (2, 1)


@having("lru/clear-voids-request-ranks")
def test_each_clear_voids_anew(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "lru", 3, positions=KNOWN)
    for generation in (1, 2, 3):
        cache.store(2, by="q")
        cache.store(1, by="p")
        expect(cache, 2, 1)
        cache.reset()
        assert ranks(cache) == RankedOrder(generation=generation)


def test_every_clause_is_here() -> None:
    assert {name for name in CLAUSES if name.startswith("lru/")} == COVERED


def test_an_idle_chunk_that_is_inserted_takes_the_last_place() -> None:
    """No manager inserts one; the core of v0.24 to v0.30 has an answer all the same, the seed's."""
    before = EvictableOrder(frozenset("ab"), ("a",))
    pending = EvictableOrder(frozenset("abc"), ("a",))
    assert evictable_insert(before, "c", -1) == pending
    assert evictable_insert(before, "c", 1) == pending
    assert evictable_insert(before, "c", 0) == EvictableOrder(frozenset("abc"), ("a", "c"))


# --- Random runs ---------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("groups", [1, 3])
def test_states_are_sound_on_the_way(
    host: type[Host], edition: Edition, capacity: int, groups: int
) -> None:
    evictions = 0
    for seed in range(4):
        cache = host.of_layout(edition, "lru", capacity, groups)
        for _ in cache.at_random(seed, 80):
            check(cache)
            evictions += sum(call.method == "evict" for call in cache.calls)
        # What the order says is what happens.
        order = [key for key in order_of(cache) if key in cache.books.eligible()]
        assert cache.evict(len(order)) == tuple(order)
        check(cache)
    assert evictions > 10
