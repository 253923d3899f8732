"""The functional cores under one signature, for whoever explores them.

The chapters (`lru.py`, `arc.py`) give each operation the arguments it needs. A model checker wants
one function for all: from a state and a call of the protocol to the next state and the answer.
That is a `Core`, and there is one for every policy of every edition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from cachelaw.reference import arc, lru
from cachelaw.reference.editions import EDITIONS, V024, V030, V031, V033, Edition
from cachelaw.reference.order import by_position
from cachelaw.reference.protocol import Call

State = Any
"""The state of a policy: immutable and hashable, as its chapter defines it."""


@dataclass(frozen=True, slots=True)
class World:
    """What a policy may look at besides its own state. None of it is the policy's to change.

    Attributes:
        ref_cnt: the ref count of a resident, as the manager keeps it.
        position_of: the end token of a key in a request's prefix, None if it is not known.
        memory: what the calling request remembers of the policy, None if nothing.
    """

    ref_cnt: Callable[[Any], int]
    position_of: Callable[[str, Any], int | None] = lambda request, key: None
    memory: lru.RequestRank | None = None


class Outcome(NamedTuple):
    """What a call came to.

    Attributes:
        state: the policy's next state.
        victims: the victims of an `evict`, in their order; None if it refused, or for other calls.
        memory: what the calling request remembers afterwards.
    """

    state: State
    victims: tuple[Any, ...] | None = None
    memory: lru.RequestRank | None = None


@dataclass(frozen=True, slots=True)
class Core:
    """A policy of one edition as pure functions.

    Attributes:
        profile: `lru` or `arc`.
        edition: whose semantics it has.
        start: from a capacity to the state of a new policy.
        apply: from a state, a call of the protocol and the world to the outcome. `get` and
            `set_ref_cnt` change nothing.
    """

    profile: str
    edition: Edition
    start: Callable[[int], State]
    apply: Callable[[State, Call, World], Outcome]


def core_of(profile: str, edition: Edition) -> Core:
    """Return the core of a policy.

    Args:
        profile: `lru` or `arc`.
        edition: whose semantics to take.

    Raises:
        ValueError: there is no such policy.
    """
    if profile == "arc":
        return Core(profile, edition, arc.ArcState, _arc(edition))
    if profile != "lru":
        raise ValueError(f"there is no policy {profile!r}; there are lru and arc")
    if edition >= V033:
        return Core(profile, edition, lambda capacity: lru.RankedOrder(), _ranked)
    if V024 <= edition <= V030:
        return Core(profile, edition, lambda capacity: lru.EvictableOrder(), _evictable)
    return Core(profile, edition, lambda capacity: (), _list)


def all_cores() -> tuple[Core, ...]:
    """Return the cores of both policies in every edition."""
    return tuple(core_of(profile, edition) for profile in ("lru", "arc") for edition in EDITIONS)


def _used(call: Call, world: World) -> tuple[Any, ...]:
    """Return the keys that a use names, head first, those of a request's end in its order."""
    if call.method != "on_request_finished":
        keys: tuple[Any, ...] = call.arguments[0]
        return keys
    groups, _, _, request = call.arguments
    every = [key for group in groups for key in group]
    return tuple(by_position(every, lambda key: world.position_of(request, key)))


def _list(state: State, call: Call, world: World) -> Outcome:
    match call.method:
        case "insert":
            return Outcome(lru.list_insert(state, call.arguments[0]))
        case "remove":
            return Outcome(lru.list_remove(state, call.arguments[0]))
        case "touch" | "on_store_miss" | "on_request_finished":
            return Outcome(lru.list_touch(state, _used(call, world)))
        case "evict":
            n, protected = call.arguments
            return Outcome(*lru.list_evict(state, n, protected, world.ref_cnt))
        case "clear":
            return Outcome(())
    return Outcome(state)


def _evictable(state: State, call: Call, world: World) -> Outcome:
    match call.method:
        case "insert":
            key = call.arguments[0]
            return Outcome(lru.evictable_insert(state, key, world.ref_cnt(key)))
        case "remove":
            return Outcome(lru.evictable_remove(state, call.arguments[0]))
        case "touch":
            return Outcome(lru.evictable_touch(state, call.arguments[0]))
        case "evict":
            n, protected = call.arguments
            return Outcome(*lru.evictable_evict(state, n, protected))
        case "clear":
            return Outcome(lru.EvictableOrder())
        case "mark_evictable":
            return Outcome(lru.evictable_mark(state, call.arguments[0]))
        case "mark_non_evictable":
            return Outcome(lru.evictable_unmark(state, call.arguments[0]))
    return Outcome(state)


def _ranked(state: State, call: Call, world: World) -> Outcome:
    memory = world.memory
    match call.method:
        case "insert":
            key, _, request = call.arguments
            position = world.position_of(request, key)
            state, memory = lru.ranked_insert(state, key, position, memory)
            return Outcome(state, None, memory)
        case "remove":
            return Outcome(lru.ranked_remove(state, call.arguments[0]), None, memory)
        case "touch" | "on_store_miss" | "on_request_finished":
            return Outcome(lru.ranked_touch(state, _used(call, world)), None, memory)
        case "on_request_access":
            keys, request = call.arguments
            at = [(key, world.position_of(request, key)) for key in keys]
            state, memory = lru.ranked_access(state, at, memory)
            return Outcome(state, None, memory)
        case "evict":
            n, protected = call.arguments
            return Outcome(*lru.ranked_evict(state, n, protected, world.ref_cnt), memory)
        case "clear":
            return Outcome(lru.ranked_clear(state), None, memory)
    return Outcome(state, None, memory)


def _arc(edition: Edition) -> Callable[[State, Call, World], Outcome]:
    def apply(state: State, call: Call, world: World) -> Outcome:
        match call.method:
            case "insert":
                return Outcome(arc.insert(state, call.arguments[0]))
            case "remove":
                return Outcome(arc.remove(state, call.arguments[0]))
            case "touch":
                return Outcome(arc.touch(state, call.arguments[0], world.ref_cnt))
            case "on_store_miss":
                return Outcome(arc.store_miss(state, call.arguments[0]))
            case "on_request_finished" if edition >= V031:
                _, inserted, reused, _ = call.arguments
                return Outcome(arc.finish(state, _used(call, world), inserted, reused))
            case "evict":
                n, protected = call.arguments
                return Outcome(
                    *arc.evict(state, n, protected, world.ref_cnt, falls_back_to_t1=edition >= V030)
                )
            case "clear":
                return Outcome(arc.clear(state))
        return Outcome(state)

    return apply
