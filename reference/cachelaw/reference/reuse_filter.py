"""The reuse filter: only what was asked for before is worth storing.

Most prefixes never come back. Storing their chunks costs a transfer each, and room that others
had earned. The filter stands in front of a manager and counts how often each key is looked up; an
offer passes on to the manager only the keys that were looked up often enough. To remember every
key ever seen would cost memory without end, so the tracker holds a bounded number of them, those
seen most recently.

What follows from counting lookups is easily overlooked, and later editions changed it piece by
piece: a request that looks up twice satisfies a threshold of two alone; a lookup of more keys than
the tracker holds drops its own first keys, so that such an offer never passes whole, however often
it is repeated; and where a scheduler stops at the first key that is missing, only that one is
counted, and a prefix warms up one chunk at a time.

The tracker comes first, as a pure functional core: a value that never changes, and functions on
it. The decorator that hosts put in front of a manager follows, in the form of v0.19, whose lookup
takes many keys (vLLM 0.18 and 0.19, and the seed), and in that of v0.20, whose lookup takes one
(vLLM 0.20). From v0.22 on the filter is part of the manager. The names in the comments are clauses
of `specs/reuse-filter.md`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.manager import (
    LoadStoreSpec,
    OffloadingEvent,
    OffloadingManager,
    OffloadingManagerV019,
    OffloadingManagerV020,
    PrepareStoreOutput,
)

K = TypeVar("K", bound=Hashable)

# --- The tracker ---------------------------------------------------------------------------------

Tracker = tuple[tuple[K, int], ...]
"""Keys with the number of times each was seen (1 or more), the least recently seen first."""


def times_seen(tracker: Tracker[K], key: K) -> int:
    """Return how often `key` was seen since it entered the tracker; 0 if it is not there."""
    return next((count for other, count in tracker if other == key), 0)


def observe(tracker: Tracker[K], key: K, limit: int) -> Tracker[K]:
    """See `key` once more.

    Args:
        tracker: what was seen before.
        key: a known key counts one more; a new one starts at 1.
        limit: how many keys the tracker may hold, 1 or more; a new key makes room for itself.
    """
    count = times_seen(tracker, key)
    others = tuple(entry for entry in tracker if entry[0] != key)
    if count == 0 and len(others) >= limit:
        others = others[1:]  # reuse-filter/tracker-drops-least-recent
    return (*others, (key, count + 1))  # reuse-filter/repeat-renews


def observe_all(tracker: Tracker[K], keys: Iterable[K], limit: int) -> Tracker[K]:
    """See `keys` one after the other, each as often as it stands there.

    A later key may push out an earlier one of the same call.
    """
    for key in keys:
        tracker = observe(tracker, key, limit)  # reuse-filter/lookup-counts-each-key
    return tracker


def qualifies(tracker: Tracker[K], key: K, threshold: int) -> bool:
    """Say whether `key` was seen `threshold` times or more; one forgotten was seen 0 times."""
    return times_seen(tracker, key) >= threshold  # reuse-filter/store-needs-threshold


def admitted(tracker: Tracker[K], keys: Iterable[K], threshold: int) -> tuple[K, ...]:
    """Return those of `keys` that qualify, in the order given. To be offered is not to be seen."""
    return tuple(key for key in keys if qualifies(tracker, key, threshold))


# --- The decorator -------------------------------------------------------------------------------

B = TypeVar("B", bound=OffloadingManager)


def _check(name: str, value: object, least: int) -> int:
    """Return `value` if it is an int of `least` or more.

    That bools and other types are turned away is ours; the releases compare and go on.

    Raises:
        ValueError: it is not; the message gives the name and the value.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"FilterReusedOffloadingManager {name} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"FilterReusedOffloadingManager {name} must be >= {least}, got {value}")
    return value


class _ReuseFilter(OffloadingManager, Generic[B]):
    """All of the filter but the three methods whose form changed.

    Args:
        backing: the manager that does the work.
        store_threshold: how often a key must be looked up before it may be stored, 2 or more;
            1 would let everything through that was ever looked up.
        max_tracker_size: how many keys are remembered at most, 1 or more.

    Attributes:
        store_threshold: as given.
        max_tracker_size: as given.
        counts: the tracker, as an ordered mapping from key to count.

    Raises:
        ValueError: `store_threshold` or `max_tracker_size` is not an int of that range.
    """

    def __init__(
        self, backing: B, store_threshold: int = 2, max_tracker_size: int = 64_000
    ) -> None:
        # reuse-filter/threshold-at-least-two, reuse-filter/tracker-at-least-one
        self.store_threshold = _check("store_threshold", store_threshold, least=2)
        self.max_tracker_size = _check("max_tracker_size", max_tracker_size, least=1)
        self._backing = backing
        self.counts: OrderedDict[OffloadKey, int] = OrderedDict()

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Pass on; to touch is not to look up (`reuse-filter/all-else-delegated`)."""
        self._backing.touch(keys)

    def complete_load(self, keys: Iterable[OffloadKey]) -> None:
        """Pass on (`reuse-filter/all-else-delegated`)."""
        self._backing.complete_load(keys)

    def complete_store(self, keys: Iterable[OffloadKey], success: bool = True) -> None:
        """Pass on; a failed store keeps its count (`reuse-filter/counts-outlive-chunks`)."""
        self._backing.complete_store(keys, success)

    def take_events(self) -> Iterable[OffloadingEvent]:
        """Pass on; an evicted chunk keeps its count (`reuse-filter/counts-outlive-chunks`)."""
        return self._backing.take_events()

    # The next two are `observe` and `qualifies` on `counts`, without the walk along a tuple that
    # may be 64,000 entries long. The tests hold them against each other.

    def _observe(self, key: OffloadKey) -> None:
        count = self.counts.pop(key, 0)
        if count == 0 and len(self.counts) >= self.max_tracker_size:
            self.counts.popitem(last=False)  # reuse-filter/tracker-drops-least-recent
        self.counts[key] = count + 1  # reuse-filter/repeat-renews

    def _qualifies(self, key: OffloadKey) -> bool:
        return self.counts.get(key, 0) >= self.store_threshold  # reuse-filter/store-needs-threshold


class FilterReusedOffloadingManagerV019(_ReuseFilter[OffloadingManagerV019], OffloadingManagerV019):
    """The filter of vLLM 0.18 and 0.19 and of the seed: a lookup counts all its keys.

    Args:
        backing: the manager that does the work.
        store_threshold: how often a key must be looked up before it may be stored, 2 or more.
        max_tracker_size: how many keys are remembered at most, 1 or more.

    Raises:
        ValueError: `store_threshold` or `max_tracker_size` is not an int of that range.
    """

    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        """Count each of `keys`, those past the first miss too, and pass all of them on."""
        keys = list(keys)  # they may come only once, and are needed twice
        for key in keys:
            self._observe(key)  # reuse-filter/lookup-counts-each-key
        return self._backing.lookup(keys)  # reuse-filter/lookup-delegates-all

    def prepare_store(self, keys: Iterable[OffloadKey]) -> PrepareStoreOutput | None:
        """Pass on those of `keys` that were seen often enough, even if there are none.

        The others never reach the manager, so that nothing is evicted for them
        (`reuse-filter/filtered-before-backing`).
        """
        passed = [key for key in keys if self._qualifies(key)]
        # reuse-filter/empty-offer-delegated
        return self._backing.prepare_store(passed)

    def prepare_load(self, keys: Iterable[OffloadKey]) -> LoadStoreSpec:
        """Pass on; to load is not to look up (`reuse-filter/all-else-delegated`)."""
        return self._backing.prepare_load(keys)


class FilterReusedOffloadingManagerV020(_ReuseFilter[OffloadingManagerV020], OffloadingManagerV020):
    """The filter of vLLM 0.20: a lookup counts its one key.

    Arguments and errors are those of `FilterReusedOffloadingManagerV019`. Contexts go through to
    the manager; whose request it is makes no difference to the count.
    """

    def lookup(self, key: OffloadKey, req_context: ReqContext) -> bool | None:
        """Count `key` and pass it on."""
        self._observe(key)  # reuse-filter/lookup-counts-each-key
        return self._backing.lookup(key, req_context)  # reuse-filter/lookup-delegates-all

    def prepare_store(
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> PrepareStoreOutput | None:
        """Pass on those of `keys` that were seen often enough, even if there are none.

        The others never reach the manager, so that nothing is evicted for them
        (`reuse-filter/filtered-before-backing`).
        """
        passed = [key for key in keys if self._qualifies(key)]
        # reuse-filter/empty-offer-delegated
        return self._backing.prepare_store(passed, req_context)

    def prepare_load(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> LoadStoreSpec:
        """Pass on; to load is not to look up (`reuse-filter/all-else-delegated`)."""
        return self._backing.prepare_load(keys, req_context)
