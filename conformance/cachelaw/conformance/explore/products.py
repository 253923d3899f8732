"""Products: two machines side by side under the same actions, until an answer differs.

Three of them. The class of an edition beside its functional core: a class is put into each state
of the core, called, and compared. Two editions beside each other under the protocol: the shortest
program whose victims tell them apart, or a proof that none does. Two ways to serve one key after
another: see `textbook.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cachelaw.conformance.explore.calls import ABSENT, Calls, Scope, State, settled
from cachelaw.conformance.explore.programs import Asked, Programs, ProgramSymmetry, as_trace
from cachelaw.conformance.explore.programs import State as ProgramState
from cachelaw.conformance.explore.search import Exploration, Step, explore
from cachelaw.conformance.explore.symmetry import orbit, ranks
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.trace import Event, Trace
from cachelaw.reference.cores import core_of
from cachelaw.reference.editions import Edition
from cachelaw.reference.protocol import (
    Call,
    Setting,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
)

S = TypeVar("S")


# --- A class beside its core ---------------------------------------------------------------------


def class_check(machine: Calls) -> Callable[[State, Call, Any, State], str | None]:
    """Return the check that compares each step of a core with its edition's class.

    A class holds all that it knows in `state` and `chunks`, and in what it leaves with requests.
    So a new object is put into the state before, the calls are made on it as a host would make
    them, and what it then holds must be the state after: a product of the two, to a fixpoint.

    Args:
        machine: the machine whose steps are compared.
    """
    core, scope = machine.core, machine.scope
    module = importlib.import_module(core.edition.module)
    build: Callable[[int], Any] = getattr(module, core.profile.upper())
    setting: Setting[int] = Setting(core.edition, scope.capacity, position_of=machine.position_of)

    def check(before: State, call: Call, answer: Any, after: State) -> str | None:
        policy_state, refs, memories = before
        instance = Instance(build, setting, module.ChunkStatus, PlainCodec())
        policy = instance.policy
        policy.state = policy_state
        for key, ref in enumerate(refs):
            if ref != ABSENT:
                chunk = module.ChunkStatus(key)
                chunk.ref_cnt = ref
                instance.chunks[key] = policy.chunks[key] = chunk
        for name, memory in zip(machine.requests, memories, strict=False):
            if memory is not None:
                policy._memorize(instance.context(name), memory)

        victims = None
        for real in real_calls(call, refs, core.edition):
            given = instance.carry_out(real)
            if real.method == "evict" and given is not None:
                victims = tuple(key for key, _ in given)

        counts = [ABSENT] * scope.keys
        for key, chunk in policy.chunks.items():
            counts[key] = chunk.ref_cnt
        kept = tuple(
            policy.recall(instance.context(name))
            for name, _ in zip(machine.requests, memories, strict=False)
        )
        if victims != answer or settled(policy.state, tuple(counts), kept) != after:
            return DIVERGED
        return None

    return check


def real_calls(call: Call, refs: tuple[int, ...], edition: Edition) -> Iterator[Call]:
    """Yield the calls of the protocol that a call of the alphabet `calls` stands for."""
    if call.method not in ("completes", "fails", "pin", "unpin"):
        yield call
        return
    key = call.arguments[0]
    match call.method:
        case "fails":
            yield Call("remove", (key,))
            return
        case "completes":
            count = 0
        case "pin":
            count = refs[key] + 1
        case _:
            count = refs[key] - 1
    if count == 1 and refs[key] == 0 and edition.has_marks:
        yield Call("mark_non_evictable", (key,))
    yield Call("set_ref_cnt", (key, count))
    if count == 0 and edition.has_marks:
        yield Call("mark_evictable", (key,))


# --- Two editions under the protocol -------------------------------------------------------------

PairState = tuple[ProgramState, ProgramState]


class Pair:
    """Two policies under the same events, those valid in both their editions.

    Args:
        one: the first policy's machine.
        other: the second's, of the same scope and with the same requests.
    """

    def __init__(self, one: Programs, other: Programs) -> None:
        self.one, self.other = one, other
        self.start: PairState = (one.start, other.start)
        # A machine before v0.31 has one request alone, since none makes a difference.
        self._events = max(one, other, key=lambda machine: len(machine.names)).events

    def steps(self, state: PairState) -> Iterator[Step[Event, PairState]]:
        """Yield each event, whether both left the same, and the states after."""
        books = self.one.books(state[0]), self.other.books(state[1])
        for event in self._events(state[0][1]):
            if objection(self.one.setting, books[0], event) is not None:
                continue
            if objection(self.other.setting, books[1], event) is not None:
                continue
            seen1, after1 = self.one.happen(state[0], books[0], event)
            seen2, after2 = self.other.happen(state[1], books[1], event)
            alike = after1[1] == after2[1] and _victims(seen1) == _victims(seen2)
            yield event, alike, (after1, after2)


def _victims(asked: tuple[Asked, ...]) -> tuple[int, ...]:
    """Return who left, in order. To be refused unasked is to be refused."""
    return tuple(key for one in asked for key in one.victims or ())


class PairSymmetry:
    """Keys are interchangeable in a pair if they are in both."""

    def __init__(self) -> None:
        self._single = ProgramSymmetry()

    def _marks(self, state: PairState) -> list[Any]:
        marks = zip(self._single.marks(state[0]), self._single.marks(state[1]), strict=True)
        return list(marks)

    def renaming(self, state: PairState) -> tuple[int, ...]:
        """Return the renaming to the representative."""
        return ranks(self._marks(state))

    def rename(self, state: PairState, names: tuple[int, ...]) -> PairState:
        """Return `state` with other names."""
        return self._single.rename(state[0], names), self._single.rename(state[1], names)

    def rename_action(self, action: Event, names: tuple[int, ...]) -> Event:
        """Return an event with other names."""
        return self._single.rename_action(action, names)

    def orbit(self, state: PairState) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self._marks(state))


def differs(before: Any, action: Any, alike: Any, after: Any) -> str | None:
    """Name the divergence if a step of a pair was answered differently."""
    return None if alike else DIVERGED


@dataclass(frozen=True, slots=True)
class Comparison(Generic[S]):
    """What a search for a difference found.

    Attributes:
        shortest: the shortest trace that tells the two apart, None if none was found.
        explorations: each scope that was searched, with what was found there, in order.
    """

    shortest: S | None
    explorations: tuple[tuple[Scope, Exploration[Any, Any]], ...]

    @property
    def proved_alike(self) -> bool:
        """Whether every scope was closed and no difference found."""
        return self.shortest is None and all(found.closed for _, found in self.explorations)


EDITION_SCOPES = (
    Scope(2, 2, requests=2, pins=1),
    Scope(2, 3, requests=1, pins=1),
)
"""Scopes at which editions are compared, the smallest first."""


def compare_editions(
    profile: str, older: Edition, newer: Edition, scopes: Sequence[Scope] = EDITION_SCOPES
) -> Comparison[Trace]:
    """Search for the shortest program that tells two editions of a policy apart.

    Only events that managers of both editions can issue are used, and only what leaves, and in
    which order, is compared. The trace bears the older edition; it is valid under the newer too.

    Args:
        profile: `lru` or `arc`.
        older: one edition.
        newer: the other.
        scopes: where to search, one after the other; the shortest of all is kept, the first of
            equals.
    """
    cores = core_of(profile, older), core_of(profile, newer)
    ranked = profile == "lru" and newer.has_request_access
    best: Trace | None = None
    searched: list[tuple[Scope, Exploration[Any, Any]]] = []
    for scope in scopes:
        pair = Pair(*(Programs(core, scope, kinds="r" if ranked else "u") for core in cores))
        found = explore(
            pair,
            symmetry=None if ranked else PairSymmetry(),
            check_step=differs,
            depth=None if best is None else len(best.events) - 1,
        )
        searched.append((scope, found))
        if found.broken is not None and (best is None or len(found.broken.path) < len(best.events)):
            best = as_trace(scope, cores[0], found.broken.path)
    return Comparison(best, tuple(searched))


# --- Two ways to serve one key after another -----------------------------------------------------

Serve = Callable[[Any, int], "tuple[Any, Any]"]
"""From a state and the key asked for to the state after, and whether it hit and who left."""


class Serving:
    """Two ways to serve the same keys.

    Args:
        starts: the two states to begin with.
        ways: the two functions that serve a key.
        keys: the number of keys.
    """

    def __init__(self, starts: tuple[Any, Any], ways: tuple[Serve, Serve], keys: int) -> None:
        self.start = starts
        self._ways = ways
        self._keys = range(keys)

    def steps(self, state: tuple[Any, Any]) -> Iterator[Step[int, tuple[Any, Any]]]:
        """Yield each key, whether both answered alike, and the states after."""
        for key in self._keys:
            after1, said1 = self._ways[0](state[0], key)
            after2, said2 = self._ways[1](state[1], key)
            yield key, said1 == said2, (after1, after2)


class ServingSymmetry:
    """Keys are interchangeable in both ways; a state has the lists t1, t2, b1 and b2.

    Args:
        keys: the number of keys.
        rename: from a state of either way, and names, to the renamed state.
    """

    def __init__(self, keys: int, rename: Callable[[Any, tuple[int, ...]], Any]) -> None:
        self._keys = keys
        self._rename = rename

    def _marks(self, state: tuple[Any, Any]) -> list[Any]:
        marks = [[self._keys, self._keys] for _ in range(self._keys)]
        for way, one in enumerate(state):
            for place, key in enumerate((*one.t1, *one.t2, *one.b1, *one.b2)):
                marks[key][way] = place
        return [tuple(mark) for mark in marks]

    def renaming(self, state: tuple[Any, Any]) -> tuple[int, ...]:
        """Return the renaming to the representative."""
        return ranks(self._marks(state))

    def rename(self, state: tuple[Any, Any], names: tuple[int, ...]) -> tuple[Any, Any]:
        """Return `state` with other names."""
        return self._rename(state[0], names), self._rename(state[1], names)

    def rename_action(self, action: int, names: tuple[int, ...]) -> int:
        """Return the key's other name."""
        return names[action]

    def orbit(self, state: tuple[Any, Any]) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self._marks(state))


def one_after_another(sequence: Iterable[int], hits: Iterable[bool]) -> tuple[Event, ...]:
    """Return the events by which a manager serves keys one at a time, each in its own request.

    Args:
        sequence: the keys.
        hits: whether each was resident then: it is touched, else stored.
    """
    events: list[Event] = []
    for at, (key, hit) in enumerate(zip(sequence, hits, strict=True), 1):
        if hit:
            events.append(Touch((key,), f"u{at}"))
        else:
            events += [StoreOffered((key,), f"u{at}"), StoreSucceeds((key,))]
    return tuple(events)
