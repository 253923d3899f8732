"""How many policy calls a second the lockstep engine makes and judges.

    python -m benchmarks.lockstep [--repeats N]

The reference LRU of v0.24 is certified against itself at capacity 8: random programs are
generated, the protocol turns them into calls, the witness judges each call by every universal law,
the reference makes the same calls and is compared, and every condition that is met is counted. All
of it is in the time.

A machine that does other work gives other numbers from minute to minute. So what is measured is
this process's CPU time, which on an idle machine is the time on the clock; each repeat also
measures an empty function call and the bare policy, given the calls of the same programs and
nothing else; the whole process keeps to one CPU, and the garbage collector is off.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from time import process_time
from typing import Any

from cachelaw.conformance.finding import JudgedRun, Tally
from cachelaw.conformance.generate import Program
from cachelaw.conformance.subject import Subject, resolve
from cachelaw.conformance.trace import Trace
from cachelaw.reference.protocol import Call

CAPACITY = 8
PROGRAMS = 6
EVENTS = 1000
EMPTY_CALLS = 200_000

METHODS = (
    *("get", "insert", "remove", "touch", "evict", "clear"),
    *("mark_evictable", "mark_non_evictable"),
)
"""What a manager of v0.24 calls on a policy."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one measured run consists of.

    Attributes:
        steps: what the protocol yields: calls on the policy, and writes of ref counts.
        calls: calls on the policy that the protocol makes.
        all_calls: calls on the policy, with the look-ups by which the witness judges residency.
        events: what happened to the cache.
    """

    steps: int
    calls: int
    all_calls: int
    events: int


def run_programs(subject: Subject, tally: Tally, watched: list[list[Call]] | None = None) -> None:
    """Run the random programs.

    Args:
        subject: the reference.
        tally: where to count.
        watched: where to note the calls of each program, None for nowhere.

    Raises:
        AssertionError: the reference was found to be wrong.
    """
    for number in range(PROGRAMS):
        run = JudgedRun(subject, Trace(subject.edition, CAPACITY, ()), tally, thorough=False)
        if watched is not None:
            run.lockstep.watch = []
            watched.append(run.lockstep.watch)
        _drive(run, random.Random(f"lockstep/{number}"))


def _drive(run: JudgedRun, rng: random.Random) -> None:
    program = Program(rng, run.lockstep.setting, keys=3 * CAPACITY)
    for _ in range(EVENTS):
        for victims in run.live(program.next(run.lockstep.state)) or ():
            program.saw(victims)
    run.drain()
    if run.found:
        raise AssertionError(f"the reference broke {run.found[0].clause}")


def count(subject: Subject) -> tuple[Work, list[list[Call]]]:
    """Run the programs once, untimed; return how much work they are, and their calls."""
    made: Counter[str] = Counter()
    tally = Tally(Counter())
    watched: list[list[Call]] = []
    counted = replace(subject, build=lambda capacity: _Counting(subject.build(capacity), made))
    run_programs(counted, tally, watched)
    calls = sum(call.method != "set_ref_cnt" for calls in watched for call in calls)
    return Work(sum(map(len, watched)), calls, made.total(), tally.events), watched


class _Counting:
    """A policy that counts the calls made on it."""

    def __init__(self, policy: Any, made: Counter[str]) -> None:
        for method in METHODS:
            setattr(self, method, self._counting(method, getattr(policy, method), made))

    def _counting(self, name: str, method: Callable[..., Any], made: Counter[str]) -> Any:
        def call(*arguments: Any) -> Any:
            made[name] += 1
            return method(*arguments)

        return call


def bare(subject: Subject, watched: list[list[Call]]) -> None:
    """Make the calls of the programs on the policy alone: no suite, keys and statuses as cheap."""
    for calls in watched:
        policy: Any = subject.build(CAPACITY)
        chunks: dict[int, Any] = {}
        for method, arguments in calls:
            match method:
                case "set_ref_cnt":
                    chunks[arguments[0]].ref_cnt = arguments[1]
                case "insert":
                    key, slot, _ = arguments
                    chunks[key] = subject.status(slot)
                    policy.insert(key, chunks[key])
                case "touch":
                    policy.touch(arguments[0])
                case _:
                    getattr(policy, method)(*arguments)


def empty_calls() -> None:
    """Call a function that does nothing."""

    def nothing() -> None:
        pass

    for _ in range(EMPTY_CALLS):
        nothing()


def timed(action: Callable[[], object]) -> float:
    """Return the seconds of CPU time that `action` takes."""
    gc.collect()
    begun = process_time()
    action()
    return process_time() - begun


def main() -> None:
    """Measure, and print what was measured."""
    parser = argparse.ArgumentParser(description="Measure the lockstep engine.")
    parser.add_argument("--repeats", type=int, default=15, help="1 or more (15)")
    repeats = parser.parse_args().repeats
    if repeats < 1:
        parser.error("--repeats: give 1 or more")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    gc.disable()
    subject = resolve("cachelaw.reference.v024:LRU")
    work, watched = count(subject)
    suite: list[float] = []
    alone: list[float] = []
    empty: list[float] = []
    for _ in range(repeats):
        empty.append(timed(empty_calls))
        suite.append(timed(lambda: run_programs(subject, Tally(Counter()))))
        alone.append(timed(lambda: bare(subject, watched)))
    print(f"Python {platform.python_version()}, {sys.platform}, {os.cpu_count()} CPUs", end="")
    print(f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "")
    print(
        f"{work.events} events at capacity {CAPACITY}, {repeats} repeats, garbage collector off\n"
    )
    print(f"{'in a second of CPU time':40}{'median':>10}{'best':>10}{'worst':>10}")
    for name, amount, seconds in (
        ("calls on the policy", work.all_calls, suite),
        ("  of them by the protocol", work.calls, suite),
        ("steps of the protocol", work.steps, suite),
        ("steps, the policy alone", work.steps, alone),
        ("empty function calls", EMPTY_CALLS, empty),
    ):
        rates = (median(seconds), min(seconds), max(seconds))
        print(f"{name:40}" + "".join(f"{amount / rate:>10,.0f}" for rate in rates))
    share = 2 * median(a / s for a, s in zip(alone, suite, strict=True))
    print(f"\nThe two policies, subject and reference, take {share:.0%} of the time.")


if __name__ == "__main__":
    main()
