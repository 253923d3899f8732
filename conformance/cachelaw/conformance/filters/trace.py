"""Traces of a reuse filter: the calls that a scheduler makes on it, as a list to be run again.

An event holds, besides the call, what the manager behind the filter answers to it: that manager
follows a script, and the script is part of the trace. Keys are small integers, as in `trace.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cachelaw.reference.editions import V020, Edition, edition_named

METHODS = (
    "lookup",
    "prepare_store",
    "prepare_load",
    "touch",
    "complete_load",
    "complete_store",
    "take_events",
)
"""The methods of a manager, and so of a filter."""

WITH_CONTEXT = ("lookup", "prepare_store", "prepare_load")
"""The methods that are given the request's context from v0.20 on."""


@dataclass(frozen=True, slots=True)
class FilterEvent:
    """One call on the filter, and the backing's answer to it.

    Attributes:
        method: one of `METHODS`.
        keys: what it is about; no key twice.
        request: on whose behalf; passed where the edition passes contexts.
        hits: of a lookup, how many of its first keys the backing finds; None: ask again later.
        refused: of an offer, whether the backing answers None.
        evicts: of an offer, which keys the backing evicts for what it takes in.
        success: of the end of a store, whether the data has arrived.
        one_shot: keys are passed, and events handed out, as an iterator that can be walked only
            once, not as a list.
    """

    method: str
    keys: tuple[int, ...] = ()
    request: str = "r1"
    hits: int | None = 0
    refused: bool = False
    evicts: tuple[int, ...] = ()
    success: bool = True
    one_shot: bool = False


@dataclass(frozen=True, slots=True)
class FilterTrace:
    """A run of a filter that can be repeated. Without events it is the construction alone.

    Attributes:
        edition: which form the filter has, v0.19's or v0.20's.
        store_threshold: what the filter is made with, valid or not.
        max_tracker_size: what the filter is made with, valid or not.
        events: what happened, in order.
    """

    edition: Edition
    store_threshold: int
    max_tracker_size: int
    events: tuple[FilterEvent, ...] = ()

    @property
    def takes_context(self) -> bool:
        """Whether a lookup is about one key and a request, as from v0.20 on."""
        return self.edition >= V020

    def with_events(self, events: Sequence[FilterEvent]) -> FilterTrace:
        """Return the same run with other events."""
        return replace(self, events=tuple(events))

    def as_json(self) -> dict[str, Any]:
        """Return the trace as plain data; `filter_trace_from_json` reads it back."""
        return {
            "profile": "reuse-filter",
            "edition": self.edition.name,
            "store_threshold": self.store_threshold,
            "max_tracker_size": self.max_tracker_size,
            "events": [_event_as_json(event) for event in self.events],
        }


def _event_as_json(event: FilterEvent) -> dict[str, Any]:
    """Return an event as plain data, without what it does not say."""
    data: dict[str, Any] = {}
    for field in fields(event):
        value = getattr(event, field.name)
        if value != field.default:
            data[field.name] = list(value) if isinstance(value, tuple) else value
    return data


def filter_trace_from_json(data: Mapping[str, Any]) -> FilterTrace:
    """Read a trace back.

    Raises:
        ValueError: `data` is not what `FilterTrace.as_json` returns.
    """
    try:
        events = tuple(_event_from_json(event) for event in data["events"])
        return FilterTrace(
            edition_named(data["edition"]),
            data["store_threshold"],
            data["max_tracker_size"],
            events,
        )
    except KeyError as error:
        raise ValueError(f"the trace has no {error.args[0]!r}") from None


def _event_from_json(data: Mapping[str, Any]) -> FilterEvent:
    if data.get("method") not in METHODS:
        known = ", ".join(METHODS)
        raise ValueError(f"{data.get('method')!r} is not a method of a filter; there are {known}")
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    try:
        return FilterEvent(**given)
    except TypeError as error:
        raise ValueError(f"event {data['method']!r}: {error}") from None


def in_form(edition: Edition, events: Sequence[FilterEvent]) -> tuple[FilterEvent, ...]:
    """Return events as a scheduler of `edition` brings them about.

    From v0.20 on, a lookup of several keys is one lookup after the other.
    """
    if edition < V020:
        return tuple(events)
    made: list[FilterEvent] = []
    for event in events:
        if event.method != "lookup":
            made.append(event)
            continue
        for at, key in enumerate(event.keys):
            hits = None if event.hits is None else int(at < event.hits)
            made.append(replace(event, keys=(key,), hits=hits, one_shot=False))
    return tuple(made)


def describe_call(trace: FilterTrace, event: FilterEvent) -> str:
    """Say in a few words what happens, as reports show it."""
    keys = " ".join(map(str, event.keys)) or "nothing"
    by = f" by {event.request}" if trace.takes_context and event.method in WITH_CONTEXT else ""
    refused = ", which the backing refuses" if event.refused else ""
    evicting = f", evicting {' '.join(map(str, event.evicts))}" if event.evicts else ""
    said = {
        "lookup": f"lookup of {keys}{by}",
        "prepare_store": f"offer of {keys}{by}{refused}{evicting}",
        "prepare_load": f"load of {keys}{by} starts",
        "touch": f"touch of {keys}",
        "complete_load": f"load of {keys} ends",
        "complete_store": f"store of {keys} {'succeeds' if event.success else 'fails'}",
        "take_events": "events are taken",
    }[event.method]
    return said + (" (keys in an iterator)" if event.one_shot and event.keys else "")
