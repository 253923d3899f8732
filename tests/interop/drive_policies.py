"""Drive one vLLM release beside the reference; prints one line of JSON that says what was seen.

    drive_policies.py lockstep VERSION lru|arc SEED STEPS
    drive_policies.py manager  VERSION lru|arc SEED EVENTS
    drive_policies.py reset    VERSION lru|arc SEED NUMBER
    drive_policies.py types    VERSION lru|arc SEED SAMPLES

`lockstep`: the release's policy under a manager of ours, every eviction compared with the
reference; STEPS are policy calls.
`manager`: the release's own CPUOffloadingManager over its own policy, which notes every call made
on it; the calls of each event are compared with those that `protocol.perform` says.
`reset`: the same, of one request that a reset interrupts; NUMBER picks one of RESETS.
`types`: the release's status type, key functions, request order, contexts and base class.

A script of its own, since a process holds one release; `test_policies.py` runs it.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from cachelaw.conformance.contract import Breach
from cachelaw.conformance.generate import Program
from cachelaw.conformance.hosts import host_calls
from cachelaw.conformance.instance import Codec, Manner
from cachelaw.conformance.lockstep import Lockstep
from cachelaw.conformance.releases import Release, load
from cachelaw.conformance.subject import resolve
from cachelaw.conformance.trace import Event, Layout, describe
from cachelaw.reference import keys as our_keys
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import Edition, edition_named
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    Setting,
    State,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
    perform,
    start,
)
from cachelaw.specs.registry import CLAUSES

LARGEST = 64
EVENTS_A_RUN = 250
BATCHES = (LoadStarts, LoadEnds, StoreOffered, StoreSucceeds, StoreFails, Touch)


def settings(rng: random.Random, edition: Edition) -> Iterator[tuple[Setting[int], Program]]:
    """Yield settings of every capacity from 1 to 64, again and again, each with a program."""
    for turn in count():
        capacity, layout = 1 + turn % LARGEST, Layout(rng.choice((1, 2, 3)))
        setting = Setting(edition, capacity, layout.group_of, layout.position_of)
        yield setting, Program(rng, setting, rng.randint(capacity + 1, 2 * capacity + 8))


def unusual(rng: random.Random, setting: Setting[int], state: State[int], event: Event) -> Event:
    """Return `event`, or once in a while one like it of no keys, or an offer of very many."""
    if isinstance(event, StoreOffered) and rng.random() < 0.03:
        first = rng.randrange(2 * LARGEST)
        longer = replace(event, keys=tuple(range(first, first + rng.randint(1, LARGEST))))
        return longer if objection(setting, state, longer) is None else event
    if isinstance(event, BATCHES) and rng.random() < 0.02:
        return replace(event, keys=())
    return event


def trouble(setting: Setting[int], events: list[Event], **what: Any) -> dict[str, Any]:
    """Say where two sides part, with the events that led there."""
    first = "" if len(events) <= 30 else f"({len(events) - 30} more), "
    happened = first + ", ".join(describe(event) for event in events[-30:])
    groups = len({setting.group_of(key) for key in range(12)})
    return {**what, "capacity": setting.capacity, "groups": groups, "events": happened}


# --- The policy beside the reference -------------------------------------------------------------


def drive_lockstep(version: str, policy: str, rng: random.Random, steps: int) -> dict[str, Any]:
    """Compare the evictions of the release's policy with those of the reference."""
    subject = resolve(f"vllm=={version}:{policy}")
    met: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for runs, (setting, program) in enumerate(settings(rng, subject.edition)):
        if seen["steps"] >= steps and runs >= LARGEST:
            break
        manner = Manner(one_shot=rng.random() < 0.3, extra_gets=rng.random() < 0.3)
        run = Lockstep(subject, setting, policy, met, manner=manner)
        events: list[Event] = []

        def step(event: Event, run: Any = run, events: Any = events, of: Any = program) -> None:
            events.append(event)
            for answer in run.step(event):
                of.saw(answer)
                seen["evictions"] += len(answer or ())
                seen["refused"] += answer is None

        try:
            for _ in range(EVENTS_A_RUN):
                step(unusual(rng, setting, run.state, program.next(run.state)))
            for event in run.drain():
                step(event)
        except Breach as breach:
            what = {"clause": breach.clause, "expected": breach.expected, "actual": breach.actual}
            return seen_in(subject.edition, seen, trouble(setting, events, **what))
        seen["steps"] += run.steps
        seen["wrong refusals"] += len(run.witness.refusals)
    judged = {
        name
        for name, clause in CLAUSES.items()
        if clause.profile == policy and not clause.no_law and clause.holds_in(subject.edition.name)
    }
    return seen_in(subject.edition, seen, None) | {"not met": sorted(judged - met.keys())}


def seen_in(edition: Edition, seen: Counter[str], divergence: Any) -> dict[str, Any]:
    """Return what every mode reports."""
    counts = {"steps": 0, "evictions": 0, "refused": 0, "wrong refusals": 0}
    return {"edition": edition.name, **counts, **seen, "divergence": divergence}


# --- The protocol beside the manager -------------------------------------------------------------

Noted = tuple[Any, ...]
"""A call as both sides tell it: method, arguments, and the ref count that the key then had."""


class Recorder:
    """The release's policy, which notes every call that its manager makes.

    Args:
        policy: the policy.
        side: what turns keys and contexts back into names.
    """

    def __init__(self, policy: Any, side: Side) -> None:
        self.policy = policy
        self.side = side
        self.noted: list[Noted] = []
        self.answers: list[tuple[int, ...] | None] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def make(*arguments: Any) -> Any:
            shown = tuple(self.shown(argument) for argument in arguments)
            key = shown[0] if shown else None
            found = self.policy.get(arguments[0]) if isinstance(key, int) else None
            if method == "insert":
                found, shown = arguments[1], (key, *shown[2:])  # without the status object
            if method == "evict":
                found = None  # its first argument is a number, not a key
            self.noted.append((method, shown, found and found.ref_cnt))
            answer = getattr(self.policy, method)(*arguments)
            if method == "evict":
                self.answers.append(
                    None if answer is None else tuple(self.side.named(key) for key, _ in answer)
                )
            return answer

        return make

    def shown(self, argument: Any) -> Any:
        """Return an argument by the names that the protocol uses."""
        if isinstance(argument, bytes):
            return self.side.named(argument)
        if isinstance(argument, set | frozenset):
            return frozenset(self.shown(each) for each in argument)
        if isinstance(argument, list | tuple):
            return tuple(self.shown(each) for each in argument)
        if isinstance(argument, int):
            return NumberOf(argument)
        return self.side.requests.get(id(argument), "?")


class NumberOf(int):
    """A count, so that it is not taken for a key."""


class Side:
    """The release's manager over its policy, driven by events.

    Args:
        release: the release.
        policy: `lru` or `arc`.
        setting: edition, capacity, groups and positions.
        keys: the number of keys that there are.
    """

    def __init__(self, release: Release, policy: str, setting: Setting[int], keys: int) -> None:
        assert release.manager is not None
        self.release, self.setting, self.keys = release, setting, range(keys)
        self.codec = Codec(setting.group_of, fresh=True)
        self.with_context = setting.edition.has_clear  # v0.22: all methods take it
        sizes = (16,) if release.edition == "v0.19" else ()
        self.manager: Any = release.manager(*sizes, setting.capacity, policy)
        self.recorder = Recorder(self.manager._policy, self)
        self.manager._policy = self.recorder
        self.contexts: dict[str, Any] = {}
        self.requests: dict[int, str] = {}
        self.begun: set[str] = set()

    def named(self, key: bytes) -> int:
        """Return the number of a key."""
        number = self.codec.decode(key)
        assert number is not None
        return number

    def context(self, request: str, *, begins: bool = True) -> tuple[Any, ...]:
        """Return the context of a request, as the arguments that calls take for it.

        The manager is told of a request when it begins: at its first event that is recorded.
        """
        if self.release.context is None:
            return ()
        if request not in self.contexts:
            takes_name = "req_id" in inspect.signature(self.release.context).parameters
            made: Any = self.release.context(*((request,) if takes_name else ()))
            self.contexts[request] = made
            self.requests[id(made)] = request
            if hasattr(made, "set_offload_key_position"):
                for key in self.keys:
                    position = self.setting.position_of(request, key)
                    if position is not None:
                        made.set_offload_key_position(self.codec.encode(key), position)
        made = self.contexts[request]
        if begins and request not in self.begun and hasattr(self.manager, "on_new_request"):
            self.begun.add(request)
            self.manager.on_new_request(made)
        return (made,)

    def happen(self, event: Event) -> Any:
        """Let an event happen; return what the manager answers."""
        manager, encode = self.manager, self.codec.encode
        keys = [encode(key) for key in getattr(event, "keys", ())]
        self.recorder.noted, self.recorder.answers = [], []
        late = self.context("nobody") if self.with_context else ()
        match event:
            case Lookup(key):
                if self.release.edition == "v0.19":
                    return manager.lookup([encode(key)])
                return manager.lookup(encode(key), *self.context("nobody"))
            case LoadStarts(_, request, recorded):
                if not recorded and hasattr(manager, "_prepare_load"):
                    context = self.context(request, begins=False)
                    return manager._prepare_load(keys, *context, record_access=False)
                return manager.prepare_load(keys, *self.context(request))
            case LoadEnds():
                return manager.complete_load(keys, *late)
            case StoreOffered(_, request):
                return manager.prepare_store(keys, *self.context(request))
            case StoreSucceeds():
                return manager.complete_store(keys, *late)
            case StoreFails():
                return manager.complete_store(keys, *late, success=False)
            case Touch(_, request):
                return manager.touch(keys, *(self.context(request) if self.with_context else ()))
            case RequestEnds(request):
                return manager.on_request_finished(*self.context(request))
            case Reset():
                return manager.reset_cache()
        raise AssertionError(f"no manager does this: {event}")


def by_protocol(
    setting: Setting[int], state: State[int], event: Event, answers: list[Any]
) -> tuple[list[Noted], State[int]]:
    """Return the calls that the protocol says, given the policy's answers to evictions."""
    counts = {key: chunk.ref_cnt for key, chunk in state.chunks.items()}
    left, noted = iter(answers), list[Noted]()
    steps = perform(setting, state, event)
    answer: Any = None
    try:
        while True:
            method, arguments = steps.send(answer)
            answer = None
            if method == "set_ref_cnt":
                counts[arguments[0]] = arguments[1]
                continue
            if method == "insert":
                counts[arguments[0]] = -1
            key = arguments[0] if arguments and isinstance(arguments[0], int) else None
            ref_cnt = counts.get(key) if key is not None and method != "evict" else None
            noted.append((method, passed(setting.edition, method, arguments), ref_cnt))
            if method == "evict":
                answer = next(left, None)
            if method == "remove":
                del counts[arguments[0]]
    except StopIteration as end:
        return noted, end.value


def passed(edition: Edition, method: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call without what hosts of the edition do not pass."""
    if method == "insert":
        key, _, request = arguments
        return (key, request) if edition.has_request_access else (key,)
    if method == "touch" and not edition.touch_takes_context:
        return arguments[:1]
    return arguments


def compare(side: Side, state: State[int], event: Event) -> tuple[State[int], str | None]:
    """Let an event happen on both sides; return the books, and in what they differ if they do."""
    answer = side.happen(event)
    noted, after = by_protocol(side.setting, state, event, side.recorder.answers)
    if noted != side.recorder.noted:
        return after, f"the manager calls {side.recorder.noted}, the protocol {noted}"
    counts = {key: chunk.ref_cnt for key, chunk in after.chunks.items()}
    real = {key: side.recorder.policy.get(side.codec.encode(key)) for key in side.keys}
    theirs = {key: chunk.ref_cnt for key, chunk in real.items() if chunk is not None}
    if counts != theirs:
        return after, f"the manager's ref counts are {theirs}, the protocol's {counts}"
    slots = [getattr(c, "chunk_id", getattr(c, "block_id", -1)) for c in real.values() if c]
    if len(set(slots)) != len(slots) or not all(0 <= s < side.setting.capacity for s in slots):
        return after, f"the manager's slots are {slots}"
    if isinstance(event, StoreOffered):
        refused = any(key not in after.chunks for key in event.keys)
        if (answer is None) is not refused:
            return after, f"the manager answers {answer}, the protocol refuses: {refused}"
    return after, None


def drive_manager(version: str, policy: str, rng: random.Random, wanted: int) -> dict[str, Any]:
    """Compare the policy calls of the release's manager with those of the protocol."""
    release = load(version)
    edition = edition_named(release.edition or "")
    seen: Counter[str] = Counter(dict.fromkeys(host_calls(edition), 0))
    for setting, program in settings(rng, edition):
        if seen["events"] >= wanted:
            break
        side = Side(release, policy, setting, keys=3 * LARGEST)
        state: State[int] = start(setting)
        events: list[Event] = []
        while len(events) < EVENTS_A_RUN:
            event = unusual(rng, setting, state, program.next(state))
            if isinstance(event, Evict):
                continue  # a manager evicts for a store, and only then
            events.append(event)
            state, difference = compare(side, state, event)
            if difference is not None:
                return seen_in(edition, seen, trouble(setting, events, difference=difference))
            seen.update(method for method, *_ in side.recorder.noted)
            seen["steps"] += len(side.recorder.noted)
            for answer in side.recorder.answers:
                program.saw(answer)
                seen["evictions"] += len(answer or ())
                seen["refused"] += answer is None
            if isinstance(event, StoreOffered) and not side.recorder.answers:
                seen["refused unasked"] += any(key not in state.chunks for key in event.keys)
        seen["events"] += len(events)
    return seen_in(edition, seen, None)


RESETS: list[list[Event]] = [
    # It goes on with the next batch of its prefix, and ends.
    [StoreOffered((1,), "r"), Reset(), StoreOffered((2,), "r"), RequestEnds("r")],
    [Touch((1,), "r"), Reset(), Touch((1,), "r"), RequestEnds("r")],
    [StoreOffered((1,), "r"), Reset(), RequestEnds("r")],
    [StoreOffered((1,), "r"), RequestEnds("r"), Reset()],
    [StoreOffered((1,), "s"), Reset(), StoreOffered((1,), "r"), RequestEnds("r")],
]


def drive_reset(version: str, policy: str, rng: random.Random, number: int) -> dict[str, Any]:
    """Let a reset come between a request and its end: does the policy hear of the end?

    An event that the protocol objects to must take no call.
    """
    release = load(version)
    edition = edition_named(release.edition or "")
    setting: Setting[int] = Setting(edition, 4)
    side, state = Side(release, policy, setting, keys=8), start(setting)
    seen: Counter[str] = Counter()
    for at, event in enumerate(RESETS[number]):
        difference: str | None = None
        reason = objection(setting, state, event)
        if reason is None:
            state, difference = compare(side, state, event)
        else:
            side.happen(event)
            if side.recorder.noted:
                difference = f"the manager calls {side.recorder.noted}; the protocol: {reason}"
        seen["steps"] += len(side.recorder.noted)
        if difference is not None:
            what = trouble(setting, RESETS[number][: at + 1], difference=difference)
            return seen_in(edition, seen, what)
    return seen_in(edition, seen, None)


# --- Types and functions -------------------------------------------------------------------------


def drive_types(version: str, policy: str, rng: random.Random, samples: int) -> dict[str, Any]:
    """Compare the types and functions of the release with ours; a difference raises."""
    release = load(version)
    edition = edition_named(release.edition or "")
    ours = importlib.import_module(edition.module)
    seen: Counter[str] = Counter()
    check_status(release.status, ours.ChunkStatus, rng, samples, seen)
    check_base(release.base, ours.CachePolicy, edition, seen)
    if release.edition != "v0.19":
        check_keys(release, rng, samples, seen)
    if edition.has_request_hooks:
        check_order(release, rng, samples, seen)
        check_context(release, rng, samples, seen)
    return seen_in(edition, seen, None)


def check_status(theirs: Any, ours: Any, rng: random.Random, samples: int, seen: Any) -> None:
    """chunk-status/layout, starts-pending and ready-when-not-negative."""
    assert theirs.__name__ == ours.__name__
    assert list(theirs._fields_) == list(ours._fields_)
    assert ctypes.sizeof(theirs) == ctypes.sizeof(ours)
    for _ in range(samples):
        slot, ref_cnt = rng.randrange(2**40), rng.choice((-1, 0, 1, rng.randrange(-9, 2**31)))
        pair = theirs(slot), ours(slot)
        assert bytes(pair[0]) == bytes(pair[1])
        assert pair[0].is_ready is pair[1].is_ready is False
        for status in pair:
            status.ref_cnt = ref_cnt
        assert bytes(pair[0]) == bytes(pair[1])
        assert pair[0].is_ready is pair[1].is_ready
        seen["statuses"] += 1


def check_base(theirs: Any, ours: Any, edition: Edition, seen: Any) -> None:
    """What is abstract, how it is called, and what the hooks do by default."""
    assert theirs.__abstractmethods__ == ours.__abstractmethods__
    for method, number in host_calls(edition).items():
        signatures = [inspect.signature(getattr(base, method)) for base in (theirs, ours)]
        assert [len(signature.parameters) for signature in signatures] == [number + 1] * 2, method
    assert {name for name in vars(theirs) if not name.startswith("_")} == set(host_calls(edition))
    for base in (theirs, ours):
        told = hooks(base, edition)
        if edition.has_marks:
            assert told["marks"] == []
        if edition.has_request_hooks:
            assert told["on_store_miss"] == [([1, 2], "context")]
            assert told["on_request_finished"] == [([1, 2], "context"), ([3], "context")]
        if edition.has_request_access:
            assert told["on_request_access"] == []
        seen["hooks"] += len(told)


def hooks(base: Any, edition: Edition) -> dict[str, list[Any]]:
    """Return the touches that each default hook of a base class causes."""
    touches: list[Any] = []
    body: dict[str, Any] = {name: lambda self, *rest: None for name in base.__abstractmethods__}
    body["touch"] = lambda self, keys, *rest: touches.append((list(keys), *rest))
    policy = type("Mine", (base,), body)(2)
    calls: dict[str, Callable[[], Any]] = {
        "marks": lambda: (policy.mark_evictable(1), policy.mark_non_evictable(1)),
        "on_store_miss": lambda: policy.on_store_miss([1, 2], "context"),
        "on_request_finished": lambda: policy.on_request_finished(
            ([1, 2], [3]), {1}, {2, 3}, "context"
        ),
        "on_request_access": lambda: policy.on_request_access([1, 2], "context"),
    }
    found: dict[str, list[Any]] = {}
    for name, call in calls.items():
        if not hasattr(policy, "mark_evictable" if name == "marks" else name):
            continue
        touches.clear()
        assert call() in (None, (None, None))
        found[name] = list(touches)
    return found


def check_keys(release: Release, rng: random.Random, samples: int, seen: Any) -> None:
    """The key functions; what one side packs the other unpacks."""
    assert release.context is not None
    theirs: Any = sys.modules[release.context.__module__]
    for _ in range(samples):
        block_hash = rng.randbytes(rng.choice((0, 1, 4, 32)))
        group = rng.choice((0, 1, 255, 256, 2**32 - 1, rng.randrange(2**32)))
        key = our_keys.make_offload_key(block_hash, group)
        assert theirs.make_offload_key(block_hash, group) == key
        assert theirs.get_offload_block_hash(key) == our_keys.get_offload_block_hash(key)
        assert theirs.get_offload_group_idx(key) == our_keys.get_offload_group_idx(key)
        seen["keys"] += 1


def check_order(release: Release, rng: random.Random, samples: int, seen: Any) -> None:
    """`order_request_keys`, over known, unknown and equal positions and doubled keys."""
    assert release.base is not None and release.context is not None
    theirs: Any = sys.modules[release.base.__module__]
    for _ in range(samples):
        keys: list[Any] = [bytes([number]) for number in range(rng.randint(1, 9))]
        groups = [rng.sample(keys, rng.randint(0, len(keys))) for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.6:  # as a manager passes them: each key once
            places = [rng.randrange(3) for _ in keys]
            groups = [[k for k, at in zip(keys, places, strict=True) if at == g] for g in range(3)]
            for group in groups:
                rng.shuffle(group)
        contexts = release.context("r"), ReqContext("r")
        unknown = rng.choice((0.0, 0.0, 0.2, 1.0))
        for key in keys:
            if rng.random() >= unknown:
                position = rng.randrange(8)
                for context in contexts:
                    context.set_offload_key_position(key, position)
        found = theirs.order_request_keys(groups, contexts[0])
        assert found == order_request_keys(groups, contexts[1])
        # Either side's context will do.
        assert found == order_request_keys(groups, contexts[0])
        assert found == theirs.order_request_keys(groups, contexts[1])
        seen["orders"] += 1
        seen["reordered"] += found != [key for group in groups for key in group]


def check_context(release: Release, rng: random.Random, samples: int, seen: Any) -> None:
    """What a policy may ask a context for."""
    assert release.context is not None
    kinds: tuple[type[Any], ...] = (int, str, list, tuple)
    for _ in range(samples // 10):
        pair: list[Any] = [release.context("r"), ReqContext("r")]
        for _ in range(10):
            key, value = rng.randbytes(1), rng.choice(kinds)()
            position = rng.choice((None, rng.randrange(100)))
            for context in pair:
                assert context.req_id == "r"
                context.set_state(value)
                if position is not None:
                    context.set_offload_key_position(key, position)
            for kind in (*kinds, dict):
                assert pair[0].get_state(kind) is pair[1].get_state(kind)
            assert pair[0].get_offload_key_position(key) == pair[1].get_offload_key_position(key)
            seen["contexts"] += 1


MODES = {
    "lockstep": drive_lockstep,
    "manager": drive_manager,
    "reset": drive_reset,
    "types": drive_types,
}


def main(mode: str, version: str, policy: str, seed: str, amount: str) -> None:
    """Run as the command line says and print what was seen."""
    found = MODES[mode](version, policy, random.Random(int(seed)), int(amount))
    print(json.dumps({"release": version, "policy": policy, "seed": int(seed), **found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
