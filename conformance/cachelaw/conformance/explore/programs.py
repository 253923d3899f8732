"""The alphabet *protocol*: a policy under every program that a manager could run.

A state holds what the policy knows, the manager's books, and what requests remember of the policy.
A step is one event of the protocol, with all the calls that it makes; `perform` of the reference
decides which. Every state here is one of `calls.py`, with the books beside it.

What makes no difference is not kept, so that endless programs have finitely many states, and few:

- slots: no policy looks at one;
- requests that ended: one that has not begun takes the place, under the old name; also of one that
  a reset made forgotten, which is like a new one in all but that it has to go on before it can end;
- the order in which a request saw its keys, where it knows their positions: at its end they are
  sorted by them;
- that a key was stored, once it is known to be reused: at the end it counts as reused alone;
- for LRU, what was stored, reused or missed: it does not look at the first two, and to be told of
  absent keys changes nothing (`touch/absent-ignored`, which `calls.py` asks of every state).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

from cachelaw.conformance.explore.calls import ABSENT, Memories, Scope, settled
from cachelaw.conformance.explore.search import Step
from cachelaw.conformance.explore.symmetry import NOWHERE, orbit, places, ranks, rename_core
from cachelaw.conformance.trace import Event, Layout, Trace, request_of, rewritten
from cachelaw.reference.cores import Core, World
from cachelaw.reference.lru import RankedOrder
from cachelaw.reference.protocol import (
    Chunk,
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    Request,
    RequestEnds,
    Reset,
    Setting,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    perform,
)
from cachelaw.reference.protocol import State as Books

Requests = tuple[Request[int], ...]
State = tuple[Any, tuple[int, ...], Memories, Requests]
"""As in `calls.py`; besides, what the manager remembers of each running request."""

UNBEGUN: Request[int] = Request()


class Asked(NamedTuple):
    """An eviction that an event led to.

    Attributes:
        n: how many victims were asked for.
        eligible: how many chunks were idle and not protected.
        victims: the answer.
    """

    n: int
    eligible: int
    victims: tuple[int, ...] | None


class Programs:
    """The machine of one core under the protocol.

    Args:
        core: the policy.
        scope: capacity, keys, and bounds.
        kinds: the first letters of the requests' names, which say what they know of positions
            (`trace.REQUEST_KINDS`); by default `r` and `s` in turn for v0.33's LRU, else `u`.
    """

    def __init__(self, core: Core, scope: Scope, kinds: str | None = None) -> None:
        self.core = core
        self.scope = scope
        self.ranked = isinstance(core.start(scope.capacity), RankedOrder)
        # Before v0.31 managers follow no request; whose event it is makes no difference.
        count = scope.requests if core.edition.has_request_hooks else 1
        kinds = kinds or ("rs" if self.ranked else "u")
        self.names = tuple(f"{kinds[at % len(kinds)]}{at + 1}" for at in range(count))
        self._sorted = set(kinds) <= {"r", "s"}
        layout = Layout(scope.groups)
        self.setting: Setting[int] = Setting(
            core.edition, scope.capacity, layout.group_of, layout.position_of
        )
        self.start: State = (
            core.start(scope.capacity),
            (ABSENT,) * scope.keys,
            (None,) * count,
            (UNBEGUN,) * count,
        )

    def steps(self, state: State) -> Iterator[Step[Event, State]]:
        """Yield every event that a manager could issue, what was evicted, and the state after."""
        books = self.books(state)
        for event in self.events(state[1]):
            asked, after = self.happen(state, books, event)
            yield event, asked, after

    def events(self, refs: tuple[int, ...]) -> Iterator[Event]:
        """Yield the events of the scope that have no objection, the simplest first."""
        keys = range(self.scope.keys)
        pending = [key for key in keys if refs[key] == -1]
        pinned = [key for key in keys if refs[key] > 0]
        may_load = [key for key in keys if 0 <= refs[key] < self.scope.pins]
        residents = [key for key in keys if refs[key] != ABSENT]
        recorded = (True, False) if self.core.edition.has_request_hooks else (True,)

        yield from map(Lookup, keys)
        for name in self.names:
            for batch in self._batches(keys):
                yield StoreOffered(batch, name)
        yield from map(StoreSucceeds, self._batches(pending))
        for batch in self._batches(keys):
            yield Touch(batch, self.names[0])
        for n in range(len(residents) + 2):
            for size in range(len(residents) + 1):
                for protected in combinations(residents, size):
                    yield Evict(n, frozenset(protected))
        for name in self.names:
            for batch in self._batches(may_load):
                for counts in recorded:
                    # Whose load it is matters only if it is recorded.
                    if counts or name == self.names[0]:
                        yield LoadStarts(batch, name, counts)
        yield from map(LoadEnds, self._batches(pinned))
        for size in range(1, self.scope.batch + 1):
            yield from map(StoreFails, combinations(pending, size))
        if self.core.edition.has_request_hooks:
            yield from map(RequestEnds, self.names)
        if self.core.edition.has_clear:
            yield Reset()

    def _batches(self, keys: Sequence[int]) -> Iterator[tuple[int, ...]]:
        for length in range(1, min(len(keys), self.scope.batch) + 1):
            yield from permutations(keys, length)

    def books(self, state: State) -> Books[int]:
        """Return the manager's books in `state`, with some slot for every chunk."""
        _, refs, _, requests = state
        chunks = {key: Chunk(ref, key) for key, ref in enumerate(refs) if ref != ABSENT}
        free = tuple(range(self.scope.capacity - len(chunks)))
        begun = {
            name: request
            for name, request in zip(self.names, requests, strict=True)
            if request is not UNBEGUN
        }
        return Books(chunks, free, begun)

    def happen(
        self, state: State, books: Books[int], event: Event
    ) -> tuple[tuple[Asked, ...], State]:
        """Let one event happen; return the evictions that it led to, and the state after."""
        core, before, memories, _ = state
        refs = list(before)
        asked: tuple[Asked, ...] = ()
        apply, edition = self.core.apply, self.core.edition
        names, position_of = self.names, self.setting.position_of
        world = World(refs.__getitem__, position_of)
        steps = perform(self.setting, books, event)
        answer: tuple[int, ...] | None = None
        try:
            while True:
                call = steps.send(answer)
                answer = None
                method, arguments = call
                if method == "get":
                    continue
                if method == "set_ref_cnt":
                    refs[arguments[0]] = arguments[1]
                elif method == "evict":
                    n, protected = arguments
                    core, answer, _ = apply(core, call, world)
                    eligible = sum(
                        ref == 0 and key not in protected for key, ref in enumerate(refs)
                    )
                    asked = (*asked, Asked(n, eligible, answer))
                    for key in answer or ():
                        refs[key] = ABSENT
                elif edition.has_request_access and method in ("insert", "on_request_access"):
                    if method == "insert":
                        refs[arguments[0]] = -1
                    at = names.index(arguments[-1])
                    outcome = apply(core, call, World(refs.__getitem__, position_of, memories[at]))
                    core = outcome.state
                    memories = (*memories[:at], outcome.memory, *memories[at + 1 :])
                else:
                    if method == "insert":
                        refs[arguments[0]] = -1
                    core = apply(core, call, world).state
                    if method == "remove":
                        refs[arguments[0]] = ABSENT
                    elif method == "clear":
                        refs[:] = [ABSENT] * len(refs)
        except StopIteration as end:
            after: Books[int] = end.value
        if after.requests is books.requests:
            requests = state[3]
        else:
            requests = tuple(self._kept(after.requests.get(name)) for name in names)
            memories = tuple(
                None if name in after.requests and after.requests[name].ended else memory
                for name, memory in zip(names, memories, strict=True)
            )
        core, counted, memories = settled(core, tuple(refs), memories)
        return asked, (core, counted, memories, requests)

    def _kept(self, request: Request[int] | None) -> Request[int]:
        """Return what of a request can still make a difference."""
        if request is None or request.ended or request.outdated:
            return UNBEGUN
        seen = tuple(sorted(request.seen)) if self._sorted else request.seen
        if self.core.profile == "lru":
            return Request(seen) if seen else UNBEGUN
        if not seen:
            return UNBEGUN
        return Request(seen, request.inserted - request.reused, request.reused, request.missed)


def program_check(
    held: Callable[[tuple[Any, tuple[int, ...], Memories]], str | None],
) -> Callable[[State], str | None]:
    """Return the check of a state of `Programs`, given that of a state of `Calls`."""
    return lambda state: held(state[:3])


def refusal_check(
    before: State, event: Event, asked: tuple[Asked, ...], after: State
) -> str | None:
    """Name the clause that an eviction broke which refused though enough chunks were eligible."""
    for n, eligible, victims in asked:
        if victims is None and eligible >= n:
            return "evict/none-only-when-short"
    return None


class ProgramSymmetry:
    """The symmetry of keys under the protocol, for requests that know no positions."""

    def marks(self, state: State) -> list[Any]:
        """Return what tells each key from the others."""
        core, refs, _, requests = state
        where = [NOWHERE] * len(refs)
        at = 0
        for keys in places(core):
            for key in keys:
                where[key] = at
                at += 1
        marks: list[Any] = []
        for key, ref in enumerate(refs):
            mark = [where[key], ref]
            for request in requests:
                if request is UNBEGUN:
                    mark.append(-1)
                    continue
                mark.append(request.seen.index(key) if key in request.seen else NOWHERE)
                mark.append(
                    (key in request.missed)
                    + 2 * (key in request.inserted)
                    + 4 * (key in request.reused)
                )
            marks.append(tuple(mark))
        return marks

    def renaming(self, state: State) -> tuple[int, ...]:
        """Return the renaming to the representative."""
        return ranks(self.marks(state))

    def rename(self, state: State, names: tuple[int, ...]) -> State:
        """Return `state` with other names."""
        core, refs, memories, requests = state
        renamed = [ABSENT] * len(refs)
        for key, ref in enumerate(refs):
            renamed[names[key]] = ref
        return (
            rename_core(core, names),
            tuple(renamed),
            memories,
            tuple(
                request
                if request is UNBEGUN
                else Request(
                    tuple([names[key] for key in request.seen]),
                    frozenset([names[key] for key in request.inserted]),
                    frozenset([names[key] for key in request.reused]),
                    frozenset([names[key] for key in request.missed]),
                )
                for request in requests
            ),
        )

    def rename_action(self, action: Event, names: tuple[int, ...]) -> Event:
        """Return an event with other names."""
        return rewritten(action, keys=lambda keys: tuple(names[key] for key in keys))

    def orbit(self, state: State) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self.marks(state))


def as_trace(scope: Scope, core: Core, path: Iterable[Event]) -> Trace:
    """Return a path of `Programs` as a trace that can be replayed.

    A request that takes the place of one that ended, or that a reset made forgotten, gets a name of
    its own.
    """
    names: dict[str, str] = {}
    count = scope.requests
    events: list[Event] = []
    for event in path:
        events.append(rewritten(event, request=lambda name: names.get(name, name)))
        renewed: Iterable[str] = ()
        if isinstance(event, RequestEnds):
            renewed = (event.request,)
        elif isinstance(event, Reset):
            renewed = {name for other in path if (name := request_of(other)) is not None}
        for name in sorted(renewed):
            count += 1
            names[name] = f"{name[0]}{count}"
    return Trace(core.edition, scope.capacity, tuple(events), scope.groups)
