"""Every contract is confirmed, each can be refuted, and the gate takes nothing less."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("crosshair", reason="crosshair-tool is not installed")

from tests.proof import contracts, gate

from cachelaw.reference import arc, lru, order, protocol, recency, reuse_filter
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.protocol import Call, Chunk

pytestmark = pytest.mark.proof

NAMES = tuple(gate.all_contracts())


@pytest.mark.parametrize("name", NAMES)
def test_contract_is_confirmed(name: str) -> None:
    verdict = gate.judge(name)
    assert verdict.answer == "confirmed", verdict


@pytest.mark.parametrize("name", NAMES)
def test_contract_holds_when_run(name: str) -> None:
    """CrossHair has its own model of Python; this is Python."""
    contract = gate.all_contracts()[name]
    lines = (inspect.getdoc(contract) or "").splitlines()
    conditions = [line.removeprefix("pre: ") for line in lines if line.startswith("pre: ")]
    assert lines[-1] == "post: _"
    assert any("Bound: " in line for line in lines)
    rng = random.Random(name)
    runs = 0
    for _ in range(4000):
        given = {
            parameter.name: _some(rng, str(parameter.annotation))
            for parameter in inspect.signature(contract).parameters.values()
        }
        if all(eval(condition, given.copy()) for condition in conditions):
            assert contract(**given), given
            runs += 1
    assert runs >= 100


def _some(rng: random.Random, annotation: str) -> object:
    """Return a random argument of a small range."""
    match annotation:
        case "int":
            return rng.randint(-2, 5)
        case "bool":
            return rng.random() < 0.5
        case "list[int]":
            return [rng.randint(-2, 5) for _ in range(rng.randint(0, 4))]
    raise AssertionError(f"no random {annotation}")


def test_every_contract_has_a_measured_time() -> None:
    assert set(gate.MEASURED) == set(NAMES)


# --- The contracts can fail ----------------------------------------------------------------------
#
# Each contract meets a function that is wrong in one way, in place of the right one.


def _strictly_above_target(state: Any, *rest: Any, **more: Any) -> Any:
    return arc_evict(replace(state, target=state.target + 1), *rest, **more)


def _one_list_for_the_batch(state: Any, *rest: Any) -> Any:
    return arc_evict(replace(state, target=0 if len(state.t1) >= state.target else 99), *rest)


def _pins_once(setting: Any, state: Any, event: Any) -> Generator[Call, None, Any]:
    for key in event.keys:
        yield Call("get", (key,))
        yield Call("set_ref_cnt", (key, 1))
    return replace(state, chunks={key: Chunk(1, 0) for key in event.keys})


def _marks_at_every_end(setting: Any, state: Any, event: Any) -> Generator[Call, None, Any]:
    chunks = dict(state.chunks)
    for key in event.keys:
        left = chunks[key].ref_cnt - 1
        yield Call("get", (key,))
        yield Call("set_ref_cnt", (key, left))
        yield Call("mark_evictable", (key,))
        chunks[key] = Chunk(left, 0)
    return replace(state, chunks=chunks)


def _marks_before_it_writes(setting: Any, state: Any, event: Any) -> Generator[Call, None, Any]:
    for key in event.keys:
        yield Call("get", (key,))
        yield Call("mark_evictable", (key,))
        yield Call("set_ref_cnt", (key, 0))
    return replace(state, chunks={key: Chunk(0, 0) for key in event.keys})


def _touches_head_first(order: tuple[int, ...], keys: Iterable[int]) -> tuple[int, ...]:
    for key in keys:
        order = recency.renew(order, key) if key in order else order
    return order


def _evicts_what_there_is(state: Any, n: int, protected: Any) -> Any:
    victims = tuple(key for key in state.idle if key not in protected)[:n]
    left = tuple(key for key in state.idle if key not in victims)
    return lru.EvictableOrder(state.resident - set(victims), left), victims


def _counts_without_renewing(tracker: Any, key: int, limit: int) -> Any:
    if any(other == key for other, _ in tracker):
        return tuple((other, count + (other == key)) for other, count in tracker)
    return (*tracker, (key, 1))


arc_evict, arc_finish, arc_touch = arc.evict, arc.finish, arc.touch

WRONG: dict[str, tuple[object, str, Callable[..., Any] | property]] = {
    "renew_puts_the_key_last": (
        recency,
        "renew",
        lambda order, key: (key, *recency.forget(order, key)),
    ),
    "renew_leaves_one_copy": (recency, "renew", lambda order, key: (*order, key)),
    "forget_takes_out_the_key_alone": (
        recency,
        "forget",
        lambda order, key: tuple(other for other in order if other > key),
    ),
    "trim_keeps_the_recent_end": (recency, "trim", lambda order, limit: order[:limit]),
    "eligible_are_the_idle_and_unprotected": (
        recency,
        "eligible",
        lambda order, protected, ref_cnt: tuple(
            key for key in order if ref_cnt(key) <= 0 and key not in protected
        ),
    ),
    "chunk_is_ready_when_not_negative": (
        ChunkStatus,
        "is_ready",
        property(lambda chunk: chunk.ref_cnt > 0),
    ),
    "load_start_pins": (protocol, "_load_starts", _pins_once),
    "load_end_unpins": (protocol, "_load_ends", _marks_at_every_end),
    "load_starts_and_ends_cancel": (protocol, "_load_starts", _pins_once),
    "store_end_makes_idle_or_absent": (protocol, "_store_succeeds", _marks_before_it_writes),
    "transfers_need_the_right_status": (contracts, "objection", lambda *given: None),
    "list_insert_is_a_use": (lru, "list_insert", lambda order, key: (key, *order)),
    "list_touch_moves_residents_tail_first": (lru, "list_touch", _touches_head_first),
    "list_evict_takes_the_oldest": (lru, "eligible", lambda *given: recency.eligible(*given)[::-1]),
    "evictable_evict_takes_the_oldest": (lru, "evictable_evict", _evicts_what_there_is),
    "evictable_marks_give_and_take_a_place": (
        lru,
        "evictable_mark",
        lambda state, key: replace(state, idle=(*state.idle, key)),
    ),
    "evictable_touch_needs_a_place": (
        lru,
        "evictable_touch",
        lambda state, keys: replace(state, idle=recency.renew(state.idle, keys[0])),
    ),
    "by_position_sorts_if_all_is_known": (
        contracts,
        "by_position",
        lambda keys, at: sorted(keys, key=at, reverse=True),
    ),
    "by_position_needs_every_position": (
        contracts,
        "by_position",
        lambda keys, at: sorted(keys, key=lambda key: at(key) or 0),
    ),
    "by_position_keeps_duplicates": (
        contracts,
        "by_position",
        lambda keys, at: sorted(keys, key=at),
    ),
    "observe_counts_and_renews": (contracts, "observe", _counts_without_renewing),
    "observe_drops_the_least_recent": (
        contracts,
        "observe",
        lambda tracker, key, limit: (*tracker[:-1], (key, 1)),
    ),
    "observe_stays_within_its_limit": (reuse_filter, "observe", _counts_without_renewing),
    "admission_needs_the_threshold": (
        reuse_filter,
        "qualifies",
        lambda tracker, key, threshold: reuse_filter.times_seen(tracker, key) > threshold,
    ),
    "arc_evicts_from_t1_alone": (
        arc,
        "evict",
        lambda *given: arc_evict(*given, falls_back_to_t1=False),
    ),
    "arc_evicts_from_t2_alone": (arc, "eligible", lambda order, protected, ref_cnt: order),
    "arc_before_v030_refuses_below_its_target": (arc, "evict", _strictly_above_target),
    "arc_chooses_the_list_by_its_target": (arc, "evict", _strictly_above_target),
    "arc_recounts_t1_for_each_victim": (arc, "evict", _one_list_for_the_batch),
    "arc_trims_its_ghosts": (arc, "trim", lambda order, limit: recency.trim(order, limit + 1)),
    "arc_insert_enters_t1_and_takes_the_ghost": (arc, "forget", lambda order, key: order),
    "arc_remove_leaves_no_ghost": (
        arc,
        "remove",
        lambda state, key: replace(
            state, t1=recency.forget(state.t1, key), b1=recency.renew(state.b1, key)
        ),
    ),
    "arc_touch_promotes_ready_chunks_of_t1": (
        arc,
        "touch",
        lambda state, keys, ref_cnt: arc_touch(state, keys, lambda key: 0),
    ),
    "arc_finish_tells_stores_from_reuse": (
        arc,
        "finish",
        lambda state, keys, inserted, reused: arc_finish(state, keys, (), (*inserted, *reused)),
    ),
}


@pytest.mark.parametrize("name", NAMES)
def test_contract_refutes_a_wrong_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, attribute, wrong = WRONG[name]
    monkeypatch.setattr(where, attribute, wrong)
    verdict = gate.judge(name)
    assert verdict.answer == "refuted", verdict
    assert "when calling" in verdict.detail


# --- The gate can fail ---------------------------------------------------------------------------


def target_stays_in_range(target: float, hit: int, other: int) -> bool:
    """What `proofs/arc_target_float64.py` proves, and CrossHair is not through with in time.

    pre: 0.0 <= target <= 4.0
    pre: 0 <= hit <= 3
    pre: 0 <= other <= 4
    post: _
    """
    before = arc.ArcState(4, target, (), (), (0, 1, 2, 3), tuple(range(10, 10 + other)))
    return 0.0 <= arc.store_miss(before, (hit, 10)).target <= 4.0


def nothing_meets_this(key: int) -> bool:
    """A contract that no argument meets.

    pre: key != key
    post: _
    """
    return True


def without_a_contract(key: int) -> bool:
    """Nothing is claimed here."""
    return True


@pytest.mark.parametrize(
    "function", [target_stays_in_range, nothing_meets_this, without_a_contract]
)
def test_gate_fails_what_is_not_confirmed(
    function: Callable[..., bool],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gate, "all_contracts", lambda: {"the one": function})
    monkeypatch.setattr(gate, "budget", lambda name: 3.0)
    # A process of its own would not know this function.
    monkeypatch.setattr(gate, "retry", lambda name: gate.ask(function, 3.0))
    assert gate.main([]) == 1
    assert "not confirmed" in capsys.readouterr().out


def test_gate_fails_what_is_refuted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recency, "trim", lambda order, limit: order)
    assert gate.main(["trim_keeps_the_recent_end"]) == 1
    assert "refuted" in capsys.readouterr().out


def test_gate_tries_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first try without time is not confirmed; the second has the time it is due."""
    monkeypatch.setattr(gate, "ALLOWANCE", 0.01)
    name = "arc_evicts_from_t2_alone"
    assert gate.ask(gate.all_contracts()[name], gate.budget(name)).answer == "not confirmed"
    assert gate.judge(name).answer == "confirmed"


def test_wrong_functions_are_of_the_reference() -> None:
    """What is replaced is there to be replaced, and used where it is replaced."""
    for where, attribute, _ in WRONG.values():
        assert hasattr(where, attribute)
    assert vars(contracts)["by_position"] is order.by_position
