"""TextbookARC against the paper: its cases by hand, its conditions, and near misses of it."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

import pytest

from cachelaw.reference.textbook_arc import (
    TextbookARC,
    TextbookState,
    check,
    empty,
    replace,
    request,
)

# --- The four cases by hand ----------------------------------------------------------------------


def lists(
    c: int, p: float, t1: str = "", t2: str = "", b1: str = "", b2: str = ""
) -> TextbookState[str]:
    """Return a state whose keys are letters, least recently used first."""
    return TextbookState(capacity=c, p=p, t1=tuple(t1), t2=tuple(t2), b1=tuple(b1), b2=tuple(b2))


CASES = {
    "I: a key of T1 moves to T2": (
        lists(4, 1, t1="ab", t2="cd", b2="e"),
        "a",
        lists(4, 1, t1="b", t2="cda", b2="e"),
    ),
    "I: a key of T2 moves to the end of T2": (
        lists(4, 1, t1="a", t2="bcd"),
        "b",
        lists(4, 1, t1="a", t2="cdb"),
    ),
    "II: p grows by 1, and at |T1| = p the victim is in T2": (
        lists(4, 1, t1="ab", t2="cd", b1="ef", b2="g"),
        "e",
        lists(4, 2, t1="ab", t2="de", b1="f", b2="gc"),
    ),
    "II: p grows by |B2|/|B1|, and at |T1| > p the victim is in T1": (
        lists(5, 0, t1="abc", t2="de", b1="fg", b2="hij"),
        "g",
        lists(5, 1.5, t1="bc", t2="deg", b1="fa", b2="hij"),
    ),
    "II: p stops at c": (
        lists(4, 3.5, t1="abc", t2="d", b1="e"),
        "e",
        lists(4, 4, t1="abc", t2="e", b2="d"),
    ),
    "III: p shrinks by 1, and the tie |T1| = p costs T1": (
        lists(4, 3, t1="ab", t2="cd", b2="ef"),
        "e",
        lists(4, 2, t1="b", t2="cde", b1="a", b2="f"),
    ),
    "III: at |T1| < p the victim is in T2": (
        lists(4, 4, t1="ab", t2="cd", b2="ef"),
        "f",
        lists(4, 3, t1="ab", t2="df", b2="ec"),
    ),
    "III: p shrinks by |B1|/|B2|": (
        lists(5, 5, t1="ab", t2="cde", b1="fgh", b2="ij"),
        "i",
        lists(5, 3.5, t1="ab", t2="dei", b1="fgh", b2="jc"),
    ),
    "III: p stops at 0, and an empty T1 is no victim in a tie": (
        lists(4, 0.5, t2="abcd", b2="e"),
        "e",
        lists(4, 0, t2="bcde", b2="a"),
    ),
    "IV A: L1 is full with ghosts, the oldest is forgotten": (
        lists(4, 1, t1="ab", t2="cd", b1="ef"),
        "x",
        lists(4, 1, t1="bx", t2="cd", b1="fa"),
    ),
    "IV A: the tie rule is for keys of B2 only": (
        lists(4, 2, t1="ab", t2="cd", b1="ef"),
        "x",
        lists(4, 2, t1="abx", t2="d", b1="f", b2="c"),
    ),
    "IV A: L1 is full without ghosts, its oldest key leaves none": (
        lists(4, 4, t1="abcd", b2="e"),
        "x",
        lists(4, 4, t1="bcdx", b2="e"),
    ),
    "IV B: the cache has room": (
        lists(4, 0, t1="a", t2="b"),
        "x",
        lists(4, 0, t1="ax", t2="b"),
    ),
    "IV B: the cache is full, the directory is not": (
        lists(4, 1, t1="a", t2="bcd", b2="e"),
        "x",
        lists(4, 1, t1="ax", t2="cd", b2="eb"),
    ),
    "IV B: the directory is full, the oldest ghost of B2 is forgotten": (
        lists(4, 0, t1="a", t2="bcd", b1="ef", b2="gh"),
        "x",
        lists(4, 0, t1="x", t2="bcd", b1="efa", b2="h"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case_by_hand(name: str) -> None:
    before, key, after = CASES[name]
    check(before)
    check(after)
    assert request(before, key) == (after, name.startswith("I:"))


def test_a_state_is_a_value() -> None:
    first: TextbookState[int] = empty(2)
    second, _ = request(first, 7)
    assert first == empty(2)
    assert second != first
    assert len({first, second, empty(2)}) == 2


def test_replace_without_a_victim_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no victim: T2 is empty, \|T1\| = 1, p = 1"):
        replace(lists(2, 1, t1="a"), in_b2=False)
    # With the tie rule the same state has one.
    assert replace(lists(2, 1, t1="a"), in_b2=True) == lists(2, 1, b1="a")


@pytest.mark.parametrize("capacity", [0, -1, True, False, 2.0, "3", None])
@pytest.mark.parametrize("make", [empty, TextbookARC])
def test_an_invalid_capacity_is_named(make: Callable[[object], object], capacity: object) -> None:
    with pytest.raises(ValueError, match="capacity must be an int of at least 1") as caught:
        make(capacity)
    assert str(caught.value).endswith(f"not {capacity!r}")


# --- check notices every broken condition --------------------------------------------------------

BROKEN = {
    "capacity:": lists(0, 0),
    "target:": lists(2, 2.5, t1="ab"),
    "target: 0": lists(2, -0.5, t1="ab"),
    "A.1: no key is twice": lists(3, 0, t1="ab", t2="a"),
    "A.1:": lists(3, 0, t1="aa"),
    "A.2:": lists(3, 0, t1="a", b2="b"),
    "A.3: the cache": lists(3, 0, t1="ab", b2="c"),
    "A.3:": lists(2, 0, t1="ab", t2="c"),
    r"directory: \|T1\| \+ \|B1\|": lists(2, 0, t1="ab", b1="c"),
    r"directory: \|T1\| \+ \|T2\|": lists(2, 0, t2="ab", b2="cde"),
}


@pytest.mark.parametrize("condition", BROKEN)
def test_check_names_the_broken_condition(condition: str) -> None:
    with pytest.raises(AssertionError, match=condition):
        check(BROKEN[condition])


# --- Everything that holds after every step ------------------------------------------------------


class Directory:
    """DBL(2c) of section III: two lists, L1 for keys seen once, L2 for keys seen again."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.l1: list[int] = []
        self.l2: list[int] = []

    def request(self, key: int) -> None:
        for keys in (self.l1, self.l2):
            if key in keys:
                keys.remove(key)
                self.l2.append(key)
                return
        if len(self.l1) == self.capacity:
            del self.l1[0]
        elif len(self.l1) + len(self.l2) == 2 * self.capacity:
            del self.l2[0]
        self.l1.append(key)


def replay(capacity: int, trace: Sequence[int]) -> TextbookState[int]:
    """Replay a trace on the core, the class and DBL(2c), compare after every step."""
    state: TextbookState[int] = empty(capacity)
    cache: TextbookARC[int] = TextbookARC(capacity)
    directory = Directory(capacity)
    for key in trace:
        cached = {*state.t1, *state.t2}
        state, hit = request(state, key)
        check(state)
        assert hit == (key in cached)
        assert cache.request(key) == hit
        assert cache.state == state
        # Conditions A.1 and A.4: in order, L1 is B1 then T1, and L2 is B2 then T2.
        directory.request(key)
        assert [*state.b1, *state.t1] == directory.l1
        assert [*state.b2, *state.t2] == directory.l2
        # Condition A.5: demand paging brings in the requested key, and evicts one at most.
        assert {*state.t1, *state.t2} <= cached | {key}
        assert len(cached - {*state.t1, *state.t2}) <= 1
    return state


@pytest.mark.parametrize("keys_per_slot", [2, 3])
@pytest.mark.parametrize("capacity", range(1, 9))
def test_random_traces(capacity: int, keys_per_slot: int) -> None:
    # With fewer than 2c keys the directory is never full, and much of ARC never runs.
    universe = keys_per_slot * capacity
    chance = random.Random(f"{capacity} {keys_per_slot}")
    for skew in (0.0, 0.5, 1.0):
        weights = [1 / (rank + 1) ** skew for rank in range(universe)]
        replay(capacity, chance.choices(range(universe), weights, k=1_500))


@pytest.mark.parametrize(("capacity", "keys", "length"), [(1, 3, 7), (2, 4, 7), (3, 6, 5)])
def test_every_request_sequence_of_a_small_scope(capacity: int, keys: int, length: int) -> None:
    for trace in itertools.product(range(keys), repeat=length):
        replay(capacity, trace)


# --- Every reachable state -----------------------------------------------------------------------
#
# ARC only compares keys for equality, and no key is twice in the four lists. So up to the names of
# the keys a state is four lengths and p, and one key that is in no list stands for all such keys.
# The number of keys is therefore not bounded here.


def next_keys(*states: TextbookState[int]) -> Iterator[int]:
    """Yield one key for each different request: each listed key, and one in no list."""
    listed = {key for s in states for key in (*s.t1, *s.t2, *s.b1, *s.b2)}
    yield from sorted(listed)
    yield next(key for key in itertools.count() if key not in listed)


def reachable(capacity: int) -> dict[tuple[int, int, int, int, float], tuple[int, ...]]:
    """Return every reachable (|T1|, |T2|, |B1|, |B2|, p) with a shortest trace to it."""
    start: TextbookState[int] = empty(capacity)
    found: dict[tuple[int, int, int, int, float], tuple[int, ...]] = {(0, 0, 0, 0, 0.0): ()}
    frontier: deque[tuple[TextbookState[int], tuple[int, ...]]] = deque([(start, ())])
    while frontier:
        state, trace = frontier.popleft()
        for key in next_keys(state):
            after, _ = request(state, key)
            shape = (len(after.t1), len(after.t2), len(after.b1), len(after.b2), after.p)
            if shape not in found:
                found[shape] = (*trace, key)
                frontier.append((after, (*trace, key)))
    return found


@pytest.mark.parametrize(
    ("capacity", "states"), [(1, 8), (2, 25), (3, 62), (4, 138), (5, 342), (6, 613)]
)
def test_every_reachable_state(capacity: int, states: int) -> None:
    found = reachable(capacity)
    assert len(found) == states
    for trace in found.values():
        for key in next_keys(replay(capacity, trace)):
            replay(capacity, (*trace, key))


@pytest.mark.parametrize("capacity", range(1, 7))
def test_the_target_is_fractional_only_from_capacity_5_on(capacity: int) -> None:
    # |B1| + |B2| <= c, so the first ratio above 1 that is not an integer is 3/2, at c = 5.
    fractional = any(p % 1 for *_, p in reachable(capacity))
    assert fractional == (capacity >= 5)


# --- Near misses ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """The three places where people get ARC wrong; the defaults are the paper's rules.

    `step` gets the lengths of the other ghost list and of the one that was hit, `from_t1` gets
    |T1|, p and whether the key is in B2, `clamp` gets p and c.
    """

    step: Callable[[int, int], float] = lambda other, own: max(1.0, other / own)
    from_t1: Callable[[int, float, bool], bool] = lambda size, p, in_b2: (
        size > p or (in_b2 and size == p)
    )
    clamp: Callable[[float, int], float] = lambda p, c: min(max(p, 0.0), float(c))


def ruled(state: TextbookState[int], key: int, rules: Rules) -> TextbookState[int]:
    """Serve one request under other rules; a third writing of Figure 4."""
    t1, t2, b1, b2 = list(state.t1), list(state.t2), list(state.b1), list(state.b2)
    c, p = state.capacity, state.p

    def evict(in_b2: bool) -> None:
        # Wrong rules may ask for a victim in an empty T2; the other list then has to help.
        if t1 and (rules.from_t1(len(t1), p, in_b2) or not t2):
            b1.append(t1.pop(0))
        else:
            b2.append(t2.pop(0))

    target = t2
    if key in t1:
        t1.remove(key)
    elif key in t2:
        t2.remove(key)
    elif key in b1:
        p = rules.clamp(p + rules.step(len(b2), len(b1)), c)
        evict(False)
        b1.remove(key)
    elif key in b2:
        p = rules.clamp(p - rules.step(len(b1), len(b2)), c)
        evict(True)
        b2.remove(key)
    else:
        target = t1
        held = len(t1) + len(t2) + len(b1) + len(b2)
        if len(t1) == c:
            del t1[0]
        elif len(t1) + len(b1) == c:
            del b1[0]
            evict(False)
        elif held >= c:
            del b2[: held // (2 * c)]
            evict(False)
    target.append(key)
    return changed(state, p=p, t1=tuple(t1), t2=tuple(t2), b1=tuple(b1), b2=tuple(b2))


def same_cache(one: TextbookState[int], other: TextbookState[int]) -> bool:
    """Return whether two states cache the same keys, in whichever lists."""
    return {*one.t1, *one.t2} == {*other.t1, *other.t2}


def shortest_difference(capacity: int, rules: Rules) -> tuple[int, ...] | None:
    """Return a shortest trace after which other keys are cached than in the paper's ARC.

    Breadth first over pairs of states, up to the names of keys. None means that no trace, of any
    length over any keys, tells the two apart.
    """
    start: TextbookState[int] = empty(capacity)
    seen: set[object] = set()
    frontier: deque[tuple[TextbookState[int], TextbookState[int], tuple[int, ...]]]
    frontier = deque([(start, start, ())])
    while frontier:
        right, wrong, trace = frontier.popleft()
        for key in next_keys(right, wrong):
            pair = request(right, key)[0], ruled(wrong, key, rules)
            if not same_cache(*pair):
                return (*trace, key)
            names: dict[int, int] = {}
            shape = tuple(
                (s.p, *(tuple(names.setdefault(k, len(names)) for k in keys) for keys in four))
                for s in pair
                for four in [(s.t1, s.t2, s.b1, s.b2)]
            )
            if shape not in seen:
                seen.add(shape)
                frontier.append((*pair, (*trace, key)))
    return None


# Name: rules, the capacity, and a shortest trace that tells the rules from the paper's.
NEAR_MISSES: dict[str, tuple[Rules, int, str]] = {
    "step is an integer": (
        Rules(step=lambda other, own: max(1, other // own)),
        5,
        "0 0 1 1 2 2 3 3 4 5 4 6 7 8 9 5 6 0",
    ),
    "step is always 1": (
        Rules(step=lambda other, own: 1),
        3,
        "0 0 1 1 2 2 3 4 5 3 4 0",
    ),
    "p is cut to an integer": (
        Rules(clamp=lambda p, c: float(int(min(max(p, 0.0), c)))),
        5,
        "0 0 1 1 2 2 3 3 4 5 4 6 7 8 9 5 6 0",
    ),
    "tie rule ignored, T2 gives way": (
        Rules(from_t1=lambda size, p, in_b2: size > p),
        2,
        "0 0 1 1 2 3 0 2 3 4 0",
    ),
    "tie rule ignored, T1 gives way": (
        Rules(from_t1=lambda size, p, in_b2: size >= p),
        2,
        "0 0 1 2 1",
    ),
    "tie rule ignored, vLLM's |T1| >= int(p)": (
        Rules(from_t1=lambda size, p, in_b2: size >= int(p)),
        2,
        "0 0 1 2 1",
    ),
    "tie rule for keys not in B2": (
        Rules(from_t1=lambda size, p, in_b2: size > p or (size == p and not in_b2)),
        2,
        "0 0 1 2 1",
    ),
    "p is not clamped at c": (
        Rules(clamp=lambda p, c: max(p, 0.0)),
        3,
        "0 0 1 1 2 3 2 4 5 3 0 4 1 0",
    ),
    "p is not clamped at 0": (
        Rules(clamp=lambda p, c: min(p, float(c))),
        2,
        "0 0 1 1 2 0 3 2",
    ),
    "p is clamped at c - 1": (
        Rules(clamp=lambda p, c: min(max(p, 0.0), c - 1.0)),
        2,
        "0 0 1 1 2 3 0 2 3 0 4 1",
    ),
    "p is clamped at 1": (
        Rules(clamp=lambda p, c: min(max(p, 1.0), float(c))),
        2,
        "0 0 1 1 2 0 3 4",
    ),
    # No mistake, but nearer to the paper, whose p is real. Up to c = 8 a step above 1 is a ratio
    # with a divisor of 1, 2 or 3, so p is a multiple of 1/6 and rounding to sixths makes it exact.
    # The trace steps 4/3 up and 4/3 down: the double ends a little below 1 and misses |T1| = p.
    "p is exact": (
        Rules(clamp=lambda p, c: round(6 * min(max(p, 0.0), float(c))) / 6),
        7,
        "0 0 1 1 2 2 3 3 4 5 6 7 4 5 8 9 10 6 11 12 13 7 0 1 2 14",
    ),
}


@pytest.mark.parametrize("capacity", range(1, 7))
def test_the_rules_of_the_paper_make_no_difference(capacity: int) -> None:
    assert shortest_difference(capacity, Rules()) is None


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_is_told_apart_by_its_trace(name: str) -> None:
    rules, capacity, text = NEAR_MISSES[name]
    right: TextbookState[int] = empty(capacity)
    wrong = right
    trace = [int(word) for word in text.split()]
    for step, key in enumerate(trace, start=1):
        right, wrong = request(right, key)[0], ruled(wrong, key, rules)
        assert same_cache(right, wrong) == (step < len(trace))


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_no_shorter_trace_tells_a_near_miss_apart(name: str) -> None:
    rules, capacity, text = NEAR_MISSES[name]
    found = shortest_difference(capacity, rules)
    assert found is not None
    assert len(found) == len(text.split())


@pytest.mark.parametrize(
    ("name", "largest"),
    [
        ("step is an integer", 4),
        ("step is always 1", 2),
        ("p is cut to an integer", 4),
        ("p is not clamped at c", 2),
        ("p is exact", 6),
    ],
)
def test_smaller_caches_cannot_tell_a_near_miss_apart(name: str, largest: int) -> None:
    # Small scope alone misleads: up to this capacity the near miss is the paper's ARC.
    rules, capacity, _ = NEAR_MISSES[name]
    assert largest == capacity - 1
    for smaller in range(1, capacity):
        assert shortest_difference(smaller, rules) is None
