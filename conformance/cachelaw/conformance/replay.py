"""Replay: a finding once more, for a reader event by event, or to see whether it is still there."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cachelaw.conformance import cost, memory, processes, store
from cachelaw.conformance.certificate import values
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.filters.search import FilterRun, filter_experiment
from cachelaw.conformance.filters.trace import FilterTrace, describe_call, filter_trace_from_json
from cachelaw.conformance.finding import Finding, Tally, lockstep_experiment, twin_experiment
from cachelaw.conformance.lockstep import Answers, Lockstep, show_victims
from cachelaw.conformance.plain import plain
from cachelaw.conformance.subject import Subject, Unusable, Wanted, find
from cachelaw.conformance.trace import REQUEST_KINDS, Event, describe, trace_from_json
from cachelaw.conformance.twins import TWINS
from cachelaw.conformance.verdict import EXIT_CONFORMS, EXIT_UNUSABLE, EXIT_VIOLATED
from cachelaw.reference.protocol import Call, objection, perform


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


def scope(trace: Mapping[str, Any]) -> list[str]:
    """Return lines that say at which scope a trace runs.

    Args:
        trace: as plain data.
    """
    if is_of_filter(trace):
        threshold, size = trace["store_threshold"], trace["max_tracker_size"]
        return [f"store_threshold {threshold}, max_tracker_size {size}"]
    line, groups = f"capacity {trace['capacity']}", trace["groups"]
    if groups > 1:
        line += f", {groups} groups: key k is in group k mod {groups}"
    requests = [event["request"] for event in trace["events"] if event.get("request")]
    kinds = {name[0]: name for name in requests if name[0] in REQUEST_KINDS}
    return [line, *(f"request {kinds[k]} {REQUEST_KINDS[k]}" for k in sorted(set(kinds) - {"u"}))]


def calls_heading(trace: Mapping[str, Any]) -> str:
    """Say what the calls of a trace's rows are.

    Args:
        trace: as plain data.
    """
    return "reaches the backing" if is_of_filter(trace) else "calls on the policy"


def is_of_filter(trace: Mapping[str, Any]) -> bool:
    """Say whether plain data are the trace of a filter, and not of a policy."""
    return "store_threshold" in trace


def rows(subject: Subject, finding: Finding[Any]) -> list[Row]:
    """Run a finding's trace again and return its events as rows, the last showing the breach."""
    if isinstance(finding.trace, FilterTrace):
        made = _rows_of_filter(subject, finding)
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
    for event in _survived(finding):
        watched.clear()
        answers: Answers = []
        # What another process went through need not be possible in this one.
        if objection(run.setting, run.state, event) is None:
            with suppress(Breach):
                answers = run.step(event)
        calls = tuple(_written(call) for call in watched if call.method != "get")
        answered = " ".join(show_victims(answer) for answer in answers)
        made.append(Row(describe(event), calls, answered, answered))
    if finding.how == "death" and trace.events:
        made.append(Row(describe(trace.events[-1]), _calls_ahead(run, trace.events[-1]), "", ""))
    return made


def _calls_ahead(run: Lockstep, event: Event) -> tuple[str, ...]:
    """Return the calls of an event, without making them, up to the first eviction.

    What follows an eviction depends on its answer.
    """
    made: list[str] = []
    if objection(run.setting, run.state, event) is None:
        for call in perform(run.setting, run.state, event):
            if call.method != "get":
                made.append(_written(call))
            if call.method == "evict":
                break
    return tuple(made)


def _survived(finding: Finding[Any]) -> tuple[Any, ...]:
    """Return the events that can be lived through again: all but the one that ends the process."""
    events: tuple[Any, ...] = finding.trace.events
    return events[:-1] if finding.how == "death" else events


def _rows_of_filter(subject: Subject, finding: Finding[FilterTrace]) -> list[Row]:
    trace = finding.trace
    if not trace.events:
        return [Row("construction", (), "", "")]
    run = FilterRun(subject, trace, Tally(Counter()))
    made: list[Row] = []
    for event in _survived(finding):
        run.live(event)
        made.append(Row(describe_call(trace, event), run.given, run.answered, run.answered))
    if finding.how == "death" and trace.events:
        made.append(Row(describe_call(trace, trace.events[-1]), (), "", ""))
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


# --- Is it still there? --------------------------------------------------------------------------

FIXED, FAILS, ERROR = "fixed", "fails", "error"

MARKS = {FIXED: "+", FAILS: "x", ERROR: "!"}

Run = Callable[[dict[str, Any]], dict[str, Any]]
"""Does a job of `job_of`, and returns what `carried_out` does."""


def job_of(entry: Mapping[str, Any], subject: str | None = None) -> dict[str, Any]:
    """Return what to run to see whether a counterexample is still one.

    Args:
        entry: a stored counterexample.
        subject: what to run it on; None takes the subject that it was found in.

    Returns:
        `wanted`, which `Wanted(**wanted)` reads, the `clause`, the `trace`, and by what it was
        `found_by`.
    """
    wanted = Wanted(
        subject or entry["subject"],
        entry["profile"],
        entry["edition"],
        tuple(entry["declared"]),
        entry["host"] if subject is None else None,
        values(entry["parameters"]) if subject is None else {},
    )
    found = entry["counterexample"]
    return {
        "wanted": wanted.as_json(),
        "clause": entry["clause"],
        "trace": found["trace"],
        "found_by": found["found_by"],
    }


def carried_out(job: Mapping[str, Any]) -> dict[str, Any]:
    """Do a job of `job_of` in this process.

    Returns:
        The `outcome`, `fixed`, `fails` or `error`; what was `expected` and the `actual` answer
        if it fails; and what the error `says`.
    """
    try:
        subject = find(Wanted(**job["wanted"]))
        found = again(subject, job["clause"], job["trace"], job["found_by"])
    except (Unusable, ValueError) as error:
        return {"outcome": ERROR, "says": str(error)}
    if found is None:
        return {"outcome": FIXED}
    return {"outcome": FAILS, "expected": found.expected, "actual": found.actual}


def again(
    subject: Subject, clause: str, trace: Mapping[str, Any], found_by: str
) -> Finding[Any] | None:
    """Run a trace again and return the finding of the clause, None if it is broken no more.

    Args:
        subject: what to run it on.
        clause: the clause that it broke.
        trace: as plain data.
        found_by: what had found it.

    Raises:
        ValueError: this is no trace, or none of this subject's kind; or there is no way to run it.
    """
    if is_of_filter(trace) != (subject.profile == "reuse-filter"):
        raise ValueError(f"{subject.name} is driven in another way than this trace")
    if is_of_filter(trace):
        return _of(clause, filter_experiment(subject, clause)(filter_trace_from_json(trace)))
    events = trace_from_json(trace)
    match found_by:
        case "lockstep" | "death":
            return _of(clause, lockstep_experiment(subject, clause)(events))
        case "twin":
            # A twin can break other clauses than the one that it is about.
            laws = sorted(TWINS, key=lambda name: name != clause)
            found = (_of(clause, twin_experiment(subject, law)(events)) for law in laws)
            return next((finding for finding in found if finding is not None), None)
        case "process":
            return _of(clause, processes.judge(subject, [events], Tally(Counter())))
        case "cost":
            return _of(clause, cost.judge(subject, Tally(Counter())).findings)
        case "memory":
            return _of(clause, memory.judge(subject, Tally(Counter())).findings)
    raise ValueError(f"what is found by {found_by} can only be found again by cachelaw certify")


def _of(clause: str, found: Iterable[Finding[Any]]) -> Finding[Any] | None:
    return next((finding for finding in found if finding.clause == clause), None)


STATUS_HELP = """\
exit status:
  0  every counterexample is fixed (+)
  1  one fails as before (x)
  2  wrong usage, or one could not be run (!)
"""


def add_replay(commands: Any, run: Run = carried_out) -> None:
    """Add the command `replay` to those of the command line.

    Args:
        commands: what `add_subparsers` returned.
        run: does a job of `job_of`.
    """
    adding: argparse.ArgumentParser = commands.add_parser(
        "replay",
        help="run a stored counterexample again",
        description="Run a stored counterexample again, or all in a report; without arguments, "
        "list what is stored.",
        epilog=STATUS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    adding.add_argument(
        "which",
        nargs="?",
        metavar="ID|FILE",
        help="the id of a counterexample, or a report of cachelaw certify --json",
    )
    adding.add_argument(
        "subject",
        nargs="?",
        metavar="SUBJECT",
        help="what to run it on (default: what it was found in)",
    )
    adding.set_defaults(run=lambda options: run_replay(options, run))


def run_replay(options: argparse.Namespace, run: Run) -> int:
    """Carry the command out; return the exit status.

    Raises:
        Unusable: there is no such counterexample.
    """
    if options.which is None:
        return _show_stored()
    entries = store.find(options.which)
    if not entries:
        print(f"{options.which} holds no counterexample")
        return EXIT_CONFORMS
    outcomes = set()
    for entry in entries:
        job = job_of(entry, options.subject)
        result = run(job)
        outcome = result["outcome"]
        outcomes.add(outcome)
        name = plain(job["wanted"]["name"])
        print(f"{MARKS[outcome]} {outcome:<5}  {entry['id']}  {entry['clause']}  {name}")
        if outcome == FAILS:
            print(f"    expected: {plain(result['expected'])}")
            print(f"    actual:   {plain(result['actual'])}")
        elif outcome == ERROR:
            print(f"    {plain(result['says'])}")
    if ERROR in outcomes:
        return EXIT_UNUSABLE
    return EXIT_VIOLATED if FAILS in outcomes else EXIT_CONFORMS


def _show_stored() -> int:
    entries = store.stored()
    if not entries:
        print(f"no counterexample is stored in {store.folder()}")
    for entry in entries:
        print(f"{entry['id']}  {entry['clause']}  {plain(entry['subject'])}")
    return EXIT_CONFORMS
