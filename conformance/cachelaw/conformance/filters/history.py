"""Which clauses of the reuse filter a call puts to the test, given all that happened before.

A law that holds must have been tried: its condition is met where a filter that breaks the clause
could answer otherwise. The history says when that is, and so, in a trace from which nothing can be
left out, which clause a wrong offer breaks.
"""

from __future__ import annotations

from cachelaw.conformance.filters.trace import FilterEvent, FilterTrace
from cachelaw.reference.reuse_filter import Tracker, observe, qualifies, times_seen

THRESHOLD = "reuse-filter/threshold-at-least-two"
TRACKER = "reuse-filter/tracker-at-least-one"
COUNTS = "reuse-filter/lookup-counts-each-key"
LOOKUP = "reuse-filter/lookup-delegates-all"
RENEWS = "reuse-filter/repeat-renews"
DROPS = "reuse-filter/tracker-drops-least-recent"
STORE = "reuse-filter/store-needs-threshold"
FILTERED = "reuse-filter/filtered-before-backing"
EMPTY = "reuse-filter/empty-offer-delegated"
ELSE = "reuse-filter/all-else-delegated"
OUTLIVE = "reuse-filter/counts-outlive-chunks"

ADMISSION = (STORE, COUNTS, DROPS, RENEWS, ELSE, OUTLIVE)
"""The clauses that decide what passes, from the basic to the specific."""


class History:
    """What became of each key.

    Args:
        trace: the scope; its events are not looked at.
    """

    def __init__(self, trace: FilterTrace) -> None:
        self._limit = trace.max_tracker_size
        self._threshold = trace.store_threshold
        self._takes_context = trace.takes_context
        self._tracker: Tracker[int] = ()
        self._sightings = 0
        self._entered: dict[int, int] = {}  # tracked keys: when they entered
        self._seen_by: dict[int, set[str]] = {}  # tracked keys: by which requests
        self._overlooked: set[int] = set()  # tracked keys with a sighting that one could overlook
        self._handled: set[int] = set()  # tracked keys that something was done to besides
        self._filled = False  # whether the tracker was ever full
        self._dropped: set[int] = set()  # keys that were ever dropped
        self._renewed: set[int] = set()  # keys spared by a repeat, and those dropped in their place

    def conditions(self, event: FilterEvent) -> frozenset[str]:
        """Return the clauses whose condition `event` meets if it happens now."""
        if event.method == "lookup":
            return frozenset((LOOKUP,))
        if event.method != "prepare_store":
            return frozenset((ELSE,))
        offered = set(event.keys)
        tracked = {key for key in offered if times_seen(self._tracker, key)}
        qualified = {k for k in offered if qualifies(self._tracker, k, self._threshold)}
        met: dict[str, object] = {
            STORE: tracked,
            COUNTS: qualified & self._overlooked,
            DROPS: (self._filled and tracked) or offered & self._dropped,
            RENEWS: offered & self._renewed,
            FILTERED: offered,
            EMPTY: not qualified,
            OUTLIVE: qualified & self._handled,
        }
        return frozenset(clause for clause, is_met in met.items() if is_met)

    def saw(self, event: FilterEvent) -> None:
        """Learn that `event` has happened."""
        if event.method == "lookup":
            for at, key in enumerate(event.keys):
                self._see(key, event, event.hits is None or at < event.hits)
            return
        handled = (*event.keys, *event.evicts)
        self._handled.update(key for key in handled if times_seen(self._tracker, key))

    def _see(self, key: int, event: FilterEvent, found: bool) -> None:
        before = {known for known, _ in self._tracker}
        self._tracker = observe(self._tracker, key, self._limit)
        for gone in before - {known for known, _ in self._tracker}:
            self._drop(gone)
        self._filled = self._filled or len(self._tracker) == self._limit
        self._sightings += 1
        self._entered.setdefault(key, self._sightings)
        seen_by = self._seen_by.setdefault(key, set())
        again = self._takes_context and event.request in seen_by
        seen_by.add(event.request)
        if found or again or event.one_shot or len(event.keys) > 1:
            self._overlooked.add(key)

    def _drop(self, gone: int) -> None:
        entered = self._entered.pop(gone)
        spared = {key for key, since in self._entered.items() if since < entered}
        if spared:
            self._renewed |= spared | {gone}
        self._dropped.add(gone)
        del self._seen_by[gone]
        self._overlooked.discard(gone)
        self._handled.discard(gone)
