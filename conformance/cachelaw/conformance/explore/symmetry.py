"""Which states differ in the names of keys alone.

Keys are interchangeable where neither positions, nor groups, nor the order of keys play a part:
in ARC, in LRU up to v0.31, in the textbook's ARC and in the filter's tracker, as long as requests
know no positions. What tells keys apart is then their place in the policy's lists and what the
manager's books say of them; keys alike in all of it are one as good as the other. Sorting keys by
that gives each state a representative, exactly: n keys make up to n! states one.
"""

from __future__ import annotations

from collections import Counter
from math import factorial, prod
from typing import Any

from cachelaw.conformance.explore.calls import ABSENT, State
from cachelaw.reference.arc import ArcState
from cachelaw.reference.lru import EvictableOrder
from cachelaw.reference.protocol import Call

NOWHERE = 1_000_000
"""Stands for the place of a key that the policy does not know; behind all places."""


def places(core: Any) -> tuple[tuple[int, ...], ...]:
    """Return the lists of a policy's state, which tell the keys apart.

    Raises:
        TypeError: the state is one in which keys are not interchangeable.
    """
    match core:
        case ArcState():
            return core.t1, core.t2, core.b1, core.b2
        case EvictableOrder():
            return (core.idle,)
        case tuple():
            return (core,)
    raise TypeError(f"the keys of {type(core).__name__} are not interchangeable")


def rename_core(core: Any, names: tuple[int, ...]) -> Any:
    """Return a policy's state with other names."""
    match core:
        case ArcState():
            return ArcState(
                core.capacity,
                core.target,
                tuple([names[key] for key in core.t1]),
                tuple([names[key] for key in core.t2]),
                tuple([names[key] for key in core.b1]),
                tuple([names[key] for key in core.b2]),
            )
        case EvictableOrder():
            return EvictableOrder(
                frozenset([names[key] for key in core.resident]),
                tuple([names[key] for key in core.idle]),
            )
    return tuple([names[key] for key in core])


class KeySymmetry:
    """The symmetry of the machine of calls."""

    def marks(self, state: State) -> list[Any]:
        """Return what tells each key from the others."""
        core, refs, _ = state
        marks: list[Any] = [(NOWHERE, ref) for ref in refs]
        at = 0
        for keys in places(core):
            for key in keys:
                marks[key] = (at, refs[key])
                at += 1
        return marks

    def renaming(self, state: State) -> tuple[int, ...]:
        """Return the renaming to the representative: keys in the order of their marks."""
        return ranks(self.marks(state))

    def rename(self, state: State, names: tuple[int, ...]) -> State:
        """Return `state` with other names."""
        core, refs, memories = state
        renamed = [ABSENT] * len(refs)
        for key, ref in enumerate(refs):
            renamed[names[key]] = ref
        return rename_core(core, names), tuple(renamed), memories

    def rename_action(self, action: Call, names: tuple[int, ...]) -> Call:
        """Return `action` with other names."""
        return rename_call(action, names)

    def orbit(self, state: State) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self.marks(state))


def rename_call(call: Call, names: tuple[int, ...]) -> Call:
    """Return a call of the alphabet `calls` with other names."""
    match call.method:
        case "evict":
            n, protected = call.arguments
            return Call("evict", (n, frozenset(names[key] for key in protected)))
        case "touch" | "on_store_miss" | "on_request_access":
            keys, request = call.arguments
            return Call(call.method, (tuple(names[key] for key in keys), request))
        case "on_request_finished":
            groups, inserted, reused, request = call.arguments
            return Call(
                call.method,
                (
                    tuple(tuple(names[key] for key in group) for group in groups),
                    frozenset(names[key] for key in inserted),
                    frozenset(names[key] for key in reused),
                    request,
                ),
            )
        case "insert":
            key, _, request = call.arguments
            return Call("insert", (names[key], names[key], request))
        case "clear":
            return call
    return Call(call.method, (names[call.arguments[0]],))


def ranks(marks: list[Any]) -> tuple[int, ...]:
    """Return the rank of each mark; equal marks are alike, and ranked as they stand."""
    names = [0] * len(marks)
    for rank, key in enumerate(sorted(range(len(marks)), key=marks.__getitem__)):
        names[key] = rank
    return tuple(names)


def orbit(marks: list[Any]) -> int:
    """Return how many renamings tell apart: those of keys with equal marks do not."""
    alike = Counter(marks).values()
    return factorial(len(marks)) // prod(factorial(count) for count in alike)
