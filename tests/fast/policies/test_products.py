"""Every state of a fast policy at small scope, beside every state of the core.

At the smallest scopes the names of keys are told apart, at all others one stands for all.

That a search closes with as many pairs as the core has states says that a fast policy knows no more
and no less than the core does; that it made as many steps as the explorer, that none was left out.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.fast.policies.product import product

from cachelaw.conformance.explore.calls import Scope
from cachelaw.conformance.explore.plan import ALPHABETS, explore_policy, scope_of
from cachelaw.fast import v031
from cachelaw.reference.editions import edition_named

Case = tuple[str, str, str, Scope]

EDITIONS = ("v0.24", "v0.31", "v0.33")

SMALLEST: list[Case] = [
    ("lru", "v0.24", "calls", Scope(2, 3)),
    ("lru", "v0.31", "calls", Scope(2, 3)),
    ("arc", "v0.24", "calls", Scope(2, 3, batch=1, pins=1)),
    ("arc", "v0.31", "calls", Scope(1, 3, batch=1, pins=1)),
    ("arc", "v0.33", "calls", Scope(1, 2)),
    ("lru", "v0.24", "protocol", Scope(2, 3, requests=1)),
    ("lru", "v0.31", "protocol", Scope(2, 2, requests=1)),
    ("arc", "v0.24", "protocol", Scope(1, 3, requests=1)),
]
"""Searched in every run, with the names of keys told apart."""

SMALL: list[Case] = [
    ("lru", "v0.24", "calls", Scope(2, 3)),
    ("lru", "v0.31", "calls", Scope(2, 3)),
    ("lru", "v0.33", "calls", Scope(2, 2, requests=1, batch=1, pins=1)),
    ("arc", "v0.24", "calls", Scope(2, 3, batch=1, pins=1)),
    ("arc", "v0.31", "calls", Scope(2, 3, batch=1, pins=1)),
    ("arc", "v0.33", "calls", Scope(1, 3)),
    ("lru", "v0.24", "protocol", Scope(3, 4, requests=1)),
    ("lru", "v0.31", "protocol", Scope(2, 3, requests=1)),
    ("lru", "v0.33", "protocol", Scope(2, 3, requests=1, batch=1, pins=1)),
    ("arc", "v0.24", "protocol", Scope(2, 3, requests=1)),
    ("arc", "v0.31", "protocol", Scope(1, 2, requests=1)),
    ("arc", "v0.33", "protocol", Scope(1, 2, requests=1)),
]
"""Searched in every run."""

EXPLORED: list[Case] = [
    (
        profile,
        edition,
        alphabet,
        scope_of(profile, edition_named(edition), alphabet, "states", full=False),
    )
    for alphabet in ALPHABETS
    for profile in ("lru", "arc")
    for edition in EDITIONS
]
"""The scopes of `make explore`."""

FURTHER: list[Case] = [
    ("lru", "v0.31", "protocol", Scope(3, 4, requests=1)),
    ("lru", "v0.31", "protocol", Scope(2, 3, requests=2, pins=1)),
    ("lru", "v0.33", "protocol", Scope(2, 3, requests=2, pins=1)),
    ("lru", "v0.33", "protocol", Scope(3, 4, requests=1, pins=1, groups=2)),
    ("arc", "v0.24", "protocol", Scope(3, 4, requests=1)),
    ("arc", "v0.31", "protocol", Scope(1, 2, requests=2, pins=1)),
    ("arc", "v0.31", "protocol", Scope(2, 3, requests=1, pins=1)),
    ("arc", "v0.31", "protocol", Scope(2, 2, requests=2, pins=1)),
    ("lru", "v0.33", "calls", Scope(3, 4, pins=1, groups=2)),
    ("lru", "v0.31", "protocol", Scope(3, 4, requests=2, batch=1, pins=1)),
]
"""The larger scopes at which the core's own space is closed."""


def closes(profile: str, edition: str, alphabet: str, scope: Scope) -> None:
    """Demand that the product closes with the core's own numbers."""
    found = product(profile, edition, scope, alphabet)
    print(f"{profile} {edition} {alphabet} {scope}: {found}")
    assert found.pairs == found.states > 10
    core = explore_policy(profile, edition_named(edition), alphabet, scope)
    assert core.extent.startswith("closed")
    assert found[1:] == (core.states, core.unreduced, core.transitions)


@pytest.mark.parametrize(("profile", "edition", "alphabet", "scope"), SMALL)
def test_the_product_with_the_core_closes(
    profile: str, edition: str, alphabet: str, scope: Scope
) -> None:
    closes(profile, edition, alphabet, scope)


@pytest.mark.parametrize(("profile", "edition", "alphabet", "scope"), SMALLEST)
def test_the_product_closes_whatever_the_keys_are_called(
    profile: str, edition: str, alphabet: str, scope: Scope
) -> None:
    found = product(profile, edition, scope, alphabet, by_names=False)
    core = explore_policy(profile, edition_named(edition), alphabet, scope)
    assert core.extent.startswith("closed")
    assert found.pairs == found.states == core.unreduced > 10


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_fault_of_certain_names_is_noticed(alphabet: str) -> None:
    class Partial(v031.LRU):
        def evict(self, n: int, protected: set[Any]) -> Any:
            victims = super().evict(n, protected)
            if victims and [key[31] for key, _ in victims] == [2, 0]:
                victims.reverse()
            return victims

    with pytest.raises(AssertionError):
        product("lru", "v0.31", Scope(2, 3, requests=1), alphabet, Partial, by_names=False)


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_wrong_answer_is_noticed(alphabet: str) -> None:
    class Deaf(v031.LRU):
        def touch(self, keys: Any, req_context: Any) -> None:
            super().touch(list(keys)[1:], req_context)

    with pytest.raises(AssertionError):
        product("lru", "v0.31", Scope(2, 3, requests=1), alphabet, Deaf)


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_to_know_more_than_the_core_makes_more_pairs(alphabet: str) -> None:
    class Counts(v031.LRU):
        touches = 0

        def touch(self, keys: Any, req_context: Any) -> None:
            self.touches = (self.touches + 1) % 2
            super().touch(keys, req_context)

        def cachelaw_state(self, *requests: Any) -> Any:
            return super().cachelaw_state(*requests), self.touches

    found = product("lru", "v0.31", Scope(2, 3, requests=1), alphabet, Counts)
    assert found.pairs == 2 * found.states


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_to_know_which_key_is_which_makes_more_pairs(alphabet: str) -> None:
    class Partial(v031.LRU):
        odd = False

        def touch(self, keys: Any, req_context: Any) -> None:
            keys = list(keys)
            self.odd = bool(keys) and max(keys)[31] % 2 == 1
            super().touch(keys, req_context)

        def cachelaw_state(self, *requests: Any) -> Any:
            return super().cachelaw_state(*requests), self.odd

    found = product("lru", "v0.31", Scope(2, 3, requests=1), alphabet, Partial)
    assert found.pairs > found.states


@pytest.mark.deep
@pytest.mark.parametrize(("profile", "edition", "alphabet", "scope"), EXPLORED)
def test_the_product_closes_where_the_core_is_explored(
    profile: str, edition: str, alphabet: str, scope: Scope
) -> None:
    closes(profile, edition, alphabet, scope)


@pytest.mark.deep
@pytest.mark.parametrize(("profile", "edition", "alphabet", "scope"), FURTHER)
def test_the_product_closes_at_a_larger_scope(
    profile: str, edition: str, alphabet: str, scope: Scope
) -> None:
    closes(profile, edition, alphabet, scope)
