"""Every theorem is proved, each variant refuted, and the abstractions are those of the code."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("z3", reason="z3-solver, which comes with crosshair-tool, is not there")

import z3
from proofs import (
    THEOREMS,
    Theorem,
    __main__,
    arc_disjoint,
    arc_sizes,
    arc_target_float64,
    filter_tracker,
    lru_idle_order,
    name_of,
)
from tests.proof.runs import Called, Run

from cachelaw.reference.editions import EDITIONS, V024, V030
from cachelaw.reference.protocol import Event, State
from cachelaw.reference.reuse_filter import Tracker, observe, times_seen
from cachelaw.specs.registry import CLAUSES

pytestmark = pytest.mark.proof

PROVED = pytest.mark.parametrize("theorem", THEOREMS, ids=name_of)


@PROVED
def test_theorem_is_proved(theorem: Theorem) -> None:
    assert theorem.prove() == z3.unsat


@PROVED
def test_variants_are_refuted(theorem: Theorem) -> None:
    answers = theorem.negated()
    assert answers
    for left_out, answer in answers.items():
        assert answer == z3.sat, left_out


@PROVED
def test_theorem_names_clauses_of_the_registry(theorem: Theorem) -> None:
    names = set(re.findall(r"`([a-z-]+/[a-z0-9-]+)`", theorem.__doc__ or ""))
    assert names
    assert names <= set(CLAUSES)
    # What it proves is among what it speaks of; the rest it assumes, or proves in part.
    assert theorem.PROVES and theorem.PROVES.keys() <= names


def test_every_file_is_a_theorem_of_the_table() -> None:
    folder = Path(__main__.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__", "theorem"}
    assert files == {name_of(theorem) for theorem in THEOREMS}


def test_table_fails_on_what_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(__main__, "THEOREMS", (arc_sizes,))
    assert __main__.main() == 0
    for answer in (z3.unknown, z3.sat):
        monkeypatch.setattr(arc_sizes, "prove", lambda answer=answer: answer)
        assert __main__.main() == 1
    monkeypatch.undo()
    monkeypatch.setattr(__main__, "THEOREMS", (arc_sizes,))
    monkeypatch.setattr(arc_sizes, "negated", lambda: {"nothing": z3.unsat})
    assert __main__.main() == 1
    assert "0 of 1 refuted" in capsys.readouterr().out


# --- The abstraction is that of the code ---------------------------------------------------------
#
# Real runs, projected to what the theorem keeps, make only steps that the theorem allows, and each
# of the steps that it allows is made by some run.


class Tie:
    """Holds projected steps of the code against the relations of a theorem.

    Args:
        steps: the theorem's relations, from the states before and after.
        invariant: the theorem's invariant.
        kind: the theorem's class of abstract states.
    """

    def __init__(self, steps: Callable[..., Any], invariant: Callable[..., Any], kind: Any) -> None:
        self._steps, self._invariant, self._kind = steps, invariant, kind
        self._known: set[tuple[object, ...]] = set()
        self.made: Counter[str] = Counter()

    def hold(self, name: str, before: Sequence[object], after: Sequence[object]) -> None:
        """Fail unless the step `name` leads from `before` to `after`, within the invariant."""
        self.made[name] += 1
        if (name, *before, *after) in self._known:
            return  # the relations are long, and short runs repeat themselves
        self._known.add((name, *before, *after))
        first, second = self._kind(*map(_value, before)), self._kind(*map(_value, after))
        claim = z3.And(
            self._invariant(first), self._invariant(second), self._steps(first, second)[name]
        )
        assert z3.is_true(z3.simplify(claim)), (name, before, after)


def _value(value: object) -> Any:
    return z3.BoolVal(value) if isinstance(value, bool) else z3.IntVal(value)


def _arc_step(called: Called) -> str:
    if called.call.method == "evict" and called.victims is None:
        return "evict, refused"
    return called.call.method


def _arc_runs() -> list[Called]:
    """Return the calls of random runs of ARC in every edition."""
    calls: list[Called] = []
    for edition in EDITIONS:
        for seed in range(4):
            rng = random.Random(f"{edition}/{seed}")
            run = Run("arc", edition, rng.randint(1, 6))
            for happened in run.at_random(rng, 250):
                calls.extend(happened.calls)
    return [called for called in calls if not called.call.method.startswith("mark_")]


@pytest.fixture(scope="module")
def arc_calls() -> list[Called]:
    return _arc_runs()


def test_arc_changes_sizes_as_the_theorem_says(arc_calls: list[Called]) -> None:
    tie = Tie(arc_sizes.steps, arc_sizes.invariant, arc_sizes.Sizes)
    for called in arc_calls:
        method = _arc_step(called)
        if method == "on_request_access":
            assert called.before == called.after
            continue
        before, after = (
            (len(state.t1), len(state.t2), len(state.b1), len(state.b2), state.capacity)
            for state in (called.before, called.after)
        )
        tie.hold(method, before, after)
    assert set(tie.made) == set(arc_sizes.steps(arc_sizes.BEFORE, arc_sizes.AFTER))


def test_arc_moves_keys_as_the_theorem_says(arc_calls: list[Called]) -> None:
    tie = Tie(arc_disjoint.steps, arc_disjoint.invariant, arc_disjoint.Copies)
    for called in arc_calls:
        if called.call.method == "on_request_access":
            continue
        states = (called.before, called.after)
        named = _keys_of(called)
        for key in {key for state in states for keys in _lists(state) for key in keys}:
            before, after = (tuple(keys.count(key) for keys in _lists(state)) for state in states)
            # An eviction and a clear are about every key; other calls about those they name.
            is_about = called.call.method in ("evict", "clear") or key in named
            tie.hold(_arc_step(called) if is_about else "an operation on other keys", before, after)
    assert set(tie.made) == set(arc_disjoint.steps(arc_disjoint.BEFORE, arc_disjoint.AFTER))


def _lists(state: Any) -> tuple[tuple[int, ...], ...]:
    return (state.t1, state.t2, state.b1, state.b2)


def _keys_of(called: Called) -> set[int]:
    """Return the keys that a call other than evict and clear is about."""
    first: Any = called.call.arguments[0] if called.call.arguments else ()
    match called.call.method:
        case "insert" | "remove":
            return {first}
        case "on_request_finished":
            return {key for group in first for key in group}
    return set(first) if called.call.method in ("touch", "on_store_miss") else set()


def test_arc_computes_the_target_as_the_theorem_says(arc_calls: list[Called]) -> None:
    """For batches of one key, so that one call is one step."""
    theorem = arc_target_float64
    made: Counter[str] = Counter()
    for called in arc_calls:
        before, after = called.before, called.after
        step, own, other = "anything else", 1, 0
        if called.call.method in ("touch", "on_store_miss"):
            if len(called.call.arguments[0]) != 1:
                continue
            (key,) = called.call.arguments[0]
            if key in before.b1:
                step, own, other = "hit in B1", len(before.b1), len(before.b2)
            elif key in before.b2:
                step, own, other = "hit in B2", len(before.b2), len(before.b1)
        elif called.call.method == "clear":
            step = "clear"
        made[step] += 1
        claim = z3.substitute(
            z3.And(theorem.STEPS[step], theorem.bounded, theorem.within(theorem.after)),
            (theorem.capacity, z3.FPVal(float(before.capacity), theorem.DOUBLE)),
            (theorem.target, z3.FPVal(before.target, theorem.DOUBLE)),
            (theorem.after, z3.FPVal(after.target, theorem.DOUBLE)),
            (theorem.ratio, z3.FPVal(other / own, theorem.DOUBLE)),
        )
        assert z3.is_true(z3.simplify(claim)), (step, before, after)
    assert set(made) == set(theorem.STEPS)


def test_lru_keeps_its_order_as_the_theorem_says() -> None:
    tie = Tie(lru_idle_order.steps, lru_idle_order.invariant, lru_idle_order.Key)
    other = "an event about other keys"
    for edition in (each for each in EDITIONS if V024 <= each <= V030):
        for seed in range(8):
            rng = random.Random(f"{edition}/{seed}")
            run = Run("lru", edition, rng.randint(1, 6))
            order = run.state
            for happened in run.at_random(rng, 250):
                gone = {key for called in happened.calls for key in called.victims or ()}
                keys = set(happened.before.chunks) | set(happened.after.chunks)
                keys |= set(_event_keys(happened.event))
                for key in keys:
                    before = _lru_key(happened.before, order, key)
                    after = _lru_key(happened.after, run.state, key)
                    tie.hold(_lru_step(happened.event, key, gone, before, after), before, after)
                order = run.state
    steps = set(lru_idle_order.steps(lru_idle_order.BEFORE, lru_idle_order.AFTER))
    assert set(tie.made) == steps
    assert tie.made[other] > 0


def _event_keys(event: Event[int]) -> tuple[int, ...]:
    keys: tuple[int, ...] = getattr(event, "keys", ())
    return keys


def _lru_key(books: State[int], order: Any, key: int) -> tuple[bool, int, int]:
    """Project to what the theorem keeps; the ref count of an absent key is arbitrary."""
    chunk = books.chunks.get(key)
    assert (key in order.resident) == (chunk is not None)
    return (chunk is not None, -1 if chunk is None else chunk.ref_cnt, order.idle.count(key))


def _lru_step(
    event: Event[int],
    key: int,
    gone: set[int],
    before: tuple[bool, int, int],
    after: tuple[bool, int, int],
) -> str:
    """Name the step that an event should be for a key: its own, an eviction, or none."""
    name = type(event).__name__
    if key in gone:
        return "Evict"
    if name == "Reset":
        return name
    is_named = key in _event_keys(event)
    if name == "StoreOffered":
        # Residents of the offer and offers that are refused change nothing.
        return name if is_named and before[0] != after[0] else "an event about other keys"
    return name if is_named and name != "Evict" else "an event about other keys"


def test_tracker_changes_as_the_theorem_says() -> None:
    tie = Tie(filter_tracker.steps, filter_tracker.invariant, filter_tracker.Tracked)
    for seed in range(40):
        rng = random.Random(seed)
        limit = rng.randint(1, 5)
        tracker: Tracker[int] = ()
        keys = range(rng.randint(1, 2 * limit + 2))
        for _ in range(100):
            seen = rng.choice(keys)
            known = any(other == seen for other, _ in tracker)
            following = observe(tracker, seen, limit)
            for key in keys:
                before, after = (
                    (
                        limit,
                        len(each),
                        any(other == key for other, _ in each),
                        times_seen(each, key),
                    )
                    for each in (tracker, following)
                )
                which = "observe" if key == seen else "observe another"
                tie.hold(f"{which}, {'known' if known else 'new'}", before, after)
            tracker = following
    assert set(tie.made) == set(filter_tracker.steps(filter_tracker.BEFORE, filter_tracker.AFTER))


def test_a_tie_fails_where_code_and_theorem_part() -> None:
    tie = Tie(arc_sizes.steps, arc_sizes.invariant, arc_sizes.Sizes)
    with pytest.raises(AssertionError):
        tie.hold("remove", (1, 0, 0, 0, 2), (0, 0, 1, 0, 2))  # it left a ghost
    with pytest.raises(AssertionError):
        tie.hold("insert", (2, 0, 0, 0, 2), (3, 0, 0, 0, 2))  # there was no room
