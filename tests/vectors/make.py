"""Make the golden vectors: for each clause, what a right policy passes and a wrong one fails.

    python -m tests.vectors.make            write the files under specs/cachelaw/specs/vectors
    python -m tests.vectors.make --check    compare them instead; exit status 1 if they differ

A vector of a clause begins with a policy of the zoo that breaks it: what tells it from a right one
is made as short as it can be, turned into calls, answered by the reference or, where any legal
answer will do, by a relation, and cut off behind the wrong answer. Vectors about differences
between editions come from the product of their cores, those of known bugs from the sequences in
`tests/reference/test_known_bugs.py`. Everything is deterministic.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from math import comb
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from cachelaw.conformance import shrink
from cachelaw.conformance.course import Course
from cachelaw.conformance.explore.products import compare_editions
from cachelaw.conformance.filters.backing import backing_for
from cachelaw.conformance.filters.backing import objection as filter_objection
from cachelaw.conformance.filters.search import FilterSearch
from cachelaw.conformance.filters.trace import WITH_CONTEXT, FilterEvent, FilterTrace
from cachelaw.conformance.finding import Experiment, Finding, lockstep_experiment, twin_experiment
from cachelaw.conformance.instance import Codec, Instance, PlainCodec
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.lockstep import Lockstep
from cachelaw.conformance.mutants.zoo import FILTERS, classes, mutants
from cachelaw.conformance.probes import (
    PROBES,
    contract_probes,
    evicted,
    stored,
    touched,
    twin_probes,
)
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace, keys_of, rewritten
from cachelaw.reference.arc import ArcState
from cachelaw.reference.context import ReqContext
from cachelaw.reference.cores import World, core_of
from cachelaw.reference.editions import (
    EDITIONS,
    V019,
    V020,
    V024,
    V030,
    Edition,
    edition_named,
)
from cachelaw.reference.keys import make_offload_key
from cachelaw.reference.lru import EvictableOrder, RankedOrder
from cachelaw.reference.protocol import (
    Call,
    RequestEnds,
    Reset,
    Setting,
    State,
    objection,
    perform,
    start,
)
from cachelaw.specs.clause import Clause
from cachelaw.specs.registry import CLAUSES

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "specs" / "cachelaw" / "specs" / "vectors"
GUIDE = ROOT / "specs" / "INTERPRETING.md"

FORMAT = 1

NO_VECTOR = {
    "cost/linear": "about cost: calls of hash and comparison are counted, not answers",
    "memory/bounded-by-residents": "about memory: retained size is watched, not answers",
    "determinism/independent-of-hash-seed": "about processes: it needs two of them",
    "call/arguments-unchanged": "about the collections passed, which each language has its own way "
    "to share or to copy",
    "keys/equal-is-same": "about the identity of key objects, which many languages do not have",
    "touch/any-iterable": "about the kinds of iterables, which are those of Python",
    "determinism/same-calls-same-results": "a policy that breaks it answers at random, so that no "
    "step can be named at which it fails",
    "state/no-side-effect": "about a method that no host calls, and that a policy need not have",
}
"""Clauses that have a law and no vector, with the reason."""

SHARING = "instances/share-nothing"
"""The clause whose vectors are made of two policies that are both at work."""

HASH_BYTES = 4
"""The length of block hashes; a policy must not depend on it."""

MOST_TRANSITIONS = 4_000
"""How far the search for the shortest trace goes before a trace counts as made shorter only."""

MOST_KEYS = 6
"""With more keys the search is not begun."""

MOST_HISTORIES = 3_000
"""How many ways to answer are followed before a program counts as too open for a vector."""

Vector = dict[str, Any]
Step = dict[str, Any]


def _loaded(name: str, path: Path) -> ModuleType:
    """Import a file that lies in no package, once."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def runner() -> ModuleType:
    """Return the runner, `specs/run_vectors.py`, which judges what is made here."""
    return _loaded("cachelaw_run_vectors", ROOT / "specs" / "run_vectors.py")


# --- Wrong policies ------------------------------------------------------------------------------


class Adapted:
    """A policy under a host of another edition: contexts are added or left out.

    Calls that the policy does not have are not made, as its own host would not make them.

    Args:
        made: the policy.
    """

    def __init__(self, made: Any) -> None:
        self.made = made
        self.wide = {name: len(inspect.signature(getattr(made, name)).parameters) for name in FORMS}

    def get(self, key: Any) -> Any:
        return self.made.get(key)

    def insert(self, key: Any, chunk: Any, context: Any = None) -> Any:
        return self._call("insert", key, chunk, context)

    def remove(self, key: Any) -> Any:
        return self.made.remove(key)

    def touch(self, keys: Any, context: Any = None) -> Any:
        return self._call("touch", keys, context)

    def evict(self, n: int, protected: Any) -> Any:
        return self.made.evict(n, protected)

    def clear(self) -> Any:
        return self.made.clear()

    def mark_evictable(self, key: Any) -> Any:
        return self._hook("mark_evictable", key)

    def mark_non_evictable(self, key: Any) -> Any:
        return self._hook("mark_non_evictable", key)

    def on_store_miss(self, keys: Any, context: Any) -> Any:
        return self._hook("on_store_miss", keys, context)

    def on_request_access(self, keys: Any, context: Any) -> Any:
        return self._hook("on_request_access", keys, context)

    def on_request_finished(self, *arguments: Any) -> Any:
        return self._hook("on_request_finished", *arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        if self.wide[name] < len(arguments):
            arguments = arguments[:-1]
        elif arguments[-1] is None:
            arguments = (*arguments[:-1], ReqContext("unknown"))
        return getattr(self.made, name)(*arguments)

    def _hook(self, name: str, *arguments: Any) -> Any:
        hook = getattr(self.made, name, None)
        return None if hook is None else hook(*arguments)


FORMS = {"insert": 3, "touch": 2}
"""The methods that got a context later, with the number of arguments since."""


class Wrong(NamedTuple):
    """A stored wrong policy.

    Attributes:
        name: a class of `cachelaw.conformance.mutants.zoo`, or `LRU v0.24` for the reference of
            another edition.
        does: what it does wrong, in one line.
        made: the class.
        breaks: the clause that it is there to break; empty for a reference.
    """

    name: str
    does: str
    made: Any
    breaks: str = ""

    def build(self, capacity: int) -> Adapted:
        """Make one."""
        return Adapted(self.made(capacity))

    def subject(self, edition: Edition, profile: str) -> Subject:
        """Return it as a subject of an edition."""
        module = importlib.import_module(edition.module)
        may_refuse = bool(getattr(self.made, "cachelaw", {}).get("may_refuse"))
        return Subject(
            self.name,
            self.build,
            module.ChunkStatus,
            edition,
            (edition,),
            profile,
            False,
            may_refuse,
        )


@cache
def zoo() -> tuple[Wrong, ...]:
    """Return every wrong policy of the zoo that answers alike twice."""
    return tuple(
        Wrong(name, str(made.__doc__), made, made.breaks)
        for name, made in mutants().items()
        if not getattr(made, "cachelaw", {}).get("randomized") and "andom" not in name
    )


def reference(profile: str, edition: Edition) -> Any:
    """Return the reference class of a policy."""
    return getattr(importlib.import_module(edition.module), profile.upper())


def as_wrong(profile: str, edition: Edition) -> Wrong:
    """Return another edition's reference in the part of the wrong policy."""
    does = f"Is right in {edition}, where the rule was another."
    return Wrong(f"{profile.upper()} {edition}", does, reference(profile, edition))


def wrong_named(name: str) -> Wrong:
    """Return the wrong policy that a vector names."""
    policy, _, edition = name.partition(" ")
    if edition:
        return as_wrong(policy.lower(), edition_named(edition))
    return next(wrong for wrong in zoo() if wrong.name == name)


# --- From events to steps ------------------------------------------------------------------------


def step_of(call: Call) -> Step:
    """Return a call of the protocol as a step, with named arguments."""
    method, arguments = call
    match method:
        case "insert":
            return {"call": method, "key": arguments[0], "request": arguments[2]}
        case "touch" | "on_store_miss" | "on_request_access":
            return {"call": method, "keys": list(arguments[0]), "request": arguments[1]}
        case "on_request_finished":
            groups, inserted, reused, request = arguments
            return {
                "call": method,
                "groups": [list(group) for group in groups],
                "inserted": sorted(inserted),
                "reused": sorted(reused),
                "request": request,
            }
        case "evict":
            return {"call": method, "n": arguments[0], "protected": sorted(arguments[1])}
        case "clear":
            return {"call": method}
        case "set_ref_cnt":
            return {"call": method, "key": arguments[0], "ref_cnt": arguments[1]}
    return {"call": method, "key": arguments[0]}


class Unfit(Exception):
    """The program cannot be a vector; the message says why."""


def performed(
    setting: Setting[int], events: Iterable[Event], answer: Callable[[Call], Any]
) -> list[list[Step]]:
    """Return the steps of each event, as the host of the setting's edition makes them.

    Args:
        setting: edition, capacity, groups and positions.
        events: what happens.
        answer: makes a call and returns the victims of an evict.

    Raises:
        Unfit: no host would issue an event, or the victims are no victims.
    """
    books: State[int] = start(setting)
    made: list[list[Step]] = []
    for event in events:
        if (why := objection(setting, books, event)) is not None:
            raise Unfit(why)
        steps: list[Step] = []
        run = perform(setting, books, event)
        victims: Any = None
        try:
            while True:
                call = run.send(victims)
                steps.append(step_of(call))
                victims = answer(call)
        except StopIteration as end:
            books = end.value
        except KeyError:
            raise Unfit("the wrong policy returned what no host can take") from None
        finally:
            if steps:
                made.append(steps)
    return made


def answering(build: Callable[[int], Any], setting: Setting[int]) -> Callable[[Call], Any]:
    """Return what makes calls on a policy and answers with victims' keys."""
    module = importlib.import_module(setting.edition.module)
    codec = Codec(setting.group_of, fresh=True)
    instance = Instance(build, setting, module.ChunkStatus, codec)

    def answer(call: Call) -> Any:
        given = instance.carry_out(call)
        if call.method != "evict" or given is None:
            return None
        victims = tuple(codec.decode(key) for key, _ in given)
        for victim in victims:
            del instance.chunks[victim]  # type: ignore[arg-type]  # a KeyError if it is unknown
        return victims

    return answer


# --- Relations: every legal answer ---------------------------------------------------------------


class Books(NamedTuple):
    """What one history comes to: per policy the ref counts of its residents, and the answers."""

    residents: tuple[tuple[tuple[int, int], ...], ...]
    answers: tuple[Any, ...]


def with_relations(steps: Sequence[Step], capacity: int) -> list[Step]:
    """Return the steps with the answers that the universal contract demands.

    Every legal way to answer is followed to the end, so that what is demanded and what is called
    is right whatever a policy chose before.

    Args:
        steps: without answers, but for `same_as`.
        capacity: of each policy.

    Raises:
        Unfit: a call would be wrong after some legal answer, or the answers are too many.
    """
    policies = 1 + max(step.get("on", 0) for step in steps)
    wanted = {step["answer"]["same_as"] for step in steps if "answer" in step}
    histories = {Books(((),) * policies, ())}
    made: list[Step] = []
    for at, step in enumerate(steps):
        after: set[Books] = set()
        asked: list[tuple[frozenset[int], bool]] = []
        for history in histories:
            after.update(_lived(history, step, capacity, at in wanted, asked))
            if len(after) > MOST_HISTORIES:
                raise Unfit("too many legal answers")
        histories = after
        made.append({**step, **_relation(step, asked)})
    return made


def _relation(step: Step, asked: Sequence[tuple[frozenset[int], bool]]) -> dict[str, Any]:
    if "answer" in step:
        return {}
    match step["call"]:
        case "read_status":
            return {"answer": "unchanged"}
        case "get":
            found = {is_there for _, is_there in asked}
            if found == {False}:
                return {"answer": None}
            sure: dict[str, Any] = {"chunk_of": step["key"]}
            return {"answer": sure if found == {True} else {**sure, "unless_evicted": True}}
        case "evict":
            if step["n"] == 0:
                return {"answer": []}
            short = {is_short for _, is_short in asked}
            if short == {True}:
                return {"answer": None}
            among = sorted(frozenset().union(*(keys for keys, is_short in asked if not is_short)))
            return {
                "answer": {"count": step["n"], "among": among, "may_refuse": True in short},
            }
    return {}


def _lived(
    history: Books,
    step: Step,
    capacity: int,
    is_wanted: bool,
    asked: list[tuple[frozenset[int], bool]],
) -> Iterator[Books]:
    """Yield what a history can become by one step; note what an answer depends on."""
    on = step.get("on", 0)
    residents = dict(history.residents[on])
    call, key = step["call"], step.get("key")
    answer: Any = None

    def became(answer: Any = None, *, gone: Iterable[int] = ()) -> Books:
        left = {k: ref for k, ref in residents.items() if k not in set(gone)}
        every = list(history.residents)
        every[on] = tuple(sorted(left.items()))
        kept = answer if is_wanted else None
        return Books(tuple(every), (*history.answers, kept))

    match call:
        case "get":
            asked.append((frozenset(), key in residents))
            yield became()
            return
        case "evict":
            n = step["n"]
            eligible = [
                k for k, ref in residents.items() if ref == 0 and k not in step["protected"]
            ]
            asked.append((frozenset(eligible), len(eligible) < n))
            if "answer" in step:
                answer = history.answers[step["answer"]["same_as"]]
                if answer is None and len(eligible) >= n:
                    raise Unfit("a refusal of the first policy could be wrong of the other")
                if answer is not None and not (len(answer) == n and {*answer} <= {*eligible}):
                    raise Unfit("victims of the first policy could be wrong of the other")
                yield became(answer, gone=answer or ())
            elif len(eligible) < n:
                yield became()
            else:
                if comb(len(eligible), n) > MOST_HISTORIES:
                    raise Unfit("too many legal answers")
                for chosen in combinations(sorted(eligible), n):
                    yield became(chosen, gone=chosen)
            return
        case "insert":
            if key in residents or len(residents) >= capacity:
                raise Unfit("an insert could find the key resident or no slot free")
            residents[step["key"]] = -1
        case "remove":
            if residents.get(step["key"]) != -1:
                raise Unfit("a remove could find no pending chunk")
            del residents[step["key"]]
        case "clear":
            residents.clear()
        case "set_ref_cnt" | "mark_evictable" | "mark_non_evictable":
            if key not in residents:
                raise Unfit(f"a {call} could find no chunk")
            if call == "set_ref_cnt":
                residents[step["key"]] = step["ref_cnt"]
    yield became()


# --- Vectors -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """What a vector is made of.

    Attributes:
        clause: what it is about.
        profile: who is to pass it.
        setting: edition, capacity, groups and positions.
        groups: the number of KV cache groups.
        kind: `clause`, `edition-difference` or `known-bug`.
        source: where it comes from.
        events: how many events it stands for.
        more: what else the vector says.
    """

    clause: Clause
    profile: str
    setting: Setting[int]
    groups: int
    kind: str
    source: str
    events: int
    more: tuple[tuple[str, Any], ...] = ()


def finished(program: Program, steps: Sequence[Step], wrong: Wrong) -> Vector:
    """Return the vector of a program with answered steps, cut off behind the wrong answer.

    Raises:
        Unfit: the wrong policy passes.
    """
    vector = _vector(program, steps)
    failure = runner().run_vector(vector, wrong.build)
    if failure is None:
        raise Unfit(f"{wrong.name} passes")
    vector = _vector(program, steps[: failure.step + 1])
    vector["wrong"] = {
        "policy": wrong.name,
        "does": wrong.does,
        "step": failure.step,
        "result": failure.result,
    }
    if runner().run_vector(vector, wrong.build) != failure:
        raise Unfit(f"{wrong.name} does not fail twice alike")
    return vector


def _vector(program: Program, steps: Sequence[Step]) -> Vector:
    setting, clause = program.setting, program.clause
    keys = sorted({key for step in steps for key in _keys_in(step)})
    names = sorted({step["request"] for step in steps if "request" in step})
    policies = 1 + max(step.get("on", 0) for step in steps)
    edition = setting.edition.name
    vector: Vector = {
        "format": FORMAT,
        "id": "",
        "clause": clause.name,
        "statement": clause.statement,
        "kind": program.kind,
        **dict(program.more),
        "source": program.source,
        "profile": program.profile,
        "edition": edition,
        "editions": [edition],
        "scope": {
            "capacity": setting.capacity,
            "keys": len(keys),
            "groups": program.groups,
            "events": program.events,
        },
        **({"policies": policies} if policies > 1 else {}),
        "keys": {str(key): _bytes_of(key, setting).hex() for key in keys},
        "requests": {
            name: {
                str(key): at for key in keys if (at := setting.position_of(name, key)) is not None
            }
            for name in names
        },
        "steps": list(steps),
    }
    vector["id"] = identity(vector)
    return vector


def _bytes_of(key: int, setting: Setting[int]) -> bytes:
    """Return the offload key: its hash is the number of lower keys in its group, so that keys of
    different groups share one, as chunks of the same tokens do."""
    group = setting.group_of(key)
    depth = sum(setting.group_of(lower) == group for lower in range(key))
    return make_offload_key(depth.to_bytes(HASH_BYTES, "big"), group)


def identity(vector: Vector) -> str:
    """Return the id of a vector: its clause, its edition, and a digest of what it asks."""
    asked = {name: vector[name] for name in ("kind", "profile", "keys", "requests", "steps")}
    asked["capacity"] = vector["scope"].get("capacity")
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{vector['clause']}@{vector['edition']}#{digest}"


def _keys_in(step: Step) -> Iterator[int]:
    if "key" in step:
        yield step["key"]
    for name in ("keys", "protected", "inserted", "reused"):
        yield from step.get(name, ())
    for group in step.get("groups", ()):
        yield from group


# --- Vectors of clauses whose answers are determined ---------------------------------------------


def exact_vector(program: Program, events: Sequence[Event], wrong: Wrong) -> Vector:
    """Return the vector of a trace under a profile that determines every answer.

    Raises:
        Unfit: no host would do so, or the wrong policy passes.
    """
    setting = program.setting
    answer = answering(reference(program.profile, setting.edition), setting)
    answers: list[Any] = []

    def noted(call: Call) -> Any:
        victims = answer(call)
        if call.method == "evict":
            answers.append(None if victims is None else list(victims))
        return victims

    steps = [step for event in performed(setting, events, noted) for step in event]
    return checked(finished(program, answered(steps, answers), wrong))


def checked(vector: Vector) -> Vector:
    """Return a vector that the reference passes.

    Raises:
        Unfit: it does not; somebody changed the reference's state by hand.
    """
    right = reference(vector["profile"], edition_named(vector["edition"]))
    if runner().run_vector(vector, right) is not None:
        raise Unfit("the reference does not get there by calls alone")
    return vector


def answered(steps: Iterable[Step], answers: Iterable[Any]) -> list[Step]:
    """Return steps without `get`, with the answer to each evict."""
    left = iter(answers)
    return [
        {**step, "answer": next(left)} if step["call"] == "evict" else step
        for step in steps
        if step["call"] != "get"
    ]


# --- Vectors of the universal contract -----------------------------------------------------------


def contract_vector(program: Program, events: Sequence[Event], wrong: Wrong) -> Vector:
    """Return the vector of a trace that the witness found a single call of to be wrong.

    Raises:
        Unfit: as `with_relations` and `finished`.
    """
    setting = program.setting
    steps = [s for event in _until_wrong(wrong, setting, events) for s in event]
    if program.clause.name == "chunk-status/manager-writes":
        steps = _with_statuses(steps)
    relational = with_relations([*steps, *_looks(steps)], setting.capacity)
    return _without_looks(program, relational, wrong)


def _until_wrong(wrong: Wrong, setting: Setting[int], events: Sequence[Event]) -> list[list[Step]]:
    """Return the steps of events up to the call that the wrong policy makes impossible to go on."""
    answer = answering(wrong.build, setting)
    made: list[list[Step]] = []
    books: State[int] = start(setting)
    for event in events:
        if (why := objection(setting, books, event)) is not None:
            raise Unfit(why)
        made.append([])
        run, victims = perform(setting, books, event), None
        try:
            while True:
                call = run.send(victims)
                made[-1].append(step_of(call))
                victims = answer(call)
                if call.method == "evict" and not _is_legal(victims, call, books):
                    return made
        except StopIteration as end:
            books = end.value
        except (Exception, SystemExit):
            return made
    return made


def _is_legal(victims: Any, call: Call, books: State[int]) -> bool:
    n, protected = call.arguments
    if victims is None:
        return bool(len(books.eligible(protected)) < n)
    chosen = frozenset(victims)
    return bool(len(victims) == n == len(chosen) and books.eligible(protected) >= chosen)


def _with_statuses(steps: Sequence[Step]) -> list[Step]:
    """Return steps with a look at every status before each evict and each write of a ref count."""
    made: list[Step] = []
    for step in steps:
        if step["call"] in ("evict", "set_ref_cnt"):
            made += _status_looks(made)
        made.append(step)
    return made


def _looks(steps: Sequence[Step]) -> list[Step]:
    """Return a look at every key that was inserted or touched, and at every status."""
    keys = sorted({key for step in steps for key in _keys_in(step)})
    looks: list[Step] = [{"call": "get", "key": key} for key in keys]
    return looks + _status_looks(steps)


def _status_looks(steps: Sequence[Step]) -> list[Step]:
    """Return a look at the status of every key that was inserted, wherever it is now."""
    inserted = sorted({step["key"] for step in steps if step["call"] == "insert"})
    return [{"call": "read_status", "key": key} for key in inserted]


def _without_looks(program: Program, steps: list[Step], wrong: Wrong) -> Vector:
    """Return the vector without the gets that the wrong policy passes."""
    vector = finished(program, steps, wrong)
    kept: list[Step] = vector["steps"]
    at = 0
    while at < len(kept) - 1:
        if kept[at]["call"] in ("get", "read_status") or (
            kept[at]["call"] == "touch" and not kept[at]["keys"]
        ):
            fewer = kept[:at] + kept[at + 1 :]
            try:
                shorter = finished(program, fewer, wrong)
            except Unfit:
                shorter = vector
            if len(shorter["steps"]) == len(fewer):
                vector, kept = shorter, fewer
                continue
        at += 1
    return vector


# --- Vectors of twins ----------------------------------------------------------------------------


def twin_vector(program: Program, events: Sequence[Event], wrong: Wrong) -> Vector:
    """Return the vector of a clause that only two policies together can break.

    Raises:
        Unfit: as `with_relations` and `finished`.
    """
    setting = program.setting
    plain = _until_wrong(wrong, setting, events)
    if program.clause.name != SHARING:
        plain += _drained(wrong, setting, events)
    plain = [[step for step in event if step["call"] != "get"] for event in plain]
    best: Vector | None = None
    disturbances = DISTURBANCES[program.clause.name](program, plain, events, wrong)
    for disturbed in disturbances:
        steps = _joined(plain, disturbed)
        try:
            made = finished(program, with_relations(steps, setting.capacity), wrong)
        except Unfit:
            continue
        made = _pruned(program, made, wrong)
        if best is None or len(made["steps"]) < len(best["steps"]):
            best = made
    if best is None:
        raise Unfit("no disturbance shows it")
    return best


def _drained(wrong: Wrong, setting: Setting[int], events: Sequence[Event]) -> list[list[Step]]:
    """Return the steps that empty the cache after events."""
    run = Lockstep(wrong.subject(setting.edition, "contract"), setting)
    made: list[list[Step]] = []
    try:
        for event in events:
            run.step(event)
        run.watch = []
        for event in run.drain():
            run.watch.clear()
            run.step(event)
            made.append([step_of(call) for call in run.watch])
    except Exception as error:
        raise Unfit("the cache cannot be emptied") from error
    return made


Lives = list[list[Step]]


def _joined(plain: Lives, disturbed: Sequence[tuple[Step, int | None]]) -> list[Step]:
    """Return the steps of both twins: first those of the plain one, then the other's.

    Args:
        plain: the steps of the first twin, event by event.
        disturbed: the steps of the second; beside those that both make, the place of it among the
            first twin's.
    """
    steps = [dict(step) for event in plain for step in event]
    for step, place in disturbed:
        made = {**step, "on": 1}
        if step["call"] == "evict" and place is not None:
            made["answer"] = {"same_as": place}
        steps.append(made)
    return steps


def _between(
    plain: Lives, extra: Callable[[list[Step]], list[Step]]
) -> Iterator[list[tuple[Step, int | None]]]:
    """Yield the plain life with something done before one event, then before each."""
    for only in (*range(len(plain)), None):
        made: list[tuple[Step, int | None]] = []
        place = 0
        for number, event in enumerate(plain):
            if only is None or number == only:
                made += [(step, None) for step in extra([s for e in plain[:number] for s in e])]
            for step in event:
                made.append((step, place))
                place += 1
        yield made


def _more_gets(
    program: Program, plain: Lives, events: Sequence[Event], wrong: Wrong
) -> Iterator[list[tuple[Step, int | None]]]:
    keys = _all_keys(plain)
    for times in (1, 2):
        for key in keys:
            yield from _between(plain, lambda _, key=key: [{"call": "get", "key": key}] * times)  # type: ignore[misc]  # noqa: B023
    for times in (1, 4):
        yield from _between(
            plain,
            lambda _: [{"call": "get", "key": key} for key in keys for _ in range(times)],  # noqa: B023
        )


def _unknown_touches(
    program: Program, plain: Lives, events: Sequence[Event], wrong: Wrong
) -> Iterator[list[tuple[Step, int | None]]]:
    keys = _all_keys(plain)
    fresh = max(keys) + 1
    for unknown in ([fresh], [fresh, fresh + 1]):
        touch: Step = {"call": "touch", "keys": unknown, "request": "u99"}
        yield from _between(plain, lambda _: [touch])  # noqa: B023

    def not_yet(before: list[Step]) -> list[Step]:
        """Touch the keys that are stored later, and not yet."""
        known = {step["key"] for step in before if step["call"] == "insert"}
        later = [key for key in keys if key not in known]
        return [{"call": "touch", "keys": later, "request": "u99"}] if later else []

    yield from _between(plain, not_yet)


def _refused_evictions(
    program: Program, plain: Lives, events: Sequence[Event], wrong: Wrong
) -> Iterator[list[tuple[Step, int | None]]]:
    most = program.setting.capacity + 1
    for n in range(1, most + 1):
        yield from _between(plain, lambda _, n=n: [{"call": "evict", "n": n, "protected": []}])  # type: ignore[misc]
    keys = _all_keys(plain)
    yield from _between(plain, lambda _: [{"call": "evict", "n": 1, "protected": keys}])


def _evictions_of_none(
    program: Program, plain: Lives, events: Sequence[Event], wrong: Wrong
) -> Iterator[list[tuple[Step, int | None]]]:
    yield from _between(plain, lambda _: [{"call": "evict", "n": 0, "protected": []}])


def _first_lives(
    program: Program, plain: Lives, events: Sequence[Event], wrong: Wrong
) -> Iterator[list[tuple[Step, int | None]]]:
    """Yield an earlier life, ended by a clear, before the plain one; the shortest last."""
    second = [(step, place) for place, step in enumerate(s for event in plain for s in event)]
    ending = {event.request for event in events if isinstance(event, RequestEnds)}

    def life(lived: Sequence[Event]) -> list[tuple[Step, int | None]] | None:
        first = [
            rewritten(event, request=lambda name: f"{name}0" if name in ending else name)
            for event in lived
        ]
        try:
            steps = _until_wrong(wrong, program.setting, [*first, Reset()])
        except Unfit:
            return None
        return [*((step, None) for event in steps for step in event), *second]

    def shows(candidate: list[tuple[Step, int | None]] | None) -> bool:
        if candidate is None:
            return False
        try:
            made = with_relations(_joined(plain, candidate), program.setting.capacity)
            finished(program, made, wrong)
        except Unfit:
            return False
        return True

    lived = [event for event in events if not isinstance(event, Reset)]
    at = 0
    while at < len(lived):
        fewer = lived[:at] + lived[at + 1 :]
        if shows(life(fewer)):
            lived = fewer
        else:
            at += 1
    found = life(lived)
    if found is not None:
        yield found


def _neighbours(
    program: Program, plain: Lives, events: Sequence[Event], wrong: Wrong
) -> Iterator[list[tuple[Step, int | None]]]:
    """Yield a look into the other policy for what was put into the first."""
    yield [({"call": "get", "key": key}, None) for key in _all_keys(plain)]
    yield [(step, place) for place, step in enumerate(s for event in plain for s in event)]


def _all_keys(plain: Lives) -> list[int]:
    return sorted({key for event in plain for step in event for key in _keys_in(step)})


DISTURBANCES: dict[str, Callable[..., Iterator[list[tuple[Step, int | None]]]]] = {
    "get/no-side-effect": _more_gets,
    "touch/absent-ignored": _unknown_touches,
    "evict/none-changes-nothing": _refused_evictions,
    "evict/zero-is-empty": _evictions_of_none,
    SHARING: _neighbours,
    "clear/equals-new": _first_lives,
}
"""How the second twin is disturbed, by clause."""


def _pruned(program: Program, vector: Vector, wrong: Wrong) -> Vector:
    """Return the vector without what its first twin does after the answer that is compared."""
    steps: list[Step] = vector["steps"]
    last = steps[-1].get("answer")
    if not isinstance(last, dict) or "same_as" not in last:
        return vector
    kept = [at for at, step in enumerate(steps) if step.get("on", 0) == 1 or at <= last["same_as"]]
    place = {old: new for new, old in enumerate(kept)}
    made: list[Step] = []
    for at in kept:
        step = {name: value for name, value in steps[at].items() if name != "answer"}
        answer = steps[at].get("answer")
        if isinstance(answer, dict) and "same_as" in answer:
            if answer["same_as"] not in place:
                return vector
            step["answer"] = {"same_as": place[answer["same_as"]]}
        made.append(step)
    try:
        return finished(program, with_relations(made, program.setting.capacity), wrong)
    except Unfit:
        return vector  # what the first twin does afterwards is what the second suffers from


# --- Searching -----------------------------------------------------------------------------------


SHORTEST, SHORTENED = "no trace at its scope is shorter", "made shorter step by step"


class Found(NamedTuple):
    """A trace that tells a wrong policy from a right one.

    Attributes:
        trace: the trace.
        wrong: the policy.
        how: how short it is, in words.
    """

    trace: Trace
    wrong: Wrong
    how: str

    @property
    def source(self) -> str:
        """Where a vector of it comes from, in words."""
        return f"what tells {self.wrong.name} of the zoo from a right policy; {self.how}"


def profile_of(clause: Clause) -> str:
    """Return the profile that has a clause."""
    assert clause.profile is not None
    return clause.profile


def experiment_of(clause: Clause, wrong: Wrong, edition: Edition) -> Experiment:
    """Return what runs a trace and says whether the wrong policy breaks the clause on it."""
    profile = profile_of(clause)
    subject = wrong.subject(edition, profile)
    if clause.name not in DISTURBANCES:
        return lockstep_experiment(subject, clause.name if profile != "contract" else None)
    twins, calls = twin_experiment(subject, clause.name), lockstep_experiment(subject)
    return lambda trace: [*calls(trace), *twins(trace)]


def search(clause: Clause, wrong: Wrong, edition: Edition) -> Iterator[Found]:
    """Yield short traces on which the wrong policy may break the clause, if there are any."""
    if clause.name == SHARING:
        # What an instance shares shows where another one was never touched.
        yield Found(Trace(edition, 1, stored(1)), wrong, SHORTEST)
    else:
        found = _by_probes(clause, wrong, edition)
        if found is not None:
            yield found
    if clause.name in (SHARING, "clear/equals-new"):
        # What is learned after all has left would matter before, in another life. That all leave
        # makes the rest independent of whom a policy chooses.
        life = (*stored(1, 2), *evicted(2), *stored(1, 2), *touched(1))
        yield Found(Trace(edition, 2, life), wrong, "given by hand")


def _by_probes(clause: Clause, wrong: Wrong, edition: Edition) -> Found | None:
    experiment = experiment_of(clause, wrong, edition)
    probes = [*contract_probes(edition)]
    if clause.profile in PROBES:
        probes = [*PROBES[clause.profile](edition), *probes]
    elif clause.name in DISTURBANCES:
        probes += [*twin_probes(edition)]
    probes.sort(key=lambda probe: (probe.clause != clause.name, len(probe.events)))
    for probe in probes:
        for finding in experiment(probe.trace(edition)):
            if finding.clause == clause.name:
                return _shortened(finding, clause, wrong, edition, experiment)
    return None


def _shortened(
    finding: Finding, clause: Clause, wrong: Wrong, edition: Edition, experiment: Experiment
) -> Found:
    short = shrink.Shrinker(experiment, finding).reduce()
    longest = max(len(tuple(keys_of(event))) for event in short.trace.events)
    if clause.name not in DISTURBANCES and max(longest, len(short.trace.keys)) <= MOST_KEYS:
        kept = shrink.MOST_TRANSITIONS
        shrink.MOST_TRANSITIONS = MOST_TRANSITIONS
        try:
            short = shrink.shortest(wrong.subject(edition, profile_of(clause)), short, experiment)
        finally:
            shrink.MOST_TRANSITIONS = kept
    return Found(short.trace, wrong, SHORTEST if short.shortest else SHORTENED)


def candidates(clause: Clause) -> list[Wrong]:
    """Return the wrong policies that may break a clause, the likeliest first."""
    first = [wrong for wrong in zoo() if wrong.breaks == clause.name]
    also = [w for w in zoo() if clause.name in getattr(w.made, "also", ()) and w not in first]
    return first + also


def made(clause: Clause, found: Found, edition: Edition) -> Vector:
    """Return the vector of a trace under an edition.

    Raises:
        Unfit: there is none.
    """
    trace = replace(found.trace, edition=edition)
    profile = profile_of(clause)
    program = Program(
        clause, profile, trace.setting, trace.groups, "clause", found.source, len(trace.events)
    )
    if profile != "contract":
        return exact_vector(program, trace.events, found.wrong)
    if clause.name == SHARING:
        return twin_vector(program, trace.events, found.wrong)
    if clause.name in DISTURBANCES:
        try:
            return contract_vector(program, trace.events, found.wrong)
        except Unfit:
            return twin_vector(program, trace.events, found.wrong)
    return contract_vector(program, trace.events, found.wrong)


def clause_vectors(clause: Clause, say: Callable[[str], None]) -> list[Vector]:
    """Return the vectors of one clause, the newest edition first.

    There are as many as it takes for each wrong policy to fail one in some edition.
    """
    vectors: list[Vector] = []
    known: list[Found] = []
    wrongs = candidates(clause)
    for edition in reversed(EDITIONS):
        if not clause.holds_in(edition.name):
            continue
        for found in known:
            _add(vectors, clause, found, edition)
        for wrong in wrongs:
            if any(found.wrong is wrong for found in known) or _fails_one(vectors, wrong, edition):
                continue
            known += _add_first(vectors, clause, search(clause, wrong, edition), edition)
        for wrong in candidates(clause):
            if any(edition.name in vector["editions"] for vector in vectors):
                break
            known += _add_first(vectors, clause, search(clause, wrong, edition), edition)
        else:
            if not any(edition.name in vector["editions"] for vector in vectors):
                say(f"{clause.name}: no vector for {edition}")
        wrongs = [wrong for wrong in wrongs if not _fails_one(vectors, wrong, edition)]
    return vectors


def _add(vectors: list[Vector], clause: Clause, found: Found, edition: Edition) -> bool:
    """Add the vector of a trace, if there is one and the wrong policy passes the others."""
    if _fails_one(vectors, found.wrong, edition):
        return False
    try:
        take_in(vectors, made(clause, found, edition))
    except Unfit:
        return False
    return True


def _add_first(
    vectors: list[Vector], clause: Clause, traces: Iterable[Found], edition: Edition
) -> list[Found]:
    """Add the vector of the first trace that has one; return that trace, if there is one."""
    return next(([found] for found in traces if _add(vectors, clause, found, edition)), [])


def _fails_one(vectors: Iterable[Vector], wrong: Wrong, edition: Edition) -> bool:
    return any(
        edition.name in vector["editions"] and runner().run_vector(vector, wrong.build) is not None
        for vector in vectors
    )


def take_in(vectors: list[Vector], vector: Vector) -> None:
    """Add a vector, or its edition to one that asks and expects the same."""
    for other in vectors:
        same = ("kind", "profile", "scope", "keys", "requests", "steps", "bug", "other")
        if all(other.get(name) == vector.get(name) for name in same):
            if vector["edition"] not in other["editions"]:
                other["editions"] = _in_order([*other["editions"], vector["edition"]])
            return
    vectors.append(vector)


def _in_order(names: Sequence[str]) -> list[str]:
    return [edition.name for edition in EDITIONS if edition.name in names]


# --- Differences between editions ----------------------------------------------------------------

NEIGHBOURS = (("lru", 22, 24), ("lru", 30, 31), ("lru", 31, 33), ("arc", 27, 30), ("arc", 30, 31))
"""The pairs of neighbouring editions of a policy that a program can tell apart."""


def edition_differences() -> Iterator[Vector]:
    """Yield, for each pair that differs, one vector of each side."""
    for profile, *numbers in NEIGHBOURS:
        older, newer = (Edition((0, int(number))) for number in numbers)
        trace = compare_editions(profile, older, newer).shortest
        assert trace is not None, (profile, older, newer)
        for edition, other in ((older, newer), (newer, older)):
            program = Program(
                _changed(profile, edition, other),
                profile,
                replace(trace, edition=edition).setting,
                trace.groups,
                "edition-difference",
                f"the shortest program that tells {older} from {newer}, of both editions' cores "
                "stepped side by side",
                len(trace.events),
                (("other", other.name),),
            )
            yield _difference(program, trace.events, as_wrong(profile, other))


def _difference(program: Program, events: Sequence[Event], other: Wrong) -> Vector:
    """Return a vector that the other edition fails, or if its host alone differs, a zoo policy."""
    alike = [wrong for wrong in zoo() if wrong.breaks.startswith(f"{program.profile}/")]
    # An LRU that lives by the marks is lost without them, whatever the difference.
    lost = other.name == "LRU v0.24"
    for wrong in (*(() if lost else (other,)), *alike):
        try:
            return exact_vector(program, events, wrong)
        except Unfit:
            continue
    raise AssertionError(f"nobody fails the difference of {program.setting.edition}")


def _changed(profile: str, edition: Edition, other: Edition) -> Clause:
    """Return the first clause of a policy that one edition has and another has not."""
    return next(
        clause
        for clause in CLAUSES.values()
        if clause.profile == profile
        and clause.holds_in(edition.name)
        and (
            not clause.holds_in(other.name) or clause.modified.startswith(f"{max(edition, other)}:")
        )
    )


# --- Known bugs ----------------------------------------------------------------------------------

BUG_CLAUSES = {"lru": "lru/oldest-leaves-first", "arc": "arc/oldest-of-its-list-first"}
"""Where the vector of a bug stands of which no clause says that it comes from it."""


def bug_vectors() -> Iterator[Vector]:
    """Yield the vectors of known bugs that show in answers."""
    bugs = importlib.import_module("tests.reference.test_known_bugs").BUGS
    for bug in bugs:
        for profile in bug.policies:
            for edition in reversed(EDITIONS):
                if edition >= bug.since:
                    vector = _bug_vector(bug, profile, edition)
                    if vector is not None:
                        yield vector


def _bug_vector(bug: Any, profile: str, edition: Edition) -> Vector | None:
    number = bug.name.split()[0]
    clause = _clause_of_bug(number, profile, edition)
    if clause is None:
        return None
    setting, steps, answers, events = _played(bug, profile, edition)
    program = Program(
        clause,
        profile,
        setting,
        1 + max((bug.groups or {0: 0}).values()),
        "known-bug",
        f"the sequence {bug.name} of the known bugs",
        events,
        (("bug", number),),
    )
    for wrong in _who_has(bug, number, profile, edition):
        try:
            return checked(finished(program, answered(steps, answers), wrong))
        except Unfit:
            continue
    return None


def _played(
    bug: Any, profile: str, edition: Edition
) -> tuple[Setting[int], list[Step], list[Any], int]:
    """Let a sequence happen to the reference, and empty its cache; return what was called."""
    host_class: Any = importlib.import_module("tests.reference.conftest").Host
    steps: list[Step] = []
    answers: list[Any] = []
    events = 0

    class Recording(host_class):  # type: ignore[misc]
        """A host that remembers every call."""

        def happen(self, event: Event) -> Any:
            nonlocal events
            events += 1
            return super().happen(event)

        def carry_out(self, call: Call) -> Any:
            steps.append(step_of(call))
            victims = super().carry_out(call)
            if call.method == "evict":
                answers.append(None if victims is None else list(victims))
            return victims

    host: Any = Recording(
        edition, profile, bug.capacity, groups=bug.groups, positions=bug.positions
    )
    assert bug.play(host) == bug.expected(edition), (bug.name, profile, edition)
    for _ in range(host.books.idle):
        host.evict(1)
    return host.setting, steps, answers, events


def _who_has(bug: Any, number: str, profile: str, edition: Edition) -> Iterator[Wrong]:
    """Yield the wrong policies that have a bug: those of the zoo, and editions of its day."""
    prefix = f"{profile}/"
    yield from (w for w in zoo() if w.does.startswith(f"{number}:") and w.breaks[:4] == prefix)
    if bug.of_its_day is not None:
        first, last, _ = bug.of_its_day
        had_it = first <= edition <= last
        for other in reversed(EDITIONS):
            # An LRU that lives by the marks is lost without them, whatever bug it has.
            lost = profile == "lru" and V024 <= other <= V030 and not edition.has_marks
            if (first <= other <= last) != had_it and other >= bug.since and not lost:
                yield as_wrong(profile, other)


def _clause_of_bug(number: str, profile: str, edition: Edition) -> Clause | None:
    """Return the clause that says it comes from a bug; None if it is one without vectors."""
    silent = False
    for wanted in (profile, "contract"):
        for clause in CLAUSES.values():
            named = clause.source.replace(",", " ").replace(";", " ").split()
            if clause.profile != wanted or number not in named:
                continue
            silent |= clause.name in NO_VECTOR or bool(clause.no_law)
            if clause.name not in NO_VECTOR and not clause.no_law and clause.holds_in(edition.name):
                return clause
    return None if silent else CLAUSES[BUG_CLAUSES[profile]]


# --- The reuse filter ----------------------------------------------------------------------------


def filter_wrongs() -> Iterator[tuple[Wrong, Subject]]:
    """Yield the wrong filters of the zoo, with the form that each has."""
    for name, made in classes(FILTERS).items():
        form = next((f for f in ("RightV021", "RightV019", "RightV020") if _is_a(made, f)), None)
        if form in (None, "RightV021") or "Right" in name:
            continue
        edition = V019 if form == "RightV019" else V020
        does = (made.__dict__.get("__doc__") or _spoken(name)).splitlines()[0]
        status = importlib.import_module(edition.module).ChunkStatus
        yield (
            Wrong(name, does, made),
            Subject(name, made, status, edition, (edition,), "reuse-filter"),
        )


def _is_a(made: Any, name: str) -> bool:
    return any(parent.__name__ == name for parent in made.__mro__)


def _spoken(name: str) -> str:
    """Turn the name of a class, which says what it does, into a sentence."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return f"{words[1].upper()}{words[2:]}."


def filter_vectors() -> Iterator[Vector]:
    """Yield the vectors of the reuse filter."""
    newest_first = sorted(filter_wrongs(), key=lambda pair: pair[1].edition, reverse=True)
    for wrong, subject in newest_first:
        course = Course()
        for unit in FilterSearch(subject, 1, lambda line: None, course).units(0, 0):
            unit()
        for clause, finding in course.found.items():
            try:
                yield _filter_vector(CLAUSES[clause], finding.trace, wrong)
            except Unfit:
                continue


def _filter_vector(clause: Clause, trace: FilterTrace, wrong: Wrong) -> Vector:
    steps = filter_steps(trace)
    keys = sorted({key for step in steps for key in step.get("keys", ())})
    vector: Vector = {
        "format": FORMAT,
        "id": "",
        "clause": clause.name,
        "statement": clause.statement,
        "kind": "clause",
        "source": f"what tells {wrong.name} of the zoo from a right filter; made shorter step by "
        "step",
        "profile": "reuse-filter",
        "edition": trace.edition.name,
        "editions": [trace.edition.name],
        "scope": {
            "store_threshold": trace.store_threshold,
            "max_tracker_size": trace.max_tracker_size,
            "keys": len(keys),
            "events": len(trace.events),
        },
        "keys": {
            str(key): make_offload_key(key.to_bytes(HASH_BYTES, "big"), 0).hex() for key in keys
        },
        "requests": {name: {} for name in sorted({s["request"] for s in steps if "request" in s})},
        "steps": steps,
    }
    failure = runner().run_vector(vector, wrong.made)
    if failure is None:
        raise Unfit(f"{wrong.name} passes")
    vector["steps"] = steps[: failure.step + 1]
    vector["id"] = identity(vector)
    vector["wrong"] = {
        "policy": wrong.name,
        "does": wrong.does,
        "step": failure.step,
        "result": failure.result,
    }
    return vector


def filter_steps(trace: FilterTrace) -> list[Step]:
    """Return the steps of a filter's trace: the construction, and then call after call."""
    threshold, size = trace.store_threshold, trace.max_tracker_size
    valid = threshold >= 2 and size >= 1
    steps: list[Step] = [
        {
            "call": "construct",
            "store_threshold": threshold,
            "max_tracker_size": size,
            "answer": "made" if valid else "refused",
        }
    ]
    if not valid:
        return steps
    module = importlib.import_module(trace.edition.module)
    codec = PlainCodec()
    backing = backing_for(trace, codec)
    right = module.FilterReusedOffloadingManager(
        backing, store_threshold=threshold, max_tracker_size=size
    )
    contexts: dict[str, ReqContext] = {}
    for event in trace.events:
        if filter_objection(backing, trace, event) is not None:
            raise Unfit("no scheduler would do so")
        steps.append(_filter_step(right, backing, trace, event, contexts))
    return steps


def _filter_step(
    right: Any,
    backing: Any,
    trace: FilterTrace,
    event: FilterEvent,
    contexts: dict[str, ReqContext],
) -> Step:
    """Let the reference live through an event; return what is called and what is passed on."""
    backing.begin(event)
    step: Step = {"call": event.method}
    arguments: list[Any] = []
    if event.method != "take_events":
        step["keys"] = list(event.keys)
        single = event.method == "lookup" and trace.takes_context
        arguments.append(event.keys[0] if single else list(event.keys))
    if trace.takes_context and event.method in WITH_CONTEXT:
        step["request"] = event.request
        arguments.append(contexts.setdefault(event.request, ReqContext(event.request)))
    if event.method == "complete_store":
        step["success"] = event.success
        arguments.append(event.success)
    answer = getattr(right, event.method)(*arguments)
    if event.method == "take_events":
        list(answer)
    (given,) = backing.given
    told = backing.answers[0]
    match event.method:
        case "lookup":
            back: Any = told
        case "prepare_store":
            back = None if told is None else {"stored": told.keys_to_store}
            if back is not None:
                back["evicted"] = told.evicted_keys
        case _:
            back = "any"
    return {**step, "backing": {"keys": list(given.keys), "answers": back}}


# --- Informal Trace Format -----------------------------------------------------------------------

SHOWN = (
    "lru/oldest-leaves-first",
    "lru/touch-is-use",
    "lru/batch-tail-first",
    "lru/becoming-idle-is-use",
    "lru/finish-in-prefix-order",
    "lru/batches-share-a-rank",
    "arc/second-use-promotes",
    "arc/b1-hit-raises-target",
    "arc/b2-hit-lowers-target",
    "arc/step-is-ratio-of-ghosts",
    "arc/each-victim-anew",
    "arc/falls-back-to-t1",
    "arc/ghosts-trimmed-to-capacity",
    "arc/reuse-promotes",
)
"""The clauses whose first vector is also given state by state."""

PICKS = ("key", "keys", "groups", "inserted", "reused", "request", "n", "protected", "ref_cnt")
"""The arguments of calls; those that occur in a trace are picks of each of its states."""


def shown_as_states(by_clause: dict[str, list[Vector]]) -> Iterator[Vector]:
    """Yield the vectors that are also given in the Informal Trace Format."""
    for clause, vectors in by_clause.items():
        firsts = [v for v in vectors if v["kind"] == "clause"][: clause in SHOWN]
        yield from (*firsts, *(v for v in vectors if v["kind"] == "edition-difference"))


def itf_text(vector: Vector) -> str:
    """Return a vector as a trace of states, in the Informal Trace Format of Quint and Apalache."""
    picks = [name for name in PICKS if any(name in step for step in vector["steps"])]
    states = [_state(at, picks, *seen) for at, seen in enumerate(core_states(vector))]
    data = {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "description": f"states of the reference core over the vector {vector['id']}",
            "vector": vector["id"],
            "profile": vector["profile"],
            "edition": vector["edition"],
            "capacity": vector["scope"]["capacity"],
            "positions": vector["requests"],
        },
        "params": [],
        "vars": [name for name in states[0] if name != "#meta"],
    }
    head = json.dumps(data, indent=2)[:-2]
    body = ",\n    ".join(json.dumps(state, separators=(",", ":")) for state in states)
    return f'{head},\n  "states": [\n    {body}\n  ]\n}}\n'


def core_states(vector: Vector) -> Iterator[tuple[Step | None, Any, dict[int, int], Any]]:
    """Yield the step taken, the core's state after it, the ref counts, and the answer."""
    core = core_of(vector["profile"], edition_named(vector["edition"]))
    state = core.start(vector["scope"]["capacity"])
    counts: dict[int, int] = {}
    memories: dict[str, Any] = {}
    positions = vector["requests"]
    yield None, state, {}, None
    for step in vector["steps"]:
        call = call_of(step)
        if call.method == "insert":
            counts[call.arguments[0]] = -1
        request = step.get("request", "")
        world = World(
            counts.__getitem__,
            lambda name, key: positions.get(name, {}).get(str(key)),
            memories.get(request),
        )
        state, victims, memories[request] = core.apply(state, call, world)
        match call.method:
            case "set_ref_cnt":
                counts[call.arguments[0]] = call.arguments[1]
            case "remove":
                del counts[call.arguments[0]]
            case "clear":
                counts.clear()
        for key in victims or ():
            del counts[key]
        yield step, state, dict(counts), victims


def call_of(step: Step) -> Call:
    """Return the call of the protocol that a step stands for."""
    match step["call"]:
        case "insert":
            return Call("insert", (step["key"], 0, step["request"]))
        case "touch" | "on_store_miss" | "on_request_access":
            return Call(step["call"], (tuple(step["keys"]), step["request"]))
        case "on_request_finished":
            groups = tuple(map(tuple, step["groups"]))
            inserted, reused = frozenset(step["inserted"]), frozenset(step["reused"])
            return Call("on_request_finished", (groups, inserted, reused, step["request"]))
        case "evict":
            return Call("evict", (step["n"], frozenset(step["protected"])))
        case "clear":
            return Call("clear", ())
        case "set_ref_cnt":
            return Call("set_ref_cnt", (step["key"], step["ref_cnt"]))
    return Call(step["call"], (step["key"],))


def _state(
    at: int,
    names: Sequence[str],
    step: Step | None,
    state: Any,
    counts: dict[int, int],
    victims: Any,
) -> dict[str, Any]:
    taken = step or {"call": "init"}
    picks = {name: _option(name in taken, _itf(taken.get(name), name)) for name in names}
    lists: dict[str, Any]
    if isinstance(state, ArcState):
        above, below = float(state.target).as_integer_ratio()
        lists = {name: _itf(list(getattr(state, name)), name) for name in ("t1", "t2", "b1", "b2")}
        lists["target"] = {"above": _itf(above, ""), "below": _itf(below, "")}
    else:
        lists = {"order": _itf(list(lru_order(state)), "")}
    answer = _option(victims is not None, _itf(list(victims or ()), ""))
    return {
        "#meta": {"index": at},
        "mbt::actionTaken": taken["call"],
        "mbt::nondetPicks": picks,
        **lists,
        "ref_cnt": {"#map": [[_itf(key, ""), _itf(counts[key], "")] for key in sorted(counts)]},
        "answer": answer,
    }


def lru_order(state: Any) -> tuple[int, ...]:
    """Return the keys that have a place in LRU's order, those that leave first in front."""
    if isinstance(state, EvictableOrder):
        return state.idle
    if isinstance(state, RankedOrder):
        return tuple(key for _, key in state.entries)
    order: tuple[int, ...] = state
    return order


def _itf(value: Any, name: str) -> Any:
    """Return a value as the format writes it: integers in full, sets as such."""
    if isinstance(value, list):
        members = [_itf(member, "") for member in value]
        return {"#set": members} if name in ("inserted", "reused", "protected") else members
    return {"#bigint": str(value)} if isinstance(value, int) else value


def _option(is_there: bool, value: Any) -> dict[str, Any]:
    return {"tag": "Some", "value": value} if is_there else {"tag": "None", "value": {"#tup": []}}


# --- All of it -----------------------------------------------------------------------------------


def all_vectors(say: Callable[[str], None]) -> dict[str, list[Vector]]:
    """Return every vector, by clause, in the order of the registry.

    Args:
        say: told what is going on, and what cannot be made.
    """
    by_clause: dict[str, list[Vector]] = {name: [] for name in CLAUSES}
    for name, law in LAWS.items():
        if name not in NO_VECTOR and law.kind in ("call", "twin", "refinement"):
            say(name)
            by_clause[name] += clause_vectors(law.clause, lambda line: say(f"  {line}"))
    for what, source in (
        ("differences between editions", edition_differences),
        ("known bugs", bug_vectors),
        ("the reuse filter", filter_vectors),
    ):
        say(what)
        for vector in source():
            take_in(by_clause[vector["clause"]], vector)
    return {name: vectors for name, vectors in by_clause.items() if vectors}


def as_text(vectors: Sequence[Vector]) -> str:
    """Return a file: a list of vectors, a part a line, a step a line."""
    texts = []
    for vector in vectors:
        lines = []
        for name, value in vector.items():
            if name == "steps":
                steps = ",\n      ".join(json.dumps(step, ensure_ascii=False) for step in value)
                lines.append(f'"steps": [\n      {steps}\n    ]')
            elif name == "keys" and len(value) > 1:
                keys = ",\n      ".join(f'"{key}": "{code}"' for key, code in value.items())
                lines.append(f'"keys": {{\n      {keys}\n    }}')
            else:
                lines.append(f'"{name}": {json.dumps(value, ensure_ascii=False)}')
        texts.append("  {\n    " + ",\n    ".join(lines) + "\n  }")
    return "[\n" + ",\n".join(texts) + "\n]\n"


def files(say: Callable[[str], None]) -> dict[Path, str]:
    """Return every file that is made, by its path below the folder of vectors."""
    by_clause = all_vectors(say)
    made = {Path(f"{clause}.json"): as_text(vectors) for clause, vectors in by_clause.items()}
    for vector in shown_as_states(by_clause):
        name = vector["id"].translate(str.maketrans("/@#", "___"))
        made[Path("itf", f"{name}.itf.json")] = itf_text(vector)
    return made


def guide(text: str) -> str:
    """Return the guide with its list of clauses without vectors brought up to date."""
    head, _, rest = text.partition(LIST_BEGINS)
    _, _, tail = rest.partition(LIST_ENDS)
    lines = [f"- `{name}`: {reason}" for name, reason in NO_VECTOR.items()]
    return f"{head}{LIST_BEGINS}\n\n" + "\n".join(lines) + f"\n\n{LIST_ENDS}{tail}"


LIST_BEGINS = "<!-- clauses without vectors: made by tests/vectors/make.py -->"
LIST_ENDS = "<!-- end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the files, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.vectors.make", description="Make the golden vectors."
    )
    parser.add_argument("--check", action="store_true", help="compare the files, write nothing")
    options = parser.parse_args(arguments)
    tell = partial(print, file=sys.stderr, flush=True)
    wanted = files(tell)
    there = {path.relative_to(VECTORS) for path in VECTORS.rglob("*.json")}
    text = GUIDE.read_text(encoding="utf-8")
    is_dated = guide(text) != text
    if is_dated:
        print(f"differs: {GUIDE.name}")
        if not options.check:
            GUIDE.write_text(guide(text), encoding="utf-8")
    differing = [
        path
        for path in sorted(there | set(wanted))
        if path not in there
        or path not in wanted
        or (VECTORS / path).read_text(encoding="utf-8") != wanted[path]
    ]
    for path in differing:
        print(f"differs: {path}")
        if not options.check:
            (VECTORS / path).parent.mkdir(parents=True, exist_ok=True)
            if path in wanted:
                (VECTORS / path).write_text(wanted[path], encoding="utf-8")
            else:
                (VECTORS / path).unlink()
    return 1 if options.check and (differing or is_dated) else 0


if __name__ == "__main__":
    sys.exit(main())
