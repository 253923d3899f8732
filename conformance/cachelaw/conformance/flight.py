"""The flight recorder: what a subject was doing when its process died.

A subject runs in a process of its own, and that process may crash, hang or be killed. So before
each event the engines note it in a file that both processes map into memory. It outlives the child,
and the parent reads from it how far the child came, and counts its signs of life.
"""

from __future__ import annotations

import ast
import json
import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cachelaw.conformance.any_trace import AnyTrace
from cachelaw.conformance.filters.trace import FilterEvent, filter_trace_from_json
from cachelaw.conformance.trace import EVENT_KINDS, trace_from_json

SIZE = 1 << 22
"""Bytes of a record. A run that needs more is recorded up to there."""

_HEAD = struct.Struct("<QQQ")
"""Signs of life, where the text after this head ends, and why the child has ended itself."""

MEDDLED = (
    "",
    "wrote into the file over which the suite reports",
    "closed the file over which the suite reports",
)
"""What a subject may have done to the reports, in words that complete "its process ..."."""

NO_ROOM = len(MEDDLED)
"""Stands where the other numbers do if there was no room for a report."""


@dataclass(frozen=True, slots=True)
class Flight:
    """What was recorded.

    Attributes:
        how: what kind of experiment was running: `lockstep`, `twin`, `process` or another engine.
        clause: the clause that it was about, None if about none in particular.
        trace: what the subject lived through, the last event being the one it was in; None if the
            engine runs no trace.
    """

    how: str
    clause: str | None
    trace: AnyTrace | None


class Recorder:
    """The child's end.

    Args:
        path: the file to record in, which the parent has made; None records nothing.
        meddled: says which of `MEDDLED` has happened. If any has, this process ends there.
    """

    def __init__(self, path: Path | None = None, meddled: Callable[[], int] = lambda: 0) -> None:
        self._meddled = meddled
        self._memory: mmap.mmap | None = None
        if path is not None:
            with path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), SIZE)
        self._beats = 0
        self._end = _HEAD.size

    def beat(self) -> None:
        """Give a sign of life."""
        if self._memory is not None:
            self._beats += 1
            _HEAD.pack_into(self._memory, 0, self._beats, self._end, 0)

    def begin(self, how: str, clause: str | None = None, trace: AnyTrace | None = None) -> None:
        """Note that an experiment begins, with the events that are known beforehand."""
        if self._memory is None:
            return
        self.check()
        plain = None if trace is None else trace.as_json()
        self._end = _HEAD.size
        self._write(json.dumps({"how": how, "clause": clause, "trace": plain}))

    def add(self, event: Any) -> None:
        """Note that an event is about to happen."""
        if self._memory is not None:
            self.check()
            self._write(_written(event))

    def check(self) -> None:
        """End this process if its subject has reached for the reports, and leave a note of it."""
        if self._memory is not None and (meddled := self._meddled()):
            self.end(meddled)

    def end(self, why: int) -> NoReturn:
        """End this process.

        Args:
            why: one of `MEDDLED`, or `NO_ROOM`.
        """
        if self._memory is not None:
            _HEAD.pack_into(self._memory, 0, self._beats, self._end, why)
        os._exit(1)

    def _write(self, line: str) -> None:
        assert self._memory is not None
        text = line.encode() + b"\n"
        end = self._end + len(text)
        if end <= SIZE:
            self._memory[self._end : end] = text
            self._end = end
        self.beat()


recorder = Recorder()
"""This process's own. A process has one, as an aircraft has: `install` puts a real one in place."""


def install(path: Path, meddled: Callable[[], int]) -> None:
    """Record in this file from here on, and look after the reports."""
    global recorder
    recorder = Recorder(path, meddled)


def make(path: Path) -> None:
    """Make an empty record."""
    path.write_bytes(bytes(SIZE))


def beats(memory: mmap.mmap) -> int:
    """Return the signs of life in a record."""
    count: int = _HEAD.unpack_from(memory, 0)[0]
    return count


def why_ended(path: Path) -> int:
    """Return why a child has ended itself: one of `MEDDLED`, or `NO_ROOM`."""
    number: int = _HEAD.unpack_from(path.read_bytes(), 0)[2]
    return number if number <= NO_ROOM else 0


def read(path: Path) -> Flight | None:
    """Return what is in a record, None if nothing was begun.

    A subject can damage the record like all else in its process. Then no more is known than that.
    """
    data = path.read_bytes()
    _, end, _ = _HEAD.unpack_from(data, 0)
    lines = data[_HEAD.size : min(end, SIZE)].decode(errors="replace").splitlines()
    if not lines:
        return None
    try:
        return _flight(lines)
    except (ValueError, LookupError, TypeError, SyntaxError, AttributeError):
        return Flight("unknown", None, None)


def _flight(lines: list[str]) -> Flight:
    head = json.loads(lines[0])
    plain = head["trace"]
    if plain is None:
        return Flight(head["how"], head["clause"], None)
    of_filter = "store_threshold" in plain
    trace: AnyTrace = filter_trace_from_json(plain) if of_filter else trace_from_json(plain)
    more = [_read(line) for line in lines[1:]]
    return Flight(head["how"], head["clause"], trace.with_events((*trace.events, *more)))


# --- Events as lines, cheap to write ---

_KINDS: dict[str, type] = {kind.__name__: kind for kind in (*EVENT_KINDS, FilterEvent)}


def _written(event: Any) -> str:
    kind = type(event)
    values = [getattr(event, name) for name in kind.__dataclass_fields__]
    return repr((kind.__name__, *(sorted(v) if isinstance(v, frozenset) else v for v in values)))


def _read(line: str) -> Any:
    name, *values = ast.literal_eval(line)
    return _KINDS[name](*(frozenset(v) if isinstance(v, list) else v for v in values))
