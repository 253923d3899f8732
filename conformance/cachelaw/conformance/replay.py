"""Replay: a finding once more, written down event by event for a reader."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from cachelaw.conformance.any_trace import AnyTrace
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.filters.search import FilterRun
from cachelaw.conformance.filters.trace import FilterTrace, describe_call
from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.lockstep import Lockstep, show_victims
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import REQUEST_KINDS, Trace, describe, request_of
from cachelaw.reference.protocol import Call


@dataclass(frozen=True, slots=True)
class Row:
    """One event of a counterexample.

    Attributes:
        event: what happened.
        calls: the calls that it made on the policy, without those of `get`; or what reached the
            backing of a filter.
        expected: what the last call should have answered, where that is known.
        actual: what it answered.
    """

    event: str
    calls: tuple[str, ...]
    expected: str
    actual: str


def scope(trace: AnyTrace) -> list[str]:
    """Return lines that say at which scope a trace runs."""
    if isinstance(trace, FilterTrace):
        return [
            f"store_threshold {trace.store_threshold}, max_tracker_size {trace.max_tracker_size}"
        ]
    assert isinstance(trace, Trace)
    line = f"capacity {trace.capacity}"
    if trace.groups > 1:
        line += f", {trace.groups} groups: key k is in group k mod {trace.groups}"
    kinds = {name[0]: name for name in map(request_of, trace.events) if name is not None}
    return [line, *(f"request {kinds[k]} {REQUEST_KINDS[k]}" for k in sorted(set(kinds) - {"u"}))]


def calls_heading(trace: AnyTrace) -> str:
    """Say what the calls of a trace's rows are."""
    return "reaches the backing" if isinstance(trace, FilterTrace) else "calls on the policy"


def rows(subject: Subject, finding: Finding[Any]) -> list[Row]:
    """Run a finding's trace again and return its events as rows, the last showing the breach."""
    if isinstance(finding.trace, FilterTrace):
        made = _rows_of_filter(subject, finding.trace)
    else:
        made = _rows_of_policy(subject, finding)
    if made:
        last = made[-1]
        made[-1] = Row(last.event, last.calls, finding.expected, finding.actual)
    return made


def _rows_of_policy(subject: Subject, finding: Finding) -> list[Row]:
    trace = finding.trace
    profile = subject.profile if finding.how == "lockstep" else "contract"
    run = Lockstep(subject, trace.setting, profile)
    watched: list[Call] = []
    run.watch = watched
    made: list[Row] = []
    for event in trace.events:
        watched.clear()
        try:
            answers = run.step(event)
        except Breach:
            answers = []
        calls = tuple(_written(call) for call in watched if call.method != "get")
        answered = " ".join(show_victims(answer) for answer in answers)
        made.append(Row(describe(event), calls, answered, answered))
    return made


def _rows_of_filter(subject: Subject, trace: FilterTrace) -> list[Row]:
    if not trace.events:
        return [Row("construction", (), "", "")]
    run = FilterRun(subject, trace, Tally(Counter()))
    made: list[Row] = []
    for event in trace.events:
        run.live(event)
        made.append(Row(describe_call(trace, event), run.given, run.answered, run.answered))
    return made


def _written(call: Call) -> str:
    """Write a call as it looks in Python, with keys as numbers."""
    method, arguments = call
    if method == "set_ref_cnt":
        return f"ref_cnt of {arguments[0]} = {arguments[1]}"
    if method == "insert":
        return f"insert({arguments[0]})"
    if method == "evict":
        return f"evict({arguments[0]}, {_set(arguments[1])})"
    if method == "on_request_finished":
        groups, inserted, reused, _ = arguments
        lists = ", ".join(_list(group) for group in groups)
        return f"on_request_finished([{lists}], {_set(inserted)}, {_set(reused)})"
    if arguments and isinstance(arguments[0], tuple):
        return f"{method}({_list(arguments[0])})"
    return f"{method}({', '.join(str(argument) for argument in arguments)})"


def _list(keys: Any) -> str:
    return "[" + ", ".join(str(key) for key in keys) + "]"


def _set(keys: Any) -> str:
    return "{" + ", ".join(str(key) for key in sorted(keys)) + "}" if keys else "set()"
