"""Random programs for a reuse filter: call after call that a scheduler could make.

Trackers are small and keys more than they hold, so that being dropped is common. Each program has
habits of its own, as those of `generate.py` do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from cachelaw.conformance.filters.backing import Backing
from cachelaw.conformance.filters.trace import METHODS, FilterEvent, FilterTrace
from cachelaw.reference.editions import Edition

LARGEST_TRACKER = 6
HIGHEST_THRESHOLD = 4

WEIGHTS = {
    "lookup": 10,
    "prepare_store": 5,
    "prepare_load": 1,
    "touch": 1,
    "complete_load": 1,
    "complete_store": 3,
    "take_events": 1,
}
"""How often each method is called, before a program's habits."""


def scope(rng: random.Random, edition: Edition) -> FilterTrace:
    """Draw the scope of a random program; no events yet."""
    return FilterTrace(
        edition,
        store_threshold=rng.choice((2, 2, 3, HIGHEST_THRESHOLD)),
        max_tracker_size=rng.randint(1, LARGEST_TRACKER),
    )


class FilterProgram:
    """A source of random events.

    Args:
        rng: where all choices come from.
        trace: the scope.
    """

    def __init__(self, rng: random.Random, trace: FilterTrace) -> None:
        self._rng = rng
        self._single = trace.takes_context
        self._keys = range(1, trace.max_tracker_size + rng.randint(1, 4) + 1)
        self._longest = rng.choice((1, 2, 3, len(self._keys)))
        self._one_shots = rng.choice((0, 0.1, 0.5, 1))
        self._requests = [f"r{number}" for number in range(1, rng.randint(1, 4) + 1)]
        # Each program likes some methods and hardly calls others.
        self._weights = [WEIGHTS[method] * rng.choice((0.1, 0.5, 1, 1, 2, 4)) for method in METHODS]

    def next(self, books: Backing) -> FilterEvent:
        """Return an event that a scheduler could bring about.

        Args:
            books: says what is pending, ready and pinned.
        """
        (method,) = self._rng.choices(METHODS, self._weights)
        # A lookup of one key has nothing to walk.
        single = method == "lookup" and self._single
        one_shot = not single and self._rng.random() < self._one_shots
        request = self._rng.choice(self._requests)
        match method:
            case "lookup":
                keys = self._some(self._keys, 1 if single else self._longest)
                hits = self._rng.choice((None, *range(len(keys) + 1)))
                return FilterEvent(method, keys, request, hits, one_shot=one_shot)
            case "prepare_store":
                keys = self._some(self._keys, len(self._keys))
                if self._rng.random() < 0.1:
                    return FilterEvent(method, keys, request, refused=True, one_shot=one_shot)
                evicts = self._some(books.ready - set(books.pins) - set(keys), 2)
                return FilterEvent(method, keys, request, evicts=evicts, one_shot=one_shot)
            case "prepare_load":
                return FilterEvent(method, self._some(books.ready), request, one_shot=one_shot)
            case "touch":
                return FilterEvent(method, self._some(self._keys), one_shot=one_shot)
            case "complete_load":
                return FilterEvent(method, self._some(books.pins), one_shot=one_shot)
            case "complete_store":
                success = self._rng.random() < 0.7
                keys = self._some(books.pending)
                return FilterEvent(method, keys, success=success, one_shot=one_shot)
        return FilterEvent(method, one_shot=one_shot)

    def _some(self, among: Iterable[int], most: int = 3) -> tuple[int, ...]:
        """Choose one to `most` different keys, in any order; none if there are none."""
        keys = sorted(among)
        count = min(len(keys), self._rng.randint(1, max(1, most)))
        return tuple(self._rng.sample(keys, count))
