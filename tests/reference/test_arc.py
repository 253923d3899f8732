"""ARC, clause by clause (`specs/arc.md`), in every edition that has the clause.

Each test is a short sequence with the victims it must give and the state it must leave. Ghosts
are made by evictions while slots are free, and hit by touches, which all editions take in alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cachelaw.reference.arc import ArcState, evict
from cachelaw.reference.editions import EDITIONS, V030, V031, Edition
from cachelaw.specs.registry import CLAUSES

if TYPE_CHECKING:
    from tests.reference.conftest import Host

EVERY = pytest.mark.parametrize("edition", EDITIONS, ids=str)

COVERED: set[str] = set()
"""The clauses that a test here says it is about."""


def having(clause: str, since: Edition = EDITIONS[0]) -> pytest.MarkDecorator:
    """Run a test for each edition that has `clause`, none older than `since`."""
    COVERED.add(clause)
    found = [e for e in EDITIONS if CLAUSES[clause].holds_in(e.name) and e >= since]
    return pytest.mark.parametrize("edition", found, ids=str)


def expect(cache: Host, target: float = 0.0, **lists: tuple[int, ...]) -> None:
    """Check the whole state: the target and the lists named; those not named are empty."""
    assert cache.state == ArcState(cache.setting.capacity, target, **lists)
    check(cache)


def check(cache: Host) -> None:
    """Check all that is true of every state."""
    state: ArcState[int] = cache.state
    everywhere = state.t1 + state.t2 + state.b1 + state.b2
    assert len(set(everywhere)) == len(everywhere), "arc/lists-disjoint"
    assert set(state.t1 + state.t2) == cache.residents, "arc/lists-disjoint"
    assert 0 <= state.target <= state.capacity, "arc/target-bounded"
    assert isinstance(state.target, float)
    # Ghosts are made by evictions alone, and those trim.
    assert max(len(state.b1), len(state.b2)) <= state.capacity, "arc/ghosts-trimmed-to-capacity"


def frequent(cache: Host, *keys: int) -> None:
    """Store chunks and bring them into T2, the first one the least recently used."""
    for key in keys:
        cache.store(key, by="f")
        cache.touch(key, by="f")


# --- The lists -----------------------------------------------------------------------------------


@having("arc/lists-disjoint")
def test_lists_are_disjoint_through_a_round_trip(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1)
    expect(cache, t1=(1,))
    cache.touch(1)
    expect(cache, t2=(1,))
    assert cache.evict(1) == (1,)
    expect(cache, b2=(1,))
    cache.store(1)
    expect(cache, t1=(1,))
    assert cache.evict(1) == (1,)
    expect(cache, b1=(1,))


@having("arc/insert-into-t1")
def test_insert_into_t1(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    cache.offer(1)
    cache.offer(2)
    expect(cache, t1=(1, 2))
    cache.succeed(2)
    cache.succeed(1)
    expect(cache, t1=(1, 2))
    assert cache.evict(2) == (1, 2)
    cache.touch(1)
    expect(cache, 1.0, b1=(2, 1))
    cache.store(3, by="u")
    cache.store(1, by="u")
    # The paper would put it into T2.
    expect(cache, 2.0 if edition.has_request_hooks else 1.0, t1=(3, 1), b1=(2,))


@having("arc/insert-takes-ghost")
def test_insert_takes_ghost(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    frequent(cache, 1)
    cache.store(2)
    assert cache.evict(2) == (2, 1)
    expect(cache, b1=(2,), b2=(1,))
    cache.offer(1, by="u")
    # B2 is hit while the target is 0 and stays there.
    expect(cache, t1=(1,), b1=(2,))
    cache.offer(2, by="u")
    expect(cache, 1.0 if edition.has_request_hooks else 0.0, t1=(1, 2))


@having("arc/remove-leaves-no-ghost")
def test_remove_leaves_no_ghost(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    cache.store(1)
    cache.offer(2)
    cache.fail(2)
    expect(cache, t1=(1,))
    cache.touch(2)
    cache.store(2, by="u")
    expect(cache, t1=(1, 2))


@having("arc/victim-becomes-ghost")
def test_victim_becomes_ghost(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    frequent(cache, 1, 2)
    cache.store(3, 4)
    assert cache.evict(1) == (3,)
    expect(cache, t1=(4,), t2=(1, 2), b1=(3,))
    assert cache.evict(2) == (4, 1)
    expect(cache, t2=(2,), b1=(3, 4), b2=(1,))
    assert cache.evict(1) == (2,)
    expect(cache, b1=(3, 4), b2=(1, 2))


@having("arc/ghosts-trimmed-to-capacity")
def test_ghosts_trimmed_to_capacity(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, 2)
    cache.store(3, 4)
    expect(cache, t1=(3, 4), b1=(1, 2))
    cache.store(5)
    expect(cache, t1=(4, 5), b1=(2, 3))
    # Each list has a bound of its own.
    cache.touch(5, 4)
    assert cache.evict(2) == (4, 5)
    expect(cache, b1=(2, 3), b2=(4, 5))


@having("arc/ghosts-trimmed-to-capacity")
def test_a_refusal_trims_nothing(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, 2)
    cache.store(3, 4)
    before = cache.state
    assert cache.evict(3) is None
    assert cache.evict(1, 3, 4) is None
    assert cache.evict(0) == ()
    assert cache.state == before


# --- Uses ----------------------------------------------------------------------------------------


@having("arc/second-use-promotes")
def test_second_use_promotes(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    cache.store(1, 2, 3)
    cache.touch(2)
    expect(cache, t1=(1, 3), t2=(2,))
    cache.load(1, by="u")
    cache.touch(1)  # also while it is pinned
    expect(cache, t1=(3,), t2=(2, 1))
    cache.unload(1)
    assert cache.evict(3) == (3, 2, 1)


@having("arc/use-renews-t2")
def test_use_renews_t2(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    frequent(cache, 1, 2, 3)
    cache.touch(1)
    expect(cache, t2=(2, 3, 1))
    cache.load(2, by="u")
    cache.touch(2)
    expect(cache, t2=(3, 1, 2))


@having("arc/pending-stays-in-t1")
def test_pending_stays_in_t1(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    cache.offer(1)
    cache.store(2)
    cache.touch(1)
    expect(cache, t1=(2, 1))
    cache.succeed(1)
    expect(cache, t1=(2, 1))
    cache.touch(1)
    expect(cache, t1=(2,), t2=(1,))


@having("arc/batch-tail-first")
def test_batch_tail_first(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 5)
    cache.offer(4, 5)
    cache.store(1, 2, 3)
    cache.touch(1, 4, 2, 5)
    expect(cache, t1=(3, 5, 4), t2=(2, 1))
    assert cache.evict(3) == (3, 2, 1)


@EVERY
def test_transfers_and_lookups_move_nothing(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    frequent(cache, 1)
    cache.store(2, 3)
    before = cache.state
    cache.load(1, 2)
    cache.lookup(3)
    cache.lookup(9)
    cache.unload(2)
    cache.unload(1)
    assert cache.state == before


# --- The target ----------------------------------------------------------------------------------


@having("arc/target-starts-at-zero")
def test_target_starts_at_zero(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    expect(cache)
    cache.store(1, 2, 3, 4)
    cache.touch(4)
    expect(cache, t1=(1, 2, 3), t2=(4,))
    assert cache.evict(3) == (1, 2, 3)


@having("arc/touch-adapts")
def test_touch_adapts(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    cache.store(1, 2)
    cache.evict(2)
    cache.touch(1, 9)
    expect(cache, 1.0, b1=(2, 1))
    cache.touch(2, 1)  # two hits, the tail first
    expect(cache, 3.0, b1=(1, 2))


@having("arc/miss-adapts")
def test_miss_adapts(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, 2, by="r")
    assert cache.store(3, 4, by="r") == (1, 2)
    # The hit renews 1 among the ghosts, so that 2 is trimmed when 3 comes; then 1 is inserted.
    assert cache.offer(1, by="u") == (3,)
    expect(cache, 1.0, t1=(4, 1), b1=(3,))


@having("arc/miss-adapts")
def test_a_refused_offer_has_adapted(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, 2, by="r")
    cache.store(3, 4, by="r")
    cache.load(3, 4, by="u")
    for _ in range(3):
        assert cache.offer(1, by="u") is None
        expect(cache, 1.0, t1=(3, 4), b1=(2, 1))  # once a request
    assert cache.offer(2, 1, by="v") is None
    expect(cache, 2.0, t1=(3, 4), b1=(1, 2))  # the tail first, and not above the capacity


@having("arc/miss-adapts")
def test_a_failed_store_has_taken_its_ghost(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1)
    cache.evict(1)
    cache.offer(1, by="u")
    cache.fail(1)
    expect(cache, 1.0)


@pytest.mark.parametrize("edition", [e for e in EDITIONS if not e.has_request_hooks], ids=str)
def test_an_offer_adapts_nothing_before_the_hook(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1)
    cache.evict(1)
    cache.store(1)
    expect(cache, t1=(1,))


@having("arc/b1-hit-raises-target")
def test_b1_hit_raises_target(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    cache.store(1, 2, 3)
    cache.evict(2)
    for target in (1.0, 2.0, 3.0):
        cache.touch(1)
        expect(cache, target, t1=(3,), b1=(2, 1))


@having("arc/b2-hit-lowers-target")
def test_b2_hit_lowers_target(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    frequent(cache, 1)
    cache.store(2)
    assert cache.evict(2) == (2, 1)
    for _ in range(3):
        cache.touch(2)
    expect(cache, 3.0, b1=(2,), b2=(1,))
    cache.touch(1)
    expect(cache, 2.0, b1=(2,), b2=(1,))
    cache.touch(1)
    expect(cache, 1.0, b1=(2,), b2=(1,))


@having("arc/step-is-ratio-of-ghosts")
def test_step_is_ratio_of_ghosts(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    frequent(cache, 1, 2, 3)
    assert cache.evict(3) == (1, 2, 3)
    cache.store(4, 5)
    assert cache.evict(2) == (4, 5)
    cache.touch(4)  # |B2| / |B1| = 3 / 2, and not 1
    expect(cache, 1.5, b1=(5, 4), b2=(1, 2, 3))
    cache.touch(4)
    expect(cache, 3.0, b1=(5, 4), b2=(1, 2, 3))
    cache.touch(1)  # |B1| / |B2| = 2 / 3, raised to 1
    expect(cache, 2.0, b1=(5, 4), b2=(2, 3, 1))


@having("arc/step-is-ratio-of-ghosts")
def test_step_is_not_rounded(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 8)
    cache.store(1, 2, 3, 4)
    assert cache.evict(4) == (1, 2, 3, 4)
    frequent(cache, 5, 6, 7)
    assert cache.evict(3) == (5, 6, 7)
    for _ in range(5):
        cache.touch(1)
    cache.touch(5)
    expect(cache, 5.0 - 4 / 3, b1=(2, 3, 4, 1), b2=(6, 7, 5))


@having("arc/step-is-ratio-of-ghosts", V031)
def test_sizes_are_taken_before_the_insert(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    frequent(cache, 1, 2, 3)
    cache.evict(3)
    cache.store(4, 5)
    cache.evict(2)
    cache.offer(5, by="u")  # 3 / 2, though B1 has only one key left afterwards
    expect(cache, 1.5, t1=(5,), b1=(4,), b2=(1, 2, 3))


@having("arc/target-bounded")
def test_target_bounded(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    frequent(cache, 1)
    cache.store(2)
    assert cache.evict(2) == (2, 1)
    cache.touch(1)
    expect(cache, 0.0, b1=(2,), b2=(1,))
    for target in (1.0, 2.0, 2.0, 2.0):
        cache.touch(2)
        expect(cache, target, b1=(2,), b2=(1,))
    for target in (1.0, 0.0, 0.0):
        cache.touch(1)
        expect(cache, target, b1=(2,), b2=(1,))


@having("arc/ghost-hit-renews")
def test_ghost_hit_renews(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, 2)
    cache.evict(2)
    cache.touch(1)
    expect(cache, 1.0, b1=(2, 1))
    cache.store(3, by="u")
    cache.evict(1)  # |B1| was at the capacity: the oldest ghost leaves
    expect(cache, 1.0, b1=(1, 3))
    cache.touch(2)
    expect(cache, 1.0, b1=(1, 3))


@having("arc/ghost-hit-renews")
def test_ghost_hit_renews_b2(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    frequent(cache, 1, 2)
    cache.evict(2)
    cache.touch(1)
    expect(cache, b2=(2, 1))


# --- Eviction ------------------------------------------------------------------------------------


def aimed(cache: Host, target: int, t1: tuple[int, ...], t2: tuple[int, ...]) -> None:
    """Bring the target to a whole number through a ghost, then fill both lists."""
    cache.store(90, by="g")
    cache.evict(1)
    for _ in range(target):
        cache.touch(90, by="g")
    frequent(cache, *t2)
    if t1:
        cache.store(*t1, by="g")
    expect(cache, float(target), t1=t1, t2=t2, b1=(90,))


@having("arc/t1-gives-at-target")
@pytest.mark.parametrize("target", [0, 1, 2])
def test_t1_gives_at_target(host: type[Host], edition: Edition, target: int) -> None:
    cache = host(edition, "arc", 5)
    aimed(cache, target, t1=(1, 2), t2=(3, 4, 5))
    assert cache.evict(1) == (1,)
    expect(cache, float(target), t1=(2,), t2=(3, 4, 5), b1=(90, 1))


@having("arc/t2-gives-below-target")
@pytest.mark.parametrize("target", [3, 4, 5])
def test_t2_gives_below_target(host: type[Host], edition: Edition, target: int) -> None:
    cache = host(edition, "arc", 5)
    aimed(cache, target, t1=(1, 2), t2=(3, 4, 5))
    assert cache.evict(1) == (3,)
    expect(cache, float(target), t1=(1, 2), t2=(4, 5), b1=(90,), b2=(3,))


@having("arc/target-rounded-in-comparison")
def test_target_rounded_in_comparison(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    frequent(cache, 1, 2, 3)
    cache.evict(3)
    cache.store(4, 5)
    cache.evict(2)
    cache.touch(4)  # the target is 3 / 2
    frequent(cache, 6)
    cache.store(7, by="u")
    assert cache.evict(1) == (7,)  # |T1| = 1 >= 1
    expect(cache, 1.5, t2=(6,), b1=(5, 4, 7), b2=(1, 2, 3))
    # The fraction was kept: with B1 and B2 of equal size the next hit adds 1 to it.
    cache.touch(4)
    expect(cache, 2.5, t2=(6,), b1=(5, 7, 4), b2=(1, 2, 3))


@having("arc/size-counts-busy-chunks")
@pytest.mark.parametrize("why", ["pinned", "pending", "protected"])
def test_size_counts_busy_chunks(host: type[Host], edition: Edition, why: str) -> None:
    cache = host(edition, "arc", 5)
    aimed(cache, 2, t1=(), t2=(3, 4))
    protected: tuple[int, ...] = ()
    if why == "pending":
        cache.offer(1, by="g")
        cache.store(2, by="g")
    else:
        cache.store(1, 2, by="g")
    if why == "pinned":
        cache.load(1, by="g")
    if why == "protected":
        protected = (1,)
    # |T1| is 2, though only one of the two can leave.
    assert cache.evict(1, *protected) == (2,)
    expect(cache, 2.0, t1=(1,), t2=(3, 4), b1=(90, 2))


@having("arc/each-victim-anew")
def test_each_victim_anew(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    aimed(cache, 2, t1=(1, 2, 3), t2=(4, 5, 6))
    # |T1| = 3, then 2, then 1, which is below the target.
    assert cache.evict(4) == (1, 2, 4, 5)
    expect(cache, 2.0, t1=(3,), t2=(6,), b1=(90, 1, 2), b2=(4, 5))


@having("arc/oldest-of-its-list-first")
def test_oldest_of_its_list_first(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    frequent(cache, 4, 5, 6)
    cache.store(1, 2, 3, by="u")
    cache.touch(4)
    cache.load(1, by="u")
    assert cache.evict(3, 5) == (2, 3, 6)
    expect(cache, t1=(1,), t2=(5, 4), b1=(2, 3), b2=(6,))
    cache.unload(1)
    assert cache.evict(3) == (1, 5, 4)


@having("arc/falls-back-to-t2")
@pytest.mark.parametrize("why", ["empty", "pinned", "pending", "protected"])
def test_falls_back_to_t2(host: type[Host], edition: Edition, why: str) -> None:
    cache = host(edition, "arc", 4)
    frequent(cache, 3, 4)
    t1: tuple[int, ...] = (1,)
    if why == "pinned":
        cache.store(1)
        cache.load(1)
    elif why == "pending":
        cache.offer(1)
    elif why == "protected":
        cache.store(1)
    else:
        t1 = ()
    assert cache.evict(1, *(t1 if why == "protected" else ())) == (3,)
    expect(cache, t1=t1, t2=(4,), b2=(3,))


def below_target(cache: Host, why: str) -> tuple[int, ...]:
    """Bring T1 below its target, with T2 unable to give; return what is protected."""
    aimed(cache, 3, t1=(1, 2), t2=() if why == "empty" else (4,))
    if why == "pinned":
        cache.load(4, by="g")
    return (4,) if why == "protected" else ()


@having("arc/falls-back-to-t1")
@pytest.mark.parametrize("why", ["empty", "pinned", "protected"])
def test_falls_back_to_t1(host: type[Host], edition: Edition, why: str) -> None:
    cache = host(edition, "arc", 4)
    protected = below_target(cache, why)
    assert cache.evict(2, *protected) == (1, 2)
    t2: tuple[int, ...] = () if why == "empty" else (4,)
    expect(cache, 3.0, t2=t2, b1=(90, 1, 2))


@having("arc/falls-back-to-t1")
def test_falls_back_to_t1_part_way(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    aimed(cache, 4, t1=(1, 2, 3), t2=(4, 5))
    assert cache.evict(4) == (4, 5, 1, 2)
    expect(cache, 4.0, t1=(3,), b1=(90, 1, 2), b2=(4, 5))


def test_the_core_falls_back_unless_it_is_told_not_to() -> None:
    state = ArcState(4, 3.0, ("a", "b"))
    idle = dict.fromkeys("ab", 0).__getitem__
    assert evict(state, 1, (), idle) == (ArcState(4, 3.0, ("b",), (), ("a",)), ("a",))
    assert evict(state, 1, (), idle, falls_back_to_t1=False) == (state, None)


@having("arc/no-fallback-to-t1")
@pytest.mark.parametrize("why", ["empty", "pinned", "protected"])
def test_no_fallback_to_t1(host: type[Host], edition: Edition, why: str) -> None:
    cache = host(edition, "arc", 4)
    protected = below_target(cache, why)
    before = cache.state
    assert cache.evict(1, *protected) is None
    assert cache.state == before
    assert cache.offer(5, 6, 7, *protected, by="g") is None  # a store is lost


@having("arc/no-fallback-to-t1")
def test_no_fallback_part_way_is_a_refusal(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 6)
    aimed(cache, 4, t1=(1, 2, 3), t2=(4, 5))
    before = cache.state
    assert cache.evict(3) is None
    assert cache.state == before
    assert cache.evict(2) == (4, 5)


# --- Requests, from v0.31 ------------------------------------------------------------------------


@having("arc/store-is-not-reuse")
def test_store_is_not_reuse(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    cache.store(1, by="r")
    cache.store(2, by="u")
    cache.store(3, by="r")
    cache.offer(1, by="r")  # offering or reading what it stored itself is no reuse either
    cache.load(3, by="r")
    cache.finish("r")
    expect(cache, t1=(2, 3, 1))
    cache.unload(3)
    assert cache.evict(3) == (2, 3, 1)


@having("arc/store-is-not-reuse")
def test_store_is_not_reuse_in_t2(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    cache.store(1, 2, by="r")
    cache.touch(1, by="u")
    frequent(cache, 3)
    expect(cache, t1=(2,), t2=(1, 3))
    cache.finish("r")
    expect(cache, t1=(2,), t2=(3, 1))


@having("arc/reuse-promotes")
def test_reuse_promotes(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    cache.store(1, 2, 3, by="u")
    cache.load(1, by="r")
    cache.offer(2, 4, by="r")
    expect(cache, t1=(1, 2, 3, 4))
    cache.finish("r")
    expect(cache, t1=(3, 4), t2=(2, 1))


@having("arc/use-renews-t2", V031)
def test_reuse_renews_t2(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    frequent(cache, 1, 2)
    cache.load(1, by="r")
    cache.finish("r")
    expect(cache, t2=(2, 1))


@having("arc/reuse-promotes")
def test_reuse_promotes_whatever_holds_the_key(host: type[Host], edition: Edition) -> None:
    """Known bug B13: by the time the request ends, another one is storing the key anew."""
    cache = host(edition, "arc", 2)
    cache.store(1, 2, by="u")
    cache.load(1, by="r")
    cache.unload(1)
    cache.store(3, 4, by="u")
    assert cache.offer(1, by="v") == (3,)
    expect(cache, 1.0, t1=(4, 1), b1=(3,))
    cache.finish("r")
    expect(cache, 1.0, t1=(4,), t2=(1,), b1=(3,))


@having("arc/merely-seen-stays")
def test_merely_seen_stays(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, 2, by="u")
    cache.load(1, 2, by="u")
    assert cache.offer(3, by="r") is None
    cache.unload(1, 2)
    cache.store(3, 4, by="v")
    expect(cache, t1=(3, 4), b1=(1, 2))
    cache.finish("r")
    expect(cache, t1=(3, 4), b1=(1, 2))


@having("arc/merely-seen-stays")
def test_seen_while_pending_is_not_seen(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 3)
    cache.offer(1, by="u")
    cache.offer(1, 2, by="r")
    cache.succeed(1, 2)
    cache.finish("r")
    expect(cache, t1=(1, 2))


@having("arc/merely-seen-stays")
def test_the_end_of_a_request_adapts_nothing(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 2)
    cache.store(1, by="r")
    cache.evict(1)
    cache.finish("r")
    expect(cache, b1=(1,))


@having("arc/finish-in-prefix-order")
def test_finish_in_prefix_order(host: type[Host], edition: Edition) -> None:
    cache = host(
        edition,
        "arc",
        4,
        groups={1: 0, 2: 0, 3: 1, 4: 1},
        positions={"p": {1: 10, 2: 20, 3: 15, 4: 25}},
    )
    cache.store(1, 2, 3, by="u")
    cache.load(3, 2, 1, by="p")
    cache.store(4, by="p")
    cache.finish("p")
    expect(cache, t1=(4,), t2=(2, 3, 1))


@having("arc/finish-in-prefix-order")
def test_finish_without_positions_goes_by_group(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4, groups={1: 0, 2: 0, 3: 1, 4: 1})
    cache.store(3, 1, 4, 2, by="r")
    cache.finish("r")
    expect(cache, t1=(4, 3, 2, 1))


# --- Clear ---------------------------------------------------------------------------------------


@having("arc/clear-forgets-all")
def test_clear_forgets_all(host: type[Host], edition: Edition) -> None:
    cache = host(edition, "arc", 4)
    aimed(cache, 2, t1=(1,), t2=(3, 4))
    cache.evict(1, 1)
    cache.load(1, by="g")
    cache.offer(2, by="g")
    cache.reset()
    expect(cache)
    cache.touch(90, 3, by="u")
    expect(cache)
    cache.store(3, 90, by="u")
    expect(cache, t1=(3, 90))


def test_every_clause_is_here() -> None:
    assert {name for name in CLAUSES if name.startswith("arc/")} == COVERED


# --- Random runs ---------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("groups", [1, 3])
def test_states_are_sound_on_the_way(
    host: type[Host], edition: Edition, capacity: int, groups: int
) -> None:
    seen: dict[str, Any] = {"targets": set(), "t2": 0, "b1": 0, "b2": 0}
    for seed in range(4):
        cache = host.of_layout(edition, "arc", capacity, groups)
        for _ in cache.at_random(seed, 120):
            check(cache)
            state = cache.state
            seen["targets"].add(state.target)
            for name in ("t2", "b1", "b2"):
                seen[name] += len(getattr(state, name))
        if edition >= V030:
            # Every idle chunk can be had, one at a time.
            for left in range(cache.books.idle, 0, -1):
                (victim,) = cache.evict(1) or (None,)
                assert victim is not None, left
                check(cache)
            assert cache.evict(1) is None
    # Else the runs would say nothing.
    assert len(seen["targets"]) > 1
    assert min(seen["t2"], seen["b1"], seen["b2"]) > 0
