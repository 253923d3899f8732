"""Processes: laws that one process cannot break.

A policy that rolls dice, or takes an order from iterating a set of bytes, answers one way in this
process and another way in the next. So the same traces are run in three fresh interpreters, two of
them with the same hash seed, and every answer is compared. In each of them a trace meets one
instance alone; what instances do to each other is another law (`instances/share-nothing`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cachelaw.conformance import flight
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.lockstep import Answers, Lockstep, show_victims
from cachelaw.conformance.subject import Subject, Unusable, Wanted, find
from cachelaw.conformance.trace import Event, Trace, describe, trace_from_json
from cachelaw.reference.protocol import Evict, LoadEnds, StoreSucceeds, objection

SAME_CALLS = "determinism/same-calls-same-results"
HASH_SEED = "determinism/independent-of-hash-seed"
PROCESS_LAWS = (SAME_CALLS, HASH_SEED)
"""The laws that are judged by processes."""

SEEDS = {SAME_CALLS: ("1", "1"), HASH_SEED: ("1", "2")}
"""For each law, the hash seeds of the two processes that must agree."""

PATIENCE = 300
"""Seconds after which other processes are given up."""

Lives = list[list[Answers]]
"""For each trace, for each of its events up to a breach, the answers to its evictions."""


def judge(subject: Subject, traces: Sequence[Trace], tally: Tally) -> Iterator[Finding]:
    """Run traces in several processes and yield what differs, at most one finding for each law.

    Args:
        subject: a policy that can be found again by its name.
        traces: what each of its instances is to live through.
        tally: where to count.
    """
    traces = [_emptied(trace) for trace in traces]
    first, second, third = _elsewhere(subject, traces, ("1", "1", "2"))
    for clause, others in ((SAME_CALLS, second), (HASH_SEED, third)):
        tally.met[clause] += sum(bool(answers) for life in first for answers in life)
        for trace, one, other in zip(traces, first, others, strict=True):
            finding = _difference(clause, trace, one, other)
            if finding is not None:
                yield _shortened(subject, finding)
                break
        if second != first:
            return  # what differs from run to run differs between hash seeds too


def _emptied(trace: Trace) -> Trace:
    """Return the trace with events after it that empty the cache, so that every order shows.

    They are more than enough; what no manager could issue is left out when the trace is run.
    """
    ends: list[Event] = [LoadEnds((key,)) for key in trace.keys for _ in range(3)]
    ends.extend(StoreSucceeds((key,)) for key in trace.keys)
    ends.extend(Evict(1) for _ in range(trace.capacity))
    return trace.with_events((*trace.events, *ends))


def _difference(
    clause: str, trace: Trace, one: list[Answers], other: list[Answers]
) -> Finding | None:
    for at, (expected, actual) in enumerate(zip(one, other, strict=False)):
        if expected != actual:
            event = describe(trace.events[at])
            which = "a process with another hash seed" if clause == HASH_SEED else "another process"
            return Finding(
                clause,
                trace.with_events(trace.events[: at + 1]),
                f"{_shown(expected)} to '{event}', as in {which}",
                _shown(actual),
                "process",
            )
    return None


def _shown(answers: Answers) -> str:
    return " ".join(show_victims(answer) for answer in answers) or "nothing"


def _shortened(subject: Subject, finding: Finding) -> Finding:
    """Leave out events, all candidates of a round in one pair of processes."""
    while True:
        events = finding.trace.events
        candidates = [
            finding.trace.with_events(events[:at] + events[at + size :])
            for size in (len(events) // 2, len(events) // 4, 1)
            if size
            for at in range(0, len(events), size)
        ]
        first, second = _elsewhere(subject, candidates, SEEDS[finding.clause])
        found = [
            shorter
            for trace, one, other in zip(candidates, first, second, strict=True)
            if (shorter := _difference(finding.clause, trace, one, other)) is not None
            and len(shorter.trace.events) < len(events)
        ]
        if not found:
            return finding
        finding = min(found, key=lambda shorter: len(shorter.trace.events))


def _elsewhere(subject: Subject, traces: Sequence[Trace], seeds: Sequence[str]) -> list[Lives]:
    """Run traces in one fresh interpreter for each hash seed, side by side.

    Raises:
        Unusable: the subject cannot be found again by its name.
    """
    wanted = subject.wanted or Wanted(subject.name)
    task = {
        "wanted": replace(wanted, profile="contract", edition=subject.edition.name).as_json(),
        "traces": [trace.as_json() for trace in traces],
    }
    flight.recorder.begin("process")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{at}.json" for at in range(len(seeds))]
        running = []
        for path, seed in zip(paths, seeds, strict=True):
            path.write_text(json.dumps(task), encoding="utf-8")
            environment = {
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            }
            running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "cachelaw.conformance.processes", str(path)],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        _wait_for(running, subject)
        lives: list[Lives] = []
        for path in paths:
            data: Any = json.loads(path.read_text(encoding="utf-8"))
            lives.append([[_answers(event) for event in life] for life in data])
    return lives


def _wait_for(running: Sequence[subprocess.Popen[bytes]], subject: Subject) -> None:
    """Wait until all processes have ended well.

    Raises:
        Unusable: one of them has not.
    """
    try:
        for _ in range(PATIENCE):
            flight.recorder.beat()
            try:
                for process in running:
                    process.wait(1)
                break
            except subprocess.TimeoutExpired:
                continue
        else:
            raise Unusable(f"{subject.name} did not come to an end in a process of its own")
    finally:
        for process in running:
            process.kill()
            process.wait()
    if any(process.returncode for process in running):
        raise Unusable(f"{subject.name} cannot be run in a process of its own")


def _answers(data: Any) -> Answers:
    return [None if answer is None else tuple(answer) for answer in data]


def _live(subject: Subject, trace: Trace) -> list[Answers]:
    """Let a new instance live through a trace; return its answers to each event."""
    run = Lockstep(subject, trace.setting)
    life: list[Answers] = []
    try:
        for event in trace.events:
            possible = objection(run.setting, run.state, event) is None
            life.append(run.step(event) if possible else [])
    except Breach:
        pass  # for other laws to judge
    return life


def main() -> None:
    """Carry out the task in the file that is named, and write the answers over it."""
    path = Path(sys.argv[1])
    task = json.loads(path.read_text(encoding="utf-8"))
    subject = find(Wanted(**task["wanted"]))
    lives = [_live(subject, trace_from_json(trace)) for trace in task["traces"]]
    path.write_text(json.dumps(lives), encoding="utf-8")


if __name__ == "__main__":
    main()
    os._exit(0)  # threads that the subject has left behind must not keep this process
