"""Drive one vLLM release beside the reference: `drive_filter.py VERSION filter|lru|arc SEED STEPS`.

A script of its own, since a process holds one release; `test_filter.py` runs it. It prints one
line of JSON that says what happened how often, or stops at the first difference with a traceback
and exit status 1.

`filter`: the reuse filters of both, each before a backing that follows a script.
`lru`, `arc`: the managers of both over that policy, alone or behind the filters.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cachelaw.conformance.releases import Release, load
from cachelaw.reference import v019
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey, make_offload_key
from cachelaw.reference.manager import MinimalOffloadingManagerV019, MinimalOffloadingManagerV020
from cachelaw.reference.reuse_filter import (
    FilterReusedOffloadingManagerV019,
    FilterReusedOffloadingManagerV020,
)

Script = random.Random
RUN = 300  # steps before everything begins anew with other sizes


class Sides:
    """The classes to compare, theirs and ours, and the form in which they are called."""

    def __init__(self, release: Release) -> None:
        self.takes_context = release.edition == "v0.20"  # 0.18 has no edition but the old form
        self.context: tuple[Any, ...] = (ReqContext("r0"),) if self.takes_context else ()
        self.filters: tuple[Any, Any] = (release.filter, FilterReusedOffloadingManagerV019)
        self.managers: tuple[Any, Any] = (release.manager, MinimalOffloadingManagerV019)
        if self.takes_context:
            self.filters = (release.filter, FilterReusedOffloadingManagerV020)
            self.managers = (release.manager, MinimalOffloadingManagerV020)


def key(number: int) -> OffloadKey:
    """Return the key of that number, a new object each time."""
    return make_offload_key(b"hash" + number.to_bytes(2, "big"), number % 2)


# --- The filters ---------------------------------------------------------------------------------


class ScriptedError(Exception):
    """What a scripted backing raises now and then."""


class ScriptedBacking:
    """Notes what arrives and answers as its script says, which two backings may share by seed."""

    def __init__(self, seed: int) -> None:
        self.script = Script(seed)
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*args: Any) -> Any:
            # Of keys their container is noted too, and iterators are read, as a manager would.
            noted = tuple(
                (type(arg).__name__, list(arg))
                if isinstance(arg, Iterable) and not isinstance(arg, bytes)
                else arg
                for arg in args
            )
            self.calls.append((name, noted))
            if self.script.random() < 0.02:
                raise ScriptedError(len(self.calls))
            if name in ("touch", "complete_load", "complete_store"):
                return None
            return self.script.choice([None, 0, 3, True, False, ["something"], ("else",)])

        return method


def outcome(call: Callable[..., Any], args: Sequence[Any]) -> tuple[str, Any]:
    """Return what `call` returned or raised, so that it can be compared."""
    try:
        return "returned", call(*args)
    except (ScriptedError, ValueError) as error:
        return type(error).__name__, error.args


SHAPES: tuple[Callable[[list[OffloadKey]], Iterable[OffloadKey]], ...] = (list, tuple, iter)
METHODS = (
    *("lookup", "prepare_store", "prepare_load", "touch"),
    *("complete_load", "complete_store", "take_events"),
)
WEIGHTS = (12, 6, 1, 1, 1, 1, 1)


def drive_filters(sides: Sides, script: Script, steps: int) -> Counter[str]:
    """Take `steps` steps with two filters and compare everything after each."""
    compare_constructors(sides)
    seen: Counter[str] = Counter()
    while seen["steps"] < steps:
        limit = script.randint(1, 6)
        threshold = script.randint(2, 4)
        seed = script.getrandbits(32)
        backings = [ScriptedBacking(seed), ScriptedBacking(seed)]
        pair = [
            make(backing, threshold, limit)
            for make, backing in zip(sides.filters, backings, strict=True)
        ]
        universe = script.randint(1, 10)
        for _ in range(RUN):
            name = script.choices(METHODS, WEIGHTS)[0]
            numbers = script.choices(range(universe), k=script.choice((0, 1, 1, 2, 3, 8)))
            shape = script.choice(SHAPES)
            success = script.choice(((), (True,), (False,)))
            before = set(pair[1].counts)
            results = []
            for one in pair:
                args: tuple[Any, ...] = (shape([key(number) for number in numbers]),)
                if name == "take_events":
                    args = ()
                elif name == "complete_store":
                    args += success
                elif name == "lookup" and sides.takes_context:
                    args = (key(numbers[0] if numbers else 0), *sides.context)
                elif name in ("lookup", "prepare_store", "prepare_load"):
                    args += sides.context
                results.append(outcome(getattr(one, name), args))
            equal(results)
            calls = equal([backing.calls for backing in backings])
            equal([list(one.counts.items()) for one in pair])
            if name == "prepare_store":
                ((_, ((_, passed), *_)),) = calls
                seen["passed"] += len(passed)
                seen["withheld"] += len(numbers) - len(passed)
            seen["dropped"] += len(before - set(pair[1].counts))
            seen["raised"] += results[0][0] == "ScriptedError"
            seen["steps"] += 1
            for backing in backings:
                backing.calls.clear()
    return seen


def compare_constructors(sides: Sides) -> None:
    """Hold defaults and error messages against each other, over ints."""
    for args in [(), (2,), (2, 1), (1,), (0, 0), (-1, 5), (2, 0), (3, -4), (10**9, 10**9)]:
        made = [outcome(make, (ScriptedBacking(0), *args)) for make in sides.filters]
        equal(
            [
                (one.store_threshold, one.max_tracker_size, one.counts)
                if how == "returned"
                else one
                for how, one in made
            ]
        )


def equal(answers: Sequence[Any]) -> Any:
    """Return what both sides answered, which must be the same."""
    assert answers[0] == answers[1], answers
    return answers[0]


# --- The managers --------------------------------------------------------------------------------


class Host:
    """Drives a manager of each side through the same steps, each of them allowed.

    Attributes:
        ready: keys whose data is there; `pending`: keys whose data is awaited.
        pins: how many loads each key is read by.
        seen: what happened how often.
    """

    def __init__(self, sides: Sides, policy: str, script: Script, seen: Counter[str]) -> None:
        self.script = script
        self.context = sides.context
        self.seen = seen
        self.ready: set[OffloadKey] = set()
        self.pending: set[OffloadKey] = set()
        self.pins: Counter[OffloadKey] = Counter()
        capacity = script.choice((1, 2, 3, 4, 6, 10))
        self.universe = [key(number) for number in range(2 * capacity + 2)]
        constants = {} if sides.takes_context else {"block_size": 16}
        theirs, ours = sides.managers
        self.pair = [
            theirs(num_blocks=capacity, cache_policy=policy, enable_events=True, **constants),
            ours(capacity, {"lru": v019.LRU, "arc": v019.ARC}[policy]),
        ]
        if script.random() < 0.5:
            limit = script.randint(1, 3 * capacity)
            self.pair = [
                make(one, 2, limit) for make, one in zip(sides.filters, self.pair, strict=True)
            ]

    def some(self, among: Iterable[OffloadKey], most: int) -> list[OffloadKey]:
        """Choose up to `most` distinct keys at random."""
        keys = sorted(among)
        return self.script.sample(keys, min(len(keys), self.script.randint(0, most)))

    def look(self) -> None:
        """Look keys up; what is ready must be found."""
        keys = self.some(self.universe, 4)
        if not self.context:
            run = equal([one.lookup(iter(keys)) for one in self.pair])
            assert [wanted in self.ready for wanted in keys[: run + 1]] == [
                *[True] * run,
                *[False] * (run < len(keys)),
            ]
            return
        for wanted in keys:
            found = equal([one.lookup(wanted, *self.context) for one in self.pair])
            assert found == (wanted in self.ready)

    def offer(self) -> None:
        """Offer keys; what leaves and what enters must be the same, in the same order."""
        keys = self.some(self.universe, 4)
        answer = equal([fields(one.prepare_store(keys, *self.context)) for one in self.pair])
        if answer is None:
            self.seen["refused"] += 1
            return
        stored, evicted = answer
        self.ready -= set(evicted)
        self.pending |= set(stored)
        self.seen["evicted"] += len(evicted)
        self.seen["stored"] += len(stored)

    def complete(self) -> None:
        """End stores, well or badly."""
        keys = self.some(self.pending, 4)
        success = self.script.random() < 0.8
        equal([one.complete_store(keys, success) for one in self.pair])
        self.pending -= set(keys)
        if success:
            self.ready |= set(keys)
        else:
            self.seen["failed"] += len(keys)

    def pin(self) -> None:
        """Begin loads."""
        keys = self.some(self.ready, 2)
        for one in self.pair:
            spec = one.prepare_load(keys, *self.context)
            assert len(set(spec.block_ids)) == len(keys)
        self.pins.update(keys)
        self.seen["pinned"] += len(keys)

    def unpin(self) -> None:
        """End loads."""
        keys = self.some(+self.pins, 10)
        equal([one.complete_load(keys) for one in self.pair])
        self.pins.subtract(keys)

    def touch(self) -> None:
        """Touch keys, resident or not."""
        keys = self.some(self.universe, 5)
        equal([one.touch(keys) for one in self.pair])

    def take(self) -> None:
        """Take the events."""
        self.seen["events"] += len(equal([news(one.take_events()) for one in self.pair]))


def fields(output: Any) -> Any:
    """Return what is comparable in the answer to an offer; 0.19 called the fields otherwise."""
    if output is None:
        return None
    if hasattr(output, "keys_to_store"):
        return list(output.keys_to_store), list(output.evicted_keys)
    return list(output.block_hashes_to_store), list(output.block_hashes_evicted)


def news(events: Iterable[Any]) -> list[Any]:
    """Return what is comparable in events."""
    return [
        (list(event.keys if hasattr(event, "keys") else event.block_hashes), event.removed)
        for event in events
    ]


MOVES = {
    Host.look: 2,
    Host.offer: 4,
    Host.complete: 4,
    Host.pin: 1,
    Host.unpin: 2,
    Host.touch: 2,
    Host.take: 1,
}


def drive_managers(sides: Sides, policy: str, script: Script, steps: int) -> Counter[str]:
    """Take `steps` steps with two managers, about half of the runs behind filters."""
    seen: Counter[str] = Counter()
    while seen["steps"] < steps:
        host = Host(sides, policy, script, seen)
        # Each run has habits of its own.
        weights = [weight * script.choice((1, 2, 5)) for weight in MOVES.values()]
        for move in script.choices(list(MOVES), weights, k=RUN):
            move(host)
        seen["steps"] += RUN
    return seen


def main(version: str, subject: str, seed: str, steps: str) -> None:
    """Run as the command line says and print what was seen."""
    sides = Sides(load(version))
    script = Script(int(seed))
    if subject == "filter":
        seen = drive_filters(sides, script, int(steps))
    else:
        seen = drive_managers(sides, subject, script, int(steps))
    print(json.dumps({"version": version, "subject": subject, "seed": int(seed), **seen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
