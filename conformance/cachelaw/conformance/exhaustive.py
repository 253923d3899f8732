"""The exhaustive engine: every event in every state, at small scope.

The search goes breadth first over the states of the *oracle*: the manager's books and, where a
profile is claimed, the state of the reference. A policy can hide more than that. So each event of
each oracle state is run on the subject from the first m distinct snapshots of it that reach that
state, and afterwards the cache is emptied, so that every order shows. What breaks is found by a
shortest sequence of events, and what is not found is not there, in subjects that tell no more than
m histories apart for one state of the oracle.

A subject that offers `cachelaw_state()`, a value that says all that it knows, is searched as a
product: every pair of an oracle state and a state of the subject, however many there are. Lest a
subclass hide what its base does not tell, m snapshots are kept for each pair.

Snapshots are made by pickle, of subject, chunks and contexts together; else by deepcopy; else the
events are run again. On a sample it is checked that a snapshot goes on like the run it was made of.

Keys are interchangeable where neither positions nor groups play a part, unless the policy looks at
their bytes. Every path of a search of the smallest scope, run again with the keys exchanged, shows
whether it does.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import pickle
import re
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from cachelaw.conformance import flight
from cachelaw.conformance.contract import Breach, told
from cachelaw.conformance.explore.calls import ABSENT, Scope, settled
from cachelaw.conformance.explore.symmetry import NOWHERE, places, ranks, rename_core
from cachelaw.conformance.finding import Finding, Tally, lockstep_experiment
from cachelaw.conformance.instance import Instance
from cachelaw.conformance.lockstep import Answers, Lockstep
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace, rewritten
from cachelaw.conformance.twins import ASKING
from cachelaw.reference.editions import V033
from cachelaw.reference.lru import RankedOrder
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    Request,
    RequestEnds,
    Reset,
    State,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
)

SAMPLE, MORE_SAMPLES, EVERY = 32, 32, 8
"""How many snapshots are checked to be faithful: the first, and more of those that follow, of
every so many one."""

PLANS: dict[str, tuple[tuple[Scope, int, int], ...]] = {
    "quick": (
        (Scope(capacity=1, keys=2, requests=1, batch=1, pins=1), 4, 1_000),
        (Scope(capacity=2, keys=3, requests=1, batch=2, pins=1), 4, 2_000),
    ),
    "standard": (
        (Scope(capacity=1, keys=2, requests=1, batch=2, pins=1), 4, 6_000),
        (Scope(capacity=2, keys=3, requests=1, batch=2, pins=1), 4, 14_000),
    ),
    "deep": (
        (Scope(capacity=2, keys=3, requests=2, batch=2, pins=2), 16, 200_000),
        (Scope(capacity=2, keys=4, requests=1, batch=2, pins=1), 16, 150_000),
        (Scope(capacity=3, keys=4, requests=1, batch=2, pins=1), 16, 150_000),
    ),
}
"""For each budget, the scopes to search, with `m` and `limit`."""

NO_SNAPSHOTS = "none"

SMALLEST, SMALLEST_DEPTH, SMALLEST_PATHS = Scope(2, 2, requests=1, batch=2, pins=1), 4, 200
"""Where, to how many events, and on how many paths it is checked that keys are interchangeable."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """What a search found.

    Attributes:
        findings: of each broken clause the shortest trace met; `DIVERGED` stands for one where the
            subject left the reference. Marked `shortest` where no shorter trace shows anything.
        states: states of the oracle, those counted once that differ in the names of keys alone if
            `reduced`.
        transitions: events run on the subject.
        closed: whether every event was run in every state. If not, the search ended at its limit,
            or at a finding.
        m: how many snapshots of the subject were kept for each state of the oracle; of a subject
            that offers its state, for each pair of the two.
        snapshots: how they were made: `pickle`, `deepcopy`, `replay`; or `state`, if the subject
            offers its state; or `none`, if the subject does not come to the same point twice, so
            that nothing was searched.
        reduced: whether keys were taken to be interchangeable.
        depth: the number of events up to which every sequence was covered.
    """

    findings: tuple[Finding, ...]
    states: int
    transitions: int
    closed: bool
    m: int
    snapshots: str
    reduced: bool
    depth: int


def search(
    subject: Subject,
    scope: Scope,
    m: int,
    tally: Tally,
    limit: int,
    *,
    kinds: str | None = None,
) -> Exhausted:
    """Search a scope.

    Args:
        subject: the policy under test, compared with the reference if its profile has one. It must
            answer alike to the same calls: not one that declares itself randomized.
        scope: capacity, keys, and bounds.
        m: how many snapshots of the subject to go on from in each state of the oracle, 1 or more.
        tally: where to count; of clauses, how often their conditions were met.
        limit: the number of transitions after which the search gives up.
        kinds: the first letters of the requests' names, given out in turn, which say what they
            know of positions (`trace.REQUEST_KINDS`); None takes `rs` for the LRU of v0.33, in
            which positions play a part, else `u`.

    Raises:
        Unusable: the subject cannot be constructed.
    """
    if kinds is None:
        kinds = "rs" if subject.profile == "lru" and subject.edition >= V033 else "u"
    for maker in MAKERS:
        try:
            interchangeable = set(kinds) == {"u"} and scope.groups == 1
            reduced = interchangeable and _keys_are_alike(subject, m, limit, maker)
            return _Search(subject, scope, m, tally, limit, kinds, maker, reduced).run()
        except _Unfaithful:
            continue
        except _Unreadable as unreadable:
            plain = replace(subject, offers_state=False)
            done = search(plain, scope, m, tally, limit, kinds=kinds)
            return replace(done, findings=(*unreadable.findings, *done.findings))
    return Exhausted((), 0, 0, False, m, NO_SNAPSHOTS, False, 0)


def _keys_are_alike(subject: Subject, m: int, limit: int, maker: type[_Snapshots]) -> bool:
    """Search the smallest scope, and run each path again with its two keys exchanged."""
    small = _Search(subject, SMALLEST, m, Tally(Counter()), limit, "u", maker, reduced=False)
    small.most_depth = SMALLEST_DEPTH
    small.run()
    return all(
        small.answers(path)
        == [
            _exchanged(answers) for answers in small.answers(tuple(map(_with_keys_exchanged, path)))
        ]
        for path in small.paths[:SMALLEST_PATHS]
    )


def _with_keys_exchanged(event: Event) -> Event:
    return rewritten(event, keys=lambda keys: tuple(1 - key for key in keys))


def _exchanged(answers: Answers) -> Answers:
    return [victims and tuple(1 - key for key in victims) for victims in answers]


# --- Snapshots -----------------------------------------------------------------------------------


class _StateError(Exception):
    """A subject has not said its state; what was raised, in a few words."""


class _UnshowableError(Exception):
    """A subject has said its state in a form that cannot be gone through."""


class _Unreadable(Exception):
    """The state of a subject is nothing to search by.

    Args:
        findings: where it could not be asked, if that is why.
    """

    def __init__(self, *findings: Finding) -> None:
        super().__init__(*findings)
        self.findings = findings


class _Unfaithful(Exception):
    """Snapshots made in this way do not go on like what they were made of, or cannot be made."""


class _Snapshots(ABC):
    """A way to come back to a point of a run.

    Args:
        begin: begins a run.
    """

    name: str

    def __init__(self, begin: Callable[[], Lockstep]) -> None:
        self.begin = begin

    @abstractmethod
    def take(self, run: Lockstep, path: tuple[Event, ...]) -> Any:
        """Return a snapshot of a run that has come along `path`."""

    @abstractmethod
    def restored(self, snapshot: Any) -> Lockstep:
        """Return a run that goes on from a snapshot."""


class _Pickles(_Snapshots):
    name = "pickle"

    def take(self, run: Lockstep, path: tuple[Event, ...]) -> bytes:
        try:
            return pickle.dumps(run, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise _Unfaithful from error

    def restored(self, snapshot: Any) -> Lockstep:
        try:
            run: Lockstep = pickle.loads(snapshot)
        except Exception as error:
            raise _Unfaithful from error
        return run


class _Deepcopies(_Snapshots):
    name = "deepcopy"

    def take(self, run: Lockstep, path: tuple[Event, ...]) -> Lockstep:
        try:
            return copy.deepcopy(run)
        except Exception as error:
            raise _Unfaithful from error

    def restored(self, snapshot: Any) -> Lockstep:
        return self.take(snapshot, ())


class _Replays(_Snapshots):
    name = "replay"

    def take(self, run: Lockstep, path: tuple[Event, ...]) -> tuple[Event, ...]:
        return path

    def restored(self, snapshot: Any) -> Lockstep:
        run = self.begin()
        try:
            for event in snapshot:
                run.step(event)
                _settle(run, event)
        except Breach as breach:
            raise _Unfaithful from breach  # the same events, and another answer than before
        run.met.clear()
        return run


MAKERS: tuple[type[_Snapshots], ...] = (_Pickles, _Deepcopies, _Replays)


def _settle(run: Lockstep, event: Event) -> None:
    """Let go of a request that has ended: it will not be heard of again."""
    if isinstance(event, RequestEnds):
        name = event.request
        running = {n: request for n, request in run.state.requests.items() if n != name}
        run.state = replace(run.state, requests=running)
        for instance in _instances(run):
            instance.forget(name)


def _instances(run: Lockstep) -> Iterator[Instance]:
    yield run.instance
    if run.oracle is not None:
        yield run.oracle.instance


# --- The search ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    """Where the search goes on.

    Attributes:
        snapshot: of the run.
        books: the manager's.
        names: of the requests, in turn; one that ended has made way for another.
        path: the events that lead here.
    """

    snapshot: Any
    books: State[int]
    names: tuple[str, ...]
    path: tuple[Event, ...]


@dataclass
class _Search:
    """A search with one way to make snapshots."""

    subject: Subject
    scope: Scope
    m: int
    tally: Tally
    limit: int
    kinds: str
    maker: type[_Snapshots]
    reduced: bool
    most_depth: int | None = None
    transitions: int = 0
    kept: Counter[Any] = field(default_factory=Counter)
    """How many snapshots were kept for each state of the oracle, with the state that the subject
    offers, if it does."""
    states: set[Any] = field(default_factory=set)
    """The states of the oracle."""
    paths: list[tuple[Event, ...]] = field(default_factory=list)
    """The events that lead to what was kept."""
    found: dict[str, Finding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._trace = Trace(self.subject.edition, self.scope.capacity, (), self.scope.groups)
        self._seen: set[Any] = set()
        self._snapshots = self.maker(self._begun)
        self._taken = 0

    def _begun(self) -> Lockstep:
        return Lockstep(self.subject, self._trace.setting, self.subject.profile, thorough=True)

    def run(self) -> Exhausted:
        """Search until all is done, or the limit is reached, or something is found."""
        count = self.scope.requests if self.subject.edition.has_request_hooks else 1
        names = tuple(f"{self.kinds[at % len(self.kinds)]}{at + 1}" for at in range(count))
        run = self._begun()
        layer: list[_Node] = []
        self._arrive(run, names, (), layer)
        depth, closed = 0, False
        while not closed and depth != self.most_depth and depth + 1 < self._shortest:
            following: list[_Node] = []
            for node in layer:
                for event in _alphabet(node, self.scope, self._trace):
                    if self.transitions >= self.limit:
                        return self._result(depth, closed=False)
                    self._go(node, event, following)
            layer = following
            depth += 1
            closed = not layer
        return self._result(depth, closed=closed and not self.found)

    @property
    def _shortest(self) -> float:
        lengths = [len(finding.trace.events) for finding in self.found.values()]
        return min(lengths, default=float("inf"))

    def _result(self, depth: int, *, closed: bool) -> Exhausted:
        findings = (
            replace(one, shortest=len(one.trace.events) <= depth + 1) for one in self.found.values()
        )
        return Exhausted(
            tuple(sorted(findings, key=lambda one: len(one.trace.events))),
            len(self.states),
            self.transitions,
            closed,
            self.m,
            "state" if self.subject.offers_state else self.maker.name,
            self.reduced,
            depth,
        )

    def _go(self, node: _Node, event: Event, following: list[_Node]) -> None:
        """Run one event from one snapshot."""
        self.transitions += 1
        run = self._snapshots.restored(node.snapshot)
        path = (*node.path, event)
        flight.recorder.begin("lockstep", None, self._trace.with_events(path))
        if self._breaks(run, event, path):
            return
        names = node.names
        if isinstance(event, RequestEnds):
            latest = max(int(name[1:]) for name in names)
            names = tuple(
                f"{name[0]}{latest + 1}" if name == event.request else name for name in names
            )
        _settle(run, event)
        self._arrive(run, names, path, following)

    def _arrive(
        self, run: Lockstep, names: tuple[str, ...], path: tuple[Event, ...], layer: list[_Node]
    ) -> None:
        """Look at a run that has come along a path; keep it, if it is one to go on from."""
        marks = _marks(run, names, self.scope.keys)
        try:
            offered, known = _known(run, names, self.subject.offers_state)
        except _StateError as error:
            trace = self._trace.with_events(path)
            actual = f"cachelaw_state raised {error}"
            raise _Unreadable(Finding(ASKING, trace, "a state", actual, "twin")) from error
        except _UnshowableError as error:
            raise _Unreadable from error
        new = tuple(range(self.scope.keys))
        if self.reduced:
            # Keys that the oracle cannot tell apart go in the order in which the subject has them.
            new = ranks([(mark, known.find(f"<{key}>")) for key, mark in enumerate(marks)])
            offered, known = (
                re.sub("<([0-9]+)>", lambda named: f"<{new[int(named[1])]}>", text)
                for text in (offered, known)
            )
        state = _oracle_state(run, names, new)
        pair = (state, _digest(offered) if self.subject.offers_state else None)
        both = (pair, _digest(known))
        if both in self._seen:
            return
        self._seen.add(both)
        self.states.add(state)
        if self.kept[pair] < self.m:
            self.kept[pair] += 1
            snapshot = self._snapshots.take(run, path)
            layer.append(_Node(snapshot, run.state, names, path))
            self.paths.append(path)
            self._check(layer[-1])
        self._probe(run, path)

    def _probe(self, run: Lockstep, path: tuple[Event, ...]) -> None:
        """Empty the cache, so that every order shows."""
        for event in run.drain():
            path = (*path, event)
            if self._breaks(run, event, path):
                return

    def _breaks(self, run: Lockstep, event: Event, path: tuple[Event, ...]) -> bool:
        """Let an event happen; keep what it breaks, and say whether it broke anything."""
        self.tally.events += 1
        steps, fatal = run.steps, list[Breach]()
        try:
            run.step(event)
        except Breach as caught:
            fatal.append(caught)
        breaches = [*run.witness.refusals, *fatal]
        self.tally.calls += run.steps - steps
        self.tally.met.update(run.met)
        run.met.clear()
        for breach in breaches:
            self._keep(breach, path)
        return bool(breaches)

    def _keep(self, breach: Breach, path: tuple[Event, ...]) -> None:
        """Keep a finding, if it is the first of its clause or shorter, and shows again."""
        known = self.found.get(breach.clause)
        if known is not None and len(known.trace.events) <= len(path):
            return
        trace = self._trace.with_events(path)
        finding = Finding(breach.clause, trace, breach.expected, breach.actual)
        again = lockstep_experiment(self.subject)(trace)
        shown = any(one.clause == finding.clause and one.trace == trace for one in again)
        if not shown and self.maker is not _Replays:
            raise _Unfaithful
        self.found[breach.clause] = finding

    def _check(self, node: _Node) -> None:
        """Now and then, see whether a snapshot goes on like the run it was made of."""
        self._taken += 1
        beyond = self._taken - SAMPLE
        if beyond > 0 and (beyond % EVERY or beyond > MORE_SAMPLES * EVERY):
            return
        gone_on = _drained(self._snapshots.restored(node.snapshot))
        if gone_on != self.answers(node.path) and self.maker is not _Replays:
            raise _Unfaithful

    def answers(self, path: tuple[Event, ...]) -> list[Answers]:
        """Run a path on a new subject and empty the cache; return what that was answered."""
        try:
            return _drained(_Replays(self._begun).restored(path))
        except Breach:
            return []


def _drained(run: Lockstep) -> list[Answers]:
    """Empty the cache; return what was answered, up to a breach."""
    answers: list[Answers] = []
    for event in run.drain():
        try:
            answers.append(run.step(event))
        except Breach:
            break
    return answers


# --- What can happen -----------------------------------------------------------------------------


def _alphabet(node: _Node, scope: Scope, trace: Trace) -> Iterator[Event]:
    """Yield the events of the scope that a manager could issue, the simplest first."""
    for event in _events(node, scope, trace):
        if objection(trace.setting, node.books, event) is None:
            yield event


def _events(node: _Node, scope: Scope, trace: Trace) -> Iterator[Event]:
    edition = trace.edition
    keys = range(scope.keys)
    refs = {key: chunk.ref_cnt for key, chunk in node.books.chunks.items()}
    idle = [key for key in keys if refs.get(key) == 0]
    pending = [key for key in keys if refs.get(key) == -1]
    pinned = [key for key in keys if refs.get(key, 0) > 0]
    may_load = [key for key in keys if 0 <= refs.get(key, ABSENT) < scope.pins]
    recorded = (True, False) if edition.has_request_hooks else (True,)

    def batches(some: Any) -> Iterator[tuple[int, ...]]:
        for size in range(1, min(len(some), scope.batch) + 1):
            yield from permutations(some, size)

    for name in node.names:
        yield from (StoreOffered(batch, name) for batch in batches(keys))
    yield from map(StoreSucceeds, batches(pending))
    yield from (Touch(batch, node.names[0]) for batch in batches(keys))
    yield from map(Evict, range(len(idle) + 2))
    if len(idle) > 1:
        yield from (Evict(1, frozenset((key,))) for key in idle)
        yield Evict(len(idle), frozenset(idle[:1]))
    for counts in recorded:
        # Whose load it is matters only if it is recorded.
        for name in node.names if counts else node.names[:1]:
            yield from (LoadStarts(batch, name, counts) for batch in batches(may_load))
    yield from map(LoadEnds, batches(pinned))
    for size in range(1, scope.batch + 1):
        yield from map(StoreFails, combinations(pending, size))
    yield from map(RequestEnds, node.names)
    yield from map(Lookup, keys)
    yield Reset()


# --- What tells states apart ---------------------------------------------------------------------

UNBEGUN: Request[int] = Request()


def _requests(run: Lockstep, names: tuple[str, ...]) -> list[Request[int]]:
    """Return what the books say of the requests, without what makes no difference.

    At a request's end its keys are sorted by their positions, where it knows them, and what is
    reused counts as that alone.
    """
    requests = []
    for name in names:
        request = run.state.requests.get(name, UNBEGUN)
        seen = tuple(sorted(request.seen)) if name[0] in "rs" else request.seen
        inserted = request.inserted - request.reused
        requests.append(replace(request, seen=seen, inserted=inserted))
    return requests


def _lists(core: Any) -> tuple[tuple[int, ...], ...]:
    """Return the lists of the reference's state, which tell keys apart."""
    if isinstance(core, RankedOrder):
        return (tuple(key for _, key in core.entries),)
    return places(core)


def _marks(run: Lockstep, names: tuple[str, ...], keys: int) -> list[tuple[int, ...]]:
    """Return what the oracle knows of each key; keys with equal marks are alike to it."""
    where: dict[int, int] = {}
    if run.oracle is not None:
        lists = _lists(run.oracle.policy.state)
        where = {key: at for at, key in enumerate(key for keys in lists for key in keys)}
    requests = _requests(run, names)
    marks = []
    for key in range(keys):
        chunk = run.state.chunks.get(key)
        mark = [ABSENT if chunk is None else chunk.ref_cnt, where.get(key, NOWHERE)]
        for request in requests:
            mark.append(request.seen.index(key) if key in request.seen else NOWHERE)
            mark += [key in request.inserted, key in request.reused, key in request.missed]
        marks.append(tuple(mark))
    return marks


def _oracle_state(run: Lockstep, names: tuple[str, ...], new: tuple[int, ...]) -> Any:
    """Return the manager's books and the reference's state, with new names for the keys.

    Slots are left out, and what a request that has ended did: nobody looks at them again.
    """
    refs = [ABSENT] * len(new)
    for key, chunk in run.state.chunks.items():
        refs[new[key]] = chunk.ref_cnt

    def renamed(some: Any) -> frozenset[int]:
        return frozenset(new[key] for key in some)

    requests = tuple(
        (
            tuple(new[key] for key in request.seen),
            renamed(request.inserted),
            renamed(request.reused),
            renamed(request.missed),
            request.outdated,
        )
        for request in _requests(run, names)
    )
    if run.oracle is None:
        return tuple(refs), requests
    policy, contexts = run.oracle.policy, run.oracle.instance._contexts
    memories = tuple(
        policy.recall(contexts[name]) if name in contexts and hasattr(policy, "recall") else None
        for name in names
    )
    core, _, memories = settled(policy.state, (), memories)
    if isinstance(core, RankedOrder):
        core = replace(core, entries=tuple((rank, new[key]) for rank, key in core.entries))
    else:
        core = rename_core(core, new)
    return tuple(refs), requests, core, memories


def _known(run: Lockstep, names: tuple[str, ...], offered: bool) -> tuple[str, str]:
    """Return what the subject offers as its state, and all that it knows, as text.

    To both belongs what it has left with running requests. Keys stand as `<number>`; slots and
    positions are left out.
    """
    instance = run.instance
    policy = instance.policy
    left = [(context and context._state) or None for context in map(instance._contexts.get, names)]
    texts = []
    for what in (_state_of(policy) if offered else None, policy):
        described = _Description(instance, names)
        described.called[id(policy)] = "policy"
        if what is policy:
            described.take_apart(policy)
        else:
            try:
                described.take_in(what)
            except Exception as error:
                raise _UnshowableError from error
        described.take_in(left)
        texts.append(" ".join(described.words))
    return texts[0], texts[1]


def _state_of(policy: Any) -> Any:
    try:
        return policy.cachelaw_state()
    except (Exception, SystemExit) as error:
        raise _StateError(told(error)) from error


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class _Description:
    """Objects as text, equal if they hold equal things in equal order and shape.

    Args:
        instance: whose keys, chunks and contexts are called by name.
        names: the running requests.
    """

    def __init__(self, instance: Instance, names: tuple[str, ...]) -> None:
        self.words: list[str] = []
        self.called: dict[int, str] = {}
        self._decode = instance.codec.decode
        self._roles = {name: f"request{at}" for at, name in enumerate(names)}
        self._alive: list[Any] = []
        for key, chunk in instance.chunks.items():
            self.called[id(chunk)] = f"chunk<{key}>"
        for name, context in instance._contexts.items():
            self.called[id(context)] = self._roles.get(name, "over")

    def take_in(self, one: Any) -> None:
        """Add the words for one object."""
        if isinstance(one, bytes):
            key = self._decode(one)
            self.words.append(repr(one) if key is None else f"<{key}>")
        elif isinstance(one, str):
            self.words.append(self._roles.get(one) or repr(one))
        elif one is None or isinstance(one, int | float | complex):
            self.words.append(repr(one))
        elif isinstance(one, type | ModuleType | BuiltinFunctionType):
            self.words.append(one.__name__)
        elif id(one) in self.called:
            self.words.append(self.called[id(one)])
        elif type(one) in (tuple, frozenset):
            self._enter(one)  # which of two equal ones it is makes no difference
        else:
            self.called[id(one)] = f"@{len(self.called)}"
            self._alive.append(one)  # lest another object take its identity
            self._enter(one)

    def _enter(self, one: Any) -> None:
        kind = type(one)
        self.words.append(f"{kind.__name__}(")
        if kind in (list, tuple, deque):
            for item in one:
                self.take_in(item)
        elif kind in (set, frozenset):
            self._unordered(one)
        elif kind is dict:
            for item in one.items():
                self.take_in(item[0])
                self.take_in(item[1])
        elif kind is FunctionType:
            self.words.append(one.__qualname__)
            self.take_in([cell.cell_contents for cell in one.__closure__ or ()])
        elif kind is itertools.count:
            self.words.append(repr(one))
        elif kind in _LOCKS:
            pass  # held by nobody between calls
        else:
            self.take_apart(one)
        self.words.append(")")

    def _unordered(self, some: Any) -> None:
        """Add the words for what has no order, in the order of the words."""
        outside, parts = self.words, []
        for item in some:
            self.words = []
            self.take_in(item)
            parts.append(" ".join(self.words))
        self.words = [*outside, *sorted(parts)]

    def take_apart(self, one: Any) -> None:
        """Add the words for what an object is made of: attributes, items, and what only C sees."""
        kind = type(one)
        own = getattr(one, "__dict__", None)
        slots = [name for base in kind.__mro__ for name in _slots(base)]
        self.take_in(own)
        for name in slots:
            self.take_in(getattr(one, name, None))
        if isinstance(one, list | tuple | set | frozenset):
            self.take_in(list(one) if isinstance(one, list | tuple) else set(one))
        elif isinstance(one, dict):
            self.take_in(dict(one))
        # An object's own way to be pickled may leave something out, so it is only asked besides.
        reduces = any("__reduce__" in vars(base) for base in kind.__mro__[:-1])
        if reduces or (own is None and not slots):
            try:
                parts = one.__reduce_ex__(4)
            except Exception:
                # Nothing is known of it: it is like no other, and a state of its own.
                parts = f"at {id(one)}"
            if isinstance(parts, tuple):
                parts = [list(part) if isinstance(part, Iterator) else part for part in parts]
            self.take_in(parts)


def _slots(kind: type) -> Iterator[str]:
    """Yield the names by which the slots of a class are found."""
    slots = vars(kind).get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        private = name.startswith("__") and not name.endswith("__")
        if name not in ("__dict__", "__weakref__"):
            yield f"_{kind.__name__.lstrip('_')}{name}" if private else name
