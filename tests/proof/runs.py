"""Runs of the functional cores, call by call, for the proofs to be held against."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cachelaw.conformance.generate import Program
from cachelaw.conformance.trace import Layout
from cachelaw.reference.cores import Core, World, core_of
from cachelaw.reference.editions import Edition
from cachelaw.reference.protocol import Call, Event, Setting, State, objection, perform, start


class Called(NamedTuple):
    """One call on a policy.

    Attributes:
        call: the call.
        before: the state of the core before it.
        after: the state of the core after it.
        victims: the answer to an evict, None if it refused, and for other calls.
    """

    call: Call
    before: Any
    after: Any
    victims: tuple[int, ...] | None


class Happened(NamedTuple):
    """One event.

    Attributes:
        event: the event.
        before: the manager's books before it.
        after: the books after it.
        calls: the calls on the policy, in their order.
    """

    event: Event[int]
    before: State[int]
    after: State[int]
    calls: tuple[Called, ...]


class Run:
    """A policy of one edition and its manager.

    Args:
        profile: `lru` or `arc`.
        edition: whose manager and whose policy.
        capacity: the number of chunks that fit.
    """

    def __init__(self, profile: str, edition: Edition, capacity: int) -> None:
        layout = Layout(1)
        self.setting = Setting(edition, capacity, layout.group_of, layout.position_of)
        self.core: Core = core_of(profile, edition)
        self.books: State[int] = start(self.setting)
        self.state = self.core.start(capacity)
        self._ref_counts: dict[int, int] = {}

    def happen(self, event: Event[int]) -> Happened:
        """Let an event happen."""
        assert objection(self.setting, self.books, event) is None, event
        before, calls = self.books, []
        self._ref_counts = {key: chunk.ref_cnt for key, chunk in before.chunks.items()}
        steps = perform(self.setting, before, event)
        answer: tuple[int, ...] | None = None
        try:
            while True:
                call = steps.send(answer)
                answer = None
                if call.method in ("get", "set_ref_cnt"):
                    if call.method == "set_ref_cnt":
                        self._ref_counts[call.arguments[0]] = call.arguments[1]
                    continue
                if call.method == "insert":
                    self._ref_counts[call.arguments[0]] = -1
                called = self._carry_out(call)
                calls.append(called)
                answer = called.victims
        except StopIteration as end:
            self.books = end.value
        return Happened(event, before, self.books, tuple(calls))

    def _carry_out(self, call: Call) -> Called:
        layout = Layout(1)
        world = World(self._ref_counts.__getitem__, layout.position_of)
        before = self.state
        outcome = self.core.apply(before, call, world)
        self.state = outcome.state
        return Called(call, before, outcome.state, outcome.victims)

    def play(self, events: Iterable[Event[int]]) -> None:
        """Let events happen one after the other."""
        for event in events:
            self.happen(event)

    def at_random(self, rng: random.Random, events: int) -> Iterator[Happened]:
        """Let random events happen; each is yielded after it has happened."""
        keys = rng.randint(self.setting.capacity + 1, 2 * self.setting.capacity + 4)
        program = Program(rng, self.setting, keys)
        for _ in range(events):
            happened = self.happen(program.next(self.books))
            for called in happened.calls:
                program.saw(called.victims)
            yield happened
