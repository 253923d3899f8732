"""Recordings: every call that is made on a subject, as something that can be written down.

A trace says what happened to a cache; a recording says which calls that took, with the arguments
as they were passed: keys as numbers, contexts and status objects by the name of what they belong
to. A reproduction is written from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from cachelaw.conformance.instance import Codec
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Trace
from cachelaw.conformance.twins import UNKNOWN


class Key(NamedTuple):
    """A key that was passed: its number, and whether the same object had been passed before."""

    number: int
    same: bool


class Keys(NamedTuple):
    """A collection of keys: `list`, `set`, `tuple` or `iter`."""

    kind: str
    items: tuple[Any, ...]


class Context(NamedTuple):
    """A request's context: its id, the positions it knows by key, and what else it says."""

    request: str
    positions: tuple[tuple[int, int], ...]
    said: tuple[tuple[str, Any], ...]


class Status(NamedTuple):
    """The status object that is inserted, with its slot."""

    slot: int


@dataclass(slots=True)
class Step:
    """One thing that happened.

    Attributes:
        instance: on which instance, counted from 0.
        method: the policy's method; or `make`, `set_ref_cnt` (by the manager) or `event`.
        arguments: what was passed.
        answer: of an `evict`, the victims' numbers (None for what is no key), or None.
        raised: whether the call raised.
    """

    instance: int
    method: str
    arguments: tuple[Any, ...] = ()
    answer: list[int | None] | None = None
    raised: bool = False


@dataclass(slots=True)
class Recorder:
    """Records the calls on all instances of a subject that are built through `subject`.

    Attributes:
        log: what happened, in order.
    """

    original: Subject
    trace: Trace
    log: list[Step] = field(default_factory=list)
    _numbers: dict[bytes, int] = field(default_factory=dict)
    _passed: dict[tuple[int, int], Any] = field(default_factory=dict)
    _built: int = 0
    _inside: int = 0
    _owners: dict[int, tuple[int, int, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        codec = Codec(self.trace.setting.group_of, fresh=False)
        last = max(self.trace.keys, default=0) + 1  # a neighbour's keys are one higher
        for number in (*range(last + 1), UNKNOWN):
            self._numbers[codec.encode(number)] = number

    @property
    def subject(self) -> Subject:
        """The subject, whose instances are recorded."""
        return replace(self.original, build=self._build, status=self._status_factory())

    def note(self, text: str) -> None:
        """Note what is about to happen, in words."""
        self.log.append(Step(max(0, self._built - 1), "event", (text,)))

    def _build(self, capacity: int) -> Recorded:
        number, self._built = self._built, self._built + 1
        self.log.append(Step(number, "make", (capacity,)))
        self._inside += 1
        try:
            return Recorded(self.original.build(capacity), self, number)
        finally:
            self._inside -= 1

    def _status_factory(self) -> Callable[[int], Any]:
        """Return what makes status objects that say when the manager writes them."""
        recorder, original = self, self.original.status
        if not isinstance(original, type):
            return original
        set_attribute: Any = original.__setattr__

        def write(status: Any, name: str, value: Any) -> None:
            set_attribute(status, name, value)
            owner = recorder._owners.get(id(status))
            # What a policy writes, it writes inside a call; that is its own affair.
            if name == "ref_cnt" and owner is not None and not recorder._inside:
                instance, key, _ = owner
                recorder.log.append(Step(instance, "set_ref_cnt", (key, value)))

        return type(original.__name__, (original,), {"__setattr__": write})

    def call(self, instance: int, method: str, bound: Callable[..., Any], given: Any) -> Any:
        """Make a call and record it."""
        passed = tuple(list(one) if isinstance(one, Iterator) else one for one in given)
        noted = tuple(
            self._noted(instance, one, isinstance(was, Iterator))
            for one, was in zip(passed, given, strict=True)
        )
        if method == "insert" and isinstance(noted[0], Key):
            self._owners[id(passed[1])] = (instance, noted[0].number, passed[1])
        step = Step(instance, method, noted)
        self.log.append(step)
        self._inside += 1
        try:
            answer = bound(
                *(
                    iter(one) if isinstance(was, Iterator) else one
                    for one, was in zip(passed, given, strict=True)
                )
            )
        except BaseException:
            step.raised = True
            raise
        finally:
            self._inside -= 1
        if method == "evict" and isinstance(answer, list):
            step.answer = [self._number(entry) for entry in answer]
        return answer

    def _number(self, entry: Any) -> int | None:
        key = entry[0] if isinstance(entry, tuple) and entry else None
        return self._numbers.get(key) if isinstance(key, bytes) else None

    def _noted(self, instance: int, one: Any, one_shot: bool) -> Any:
        if isinstance(one, bytes):
            number = self._numbers[one]
            same = self._passed.get((instance, number)) is one
            self._passed[instance, number] = one
            return Key(number, same)
        if isinstance(one, list | tuple | set | frozenset):
            items = (self._noted(instance, item, False) for item in one)
            if isinstance(one, set | frozenset):
                return Keys("set", tuple(sorted(items)))
            kind = "iter" if one_shot else type(one).__name__
            return Keys(kind, tuple(items))
        if isinstance(one, int):
            return one
        if hasattr(one, "req_id"):
            return self._context(one)
        return Status(getattr(one, "chunk_id", getattr(one, "block_id", 0)))

    def _context(self, context: Any) -> Context:
        positions = [
            (number, position)
            for key, number in self._numbers.items()
            if (position := context.get_offload_key_position(key)) is not None
        ]
        said = [
            (name, value)
            for name, value in sorted(getattr(context, "__dict__", {}).items())
            if not name.startswith("_") and name != "req_id" and is_literal(value)
        ]
        return Context(context.req_id, tuple(sorted(positions)), tuple(said))


class Recorded:
    """A policy whose calls are recorded; everything else is the policy's."""

    def __init__(self, policy: Any, recorder: Recorder, number: int) -> None:
        self._policy = policy
        self._recorder = recorder
        self._number = number

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._policy, name)
        if not callable(found):
            return found
        return lambda *given: self._recorder.call(self._number, name, found, given)


class Puppet:
    """A policy that evicts what it is told to, to find out which calls a life takes.

    Args:
        answers: what to answer to one eviction after the other; when there are no more, the
            chunks that have been there longest leave.
        encode: makes keys of numbers.
    """

    def __init__(self, answers: Iterable[tuple[int, ...] | None], encode: Callable[[int], Any]):
        self._answers = (a if a is None else [*map(encode, a)] for a in answers)
        self._chunks: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """Return what is there."""
        return self._chunks.get(key)

    def insert(self, key: Any, chunk: Any, *context: Any) -> None:
        """Keep a chunk."""
        self._chunks[key] = chunk

    def remove(self, key: Any) -> None:
        """Forget a chunk."""
        del self._chunks[key]

    def clear(self) -> None:
        """Forget all."""
        self._chunks.clear()

    def evict(self, n: int, protected: set[Any]) -> Any:
        """Answer as told."""
        idle = [k for k, c in self._chunks.items() if c.ref_cnt == 0 and k not in protected]
        usual = idle[:n] if len(idle) >= n else None
        keys = next(self._answers, usual)
        if keys is None:
            return None
        return [(key, self._chunks.pop(key)) for key in keys]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: None


def is_literal(value: Any) -> bool:
    """Say whether a value can be written as a Python literal."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
