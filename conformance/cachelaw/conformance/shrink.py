"""Shrinking: from a trace that shows a broken clause to one that shows little else.

First delta debugging: leave out events, then keys, merge what can be merged, lower the capacity,
as long as the same clause stays broken. Then, for what is left, a breadth-first search over all
traces of the same kinds of events at the same scope, which either finds a shorter one or shows
that there is none.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from math import perm
from typing import Generic, Protocol, TypeVar

from cachelaw.conformance import flight
from cachelaw.conformance.any_trace import AnyTrace
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.finding import Experiment, Finding
from cachelaw.conformance.lockstep import Lockstep
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace, keys_of, request_of, rewritten
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    Setting,
    State,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
)

MOST_EVENTS = 60_000
"""Events performed after which delta debugging stops."""

MOST_TRANSITIONS = 30_000
"""Events performed after which the breadth-first search gives up."""

FOREIGN_SHARE = 20
"""By what both are divided for a subject behind a pipe, where every call costs a round trip."""


T = TypeVar("T", bound=AnyTrace)


class Reducer(ABC, Generic[T]):
    """Makes one finding shorter by delta debugging, whatever its trace is a run of.

    Args:
        experiment: finds it again.
        finding: what was found.
        foreign: whether the subject is behind a pipe.
    """

    def __init__(
        self,
        experiment: Callable[[T], list[Finding[T]]],
        finding: Finding[T],
        *,
        foreign: bool = False,
    ) -> None:
        self._experiment = experiment
        self._most = MOST_EVENTS // (FOREIGN_SHARE if foreign else 1)
        self._spent = 0
        self.best = finding

    def reduce(self) -> Finding[T]:
        """Return the finding on a trace that cannot be made shorter step by step."""
        self._try(self.best.trace)  # cuts off what comes after the breach
        before: T | None = None
        while before != self.best.trace and self._spent < self._most:
            before = self.best.trace
            self._simplify()
        return self.best

    @abstractmethod
    def _simplify(self) -> None:
        """Try every way to make the best trace simpler, once."""

    @abstractmethod
    def _weight(self, trace: T) -> tuple[int, ...]:
        """Return what is to become small, the most important first."""

    def _try(self, trace: T) -> bool:
        """Keep `trace` if it shows the same clause broken and is simpler than the best."""
        first = self._spent == 0
        if self._spent >= self._most:
            return False
        self._spent += len(trace.events) + 1
        for found in self._experiment(trace):
            if found.clause == self.best.clause:
                if not first and self._weight(found.trace) >= self._weight(self.best.trace):
                    return False
                self.best = found
                return True
        return False

    def _without_events(self) -> None:
        size = len(self.best.trace.events)
        while size >= 1:
            at = 0
            while at < len(self.best.trace.events):
                events = self.best.trace.events
                if not self._try(self.best.trace.with_events(events[:at] + events[at + size :])):
                    at += size
            size //= 2


class Shrinker(Reducer[Trace]):
    """Makes a finding on a policy shorter."""

    def _simplify(self) -> None:
        self._without_events()
        self._without_keys()
        self._merged()
        self._at_smaller_scope()
        self._with_plain_names()

    def _weight(self, trace: Trace) -> tuple[int, ...]:
        """Return events, keys named, scope, numbers asked for, names."""
        return (
            len(trace.events),
            sum(len(tuple(keys_of(event))) for event in trace.events),
            trace.capacity,
            trace.groups,
            sum(event.n for event in trace.events if isinstance(event, Evict)),
            len({request_of(event) for event in trace.events}),
            sum(key for event in trace.events for key in keys_of(event)),
            sum(_plainness(request_of(event)) for event in trace.events),
        )

    def _without_keys(self) -> None:
        for key in self.best.trace.keys:
            self._try_each(lambda event, key=key: _without(event, key))  # type: ignore[misc]
        at = 0
        while at < len(self.best.trace.events):
            for key in tuple(keys_of(self.best.trace.events[at])):
                if at < len(self.best.trace.events):
                    self._try_at(at, _without(self.best.trace.events[at], key))
            at += 1
        for at, event in enumerate(self.best.trace.events):
            if isinstance(event, Evict):
                for n in range(event.n):
                    if self._try_at(at, Evict(n, event.protected)):
                        break

    def _merged(self) -> None:
        """Join two events of one kind, so that one batch does for two."""
        first = 0
        while first < len(self.best.trace.events):
            second = first + 1
            while second < len(self.best.trace.events):
                events = self.best.trace.events
                joined = _joined(events[first], events[second])
                rest = events[first + 1 : second] + events[second + 1 :]
                if joined is None or not (
                    self._try(self.best.trace.with_events((*events[:first], joined, *rest)))
                    or self._try(
                        self.best.trace.with_events(
                            (
                                *events[:first],
                                *events[first + 1 : second],
                                joined,
                                *events[second + 1 :],
                            )
                        )
                    )
                ):
                    second += 1
            first += 1

    def _at_smaller_scope(self) -> None:
        for capacity in range(1, self.best.trace.capacity):
            if self._try(replace(self.best.trace, capacity=capacity)):
                break
        for groups in range(1, self.best.trace.groups):
            if self._try(replace(self.best.trace, groups=groups)):
                break

    def _with_plain_names(self) -> None:
        """Number keys and requests from 1, in the order in which they appear."""
        seen = dict.fromkeys(key for event in self.best.trace.events for key in keys_of(event))
        number = {key: at for at, key in enumerate(seen, 1)}
        self._try_each(
            lambda event: rewritten(event, keys=lambda keys: tuple(number[key] for key in keys))
        )
        for name in dict.fromkeys(map(request_of, self.best.trace.events)):
            for plain in ("u1", "u2", "r1", "r2"):
                if name is None or name == plain:
                    break
                if self._try_each(
                    lambda event, old=name, new=plain: rewritten(  # type: ignore[misc]
                        event, request=lambda other: new if other == old else other
                    )
                ):
                    break

    def _try_each(self, change: Callable[[Event], Event | None]) -> bool:
        changed = (change(event) for event in self.best.trace.events)
        return self._try(self.best.trace.with_events([e for e in changed if e is not None]))

    def _try_at(self, at: int, event: Event | None) -> bool:
        events = self.best.trace.events
        put = () if event is None else (event,)
        return self._try(self.best.trace.with_events((*events[:at], *put, *events[at + 1 :])))


def _plainness(name: str | None) -> int:
    return 0 if name is None else 100 * "ursm".index(name[0]) + len(name)


def _without(event: Event, key: int) -> Event | None:
    if isinstance(event, Lookup):
        return None if event.key == key else event
    changed = rewritten(event, keys=lambda keys: tuple(k for k in keys if k != key))
    if isinstance(event, Evict | RequestEnds | Reset) or any(True for _ in keys_of(changed)):
        return changed
    return None


def _joined(first: Event, second: Event) -> Event | None:
    if type(first) is not type(second) or request_of(first) != request_of(second):
        return None
    if isinstance(first, Evict) and isinstance(second, Evict):
        return Evict(first.n + second.n, first.protected | second.protected)
    if isinstance(first, Lookup | RequestEnds | Reset):
        return None
    more = tuple(keys_of(second))
    if set(more) & set(keys_of(first)):
        return None
    return rewritten(first, keys=lambda keys: keys + more)


# --- Breadth first -------------------------------------------------------------------------------


def shortest(subject: Subject, finding: Finding, experiment: Experiment) -> Finding:
    """Search breadth first for a trace shorter than the finding's, at the finding's scope.

    The search knows the kinds of events that occur in the trace, its keys, its requests, its
    capacity and its batch sizes.

    Args:
        subject: the policy under test.
        finding: what was found in lockstep.
        experiment: finds it again.

    Returns:
        The finding on the shortest trace, marked `shortest`; the finding as it was if a state of
        the subject cannot be copied or the search would take too long.
    """
    first = Lockstep(subject, finding.trace.setting, subject.profile)
    return shortest_from(first, finding, experiment, _breaks, foreign=subject.foreign)


class Run(Protocol):
    """A run in progress, which can be pickled: a `Lockstep`, or what is driven like one."""

    met: Counter[str]
    steps: int

    @property
    def setting(self) -> Setting[int]:
        """Edition, capacity, groups and positions."""

    @property
    def state(self) -> State[int]:
        """The manager's books."""


R = TypeVar("R", bound=Run)


def shortest_from(
    first: R,
    finding: Finding,
    experiment: Experiment,
    breaks: Callable[[R, Event], bool],
    *,
    foreign: bool = False,
) -> Finding:
    """Search as `shortest` does, in runs of any kind.

    Args:
        first: a run in which nothing has happened yet.
        finding: what was found.
        experiment: finds it again.
        breaks: lets an event happen in a run, and says whether something is found then.
        foreign: whether a subject is behind a pipe.
    """
    trace = finding.trace
    most = MOST_TRANSITIONS // (FOREIGN_SHARE if foreign else 1)
    longest = max((len(tuple(keys_of(event))) for event in trace.events), default=0)
    if sum(perm(len(trace.keys), size) for size in range(1, longest + 1)) > most:
        return finding  # more batches than could be tried
    alphabet = tuple(_alphabet(trace))
    # Keys that differ in nothing are given out in turn: any other trace is this one renamed.
    interchangeable = trace.groups == 1 and not any(
        name is not None and name[0] != "u" for name in map(request_of, trace.events)
    )
    start = _copied(first)
    if start is None:
        return finding
    layer: list[tuple[bytes, tuple[Event, ...]]] = [(start, ())]
    seen = {start}
    transitions = 0
    for _ in range(len(trace.events) - 1):
        next_layer: list[tuple[bytes, tuple[Event, ...]]] = []
        for snapshot, path in layer:
            for event in alphabet:
                if interchangeable and not _in_turn(path, event):
                    continue
                run: R = pickle.loads(snapshot)
                if objection(run.setting, run.state, event) is not None:
                    continue
                transitions += 1
                if transitions > most:
                    return finding
                flight.recorder.begin("lockstep", None, trace.with_events((*path, event)))
                if breaks(run, event):
                    candidate = trace.with_events((*path, event))
                    for found in experiment(candidate):
                        if found.clause == finding.clause:
                            return replace(found, shortest=True)
                    continue
                after = _copied(run)
                if after is None:
                    return finding
                if after not in seen:
                    seen.add(after)
                    next_layer.append((after, (*path, event)))
        layer = next_layer
    return replace(finding, shortest=True)


def _copied(run: Run) -> bytes | None:
    """Return a run as bytes, with subject, chunks and contexts together; None if it cannot be."""
    run.met.clear()
    run.steps = 0
    try:
        return pickle.dumps(run)
    except Exception:
        return None


def _in_turn(path: tuple[Event, ...], event: Event) -> bool:
    """Whether each key of `event` that no earlier event names is the least such key."""
    known = max((key for earlier in path for key in keys_of(earlier)), default=0)
    for key in keys_of(event):
        if key > known + 1:
            return False
        known = max(known, key)
    return True


def _breaks(run: Lockstep, event: Event) -> bool:
    try:
        run.step(event)
    except Breach:
        return True
    return bool(run.witness.refusals)


def _alphabet(trace: Trace) -> Iterator[Event]:
    """Yield every event of the kinds that occur in a trace, at its scope."""
    kinds = {type(event) for event in trace.events}
    keys = trace.keys
    requests = sorted({name for name in map(request_of, trace.events) if name is not None})
    longest = max((len(tuple(keys_of(event))) for event in trace.events), default=0)
    batches = [b for size in range(1, longest + 1) for b in permutations(keys, size)]
    sets = [b for size in range(1, longest + 1) for b in combinations(keys, size)]
    for batch in batches:
        for request in requests:
            if StoreOffered in kinds:
                yield StoreOffered(batch, request)
            if Touch in kinds:
                yield Touch(batch, request)
        if StoreSucceeds in kinds:
            yield StoreSucceeds(batch)
    for some in sets:
        if LoadStarts in kinds:
            for request in requests:
                yield LoadStarts(some, request)
                yield LoadStarts(some, request, recorded=False)
        if LoadEnds in kinds:
            yield LoadEnds(some)
        if StoreFails in kinds:
            yield StoreFails(some)
    if RequestEnds in kinds:
        yield from (RequestEnds(request) for request in requests)
    if Lookup in kinds:
        yield from (Lookup(key) for key in keys)
    if Reset in kinds:
        yield Reset()
    if Evict in kinds:
        most = max(event.n for event in trace.events if isinstance(event, Evict))
        protecting = any(isinstance(event, Evict) and event.protected for event in trace.events)
        for n in range(most + 1):
            yield Evict(n)
            if protecting and n:
                yield from (Evict(n, frozenset(some)) for some in sets)
