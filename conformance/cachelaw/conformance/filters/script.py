"""Scripts of filters: the calls of a scheduler, written down, with a manager that answers.

What a filter does shows in what reaches the manager behind it and in what comes back. The file
checks both for the last call, and all of it: a filter that keeps the clauses passes.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from cachelaw.conformance.filters.search import GROUPS, FilterRun
from cachelaw.conformance.filters.trace import WITH_CONTEXT, FilterEvent, FilterTrace
from cachelaw.conformance.filters.v021 import FilterV021
from cachelaw.conformance.finding import Finding, Tally
from cachelaw.conformance.script import CHECK, CONTEXT, KEY, NUMBER, Place, Script, assemble
from cachelaw.conformance.subject import Subject
from cachelaw.specs.registry import CLAUSES

BACKING = '''
class Output:
    """A manager's answer to an offer that it did not refuse."""

    def __init__(self, keys_to_store, evicted_keys):
        self.keys_to_store = keys_to_store
        self.store_spec = object()
        self.evicted_keys = evicted_keys


class Event:
    """News of chunks that appeared or vanished."""

    def __init__(self, keys, removed):
        self.keys = keys
        self.medium = "CPU"
        self.removed = removed


class Backing:
    """The manager behind the filter: it notes what it is given, and answers as it is told."""

    def __init__(self):
        self.pending, self.ready, self.news = set(), set(), []

    def told(self, hits=0, refuses=False, evicts=(), one_shot=False):
        """Say what to answer to the next call."""
        self.hits, self.refuses, self.evicts, self.one_shot = hits, refuses, evicts, one_shot
        self.given, self.answers = [], []

    def note(self, method, keys, context, success=True):
        keys = [keys] if isinstance(keys, bytes) else list(keys)
        self.given.append((method, [number(key) for key in keys], context, success))
        self.answers.append(None)
        return [number(key) for key in keys]

    def answer(self, answer):
        self.answers[-1] = answer
        return answer

    def lookup(self, keys, context=None):
        self.note("lookup", keys, context)
        return self.answer(self.hits)

    def prepare_load(self, keys, context=None):
        self.note("prepare_load", keys, context)
        return self.answer(object())

    def prepare_store(self, keys, context=None):
        numbers = self.note("prepare_store", keys, context)
        if self.refuses:
            return None
        taken = [n for n in dict.fromkeys(numbers) if n not in self.pending | self.ready]
        evicted = [n for n in self.evicts if n in self.ready][: len(taken)]
        self.ready.difference_update(evicted)
        self.pending.update(taken)
        self.tell(evicted, removed=True)
        self.output = [k(n) for n in taken], [k(n) for n in evicted]
        return self.answer(Output(*map(list, self.output)))

    def touch(self, keys, context=None):
        self.note("touch", keys, context)

    def complete_load(self, keys, context=None):
        self.note("complete_load", keys, context)

    def complete_store(self, keys, *said, success=True):
        success = next((one for one in said if isinstance(one, bool)), success)
        context = next((one for one in said if not isinstance(one, bool)), None)
        ended = self.note("complete_store", keys, context, success)
        self.pending.difference_update(ended)
        if success:
            self.ready.update(ended)
            self.tell(ended, removed=False)

    def take_events(self):
        self.note("take_events", (), None)
        news, self.news = self.news, []
        self.answer(tuple(news))
        return iter(news) if self.one_shot else news

    def tell(self, numbers, removed):
        if numbers:
            self.news.append(Event([k(n) for n in numbers], removed))
'''


def filter_script(subject: Subject, finding: Finding[FilterTrace], place: Place) -> Script:
    """Write the script of a finding on a filter.

    Args:
        subject: the filter.
        finding: what was found.
        place: how a file gets hold of the subject.
    """
    trace = finding.trace
    writer = _Writer(subject, trace)
    lines = writer.life() if trace.events else _construction(trace)
    make = (
        "def make(backing, store_threshold, max_tracker_size):\n"
        "    sizes = dict(store_threshold=store_threshold, max_tracker_size=max_tracker_size)\n"
        f"    return Subject(backing, **sizes{place.arguments})\n"
    )
    blocks = [f"GROUPS = {GROUPS}", KEY, NUMBER, BACKING]
    if any("ReqContext(" in line for line in lines):
        blocks.append(CONTEXT)
    if any("check(" in line for line in lines):
        blocks.append(CHECK)
    test = "def {test}():\n" + "".join(f"    {line}\n" for line in lines)
    clause = CLAUSES[finding.clause]
    return assemble(clause, subject.name, trace.edition.name, place, [*blocks, make, test])


def maker(subject: Subject) -> Any:
    """Return what makes the filter itself, without an adapter, from a backing and the two sizes."""
    build = subject.build
    if isinstance(build, partial) and build.func is FilterV021:
        build = build.args[0]
    return lambda backing, threshold, size: build(
        backing, store_threshold=threshold, max_tracker_size=size
    )


def _made(trace: FilterTrace) -> str:
    return f"make(Backing(), {trace.store_threshold}, {trace.max_tracker_size})"


def _construction(trace: FilterTrace) -> list[str]:
    """Return the lines that make a filter, or must not be able to."""
    if trace.store_threshold >= 2 and trace.max_tracker_size >= 1:
        return [
            "try:",
            f"    {_made(trace)}",
            "except Exception as error:",
            '    raise AssertionError(f"{CLAUSE}: it raised {error!r}") from error',
        ]
    return [
        "try:",
        f"    {_made(trace)}",
        "except ValueError:",
        "    return",
        "except Exception as error:",
        '    raise AssertionError(f"{CLAUSE}: {error!r}, which is no ValueError") from error',
        'raise AssertionError(f"{CLAUSE}: a filter was made, without a ValueError")',
    ]


class _Writer:
    """Writes a run of a filter.

    Args:
        subject: the filter.
        trace: the run.
    """

    def __init__(self, subject: Subject, trace: FilterTrace) -> None:
        self._subject = subject
        self._trace = trace
        self._everywhere = isinstance(subject.build, partial) and subject.build.func is FilterV021
        self._lines: list[str] = []
        self._contexts: set[str] = set()

    def life(self) -> list[str]:
        """Return the lines of the run and of the checks after its last call."""
        trace, events = self._trace, self._trace.events
        self._lines = [
            "backing = Backing()",
            f"filter = make(backing, {trace.store_threshold}, {trace.max_tracker_size})",
        ]
        run = FilterRun(self._subject, trace, Tally(Counter()))
        for event in events[:-1]:
            self._tell(event)
            call = self._call(event)
            self._lines.append(f"list({call} or ())" if event.method == "take_events" else call)
            run.live(event)
        last = events[-1]
        self._tell(last)
        # What the reference passes on does not hang on the subject.
        run.live(last)
        call = self._call(last)
        if last.method == "take_events":
            call = f"list({call})"
        self._lines += [
            "try:",
            f"    answer = {call}",
            "except Exception as error:",
            '    raise AssertionError(f"{CLAUSE}: it raised {error!r}") from error',
        ]
        self._check(last, run.books.given[0])
        return self._lines

    def _tell(self, event: FilterEvent) -> None:
        """Write what the backing is told to answer."""
        said = []
        if event.method == "lookup" and event.hits != 0:
            hits: int | bool | None = event.hits
            if hits is not None:
                hits = bool(hits) if self._trace.takes_context else min(hits, len(event.keys))
            said.append(f"hits={hits}")
        elif event.method == "lookup" and self._trace.takes_context:
            said.append("hits=False")
        if event.refused:
            said.append("refuses=True")
        if event.evicts:
            said.append(f"evicts={list(event.evicts)}")
        if event.one_shot and event.method == "take_events":
            said.append("one_shot=True")
        self._lines.append(f"backing.told({', '.join(said)})")

    def _call(self, event: FilterEvent) -> str:
        """Write the call, after the context that it passes."""
        if event.method == "take_events":
            return "filter.take_events()"
        arguments = []
        keys = ", ".join(f"k({key})" for key in event.keys)
        if event.method == "lookup" and self._trace.takes_context:
            arguments.append(keys)
        else:
            one_shot = event.one_shot and not self._everywhere
            arguments.append(f"iter([{keys}])" if one_shot else f"[{keys}]")
        context = self._context(event)
        if context is not None:
            arguments.append(context)
        if event.method == "complete_store" and not event.success:
            arguments.append("False")
        return f"filter.{event.method}({', '.join(arguments)})"

    def _context(self, event: FilterEvent) -> str | None:
        """Return the name of the context that a call passes, after writing where it is made."""
        if self._trace.takes_context and event.method in WITH_CONTEXT:
            name = event.request
        elif self._everywhere and event.method != "take_events":
            name = "own"
        else:
            return None
        if name not in self._contexts:
            self._contexts.add(name)
            request = "r1" if name == "own" else event.request
            self._lines.append(f'{name} = ReqContext("{request}")')
        return name

    def _check(self, event: FilterEvent, wanted: Any) -> None:
        given = (wanted.method, list(wanted.keys), wanted.success)
        method, keys, success = given
        context = self._context(event)
        self._lines += [
            f'wanted = ("{method}", {keys}, {context}, {success})',
            'check(backing.given == [wanted], f"the backing is given {backing.given}")',
        ]
        if event.method in ("lookup", "prepare_load", "prepare_store"):
            self._lines.append(
                'check(answer is backing.answers[0], "the backing\'s answer comes back")'
            )
        if event.method == "prepare_store" and not event.refused:
            self._lines.append(
                "check((answer.keys_to_store, answer.evicted_keys) == backing.output, "
                '"the answer is as it was")'
            )
        if event.method == "take_events":
            self._lines.append(
                "check([*map(id, answer)] == [*map(id, backing.answers[0])], "
                '"the backing\'s events come back")'
            )
