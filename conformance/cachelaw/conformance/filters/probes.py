"""Directed probes of the reuse filter: for each clause, short programs that put a filter to it.

They stand from the basic to the specific, and each presupposes what those before it ask for: the
clause that a filter breaks when it passes on the wrong keys is that of the first probe it fails.
Lookups are written as v0.19 makes them; `in_form` turns them into those of v0.20.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cachelaw.conformance.filters.history import (
    COUNTS,
    DROPS,
    ELSE,
    EMPTY,
    FILTERED,
    LOOKUP,
    OUTLIVE,
    RENEWS,
    STORE,
    THRESHOLD,
    TRACKER,
)
from cachelaw.conformance.filters.trace import FilterEvent, FilterTrace, in_form
from cachelaw.reference.editions import Edition

Events = tuple[FilterEvent, ...]

ROOMY = 8
"""A tracker that no probe about something else fills."""


@dataclass(frozen=True, slots=True)
class FilterProbe:
    """A program that is there for one clause.

    Attributes:
        clause: what a filter that fails it breaks.
        events: what happens; nothing where the construction is what counts.
        store_threshold: what the filter is made with.
        max_tracker_size: what the filter is made with.
    """

    clause: str
    events: Events = ()
    store_threshold: int = 2
    max_tracker_size: int = ROOMY

    def trace(self, edition: Edition) -> FilterTrace:
        """Return the probe as a trace of `edition`."""
        events = in_form(edition, self.events)
        return FilterTrace(edition, self.store_threshold, self.max_tracker_size, events)


# --- Words that programs are made of ---


def look(*keys: int, hits: int | None = 0, by: str = "r1") -> Events:
    """Return one lookup."""
    return (FilterEvent("lookup", keys, by, hits),)


def look_singly(*keys: int, first: int = 1) -> Events:
    """Return a lookup of each key, each by a request of its own, all of them misses.

    Args:
        keys: one for each lookup.
        first: the number of the first request.
    """
    return tuple(e for at, key in enumerate(keys, first) for e in look(key, by=f"r{at}"))


def offer(
    *keys: int, refused: bool = False, evicts: tuple[int, ...] = (), by: str = "r1"
) -> Events:
    """Return one offer."""
    return (FilterEvent("prepare_store", keys, by, refused=refused, evicts=evicts),)


def stored(*keys: int, success: bool = True) -> Events:
    """Return the end of a store."""
    return (FilterEvent("complete_store", keys, success=success),)


def loaded(*keys: int) -> Events:
    """Return a load from start to end."""
    return (FilterEvent("prepare_load", keys), FilterEvent("complete_load", keys))


def touched(*keys: int) -> Events:
    """Return a touch."""
    return (FilterEvent("touch", keys),)


def once(events: Events) -> Events:
    """Return the same calls with iterators in place of lists."""
    return tuple(replace(event, one_shot=True) for event in events)


TAKEN: Events = (FilterEvent("take_events"),)


# --- The probes ---


def filter_probes() -> Iterator[FilterProbe]:
    """Yield every probe, in order."""
    yield from _construction()
    yield from _threshold()
    yield from _delegation()
    yield from _counting()
    yield from _replacement()
    yield from _nothing_else_counts()
    yield from _counts_stay()


def _construction() -> Iterator[FilterProbe]:
    for threshold in (1, 0, -1, 2):
        yield FilterProbe(THRESHOLD, store_threshold=threshold)
    for size in (0, -1, 1):
        # With a threshold other than 2, so that it is plain which of the two was turned away.
        yield FilterProbe(TRACKER, store_threshold=3, max_tracker_size=size)


def _threshold() -> Iterator[FilterProbe]:
    for threshold in (2, 3, 4):
        # No key passes twice in a probe, unless it is about what becomes of its count then.
        counted = [look_singly(1, first=number) + offer(1) for number in range(1, threshold + 1)]
        yield FilterProbe(STORE, tuple(e for step in counted for e in step), threshold)
        yield FilterProbe(STORE, look_singly(*[1] * (threshold + 2)) + offer(1), threshold)
    # Some of an offer pass, in the order of the offer, not in that of their sightings.
    seen = look_singly(1, 2, 3, 1, 2, 4)
    yield FilterProbe(STORE, seen + offer(3, 2, 9, 1, 4))
    yield FilterProbe(STORE, seen + once(offer(3, 2, 9, 1, 4)))
    # To be offered is not to be seen.
    yield FilterProbe(STORE, look_singly(1) + offer(1) * 3)
    yield FilterProbe(STORE, offer(1) * 3 + look_singly(1) + offer(1))
    yield FilterProbe(STORE, look_singly(1) + offer(1, refused=True) * 3)


def _delegation() -> Iterator[FilterProbe]:
    lookups = (
        look(1)
        + look(1, hits=1)
        + look(1, hits=None)
        + look(3, 1, 2)
        + look(2, 3, hits=1, by="r2")
        + look(1, 2, 3, 4, hits=4)
        + look()
    )
    yield FilterProbe(LOOKUP, lookups)
    yield FilterProbe(LOOKUP, once(lookups))
    yield FilterProbe(LOOKUP, look(1, 2, 3, hits=1) * 2, max_tracker_size=1)
    seen = look_singly(1, 2, 3, 1, 2)
    for offered in (offer(1, 2, by="r2"), offer(1, 3, 2)):
        yield FilterProbe(FILTERED, seen + offered)
        yield FilterProbe(FILTERED, seen + once(offered))
    yield FilterProbe(FILTERED, seen + offer(1, 3, 2, refused=True))
    yield FilterProbe(FILTERED, seen + offer(1) + stored(1) + offer(3, 2, evicts=(1,)))
    yield FilterProbe(EMPTY, offer(1, 2))
    yield FilterProbe(EMPTY, offer())
    yield FilterProbe(EMPTY, look_singly(1) + offer(1, refused=True) + offer(1))
    chunks = look_singly(1, 2, 3, 1, 2, 3) + offer(1, 2, 3)
    rest = stored(2, 1) + stored(3, success=False) + touched(1, 5, 2) + loaded(2, 1) + TAKEN + TAKEN
    yield FilterProbe(ELSE, chunks + rest)
    yield FilterProbe(ELSE, chunks + once(rest))
    nothing = touched() + stored() + stored(success=False) + loaded() + TAKEN
    yield FilterProbe(ELSE, nothing)


def _counting() -> Iterator[FilterProbe]:
    # Every key of a lookup, whatever the backing finds.
    for hits in (0, 1, 2, 3, None):
        yield FilterProbe(COUNTS, look(1, 2, 3, hits=hits) * 2 + offer(1, 2, 3))
    yield FilterProbe(COUNTS, once(look(1, 2, 3)) * 2 + offer(1, 2, 3))
    # A request that asks twice counts twice.
    yield FilterProbe(COUNTS, look(1, hits=1) * 2 + offer(1, by="r2"))


def _replacement() -> Iterator[FilterProbe]:
    # Full, the tracker makes room for a new key: by the one seen longest ago, and no other.
    yield FilterProbe(DROPS, look_singly(1, 2, 1) + offer(1), max_tracker_size=1)
    yield FilterProbe(DROPS, look_singly(1, 1) + offer(1), max_tracker_size=1)
    for size in (2, 3):
        keys = tuple(range(1, size + 2))
        kept = look_singly(*keys, *keys[1:]) + offer(*keys)
        yield FilterProbe(DROPS, kept, max_tracker_size=size)
        lost = look_singly(*keys, 1) + offer(1)
        yield FilterProbe(DROPS, lost, max_tracker_size=size)
    # A key that is there already needs no room.
    yield FilterProbe(DROPS, look_singly(1, 2, 2, 1) + offer(1, 2), max_tracker_size=2)
    # How often the others were seen plays no part; nor does it come back what was lost.
    yield FilterProbe(DROPS, look_singly(1, 1, 2, 3, 1) + offer(1), 3, max_tracker_size=2)
    yield FilterProbe(DROPS, look_singly(1, 1, 2, 3, 2) + offer(2), max_tracker_size=2)
    # Within one lookup.
    yield FilterProbe(DROPS, look(1, 2, 3, 4) * 2 + offer(1, 2, 3, 4), max_tracker_size=3)
    yield FilterProbe(
        DROPS, look(1, 2, 3, 4) + look(2, 3, 4) + offer(1, 2, 3, 4), max_tracker_size=3
    )
    # To be offered is not to be seen: it keeps nobody.
    yield FilterProbe(
        DROPS, look_singly(1, 2) + offer(1) + look_singly(3, 1) + offer(1), max_tracker_size=2
    )
    # To be seen again is to be seen last.
    yield FilterProbe(RENEWS, look_singly(1, 2, 1, 3, 1) + offer(1), 3, max_tracker_size=2)
    yield FilterProbe(RENEWS, look_singly(1, 2, 1, 3, 2) + offer(2), max_tracker_size=2)
    yield FilterProbe(
        RENEWS, look_singly(1, 2, 3, 1, 2, 4, 1, 2) + offer(1, 2), 3, max_tracker_size=3
    )
    # What is resident counts like anything else.
    resident = look_singly(1, 1) + offer(1) + stored(1) + look_singly(2)
    yield FilterProbe(COUNTS, resident + look(1, hits=1) * 2 + offer(1), max_tracker_size=1)


def _nothing_else_counts() -> Iterator[FilterProbe]:
    yield FilterProbe(ELSE, look_singly(1) + touched(1) * 2 + offer(1))
    yield FilterProbe(ELSE, touched(1) * 2 + look_singly(1) + offer(1))
    chunk = look_singly(1, 1) + offer(1)
    forgotten = look_singly(2, 1)  # with a tracker of 1
    for done in (
        stored(1),
        stored(1, success=False),
        stored(1) + TAKEN,
        stored(1) + loaded(1),
        stored(1) + touched(1),
    ):
        yield FilterProbe(ELSE, chunk + forgotten + done + offer(1), max_tracker_size=1)
    # None of it keeps a key in the tracker either: 1 is dropped, and 2 is not.
    pair = look_singly(1, 1, 2, 2) + offer(1) + stored(1)
    for done in (touched(1), loaded(1), touched(1) + TAKEN):
        kept = done + look_singly(3)
        yield FilterProbe(ELSE, pair + kept + offer(2, 1), max_tracker_size=2)
    late = look_singly(1, 1) + offer(1) + look_singly(2, 2)
    for done in (stored(1), stored(1, success=False)):
        kept = done + look_singly(3)
        yield FilterProbe(ELSE, late + kept + offer(2, 1), max_tracker_size=2)


def _counts_stay() -> Iterator[FilterProbe]:
    chunk = look_singly(1, 1) + offer(1)
    other = look_singly(2, 2)
    for done in (
        (),
        stored(1),
        stored(1, success=False),
        stored(1) + touched(1),
        stored(1) + loaded(1),
        stored(1) + TAKEN,
        stored(1) + other + offer(2, evicts=(1,)),
        stored(1) + other + offer(2, evicts=(1,)) + TAKEN,
        stored(1) + other + offer(2, evicts=(1,)) + stored(2, success=False) + TAKEN,
    ):
        yield FilterProbe(OUTLIVE, chunk + done + offer(1))
    yield FilterProbe(OUTLIVE, look_singly(1, 1) + offer(1, refused=True) + offer(1))
    # What is not yet enough stays too.
    for done in (touched(1), offer(1), offer(1, refused=True)):
        yield FilterProbe(OUTLIVE, look_singly(1) + done + look_singly(1, first=2) + offer(1))
    # And what is enough, however often it is used.
    yield FilterProbe(
        OUTLIVE, look_singly(1, 1) + (offer(1) + stored(1, success=False)) * 4 + offer(1)
    )
