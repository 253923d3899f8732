"""The manager behind a filter: it notes what it is given and answers as the trace says.

It keeps only the books that decide which calls are valid: what is pending, ready and pinned. Its
answers are objects of its own, of the kinds that managers give, so that it shows whether they come
back untouched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cachelaw.conformance.filters.trace import FilterEvent, FilterTrace
from cachelaw.conformance.instance import Codec, PlainCodec
from cachelaw.reference.manager import (
    CPULoadStoreSpec,
    OffloadingEvent,
    OffloadingManager,
    PrepareStoreOutput,
)

T = TypeVar("T")

MEDIUM = CPULoadStoreSpec.medium()


@dataclass(frozen=True, slots=True)
class Given:
    """A call that reached the backing.

    Attributes:
        method: which.
        keys: about which keys, in order; None for what is no key that was ever passed.
        context: the request's context, None where the method has none.
        success: of `complete_store`, what was said.
    """

    method: str
    keys: tuple[int | None, ...] = ()
    context: Any = None
    success: bool = True

    def __str__(self) -> str:
        if self.method == "take_events":
            return "take_events()"
        shown = ", ".join("?" if key is None else str(key) for key in self.keys)
        failed = "" if self.success else ", success=False"
        return f"{self.method}([{shown}]{failed})"


class Backing(OffloadingManager):
    """What the scripted managers of both forms have in common.

    Args:
        codec: how keys are passed on this side.

    Attributes:
        script: the event that is happening, which says what to answer.
        given: the calls that reached it during that event.
        answers: what it answered to each of them.
        pending: keys whose data is awaited.
        ready: keys whose data is there.
        pins: how many loads read each key.
        output: the keys stored and the keys evicted in its last answer to an offer, as they were
            when it was given.
    """

    def __init__(self, codec: Codec | PlainCodec) -> None:
        self.script = FilterEvent("take_events")
        self.given: list[Given] = []
        self.answers: list[Any] = []
        self.pending: set[int] = set()
        self.ready: set[int] = set()
        self.pins: Counter[int] = Counter()
        self.output: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
        self._codec = codec
        self._news: list[OffloadingEvent] = []

    def begin(self, script: FilterEvent) -> None:
        """Let an event begin."""
        self.script = script
        self.given.clear()
        self.answers.clear()

    def touch(self, keys: Iterable[Any]) -> None:
        """Note the call."""
        self._note("touch", keys)

    def complete_load(self, keys: Iterable[Any]) -> None:
        """Note the call; each key loses one pin."""
        self.pins.subtract(self._note("complete_load", keys))
        self.pins = +self.pins

    def complete_store(self, keys: Iterable[Any], success: bool = True) -> None:
        """Note the call; the keys become ready, or are forgotten."""
        ended = self._note("complete_store", keys, success=success)
        self.pending.difference_update(ended)
        if success:
            self.ready.update(ended)
            self._announce(ended, removed=False)

    def take_events(self) -> Iterable[OffloadingEvent]:
        """Note the call; hand out the events since the last one."""
        self._note("take_events", ())
        news, self._news = self._news, []
        self._answer(tuple(news))  # what is handed out may be changed
        return iter(news) if self.script.one_shot else news

    def _note(
        self, method: str, keys: Iterable[Any], context: Any = None, success: bool = True
    ) -> list[int]:
        """Note a call; return the keys that are known, in order."""
        decoded = [self._codec.decode(key) for key in keys]
        self.given.append(Given(method, tuple(decoded), context, success))
        self.answers.append(None)
        return [key for key in decoded if key is not None]

    def _announce(self, keys: Sequence[int], *, removed: bool) -> None:
        if keys:
            made = [self._codec.encode(key) for key in keys]
            self._news.append(OffloadingEvent(made, MEDIUM, removed))

    def _answer(self, answer: T) -> T:
        self.answers[-1] = answer
        return answer

    def _load(self, keys: list[int]) -> CPULoadStoreSpec:
        self.pins.update(keys)
        return self._answer(CPULoadStoreSpec(tuple(keys)))

    def _offer(self, keys: list[int]) -> PrepareStoreOutput | None:
        if self.script.refused:
            return None
        taken = [key for key in dict.fromkeys(keys) if key not in self.pending | self.ready]
        # Nothing leaves unless something comes.
        evicted = [key for key in self.script.evicts if key in self.ready][: len(taken)]
        self.ready.difference_update(evicted)
        self.pending.update(taken)
        self._announce(evicted, removed=True)
        encode = self._codec.encode
        stored, left = [encode(key) for key in taken], [encode(key) for key in evicted]
        self.output = (tuple(stored), tuple(left))
        return self._answer(PrepareStoreOutput(stored, CPULoadStoreSpec(tuple(taken)), left))


class BackingV019(Backing):
    """The scripted manager of v0.19: a lookup takes many keys."""

    def lookup(self, keys: Iterable[Any]) -> int | None:
        """Note the call; answer as many hits as the script says."""
        self._note("lookup", keys)
        hits = self.script.hits
        return self._answer(hits if hits is None else min(hits, len(self.script.keys)))

    def prepare_load(self, keys: Iterable[Any]) -> CPULoadStoreSpec:
        """Note the call; pin the keys."""
        return self._load(self._note("prepare_load", keys))

    def prepare_store(self, keys: Iterable[Any]) -> PrepareStoreOutput | None:
        """Note the call; take in what is absent, or refuse, as the script says."""
        return self._offer(self._note("prepare_store", keys))


class BackingV020(Backing):
    """The scripted manager of v0.20: a lookup takes one key, and contexts come along."""

    def lookup(self, key: Any, req_context: Any) -> bool | None:
        """Note the call; answer a hit or a miss as the script says."""
        self._note("lookup", (key,), req_context)
        return self._answer(None if self.script.hits is None else bool(self.script.hits))

    def prepare_load(self, keys: Iterable[Any], req_context: Any) -> CPULoadStoreSpec:
        """Note the call; pin the keys."""
        return self._load(self._note("prepare_load", keys, req_context))

    def prepare_store(self, keys: Iterable[Any], req_context: Any) -> PrepareStoreOutput | None:
        """Note the call; take in what is absent, or refuse, as the script says."""
        return self._offer(self._note("prepare_store", keys, req_context))


def backing_for(trace: FilterTrace, codec: Codec | PlainCodec) -> Any:
    """Return a new backing of the trace's form; each side of a lockstep has its own."""
    return BackingV020(codec) if trace.takes_context else BackingV019(codec)


def objection(backing: Backing, trace: FilterTrace, event: FilterEvent) -> str | None:
    """Say why no scheduler could bring `event` about, None if one could.

    Args:
        backing: holds the books.
        trace: says in which form.
        event: what would happen next.
    """
    keys = set(event.keys)
    if len(keys) != len(event.keys):
        return "a key stands twice"
    match event.method:
        case "lookup":
            if trace.takes_context and (len(keys) != 1 or event.one_shot):
                return "a lookup of this edition is about one key"
        case "prepare_load":
            if not keys <= backing.ready:
                return "not ready"
        case "complete_load":
            if not keys <= set(backing.pins):
                return "not being loaded"
        case "complete_store":
            if not keys <= backing.pending:
                return "not being stored"
        case "prepare_store":
            if not set(event.evicts) <= backing.ready - set(backing.pins) - keys:
                return "evicts what is not idle or is offered"
    return None
