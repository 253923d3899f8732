"""Foreign subjects: a policy in any language, driven over a command's standard input and output.

One process serves all instances. What is said to it and what it answers, a line each, is written
down in `specs/INTERPRETING.md` ("Policies in other languages"). To the rest of the suite an
instance is a `Proxy`, which has the methods of a policy and makes each call in the other process.
Nothing is judged here: an answer of the wrong form is handed on, and a law says what is wrong.
"""

from __future__ import annotations

import json
import select
import shlex
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cachelaw.conformance.hosts import Compatibility, Unusable
from cachelaw.conformance.plain import plain
from cachelaw.reference.editions import EDITIONS, Edition

PREFIX = "exec:"
"""What the name of such a subject begins with; the command follows."""

FORMAT = 1
"""Version of the form of the lines."""

GREETING_SECONDS = 10.0
"""How long a command may take to say its first line."""

LONGEST_LINE = 1 << 24
"""Bytes of an answer. Whoever writes more without an end of line is not answering."""

_SHOWN = 80

EXCUSES: Mapping[str, str] = {
    "keys/equal-is-same": "keys reach a command as text, which has no identity",
    "touch/any-iterable": "a command gets lists, not iterators",
    "call/arguments-unchanged": "a command gets copies",
    "chunk-status/manager-writes": "a command cannot reach the manager's status objects",
    "cost/linear": "a command does not hash or compare the suite's keys",
    "memory/bounded-by-residents": "what a command retains cannot be seen",
    "state/no-side-effect": "a command is never asked for its state",
}
"""Laws that cannot be judged of a command, each with the reason."""


class Trouble(Exception):
    """A command has not carried out a call. One line: why not."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a command says of itself in its first line.

    Attributes:
        editions: those whose hosts can drive it.
        edition: the one to judge it by; None leaves the choice.
        profile: the policy that it claims to be.
        declared: what else it declares, such as `randomized`.
        saves: whether it can write an instance down and read it back.
    """

    editions: tuple[Edition, ...]
    edition: str | None = None
    profile: str = "contract"
    declared: frozenset[str] = frozenset()
    saves: bool = False

    def compatibility(self) -> tuple[Compatibility, ...]:
        """Say of every edition whether its hosts could drive the command."""
        return tuple(
            Compatibility(edition, True)
            if edition in self.editions
            else Compatibility(edition, False, "its first line does not name the edition")
            for edition in EDITIONS
        )


class Command:
    """A command, and the process in which it runs at the time.

    A process that has ended, or has answered what cannot be understood, is not asked again: the
    next instance gets a new one.

    Args:
        name: the subject's name, `exec:` and the command. It is split as a shell would, and no
            shell runs it.
        parameters: what instances are made with besides the capacity.
        declarations: the names of what it may declare.

    Raises:
        Unusable: the command cannot be started, or its first line is not what it should be.
    """

    def __init__(
        self, name: str, parameters: Mapping[str, Any], declarations: Iterable[str]
    ) -> None:
        self.name = name
        self.parameters = dict(parameters)
        self._declarations = tuple(declarations)
        self._process: subprocess.Popen[bytes] | None = None
        self._instances = 0
        self._let_go: list[int] = []
        self.words = words_of(name)
        self.greeting = self._started()

    # --- the process ---

    def _started(self) -> Greeting:
        try:
            # In the process group of this process, so that whoever ends the group ends it too.
            process = self._process = subprocess.Popen(
                self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise Unusable(f"{self.name} cannot be started: {error.strerror}") from None
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], GREETING_SECONDS)[0]:
            self.close()
            raise Unusable(f"{self.name} said nothing for {GREETING_SECONDS:g} seconds")
        try:
            return _greeting(self.name, self._heard(), self._declarations)
        except Trouble as trouble:
            self.close()
            raise Unusable(f"{self.name}: at its start {trouble}") from None
        except Unusable:
            self.close()
            raise

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def __del__(self) -> None:
        self.close()

    def _heard(self) -> dict[str, Any]:
        """Return the next line of the process.

        Raises:
            Trouble: there is none, or it is no JSON object.
        """
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise self._end(line)
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            self.close()
            raise Trouble(f"the command answered what is no JSON object: {_start_of(line)}")
        return said

    def _end(self, line: bytes) -> Trouble:
        """Say how the process came to its end."""
        process = self._process
        assert process is not None
        try:
            status: int | None = process.wait(0.5 if len(line) < LONGEST_LINE else 0)
        except subprocess.TimeoutExpired:
            status = None
        self.close()
        if status is None and line:
            return Trouble(f"the command answered a line without end: {_start_of(line)}")
        if status is None:
            return Trouble("the command closed its output")
        if status >= 0:
            return Trouble(f"the command's process exited with status {status}")
        name = signal.Signals(-status).name if -status in set(signal.Signals) else "unknown"
        return Trouble(f"the command's process was ended by signal {-status} ({name})")

    def ask(self, line: dict[str, Any], process: Any) -> list[Any]:
        """Say one line and return the results in the answer.

        Args:
            line: what to say, without what is to be dropped.
            process: the process that the instance lives in; None starts one if there is none.

        Raises:
            Trouble: the process has ended, or has not answered with as many results as calls.
        """
        if self._process is None and process is None:
            self._let_go.clear()
            self._started()
        if self._process is None or process not in (None, self._process):
            raise Trouble("the command's process, in which the instance was, has ended")
        dropped, self._let_go = self._let_go, []
        said = {"drop": dropped, **line} if dropped else line
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(said, separators=(",", ":")).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._end(b"") from None
        answer = self._heard()
        if "error" in answer:
            raise Trouble(f"the command says: {plain(answer['error'])[:200]}")
        results = answer.get("results")
        if not isinstance(results, list) or len(results) != len(line["calls"]):
            self.close()
            raise Trouble(f"the command did not answer with {len(line['calls'])} results")
        return results

    # --- instances ---

    def number(self) -> int:
        """Return a number that no instance has had."""
        self._instances += 1
        return self._instances

    def let_go(self, number: int, process: Any) -> None:
        """Have an instance dropped with the next line."""
        if process is not None and process is self._process:
            self._let_go.append(number)

    @property
    def process(self) -> Any:
        """The process that runs now, None if none does."""
        return self._process

    def __reduce__(self) -> Any:
        """Pickle as the way to find the command again: within a process there is one of each."""
        key = (self.name, json.dumps(self.parameters, sort_keys=True), self._declarations)
        return command, key


_COMMANDS: dict[tuple[str, str, tuple[str, ...]], Command] = {}


def command(name: str, parameters: str, declarations: tuple[str, ...]) -> Command:
    """Return a command, the same for the same arguments, so that one process serves all instances.

    Args:
        name: `exec:` and the command.
        parameters: as JSON.
        declarations: the names of what it may declare.

    Raises:
        Unusable: it cannot be used.
    """
    key = (name, parameters, declarations)
    if key not in _COMMANDS:
        _COMMANDS[key] = Command(name, json.loads(parameters), declarations)
    return _COMMANDS[key]


def found(name: str, parameters: Mapping[str, Any], declarations: Sequence[str]) -> Command:
    """Return the command that a subject's name stands for, started.

    Raises:
        Unusable: it cannot be used.
    """
    try:
        plainly = json.dumps(dict(parameters), sort_keys=True)
    except (TypeError, ValueError):
        raise Unusable(f"{name}: its parameters cannot be written as JSON") from None
    return command(name, plainly, tuple(declarations))


def words_of(name: str) -> list[str]:
    """Return the words of a command.

    Raises:
        Unusable: there are none, or a quote is left open.
    """
    try:
        words = shlex.split(name.removeprefix(PREFIX))
    except ValueError as error:
        raise Unusable(f"{name}: {str(error).lower()}") from None
    if not words:
        raise Unusable(f"{name!r} names no command: write exec:COMMAND, such as exec:./my-policy")
    return words


def files_of(name: str) -> dict[str, bytes]:
    """Return the contents of the files that a command names, by their names without folders.

    They stand for its source in a certificate. An interpreter that is found on the search path is
    not among them.
    """
    files: dict[str, bytes] = {}
    for word in words_of(name):
        with suppress(OSError):
            files[Path(word).name] = Path(word).read_bytes()
    return files


def _greeting(name: str, said: dict[str, Any], declarations: Sequence[str]) -> Greeting:
    """Read a command's first line.

    Raises:
        Unusable: something is wrong with it.
    """
    if "unusable" in said:
        raise Unusable(f"{name}: {plain(said['unusable'])[:300]}")
    if said.get("cachelaw") != FORMAT:
        raise Unusable(
            f'{name}: its first line must have "cachelaw": {FORMAT}, the version of the protocol'
        )
    names = said.get("editions")
    known = {edition.name: edition for edition in EDITIONS}
    if not isinstance(names, list) or not names or not all(one in known for one in names):
        raise Unusable(
            f'{name}: its first line must have "editions", a list of some of {", ".join(known)}'
        )
    return Greeting(
        tuple(edition for edition in EDITIONS if edition.name in names),
        None if said.get("edition") is None else str(said["edition"]),
        str(said.get("profile", "contract")),
        frozenset(word for word in declarations if said.get(word) is True),
        said.get("save") is True,
    )


def _start_of(line: bytes) -> str:
    text = plain(line[:_SHOWN].decode(errors="replace").strip())
    return text + (" ..." if len(line) > _SHOWN else "")


# --- Instances -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Told:
    """A chunk, with the ref count that the command knows of it."""

    chunk: Any
    ref_cnt: int


@dataclass(eq=False)
class Proxy:
    """An instance of a policy in another process.

    Every call is one line and its answer. Ref counts that the manager has written since the last
    call are told in the same line, before the call.

    Args:
        command: whose instance it is.
        edition: whose host drives it.
        capacity: the number of chunks that fit.
        saved: what an instance was written down as, None for a new one.
        residents: the chunks, by the key in hexadecimal.
        by_slot: the chunk that was inserted last into each slot.

    Every method raises `Trouble` if the command does not carry out the call.
    """

    command: Command
    edition: Edition
    capacity: int
    saved: str | None = None
    residents: dict[str, _Told] = field(default_factory=dict)
    by_slot: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._number = self.command.number()
        self._process: Any = None
        self._begun = False

    @cached_property
    def _slot_name(self) -> str:
        return "chunk_id" if self.edition.says_chunk else "block_id"

    def begin(self) -> None:
        """Have the instance made. Left alone, it is made with the first call."""
        if not self._begun:
            self._say([])

    def _say(self, calls: list[Any]) -> list[Any]:
        line: dict[str, Any] = {"id": self._number}
        if not self._begun:
            line["new"] = {"edition": self.edition.name, "capacity": self.capacity}
            if self.command.parameters:
                line["new"]["parameters"] = self.command.parameters
            if self.saved is not None:
                line["new"]["saved"] = self.saved
        line["calls"] = calls
        results = self.command.ask(line, self._process)
        self._begun, self._process = True, self.command.process
        return results

    def _call(self, *call: Any) -> Any:
        """Make one call, with the ref counts that have changed before it; return the result."""
        calls = [
            ["ref_cnt", key, told.chunk.ref_cnt]
            for key, told in self.residents.items()
            if told.chunk.ref_cnt != told.ref_cnt
        ]
        for _, key, ref_cnt in calls:
            self.residents[key].ref_cnt = ref_cnt
        calls.append(list(call))
        return self._say(calls)[-1]

    # --- the methods of a policy ---

    def get(self, key: bytes) -> Any:
        """Return the chunk whose slot the command names, None if it finds nothing."""
        return self._chunk(self._call("get", key.hex()))

    def insert(self, key: bytes, chunk: Any, context: Any = None) -> None:
        """Make the chunk resident; it is told as pending."""
        slot = getattr(chunk, self._slot_name)
        text = key.hex()
        given = () if context is None else (_context(context, (key,)),)
        self._call("insert", text, slot, *given)
        self.residents[text] = _Told(chunk, -1)
        self.by_slot[slot] = chunk

    def remove(self, key: bytes) -> None:
        """Forget the key."""
        self._call("remove", key.hex())
        self.residents.pop(key.hex(), None)

    def touch(self, keys: Iterable[bytes], context: Any = None) -> None:
        """Tell of uses."""
        self._of_keys("touch", keys, context)

    def on_store_miss(self, keys: Iterable[bytes], context: Any) -> None:
        """Tell of misses."""
        self._of_keys("on_store_miss", keys, context)

    def on_request_access(self, keys: Iterable[bytes], context: Any) -> None:
        """Tell what a running request sees for the first time."""
        self._of_keys("on_request_access", keys, context)

    def _of_keys(self, method: str, keys: Iterable[bytes], context: Any) -> None:
        listed = list(keys)
        given = () if context is None else (_context(context, listed),)
        self._call(method, [key.hex() for key in listed], *given)

    def on_request_finished(
        self,
        groups: Sequence[Sequence[bytes]],
        inserted: Iterable[bytes],
        reused: Iterable[bytes],
        context: Any,
    ) -> None:
        """Tell of a request's end."""
        self._call(
            "on_request_finished",
            [[key.hex() for key in group] for group in groups],
            sorted(key.hex() for key in inserted),
            sorted(key.hex() for key in reused),
            _context(context, [key for group in groups for key in group]),
        )

    def evict(self, n: int, protected: Iterable[bytes]) -> Any:
        """Return the victims with the chunks whose slots the command names; None if it refuses."""
        answer = self._call("evict", n, sorted(key.hex() for key in protected))
        if not isinstance(answer, list):
            return answer
        victims = [self._victim(entry) for entry in answer]
        for entry in answer:
            if isinstance(entry, list) and entry and isinstance(entry[0], str):
                self.residents.pop(entry[0], None)
        return victims

    def clear(self) -> None:
        """Become as new."""
        self._call("clear")
        self.residents.clear()

    def mark_evictable(self, key: bytes) -> None:
        """Tell that a chunk has become idle."""
        self._call("mark_evictable", key.hex())

    def mark_non_evictable(self, key: bytes) -> None:
        """Tell that a chunk is about to be pinned."""
        self._call("mark_non_evictable", key.hex())

    def _chunk(self, slot: Any) -> Any:
        """Return the chunk in a slot; what names no chunk as it is."""
        return self.by_slot.get(slot, slot) if type(slot) is int else slot

    def _victim(self, entry: Any) -> Any:
        """Return a key with its chunk; what is not written so as it is."""
        if not isinstance(entry, list) or len(entry) != 2:
            return entry
        key, slot = entry
        with suppress(TypeError, ValueError):
            key = bytes.fromhex(key)
        return key, self._chunk(slot)

    # --- the end, and copies ---

    def __del__(self) -> None:
        self.command.let_go(self._number, self._process)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle, with the chunks, as what the command writes the instance down as.

        Raises:
            TypeError: the command writes nothing down.
        """
        if not self.command.greeting.saves:
            raise TypeError("an instance in another process cannot be copied")
        saved = self.saved if not self._begun else self._call("save")
        return Proxy, (
            self.command,
            self.edition,
            self.capacity,
            saved,
            self.residents,
            self.by_slot,
        )


def _context(context: Any, keys: Iterable[bytes]) -> dict[str, Any]:
    """Return what is told of a request: its name, and the positions of these keys."""
    at = {key.hex(): context.get_offload_key_position(key) for key in keys}
    known = {key: position for key, position in at.items() if position is not None}
    return {"request": context.req_id, "positions": known}


def build_of(made: Command, edition: Edition) -> Any:
    """Return what makes an instance from a capacity."""

    def build(capacity: int) -> Proxy:
        proxy = Proxy(made, edition, capacity)
        try:
            proxy.begin()
        except Trouble as trouble:
            raise Unusable(
                f"{made.name} cannot be constructed from the capacity {capacity}: {trouble}"
            ) from None
        return proxy

    return build
