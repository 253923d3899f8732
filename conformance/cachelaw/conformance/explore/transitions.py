"""What holds of every step of a policy, and which clause says so.

The rules are those of the specs, restated over the state before, the call, the answer and the
state after. They cost more than the steps themselves, so they are asked at smaller scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

from cachelaw.conformance.explore.calls import ABSENT, Calls, State
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import Core, World
from cachelaw.reference.lru import EvictableOrder, RankedOrder
from cachelaw.reference.protocol import Call
from cachelaw.specs.registry import CLAUSES

Rule = Callable[[Calls, State, Call, Any, State], Iterator[str]]
"""Yields the clauses that a step breaks."""

NEVER_REFUSES = "evict/none-only-when-short"
OLD_REFUSAL = "arc/no-fallback-to-t1"


def step_check(
    machine: Calls, *, excused: frozenset[str] = frozenset()
) -> Callable[[State, Call, Any, State], str | None]:
    """Return the check that names the first clause which a step of `machine` breaks.

    Args:
        machine: whose steps are judged.
        excused: clauses that may be broken; see `known_faults`.
    """
    rules = RULES["all"] + RULES[machine.core.profile]

    def check(before: State, call: Call, answer: Any, after: State) -> str | None:
        for rule in rules:
            for clause in rule(machine, before, call, answer, after):
                if clause not in excused:
                    return clause
        return None

    return check


def known_faults(core: Core) -> frozenset[str]:
    """Return the clauses that an edition is known to break: the refusals of ARC up to v0.27."""
    old = core.profile == "arc" and CLAUSES[OLD_REFUSAL].holds_in(core.edition.name)
    return frozenset({NEVER_REFUSES}) if old else frozenset()


def order_of(core: Any) -> tuple[int, ...]:
    """Return the keys that may be asked to leave, as the policy keeps them, oldest first.

    Of ARC, T1 and then T2.
    """
    match core:
        case ArcState():
            return (*core.t1, *core.t2)
        case EvictableOrder():
            return core.idle
        case RankedOrder():
            return tuple(key for _, key in core.entries)
    order: tuple[int, ...] = core
    return order


def _residents(core: Any) -> frozenset[int]:
    return core.resident if isinstance(core, EvictableOrder) else frozenset(order_of(core))


def _may_leave(order: tuple[int, ...], refs: tuple[int, ...], protected: Any) -> list[int]:
    return [key for key in order if refs[key] == 0 and key not in protected]


# --- Every policy --------------------------------------------------------------------------------


def _evict(machine: Calls, before: State, call: Call, answer: Any, after: State) -> Iterator[str]:
    if call.method != "evict":
        return
    n, protected = call.arguments
    core, refs, _ = before
    idle = [key for key, ref in enumerate(refs) if ref == 0 and key not in protected]
    if answer is None:
        if n <= len(idle):
            yield NEVER_REFUSES
        if after != before:
            yield "evict/none-changes-nothing"
        return
    if len(answer) != n:
        yield "evict/exact-count"
    if len(set(answer)) != len(answer):
        yield "evict/distinct"
    if any(refs[key] == ABSENT for key in answer):
        yield "evict/resident-only"
    if any(refs[key] != 0 for key in answer):
        yield "evict/idle-only"
    if not protected.isdisjoint(answer):
        yield "evict/protected-honoured"
    if n == 0 and after != before:
        yield "evict/zero-is-empty"
    left = _residents(after[0])
    if not left.isdisjoint(answer):
        yield "evict/forgets-victims"
    if left | set(answer) != _residents(core):
        yield "evict/keeps-others"


def _clear(machine: Calls, before: State, call: Call, answer: Any, after: State) -> Iterator[str]:
    if call.method == "clear":
        if _residents(after[0]):
            yield "clear/forgets-all"
        if after != machine.start:
            yield "clear/equals-new"


def _residency(
    machine: Calls, before: State, call: Call, answer: Any, after: State
) -> Iterator[str]:
    was, now = _residents(before[0]), _residents(after[0])
    match call.method:
        case "touch" | "on_store_miss" | "on_request_access" | "on_request_finished":
            if was != now:
                yield "touch/keeps-residency"
        case "completes" | "pin" | "unpin":
            if was != now:
                yield "marks/keep-residency"
        case "insert":
            if now != was | {call.arguments[0]}:
                yield "insert/makes-resident"
        case "fails":
            if now != was - {call.arguments[0]}:
                yield "remove/forgets"


def _absent(machine: Calls, before: State, call: Call, answer: Any, after: State) -> Iterator[str]:
    if call.method not in ("touch", "on_store_miss"):
        return
    core, refs, _ = before
    known = {*core.b1, *core.b2} if isinstance(core, ArcState) else set()
    if all(refs[key] == ABSENT and key not in known for key in call.arguments[0]) and (
        after != before
    ):
        yield "touch/absent-ignored"


def _batches(machine: Calls, before: State, call: Call, answer: Any, after: State) -> Iterator[str]:
    """A batch is its keys one by one, the tail first; asked for batches of any length.

    Asked at one call of each state, since the batches are made here.
    """
    if call.method != "touch" or call.arguments[0]:
        return
    core, refs, _ = before
    profile, edition = machine.core.profile, machine.core.edition
    world = World(refs.__getitem__)
    clauses = {"touch": f"{profile}/batch-tail-first"}
    if edition.has_request_hooks:
        clauses["on_request_finished"] = f"{profile}/finish-in-prefix-order"
        clauses["on_store_miss"] = "arc/miss-adapts" if profile == "arc" else "touch/absent-ignored"
    keys = range(machine.scope.keys)
    for method, clause in clauses.items():
        for length in range(2, machine.scope.keys + 1):
            for batch in permutations(keys, length):
                if method == "on_store_miss" and any(refs[key] != ABSENT for key in batch):
                    continue
                together = machine.core.apply(core, _use(method, batch), world).state
                one_by_one = core
                for key in reversed(batch):
                    one_by_one = machine.core.apply(one_by_one, _use(method, (key,)), world).state
                if together != one_by_one:
                    yield clause


def _use(method: str, keys: tuple[int, ...]) -> Call:
    """Make a use of `keys`; at a request's end each third is reused, only stored, merely seen."""
    if method != "on_request_finished":
        return Call(method, (keys, "u0"))
    kinds = [frozenset(key for key in keys if key % 3 == kind) for kind in (0, 1)]
    return Call(method, ((keys,), kinds[1], kinds[0], "u0"))


# --- LRU -----------------------------------------------------------------------------------------


def _lru_leaving(
    machine: Calls, before: State, call: Call, answer: Any, after: State
) -> Iterator[str]:
    if call.method != "evict" or answer is None:
        return
    n, protected = call.arguments
    order = order_of(before[0])
    if list(answer) != _may_leave(order, before[1], protected)[:n]:
        yield "lru/oldest-leaves-first"
    if order_of(after[0]) != tuple(key for key in order if key not in answer):
        yield "lru/passed-over-keeps-place"


def _lru_uses(
    machine: Calls, before: State, call: Call, answer: Any, after: State
) -> Iterator[str]:
    core, refs, _ = before
    was, now = order_of(core), order_of(after[0])
    only_idle = isinstance(core, EvictableOrder)
    match call.method:
        case "insert":
            key, _, request = call.arguments
            position = machine.position_of(request, key)
            ranked = isinstance(core, RankedOrder) and position is not None
            if not only_idle and not ranked and now != (*was, key):
                yield "lru/insert-is-use"
            if ranked and tuple(other for other in now if other != key) != was:
                yield "lru/batches-share-a-rank"
        case "fails":
            if now != tuple(key for key in was if key != call.arguments[0]):
                yield "remove/forgets"
        case "touch" if len(call.arguments[0]) == 1:
            (key,) = call.arguments[0]
            others = tuple(other for other in was if other != key)
            if refs[key] == 0 and now != (*others, key):
                yield "lru/touch-is-use"
            if refs[key] not in (ABSENT, 0):
                if only_idle and now != was:
                    yield "lru/touch-of-busy-lost"
                if not only_idle and now != (*others, key):
                    yield "lru/touch-of-busy-counts"
        case "completes" | "unpin" | "pin":
            key = call.arguments[0]
            others = tuple(other for other in was if other != key)
            if not only_idle and now != was:
                yield "lru/transfer-is-no-use"
            if only_idle and now != ((*others, key) if after[1][key] == 0 else others):
                yield "lru/becoming-idle-is-use"


def _lru_access(
    machine: Calls, before: State, call: Call, answer: Any, after: State
) -> Iterator[str]:
    if call.method != "on_request_access":
        return
    keys, request = call.arguments
    was, now = order_of(before[0]), order_of(after[0])
    joining = [key for key in keys if machine.position_of(request, key) is not None]
    if [key for key in now if key not in joining] != [key for key in was if key not in joining]:
        yield "lru/access-needs-position"
    for key in joining:
        if key not in was or key not in now:
            continue
        # Whoever was older before and did not join itself is still older.
        older = set(was[: was.index(key)]) - set(joining)
        if not older <= set(now[: now.index(key)]):
            yield "lru/access-never-demotes"


# --- ARC -----------------------------------------------------------------------------------------


def _arc_leaving(
    machine: Calls, before: State, call: Call, answer: Any, after: State
) -> Iterator[str]:
    if call.method != "evict" or not answer:
        return
    protected = call.arguments[1]
    core, refs, _ = before
    t1, t2 = (_may_leave(order, refs, protected) for order in (core.t1, core.t2))
    size, allowance = len(core.t1), int(core.target)
    for key in answer:
        if key not in (*t1[:1], *t2[:1]):
            yield "arc/oldest-of-its-list-first"
            return
        if t1 and t2 and size >= allowance and key not in t1:
            yield "arc/t1-gives-at-target"
        if t1 and t2 and size < allowance and key not in t2:
            yield "arc/t2-gives-below-target"
        if not t2 and size < allowance and known_faults(machine.core):
            yield OLD_REFUSAL
        if key in t1:
            t1, size = t1[1:], size - 1
        else:
            t2 = t2[1:]
    gone1 = tuple(key for key in answer if key in core.t1)
    gone2 = tuple(key for key in answer if key in core.t2)
    now = after[0]
    for ghosts, kept in (((*core.b1, *gone1), now.b1), ((*core.b2, *gone2), now.b2)):
        too_many = len(ghosts) - core.capacity
        if kept != ghosts[max(0, too_many) :]:
            trimmed = "arc/ghosts-trimmed-to-capacity"
            yield trimmed if too_many > 0 else "arc/victim-becomes-ghost"


def _arc_moves(
    machine: Calls, before: State, call: Call, answer: Any, after: State
) -> Iterator[str]:
    core, refs, _ = before
    now = after[0]
    match call.method:
        case "insert":
            key = call.arguments[0]
            if now.t1 != (*core.t1, key) or now.t2 != core.t2:
                yield "arc/insert-into-t1"
            if key in now.b1 or key in now.b2:
                yield "arc/insert-takes-ghost"
        case "fails":
            key = call.arguments[0]
            if key in now.b1 or key in now.b2:
                yield "arc/remove-leaves-no-ghost"
        case "touch" | "on_store_miss" if len(call.arguments[0]) == 1:
            yield from _arc_single(call, core, refs, now)
        case "on_request_finished" if len(call.arguments[0][0]) == 1:
            yield from _arc_end(call, core, now)
        case "clear":
            if now.b1 or now.b2 or now.target:
                yield "arc/clear-forgets-all"
    if call.method in ("evict", "insert", "fails", "on_request_finished") and (
        now.target != core.target
    ):
        yield "arc/step-is-ratio-of-ghosts"


def _arc_single(
    call: Call, core: ArcState[int], refs: tuple[int, ...], now: ArcState[int]
) -> Iterator[str]:
    (key,) = call.arguments[0]
    if key in core.t1:
        if refs[key] < 0 and (now.t1[-1:] != (key,) or key in now.t2):
            yield "arc/pending-stays-in-t1"
        if refs[key] >= 0 and (key in now.t1 or now.t2[-1:] != (key,)):
            yield "arc/second-use-promotes"
    elif key in core.t2:
        if now.t2[-1:] != (key,) or now.t1 != core.t1:
            yield "arc/use-renews-t2"
    elif key in core.b1 or key in core.b2:
        mine, other = (core.b1, core.b2) if key in core.b1 else (core.b2, core.b1)
        renewed = now.b1 if key in core.b1 else now.b2
        if renewed[-1:] != (key,) or len(renewed) != len(mine):
            yield "arc/ghost-hit-renews"
        step = max(1.0, len(other) / len(mine))
        if key in core.b1 and now.target != min(core.capacity, core.target + step):
            yield "arc/b1-hit-raises-target"
        if key in core.b2 and now.target != max(0.0, core.target - step):
            yield "arc/b2-hit-lowers-target"
    elif now.target != core.target:
        yield "arc/touch-adapts" if call.method == "touch" else "arc/miss-adapts"


def _arc_end(call: Call, core: ArcState[int], now: ArcState[int]) -> Iterator[str]:
    groups, inserted, reused, _ = call.arguments
    key = groups[0][0]
    clause, t1, t2 = "arc/merely-seen-stays", core.t1, core.t2
    if key in (*t1, *t2) and key in inserted:
        clause = "arc/store-is-not-reuse"
        t1, t2 = (_to_the_end(keys, key) if key in keys else keys for keys in (t1, t2))
    elif key in (*t1, *t2) and key in reused:
        clause = "arc/reuse-promotes" if key in t1 else "arc/use-renews-t2"
        t1, t2 = tuple(other for other in t1 if other != key), _to_the_end(t2, key)
    if (now.t1, now.t2, now.b1, now.b2) != (t1, t2, core.b1, core.b2):
        yield clause


def _to_the_end(keys: tuple[int, ...], key: int) -> tuple[int, ...]:
    return (*(other for other in keys if other != key), key)


RULES: dict[str, tuple[Rule, ...]] = {
    "all": (_evict, _clear, _residency, _absent, _batches),
    "lru": (_lru_leaving, _lru_uses, _lru_access),
    "arc": (_arc_leaving, _arc_moves),
}
"""Rules of every policy, and of each by name."""
