"""Differences: the shortest sequence of events to which two policies answer differently.

Both are driven side by side through the same events, each by the host of its own edition; only
events that managers of both editions issue are used. What is compared is what leaves, in which
order, and which clause of the universal contract is broken, if one is. First come the probes, then
random programs; what is found is made short, and then shorter ones are searched for breadth first.

Two releases of vLLM cannot be loaded by one process. Then one of them is served by a process of its
own (`serve.py`).
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cachelaw.conformance import flight, releases
from cachelaw.conformance.certify import BUDGETS, SMALL_SCOPE, Budget, budget_for, scope_of
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.finding import Finding
from cachelaw.conformance.foreign import PREFIX
from cachelaw.conformance.generate import Program
from cachelaw.conformance.lockstep import DIVERGED, Answers, Lockstep, show_victims
from cachelaw.conformance.plain import counted, plain
from cachelaw.conformance.probes import PROBES, contract_probes, twin_probes
from cachelaw.conformance.replay import scope
from cachelaw.conformance.shrink import Shrinker, shortest_from
from cachelaw.conformance.subject import Subject, Unusable, Wanted, find
from cachelaw.conformance.supervisor import Limits, carry_out
from cachelaw.conformance.trace import Event, Trace, describe
from cachelaw.conformance.verdict import EXIT_CONFORMS, EXIT_VIOLATED
from cachelaw.reference.editions import Edition, edition_named
from cachelaw.reference.protocol import Setting, State, objection

FORMAT = 1
"""Version of the form of the data."""

ALIKE, DIFFER = "no difference found", "differ"


# --- Side by side --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """What a policy answered to one event.

    Attributes:
        answers: to each eviction that it caused.
        breach: the clause that it broke, empty if none.
        how: what it did then.
    """

    answers: tuple[tuple[int, ...] | None, ...] = ()
    breach: str = ""
    how: str = ""

    @property
    def compared(self) -> tuple[tuple[int, ...], str]:
        """What must be equal: who left, in order. To be refused unasked is to be refused."""
        return tuple(key for answer in self.answers for key in answer or ()), self.breach

    def __str__(self) -> str:
        if self.breach:
            return f"breaks {self.breach}: {self.how}"
        return " ".join(map(show_victims, self.answers))


class Pair:
    """Two policies under the same events.

    Args:
        subjects: the two.
        trace: its scope; the events are not performed, and the edition plays no part.
    """

    def __init__(self, subjects: tuple[Subject, Subject], trace: Trace) -> None:
        self.met: Counter[str] = Counter()
        self.over = False
        """Whether both have broken the same clause, so that nothing can be said of what follows."""
        thorough = trace.capacity <= SMALL_SCOPE[-1]
        self._runs = tuple(
            Lockstep(
                replace(subject, profile="contract"),
                replace(trace, edition=subject.edition).setting,
                met=self.met,
                thorough=thorough,
            )
            for subject in subjects
        )
        self._older = min(self._runs, key=lambda run: run.setting.edition)

    @property
    def setting(self) -> Setting[int]:
        """That of the older edition. An event that is valid there is valid in both."""
        return self._older.setting

    @property
    def state(self) -> State[int]:
        """The books of the manager of the older edition."""
        return self._older.state

    @property
    def steps(self) -> int:
        """Calls made on both policies."""
        return sum(run.steps for run in self._runs)

    @steps.setter
    def steps(self, count: int) -> None:
        for run in self._runs:
            run.steps = count

    def step(self, event: Event) -> tuple[Said, Said]:
        """Let one event happen to both; return what they answered."""
        if self.over:
            return Said(), Said()
        one, other = (_said(run, event) for run in self._runs)
        self.over = bool(one.breach)
        return one, other

    def drain(self) -> Iterator[Event]:
        """Yield events that empty both caches one chunk at a time."""
        yield from self._older.drain()


def _said(run: Lockstep, event: Event) -> Said:
    try:
        answers: Answers = run.step(event)
    except Breach as breach:
        return Said((), breach.clause, breach.actual)
    return Said(tuple(answers))


def _differ(pair: Pair, event: Event) -> bool:
    one, other = pair.step(event)
    return one.compared != other.compared


# --- The search ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a comparison.

    Attributes:
        trace: the events that tell the two apart, None if none were found. Its edition is the older
            of the two.
        rows: for each event, what both answered.
        shortest: whether a breadth-first search found no shorter trace at its scope.
        traces: how many probes and random programs both lived through, or had begun.
        events: how many events happened to both in them.
    """

    trace: Trace | None
    rows: tuple[tuple[str, Said, Said], ...]
    shortest: bool
    traces: int
    events: int


def compare(
    one: Subject,
    other: Subject,
    budget: Budget,
    seed: int,
    progress: Callable[[str], None] = lambda line: None,
) -> Compared:
    """Search for the shortest sequence of events to which two policies answer differently.

    Args:
        one: a policy.
        other: another.
        budget: how many random programs to run.
        seed: what all random choices come from.
        progress: told, now and then, what is going on.

    Raises:
        Unusable: they cannot be compared.
    """
    for subject in (one, other):
        if subject.profile == "reuse-filter":
            raise Unusable(f"{subject.name} is a reuse filter; only policies can be compared")
        if subject.randomized:
            raise Unusable(f"{subject.name} declares itself randomized: it differs from itself")
    return _Comparison((one, other), budget, seed, progress).run()


class _Comparison:
    def __init__(
        self,
        subjects: tuple[Subject, Subject],
        budget: Budget,
        seed: int,
        progress: Callable[[str], None],
    ) -> None:
        self._subjects = subjects
        self._budget = budget
        self._seed = seed
        self._progress = progress
        self._edition = min(subject.edition for subject in subjects)
        self._foreign = any(subject.foreign for subject in subjects)
        self._traces = self._events = 0

    def run(self) -> Compared:
        found = next(self._found(), None)
        traces, events = self._traces, self._events
        if found is None:
            return Compared(None, (), False, traces, events)
        self._demand(bool(self._experiment(found.trace)))
        self._progress("making the trace short")
        short = Shrinker(self._experiment, found, foreign=self._foreign).reduce()
        self._progress("searching for a shorter one")
        first = Pair(self._subjects, short.trace)
        short = shortest_from(first, short, self._experiment, _differ, foreign=self._foreign)
        pair = Pair(self._subjects, short.trace)
        rows = tuple((describe(event), *pair.step(event)) for event in short.trace.events)
        self._demand(bool(rows) and rows[-1][1].compared != rows[-1][2].compared)
        return Compared(short.trace, rows, short.shortest, traces, events)

    def _demand(self, again: bool) -> None:
        """Demand that a difference has shown again.

        Raises:
            Unusable: it has not.
        """
        if not again:
            names = " and ".join(subject.name for subject in self._subjects)
            raise Unusable(f"{names}: one of them does not answer alike twice")

    def _found(self) -> Iterator[Finding]:
        """Yield differences as they are met."""
        for probes in (contract_probes, *PROBES.values(), twin_probes):
            self._progress("probes")
            for probe in probes(self._edition):
                yield from self._experiment(probe.trace(self._edition))
        for number in range(self._budget.programs):
            if number % 10 == 0:
                self._progress(f"random programs {number}/{self._budget.programs}")
            yield from self._program(number)

    def _experiment(self, trace: Trace) -> list[Finding]:
        """Run a trace and then empty the caches; return the difference if one is met."""
        run = _Both(self._subjects, trace)
        found = run.live(trace.events) or run.live(run.pair.drain())
        self._count(run)
        return found

    def _program(self, number: int) -> list[Finding]:
        rng, trace = scope_of(self._seed, number, self._edition)
        run = _Both(self._subjects, trace)
        keys = 2 * trace.capacity + rng.randint(0, trace.capacity + 2)
        program = Program(rng, run.pair.setting, keys)
        found: list[Finding] = []
        while len(run.lived) < self._budget.events and not found and not run.pair.over:
            found = run.live([program.next(run.pair.state)])
            for victims in run.answers:
                program.saw(victims)
        found = found or run.live(run.pair.drain())
        self._count(run)
        return found

    def _count(self, run: _Both) -> None:
        self._traces += 1
        self._events += len(run.lived)


class _Both:
    """A run of both through one trace."""

    def __init__(self, subjects: tuple[Subject, Subject], trace: Trace) -> None:
        self.lived: list[Event] = []
        self.answers: tuple[tuple[int, ...] | None, ...] = ()
        """Those to the last event, as long as both are alike."""
        self._trace = trace
        flight.recorder.begin("difference", None, trace.with_events(()))
        self.pair = Pair(subjects, trace)

    def live(self, events: Any) -> list[Finding]:
        """Let events happen, those that a manager could issue; return the first difference."""
        pair = self.pair
        for event in events:
            if pair.over:
                break
            if objection(pair.setting, pair.state, event) is not None:
                continue
            self.lived.append(event)
            flight.recorder.add(event)
            one, other = pair.step(event)
            if one.compared != other.compared:
                trace = self._trace.with_events(self.lived)
                return [Finding(DIVERGED, trace, str(one), str(other))]
            self.answers = one.answers
        return []


# --- In a process of its own ---------------------------------------------------------------------


def beside(
    one: Subject, other: Wanted, announce: Callable[[str], None] = lambda line: None
) -> Subject:
    """Find a subject; it is served by another process if it cannot be in this one beside `one`.

    Args:
        one: a subject that has been found in this process.
        other: what to find.
        announce: told of downloads.

    Raises:
        Unusable: it cannot be used.
    """
    taken = None if one.wanted is None else _release(one.wanted)
    if None in (taken, _release(other)) or taken == _release(other):
        return find(other, announce)
    try:
        # A command has seconds to say its first line, which a download may exceed.
        releases.fetch(str(_release(other)), announce=announce)
    except releases.ReleaseError as error:
        raise Unusable(str(error)) from None
    words = [sys.executable, "-m", "cachelaw.conformance.serve", json.dumps(other.as_json())]
    try:
        served = find(Wanted(PREFIX + shlex.join(words), edition=other.edition))
    except Unusable as error:
        raise Unusable(str(error).rpartition(f"{words[-1]}': ")[2]) from None
    return replace(served, name=other.name, wanted=other)


def _release(wanted: Wanted) -> str | None:
    """Return the version of vLLM whose modules a subject needs, None if of none in particular."""
    place = wanted.host or wanted.name.partition(":")[0]
    package, _, number = place.partition("==")
    return number if package == "vllm" and number else None


def carried_out(
    job: Mapping[str, Any],
    one: Subject,
    progress: Callable[[str], None] = lambda line: None,
    announce: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Compare in this process, and return what came of it as plain data.

    Args:
        job: `other`, which `Wanted(**other)` reads, the name of the `budget`, and the `seed`.
        one: the first of the two.
        progress: told, now and then, what is going on.
        announce: told of downloads.

    Raises:
        Unusable: they cannot be compared.
    """
    subjects = one, beside(one, Wanted(**job["other"]), announce)
    budget = budget_for(max(subjects, key=lambda subject: subject.foreign), job["budget"])
    compared = compare(*subjects, budget, job["seed"], progress)
    trace = compared.trace
    return {
        "format": FORMAT,
        "cachelaw": version("cachelaw"),
        "subjects": [
            {"subject": subject.name, "edition": subject.edition.name} for subject in subjects
        ],
        "edition": min(subject.edition for subject in subjects).name,
        "verdict": ALIKE if trace is None else DIFFER,
        "searched": {
            "budget": budget.name,
            "seed": job["seed"],
            "traces": compared.traces,
            "events": compared.events,
        },
        "shortest": compared.shortest,
        "trace": None if trace is None else trace.as_json(),
        "rows": [
            {"event": event, "answers": [str(one), str(other)]}
            for event, one, other in compared.rows
        ],
    }


def in_child(
    job: Mapping[str, Any],
    limits: Limits,
    progress: Callable[[str], None] = lambda line: None,
    announce: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Compare in a process that is watched, and return what `carried_out` does.

    Args:
        job: that of `carried_out`, with `wanted`, which says as `other` does what to compare it to.
        limits: what the two may take.
        progress: told, now and then, what is going on.
        announce: told of downloads.

    Raises:
        Unusable: they cannot be compared, or the process came to its end.
    """
    data: dict[str, Any] = {}

    def told(message: dict[str, Any]) -> None:
        match message:
            case {"progress": line}:
                progress(line)
            case {"announce": line}:
                announce(line)
            case {"unusable": line}:
                raise Unusable(line)
            case {"bug": traceback}:
                raise RuntimeError(f"the suite's own fault, in its worker:\n{traceback}")
            case {"difference": found}:
                data.update(found)

    death = carry_out({**job, "job": "diff"}, limits, told).death
    if death is not None:
        names = f"{job['wanted']['name']} and {job['other']['name']}"
        raise Unusable(
            f"{names}: the process in which they were compared {death.says}; cachelaw certify "
            "says of each what it was doing"
        )
    return data


# --- The command ---------------------------------------------------------------------------------

STATUS_HELP = """\
exit status:
  0  no difference was found, as far as was searched
  1  they differ; a trace that shows it is printed
  2  wrong usage, or one of them cannot be used
"""


def add_diff(commands: Any, limits: Limits) -> None:
    """Add the command to those of the command line.

    Args:
        commands: what `add_subparsers` returned.
        limits: what the two subjects may take.
    """
    adding: argparse.ArgumentParser = commands.add_parser(
        "diff",
        help="the shortest sequence on which two policies differ",
        description="Search for the shortest sequence of events to which two policies answer "
        "differently. Each is driven by hosts of its own edition, through events that both have.",
        epilog=STATUS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in ("one", "other"):
        adding.add_argument(name, metavar="SUBJECT", help="as for cachelaw certify")
    adding.add_argument(
        "--edition",
        metavar="EDITION",
        help="drive both by hosts of this edition, such as v0.31 (default: each by its own)",
    )
    adding.add_argument(
        "--host", metavar="RELEASE", help="such as vllm==0.30.0: supplies vllm to both"
    )
    adding.add_argument(
        "--budget",
        choices=tuple(BUDGETS),
        default="standard",
        help="how many random programs to run (default: standard)",
    )
    adding.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of all random choices (default: 1)"
    )
    adding.add_argument("--json", type=Path, metavar="F", help="write the result to F as JSON")
    adding.set_defaults(run=lambda options: run_diff(options, limits))


def run_diff(options: argparse.Namespace, limits: Limits) -> int:
    """Carry the command out; return the exit status.

    Raises:
        Unusable: the two cannot be compared, or the file cannot be written.
    """
    if options.json is not None and not options.json.parent.is_dir():
        raise Unusable(f"--json: there is no folder {options.json.parent}")
    edition = None if options.edition is None else _edition(options.edition).name
    one, other = (
        Wanted(name, edition=edition, host=None if name.startswith("vllm") else options.host)
        for name in (options.one, options.other)
    )
    job = {
        "wanted": one.as_json(),
        "other": other.as_json(),
        "budget": options.budget,
        "seed": options.seed,
    }
    console = Console(stderr=True, highlight=False)
    with console.status("loading both") as status:
        data = in_child(job, limits, status.update, lambda line: console.print(line, markup=False))
    if options.json is not None:
        try:
            options.json.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise Unusable(f"--json: {options.json} cannot be written: {error.strerror}") from None
    show(data, Console(highlight=False))
    return EXIT_CONFORMS if data["trace"] is None else EXIT_VIOLATED


def _edition(name: str) -> Edition:
    try:
        return edition_named(name)
    except ValueError as error:
        raise Unusable(str(error)) from None


def show(data: Mapping[str, Any], console: Console) -> None:
    """Print what came of a comparison.

    Args:
        data: what `carried_out` returned.
        console: where to.
    """

    def line(text: str) -> None:
        console.print(Text(plain(text)), soft_wrap=True)

    subjects = data["subjects"]
    for letter, subject in zip("AB", subjects, strict=True):
        line(f"{letter}  {subject['subject']}, driven by hosts of {subject['edition']}")
    if len({subject["edition"] for subject in subjects}) > 1:
        line(f"   only events that hosts of {data['edition']} have are used")
    searched = data["searched"]
    effort = (
        f"{searched['traces']:,} programs of {searched['events']:,} events in all, "
        f"budget {searched['budget']}, seed {searched['seed']}"
    )
    if data["trace"] is None:
        line(f"no difference found in {effort}")
        return
    line("")
    for said in scope(data["trace"]):
        line(said)
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "event", "A", "B"):
        table.add_column(heading, overflow="fold")
    rows = data["rows"]
    for number, row in enumerate(rows, 1):
        style = "bold red" if number == len(rows) else ""
        answers = (Text(plain(answer), style=style) for answer in row["answers"])
        table.add_row(str(number), Text(plain(row["event"])), *answers)
    console.print(table)
    line(f"they differ after {counted(len(rows), 'event')}")
    if data["shortest"]:
        line("a breadth-first search at this scope found no shorter trace")
    else:
        line("made short by leaving out what can be left out; a shorter trace may exist")
