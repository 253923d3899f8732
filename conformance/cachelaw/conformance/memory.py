"""The law of memory: what a policy retains does not grow with the length of its life.

A program of one kind of event is repeated on a small cache, with keys never seen before where that
kind of event brings some, and now and then the size of all that can be reached from the policy is
added up. Beyond what was there at first, it may be larger in the second half of the run than ever
in the first by a constant alone. A ratio to the residents would be wrong: a lazy heap may hold
64 records for 4 chunks.

A policy may let waste pile up to some number before it tidies up. So what still grows in the
second half is watched over a run `CONFIRMED_BY` times as long. A bound that is not reached there,
after thousands of events with a cache of four chunks, counts as none.

Reachable is what attributes, containers, closures, default arguments and the class's own
attributes lead to, and the globals that its methods name. Buffers of numpy and torch are counted by
their bytes. What requests hold is the requests', and released with them, so their contexts count
as one small object each. What is not seen: memory that compiled code keeps for itself. A policy
whose residents cannot be reached keeps its books in such memory, and cannot be judged.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.instance import Codec
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.conformance.unjudged import Measured, Stray, Unjudged
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import Edition
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
)

CLAUSE = "memory/bounded-by-residents"

CAPACITY = 4

ROUNDS = 400
"""How often a program is repeated."""

CONFIRMED_BY = 8
"""How many times as long a run is that confirms what a shorter one seems to show."""

SAMPLES = 100
"""How often the size is taken over a run, evenly spread."""

MUCH = 50_000
"""Objects from which on a policy is looked at less often."""

ALLOWANCE = 128
"""Bytes that the second half may add: less than one for each of its rounds."""

LEAST_RATIO = 1.25
"""The least ratio of the halves that confirms growth: what is tidied up now and then is seen at
different heights by chance, what grows steadily comes near 2."""

LEAST_GROWTH = 4096
"""Bytes below which the ratio of the halves says nothing."""


# --- What a policy retains -----------------------------------------------------------------------


def retained(policy: Any) -> tuple[int, set[int]]:
    """Add up the sizes of all objects that can be reached from a policy, each once.

    Returns:
        Bytes, and the identities of the objects that were reached.
    """
    seen: set[int] = set()
    size = 0
    own = {base.__module__ for base in type(policy).__mro__}
    waiting = [policy, *_of_its_class(type(policy))]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _NOT_ITS_OWN):
            continue
        seen.add(id(one))
        if isinstance(one, ReqContext):
            size += SIZE_OF_CONTEXT
        elif isinstance(one, FunctionType):
            waiting += _of_function(one, one.__module__ in own)
        else:
            size += _size(one)
            waiting += gc.get_referents(one)
            base = getattr(one, "base", None) if type(one).__module__ == "numpy" else None
            waiting += [] if base is None else [base]
    return size, seen


SIZE_OF_CONTEXT = 64
"""Bytes that a request's context counts for, however much the request has left in it."""

_NOT_ITS_OWN = (
    type,
    ModuleType,
    CodeType,
    FrameType,
    BuiltinFunctionType,
    logging.Logger,
    logging.Manager,
)
"""What a policy refers to and does not retain, or what would lead to the whole interpreter."""


def _size(one: Any) -> int:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(one, torch.Tensor):
        return int(one.untyped_storage().nbytes())
    try:
        return sys.getsizeof(one, 0)
    except Exception:  # whatever somebody's __sizeof__ does
        return object.__sizeof__(one)


def _of_its_class(kind: type) -> Iterator[Any]:
    """Yield what a policy's class, and those it derives from, hold for all their instances."""
    for base in kind.__mro__:
        if base.__module__ not in ("builtins", "abc", "typing"):
            yield from (
                value for name, value in vars(base).items() if name not in ("__dict__", "__doc__")
            )


def _of_function(function: FunctionType, own: bool) -> Iterator[Any]:
    """Yield what a function holds: closure, defaults, attributes; of `own`, globals it names."""
    yield from function.__closure__ or ()
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    if own:
        named = function.__code__.co_names
        yield from (function.__globals__[name] for name in named if name in function.__globals__)


# --- Programs ------------------------------------------------------------------------------------

Round = Callable[[int], Iterator[Event]]
"""From the number of a round to what happens in it."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A program that is repeated.

    Attributes:
        name: what happens in it, as reports say it.
        before: what happens first, once.
        round: what is repeated; a request that begins in a round does nothing after it.
        since: what the edition must have for the program to make sense.
    """

    name: str
    before: tuple[Event, ...]
    round: Round
    since: Callable[[Edition], bool] = lambda edition: True

    def trace(self, edition: Edition, rounds: int) -> Trace:
        """Return a run of the program."""
        events = [*self.before, *(event for at in range(rounds) for event in self.round(at))]
        return Trace(edition, CAPACITY, tuple(events))


KEYS = tuple(range(CAPACITY))
FULL = (StoreOffered(KEYS, "u1"), StoreSucceeds(KEYS))


def _fresh(at: int, count: int = 2) -> tuple[int, ...]:
    """Return keys that no other round knows."""
    return tuple(range(CAPACITY + at * count, CAPACITY + (at + 1) * count))


def _touch(at: int) -> Iterator[Event]:
    yield Touch((at % CAPACITY,), "u1")


def _touch_busy(at: int) -> Iterator[Event]:
    yield Touch((at % CAPACITY,), "u2")


def _touch_in_requests(at: int) -> Iterator[Event]:
    yield Touch((at % CAPACITY, (at + 1) % CAPACITY), f"r{at}")


def _touch_strangers(at: int) -> Iterator[Event]:
    yield Touch(_fresh(at), "u1")


def _look_up(at: int) -> Iterator[Event]:
    yield Lookup(at % CAPACITY)
    yield Lookup(_fresh(at)[0])


def _load(at: int) -> Iterator[Event]:
    yield LoadStarts((at % CAPACITY,), "u1")
    yield LoadEnds((at % CAPACITY,))


def _load_in_requests(at: int) -> Iterator[Event]:
    yield LoadStarts(KEYS, f"r{at}")
    yield LoadEnds(KEYS)
    yield RequestEnds(f"r{at}")


def _load_unrecorded(at: int) -> Iterator[Event]:
    yield LoadStarts((at % CAPACITY,), "r1", recorded=False)
    yield LoadEnds((at % CAPACITY,))


def _fail(at: int) -> Iterator[Event]:
    yield StoreOffered(_fresh(at), "u1")
    yield StoreFails(_fresh(at))


def _fail_again(at: int) -> Iterator[Event]:
    yield StoreOffered(KEYS[:2], "u1")
    yield StoreFails(KEYS[:2])


def _fail_in_requests(at: int) -> Iterator[Event]:
    yield StoreOffered(_fresh(at), f"r{at}")
    yield RequestEnds(f"r{at}")
    yield StoreFails(_fresh(at))


def _evict(at: int) -> Iterator[Event]:
    yield StoreOffered(_fresh(at), "u1")
    yield StoreSucceeds(_fresh(at))
    yield Evict(2)


def _replace(at: int) -> Iterator[Event]:
    """Store, in requests; what is stored pushes out what was."""
    yield StoreOffered(_fresh(at), f"r{at}")
    yield StoreSucceeds(_fresh(at))
    yield RequestEnds(f"r{at}")


def _replace_and_touch(at: int) -> Iterator[Event]:
    """The same of chunks that are used, so that they leave from another list."""
    yield StoreOffered(_fresh(at), f"r{at}")
    yield StoreSucceeds(_fresh(at))
    yield Touch(_fresh(at), f"r{at}")
    yield Evict(1)
    yield RequestEnds(f"r{at}")


def _come_back(at: int) -> Iterator[Event]:
    """Store keys that left a while ago, so that ghosts are met."""
    keys = tuple((2 * at + more) % (3 * CAPACITY) for more in range(2))
    yield Touch(keys, f"r{at}")
    yield StoreOffered(keys, f"r{at}")
    yield StoreSucceeds(keys)
    yield RequestEnds(f"r{at}")


def _refuse(at: int) -> Iterator[Event]:
    yield Evict(1, frozenset((*KEYS, *_fresh(at))))
    yield Evict(CAPACITY + 1)


def _protect(at: int) -> Iterator[Event]:
    yield StoreOffered((*KEYS, *_fresh(at)), f"r{at}")
    yield RequestEnds(f"r{at}")


def _see(at: int) -> Iterator[Event]:
    yield StoreOffered(KEYS, f"r{at}")
    yield RequestEnds(f"r{at}")


def _end(at: int) -> Iterator[Event]:
    yield RequestEnds(f"r{at}")


def _reset(at: int) -> Iterator[Event]:
    yield StoreOffered(_fresh(at), f"r{at}")
    yield Touch(_fresh(at), f"r{at}")
    yield Reset()


def _has_hooks(edition: Edition) -> bool:
    return edition.has_request_hooks


PROGRAMS = (
    Repeated("touches", FULL, _touch),
    Repeated("touches of pinned chunks", (*FULL, LoadStarts(KEYS, "u1")), _touch_busy),
    Repeated("touches by requests that are over then", FULL, _touch_in_requests),
    Repeated("touches of absent keys", FULL, _touch_strangers),
    Repeated("look-ups", FULL, _look_up),
    Repeated("loads", FULL, _load),
    Repeated("loads by requests that end", FULL, _load_in_requests, _has_hooks),
    Repeated("loads that are not recorded", FULL, _load_unrecorded, _has_hooks),
    Repeated("stores that fail", (), _fail),
    Repeated("stores of the same keys that fail", (), _fail_again),
    Repeated("stores that fail when their request has ended", (), _fail_in_requests, _has_hooks),
    Repeated("stores and evictions", (), _evict),
    Repeated("stores that push others out", FULL, _replace),
    Repeated("stores of chunks that are used and pushed out", FULL, _replace_and_touch),
    Repeated("stores of keys that come back", FULL, _come_back),
    Repeated("evictions that must be refused", FULL, _refuse),
    Repeated("offers with all residents", FULL, _protect),
    Repeated("requests that see residents and end", FULL, _see, _has_hooks),
    Repeated("requests that end", FULL, _end, _has_hooks),
    Repeated("resets", (), _reset, lambda edition: edition.has_clear),
)
"""What is repeated: each kind of event alone, then those that belong together."""


# --- The law -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watched:
    """The sizes over a run.

    Attributes:
        sizes: after each stretch of the run, the bytes retained beyond those at its beginning.
        reached: whether, whenever there were residents, some of them were seen.
        calls: calls made on the policy.
        events: events performed.
    """

    sizes: tuple[int, ...]
    reached: bool
    calls: int
    events: int

    @property
    def halves(self) -> tuple[int, int]:
        """The most bytes retained in the first and in the second half."""
        middle = len(self.sizes) // 2
        return max(self.sizes[:middle]), max(self.sizes[middle:])

    @property
    def grows(self) -> bool:
        """Whether the second half adds more than a constant."""
        first, second = self.halves
        return second > first + ALLOWANCE


def watch(subject: Subject, program: Repeated, rounds: int = ROUNDS) -> Watched:
    """Repeat a program and watch what the policy retains.

    Args:
        subject: the policy under test.
        program: what to repeat.
        rounds: how often, at least `SAMPLES` times.

    Raises:
        Stray: the policy cannot be driven through the program.
    """
    trace = Trace(subject.edition, CAPACITY, ())
    codec = Codec(trace.setting.group_of, fresh=True)
    run = Unjudged(subject, trace, codec, CLAUSE)
    events = sum(run.live(event) for event in program.before)
    sizes: list[int] = []
    reached = True
    # Who has kept much already, for all instances, is looked at less often.
    kept, already = retained(run.policy)
    samples = SAMPLES if len(already) < MUCH else SAMPLES // 10
    # Taken at rounds of every remainder, lest a rhythm of the policy's hide what it keeps.
    due = {at * rounds // samples for at in range(1, samples)} | {rounds - 1}
    for at in range(rounds):
        for event in program.round(at):
            events += run.live(event)
        run.forget(f"r{at}")
        if at in due:
            size, seen = retained(run.policy)
            sizes.append(size - kept)
            chunks = run.instance.chunks.values()
            reached = reached and (not chunks or any(id(chunk) in seen for chunk in chunks))
    return Watched(tuple(sizes), reached, run.calls, events)


def judge(subject: Subject, tally: Tally) -> Measured:
    """Judge `memory/bounded-by-residents`.

    Args:
        subject: the policy under test; its profile plays no part.
        tally: where to count; the condition is met by a program.

    Returns:
        The first program under which the policy keeps growing; or why the law cannot be applied,
        or cannot be judged.
    """
    for program in PROGRAMS:
        if not program.since(subject.edition):
            continue
        try:
            watched = watch(subject, program, ROUNDS)
            tally.calls += watched.calls
            tally.events += watched.events
            grows = False
            if watched.grows:
                # Not counted: sizes may differ from machine to machine, what is counted may not.
                watched = watch(subject, program, CONFIRMED_BY * ROUNDS)
                first, second = watched.halves
                grows = watched.grows and second > LEAST_RATIO * max(first, LEAST_GROWTH)
        except Stray as error:
            return Measured(unclear=f"{error}, so that its memory could not be watched")
        if not watched.reached:
            return Measured(excuse=NOT_REACHED)
        tally.met[CLAUSE] += 1
        if grows:
            return Measured((_finding(subject, program, watched),))
    return Measured()


NOT_REACHED = "the policy keeps its chunks where they cannot be reached from it, so nothing is seen"


def _finding(subject: Subject, program: Repeated, watched: Watched) -> Finding:
    first, second = watched.halves
    events = watched.events
    return Finding(
        CLAUSE,
        program.trace(subject.edition, SHOWN),
        f"{program.name}, repeated over {events} events: in the second half the policy retains at "
        f"most {ALLOWANCE} bytes more than in the first",
        # In bytes it would say more than is the same on every machine.
        f"it retains {second / max(first, 1):.1f} times as much",
        "memory",
    )


SHOWN = 2
"""Rounds in the trace of a finding, which shows what is to be repeated."""
