"""Traces: what happened to a cache, as a list of events that can be run again.

Inside the suite keys are small integers. Their groups and their positions in a request's prefix
follow from a fixed layout, so that a trace needs no more than the events themselves: the first
letter of a request's name says what it knows of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from cachelaw.reference import protocol
from cachelaw.reference.editions import Edition, edition_named
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    Setting,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
)

Event = protocol.Event[int]

POSITION_STEP = 16
"""Tokens in a chunk: positions are multiples of it."""

REQUEST_KINDS = {
    "r": "knows the position of every key; higher keys lie further from the head",
    "s": "knows the position of every key; higher keys lie closer to the head",
    "m": "knows the positions of even keys only",
    "u": "knows no positions",
}
"""What the first letter of a request's name says of the positions it knows."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where keys stand: key k is in group k mod `groups`, at depth k div `groups` of the prefix.

    Args:
        groups: the number of KV cache groups, 1 or more.
    """

    groups: int = 1

    def group_of(self, key: int) -> int:
        """Return the KV cache group of `key`."""
        return key % self.groups

    def position_of(self, request: str, key: int) -> int | None:
        """Return the end token of `key` in the prefix of `request`, None if it is not known."""
        depth = key // self.groups
        match request[0]:
            case "r":
                return (depth + 1) * POSITION_STEP
            case "s":
                return (1000 - depth) * POSITION_STEP
            case "m":
                return (depth + 1) * POSITION_STEP if key % 2 == 0 else None
        return None


@dataclass(frozen=True, slots=True)
class Trace:
    """A run that can be repeated.

    Attributes:
        edition: whose protocol it follows.
        capacity: the number of chunks that fit.
        events: what happened, in order.
        groups: the number of KV cache groups.
    """

    edition: Edition
    capacity: int
    events: tuple[Event, ...]
    groups: int = 1

    @property
    def setting(self) -> Setting[int]:
        """What the protocol needs to know to perform the trace."""
        layout = Layout(self.groups)
        return Setting(self.edition, self.capacity, layout.group_of, layout.position_of)

    @property
    def keys(self) -> tuple[int, ...]:
        """Every key that occurs, in order."""
        return tuple(sorted({key for event in self.events for key in keys_of(event)}))

    def with_events(self, events: Sequence[Event]) -> Trace:
        """Return the same run with other events."""
        return replace(self, events=tuple(events))

    def as_json(self) -> dict[str, Any]:
        """Return the trace as plain data; `trace_from_json` reads it back."""
        return {
            "edition": self.edition.name,
            "capacity": self.capacity,
            "groups": self.groups,
            "events": [event_as_json(event) for event in self.events],
        }


_NAMES: dict[type, str] = {
    Lookup: "lookup",
    LoadStarts: "load starts",
    LoadEnds: "load ends",
    StoreOffered: "store offered",
    StoreSucceeds: "store succeeds",
    StoreFails: "store fails",
    Touch: "touch",
    RequestEnds: "request ends",
    Reset: "reset",
    Evict: "evict",
}
_KINDS = {name: kind for kind, name in _NAMES.items()}

EVENT_KINDS = tuple(_NAMES)
"""The classes of events."""


def keys_of(event: Event) -> Iterator[int]:
    """Yield the keys that an event names."""
    match event:
        case Lookup():
            yield event.key
        case Evict():
            yield from sorted(event.protected)
        case RequestEnds() | Reset():
            return
        case _:
            yield from event.keys


def request_of(event: Event) -> str | None:
    """Return the request on whose behalf an event happens, None if on nobody's."""
    name: str | None = getattr(event, "request", None)
    return name


def rewritten(
    event: Event,
    *,
    keys: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda keys: keys,
    request: Callable[[str], str] = lambda name: name,
) -> Event:
    """Return an event with other keys, or on another request's behalf.

    Args:
        event: the event as it was.
        keys: from its keys to the new ones; of a lookup, exactly one.
        request: from its request's name to the new one.
    """
    changes: dict[str, Any] = {}
    match event:
        case Lookup():
            changes["key"] = keys((event.key,))[0]
        case Evict():
            changes["protected"] = frozenset(keys(tuple(sorted(event.protected))))
        case RequestEnds() | Reset():
            pass
        case _:
            changes["keys"] = keys(event.keys)
    name = request_of(event)
    if name is not None:
        changes["request"] = request(name)
    changed: Any = replace(cast(Any, event), **changes)
    return cast(Event, changed)


def event_as_json(event: Event) -> dict[str, Any]:
    """Return an event as plain data."""
    data: dict[str, Any] = {"event": _NAMES[type(event)]}
    for name in type(event).__dataclass_fields__:
        value = getattr(event, name)
        if isinstance(value, tuple | frozenset):
            value = sorted(value) if isinstance(value, frozenset) else list(value)
        data[name] = value
    return data


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read an event back.

    Raises:
        ValueError: `data` is not what `event_as_json` returns.
    """
    kind = _KINDS.get(data.get("event", ""))
    if kind is None:
        raise ValueError(f"{data.get('event')!r} is not an event; there are {', '.join(_KINDS)}")
    fields = {name: value for name, value in data.items() if name != "event"}
    if "keys" in fields:
        fields["keys"] = tuple(fields["keys"])
    if "protected" in fields:
        fields["protected"] = frozenset(fields["protected"])
    try:
        event: Event = kind(**fields)
    except TypeError as error:
        raise ValueError(f"event {data['event']!r}: {error}") from None
    return event


def trace_from_json(data: Mapping[str, Any]) -> Trace:
    """Read a trace back.

    Raises:
        ValueError: `data` is not what `Trace.as_json` returns.
    """
    try:
        return Trace(
            edition_named(data["edition"]),
            data["capacity"],
            tuple(event_from_json(event) for event in data["events"]),
            data["groups"],
        )
    except KeyError as error:
        raise ValueError(f"the trace has no {error.args[0]!r}") from None


def describe(event: Event) -> str:
    """Say in a few words what happens, as reports show it."""
    keys = " ".join(str(key) for key in keys_of(event)) or "nothing"
    match event:
        case Lookup():
            return f"lookup {keys}"
        case LoadStarts():
            unrecorded = "" if event.recorded else ", not recorded"
            return f"{event.request} starts to load {keys}{unrecorded}"
        case LoadEnds():
            return f"load of {keys} ends"
        case StoreOffered():
            return f"{event.request} offers {keys}"
        case StoreSucceeds():
            return f"store of {keys} succeeds"
        case StoreFails():
            return f"store of {keys} fails"
        case Touch():
            return f"{event.request} touches {keys}"
        case RequestEnds():
            return f"{event.request} ends"
        case Reset():
            return "reset"
        case Evict():
            keeping = f", protecting {keys}" if event.protected else ""
            return f"evict {event.n}{keeping}"
