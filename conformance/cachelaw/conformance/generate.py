"""Random programs: event after event that a manager could issue, given where its books stand.

Uniform random choice misses what needs a run-up, so each program draws its own weights (swarm
testing), goes back to keys that were evicted lately, offers runs of a prefix as requests do, and
now and then asks for more than there is.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

from cachelaw.conformance.trace import Event
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

T = TypeVar("T")

LATELY = 16
"""How many evicted keys are remembered to be used again."""


class Program:
    """A source of random events.

    Args:
        rng: where all choices come from.
        setting: edition and capacity.
        keys: the number of keys to choose from.
        requests: the number of requests that run at a time.
    """

    def __init__(
        self, rng: random.Random, setting: Setting[int], keys: int, requests: int = 3
    ) -> None:
        self._rng = rng
        self._setting = setting
        self._keys = range(keys)
        self._begun = 0
        self._requests = [self._begin() for _ in range(requests)]
        self._gone: list[int] = []
        self._longest = max(2, min(setting.capacity + 1, 8))
        makers: list[tuple[Callable[[State[int]], Event | None], float]] = [
            (self._offer, 4),
            (self._succeed, 4),
            (self._fail, 0.5),
            (self._load, 2),
            (self._end_load, 2),
            (self._touch, 3),
            (self._touch_gone, 2),
            (self._evict, 2),
            (self._lookup, 0.3),
            (self._nothing, 0.5),
        ]
        if setting.edition.has_request_hooks:
            makers.append((self._end_request, 2))
        if setting.edition.has_clear:
            makers.append((self._reset, 0.05))
        self._makers = [make for make, _ in makers]
        # Each program likes some events and hardly makes others.
        liking = [weight * rng.choice((0.1, 0.5, 1, 1, 2, 4)) for _, weight in makers]
        self._cumulative = list(accumulate(liking))

    def next(self, state: State[int]) -> Event:
        """Return an event that a manager whose books are `state` could issue."""
        likings = self._cumulative
        while True:
            drawn = self._rng.random() * likings[-1]
            event = self._makers[bisect(likings, drawn, 0, len(likings) - 1)](state)
            if event is not None:
                return event

    def saw(self, victims: tuple[int, ...] | None) -> None:
        """Learn which keys were evicted."""
        if victims:
            self._gone = (self._gone + list(victims))[-LATELY:]

    # --- makers, one for each kind of event; None if there is nothing to make it of ---

    def _begin(self) -> str:
        self._begun += 1
        return f"{self._one('rrrsmu')}{self._begun}"

    def _below(self, limit: int) -> int:
        """Draw one of 0, 1, ..., `limit` - 1, faster than `randrange` does."""
        return int(self._rng.random() * limit)

    def _one(self, of: Sequence[T]) -> T:
        return of[self._below(len(of))]

    def _some(self, keys: Iterable[int]) -> tuple[int, ...]:
        """One or several of `keys`, in any order."""
        left, some, draw = list(keys), [], self._rng.random
        for _ in range(1 + self._below(min(len(left), self._longest))):
            at = int(draw() * len(left))
            left[at], left[-1] = left[-1], left[at]
            some.append(left.pop())
        return tuple(some)

    def _run(self) -> tuple[int, ...]:
        """A stretch of a prefix."""
        first = self._below(len(self._keys))
        return tuple(self._keys[first : first + 1 + self._below(self._longest)])

    def _offer(self, state: State[int]) -> Event:
        request = self._one(self._requests)
        keys = self._run() if self._rng.random() < 0.7 else self._some(self._keys)
        return StoreOffered(keys[::-1] if request[0] == "s" else keys, request)

    def _succeed(self, state: State[int]) -> Event | None:
        pending = [key for key, chunk in state.chunks.items() if chunk.ref_cnt < 0]
        return StoreSucceeds(self._some(pending)) if pending else None

    def _fail(self, state: State[int]) -> Event | None:
        pending = [key for key, chunk in state.chunks.items() if chunk.ref_cnt < 0]
        return StoreFails(self._some(pending)) if pending else None

    def _load(self, state: State[int]) -> Event | None:
        ready = [key for key, chunk in state.chunks.items() if chunk.ref_cnt >= 0]
        if not ready:
            return None
        request = self._one(self._requests)
        return LoadStarts(self._some(ready), request, recorded=self._rng.random() < 0.9)

    def _end_load(self, state: State[int]) -> Event | None:
        pinned = [key for key, chunk in state.chunks.items() if chunk.ref_cnt > 0]
        return LoadEnds(self._some(pinned)) if pinned else None

    def _touch(self, state: State[int]) -> Event | None:
        request = self._one(self._requests)
        if state.chunks and self._rng.random() < 0.8:
            return Touch(self._some(state.chunks), request)
        return Touch(self._run(), request)

    def _touch_gone(self, state: State[int]) -> Event | None:
        gone = [key for key in dict.fromkeys(self._gone) if key not in state.chunks]
        if not gone:
            return None
        request = self._one(self._requests)
        keys = self._some(gone)
        # From v0.31 ghosts are hit by offers; before, by touches alone.
        if self._setting.edition.has_request_hooks and self._rng.random() < 0.7:
            return StoreOffered(keys, request)
        return Touch(keys, request)

    def _evict(self, state: State[int]) -> Event:
        protected = frozenset(self._some(self._keys) if self._rng.random() < 0.4 else ())
        eligible = len(state.eligible(protected))
        n = self._one((0, 1, 1, 1, 2, 3, eligible, eligible + 1, eligible + 5))
        return Evict(min(n, eligible) if self._rng.random() < 0.9 else n, protected)

    def _lookup(self, state: State[int]) -> Event:
        return Lookup(self._one(self._keys))

    def _nothing(self, state: State[int]) -> Event:
        """An event about no keys, such as hosts make when their lists turn out empty."""
        request = self._one(self._requests)
        touch: Event = Touch((), request)  # the one that reaches the policy
        return self._one((touch, touch, StoreOffered((), request), LoadStarts((), request)))

    def _end_request(self, state: State[int]) -> Event:
        at = self._rng.randrange(len(self._requests))
        ending = self._requests[at]
        if objection(self._setting, state, RequestEnds(ending)) is None:
            self._requests[at] = self._begin()
            return RequestEnds(ending)
        if self._rng.random() < 0.2:
            self._requests[at] = self._begin()
        return Lookup(self._one(self._keys))

    def _reset(self, state: State[int]) -> Event:
        self._gone.clear()
        return Reset()
