"""Request order, clause by clause (`specs/request-order.md`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cachelaw.reference import ReqContext, order_request_keys
from cachelaw.reference.order import by_position
from cachelaw.specs.registry import CLAUSES

Test = TypeVar("Test")
Groups = list[list[int]]
Positions = dict[int, int]

KEYS = st.integers(0, 7)
GROUPS = st.lists(st.lists(KEYS, max_size=5), max_size=4)
# Few positions, so that ties are frequent; some keys have none.
POSITIONS = st.dictionaries(KEYS, st.integers(0, 4))
ALL_POSITIONS = st.fixed_dictionaries({key: st.integers(0, 4) for key in range(8)})

COVERED: set[str] = set()
repeatable = settings(derandomize=True, deadline=None, max_examples=300)


def about(clause: str) -> Callable[[Test], Test]:
    """Say which clause a test is about."""
    COVERED.add(clause)
    return lambda test: test


def ordered(groups: Sequence[Sequence[Any]], positions: Mapping[Any, int]) -> list[Any]:
    """Return the request order; both functions must give it, and leave the groups alone."""
    context = ReqContext("r")
    for key, position in positions.items():
        context.set_offload_key_position(key, position)
    before = [list(group) for group in groups]
    found: list[Any] = order_request_keys(groups, context)
    assert [list(group) for group in groups] == before
    assert by_position([key for group in groups for key in group], positions.get) == found
    return found


def called(groups: Groups) -> list[int]:
    """Return the keys as they stand in the call."""
    return [key for group in groups for key in group]


def without_duplicates(groups: Groups) -> Groups:
    """Leave each key where it stands first."""
    first = {key: at for at, group in reversed([*enumerate(groups)]) for key in group}
    return [[k for k in dict.fromkeys(group) if first[k] == at] for at, group in enumerate(groups)]


@repeatable
@given(GROUPS, POSITIONS)
def test_no_key_is_lost_and_none_is_added(groups: Groups, positions: Positions) -> None:
    assert Counter(ordered(groups, positions)) == Counter(called(groups))


@about("request-order/by-end-token")
@repeatable
@given(GROUPS.map(without_duplicates), ALL_POSITIONS)
def test_known_positions_decide(groups: Groups, positions: Positions) -> None:
    found = [positions[key] for key in ordered(groups, positions)]
    assert found == sorted(found)


@about("request-order/by-end-token")
def test_groups_are_woven_together() -> None:
    positions = {"a16": 16, "a48": 48, "b32": 32}
    assert ordered([["a16", "a48"], ["b32"]], positions) == ["a16", "b32", "a48"]


@about("request-order/by-end-token")
def test_position_zero_is_a_position() -> None:
    assert ordered([[1], [2]], {1: 5, 2: 0}) == [2, 1]


@about("request-order/partly-known-keeps-call-order")
@repeatable
@given(GROUPS, POSITIONS)
@example(groups=[[1, 2, 3]], positions={1: 9, 2: 8})
@example(groups=[[1], [2]], positions={})
def test_one_unknown_position_and_none_is_used(groups: Groups, positions: Positions) -> None:
    if any(key not in positions for key in called(groups)):
        assert ordered(groups, positions) == called(groups)


@about("request-order/duplicates-keep-call-order")
@repeatable
@given(GROUPS, ALL_POSITIONS)
@example(groups=[[3, 1], [3]], positions={1: 1, 3: 2})
@example(groups=[[2, 2, 1]], positions={1: 1, 2: 2})
def test_a_key_that_stands_there_twice(groups: Groups, positions: Positions) -> None:
    keys = called(groups)
    if len(set(keys)) < len(keys):
        assert ordered(groups, positions) == keys


@about("request-order/ties-keep-call-order")
@repeatable
@given(GROUPS.map(without_duplicates), ALL_POSITIONS)
def test_equal_positions_keep_the_order_of_the_call(groups: Groups, positions: Positions) -> None:
    found, keys = ordered(groups, positions), called(groups)
    for one, other in pairwise(found):
        if positions[one] == positions[other]:
            assert keys.index(one) < keys.index(other)


@about("request-order/ties-keep-call-order")
def test_of_two_groups_that_end_together_the_lower_comes_first() -> None:
    assert ordered([[9, 7], [8, 6]], {9: 16, 7: 32, 8: 16, 6: 32}) == [9, 8, 7, 6]


@pytest.mark.parametrize("groups", [[], [[]], [[], []]])
def test_nothing_in_order_is_nothing(groups: Groups) -> None:
    assert ordered(groups, {1: 1}) == []


def test_positions_of_other_keys_play_no_part() -> None:
    assert ordered([[2, 1]], {1: 1, 2: 2, 3: 0}) == [1, 2]


def test_every_clause_is_here() -> None:
    assert {name for name in CLAUSES if name.startswith("request-order/")} == COVERED
