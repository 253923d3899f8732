"""Machines that take one key after another: the textbook's ARC, and the filter's tracker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from cachelaw.conformance.explore.search import Step
from cachelaw.conformance.explore.symmetry import orbit, ranks
from cachelaw.reference import textbook_arc
from cachelaw.reference.protocol import Call
from cachelaw.reference.reuse_filter import Tracker, admitted, observe_all
from cachelaw.reference.textbook_arc import TextbookState


class Textbook:
    """Megiddo and Modha's ARC under every sequence of requests.

    Args:
        capacity: the paper's c.
        keys: the number of keys.
    """

    def __init__(self, capacity: int, keys: int) -> None:
        self.start: TextbookState[int] = textbook_arc.empty(capacity)
        self._keys = range(keys)

    def steps(self, state: TextbookState[int]) -> Iterator[Step[int, TextbookState[int]]]:
        """Yield a request of each key, with whether it was a hit."""
        for key in self._keys:
            after, hit = textbook_arc.request(state, key)
            yield key, hit, after


class TextbookSymmetry:
    """Keys of the textbook's ARC are interchangeable.

    Args:
        keys: the number of keys.
    """

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def _marks(self, state: TextbookState[int]) -> list[int]:
        marks = [self._keys] * self._keys
        for place, key in enumerate((*state.t1, *state.t2, *state.b1, *state.b2)):
            marks[key] = place
        return marks

    def renaming(self, state: TextbookState[int]) -> tuple[int, ...]:
        """Return the renaming to the representative."""
        return ranks(self._marks(state))

    def rename(self, state: TextbookState[int], names: tuple[int, ...]) -> TextbookState[int]:
        """Return `state` with other names."""
        lists = (
            tuple([names[k] for k in keys]) for keys in (state.t1, state.t2, state.b1, state.b2)
        )
        return TextbookState(state.capacity, state.p, *lists)

    def rename_action(self, action: int, names: tuple[int, ...]) -> int:
        """Return the key's other name."""
        return names[action]

    def orbit(self, state: TextbookState[int]) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self._marks(state))


class Filter:
    """The reuse filter's tracker under every sequence of lookups and offers.

    Counts are compared with the threshold and never with each other, so one above it is as good
    as one that has just reached it: they are cut off there, which leaves finitely many states.

    Args:
        limit: how many keys the tracker may hold.
        keys: the number of keys.
        threshold: how often a key must be seen.
        batch: the longest lookup and offer. A key may stand in it more than once.
    """

    def __init__(self, limit: int, keys: int, threshold: int = 2, batch: int = 2) -> None:
        self.limit = limit
        self.threshold = threshold
        self.start: Tracker[int] = ()
        batches = [
            keys_of
            for length in range(batch + 1)
            for keys_of in product(range(keys), repeat=length)
        ]
        self._lookups = [Call("lookup", (batch_of,)) for batch_of in batches]
        self._offers = [Call("prepare_store", (batch_of,)) for batch_of in batches]

    def steps(self, state: Tracker[int]) -> Iterator[Step[Call, Tracker[int]]]:
        """Yield every lookup, and every offer with the keys that it lets through."""
        for call in self._lookups:
            seen = observe_all(state, call.arguments[0], self.limit)
            yield call, None, tuple((key, min(count, self.threshold)) for key, count in seen)
        for call in self._offers:
            yield call, admitted(state, call.arguments[0], self.threshold), state

    def broken(
        self,
        before: Tracker[int],
        call: Call,
        answer: tuple[int, ...] | None,
        after: Tracker[int],
    ) -> str | None:
        """Name a clause that a step breaks, None if it breaks none."""
        keys, count = call.arguments[0], dict(before)
        if call.method == "prepare_store":
            enough = tuple(key for key in keys if count.get(key, 0) >= self.threshold)
            if answer != enough:
                return "reuse-filter/store-needs-threshold"
            return "reuse-filter/counts-outlive-chunks" if after != before else None
        if len(keys) != 1:
            together = before
            for key in keys:
                together = observe_all(together, (key,), self.limit)
            together = tuple((key, min(seen, self.threshold)) for key, seen in together)
            return "reuse-filter/lookup-counts-each-key" if after != together else None
        (key,) = keys
        others = tuple(entry for entry in before if entry[0] != key)
        if after[-1:] != ((key, min(count.get(key, 0) + 1, self.threshold)),):
            return (
                "reuse-filter/repeat-renews"
                if key in count
                else ("reuse-filter/lookup-counts-each-key")
            )
        full = key not in count and len(before) == self.limit
        if after[:-1] != others[full:]:
            return "reuse-filter/tracker-drops-least-recent"
        return None


class FilterSymmetry:
    """Keys of the filter's tracker are interchangeable.

    Args:
        keys: the number of keys.
    """

    def __init__(self, keys: int) -> None:
        self._keys = keys

    def _marks(self, state: Tracker[int]) -> list[int]:
        marks = [self._keys] * self._keys
        for place, (key, _) in enumerate(state):
            marks[key] = place
        return marks

    def renaming(self, state: Tracker[int]) -> tuple[int, ...]:
        """Return the renaming to the representative."""
        return ranks(self._marks(state))

    def rename(self, state: Tracker[int], names: tuple[int, ...]) -> Tracker[int]:
        """Return `state` with other names."""
        return tuple((names[key], count) for key, count in state)

    def rename_action(self, action: Call, names: tuple[int, ...]) -> Call:
        """Return `action` with other names."""
        return Call(action.method, (tuple(names[key] for key in action.arguments[0]),))

    def orbit(self, state: Tracker[int]) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self._marks(state))
