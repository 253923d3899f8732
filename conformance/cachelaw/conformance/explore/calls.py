"""The alphabet *calls*: a policy under every call that the protocol could make, in any order.

A state holds what the policy knows, the ref count of each chunk, and what requests remember of the
policy (v0.33). A step is one call with its arguments, or the start or end of a transfer with the
mark that goes with it. No request is followed, so a call needs no cause: any key may be said to be
reused, any absent one to have been missed. The protocol makes no call that is not here, up to the
bounds of the scope; what holds here holds there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any

from cachelaw.conformance.explore.search import Step
from cachelaw.conformance.trace import Layout
from cachelaw.reference.cores import Core, World
from cachelaw.reference.lru import RankedOrder, RequestRank
from cachelaw.reference.protocol import Call

ABSENT = -2
"""Stands for the ref count of a key that is not resident."""

Memories = tuple[RequestRank | None, ...]
State = tuple[Any, tuple[int, ...], Memories]
"""The policy's own state; the ref count of every key; what each request remembers."""

NAMES = ("r1", "s2", "r3", "s4")
"""Requests that know positions: of one prefix, and of the same keys in the opposite order."""

STRANGER = "u0"
"""A request that knows no positions; there is nothing to remember of it."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How far an exploration goes.

    Attributes:
        capacity: the number of chunks that fit.
        keys: the number of keys.
        requests: how many requests run at a time: those with positions, in `calls` (only v0.33
            tells requests apart); all, in `protocol`.
        batch: the longest batch of keys in one call or event.
        pins: the highest ref count.
        groups: the number of KV cache groups; two keys of different groups may end at one token.
    """

    capacity: int
    keys: int
    requests: int = 2
    batch: int = 2
    pins: int = 2
    groups: int = 1


class Calls:
    """The machine of one core.

    Args:
        core: the policy.
        scope: capacity, keys, and bounds.
    """

    def __init__(self, core: Core, scope: Scope) -> None:
        self.core = core
        self.scope = scope
        self._absent = (ABSENT,) * scope.keys
        self._ranked = isinstance(core.start(scope.capacity), RankedOrder)
        edition, keys = core.edition, range(scope.keys)
        known = NAMES[: scope.requests] if self._ranked else ()
        self.requests = (*known, STRANGER)
        self.position_of = Layout(scope.groups).position_of
        self.start: State = (core.start(scope.capacity), self._absent, (None,) * len(known))

        batches = [
            batch for length in range(scope.batch + 1) for batch in permutations(keys, length)
        ]
        self._uses = [Call("touch", (batch, STRANGER)) for batch in batches]
        self._misses: list[Call] = []
        self._sights: list[tuple[int, list[Call]]] = []
        if edition.has_request_hooks:
            self._misses = [Call("on_store_miss", (batch, STRANGER)) for batch in batches]
            splits = product if core.profile == "arc" else _unsplit
            self._uses += [
                _finish(batch, split)
                for batch in batches
                for split in splits("irn", repeat=len(batch))
            ]
        if edition.has_request_access:
            self._sights = [
                (at, [Call("on_request_access", (batch, name)) for batch in batches])
                for at, name in enumerate(self.requests)
            ]
        self._evicts = [
            [
                Call("evict", (n, frozenset(protected)))
                for n in range(residents + 2)
                for size in range(scope.keys + 1)
                for protected in combinations(keys, size)
            ]
            for residents in range(scope.capacity + 1)
        ]
        self._clear = Call("clear", ()) if edition.has_clear else None
        self._inserts = [
            [Call("insert", (key, key, name)) for name in self.requests] for key in keys
        ]
        self._named = {
            name: [Call(name, (key,)) for key in keys]
            for name in (
                "completes",
                "fails",
                "pin",
                "unpin",
                "remove",
                "mark_evictable",
                "mark_non_evictable",
            )
        }

    def steps(self, state: State) -> Iterator[Step[Call, State]]:
        """Yield every call that could be made in `state`, with its answer and the state after.

        The protocol's own names stand for what it does in one go: `completes`, `pin` and `unpin`
        are a change of the ref count with the mark that goes with it, `fails` is `remove`.
        """
        core, refs, memories = state
        apply, ranked = self.core.apply, self._ranked
        world = World(refs.__getitem__)

        if self.scope.keys - refs.count(ABSENT) < self.scope.capacity:
            yield from self._insertions(state)
        yield from self._transfers(state)
        for call in self._uses:
            after = apply(core, call, world).state
            if after is core:
                yield call, None, state
            elif ranked:
                yield call, None, settled(after, refs, memories)
            else:
                yield call, None, (after, refs, memories)
        for call in self._misses:
            if all(refs[key] == ABSENT for key in call.arguments[0]):
                after = apply(core, call, world).state
                yield call, None, state if after is core else settled(after, refs, memories)
        for at, calls in self._sights:
            yield from self._accesses(state, at, calls)
        for call in self._evicts[self.scope.keys - refs.count(ABSENT)]:
            after, victims, _ = apply(core, call, world)
            if after is core and not victims:
                yield call, victims, state
                continue
            left = list(refs)
            for key in victims or ():
                left[key] = ABSENT
            yield call, victims, settled(after, tuple(left), memories)
        if self._clear is not None:
            after = apply(core, self._clear, world).state
            yield self._clear, None, settled(after, self._absent, memories)

    def _insertions(self, state: State) -> Iterator[Step[Call, State]]:
        core, refs, memories = state
        for key, ref in enumerate(refs):
            if ref != ABSENT:
                continue
            pending = (*refs[:key], -1, *refs[key + 1 :])
            calls = self._inserts[key]
            if not self._ranked:
                after = self.core.apply(core, calls[-1], World(pending.__getitem__)).state
                yield calls[-1], None, (after, pending, memories)
                continue
            for at, call in enumerate(calls):
                yield call, None, self._remembering(call, core, pending, memories, at)

    def _accesses(self, state: State, at: int, calls: list[Call]) -> Iterator[Step[Call, State]]:
        core, refs, memories = state
        for call in calls:
            # A manager reports what is absent or ready, and not what is still being stored.
            if all(refs[key] != -1 for key in call.arguments[0]):
                yield call, None, self._remembering(call, core, refs, memories, at)

    def _remembering(
        self, call: Call, core: Any, refs: tuple[int, ...], memories: Memories, at: int
    ) -> State:
        """Make a call that reads and writes what the request at `at` remembers."""
        memory = memories[at] if at < len(memories) else None
        outcome = self.core.apply(core, call, World(refs.__getitem__, self.position_of, memory))
        if at < len(memories):
            memories = (*memories[:at], outcome.memory, *memories[at + 1 :])
        return settled(outcome.state, refs, memories)

    def _transfers(self, state: State) -> Iterator[Step[Call, State]]:
        core, refs, memories = state
        for key, ref in enumerate(refs):
            if ref == ABSENT:
                continue
            if ref == -1:
                yield self._named["completes"][key], None, self._counted(state, key, 0)
                after = self.core.apply(
                    core, self._named["remove"][key], World(refs.__getitem__)
                ).state
                left = (*refs[:key], ABSENT, *refs[key + 1 :])
                yield self._named["fails"][key], None, settled(after, left, memories)
                continue
            if ref < self.scope.pins:
                yield self._named["pin"][key], None, self._counted(state, key, ref + 1)
            if ref > 0:
                yield self._named["unpin"][key], None, self._counted(state, key, ref - 1)

    def _counted(self, state: State, key: int, ref_cnt: int) -> State:
        """Write a ref count, with the marks of the editions that have them."""
        core, refs, memories = state
        counted = (*refs[:key], ref_cnt, *refs[key + 1 :])
        if self.core.edition.has_marks:
            if ref_cnt == 0:
                mark = self._named["mark_evictable"][key]
                core = self.core.apply(core, mark, World(counted.__getitem__)).state
            elif ref_cnt == 1 and refs[key] == 0:
                mark = self._named["mark_non_evictable"][key]
                core = self.core.apply(core, mark, World(refs.__getitem__)).state
        return core, counted, memories


def _unsplit(kinds: str, *, repeat: int) -> Iterator[tuple[str, ...]]:
    """Return one split alone: the cores of LRU are not told it."""
    yield ("r",) * repeat


def _finish(batch: tuple[int, ...], split: tuple[str, ...]) -> Call:
    """Make the end of a request: `i` for a key only inserted, `r` reused, `n` merely seen."""
    kinds = tuple(zip(batch, split, strict=True))
    inserted = frozenset(key for key, kind in kinds if kind == "i")
    reused = frozenset(key for key, kind in kinds if kind == "r")
    return Call("on_request_finished", ((batch,), inserted, reused, STRANGER))


def settled(core: Any, refs: tuple[int, ...], memories: Memories) -> State:
    """Return the state with the ranks of v0.33 renumbered, so that there are finitely many.

    Serial numbers are compared, never counted: only their order matters, and that the next one is
    higher than all. Generations tell a number that is valid from one that is void: what is void
    is forgotten.
    """
    if not isinstance(core, RankedOrder):
        return core, refs, memories
    generation = core.generation
    valid = tuple(
        memory if memory is not None and memory.generation == generation else None
        for memory in memories
    )
    used = {rank[0] for rank, _ in core.entries}
    used.update(memory.serial for memory in valid if memory is not None)
    if generation == 0 and core.serial == len(used):
        return core, refs, valid
    dense = {serial: place for place, serial in enumerate(sorted(used), 1)}
    entries = tuple(((dense[rank[0]], rank[1]), key) for rank, key in core.entries)
    return (
        RankedOrder(entries, len(dense), 0),
        refs,
        tuple(None if memory is None else RequestRank(dense[memory.serial], 0) for memory in valid),
    )
