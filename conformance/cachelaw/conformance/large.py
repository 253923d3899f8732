"""Capacities in the thousands, where a policy may do what it never does with a few chunks.

A heap that is rebuilt, a table that grows, a number that no longer fits: none of it shows at the
scopes of the other engines. So a cache that is kept filled is driven through a random program,
judged call by call, by the universal laws alone and, where a profile is claimed, also beside the
reference. After an event only its keys are looked at, after an eviction all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import count

from cachelaw.conformance.finding import Finding, JudgedRun, Tally
from cachelaw.conformance.generate import Program
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.reference.protocol import Evict, Reset, StoreOffered, StoreSucceeds


@dataclass(frozen=True, slots=True)
class Large:
    """How wide and how long.

    Attributes:
        capacity: the number of chunks that fit; there are one and a half times as many keys.
        events: events, those that fill the cache among them.
    """

    capacity: int
    events: int


UNIVERSAL = (Large(1_000, 2_000), Large(5_000, 500))
"""What is judged by the universal laws alone."""

REFINEMENT = Large(1_000, 2_000)
"""What is compared with the reference, which scans its lists."""


MOST_EVICTED, OFTEN = 32, 0.98
"""Fewer chunks leave at a time, and how often that is so: a cache that is emptied is not large."""


SMALLER = (72, 96, 128, 192, 256, 384, 512, 768)
"""Capacities at which a program that found something is tried again, for a trace to look at."""

READABLE = 256
"""The largest capacity at which it is worth while to make a trace shorter event by event."""


def judge(subject: Subject, tally: Tally, seed: int) -> list[Finding]:
    """Judge a policy at capacities in the thousands.

    Args:
        subject: the policy under test, compared with the reference if its profile has one.
        tally: where to count.
        seed: what all random choices come from.

    Returns:
        What the first run that found anything found, at the least capacity that shows it. Above
        `READABLE` a finding's `how` is `large`, and its trace is best left as it is; else it is
        one of lockstep like any other.
    """
    contract = replace(subject, profile="contract")
    runs = [(contract, large) for large in UNIVERSAL]
    if subject.profile != "contract":
        runs.append((subject, REFINEMENT))
    for number, (judged, large) in enumerate(runs):
        name = f"{seed}/large/{number}"
        found = _run(judged, large, tally, random.Random(name))
        for capacity in SMALLER if found else ():
            smaller = _run(judged, replace(large, capacity=capacity), tally, random.Random(name))
            if any(one.clause == found[0].clause for one in smaller):
                found = smaller
                break
        if found:
            how = "lockstep" if found[0].trace.capacity <= READABLE else "large"
            return [replace(one, how=how) for one in found]
    return []


def _run(subject: Subject, large: Large, tally: Tally, rng: random.Random) -> list[Finding]:
    trace = Trace(subject.edition, large.capacity, (), groups=rng.choice((1, 2)))
    run = JudgedRun(subject, trace, tally, thorough=False)
    keys = large.capacity * 3 // 2
    program = Program(rng, trace.setting, keys)
    names = count(large.events)  # behind those of the program
    waiting: list[Event] = []
    for _ in range(large.events):
        state = run.lockstep.state
        if not waiting and len(state.chunks) < large.capacity // 2:
            # Full again, in any order, lest most of the run be about a few chunks.
            absent = [key for key in range(keys) if key not in state.chunks]
            batch = tuple(rng.sample(absent, len(state.free)))
            waiting = [StoreSucceeds(batch), StoreOffered(batch, f"u{next(names)}")]
        event = waiting.pop() if waiting else program.next(state)
        if rng.random() < OFTEN:
            if isinstance(event, Reset):
                continue
            if isinstance(event, Evict):
                event = replace(event, n=event.n % MOST_EVICTED)
        answers = run.live(event)
        if answers is None:
            break
        for victims in answers:
            program.saw(victims)
    return run.found
