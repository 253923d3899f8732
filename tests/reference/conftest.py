"""What the tests of the reference share: a manager to drive its policies by hand or at random.

Test modules cannot import each other, so they take the class as the fixture `host`.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from cachelaw.conformance.generate import Program
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.trace import Event, Layout
from cachelaw.reference.editions import Edition
from cachelaw.reference.protocol import (
    Call,
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
    perform,
    start,
)

Victims = tuple[int, ...]


class Host:
    """The manager of one edition over the reference policy; each event is a verb.

    Args:
        edition: whose manager and whose policy.
        policy: `lru` or `arc`.
        capacity: the number of chunks that fit.
        groups: the KV cache group of a key, 0 if it is not named.
        positions: what each request knows of the positions of keys.
    """

    def __init__(
        self,
        edition: Edition,
        policy: str,
        capacity: int,
        *,
        groups: Mapping[int, int] | None = None,
        positions: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        group_of, position_of = groups or {}, positions or {}
        setting: Setting[int] = Setting(
            edition,
            capacity,
            lambda key: group_of.get(key, 0),
            lambda request, key: position_of.get(request, {}).get(key),
        )
        self._take_over(setting, policy)

    @classmethod
    def of_layout(cls, edition: Edition, policy: str, capacity: int, groups: int = 1) -> Host:
        """Make a host whose keys stand as those of traces do."""
        layout = Layout(groups)
        made = cls.__new__(cls)
        made._take_over(Setting(edition, capacity, layout.group_of, layout.position_of), policy)
        return made

    def _take_over(self, setting: Setting[int], policy: str) -> None:
        module = importlib.import_module(setting.edition.module)
        self.setting = setting
        self.books: State[int] = start(setting)
        self.instance = Instance(
            getattr(module, policy.upper()), setting, module.ChunkStatus, PlainCodec()
        )
        self.calls: list[Call] = []
        """The calls that the last event took."""
        self.answers: list[Victims | None] = []
        """The answers to the evictions among them, none or one."""

    def happen(self, event: Event) -> list[Victims | None]:
        """Let an event happen; return the answers to the evictions that it caused."""
        assert objection(self.setting, self.books, event) is None, event
        self.calls, self.answers = [], []
        steps = perform(self.setting, self.books, event)
        answer: Victims | None = None
        try:
            while True:
                answer = self.carry_out(steps.send(answer))
                if self.calls[-1].method == "evict":
                    self.answers.append(answer)
        except StopIteration as end:
            self.books = end.value
        return self.answers

    def carry_out(self, call: Call) -> Victims | None:
        """Make one call on the policy."""
        self.calls.append(call)
        answer = self.instance.carry_out(call)
        if call.method != "evict" or answer is None:
            return None
        victims = tuple(key for key, _ in answer)
        for key in victims:
            del self.instance.chunks[key]
        return victims

    # --- what there is to see ---

    @property
    def edition(self) -> Edition:
        """Whose manager this is."""
        return self.setting.edition

    @property
    def policy(self) -> Any:
        """The policy."""
        return self.instance.policy

    @property
    def state(self) -> Any:
        """The state of the policy's core."""
        return self.policy.state

    @property
    def residents(self) -> set[int]:
        """Who is in the cache."""
        return set(self.books.chunks)

    # --- the events ---

    def offer(self, *keys: int, by: str = "r") -> Victims | None:
        """Offer a store; return who left for it, None if it was refused."""
        answers = self.happen(StoreOffered(keys, by))
        if None in answers or not self.residents.issuperset(keys):
            return None
        return answers[0] if answers else ()

    def store(self, *keys: int, by: str = "r") -> Victims | None:
        """Offer a store and let it succeed at once."""
        absent = tuple(key for key in keys if key not in self.residents)
        left = self.offer(*keys, by=by)
        assert left is not None, "the offer was refused"
        self.succeed(*absent)
        return left

    def succeed(self, *keys: int) -> None:
        """Let stores succeed."""
        self.happen(StoreSucceeds(keys))

    def fail(self, *keys: int) -> None:
        """Let stores fail."""
        self.happen(StoreFails(keys))

    def load(self, *keys: int, by: str = "r", recorded: bool = True) -> None:
        """Begin to read chunks."""
        self.happen(LoadStarts(keys, by, recorded))

    def unload(self, *keys: int) -> None:
        """Let reads end."""
        self.happen(LoadEnds(keys))

    def touch(self, *keys: int, by: str = "r") -> None:
        """Touch chunks."""
        self.happen(Touch(keys, by))

    def lookup(self, key: int) -> None:
        """Ask for a key."""
        self.happen(Lookup(key))

    def finish(self, by: str = "r") -> None:
        """End a request."""
        self.happen(RequestEnds(by))

    def reset(self) -> None:
        """Empty the cache."""
        self.happen(Reset())

    def evict(self, n: int, *protected: int) -> Victims | None:
        """Ask for victims outside any store."""
        (answer,) = self.happen(Evict(n, frozenset(protected)))
        return answer

    # --- many events ---

    def at_random(self, seed: int, events: int) -> Iterator[Event]:
        """Let random events happen; each is yielded after it has happened."""
        rng = random.Random(seed)
        keys = rng.randint(self.setting.capacity + 1, 2 * self.setting.capacity + 4)
        program = Program(rng, self.setting, keys)
        for _ in range(events):
            event = program.next(self.books)
            for answer in self.happen(event):
                program.saw(answer)
            yield event


@pytest.fixture
def host() -> type[Host]:
    """Return the class of hosts."""
    return Host
