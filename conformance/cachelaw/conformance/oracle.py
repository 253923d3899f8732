"""The oracle: the reference, stepped beside a subject that claims a policy by name.

Under the profiles `lru` and `arc` every answer is determined. The oracle makes the same calls as
the subject, and before each one it says which clauses the call puts to the test: only what it has
been put to can be said to hold. The conditions are read off the reference's state.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.reference import arc
from cachelaw.reference.editions import V024, V030
from cachelaw.reference.lru import EvictableOrder, RankedOrder, RequestRank, rank_of
from cachelaw.reference.order import by_position
from cachelaw.reference.protocol import Call, Setting
from cachelaw.reference.recency import eligible


class Status:
    """What the reference reads of a chunk's status, which is the ref count alone."""

    __slots__ = ("ref_cnt",)

    def __init__(self, slot: int) -> None:
        self.ref_cnt = -1


class Oracle:
    """The reference of one edition, with what each call tests.

    Args:
        profile: `lru` or `arc`.
        setting: edition, capacity, groups and positions.
    """

    def __init__(self, profile: str, setting: Setting[int]) -> None:
        self._conditions = CONDITIONS[profile]
        module = importlib.import_module(setting.edition.module)
        policy_class: Callable[[int], Any] = getattr(module, profile.upper())
        build = partial(Instance, policy_class, setting, Status, PlainCodec())
        self.instance: Instance = build()
        self.policy = self.instance.policy
        """The reference policy, with its state."""
        by_transfers = V024 <= setting.edition <= V030
        self.mistaken: Instance | None = None if profile == "arc" or by_transfers else build()
        """A policy that is wrong: transfers are uses. Where it would evict as the reference does,
        `lru/transfer-is-no-use` is not put to the test."""

    def met(self, call: Call) -> Iterable[str]:
        """Return the clauses whose condition `call`, about to be made, meets."""
        conditions = self._conditions.get(call.method)
        return () if conditions is None else conditions(self, *call.arguments)

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        """Make one call; return the victims of an `evict`, None if it refused or for others."""
        answer = self.instance.carry_out(call)
        victims: tuple[int, ...] | None = None
        if call.method == "evict" and answer is not None:
            victims = tuple(key for key, _ in answer)
            for key in victims:
                del self.instance.chunks[key]
        if self.mistaken is not None:
            _carry_out_mistaken(self.mistaken, call, victims or ())
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


def _carry_out_mistaken(mistaken: Instance, call: Call, victims: tuple[int, ...]) -> None:
    """Make a call on the policy for which transfers are uses; its victims are the reference's."""
    if call.method == "evict":
        for key in victims:
            mistaken.carry_out(Call("remove", (key,)))
        return
    mistaken.carry_out(call)
    if call.method == "set_ref_cnt":
        mistaken.carry_out(Call("touch", (call.arguments[:1], "u")))


# --- LRU -----------------------------------------------------------------------------------------


def _lru_order(state: Any) -> tuple[int, ...]:
    """Return the keys that have a place in LRU's order, oldest first."""
    if isinstance(state, EvictableOrder):
        return state.idle
    if isinstance(state, RankedOrder):
        return tuple(key for _, key in state.entries)
    order: tuple[int, ...] = state
    return order


def _lru_insert(oracle: Oracle, key: int, slot: int, request: str) -> Iterator[str]:
    state = oracle.policy.state
    if isinstance(state, RankedOrder):
        yield from _rank_conditions(oracle, (key,), request, inserting=True)
    elif state and not isinstance(state, EvictableOrder):
        yield "lru/insert-is-use"


def _lru_touch(oracle: Oracle, keys: tuple[int, ...], request: str) -> Iterator[str]:
    state = oracle.policy.state
    order = _lru_order(state)
    placed = [key for key in keys if key in order]
    busy = [key for key in keys if key in oracle.instance.chunks and oracle.ref_cnt(key)]
    if any(key != order[-1] and key not in busy for key in placed):
        yield "lru/touch-is-use"
    if len(placed) > 1:
        yield "lru/batch-tail-first"
    if busy:
        only_idle = isinstance(state, EvictableOrder)
        yield "lru/touch-of-busy-lost" if only_idle else "lru/touch-of-busy-counts"


def _lru_becomes_idle(oracle: Oracle, key: int) -> Iterator[str]:
    state = oracle.policy.state
    if isinstance(state, EvictableOrder) and state.idle:
        yield "lru/becoming-idle-is-use"


def _lru_access(oracle: Oracle, keys: tuple[int, ...], request: str) -> Iterator[str]:
    if isinstance(oracle.policy.state, RankedOrder):
        yield from _rank_conditions(oracle, keys, request, inserting=False)


def _lru_finish(
    oracle: Oracle,
    groups: tuple[tuple[int, ...], ...],
    inserted: frozenset[int],
    reused: frozenset[int],
    request: str,
) -> Iterator[str]:
    order = _lru_order(oracle.policy.state)
    placed = [key for group in groups for key in group if key in order]
    if any(key != order[-1] for key in placed):
        yield "lru/finish-is-use"
    ordered = oracle.in_request_order(groups, request)
    if placed != [key for key in ordered if key in order]:
        yield "lru/finish-in-prefix-order"


def _lru_evict(oracle: Oracle, n: int, protected: frozenset[int]) -> Iterator[str]:
    state = oracle.policy.state
    order = _lru_order(state)
    free = eligible(order, protected, oracle.ref_cnt)
    if not 0 < n <= len(free):
        return
    if len(free) > 1:
        yield "lru/oldest-leaves-first"
    older = order[: order.index(free[n - 1])]
    if len(older) >= n:
        yield "lru/passed-over-keeps-place"
    if oracle.mistaken is not None:
        mistaken = _lru_order(oracle.mistaken.policy.state)
        if eligible(mistaken, protected, oracle.ref_cnt)[:n] != free[:n]:
            yield "lru/transfer-is-no-use"
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


def _arc_insert(oracle: Oracle, key: int, slot: int, request: str) -> Iterator[str]:
    state: arc.ArcState[int] = oracle.policy.state
    if key in state.b1 or key in state.b2:
        yield "arc/insert-into-t1"
        yield "arc/insert-takes-ghost"


def _arc_remove(oracle: Oracle, key: int) -> Iterator[str]:
    yield "arc/remove-leaves-no-ghost"


def _arc_clear(oracle: Oracle) -> Iterator[str]:
    state: arc.ArcState[int] = oracle.policy.state
    if state.b1 or state.b2 or state.target:
        yield "arc/clear-forgets-all"


def _arc_touch(oracle: Oracle, keys: tuple[int, ...], request: str) -> Iterator[str]:
    return _arc_use(oracle, keys, "arc/touch-adapts")


def _arc_miss(oracle: Oracle, keys: tuple[int, ...], request: str) -> Iterator[str]:
    return _arc_use(oracle, keys, "arc/miss-adapts")


def _arc_use(oracle: Oracle, keys: tuple[int, ...], adapts: str) -> Iterator[str]:
    state: arc.ArcState[int] = oracle.policy.state
    for key in keys:
        if key in state.t1:
            pending = oracle.ref_cnt(key) < 0
            yield "arc/pending-stays-in-t1" if pending else "arc/second-use-promotes"
        elif key in state.t2[:-1]:
            yield "arc/use-renews-t2"
        elif key in state.b1 or key in state.b2:
            yield adapts
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


def _arc_finish(
    oracle: Oracle,
    groups: tuple[tuple[int, ...], ...],
    inserted: frozenset[int],
    reused: frozenset[int],
    request: str,
) -> Iterator[str]:
    state: arc.ArcState[int] = oracle.policy.state
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


def _arc_evict(oracle: Oracle, n: int, protected: frozenset[int]) -> Iterator[str]:
    state: arc.ArcState[int] = oracle.policy.state
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


Conditions = Callable[..., Iterable[str]]
"""From the oracle and a call's arguments to the clauses that the call puts to the test."""

CONDITIONS: dict[str, dict[str, Conditions]] = {
    "lru": {
        "insert": _lru_insert,
        "touch": _lru_touch,
        "mark_evictable": _lru_becomes_idle,
        "on_request_access": _lru_access,
        "on_request_finished": _lru_finish,
        "evict": _lru_evict,
    },
    "arc": {
        "insert": _arc_insert,
        "remove": _arc_remove,
        "touch": _arc_touch,
        "on_store_miss": _arc_miss,
        "on_request_finished": _arc_finish,
        "evict": _arc_evict,
        "clear": _arc_clear,
    },
}
"""By profile and method, the conditions that a call may meet."""
