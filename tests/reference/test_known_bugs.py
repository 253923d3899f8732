"""Bugs that eviction policies really had, run against the reference of every edition.

Each entry names its bug, plays the sequence that shows it, and gives the right value. Some of what
is called wrong today was the rule of its day, or a fault that releases shipped for years: there the
entry also gives the value of the editions that have it. Sequences are those a manager can cause; an
insert is a store that was offered and has succeeded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from cachelaw.reference.editions import (
    EDITIONS,
    NEWEST,
    V019,
    V022,
    V024,
    V027,
    V030,
    V031,
    V033,
    Edition,
)
from cachelaw.reference.lru import EvictableOrder, RankedOrder
from cachelaw.reference.protocol import RequestEnds, objection

if TYPE_CHECKING:
    from tests.reference.conftest import Host

Play = Callable[["Host"], Any]

LRU, ARC = "lru", "arc"
BOTH = (LRU, ARC)


@dataclass(frozen=True)
class Bug:
    """One sequence of one known bug.

    Attributes:
        name: the bug's number, and which of its sequences this is.
        policies: the policies that it could have.
        capacity: the number of chunks that fit.
        play: lets it happen and returns what there is to see.
        right: what there should be to see.
        of_its_day: first and last edition that have the bug, and what one sees there.
        since: the first edition in which the sequence can happen.
        groups, positions: where keys stand, if that plays a part.
    """

    name: str
    policies: tuple[str, ...]
    capacity: int
    play: Play
    right: Any
    of_its_day: tuple[Edition, Edition, Any] | None = None
    since: Edition = V019
    groups: dict[int, int] | None = None
    positions: dict[str, dict[int, int]] | None = None

    def expected(self, edition: Edition) -> Any:
        """Return what the reference of an edition gives."""
        if self.of_its_day and self.of_its_day[0] <= edition <= self.of_its_day[1]:
            return self.of_its_day[2]
        return self.right


def one_by_one(cache: Host, *keys: int, by: str = "r") -> None:
    """Store chunks, each by an offer of its own."""
    for key in keys:
        cache.store(key, by=by)


def full(cache: Host, *keys: int, by: str) -> Any:
    """Store chunks as a request does; before v0.31 the scheduler touches what it looks for."""
    if not cache.edition.has_request_hooks:
        cache.touch(*keys, by=by)
    return cache.store(*keys, by=by)


def end(cache: Host, by: str) -> None:
    """End a request, where policies hear of it."""
    if cache.edition.has_request_hooks:
        cache.finish(by)


def all_of(cache: Host) -> tuple[int, ...]:
    """Evict whatever is idle, in one call."""
    return cache.evict(cache.books.idle) or ()


def lists(cache: Host) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return ARC's T1 and T2."""
    return cache.state.t1, cache.state.t2


# --- A. ARC: eviction ----------------------------------------------------------------------------


def b01(cache: Host) -> Any:
    cache.store(1, 2, 3, 4)
    assert cache.evict(2) == (1, 2)
    for key in (1, 2, 1):
        cache.touch(key)
    assert (cache.state.target, lists(cache)) == (3.0, ((3, 4), ()))
    return cache.evict(1)


def b01_six_events(cache: Host) -> Any:
    cache.store(1)
    cache.offer(2)
    assert cache.evict(1) == (1,)
    cache.touch(1)
    cache.touch(1)
    cache.succeed(2)
    return cache.evict(1)


def b01_part_way(cache: Host) -> Any:
    cache.store(1, 2, 3, 4, 5, 6)
    cache.touch(6)
    assert cache.evict(2) == (1, 2)
    for key in (1, 2, 1, 2):
        cache.touch(key)
    assert (cache.state.target, lists(cache)) == (4.0, ((3, 4, 5), (6,)))
    return cache.evict(3)


def b01_manager(cache: Host) -> Any:
    cache.store(1, 2, 3, 4, by="a")
    cache.store(5, 6, by="b")
    for request, keys in (("c", (1, 2)), ("d", (3, 4)), ("e", (5, 6))):
        cache.store(*keys, by=request)
        cache.finish(request)
    assert (cache.state.target, lists(cache)) == (4.0, ((4, 3, 6, 5), ()))
    cache.load(5, by="f")
    return cache.offer(7, by="g")


def b01_full_and_idle(cache: Host) -> Any:
    """The worst form: a cache full of idle chunks refuses every store of two."""
    cache.store(*range(8), by="a")
    for fresh in range(8, 48):
        (victim,) = cache.evict(1) or (None,)
        assert victim is not None
        cache.touch(victim, by="b")
        cache.store(fresh, by="c")
    assert cache.state.target == 8.0
    assert cache.books.idle == 8
    return cache.offer(90, 91, by="d")


def b02(cache: Host) -> Any:
    """What scanned too much chose the right victims; the cost is not judged here."""
    cache.store(*range(40))
    return cache.evict(20)


def b03(cache: Host) -> Any:
    cache.store(1, 2)
    cache.offer(3)
    before = cache.state
    assert cache.offer(4, 5, 6) is None
    return cache.residents, cache.state == before, len(cache.books.free)


def b03_pinned(cache: Host) -> Any:
    cache.store(1, 2)
    cache.load(1)
    before = cache.state
    assert [cache.offer(7, 8) for _ in range(3)] == [None, None, None]
    return cache.residents, cache.state == before, len(cache.books.free)


def b04(cache: Host) -> Any:
    cache.offer(1)
    cache.store(2)
    cache.touch(1)
    return cache.policy.get(1) is not None, lists(cache)


def b05_ghosts(cache: Host) -> Any:
    for first in (1, 4, 7, 10):
        cache.store(first, first + 1, first + 2)
        assert cache.evict(3) == (first, first + 1, first + 2)
    return cache.state.b1


def b05_target(cache: Host) -> Any:
    cache.store(1, 2)
    cache.evict(2)
    targets = []
    for _ in range(3):
        cache.touch(1)
        targets.append(cache.state.target)
    return targets


# --- A. LRU: what is a use -----------------------------------------------------------------------


def b06(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3)
    cache.load(1)
    cache.unload(1)
    return cache.evict(1)


def b06_head(cache: Host) -> Any:
    cache.store(1, 2, 3, by="a")
    end(cache, "a")
    cache.load(1, 2, 3, by="b")
    cache.touch(1, 2, 3, by="b")
    for key in (1, 2, 3):
        cache.unload(key)
    end(cache, "b")
    return cache.offer(9, by="c")


def b07(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3)
    cache.load(2)
    cache.touch(2)
    cache.touch(1)
    cache.unload(2)
    return cache.evict(3)


def b08(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.store(2, by="a")
    if cache.edition.has_request_hooks:
        cache.offer(1, by="a")
    else:
        cache.touch(1, by="a")
    end(cache, "a")
    return lists(cache)


def b08_second_request(cache: Host) -> Any:
    b08(cache)
    cache.load(1, by="b")
    cache.finish("b")
    cache.unload(1)
    return lists(cache)


def b08_own_read(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.load(1, by="a")
    cache.unload(1)
    cache.finish("a")
    return lists(cache)


def b09(cache: Host) -> Any:
    cache.store(1, 2, 3, 4, by="a")
    cache.store(5, 6, 7, 8, by="b")
    cache.load(5, 6, 7, 8, by="c")
    targets = []
    for _ in range(3):
        if not cache.edition.has_request_hooks:
            cache.touch(1, by="r")
        assert cache.offer(1, by="r") is None
        targets.append(cache.state.target)
    return targets


def b09_another_request(cache: Host) -> Any:
    b09(cache)
    cache.offer(1, by="s")
    return cache.state.target


IN_STEPS = {"p": {1: 10, 2: 20, 3: 30, 4: 40}}


def b10(cache: Host) -> Any:
    cache.store(1, 2, by="p")
    cache.store(3, 4, by="p")
    return cache.offer(9, by="q")


def b10_all(cache: Host) -> Any:
    cache.store(1, 2, by="p")
    cache.store(3, 4, by="p")
    return cache.evict(4)


def b10_no_demotion(cache: Host) -> Any:
    cache.store(3, by="p")
    cache.store(1, 2, by="q")
    cache.load(1, by="p")
    cache.unload(1)
    return cache.evict(3)


def b11(cache: Host) -> Any:
    cache.store(1, 2, by="p")
    cache.store(3, 4, by="p")
    cache.finish("p")
    return set(cache.offer(8, 9, by="q") or ())


def b13(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.load(1, by="b")
    cache.unload(1)
    assert cache.store(3, 4, by="c") == (1, 2)
    cache.offer(1, by="d")
    cache.finish("b")
    return lists(cache)


def b14(cache: Host) -> Any:
    cache.store(1, 2)
    for _ in range(300):
        cache.load(1)
        cache.unload(1)
        cache.touch(1)
    return size(cache)


def b14_failed_stores(cache: Host) -> Any:
    cache.store(1)
    for _ in range(300):
        cache.offer(2)
        cache.fail(2)
    cache.store(2)
    return size(cache)


def size(cache: Host) -> int:
    """Return how many keys LRU keeps."""
    state = cache.state
    if isinstance(state, EvictableOrder):
        return len(state.resident | set(state.idle))
    return len(state.entries if isinstance(state, RankedOrder) else state)


# --- B. What the manager asks for ----------------------------------------------------------------


def b17(cache: Host) -> Any:
    cache.store(1, 2, 3, 4, by="a")
    return cache.offer(1, 5, 6, 7, by="b"), 1 in cache.residents


def b17_nothing_else(cache: Host) -> Any:
    cache.store(1, 2, 3, by="a")
    return cache.offer(1, 2, 3, 4, by="b"), cache.residents


def b21_all_idle(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    return cache.offer(3, 4, by="b")


def b21_counted(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.store(3, by="b")
    cache.load(2, by="c")
    cache.load(3, by="c")
    return cache.offer(4, by="d"), cache.books.idle


def b21_reset(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.reset()
    return [cache.offer(key, by="b") for key in (3, 4, 5)], cache.books.idle


def b22(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.load(1, by="b")
    refused = cache.offer(2, by="c")
    cache.unload(1)
    return refused, cache.offer(2, by="c")


def b29_slots(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.load(1, by="a")
    cache.reset()
    cache.offer(4, 5, 6, by="b")
    return sorted(chunk.slot for chunk in cache.books.chunks.values()), cache.books.free


def b29_pinned(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.load(1, by="a")
    cache.reset()
    return cache.policy.get(1), cache.policy.get(2)


def b29_old_request(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.reset()
    cache.store(1, by="b")
    cache.store(2, by="c")
    # That it never ends is for the manager to see to.
    assert objection(cache.setting, cache.books, RequestEnds("a")) is not None
    return cache.offer(3, by="d")


def b31(cache: Host) -> Any:
    for key, request in ((1, "a"), (2, "b"), (3, "c")):
        cache.store(key, by=request)
    assert cache.offer(1, by="r") == ()
    end(cache, "r")
    return cache.offer(4, by="d")


def b32(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.store(2, by="b")
    return cache.offer(3, by="c")


def b32_pinned(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.store(2, by="b")
    cache.load(1, by="a")
    return cache.offer(3, by="c")


def b34(cache: Host) -> Any:
    cache.store(1, 2, by="a")
    cache.load(1, 2, by="a")
    before = cache.state, cache.books.chunks, cache.books.free
    refused = [cache.offer(3, by="b") for _ in range(3)]
    # A request rank may have been given; the order is what it was.
    after = replace(cache.state, serial=before[0].serial) if numbered(cache) else cache.state
    return refused, (after, cache.books.chunks, cache.books.free) == before


def numbered(cache: Host) -> bool:
    """Whether the policy gives serial numbers to requests."""
    return hasattr(cache.state, "serial")


# --- D. ARC in other projects --------------------------------------------------------------------


def b45(cache: Host) -> Any:
    cache.store(1, 2, 3, 4, by="a")
    cache.evict(4)
    for key in (1, 2, 3):
        cache.touch(key, by="b")
    assert cache.state.target == 3.0
    cache.reset()
    cache.store(1, 2, 3, by="c")
    cache.touch(3, by="c")
    return cache.state.target, cache.evict(1)


def b45_ghosts(cache: Host) -> Any:
    full(cache, 1, 2, by="a")
    full(cache, 3, 4, by="b")
    cache.reset()
    full(cache, 1, by="c")
    return cache.state.target


def b47(cache: Host) -> Any:
    cache.offer(1, by="a")
    cache.fail(1)
    full(cache, 1, by="b")
    return cache.state.target


def b49(cache: Host) -> Any:
    victims = []
    for target in (1.0, 2.0, 2.5, 3.0):
        cache.store(3, 4, 5)
        cache.touch(5, 4, 3)
        cache.store(1, 2)
        cache.policy.state = replace(cache.state, target=target, b1=(), b2=())
        assert lists(cache) == ((1, 2), (3, 4, 5))
        victims.append(cache.evict(1))
        cache.policy.state = replace(cache.state, target=0.0)
        all_of(cache)
    return victims


def b49_by_ghosts(cache: Host) -> Any:
    """The fraction is reached by ghosts and kept: 3 / 2, and then one more."""
    cache.store(1, 2, 3)
    cache.touch(3, 2, 1)
    cache.evict(3)
    cache.store(4, 5)
    cache.evict(2)
    targets = []
    for _ in range(2):
        cache.touch(4)
        targets.append(cache.state.target)
    cache.touch(1)
    return [*targets, cache.state.target]


def b50(cache: Host) -> Any:
    full(cache, 1, 2, by="a")
    full(cache, 3, 4, by="b")
    full(cache, 1, by="c")
    return cache.state.target


def b52(cache: Host) -> Any:
    cache.store(1, 2, 3)
    cache.touch(3)
    return cache.residents, cache.state.b1


def b54(cache: Host) -> Any:
    full(cache, 1, by="a")
    full(cache, 2, by="b")
    return cache.offer(3, by="c")


def b54_shortfall(cache: Host) -> Any:
    full(cache, 1, 2, 3, by="a")
    return cache.offer(4, 5, by="b")


def b55(cache: Host) -> Any:
    cache.store(1, 2)
    return cache.evict(1), cache.policy.get(1), cache.evict(1)


def b57(cache: Host) -> Any:
    cache.store(1, 2, 3, 4)
    cache.touch(4)
    return cache.state.target, cache.evict(1)


def b58(cache: Host) -> Any:
    cache.store(1, 2)
    cache.evict(1)
    return cache.policy.get(1), cache.policy.get(9)


# --- E. LRU, orders and pins in other projects ---------------------------------------------------


def b60(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3)
    cache.touch(1)
    return cache.evict(1)


def b63(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.load(1, by="r")
    cache.unload(1)
    if cache.edition.has_request_hooks:
        cache.finish("r")
    else:
        cache.touch(1, by="r")
    cache.store(2, by="b")
    return cache.offer(3, by="c")


def b65(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3, 4)
    cache.touch(1, 2, 3)
    return all_of(cache)


def b65_two(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3, 4)
    cache.touch(2, 3)
    return all_of(cache)


def b66(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3, 4)
    cache.touch(1)
    cache.touch(2)
    return all_of(cache)


def b68(cache: Host) -> Any:
    one_by_one(cache, 1, 2, 3, 4)
    return cache.evict(1), cache.residents


def b70(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.load(1, by="b")
    cache.load(1, by="c")
    cache.unload(1)
    refused = cache.offer(2, by="d")
    cache.unload(1)
    return refused, cache.offer(2, by="d")


def b74(cache: Host) -> Any:
    cache.store(1, by="a")
    cache.store(2, by="b")
    for _ in range(3):
        cache.lookup(1)
    return cache.offer(3, by="c")


def b75(cache: Host) -> Any:
    for key in (1, 2, 3):
        cache.store(key, by="p")
    end(cache, "p")
    return cache.offer(9, 8, by="q")


BUGS = (
    Bug("B01", (ARC,), 4, b01, (3,), (V019, V027, None)),
    Bug("B01 six events", (ARC,), 2, b01_six_events, (2,), (V019, V027, None)),
    Bug("B01 part way", (ARC,), 6, b01_part_way, (6, 3, 4), (V019, V027, None)),
    Bug("B01 through a manager", (ARC,), 4, b01_manager, (4,), since=V031),
    Bug("B01 full and idle", (ARC,), 8, b01_full_and_idle, (40, 41), (V019, V027, None)),
    Bug("B02", (ARC,), 40, b02, tuple(range(20))),
    Bug("B03", BOTH, 3, b03, ({1, 2, 3}, True, 0)),
    Bug("B03 pinned", BOTH, 2, b03_pinned, ({1, 2}, True, 0)),
    Bug("B04", (ARC,), 3, b04, (True, ((2, 1), ()))),
    Bug("B05 ghosts", (ARC,), 3, b05_ghosts, (10, 11, 12)),
    Bug("B05 target", (ARC,), 2, b05_target, [1.0, 2.0, 2.0]),
    Bug("B06", (LRU,), 3, b06, (1,), (V024, V030, (2,))),
    Bug("B06 the head", (LRU,), 3, b06_head, (3,), (V024, V030, (1,))),
    Bug("B07", (LRU,), 3, b07, (3, 2, 1), (V024, V030, (3, 1, 2))),
    Bug("B08", (ARC,), 4, b08, ((2, 1), ()), (V019, V030, ((2,), (1,)))),
    Bug("B08 second request", (ARC,), 4, b08_second_request, ((2,), (1,)), since=V031),
    Bug("B08 own read", (ARC,), 4, b08_own_read, ((2, 1), ()), since=V031),
    Bug("B09", (ARC,), 4, b09, [1.0, 1.0, 1.0], (V019, V030, [1.0, 2.0, 3.0])),
    Bug("B09 another request", (ARC,), 4, b09_another_request, 2.0, since=V031),
    Bug("B10", (LRU,), 4, b10, (4,), (V019, V031, (1,)), positions=IN_STEPS),
    Bug(
        "B10 all", (LRU,), 4, b10_all, (4, 3, 2, 1), (V019, V031, (1, 2, 3, 4)), positions=IN_STEPS
    ),
    Bug(
        "B10 no demotion",
        (LRU,),
        3,
        b10_no_demotion,
        (3, 2, 1),
        since=V033,
        positions={"p": {1: 10, 2: 20, 3: 30}, "q": {1: 10, 2: 20}},
    ),
    Bug(
        "B11",
        (LRU,),
        4,
        b11,
        {2, 4},
        since=V031,
        groups={1: 0, 2: 0, 3: 1, 4: 1},
        positions={"p": {1: 10, 2: 20, 3: 10, 4: 20}},
    ),
    Bug("B13", (ARC,), 2, b13, ((4, 1), ()), (V031, NEWEST, ((4,), (1,))), since=V031),
    Bug("B14", (LRU,), 2, b14, 2),
    Bug("B14 failed stores", (LRU,), 2, b14_failed_stores, 2),
    Bug("B17", BOTH, 4, b17, ((2, 3, 4), True)),
    Bug("B17 nothing else", BOTH, 3, b17_nothing_else, (None, {1, 2, 3})),
    Bug("B21 all idle", BOTH, 2, b21_all_idle, (1, 2)),
    Bug("B21 counted", BOTH, 2, b21_counted, (None, 0)),
    Bug("B21 reset", BOTH, 2, b21_reset, ([(), (), None], 0), since=V022),
    Bug("B22", BOTH, 1, b22, (None, (1,))),
    Bug("B29 slots", BOTH, 3, b29_slots, ([0, 1, 2], ()), since=V022),
    Bug("B29 pinned", BOTH, 3, b29_pinned, (None, None), since=V022),
    Bug("B29 old request", (LRU,), 2, b29_old_request, (1,), since=V031),
    Bug("B31", (LRU,), 3, b31, (2,), (V019, V030, (1,))),
    Bug("B32", BOTH, 2, b32, (1,)),
    Bug("B32 pinned", BOTH, 2, b32_pinned, (2,)),
    Bug("B34", BOTH, 2, b34, ([None] * 3, True)),
    Bug("B45", (ARC,), 4, b45, (0.0, (1,)), since=V022),
    Bug("B45 ghosts", (ARC,), 2, b45_ghosts, 0.0, since=V022),
    Bug("B47", (ARC,), 3, b47, 0.0),
    Bug("B49", (ARC,), 6, b49, [(1,), (1,), (1,), (3,)]),
    Bug("B49 by ghosts", (ARC,), 6, b49_by_ghosts, [1.5, 3.0, 2.0]),
    Bug("B50", (ARC,), 2, b50, 1.0),
    Bug("B52", (ARC,), 4, b52, ({1, 2, 3}, ())),
    Bug("B54", BOTH, 3, b54, ()),
    Bug("B54 shortfall", BOTH, 4, b54_shortfall, (1,)),
    Bug("B55", BOTH, 2, b55, ((1,), None, (2,))),
    Bug("B57", (ARC,), 4, b57, (0.0, (1,))),
    Bug("B58", BOTH, 2, b58, (None, None)),
    Bug("B60", (LRU,), 3, b60, (2,)),
    Bug("B63", (LRU,), 2, b63, (1,)),
    Bug("B65", BOTH, 4, b65, (4, 3, 2, 1)),
    Bug("B65 two", BOTH, 4, b65_two, (1, 4, 3, 2)),
    Bug("B66", (LRU,), 4, b66, (3, 4, 1, 2)),
    Bug("B68", BOTH, 4, b68, ((1,), {2, 3, 4})),
    Bug("B70", BOTH, 1, b70, (None, (1,))),
    Bug("B74", BOTH, 2, b74, (1,)),
    Bug("B75", (LRU,), 3, b75, (3, 2), (V019, V030, (1, 2)), positions=IN_STEPS),
)

ELSEWHERE = {
    "B15": "an insert over a resident key is unspecified: no manager does it",
    "B16": "removing an absent key is unspecified: no manager does it",
    "B62": "about policies that make a chunk more urgent; LRU's part is B10 no demotion",
}
"""The entries about policies that have no sequence here, and why."""


@pytest.mark.parametrize(
    ("bug", "policy", "edition"),
    [
        pytest.param(bug, policy, edition, id=f"{bug.name}-{policy}-{edition}")
        for bug in BUGS
        for policy in bug.policies
        for edition in EDITIONS
        if edition >= bug.since
    ],
)
def test_the_reference_gives_the_value_of_its_edition(
    host: type[Host], bug: Bug, policy: str, edition: Edition
) -> None:
    cache = host(edition, policy, bug.capacity, groups=bug.groups, positions=bug.positions)
    assert bug.play(cache) == bug.expected(edition)


def test_what_was_wrong_differs_from_what_is_right() -> None:
    for bug in BUGS:
        assert bug.of_its_day is None or bug.of_its_day[2] != bug.right, bug.name


def test_only_b13_is_still_the_rule() -> None:
    still = [bug.name for bug in BUGS if bug.expected(NEWEST) != bug.right]
    assert still == ["B13"]


def test_every_entry_about_policies_is_accounted_for() -> None:
    """The sections on vLLM's policies (A), on ARC (D) and on orders and pins (E)."""
    about = {
        *("B01", "B02", "B03", "B04", "B05", "B06", "B07", "B08", "B09", "B10", "B11"),
        *("B13", "B14", "B15", "B16"),
        *("B45", "B47", "B49", "B50", "B52", "B54", "B55", "B57", "B58"),
        *("B60", "B62", "B63", "B65", "B66", "B68", "B70", "B74", "B75"),
    }
    played = {bug.name.split()[0] for bug in BUGS}
    assert not played & ELSEWHERE.keys()
    assert about - played == ELSEWHERE.keys()
    assert len({bug.name for bug in BUGS}) == len(BUGS)
