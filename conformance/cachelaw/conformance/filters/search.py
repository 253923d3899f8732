"""The filter engine: a reuse filter and the reference filter, each in front of a scripted backing.

What a filter does shows in two places only: in what reaches the backing, and in what comes back.
Both are judged after every call; nobody looks at a filter's counts. Calls that the backing should
have been given, and answers that should have come back, break a clause by themselves. Keys that
pass and should not, or the reverse, say only that the counting went wrong; then the clause is that
of the first directed probe that fails, or the most specific one that a shortest trace needs.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cachelaw.conformance import flight
from cachelaw.conformance.contexts import HostContext
from cachelaw.conformance.contract import Breach
from cachelaw.conformance.course import Course
from cachelaw.conformance.filters import generate
from cachelaw.conformance.filters.backing import Given, backing_for, objection
from cachelaw.conformance.filters.generate import FilterProgram
from cachelaw.conformance.filters.history import (
    ADMISSION,
    ELSE,
    EMPTY,
    FILTERED,
    LOOKUP,
    STORE,
    THRESHOLD,
    TRACKER,
    History,
)
from cachelaw.conformance.filters.probes import filter_probes
from cachelaw.conformance.filters.trace import WITH_CONTEXT, FilterEvent, FilterTrace
from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.instance import Codec, PlainCodec
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.plain import counted
from cachelaw.conformance.shrink import Reducer
from cachelaw.conformance.subject import Subject
from cachelaw.reference import v019, v020
from cachelaw.reference.manager import PrepareStoreOutput
from cachelaw.specs.registry import CLAUSES

FilterFinding = Finding[FilterTrace]

FilterExperiment = Callable[[FilterTrace], list[FilterFinding]]
"""Runs a trace on a new filter; returns what it found, one finding a clause."""

FILTER_CLAUSES = tuple(name for name, clause in CLAUSES.items() if clause.profile == "reuse-filter")

GROUPS = 2
"""Keys name one of so many KV cache groups."""

MOST_SHOWN = 200
"""Characters of an error's text that a report shows."""


class FilterRun:
    """A run in lockstep that collects what it finds.

    It goes on after a broken clause, which spoils nothing that is compared later, but not after an
    exception.

    Args:
        subject: the filter under test.
        trace: the scope; its events are not performed, the construction is.
        tally: where to count.

    Attributes:
        books: the backing of the reference, which says what is pending, ready and pinned.
        found: what was found, the first finding of each clause.
        conditions: the clauses that were put to the test until the filters diverged.
        given: the calls that reached the subject's backing during the last event, as text.
        answered: what the subject answered to it, as text.
    """

    def __init__(self, subject: Subject, trace: FilterTrace, tally: Tally) -> None:
        self.found: list[FilterFinding] = []
        self.conditions: set[str] = set()
        self.given: tuple[str, ...] = ()
        self.answered = ""
        self._trace = trace
        self._takes_context = trace.takes_context
        self._tally = tally
        self._lived: list[FilterEvent] = []
        self._codec = Codec(lambda key: key % GROUPS, fresh=True)
        self._contexts: dict[str, HostContext] = {}
        self._history = History(trace)
        self._plain = PlainCodec()
        self.books = backing_for(trace, self._plain)
        self._backing = backing_for(trace, self._codec)
        self._reference: Any = None
        flight.recorder.begin("lockstep", None, trace.with_events(()))
        self._filter = self._constructed(subject)

    def live(self, event: FilterEvent) -> None:
        """Let one event happen, if a scheduler could bring it about and the run is not over."""
        if self._filter is None or objection(self.books, self._trace, event) is not None:
            return
        self._lived.append(event)
        flight.recorder.add(event)
        self._tally.events += 1
        self._tally.calls += 1
        conditions = self._history.conditions(event)
        if all(finding.clause != DIVERGED for finding in self.found):
            self.conditions |= conditions
        self.books.begin(event)
        self._call(self._reference, event, self._plain)
        self._backing.begin(event)
        self.answered = ""
        try:
            self._judge(event, self._call(self._filter, event, self._codec))
        except Breach as breach:
            self._keep(breach)
        except Exception as error:
            clause = LOOKUP if event.method == "lookup" else ELSE
            if event.method == "prepare_store":
                clause = FILTERED if self._wanted.keys else EMPTY
            self._keep(Breach(clause, "the call returns", f"it raised {_told(error)}"))
            self._filter = None
        else:
            self._tally.met.update(conditions)
        self.given = tuple(map(str, self._backing.given))
        self._history.saw(event)

    def live_all(self) -> list[FilterFinding]:
        """Perform the events of the trace."""
        for event in self._trace.events:
            self.live(event)
        return self.found

    def _keep(self, breach: Breach) -> None:
        if all(finding.clause != breach.clause for finding in self.found):
            trace = self._trace.with_events(self._lived)
            self.found.append(Finding(breach.clause, trace, breach.expected, breach.actual))

    # --- construction ---

    def _constructed(self, subject: Subject) -> Any:
        """Return a filter as the trace wants it; None if there is none to go on with."""
        threshold, size = self._trace.store_threshold, self._trace.max_tracker_size
        arguments = {"store_threshold": threshold, "max_tracker_size": size}
        made, error = _made(subject, self._backing, threshold, size)
        if threshold >= 2 and size >= 1:
            edition = v020 if self._takes_context else v019
            self._reference = edition.FilterReusedOffloadingManager(self.books, **arguments)
            if error is not None:
                _, without = _made(subject, self._backing, threshold + 1, size)
                clause = THRESHOLD if without is None else TRACKER
                self._keep(Breach(clause, "a filter is made", f"it raised {_told(error)}"))
            return made
        clause = THRESHOLD if threshold < 2 else TRACKER
        if isinstance(error, ValueError):
            self._tally.met[clause] += 1
        else:
            actual = "a filter was made" if error is None else f"it raised {_told(error)}"
            self._keep(Breach(clause, "ValueError", actual))
        return None

    # --- calls ---

    def _call(self, callee: Any, event: FilterEvent, codec: Codec | PlainCodec) -> Any:
        """Make the event's call on one side."""
        method = getattr(callee, event.method)
        context: tuple[Any, ...] = ()
        if self._takes_context and event.method in WITH_CONTEXT:
            context = (self._contexts.setdefault(event.request, HostContext(event.request)),)
        if event.method == "take_events":
            return method()
        keys = [codec.encode(key) for key in event.keys]
        if event.method == "lookup" and self._takes_context:
            return method(keys[0], *context)
        passed = iter(keys) if event.one_shot else keys
        if event.method == "complete_store" and not event.success:
            return method(passed, False)
        return method(passed, *context)

    @property
    def _wanted(self) -> Given:
        """What the reference passed on."""
        made: Given = self.books.given[0]
        return made

    # --- judgement ---

    def _judge(self, event: FilterEvent, answer: Any) -> None:
        """Compare what reached the backing, and what came back, with what should have.

        Raises:
            Breach: a clause is broken, or the filters diverged.
        """
        match event.method:
            case "lookup":
                self._judge_call(LOOKUP)
                self.answered = repr(answer)
                self._judge_answer(LOOKUP, answer)
            case "prepare_store":
                self._judge_offer(event, answer)
            case "prepare_load":
                self._judge_call(ELSE)
                self._judge_answer(ELSE, answer)
            case "take_events":
                # It may be a generator, which gets going when it is walked, so walk it first.
                events = None if answer is None else list(answer)
                self._judge_call(ELSE)
                self.answered = "None" if events is None else counted(len(events), "event")
                handed = self._backing.answers[0]
                if events is None or [*map(id, events)] != [*map(id, handed)]:
                    wanted = f"the backing's {counted(len(handed), 'event')}"
                    raise Breach(ELSE, wanted, self.answered)
            case _:
                self._judge_call(ELSE)  # what else returns is nobody's business

    def _judge_call(self, clause: str) -> None:
        """Demand that exactly what the reference passed on has reached the backing."""
        given, wanted = self._backing.given, [self._wanted]
        if given != wanted:
            shown = _listed(given)
            if shown == _listed(wanted):
                shown += " with another context"
            raise Breach(
                clause, f"the backing is given {_listed(wanted)}", f"the backing is given {shown}"
            )

    def _judge_answer(self, clause: str, answer: Any) -> None:
        """Demand that the backing's answer has come back."""
        wanted = self._backing.answers[0]
        if answer is not wanted:
            raise Breach(clause, f"the backing's answer, {_shown(wanted)}", _other(wanted, answer))

    def _judge_offer(self, event: FilterEvent, answer: Any) -> None:
        given, wanted = self._backing.given, self._wanted
        expected = f"the backing is given {wanted}"
        actual = f"the backing is given {_listed(given)}"
        if answer is None or isinstance(answer, PrepareStoreOutput):
            self.answered = self._output(answer)
        if not given and not wanted.keys:
            raise Breach(EMPTY, expected, actual)
        passed = given[0].keys if given else ()
        if given:
            if [call.method for call in given] != ["prepare_store"]:
                raise Breach(FILTERED, f"{expected}, and no other call", actual)
            if given[0].context is not wanted.context:
                raise Breach(FILTERED, f"{expected} with the offer's context", "another context")
            if answer is not self._backing.answers[0]:
                raise Breach(
                    FILTERED,
                    f"{expected}, and its answer comes back",
                    f"{actual}, and {_other(self._backing.answers[0], answer)} comes back",
                )
            if answer is not None:
                self._judge_output(expected, answer)
            if len(set(passed)) < len(passed) or not set(passed) <= set(event.keys):
                raise Breach(FILTERED, expected, actual)
        if set(passed) != set(wanted.keys):
            raise Breach(DIVERGED, expected, actual)
        if passed != wanted.keys:
            raise Breach(STORE, f"{expected}, in the order of the offer", actual)

    def _judge_output(self, expected: str, answer: Any) -> None:
        """Demand that nobody has changed the lists in the backing's answer to an offer."""
        if (tuple(answer.keys_to_store), tuple(answer.evicted_keys)) != self._backing.output:
            raise Breach(
                FILTERED,
                f"{expected}, and its answer comes back as it was",
                f"the backing is given {_listed(self._backing.given)}, and its answer has been "
                f"changed: it now {self._output(answer)}",
            )

    def _output(self, answer: Any) -> str:
        if answer is None:
            return "None"
        stored = ", ".join(str(self._codec.decode(key)) for key in answer.keys_to_store)
        left = ", ".join(str(self._codec.decode(key)) for key in answer.evicted_keys)
        return f"stores [{stored}]" + (f", evicts [{left}]" if left else "")


def _made(
    subject: Subject, backing: Any, threshold: int, size: int
) -> tuple[Any, Exception | None]:
    """Return a filter and None, or None and what its constructor raised.

    The arguments are named, since that is how hosts tell the two apart.
    """
    try:
        return subject.build(backing, store_threshold=threshold, max_tracker_size=size), None
    except Exception as error:
        return None, error


def _listed(given: Sequence[Given]) -> str:
    return ", ".join(map(str, given)) or "nothing"


def _shown(answer: Any) -> str:
    """Show an answer; of objects the class will do."""
    simple = answer is None or isinstance(answer, bool | int)
    return repr(answer) if simple else f"a {type(answer).__name__}"


def _other(wanted: Any, answer: Any) -> str:
    """Show an answer that is not the one wanted."""
    shown = _shown(answer)
    return shown.replace("a ", "another ", 1) if shown == _shown(wanted) else shown


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:MOST_SHOWN]}"


def filter_experiment(subject: Subject, clause: str | None = None) -> FilterExperiment:
    """Return the experiment that runs a trace beside the reference.

    Args:
        subject: the filter under test.
        clause: what a divergence from the reference breaks, if the run met its condition.
    """

    def experiment(trace: FilterTrace) -> list[FilterFinding]:
        run = FilterRun(subject, trace, Tally(Counter()))
        found = run.live_all()
        if clause is None or clause not in run.conditions:
            return found
        return [replace(f, clause=clause) if f.clause == DIVERGED else f for f in found]

    return experiment


# --- The search ----------------------------------------------------------------------------------


class FilterSearch:
    """The search for violations, and what it has found so far.

    Args:
        subject: the filter under test.
        seed: what all random choices come from.
        progress: told, now and then, what is going on.
        course: where to keep what is done and found.
    """

    def __init__(
        self, subject: Subject, seed: int, progress: Callable[[str], None], course: Course
    ) -> None:
        self.tally = course.tally
        self.found = course.found
        self._course = course
        self._subject = subject
        self._seed = seed
        self._progress = progress

    def units(self, programs: int, events: int) -> Iterator[Callable[[], None]]:
        """Yield the work, the basic things first, in units after each of which a run can stop.

        Args:
            programs: random programs to run.
            events: events in each.
        """
        for probe in filter_probes():
            trace = probe.trace(self._subject.edition)
            yield partial(self._run_probe, trace, probe.clause)
        for number in range(programs):
            yield partial(self._run_program, number, programs, events)
        for clause in FILTER_CLAUSES:
            yield partial(self._shorten, clause)

    @property
    def _fault(self) -> str | None:
        """What is known to be wrong with what passes; later divergences may come of it."""
        known = (*self._course.blamed, FILTERED)
        return next((clause for clause in self._course.found if clause in known), None)

    def _run_probe(self, trace: FilterTrace, clause: str) -> None:
        self._progress("probes")
        self._take_in(FilterRun(self._subject, trace, self.tally).live_all(), clause)

    def _run_program(self, number: int, programs: int, events: int) -> None:
        if number % 10 == 0:
            self._progress(f"random programs {number}/{programs}")
        rng = random.Random(f"{self._seed}/{number}")
        trace = generate.scope(rng, self._subject.edition)
        program = FilterProgram(rng, trace)
        run = FilterRun(self._subject, trace, self.tally)
        for _ in range(events):
            run.live(program.next(run.books))
        self._take_in(run.found)

    def _shorten(self, clause: str) -> None:
        """Make what was found of a clause as short as it can be."""
        finding = self.found.get(clause)
        if finding is not None:
            self._progress(f"shortening the trace for {clause}")
            blamed = clause if clause in self._course.blamed else None
            again = filter_experiment(self._subject, blamed)
            self.found[clause] = FilterReducer(again, finding).reduce()

    def _take_in(self, found: list[FilterFinding], probed: str | None = None) -> None:
        """Keep what a run found.

        Args:
            found: its findings.
            probed: the clause that the run was a probe of.
        """
        for finding in found:
            if finding.clause != DIVERGED:
                self.found.setdefault(finding.clause, finding)
            elif self._fault is None:
                clause = probed if probed in ADMISSION else self._blamed(finding)
                if clause not in self.found:
                    self.found[clause] = replace(finding, clause=clause)
                self._course.blamed.add(clause)
            elif probed in ADMISSION and probed not in self.found:
                self._course.clouded[probed] = (
                    f"a probe of it fails, perhaps only because {self._fault} is violated"
                )

    def _blamed(self, finding: FilterFinding) -> str:
        """Return the most specific clause that a divergence, made short, puts to the test."""
        short = FilterReducer(filter_experiment(self._subject), finding).reduce()
        run = FilterRun(self._subject, short.trace, Tally(Counter()))
        run.live_all()
        return next((name for name in reversed(ADMISSION) if name in run.conditions), STORE)


# --- Shrinking -----------------------------------------------------------------------------------


class FilterReducer(Reducer[FilterTrace]):
    """Makes a finding on a filter shorter."""

    def _simplify(self) -> None:
        self._without_events()
        self._without_keys()
        self._at_smaller_scope()
        self._plainly()

    def _weight(self, trace: FilterTrace) -> tuple[int, ...]:
        """Return events, keys named, scope, whatever is out of the ordinary, names."""
        return (
            len(trace.events),
            # A call about nothing says less than one about a key.
            sum(len(event.keys) or 2 for event in trace.events if event.method != "take_events"),
            # A tracker that is never full plays no part; else the smaller the better.
            trace.max_tracker_size <= len(_keys(trace)),
            trace.max_tracker_size,
            trace.store_threshold,
            sum(_oddities(event) for event in trace.events),
            sum(int(event.request[1:]) for event in trace.events),
            sum(sum(event.keys) for event in trace.events),
        )

    def _without_keys(self) -> None:
        for key in _keys(self.best.trace):
            self._try_each(lambda event, key=key: _without(event, key))  # type: ignore[misc]
        at = 0
        while at < len(self.best.trace.events):
            for key in self.best.trace.events[at].keys:
                self._try_at(at, lambda event, key=key: _without(event, key))  # type: ignore[misc]
            at += 1

    def _at_smaller_scope(self) -> None:
        roomy = len(_keys(self.best.trace)) + 1
        for size in (roomy, *range(1, self.best.trace.max_tracker_size)):
            if self._try(replace(self.best.trace, max_tracker_size=size)):
                break
        for threshold in range(2, self.best.trace.store_threshold):
            if self._try(replace(self.best.trace, store_threshold=threshold)):
                break

    def _plainly(self) -> None:
        """Take away what is out of the ordinary, event by event, and number keys from 1."""
        changes: tuple[dict[str, Any], ...] = (
            {"hits": 0},
            {"refused": False},
            {"evicts": ()},
            {"success": True},
            {"one_shot": False},
            {"request": "r1"},
            {"request": "r2"},
        )
        for at in range(len(self.best.trace.events)):
            for change in changes:
                self._try_at(at, lambda event, change=change: replace(event, **change))  # type: ignore[misc]
            self._try_at(at, lambda event: replace(event, keys=tuple(sorted(event.keys))))
        number = {key: at for at, key in enumerate(_keys(self.best.trace), 1)}
        self._try_each(
            lambda event: replace(
                event,
                keys=tuple(number[key] for key in event.keys),
                evicts=tuple(number.get(key, key) for key in event.evicts),
            )
        )

    def _try_at(self, at: int, change: Callable[[FilterEvent], FilterEvent]) -> None:
        events = self.best.trace.events
        if at < len(events) and (changed := change(events[at])) != events[at]:
            self._try(self.best.trace.with_events((*events[:at], changed, *events[at + 1 :])))

    def _try_each(self, change: Callable[[FilterEvent], FilterEvent]) -> None:
        self._try(self.best.trace.with_events([change(e) for e in self.best.trace.events]))


def _keys(trace: FilterTrace) -> tuple[int, ...]:
    """Return every key that occurs, in the order of first sight."""
    return tuple(dict.fromkeys(key for event in trace.events for key in event.keys))


def _oddities(event: FilterEvent) -> int:
    """Return how much there is to an event that its kind can do without."""
    unsorted = event.keys != tuple(sorted(event.keys))
    odd = (event.hits != 0, event.refused, not event.success, event.one_shot, unsorted)
    return len(event.evicts) + sum(odd)


def _without(event: FilterEvent, key: int) -> FilterEvent:
    keys = tuple(other for other in event.keys if other != key)
    evicts = tuple(other for other in event.evicts if other != key)
    return replace(event, keys=keys, evicts=evicts)
