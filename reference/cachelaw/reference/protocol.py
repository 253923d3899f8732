"""The protocol: how a manager drives its policy.

What happens to a cache is a sequence of *events*: a store is offered, a load starts, a request
ends. For each, the manager makes certain calls on the policy, in a certain order, and keeps books
on who is resident, how often each chunk is pinned, which slots are free, and what each running
request has seen. This file is that manager without its engine room: a pure core that turns an
event into calls. Nothing else in cachelaw knows when a policy is called.

`perform(setting, state, event)` is a generator over immutable states. It yields one `Call` after
the other, takes back what the policy answered to `evict` (the victims' keys, or None), and
returns the next state. Whoever drives a policy, real or functional, sits in the middle:

    steps = perform(setting, state, event)
    answer = None
    try:
        while True:
            answer = carry_out(steps.send(answer))
    except StopIteration as end:
        state = end.value

Two of the calls are no calls on the policy. `set_ref_cnt` is the manager writing a ref count, at
the very place between the calls where it does so; `get` is made because managers make it.

The rules come from the managers of vLLM 0.19 to 0.33; the names in the comments are clauses of
`specs/cache-policy.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from cachelaw.reference.editions import Edition
from cachelaw.reference.order import by_position

K = TypeVar("K", bound=Hashable)


class Call(NamedTuple):
    """One step of a manager: a method name of `CachePolicy`, or `set_ref_cnt`, with arguments.

    Arguments are keys, tuples and sets of keys, slots and request ids; a driver turns them into
    what the subject expects. Every call that the edition's interface gives a context carries the
    request id last.
    """

    method: str
    arguments: tuple[Any, ...]


# --- Events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lookup(Generic[K]):
    """Somebody asks whether `key` is resident. Not a use."""

    key: K


@dataclass(frozen=True, slots=True)
class LoadStarts(Generic[K]):
    """A request begins to read ready chunks; they are pinned.

    Attributes:
        keys: distinct keys of ready chunks.
        request: the reading request.
        recorded: whether the read counts as the request's. A tiering host also reads without:
            then no policy learns whose read it is, and it leaves the request's books alone.
    """

    keys: tuple[K, ...]
    request: str
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class LoadEnds(Generic[K]):
    """Reads are over; each key loses one pin."""

    keys: tuple[K, ...]


@dataclass(frozen=True, slots=True)
class StoreOffered(Generic[K]):
    """A request offers chunks to the cache; those absent are stored, if there is room.

    Attributes:
        keys: distinct keys, head of the prefix first.
        request: the offering request.
    """

    keys: tuple[K, ...]
    request: str


@dataclass(frozen=True, slots=True)
class StoreSucceeds(Generic[K]):
    """The data of pending chunks has arrived."""

    keys: tuple[K, ...]


@dataclass(frozen=True, slots=True)
class StoreFails(Generic[K]):
    """The data of pending chunks will not arrive."""

    keys: tuple[K, ...]


@dataclass(frozen=True, slots=True)
class Touch(Generic[K]):
    """A request used chunks without reading them; any of the keys may be absent."""

    keys: tuple[K, ...]
    request: str


@dataclass(frozen=True, slots=True)
class RequestEnds:
    """A request is over. Its loads and stores may still complete afterwards."""

    request: str


@dataclass(frozen=True, slots=True)
class Reset:
    """The cache is emptied. Completions that are outstanding never arrive."""


@dataclass(frozen=True, slots=True)
class Evict(Generic[K]):
    """Somebody asks for `n` victims outside any store, as the interface allows.

    Attributes:
        n: 0 or more; may exceed what is eligible, or the capacity.
        protected: keys to keep, resident or not.
    """

    n: int
    protected: frozenset[K] = frozenset()


Event = (
    Lookup[K]
    | LoadStarts[K]
    | LoadEnds[K]
    | StoreOffered[K]
    | StoreSucceeds[K]
    | StoreFails[K]
    | Touch[K]
    | RequestEnds
    | Reset
    | Evict[K]
)


# --- Books ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting(Generic[K]):
    """What stays the same over a run.

    Attributes:
        edition: whose manager this is.
        capacity: the number of slots.
        group_of: the KV cache group of a key.
        position_of: the end token of a key in a request's prefix, None if it is not known.
    """

    edition: Edition
    capacity: int
    group_of: Callable[[K], int] = field(default=lambda key: 0)
    position_of: Callable[[str, K], int | None] = field(default=lambda request, key: None)


class Chunk(NamedTuple):
    """A resident chunk: its ref count (-1 pending, 0 idle, k > 0 pinned) and its slot."""

    ref_cnt: int
    slot: int


@dataclass(frozen=True, slots=True)
class Request(Generic[K]):
    """What the manager remembers of a request (from v0.31).

    Attributes:
        seen: every key it read or offered that was ready or absent then, in the order of sight.
        inserted: keys it stored.
        reused: keys it found ready and had not stored itself.
        missed: keys whose miss was reported to the policy.
        ended: whether `on_request_finished` was called.
        outdated: whether it began before the last reset and has read or offered nothing since;
            then no policy hears of its end.
    """

    seen: tuple[K, ...] = ()
    inserted: frozenset[K] = frozenset()
    reused: frozenset[K] = frozenset()
    missed: frozenset[K] = frozenset()
    ended: bool = False
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class State(Generic[K]):
    """The manager's books. Its mappings are never changed once they are in a state.

    Attributes:
        chunks: the residents.
        free: free slots, the one to be used next last.
        requests: the requests that have done anything yet.
    """

    chunks: Mapping[K, Chunk]
    free: tuple[int, ...]
    requests: Mapping[str, Request[K]]

    @property
    def idle(self) -> int:
        """The number of chunks with ref count 0, protected or not."""
        return sum(chunk.ref_cnt == 0 for chunk in self.chunks.values())

    def eligible(self, protected: frozenset[K] = frozenset()) -> frozenset[K]:
        """The keys that may be evicted: idle and not protected."""
        return frozenset(
            key for key, chunk in self.chunks.items() if chunk.ref_cnt == 0 and key not in protected
        )


def start(setting: Setting[K]) -> State[K]:
    """Return the books of an empty cache."""
    return State({}, tuple(reversed(range(setting.capacity))), {})


# --- Validity ------------------------------------------------------------------------------------


def objection(setting: Setting[K], state: State[K], event: Event[K]) -> str | None:
    """Say why no manager would issue `event` now, or None if one could.

    A suite that issues an event with an objection proves nothing about the policy.
    """
    keys: tuple[K, ...] = getattr(event, "keys", ())
    if len(keys) > 1 and len(set(keys)) != len(keys):
        return "a key stands twice in one call"
    request: Request[K] | None = state.requests.get(getattr(event, "request", ""))
    if request is not None and request.ended:
        return f"request {getattr(event, 'request', '')} has ended"
    chunks = state.chunks
    match event:
        case LoadStarts():
            for key in keys:
                if key not in chunks or chunks[key].ref_cnt < 0:
                    return f"{key!r} is not ready"
        case LoadEnds():
            for key in keys:
                if key not in chunks or chunks[key].ref_cnt < 1:
                    return f"{key!r} is not pinned"
        case StoreSucceeds() | StoreFails():
            for key in keys:
                if key not in chunks or chunks[key].ref_cnt >= 0:
                    return f"{key!r} is not pending"
        case RequestEnds():
            if not setting.edition.has_request_hooks:
                return f"no manager of {setting.edition} reports the end of a request"
            if request is not None and request.outdated:
                return f"request {event.request} did nothing since the last reset"
        case Reset():
            if not setting.edition.has_clear:
                return f"no manager of {setting.edition} can be reset"
        case Evict():
            if event.n < 0:
                return "n is negative"
    return None


# --- From an event to calls ----------------------------------------------------------------------

Steps = Generator[Call, Any, State[K]]


def perform(setting: Setting[K], state: State[K], event: Event[K]) -> Steps[K]:
    """Yield the calls that a manager makes for `event`, and return its books afterwards.

    Args:
        setting: edition, capacity, groups and positions.
        state: the books before.
        event: an event without `objection`.

    Yields:
        One call after the other; to an `evict` it must be sent the victims' keys, in the order
        in which they were returned, or None.
    """
    match event:
        case Lookup():
            return _lookup(state, event)
        case LoadStarts():
            return _load_starts(setting, state, event)
        case LoadEnds():
            return _load_ends(setting, state, event)
        case StoreOffered():
            return _store_offered(setting, state, event)
        case StoreSucceeds():
            return _store_succeeds(setting, state, event)
        case StoreFails():
            return _store_fails(state, event)
        case Touch():
            return _touch(setting, state, event)
        case RequestEnds():
            return _request_ends(setting, state, event)
        case Reset():
            return _reset(setting, state)
        case Evict():
            return _evict(state, event.n, event.protected)


def _lookup(state: State[K], event: Lookup[K]) -> Steps[K]:
    yield Call("get", (event.key,))
    return state


def _load_starts(setting: Setting[K], state: State[K], event: LoadStarts[K]) -> Steps[K]:
    marks, chunks = setting.edition.has_marks, dict(state.chunks)
    for key in event.keys:
        yield Call("get", (key,))
        ref_cnt, slot = chunks[key]
        if ref_cnt == 0 and marks:
            yield Call("mark_non_evictable", (key,))
        yield Call("set_ref_cnt", (key, ref_cnt + 1))
        chunks[key] = Chunk(ref_cnt + 1, slot)
    state = State(chunks, state.free, state.requests)
    if event.recorded:
        state = yield from _record(setting, state, event.request, event.keys, event.keys)
    return state


def _load_ends(setting: Setting[K], state: State[K], event: LoadEnds[K]) -> Steps[K]:
    marks, chunks = setting.edition.has_marks, dict(state.chunks)
    for key in event.keys:
        yield Call("get", (key,))
        ref_cnt, slot = chunks[key]
        yield Call("set_ref_cnt", (key, ref_cnt - 1))
        if ref_cnt == 1 and marks:
            yield Call("mark_evictable", (key,))
        chunks[key] = Chunk(ref_cnt - 1, slot)
    return State(chunks, state.free, state.requests)


def _store_offered(setting: Setting[K], state: State[K], event: StoreOffered[K]) -> Steps[K]:
    for key in event.keys:
        yield Call("get", (key,))
    absent = tuple(key for key in event.keys if key not in state.chunks)

    # A miss is reported once to each request, before anything is evicted or inserted.
    if setting.edition.has_request_hooks:
        pending = {key for key, chunk in state.chunks.items() if chunk.ref_cnt < 0}
        request = state.requests.get(event.request, Request())
        new_misses = tuple(key for key in absent if key not in request.missed)
        if new_misses:
            yield Call("on_store_miss", (new_misses, event.request))
        state = _with_request(
            state,
            event.request,
            replace(request, missed=request.missed | set(new_misses), outdated=False),
        )
        observed = tuple(key for key in event.keys if key not in pending)
        ready = tuple(key for key in observed if key in state.chunks)
        state = yield from _record(setting, state, event.request, observed, ready)
    if not absent:
        return state

    shortfall = len(absent) - len(state.free)
    if shortfall > 0:
        if setting.edition.counts_idle_chunks and shortfall > state.idle:
            return state  # refused without asking the policy
        resident = len(state.chunks)
        state = yield from _evict(state, shortfall, frozenset(event.keys))
        if len(state.chunks) == resident:
            return state  # refused by the policy

    chunks, free = dict(state.chunks), list(state.free)
    for key in absent:
        slot = free.pop()
        yield Call("insert", (key, slot, event.request))
        chunks[key] = Chunk(-1, slot)
    state = State(chunks, tuple(free), state.requests)
    if setting.edition.has_request_hooks:
        request = state.requests[event.request]
        state = _with_request(
            state, event.request, replace(request, inserted=request.inserted | set(absent))
        )
    return state


def _store_succeeds(setting: Setting[K], state: State[K], event: StoreSucceeds[K]) -> Steps[K]:
    marks, chunks = setting.edition.has_marks, dict(state.chunks)
    for key in event.keys:
        yield Call("get", (key,))
        yield Call("set_ref_cnt", (key, 0))
        if marks:
            yield Call("mark_evictable", (key,))
        chunks[key] = Chunk(0, chunks[key].slot)
    return State(chunks, state.free, state.requests)


def _store_fails(state: State[K], event: StoreFails[K]) -> Steps[K]:
    chunks, free = dict(state.chunks), list(state.free)
    for key in event.keys:
        yield Call("get", (key,))
        yield Call("remove", (key,))
        free.append(chunks.pop(key).slot)
    return State(chunks, tuple(free), state.requests)


def _touch(setting: Setting[K], state: State[K], event: Touch[K]) -> Steps[K]:
    yield Call("touch", (event.keys, event.request))
    if setting.edition.has_request_hooks:
        begun = state.requests.get(event.request, Request())
        state = _with_request(state, event.request, begun)
    return state


def _evict(state: State[K], n: int, protected: frozenset[K]) -> Steps[K]:
    victims = yield Call("evict", (n, protected))
    if not victims:
        return state
    chunks = dict(state.chunks)
    freed = tuple(chunks.pop(key).slot for key in victims)
    return State(chunks, state.free + freed, state.requests)


def _request_ends(setting: Setting[K], state: State[K], event: RequestEnds) -> Steps[K]:
    request: Request[K] = state.requests.get(event.request, Request())
    groups: dict[int, list[K]] = {}
    for key in request.seen:
        groups.setdefault(setting.group_of(key), []).append(key)
    ordered = tuple(
        tuple(by_position(groups[index], lambda key: setting.position_of(event.request, key)))
        for index in sorted(groups)
    )
    inserted_only = request.inserted - request.reused
    yield Call("on_request_finished", (ordered, inserted_only, request.reused, event.request))
    return _with_request(state, event.request, Request(ended=True))


def _reset(setting: Setting[K], state: State[K]) -> Steps[K]:
    yield Call("clear", ())
    outdated: dict[str, Request[K]] = {
        name: request if request.ended else Request(outdated=True)
        for name, request in state.requests.items()
    }
    empty = start(setting)
    return State(empty.chunks, empty.free, outdated)


def _record(
    setting: Setting[K], state: State[K], name: str, keys: tuple[K, ...], reused: tuple[K, ...]
) -> Steps[K]:
    """Note what a request used, and tell the policy what the request had not seen before."""
    if not setting.edition.has_request_hooks:
        return state
    request = state.requests.get(name, Request())
    new = tuple(key for key in keys if key not in request.seen)
    if new and setting.edition.has_request_access:
        yield Call("on_request_access", (new, name))
    # Reading what the request stored itself is no reuse.
    found = request.reused.union(key for key in reused if key not in request.inserted)
    request = replace(request, seen=request.seen + new, reused=found, outdated=False)
    return _with_request(state, name, request)


def _with_request(state: State[K], name: str, request: Request[K]) -> State[K]:
    return State(state.chunks, state.free, {**state.requests, name: request})
