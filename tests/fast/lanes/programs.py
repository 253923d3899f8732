"""A differential fuzzer: random protocol programs, a lane each, against the reference.

The reference performs a program and every call on it is written down, with its answer. Then all
programs run at once, each in a lane of its own and in one launch of the kernel. Not one answer may
differ, and at the end each lane must hold the reference's lists, in their order, and its target.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cachelaw.conformance.generate import Program
from cachelaw.conformance.trace import Layout
from cachelaw.fast import lane_kernels as core
from cachelaw.fast.cuda import require_device, to_device, to_host, zeros
from cachelaw.fast.lanes import RULES, LaneSpec, State, plan_of
from cachelaw.reference import arc, lru
from cachelaw.reference.cores import World, core_of
from cachelaw.reference.editions import edition_named
from cachelaw.reference.protocol import Call, Setting, perform, start

CAPACITIES = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64)
MOST_KEYS = 160


@dataclass
class Recorded:
    """One program as the reference performed it.

    Attributes:
        spec: the lane.
        seed: what the program was made from.
        code: its calls, encoded for the kernel.
        answers: what the kernel must answer.
        lists: the lists at the end, each oldest first: T1, T2, B1, B2.
        target: ARC's target at the end.
        evictions: how many chunks were evicted.
    """

    spec: LaneSpec
    seed: int
    code: list[int] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    lists: tuple[tuple[int, ...], ...] = ()
    target: float = 0.0
    evictions: int = 0


def record(seed: int, spec: LaneSpec, events: int) -> Recorded:
    """Perform a random program on the reference."""
    made = Recorded(spec, seed)
    rng = random.Random(seed)
    edition = edition_named(spec.edition)
    layout = Layout(rng.choice((1, 1, 2, 3)))
    setting: Setting[int] = Setting(edition, spec.capacity, layout.group_of, layout.position_of)
    keys = min(MOST_KEYS, spec.capacity + rng.choice((1, 2, spec.capacity, 2 * spec.capacity)))
    program = Program(rng, setting, keys)
    books, policy = start(setting), core_of(spec.policy, edition).start(spec.capacity)
    apply = core_of(spec.policy, edition).apply
    memories: dict[str, Any] = {}
    for _ in range(events):
        event = program.next(books)
        ref_cnt = {key: chunk.ref_cnt for key, chunk in books.chunks.items()}
        request = getattr(event, "request", "u")
        steps = perform(setting, books, event)
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as end:
                books = end.value
                break
            answer = None
            if call.method == "set_ref_cnt":
                ref_cnt[call.arguments[0]] = call.arguments[1]
                continue
            if call.method == "insert":
                ref_cnt[call.arguments[0]] = -1
            memory = memories.get(request)
            world = World(ref_cnt.__getitem__, layout.position_of, memory)
            before = policy
            policy, answer, memories[request] = apply(policy, call, world)
            position = [(key, layout.position_of(request, key)) for key in keys_of(call)]
            encode(made, call, position, memory, memories[request])
            if call.method == "evict":
                expect_eviction(made, before, policy, answer)
                program.saw(answer)
    made.lists, made.target = lists_of(policy, books.chunks.keys())
    return made


def keys_of(call: Call) -> tuple[int, ...]:
    """Return the keys that a call names, in an order that the kernel can take."""
    match call.method:
        case "evict":
            return tuple(sorted(call.arguments[1]))
        case "on_request_finished":
            return tuple(key for group in call.arguments[0] for key in group)
        case "clear":
            return ()
        case "touch" | "on_store_miss" | "on_request_access":
            keys: tuple[int, ...] = call.arguments[0]
            return keys
    return (call.arguments[0],)


def encode(
    made: Recorded,
    call: Call,
    position: list[tuple[int, int | None]],
    memory: lru.RequestRank | None,
    after: lru.RequestRank | None,
) -> None:
    """Write a call down, and what it answers unless it is an eviction."""
    generation = 0 if memory is None else memory.generation + 1  # lanes are cleared once at first
    remembered = (0 if memory is None else memory.serial, generation)
    pairs = [(key, -1 if at is None else at) for key, at in position]
    head: tuple[int, ...]
    match call.method:
        case "get":
            return
        case "insert":
            head = (core.INSERT, core.PENDING, *remembered)
            known = position[0][1] is not None and made.spec.rule == core.LRU_RANKED
            made.answers.append(after.serial if known and after else remembered[0])
        case "on_request_access":
            if made.spec.rule != core.LRU_RANKED:
                return
            head = (core.ACCESS, *remembered, 0)
            assert after is not None
            made.answers.append(after.serial)
        case "on_request_finished":
            _, inserted, reused, _ = call.arguments
            head = (core.FINISH, 0, 0, 0)
            if all(at is not None for _, at in position):
                pairs = sorted(pairs, key=lambda pair: pair[1])
            pairs = [
                (key, core.STORED * (key in inserted) | core.FOUND * (key in reused))
                for key, _ in pairs
            ]
        case "evict":
            head = (core.EVICT, call.arguments[0], 0, 0)
        case "mark_evictable" | "mark_non_evictable":
            head = (core.MARK, core.IDLE if call.method == "mark_evictable" else core.PINNED, 0, 0)
        case _:
            operations = {
                "remove": core.REMOVE,
                "touch": core.TOUCH,
                "on_store_miss": core.STORE_MISS,
                "clear": core.CLEAR,
            }
            head = (operations[call.method], 0, 0, 0)
    made.code += [*head, len(pairs), *(number for pair in pairs for number in pair)]


def expect_eviction(
    made: Recorded, before: Any, after: Any, victims: tuple[int, ...] | None
) -> None:
    """Write down what the kernel must answer to an eviction."""
    if victims is None:
        made.answers.append(-1)
        return
    made.evictions += len(victims)
    forgotten: list[int] = []
    if isinstance(before, arc.ArcState) and victims:
        for old, kept, residents in (
            (before.b1, after.b1, before.t1),
            (before.b2, after.b2, before.t2),
        ):
            grown = (*old, *(key for key in residents if key in victims))
            forgotten += [key for key in grown if key not in kept]
    made.answers += [len(forgotten), *victims, *forgotten]


def lists_of(policy: Any, residents: Any) -> tuple[tuple[tuple[int, ...], ...], float]:
    """Return the lists of a state of the reference, and the target."""
    if isinstance(policy, arc.ArcState):
        return (policy.t1, policy.t2, policy.b1, policy.b2), policy.target
    if isinstance(policy, lru.EvictableOrder):
        return (policy.idle, (), (), ()), 0.0
    if isinstance(policy, lru.RankedOrder):
        return (tuple(key for _, key in policy.entries), (), (), ()), 0.0
    return (policy, (), (), ()), 0.0


def random_specs(seed: int, count: int) -> list[LaneSpec]:
    """Return lanes of all policies and editions, small capacities more often than large ones."""
    rng = random.Random(seed)
    rules = list(RULES)
    return [
        LaneSpec(rules[i % len(rules)][0], rng.choice(CAPACITIES), rules[i % len(rules)][1])
        for i in range(count)
    ]


def differing(recorded: list[Recorded], device: str) -> list[str]:
    """Run recorded programs on lanes of a device, and say of each that differs where it does."""
    require_device(device)
    state = State(len(recorded), MOST_KEYS, ranked=True, device=device)
    plan = plan_of([one.spec for one in recorded], [0] * len(recorded), device)
    ends = np.cumsum([0, *(len(one.code) for one in recorded)], dtype=np.int64)
    code = np.array([number for one in recorded for number in one.code], dtype=np.int64)
    longest = 1 + max(len(one.answers) for one in recorded) + MOST_KEYS
    cpu = device == "cpu"
    shape = (len(recorded), longest) if cpu else (longest, len(recorded))
    answers = zeros(shape, "int64", device)
    given = (state.arrays, plan, to_device(code, device), to_device(ends, device), answers)
    if cpu:
        core.perform_rows(0, len(recorded), *given)
    else:
        from cachelaw.fast.cuda_kernels import THREADS, perform_lanes

        perform_lanes[-(-len(recorded) // THREADS), min(len(recorded), THREADS)](*given)
    answered = to_host(answers, device)
    answered = answered if cpu else answered.T
    found: list[str] = []
    for i, one in enumerate(recorded):
        got = answered[i, : len(one.answers)].tolist()
        lists = tuple(tuple(state.order(i, which)) for which in range(core.T1, core.B2 + 1))
        target = float(state.targets[i])
        if got != one.answers:
            found.append(f"{one.spec}, seed {one.seed}: answered {got}, not {one.answers}")
        elif (lists, target) != (one.lists, one.target):
            found.append(
                f"{one.spec}, seed {one.seed}: holds {lists} {target}, not {one.lists} {one.target}"
            )
    return found


def fuzz(seed: int, lanes: int, events: int, device: str = "cpu") -> tuple[int, list[str]]:
    """Run random programs on lanes and on the reference.

    Args:
        seed: what all programs are made from.
        lanes: how many programs.
        events: events in each.
        device: where the lanes are.

    Returns:
        How many chunks were evicted in all, and what differs: one line for each lane that does.
    """
    recorded = [
        record(seed * 1_000_003 + i, spec, events)
        for i, spec in enumerate(random_specs(seed, lanes))
    ]
    return sum(one.evictions for one in recorded), differing(recorded, device)
