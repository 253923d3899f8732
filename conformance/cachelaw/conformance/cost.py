"""The law of cost: what a policy does with keys grows with what it is given, and no faster.

The keys that are passed count how often they are hashed and compared. No clock is read: a count is
the same on every machine. A program is run at growing capacities, and what its calls cost is
divided by the work that they were given:

- 1 for each key passed, wherever it is passed;
- 1 for each chunk evicted;
- of an `evict`, 1 for each chunk that it left where it was. How many of them a policy has to pass
  over hangs on its order, which only the policy knows, so one look at each is allowed.

The quotient, divided by the logarithm of the capacity, must not keep growing. An `evict` of many
chunks out of a cache that was filled and not touched since is also measured by itself, so that
nothing else can hide it.

What is not seen: work on keys that were converted first (`bytes(key)`), in compiled code that
reads the bytes itself, and work on anything but keys. A policy that never hashes or compares a key
it was passed cannot be judged.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from typing import Any

from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.generate import Program
from cachelaw.conformance.instance import Codec
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.conformance.unjudged import Measured, Stray, Unjudged
from cachelaw.reference.editions import Edition
from cachelaw.reference.protocol import (
    Call,
    Evict,
    LoadEnds,
    LoadStarts,
    RequestEnds,
    Reset,
    Setting,
    State,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    perform,
    start,
)

CLAUSE = "cost/linear"

SIZES = (64, 512)
"""The capacities at which a program is run."""

WIDE_SIZES = (64, 512, 2048)
"""The same for budgets that have the time."""

MOST_GROWTH = 2.0
"""How much the quotient may grow from one capacity to another of 8 times or more.

A quadratic cost makes it grow by a factor near 8 / 1.5 from 64 to 512, or less where it is a small
part of all; the square of a logarithm by 1.5. That of every LRU and every linear ARC of the
releases shrinks, since there is no logarithm in it."""

LEAST_FACTOR = 8
"""How far apart two capacities must be to be compared."""


# --- Counting ------------------------------------------------------------------------------------


class Meter:
    """What keys have counted since the run began.

    Attributes:
        count: hashes and comparisons, whoever asked for them.
        spent: those that the policy asked for.
    """

    def __init__(self) -> None:
        self.count = 0
        self.spent = 0


def counting_keys(meter: Meter) -> type[bytes]:
    """Return a kind of bytes that tells `meter` when it is hashed or compared.

    It is equal to, and has the hash of, the bytes that it is made of.
    """

    class CountedKey(bytes):
        def __hash__(self) -> int:
            meter.count += 1
            return bytes.__hash__(self)

        def __eq__(self, other: object) -> bool:
            meter.count += 1
            return bytes.__eq__(self, other)

        def __ne__(self, other: object) -> bool:
            meter.count += 1
            return bytes.__ne__(self, other)

        def __lt__(self, other: bytes) -> bool:
            meter.count += 1
            return bytes.__lt__(self, other)

        def __le__(self, other: bytes) -> bool:
            meter.count += 1
            return bytes.__le__(self, other)

        def __gt__(self, other: bytes) -> bool:
            meter.count += 1
            return bytes.__gt__(self, other)

        def __ge__(self, other: bytes) -> bool:
            meter.count += 1
            return bytes.__ge__(self, other)

    return CountedKey


class CountedCodec(Codec):
    """Keys that count, a new object each time a key is passed, as hosts do."""

    def __init__(self, setting: Setting[int], meter: Meter) -> None:
        super().__init__(setting.group_of, fresh=False)
        self._kind = counting_keys(meter)

    def encode(self, key: int) -> Any:
        """Return the offload key of `key`."""
        return self._kind(super().encode(key))


class _Metered:
    """A policy in front of which a meter stands: counts only what is asked for inside its calls."""

    def __init__(self, policy: Any, meter: Meter) -> None:
        self._policy = policy
        self._meter = meter

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._policy, name)
        meter = self._meter

        def metered(*arguments: Any) -> Any:
            before = meter.count
            try:
                return method(*arguments)
            finally:
                meter.spent += meter.count - before

        return metered


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run cost.

    Attributes:
        spent: hashes and comparisons of keys.
        work: what they may be in proportion to.
        calls: calls made on the policy.
    """

    spent: int
    work: int
    calls: int

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.spent - other.spent, self.work - other.work, self.calls - other.calls)


def cost_of(subject: Subject, trace: Trace, *, last_alone: bool = False) -> Cost:
    """Run a trace and return what it cost.

    Args:
        subject: the policy under test.
        trace: what happens; events that no manager could issue are left out.
        last_alone: count the last event only.

    Raises:
        Stray: the policy cannot be driven through the trace.
    """
    run = _CostRun(subject, trace)
    before = Cost(0, 0, 0)
    for at, event in enumerate(trace.events):
        if last_alone and at == len(trace.events) - 1:
            before = run.cost
        run.live(event)
    return run.cost - before


class _CostRun:
    """A run of which the cost is counted."""

    def __init__(self, subject: Subject, trace: Trace) -> None:
        self._meter = Meter()
        self._work = 0
        codec = CountedCodec(trace.setting, self._meter)
        self._run = Unjudged(
            subject, trace, codec, CLAUSE, lambda policy: _Metered(policy, self._meter)
        )

    @property
    def cost(self) -> Cost:
        """What it has cost so far."""
        return Cost(self._meter.spent, self._work, self._run.calls)

    @property
    def state(self) -> State[int]:
        """The manager's books."""
        return self._run.state

    def live(self, event: Event) -> None:
        """Let one event happen, if a manager could issue it."""
        self._run.live(event, self._weigh)

    def _weigh(self, call: Call, victims: tuple[int, ...] | None) -> None:
        """Add to the work what a call gives a policy to do."""
        method, arguments = call
        match method:
            case "get" | "insert" | "remove" | "mark_evictable" | "mark_non_evictable":
                self._work += 1
            case "touch" | "on_store_miss" | "on_request_access":
                self._work += len(arguments[0])
            case "on_request_finished":
                groups, inserted, reused, _ = arguments
                self._work += sum(map(len, groups)) + len(inserted) + len(reused)
            case "evict":
                n, protected = arguments
                # Those evicted now, and those left; the victims are no longer among the chunks.
                left = len(self._run.instance.chunks) if n else 0
                self._work += len(protected) + 2 * len(victims or ()) + left


# --- Programs ------------------------------------------------------------------------------------

Events = Iterator[Event]


@dataclass(frozen=True, slots=True)
class Growing:
    """A program for any capacity.

    Attributes:
        name: what happens in it.
        events: from the edition and the capacity to what happens.
        last_alone: whether only the last event is measured.
    """

    name: str
    events: Callable[[Edition, int], Events]
    last_alone: bool = False

    def trace(self, subject: Subject, size: int) -> Trace:
        """Return the program at a capacity; without events if the edition has no such events."""
        edition = subject.edition
        return Trace(edition, size, tuple(self.events(edition, size)))


def _filled(size: int, request: str = "u1") -> Events:
    yield StoreOffered(tuple(range(size)), request)
    yield StoreSucceeds(tuple(range(size)))


def _eviction(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield Evict(size // 2)


def _eviction_past_protected(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield Evict(size // 4, frozenset(range(size // 2)))


def _eviction_past_pinned(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield LoadStarts(tuple(range(size // 2)), "u1")
    yield Evict(size // 4)


def _eviction_of_used(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield Touch(tuple(range(size // 2)), "u1")
    yield Evict(3 * size // 4)


def _touches_at_once(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield Touch(tuple(range(size)), "u1")


def _touches(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    for key in range(size):
        # Far apart, so that no one place in an order is always the right one.
        yield Touch(((key * 7 + size // 2) % size,), "u1")


def _touches_of_strangers(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    for key in range(size):
        yield Touch((size + key,), "u1")


def _ghosts(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield Evict(size // 2)
    for key in range(size):
        yield Touch((key,), "u1")
    for key in range(size):
        yield StoreOffered((key,), f"u{key + 2}")
        yield StoreFails((key,))


def _loads_at_once(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    yield LoadStarts(tuple(range(size)), "u1")
    yield LoadEnds(tuple(range(size)))


def _loads(edition: Edition, size: int) -> Events:
    yield from _filled(size)
    for key in range(size):
        yield LoadStarts(((key * 7 + size // 2) % size,), "u1")
        yield LoadEnds(((key * 7 + size // 2) % size,))


def _stores(edition: Edition, size: int) -> Events:
    for key in range(size):
        yield StoreOffered((key,), "u1")
        yield StoreSucceeds((key,))


def _failures_at_once(edition: Edition, size: int) -> Events:
    yield StoreOffered(tuple(range(size)), "u1")
    yield StoreFails(tuple(range(size // 2, size)))
    yield StoreFails(tuple(range(size // 2)))


def _failures(edition: Edition, size: int) -> Events:
    yield StoreOffered(tuple(range(size)), "u1")
    for key in range(size):
        yield StoreFails(((key * 7 + size // 2) % size,))


def _replacements(edition: Edition, size: int) -> Events:
    """Stores that evict many at a time, of keys that come back, so that ghosts are met."""
    yield from _filled(size)
    part = size // 4
    for turn in range(12):
        first = size + turn % 6 * part
        keys = tuple(range(first, first + part))
        if not edition.has_request_hooks:
            yield Touch(keys, "u1")  # what an offer tells a policy of its misses from v0.31 on
        yield StoreOffered(keys, f"u{turn + 2}")
        yield StoreSucceeds(keys)


def _requests(edition: Edition, size: int) -> Events:
    """Requests that store what others have and end."""
    if not edition.has_request_hooks:
        return
    yield from _filled(size, "r1")
    yield RequestEnds("r1")
    for at in range(size):
        name = f"r{at + 2}"
        yield StoreOffered(((at * 7 + size // 2) % size,), name)
        yield RequestEnds(name)


def _long_request(edition: Edition, size: int) -> Events:
    """One request that reads and stores in batches."""
    if not edition.has_request_hooks:
        return
    yield from _filled(size, "u1")
    for first in range(0, size, 8):
        keys = tuple(range(first, min(size, first + 8)))
        yield StoreOffered(keys, "r1")
        yield LoadStarts(keys, "r1")
        yield LoadEnds(keys)
    yield RequestEnds("r1")


def _resets(edition: Edition, size: int) -> Events:
    if not edition.has_clear:
        return
    for turn in range(4):
        yield from _filled(size, f"u{turn}")
        yield Reset()


PROGRAMS = (
    Growing("evict half of a full cache", _eviction, last_alone=True),
    Growing("evict a quarter past protected chunks", _eviction_past_protected, last_alone=True),
    Growing("evict a quarter past pinned chunks", _eviction_past_pinned, last_alone=True),
    Growing("evict three quarters, some of them used", _eviction_of_used, last_alone=True),
    Growing("touch all in one call", _touches_at_once),
    Growing("load all in one event", _loads_at_once),
    Growing("fail all stores in two events", _failures_at_once),
    Growing("reset a full cache again and again", _resets),
    Growing("replace a quarter of the cache at a time", _replacements),
    Growing("touch one after the other", _touches),
    Growing("touch absent keys", _touches_of_strangers),
    Growing("touch and store what was evicted", _ghosts),
    Growing("load one after the other", _loads),
    Growing("store one after the other", _stores),
    Growing("fail one store after the other", _failures),
    Growing("serve one long request", _long_request),
    Growing("serve many short requests", _requests),
)
"""What is measured, the shortest first."""

MIXES = 2
"""Random programs that are measured besides."""


def _mix(seed: int) -> Growing:
    """Return a random program, with half as many events as chunks after the cache was filled.

    It follows books in which every eviction takes the oldest chunks, whatever the subject takes:
    what the subject's books do not allow is left out when it is run.
    """

    def events(edition: Edition, size: int) -> Events:
        rng = random.Random(seed)
        setting = Trace(edition, size, ()).setting
        program = Program(rng, setting, 2 * size)
        state = start(setting)
        events = list(_filled(size))
        for at in range(size // 2 + len(events)):
            event = events[at] if at < len(events) else program.next(state)
            yield event
            state, victims = _oldest_leave(setting, state, event)
            program.saw(victims)

    return Growing(f"live through any events (seed {seed})", events)


def _oldest_leave(
    setting: Setting[int], state: State[int], event: Event
) -> tuple[State[int], tuple[int, ...]]:
    """Return the books after an event, and the victims, if the oldest chunks are evicted."""
    steps = perform(setting, state, event)
    answer: tuple[int, ...] | None = None
    victims: tuple[int, ...] = ()
    try:
        while True:
            method, arguments = steps.send(answer)
            answer = None
            if method == "evict":
                n, protected = arguments
                idle = [k for k, c in state.chunks.items() if c.ref_cnt == 0 and k not in protected]
                answer = tuple(idle[:n]) if len(idle) >= n else None
                victims = answer or ()
    except StopIteration as end:
        return end.value, victims


# --- The law -------------------------------------------------------------------------------------


def judge(subject: Subject, tally: Tally, sizes: tuple[int, ...] = SIZES) -> Measured:
    """Judge `cost/linear`.

    Args:
        subject: the policy under test; its profile plays no part.
        tally: where to count; the condition is met by a program in which keys were asked.
        sizes: the capacities, rising, the last at least `LEAST_FACTOR` times the first.

    Returns:
        The first program of which the cost grows too fast; or why the law cannot be applied, or
        cannot be judged.
    """
    if subject.specification:
        return Measured(excuse=SPECIFICATION)
    met = 0
    for program in (*PROGRAMS, *(_mix(seed) for seed in range(MIXES))):
        try:
            finding, asked = _judge_program(subject, program, tally, sizes)
        except Stray as error:
            return Measured(unclear=f"{error}, so that its cost could not be counted")
        if finding is not None:
            return Measured((finding,))
        met += asked
    tally.met[CLAUSE] += met
    return Measured() if met else Measured(excuse=NEVER_ASKED)


SPECIFICATION = "the subject declares that it is written to be read, whatever it costs"
NEVER_ASKED = "the policy never hashes or compares the keys that it is passed, so nothing counts"


def _judge_program(
    subject: Subject, program: Growing, tally: Tally, sizes: tuple[int, ...]
) -> tuple[Finding | None, bool]:
    """Run a program at growing capacities; return what it shows, and whether keys were asked."""
    costs: list[tuple[Trace, Cost]] = []
    for size in sizes:
        trace = program.trace(subject, size)
        if not trace.events:
            return None, False
        cost = cost_of(subject, trace, last_alone=program.last_alone)
        tally.calls += cost.calls
        tally.events += len(trace.events)
        costs.append((trace, cost))
        finding = _finding(program, *costs[0], *costs[-1])
        if finding is not None:
            return finding, True
    return None, any(cost.spent for _, cost in costs)


def _finding(
    program: Growing, trace: Trace, small: Cost, wide: Trace, large: Cost
) -> Finding | None:
    """Return what shows that cost grows too fast between two capacities, None if it does not."""
    least, most = trace.capacity, wide.capacity
    if most < LEAST_FACTOR * least or growth(least, small, most, large) <= MOST_GROWTH:
        return None
    whose = "those of the last event" if program.last_alone else "hashes and comparisons"
    return Finding(
        CLAUSE,
        trace,
        f"asked to {program.name} with {most // least} times the chunks, the policy hashes and "
        f"compares keys no more often than its work has grown (keys passed, chunks inserted, "
        f"evicted and passed over), {_times(small.work, large.work)}, up to a logarithm",
        f"{whose} grow {_times(small.spent, large.spent)}",
        "cost",
    )


def _times(small: int, large: int) -> str:
    return f"{large / max(small, 1):.1f} times, from {small} to {large}"


def growth(least: int, small: Cost, most: int, large: Cost) -> float:
    """Return by how much cost for work grew between two capacities, but for a logarithm."""
    if not small.work or not large.work:
        return 0.0
    before = max(small.spent, 1) / (small.work * log2(least))
    return large.spent / (large.work * log2(most)) / before
