"""The oracle: the reference, stepped beside a subject that claims a policy by name.

Under the profiles `lru` and `arc` every answer is determined. The oracle makes the same calls as
the subject, and before each one it says which clauses the call puts to the test: only what it has
been put to can be said to hold. The conditions are read off the reference's state.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.reference import arc
from cachelaw.reference.editions import Edition
from cachelaw.reference.lru import EvictableOrder, RankedOrder, RequestRank, rank_of
from cachelaw.reference.order import by_position
from cachelaw.reference.protocol import Call, Setting
from cachelaw.reference.recency import eligible


class Oracle:
    """The reference of one edition, with what each call tests.

    Args:
        profile: `lru` or `arc`.
        setting: edition, capacity, groups and positions.
    """

    def __init__(self, profile: str, setting: Setting[int]) -> None:
        self._conditions: Callable[[Oracle, Call], Iterator[str]] = CONDITIONS[profile]
        module = importlib.import_module(setting.edition.module)
        self.policy_class: Callable[[int], Any] = getattr(module, profile.upper())
        self.instance = Instance(self.policy_class, setting, module.ChunkStatus, PlainCodec())

    @property
    def edition(self) -> Edition:
        """Whose reference it is."""
        return self.instance.setting.edition

    @property
    def policy(self) -> Any:
        """The reference policy, with its state."""
        return self.instance.policy

    def met(self, call: Call) -> Iterator[str]:
        """Yield the clauses whose condition `call`, about to be made, meets."""
        return self._conditions(self, call)

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        """Make one call; return the victims of an `evict`, None if it refused or for others."""
        answer = self.instance.carry_out(call)
        if call.method != "evict" or answer is None:
            return None
        victims = tuple(key for key, _ in answer)
        for key in victims:
            del self.instance.chunks[key]
        return victims

    def ref_cnt(self, key: int) -> int:
        """Return the ref count of a resident."""
        count: int = self.instance.chunks[key].ref_cnt
        return count

    def in_request_order(self, groups: tuple[tuple[int, ...], ...], request: str) -> list[int]:
        """Return the keys of all groups in the order in which a request's end uses them."""
        position_of = self.instance.setting.position_of
        keys = [key for group in groups for key in group]
        return by_position(keys, lambda key: position_of(request, key))


# --- LRU -----------------------------------------------------------------------------------------


def _lru_order(state: Any) -> tuple[int, ...]:
    """Return the keys that have a place in LRU's order, oldest first."""
    if isinstance(state, EvictableOrder):
        return state.idle
    if isinstance(state, RankedOrder):
        return tuple(key for _, key in state.entries)
    order: tuple[int, ...] = state
    return order


def _lru_conditions(oracle: Oracle, call: Call) -> Iterator[str]:
    state = oracle.policy.state
    order = _lru_order(state)
    only_idle = isinstance(state, EvictableOrder)
    method, arguments = call
    match method:
        case "insert":
            key, _, request = arguments
            if isinstance(state, RankedOrder):
                yield from _rank_conditions(oracle, (key,), request, inserting=True)
            elif order and not only_idle:
                yield "lru/insert-is-use"
        case "touch":
            keys = arguments[0]
            placed = [key for key in keys if key in order]
            busy = [key for key in keys if key in oracle.instance.chunks and oracle.ref_cnt(key)]
            if any(key != order[-1] and key not in busy for key in placed):
                yield "lru/touch-is-use"
            if len(placed) > 1:
                yield "lru/batch-tail-first"
            if busy:
                yield "lru/touch-of-busy-lost" if only_idle else "lru/touch-of-busy-counts"
        case "set_ref_cnt":
            if not only_idle and len(order) > 1 and order[-1] != arguments[0]:
                yield "lru/transfer-is-no-use"
        case "mark_evictable":
            if only_idle and order:
                yield "lru/becoming-idle-is-use"
        case "on_request_access":
            yield from _rank_conditions(oracle, *arguments, inserting=False)
        case "on_request_finished":
            groups, _, _, request = arguments
            placed = [key for group in groups for key in group if key in order]
            if any(key != order[-1] for key in placed):
                yield "lru/finish-is-use"
            ordered = oracle.in_request_order(groups, request)
            if placed != [key for key in ordered if key in order]:
                yield "lru/finish-in-prefix-order"
        case "evict":
            n, protected = arguments
            free = [k for k in order if oracle.ref_cnt(k) == 0 and k not in protected]
            if not 0 < n <= len(free):
                return
            if len(free) > 1:
                yield "lru/oldest-leaves-first"
            older = order[: order.index(free[n - 1])]
            if len(older) >= n:
                yield "lru/passed-over-keeps-place"
            if isinstance(state, RankedOrder):
                ranks = [rank_of(state, key) for key in free]
                if any(ranks[i] == ranks[i + 1] for i in range(min(n, len(free) - 1))):
                    yield "lru/equal-rank-by-key-order"


def _rank_conditions(
    oracle: Oracle, keys: tuple[int, ...], request: str, *, inserting: bool
) -> Iterator[str]:
    state: RankedOrder[int] = oracle.policy.state
    memory: RequestRank | None = oracle.policy.recall(oracle.instance.context(request))
    if memory is not None and memory.generation != state.generation:
        yield "lru/clear-voids-request-ranks"
        memory = None
    serial = state.serial + 1 if memory is None else memory.serial
    for key in keys:
        position = oracle.instance.setting.position_of(request, key)
        rank = rank_of(state, key)
        if inserting and position is None and state.entries:
            yield "lru/insert-is-use"
        if inserting and position is not None:
            if any(other[0] == serial for other, _ in state.entries):
                yield "lru/batches-share-a-rank"
        elif rank is not None and position is None:
            yield "lru/access-needs-position"
        elif rank is not None and position is not None:
            joins = rank < (serial, -position)
            yield "lru/access-joins-rank" if joins else "lru/access-never-demotes"


# --- ARC -----------------------------------------------------------------------------------------


def _arc_conditions(oracle: Oracle, call: Call) -> Iterator[str]:
    state: arc.ArcState[int] = oracle.policy.state
    method, arguments = call
    match method:
        case "insert":
            if arguments[0] in state.b1 or arguments[0] in state.b2:
                yield "arc/insert-into-t1"
                yield "arc/insert-takes-ghost"
        case "remove":
            yield "arc/remove-leaves-no-ghost"
        case "touch" | "on_store_miss":
            yield from _arc_use_conditions(oracle, state, call)
        case "on_request_finished":
            yield from _arc_finish_conditions(oracle, state, arguments)
        case "evict":
            yield from _arc_evict_conditions(oracle, state, *arguments)
        case "clear":
            if state.b1 or state.b2 or state.target:
                yield "arc/clear-forgets-all"


def _arc_use_conditions(oracle: Oracle, state: arc.ArcState[int], call: Call) -> Iterator[str]:
    keys = call.arguments[0]
    for key in keys:
        if key in state.t1:
            pending = oracle.ref_cnt(key) < 0
            yield "arc/pending-stays-in-t1" if pending else "arc/second-use-promotes"
        elif key in state.t2[:-1]:
            yield "arc/use-renews-t2"
        elif key in state.b1 or key in state.b2:
            yield "arc/touch-adapts" if call.method == "touch" else "arc/miss-adapts"
            yield "arc/victim-becomes-ghost"
            yield from _arc_ghost_conditions(state, key)
    if sum(key in state.t1 or key in state.t2 for key in keys) > 1:
        yield "arc/batch-tail-first"


def _arc_ghost_conditions(state: arc.ArcState[int], key: int) -> Iterator[str]:
    in_b1 = key in state.b1
    own, other = (state.b1, state.b2) if in_b1 else (state.b2, state.b1)
    step = max(1.0, len(other) / len(own))
    yield "arc/b1-hit-raises-target" if in_b1 else "arc/b2-hit-lowers-target"
    if step > 1:
        yield "arc/step-is-ratio-of-ghosts"
    if state.target + step > state.capacity if in_b1 else state.target < step:
        yield "arc/target-bounded"
    if key != own[-1]:
        yield "arc/ghost-hit-renews"


def _arc_finish_conditions(
    oracle: Oracle, state: arc.ArcState[int], arguments: tuple[Any, ...]
) -> Iterator[str]:
    groups, inserted, reused, request = arguments
    keys = [key for group in groups for key in group]
    for key in keys:
        if key not in state.t1 and key not in state.t2:
            continue
        if key in inserted:
            yield "arc/store-is-not-reuse"
        elif key not in reused:
            yield "arc/merely-seen-stays"
        elif key in state.t1:
            yield "arc/reuse-promotes"
        else:
            yield "arc/use-renews-t2"
    moved = [key for key in keys if key in state.t1 or key in state.t2]
    ordered = oracle.in_request_order(groups, request)
    if moved != [key for key in ordered if key in moved]:
        yield "arc/finish-in-prefix-order"


def _arc_evict_conditions(
    oracle: Oracle, state: arc.ArcState[int], n: int, protected: frozenset[int]
) -> Iterator[str]:
    from_t1 = eligible(state.t1, protected, oracle.ref_cnt)
    from_t2 = eligible(state.t2, protected, oracle.ref_cnt)
    size, target = len(state.t1), int(state.target)
    at_target = size >= target
    if not 0 < n <= len(from_t1) + len(from_t2):
        return
    yield "arc/oldest-of-its-list-first"
    if from_t1 and from_t2:
        yield "arc/t1-gives-at-target" if at_target else "arc/t2-gives-below-target"
        if state.target == 0:
            yield "arc/target-starts-at-zero"
        if size == target != state.target:
            yield "arc/target-rounded-in-comparison"
        if at_target and len(from_t1) < target:
            yield "arc/size-counts-busy-chunks"
        if at_target and n > 1 and size - (n - 1) < target:
            yield "arc/each-victim-anew"
    elif at_target and not from_t1:
        yield "arc/falls-back-to-t2"
    elif not at_target and not from_t2:
        falls_back = oracle.policy.falls_back_to_t1
        yield "arc/falls-back-to-t1" if falls_back else "arc/no-fallback-to-t1"
    after, victims = arc.evict(state, n, protected, oracle.ref_cnt)
    if len(after.b1) + len(after.b2) < len(state.b1) + len(state.b2) + len(victims or ()):
        yield "arc/ghosts-trimmed-to-capacity"


CONDITIONS = {"lru": _lru_conditions, "arc": _arc_conditions}
