"""Every state of a fast policy at small scope, beside every state of the core.

A product search: each pair of states that calls can lead to is found once, and every call is made
on each. That it closes with as many pairs as the core has states says that a fast policy knows no
more and no less than the core does.
"""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest

from cachelaw.conformance.explore.calls import Calls, Scope
from cachelaw.conformance.explore.products import real_calls
from cachelaw.conformance.instance import Codec, Instance
from cachelaw.reference.cores import core_of
from cachelaw.reference.editions import edition_named
from cachelaw.reference.protocol import Setting


def product(profile: str, edition: str, scope: Scope) -> tuple[int, int, int]:
    """Search; return the numbers of pairs, of states of the core, and of transitions."""
    machine = Calls(core_of(profile, edition_named(edition)), scope)
    name = edition.replace(".", "")
    build = getattr(importlib.import_module(f"cachelaw.fast.{name}"), profile.upper())
    status = importlib.import_module(f"cachelaw.reference.{name}").ChunkStatus
    setting: Setting[int] = Setting(
        edition_named(edition), scope.capacity, position_of=machine.position_of
    )
    requests = [request for request in machine.requests if request != "u0"]

    def known(instance: Instance) -> Any:
        contexts = [instance.context(request) for request in requests]
        return instance.policy.cachelaw_state(*contexts)

    first = Instance(build, setting, status, Codec(lambda key: 0, fresh=True))
    found = {(machine.start, known(first))}
    waiting = [(machine.start, first)]
    transitions = 0
    while waiting:
        state, instance = waiting.pop()
        for call, answer, after in machine.steps(state):
            transitions += 1
            other = copy.deepcopy(instance)
            victims = None
            for real in real_calls(call, state[1], machine.core.edition):
                given = other.carry_out(real)
                if real.method == "evict" and given is not None:
                    victims = tuple(int(other.codec.decode(key) or 0) for key, _ in given)
                    for victim in victims:
                        other.chunks.pop(victim)
            assert victims == answer, (state, call)
            pair = (after, known(other))
            if pair not in found:
                found.add(pair)
                waiting.append((after, other))
    return len(found), len({state for state, _ in found}), transitions


SMALL = [
    ("lru", "v0.24", Scope(2, 3, batch=2, pins=1), 40),
    ("lru", "v0.31", Scope(2, 3, batch=2, pins=1), 64),
    ("lru", "v0.33", Scope(2, 2, requests=1, batch=1, pins=1), None),
    ("arc", "v0.24", Scope(1, 2, batch=2, pins=1), None),
    ("arc", "v0.31", Scope(1, 3, batch=1, pins=1), None),
]
# Scopes at which the core's own space is closed, all but the last in every run, see
# specs/assurance.md: as many pairs as there are states when names are told apart.
LARGER = [
    ("lru", "v0.24", Scope(3, 4, batch=2, pins=2), 431),
    ("lru", "v0.31", Scope(3, 4, batch=2, pins=2), 1_745),
    ("lru", "v0.33", Scope(2, 3, requests=2, batch=2, pins=2, groups=2), 4_049),
    ("arc", "v0.24", Scope(2, 3, batch=2, pins=2), 2_802),
    ("arc", "v0.31", Scope(2, 3, batch=2, pins=2), 3_495),
    ("arc", "v0.24", Scope(3, 4, batch=1, pins=1), 33_524),
    ("arc", "v0.31", Scope(3, 4, batch=1, pins=1), 50_916),
    ("lru", "v0.33", Scope(3, 4, requests=1, batch=1, pins=1), 6_692),
]


@pytest.mark.parametrize(("profile", "edition", "scope", "states"), SMALL)
def test_the_product_with_the_core_closes(
    profile: str, edition: str, scope: Scope, states: int | None
) -> None:
    pairs, of_core, transitions = product(profile, edition, scope)
    print(f"{profile} {edition} {scope}: {pairs} pairs, {transitions} transitions")
    assert pairs == of_core
    assert states in (None, pairs)
    assert pairs > 10


@pytest.mark.deep
@pytest.mark.parametrize(("profile", "edition", "scope", "states"), LARGER)
def test_the_product_with_the_core_closes_at_a_larger_scope(
    profile: str, edition: str, scope: Scope, states: int | None
) -> None:
    pairs, of_core, transitions = product(profile, edition, scope)
    print(f"{profile} {edition} {scope}: {pairs} pairs, {transitions} transitions")
    assert pairs == of_core
    assert states in (None, pairs)
