"""Drive a policy through the golden vectors: the example to write a runner in any language by.

    python specs/run_vectors.py [--vectors DIR] [--edition v0.33] [--profile arc] module:Class

The format is explained in `INTERPRETING.md`. This file needs nothing but the standard library. It
has three parts: the host, which makes the calls; the judge, which compares answers; and the
command line. A runner in another language needs the first two.

Exit status: 0 all vectors passed, 1 at least one failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
EDITIONS = ("v0.19", "v0.20", "v0.22", "v0.24", "v0.26", "v0.27", "v0.30", "v0.31", "v0.33")
PROFILES = ("contract", "lru", "arc", "reuse-filter")
VECTORS = Path(__file__).parent / "cachelaw" / "specs" / "vectors"

EXIT_PASSED, EXIT_FAILED, EXIT_USAGE = 0, 1, 2

Vector = dict[str, Any]
Step = dict[str, Any]


# --- The host ------------------------------------------------------------------------------------


class Status:
    """The status of one chunk: what is inserted, and what must come back as the same object."""

    def __init__(self, slot: int) -> None:
        self.ref_cnt = -1
        self.chunk_id = slot

    @property
    def block_id(self) -> int:
        """The slot's name before v0.30."""
        return self.chunk_id

    @property
    def is_ready(self) -> bool:
        """Whether the chunk may be read."""
        return self.ref_cnt >= 0


class Context:
    """What a policy may know of a request, and a place where it may keep things, one per type."""

    def __init__(self, req_id: str, positions: Mapping[bytes, int]) -> None:
        self.req_id = req_id
        self._positions = dict(positions)
        self._state: dict[type, Any] = {}

    def get_offload_key_position(self, key: bytes) -> int | None:
        """Return the end token of `key` in the request's prefix, None if it is not known."""
        return self._positions.get(key)

    def set_offload_key_position(self, key: bytes, end_token: int) -> None:
        """Record where `key` ends."""
        self._positions[key] = end_token

    def get_state(self, kind: type) -> Any:
        """Return what was kept of type `kind`, or None."""
        return self._state.get(kind)

    def set_state(self, value: object) -> None:
        """Keep `value` until another of its type is kept."""
        self._state[type(value)] = value


class Host:
    """One policy, and what its manager knows: the resident chunks and the running requests.

    Args:
        build: makes a policy from a capacity.
        vector: says the capacity, the keys and what requests know of positions.
        edition: decides which arguments calls have.
    """

    def __init__(self, build: Callable[[int], Any], vector: Vector, edition: str) -> None:
        self.capacity: int = vector["scope"]["capacity"]
        self.hexes: dict[int, str] = {int(k): code for k, code in vector["keys"].items()}
        self.numbers = {bytes.fromhex(code): k for k, code in self.hexes.items()}
        self.chunks: dict[int, Status] = {}
        self.written: dict[int, tuple[int, int]] = {}
        """Ref count and slot of each resident chunk, as the host wrote them last."""
        self.left: dict[int, tuple[Status, tuple[int, int]]] = {}
        """The chunk that left last under each key, and what the host wrote into its status."""
        self.contexts = {
            name: Context(name, {self.key(int(k)): at for k, at in positions.items()})
            for name, positions in vector["requests"].items()
        }
        self._touch_takes_context = EDITIONS.index(edition) >= EDITIONS.index("v0.26")
        self._insert_takes_context = EDITIONS.index(edition) >= EDITIONS.index("v0.33")
        self.policy = build(self.capacity)

    def key(self, number: int) -> bytes:
        """Return the offload key of a number, a new object every time."""
        return bytes.fromhex(self.hexes[number])

    def do(self, step: Step) -> Any:
        """Carry one step out; return what the policy answered, as the judge compares it."""
        call = step["call"]
        if call == "set_ref_cnt":
            chunk = self.chunks[step["key"]]
            chunk.ref_cnt = step["ref_cnt"]
            self.written[step["key"]] = (chunk.ref_cnt, self.written[step["key"]][1])
            return None
        if call == "read_status":
            number = step["key"]
            if number in self.chunks:
                chunk, written = self.chunks[number], self.written[number]
            else:
                chunk, written = self.left[number]
            return "unchanged" if (chunk.ref_cnt, chunk.chunk_id) == written else "changed"
        try:
            answer = getattr(self.policy, call)(*self._arguments(step))
        except Exception:
            return "raises"
        return self._after(step, answer)

    def _arguments(self, step: Step) -> list[Any]:
        keys = [self.key(number) for number in step.get("keys", ())]
        match step["call"]:
            case "get" | "remove" | "mark_evictable" | "mark_non_evictable":
                return [self.key(step["key"])]
            case "insert":
                context = [self.contexts[step["request"]]] if self._insert_takes_context else []
                return [self.key(step["key"]), self._new_chunk(step["key"]), *context]
            case "touch":
                context = [self.contexts[step["request"]]] if self._touch_takes_context else []
                return [keys, *context]
            case "on_store_miss" | "on_request_access":
                return [keys, self.contexts[step["request"]]]
            case "on_request_finished":
                return [
                    [[self.key(number) for number in group] for group in step["groups"]],
                    {self.key(number) for number in step["inserted"]},
                    {self.key(number) for number in step["reused"]},
                    self.contexts[step["request"]],
                ]
            case "evict":
                return [step["n"], {self.key(number) for number in step["protected"]}]
        return []

    def _new_chunk(self, number: int) -> Status:
        taken = {slot for _, slot in self.written.values()}
        slot = next(slot for slot in range(self.capacity) if slot not in taken)
        chunk = self.chunks[number] = Status(slot)
        self.written[number] = (-1, slot)
        return chunk

    def _after(self, step: Step, answer: Any) -> Any:
        """Keep the books, and put numbers in the place of keys and chunks."""
        match step["call"]:
            case "get":
                if answer is None:
                    return None
                if answer is self.chunks.get(step["key"]):
                    return {"chunk_of": step["key"]}
                return "another object"
            case "evict":
                return self._victims(answer)
            case "remove":
                self._forget(step["key"])
            case "clear":
                for number in list(self.chunks):
                    self._forget(number)
        return None

    def _victims(self, answer: Any) -> Any:
        if answer is None:
            return None
        if not isinstance(answer, list):
            return "no list of pairs"
        victims: list[int | None] = []
        for pair in answer:
            if not isinstance(pair, tuple) or len(pair) != 2:
                return "no list of pairs"
            key, chunk = pair
            number = self.numbers.get(key) if isinstance(key, bytes) else None
            if number in self.chunks and chunk is not self.chunks[number]:
                return "another object"
            victims.append(number)
        for number in victims:
            self._forget(number)
        return victims

    def _forget(self, number: int | None) -> None:
        if number in self.chunks:
            self.left[number] = (self.chunks.pop(number), self.written.pop(number))


# --- The judge -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """The first step of a vector whose answer is not the right one.

    Attributes:
        step: its index, counted from 0.
        expected: the answer that the vector demands.
        result: what the policy did.
    """

    step: int
    expected: Any
    result: Any


def fits(expected: Any, result: Any, before: set[int], earlier: Sequence[Any]) -> bool:
    """Whether a result is a right answer.

    Args:
        expected: the answer of the vector, exact or a relation.
        result: what the policy did.
        before: the numbers of the residents before the step.
        earlier: the results of the steps before.
    """
    if not isinstance(expected, dict):
        return bool(result == expected)
    if "same_as" in expected:
        return bool(result == earlier[expected["same_as"]])
    if "chunk_of" in expected:
        number = expected["chunk_of"]
        if expected.get("unless_evicted") and number not in before:
            return result is None
        return bool(result == {"chunk_of": number})
    if result is None:
        return bool(expected["may_refuse"])
    return (
        isinstance(result, list)
        and len(result) == expected["count"] == len(set(result))
        and set(result) <= set(expected["among"]) & before
    )


def run_vector(
    vector: Vector, build: Callable[..., Any], edition: str | None = None
) -> Failure | None:
    """Drive one policy through one vector.

    Args:
        vector: what to do and what to expect.
        build: makes the policy from a capacity; of a filter, see `FilterHost`.
        edition: whose host to be; the vector's own if it is not given.

    Returns:
        The first failure, None if the policy passes.
    """
    edition = edition or vector["edition"]
    hosts: list[Any]
    if vector["profile"] == "reuse-filter":
        return run_filter_vector(vector, build, edition)
    hosts = [Host(build, vector, edition) for _ in range(vector.get("policies", 1))]
    results: list[Any] = []
    for at, step in enumerate(vector["steps"]):
        host = hosts[step.get("on", 0)]
        before = set(host.chunks)
        result = host.do(step)
        if "answer" in step:
            if not fits(step["answer"], result, before, results):
                return Failure(at, step["answer"], result)
        elif result == "raises":
            return Failure(at, "returns", result)
        results.append(result)
    return None


# --- The reuse filter ----------------------------------------------------------------------------


class Output:
    """What a manager answers to an offer that it takes: what it stores, and whom it evicts."""

    def __init__(self, stored: list[bytes], evicted: list[bytes]) -> None:
        self.keys_to_store = stored
        self.evicted_keys = evicted
        self.store_spec = object()


class Backing:
    """The manager behind a filter: it notes what it is given and answers as the step says."""

    def __init__(self, host: FilterHost) -> None:
        self._host = host
        self.given: list[tuple[str, Any, Any]] = []
        self.answers: list[Any] = []

    def lookup(self, keys: Any, context: Any = None) -> Any:
        """Answer as the step says."""
        keys = [keys] if isinstance(keys, bytes) else keys
        return self._noted("lookup", keys, context, lambda answers: answers)

    def prepare_store(self, keys: Any, context: Any = None) -> Any:
        """Take the keys that the step says, or none."""
        return self._noted("prepare_store", keys, context, self._output)

    def prepare_load(self, keys: Any, context: Any = None) -> Any:
        """Answer with an object."""
        return self._noted("prepare_load", keys, context, lambda _: object())

    def touch(self, keys: Any) -> Any:
        """Note the call."""
        return self._noted("touch", keys, None, lambda _: None)

    def complete_load(self, keys: Any) -> Any:
        """Note the call."""
        return self._noted("complete_load", keys, None, lambda _: None)

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        """Note the call."""
        return self._noted("complete_store", keys, success, lambda _: None)

    def take_events(self) -> Any:
        """Answer with two events."""
        return self._noted("take_events", [], None, lambda _: [object(), object()])

    def _output(self, answers: Any) -> Any:
        if answers is None:
            return None
        key = self._host.key
        return Output([*map(key, answers["stored"])], [*map(key, answers["evicted"])])

    def _noted(self, call: str, keys: Any, more: Any, answer: Callable[[Any], Any]) -> Any:
        self.given.append((call, [self._host.numbers.get(key) for key in keys], more))
        self.answers.append(answer(self._host.answers))
        return self.answers[-1]


class FilterHost:
    """A scheduler with one filter, and the manager behind it.

    Args:
        build: makes the filter from its backing and, by name, its two arguments.
        vector: says what happens.
        edition: v0.19, or v0.20 with contexts and lookups of one key.
    """

    def __init__(self, build: Callable[..., Any], vector: Vector, edition: str) -> None:
        self.hexes: dict[int, str] = {int(k): code for k, code in vector["keys"].items()}
        self.numbers = {bytes.fromhex(code): k for k, code in self.hexes.items()}
        self.contexts = {name: Context(name, {}) for name in vector["requests"]}
        self.answers: Any = None
        """What the backing is to answer to the present call."""
        self._build = build
        self._takes_context = edition != "v0.19"
        self._backing = Backing(self)
        self._filter: Any = None

    def key(self, number: int) -> bytes:
        """Return the key of a number, a new object every time."""
        return bytes.fromhex(self.hexes[number])

    def do(self, step: Step) -> tuple[Any, Any]:
        """Carry one step out; return what should have happened, and what did."""
        call = step["call"]
        if call == "construct":
            return step["answer"], self._construct(step)
        self.answers = step["backing"]["answers"]
        self._backing.given.clear()
        self._backing.answers.clear()
        arguments: list[Any] = []
        more: Any = None
        if "keys" in step:
            keys = [self.key(number) for number in step["keys"]]
            arguments.append(keys[0] if call == "lookup" and self._takes_context else keys)
        if "request" in step:
            more = self.contexts[step["request"]]
            arguments.append(more)
        if "success" in step:
            more = step["success"]
            arguments += [] if more else [more]
        wanted = {"passed_on": [[call, step["backing"]["keys"]]], "comes_back": True}
        try:
            answer = getattr(self._filter, call)(*arguments)
            came_back = self._came_back(call, answer)
        except Exception:
            return wanted, "raises"
        given = self._backing.given
        passed_on: list[Any] = [[name, keys] for name, keys, _ in given]
        if passed_on == wanted["passed_on"] and given[0][2] is not more and given[0][2] != more:
            return wanted, "another context or outcome"
        return wanted, {"passed_on": passed_on, "comes_back": came_back}

    def _construct(self, step: Step) -> str:
        try:
            self._filter = self._build(
                self._backing,
                store_threshold=step["store_threshold"],
                max_tracker_size=step["max_tracker_size"],
            )
        except ValueError:
            return "refused"
        except Exception:
            return "raises"
        return "made"

    def _came_back(self, call: str, answer: Any) -> bool:
        """Whether the backing's answer has come back, untouched, where it matters."""
        if call == "take_events":
            answer = None if answer is None else list(answer)
        told = self._backing.answers[0] if self._backing.answers else None
        if call == "take_events":
            return [*map(id, answer or ())] == [*map(id, told or ())]
        if call == "prepare_store" and isinstance(told, Output):
            fresh = self._backing._output(self.answers)
            same = (told.keys_to_store, told.evicted_keys)
            return answer is told and same == (fresh.keys_to_store, fresh.evicted_keys)
        return call not in ("lookup", "prepare_store", "prepare_load") or answer is told


def run_filter_vector(vector: Vector, build: Callable[..., Any], edition: str) -> Failure | None:
    """Drive one filter through one vector; return the first failure, None if it passes."""
    host = FilterHost(build, vector, edition)
    for at, step in enumerate(vector["steps"]):
        wanted, result = host.do(step)
        if result != wanted:
            return Failure(at, wanted, result)
    return None


# --- The command line ----------------------------------------------------------------------------


class Usage(Exception):
    """The command line asks for what there is not. One line: what, and what to do."""


def load_vectors(folder: Path) -> list[Vector]:
    """Read every vector below a folder, in the order of the files' names.

    Raises:
        Usage: there is none, or one has another format.
    """
    vectors: list[Vector] = []
    for path in sorted(folder.rglob("*.json")):
        if path.name.endswith(".itf.json"):
            continue
        for vector in json.loads(path.read_text(encoding="utf-8")):
            if vector["format"] != FORMAT:
                raise Usage(f"{path} has format {vector['format']}; this runner knows {FORMAT}")
            vectors.append(vector)
    if not vectors:
        raise Usage(f"there are no vectors in {folder}")
    return vectors


def load_policy(name: str) -> Any:
    """Import `package.module:Class` or `path/file.py:Class`.

    Raises:
        Usage: there is no such class.
    """
    place, _, attribute = name.rpartition(":")
    if not place:
        raise Usage(f"{name!r} is no policy: write package.module:Class or path/file.py:Class")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location("policy_under_test", place)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        return getattr(module, attribute)
    except (ImportError, OSError, AttributeError) as error:
        raise Usage(f"{name} cannot be imported: {error}") from None


def selected(vectors: Iterable[Vector], edition: str, profile: str) -> Iterator[Vector]:
    """Yield the vectors that hold in an edition and belong to what a policy claims to be."""
    profiles = ("contract", profile) if profile != "reuse-filter" else (profile,)
    for vector in vectors:
        if edition in vector["editions"] and vector["profile"] in profiles:
            yield vector


def builder(made: Any) -> Callable[..., Any]:
    """Return what makes a policy as hosts make it, by keyword, if it knows the keyword."""
    try:
        inspect.signature(made).bind(cache_capacity=1)
    except (TypeError, ValueError):
        return made  # type: ignore[no-any-return]
    return lambda capacity: made(cache_capacity=capacity)


def table(vector: Vector, failure: Failure) -> str:
    """Show a failure: what was called up to the step at fault, and what it answered."""
    lines = [
        f"{vector['id']}",
        f"  {vector['statement']}",
        "  " + ", ".join(f"{name} {value}" for name, value in vector["scope"].items()),
    ]
    for at, step in enumerate(vector["steps"][: failure.step + 1]):
        given = {k: v for k, v in step.items() if k not in ("call", "answer", "on", "backing")}
        shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in given.items())
        on = f"policy {step['on']}: " if "on" in step else ""
        lines.append(f"  {at:3}  {on}{step['call']}({shown})")
    lines.append(f"       expected: {json.dumps(failure.expected)}")
    lines.append(f"       actual:   {json.dumps(failure.result)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Drive a policy through the golden vectors.")
    parser.add_argument("policy", help="package.module:Class or path/file.py:Class")
    parser.add_argument("--vectors", type=Path, default=VECTORS, metavar="DIR")
    parser.add_argument(
        "--edition", choices=EDITIONS, help="default: what the class declares, else the newest"
    )
    parser.add_argument(
        "--profile", choices=PROFILES, help="default: what the class declares, else contract"
    )
    options = parser.parse_args(arguments)
    try:
        made = load_policy(options.policy)
        said = getattr(made, "cachelaw", {})
        edition = options.edition or said.get("edition", EDITIONS[-1])
        profile = options.profile or said.get("profile", "contract")
        chosen = list(selected(load_vectors(options.vectors), edition, profile))
        if not chosen:
            raise Usage(f"no vector is for {profile} {edition}")
    except Usage as error:
        print(f"run_vectors: {error}", file=sys.stderr)
        return EXIT_USAGE
    build = made if profile == "reuse-filter" else builder(made)
    failures: list[tuple[Vector, Failure]] = []
    for vector in chosen:
        failure = run_vector(vector, build, edition)
        if failure is not None:
            failures.append((vector, failure))
    passed = len(chosen) - len(failures)
    print(f"{profile} {edition}: {passed} of {len(chosen)} vectors passed")
    if not failures:
        return EXIT_PASSED
    print(f"\nfirst failure: {table(*failures[0])}\n\nfailed:")
    for vector, _ in failures:
        print(f"  {vector['id']}")
    return EXIT_FAILED


if __name__ == "__main__":
    sys.exit(main())
