"""The four moves on recency lists."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cachelaw.reference.recency import eligible, forget, renew, trim

KEYS = st.sampled_from("abcdef")
ORDERS = st.lists(KEYS, unique=True).map(tuple)
repeatable = settings(derandomize=True, deadline=None)

Order = tuple[str, ...]


@repeatable
@given(ORDERS, KEYS)
def test_renew_puts_a_key_last_and_moves_no_other(order: Order, key: str) -> None:
    renewed = renew(order, key)
    assert renewed[-1] == key
    assert renewed[:-1] == tuple(other for other in order if other != key)
    assert renew(renewed, key) == renewed


@repeatable
@given(ORDERS, KEYS)
def test_forget_takes_a_key_away_and_moves_no_other(order: Order, key: str) -> None:
    left = forget(order, key)
    assert key not in left
    assert left == tuple(other for other in order if other != key)
    assert forget(left, key) == left


@repeatable
@given(ORDERS, st.integers(0, 8))
def test_trim_keeps_the_most_recent(order: Order, limit: int) -> None:
    kept = trim(order, limit)
    assert len(kept) == min(limit, len(order))
    assert order[len(order) - len(kept) :] == kept


@repeatable
@given(ORDERS, st.sets(KEYS), st.fixed_dictionaries({key: st.integers(-1, 2) for key in "abcdef"}))
def test_eligible_is_idle_and_not_protected(
    order: Order, protected: set[str], counts: dict[str, int]
) -> None:
    before = set(protected)
    found = eligible(order, protected, counts.__getitem__)
    assert found == tuple(k for k in order if counts[k] == 0 and k not in protected)
    assert protected == before


def test_the_moves_by_example() -> None:
    assert renew(("a", "b", "c"), "a") == ("b", "c", "a")
    assert renew((), "a") == ("a",)
    assert forget(("a", "b", "c"), "b") == ("a", "c")
    assert forget(("a",), "x") == ("a",)
    assert trim(("a", "b", "c"), 2) == ("b", "c")
    assert trim(("a", "b", "c"), 0) == ()
    counts = {"a": 0, "b": -1, "c": 2, "d": 0, "e": 0}
    assert eligible(("a", "b", "c", "d", "e"), {"d"}, counts.__getitem__) == ("a", "e")


def test_keys_need_only_be_hashable() -> None:
    keys = ((1, 2), frozenset({3}), None)
    assert renew(keys, (1, 2)) == (frozenset({3}), None, (1, 2))
