"""The reuse filter, clause by clause, in both forms; its core; and wrong filters told apart.

A check is a function over a `Form`. Each runs on the two right filters, where it must pass, and
on the wrong variants that break its clause, where it must fail.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey, make_offload_key
from cachelaw.reference.manager import MinimalOffloadingManagerV019, MinimalOffloadingManagerV020
from cachelaw.reference.reuse_filter import (
    FilterReusedOffloadingManagerV019,
    FilterReusedOffloadingManagerV020,
    Tracker,
    admitted,
    observe,
    observe_all,
    qualifies,
    times_seen,
)
from cachelaw.reference.v019 import LRU

KEYS = tuple(make_offload_key(letter.encode(), 0) for letter in "abcdef")
A, B, C, D, E, F = KEYS
CONTEXT = ReqContext("r0")


class Recorder:
    """Stands for the backing: notes every call, and answers each with an object of its own."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.answers: list[object] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        def method(*args: Any) -> object:
            self.calls.append((name, args))
            self.answers.append(object())
            return self.answers[-1]

        return method


@dataclass(frozen=True)
class Form:
    """A filter class, and how its edition calls it."""

    make: Callable[..., Any]
    minimal: Callable[..., Any]
    extra: tuple[ReqContext, ...]

    def recorded(self, *args: Any) -> tuple[Any, Recorder]:
        """Return a filter before a recorder, and the recorder."""
        backing = Recorder()
        return self.make(backing, *args), backing

    def managing(self, num_blocks: int, *args: Any) -> Any:
        """Return a filter before a manager with LRU."""
        return self.make(self.minimal(num_blocks, LRU), *args)

    def look(self, filtered: Any, *keys: OffloadKey) -> Any:
        """Look `keys` up, in one call where the edition has it; return the last answer."""
        if not self.extra:
            return filtered.lookup(keys)
        return [filtered.lookup(key, *self.extra) for key in keys][-1]

    def look_until_miss(self, filtered: Any, *keys: OffloadKey) -> None:
        """Look keys up one at a time, as a scheduler does that needs the leading run only."""
        for key in keys:
            if not self.look(filtered, key):
                break

    def offer(self, filtered: Any, *keys: OffloadKey) -> Any:
        """Offer `keys` and return what comes back."""
        return filtered.prepare_store(keys, *self.extra)

    def stored(self, filtered: Any, *keys: OffloadKey) -> list[OffloadKey]:
        """Offer `keys`, complete what is taken in, and return it."""
        output = self.offer(filtered, *keys)
        assert output is not None
        filtered.complete_store(output.keys_to_store)
        return list(output.keys_to_store)


V019 = Form(FilterReusedOffloadingManagerV019, MinimalOffloadingManagerV019, ())
V020 = Form(FilterReusedOffloadingManagerV020, MinimalOffloadingManagerV020, (CONTEXT,))


def tracked(filtered: Any) -> list[tuple[OffloadKey, int]]:
    """Return the tracker as a list, least recently seen first."""
    return list(filtered.counts.items())


# --- A check for each clause ---------------------------------------------------------------------

WRONG_TYPES = (True, False, 2.0, 1e9, "2", None)
NAME = "FilterReusedOffloadingManager"


def message(form: Form, **arguments: Any) -> str:
    """Return the text of the ValueError that the constructor raises."""
    with pytest.raises(ValueError) as raised:
        form.make(Recorder(), **arguments)
    return str(raised.value)


def threshold_at_least_two(form: Form) -> None:
    for bad in (1, 0, -7):
        expected = f"{NAME} store_threshold must be >= 2, got {bad}"
        assert message(form, store_threshold=bad) == expected
        assert message(form, store_threshold=bad, max_tracker_size=0) == expected
    for other in WRONG_TYPES:
        assert repr(other) in message(form, store_threshold=other)
    assert form.make(Recorder(), store_threshold=2).store_threshold == 2
    assert form.make(Recorder()).store_threshold == 2


def tracker_at_least_one(form: Form) -> None:
    for bad in (0, -1):
        expected = f"{NAME} max_tracker_size must be >= 1, got {bad}"
        assert message(form, max_tracker_size=bad) == expected
    for other in WRONG_TYPES:
        assert repr(other) in message(form, max_tracker_size=other)
    assert form.make(Recorder(), max_tracker_size=1).max_tracker_size == 1
    assert form.make(Recorder()).max_tracker_size == 64_000


def lookup_counts_each_key(form: Form) -> None:
    filtered = form.managing(4)
    assert filtered.counts == OrderedDict()
    form.look(filtered, A, B, C, A)  # nothing is resident: all are past the first miss but A
    assert tracked(filtered) == [(B, 1), (C, 1), (A, 2)]
    form.look(filtered, C)
    assert tracked(filtered) == [(B, 1), (A, 2), (C, 2)]


def lookup_counts_before_it_delegates(form: Form) -> None:
    class Broken(Recorder):
        def lookup(self, *args: Any) -> object:
            raise RuntimeError

    filtered = form.make(Broken())
    with pytest.raises(RuntimeError):
        form.look(filtered, A)
    assert tracked(filtered) == [(A, 1)]


def lookup_delegates_all(form: Form) -> None:
    filtered, backing = form.recorded()
    answer = form.look(filtered, A, B, A)
    assert answer is backing.answers[-1]
    if form.extra:
        assert backing.calls == [("lookup", (key, CONTEXT)) for key in (A, B, A)]
        return
    assert backing.calls == [("lookup", ([A, B, A],))]
    filtered.lookup(iter([C, D]))
    filtered.lookup([])
    assert backing.calls[1:] == [("lookup", ([C, D],)), ("lookup", ([],))]
    assert tracked(filtered) == [(B, 1), (A, 2), (C, 1), (D, 1)]


def tracker_drops_least_recent(form: Form) -> None:
    filtered, _ = form.recorded(2, 2)
    form.look(filtered, A)
    form.look(filtered, B)
    form.look(filtered, A)  # there is room for what is there already, first or last
    form.look(filtered, A)
    assert tracked(filtered) == [(B, 1), (A, 3)]
    form.look(filtered, C)
    assert tracked(filtered) == [(A, 3), (C, 1)]
    form.look(filtered, B)  # once dropped, a key begins again
    assert tracked(filtered) == [(C, 1), (B, 1)]
    form.look(filtered, D, E, F)
    assert tracked(filtered) == [(E, 1), (F, 1)]
    smallest, _ = form.recorded(2, 1)
    form.look(smallest, A, A, B, A)
    assert tracked(smallest) == [(A, 1)]


def repeat_renews(form: Form) -> None:
    filtered = form.managing(8, 3, 2)
    form.look(filtered, A)
    form.look(filtered, B)
    form.look(filtered, A)
    form.look(filtered, C)  # drops B, which was seen less recently, not A
    form.look(filtered, A)
    assert tracked(filtered) == [(C, 1), (A, 3)]
    assert form.stored(filtered, A) == [A]


def store_needs_threshold(form: Form) -> None:
    filtered, backing = form.recorded(3)
    form.look(filtered, A, B, C, A, C)
    form.offer(filtered, C, A, B, D)
    form.look(filtered, A)
    form.offer(filtered, C, A, B, D)
    form.look(filtered, C, A, A)
    form.offer(filtered, C, B, A)
    offers = [args[0] for name, args in backing.calls if name == "prepare_store"]
    assert offers == [[], [A], [C, A]]
    # To be offered is not to be seen.
    assert tracked(filtered) == [(B, 1), (C, 3), (A, 5)]


def filtered_before_backing(form: Form) -> None:
    filtered, backing = form.recorded()
    form.look(filtered, A, A)
    backing.calls.clear()
    answer = filtered.prepare_store(iter([B, A, C]), *form.extra)
    assert backing.calls == [("prepare_store", ([A], *form.extra))]
    assert answer is backing.answers[-1]
    # Nothing leaves a full cache for keys that may not enter.
    full = form.managing(1)
    form.look(full, A, A, B)
    assert form.stored(full, A) == [A]
    assert form.offer(full, B).evicted_keys == []
    assert form.look(full, A)


def empty_offer_delegated(form: Form) -> None:
    filtered, backing = form.recorded()
    answers = [filtered.prepare_store(keys, *form.extra) for keys in ([A, B], [])]
    assert backing.calls == [("prepare_store", ([], *form.extra))] * 2
    assert answers == backing.answers
    # A full cache would refuse B, if it heard of it.
    full = form.managing(1)
    form.look(full, A, A)
    assert form.stored(full, A) == [A]
    full.prepare_load([A], *form.extra)
    output = form.offer(full, B)
    assert (output.keys_to_store, output.evicted_keys) == ([], [])


def all_else_delegated(form: Form) -> None:
    filtered, backing = form.recorded()
    form.look(filtered, A)
    keys = iter([A, B])  # goes through as it is, unread and uncopied
    assert filtered.prepare_load(keys, *form.extra) is backing.answers[-1]
    filtered.touch(keys)
    filtered.complete_load(keys)
    filtered.complete_store(keys)
    filtered.complete_store(keys, False)
    filtered.complete_store(keys, success=True)
    assert filtered.take_events() is backing.answers[-1]
    assert backing.calls[1:] == [
        ("prepare_load", (keys, *form.extra)),
        ("touch", (keys,)),
        ("complete_load", (keys,)),
        ("complete_store", (keys, True)),
        ("complete_store", (keys, False)),
        ("complete_store", (keys, True)),
        ("take_events", ()),
    ]
    assert list(keys) == [A, B]
    assert tracked(filtered) == [(A, 1)]


def counts_outlive_chunks(form: Form) -> None:
    filtered = form.managing(1)
    form.look(filtered, A, B, A, B)
    counts = tracked(filtered)
    assert form.offer(filtered, A).keys_to_store == [A]
    filtered.complete_store([A], success=False)
    assert form.stored(filtered, A) == [A]  # at once, after a failed store
    assert form.stored(filtered, B) == [B]
    assert form.stored(filtered, A) == [A]  # at once, after an eviction
    assert tracked(filtered) == counts


CHECKS = (
    threshold_at_least_two,
    tracker_at_least_one,
    lookup_counts_each_key,
    lookup_counts_before_it_delegates,
    lookup_delegates_all,
    tracker_drops_least_recent,
    repeat_renews,
    store_needs_threshold,
    filtered_before_backing,
    empty_offer_delegated,
    all_else_delegated,
    counts_outlive_chunks,
)


@pytest.fixture(params=[V019, V020], ids=["v019", "v020"])
def form(request: pytest.FixtureRequest) -> Form:
    made: Form = request.param
    return made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_clause(form: Form, check: Callable[[Form], None]) -> None:
    check(form)


# --- Wrong filters -------------------------------------------------------------------------------


class Right(FilterReusedOffloadingManagerV019):
    """What the variants differ from."""

    def passed(self, keys: Iterable[OffloadKey]) -> list[OffloadKey]:
        return [key for key in keys if self.counts.get(key, 0) >= self.store_threshold]


class AcceptsThresholdOne(Right):
    def __init__(self, backing: Any, store_threshold: int = 2, max_tracker_size: int = 64_000):
        super().__init__(backing, max(2, store_threshold), max_tracker_size)
        self.store_threshold = store_threshold


class AcceptsTrackerZero(Right):
    def __init__(self, backing: Any, store_threshold: int = 2, max_tracker_size: int = 64_000):
        super().__init__(backing, store_threshold, max(1, max_tracker_size))


class NeverRenews(Right):
    def _observe(self, key: OffloadKey) -> None:
        if key in self.counts:
            self.counts[key] += 1
        else:
            super()._observe(key)


class DropsNewest(Right):
    def _observe(self, key: OffloadKey) -> None:
        if key not in self.counts and len(self.counts) >= self.max_tracker_size:
            self.counts.popitem()
        super()._observe(key)


class DropsRarest(Right):
    def _observe(self, key: OffloadKey) -> None:
        if key not in self.counts and len(self.counts) >= self.max_tracker_size:
            del self.counts[min(self.counts, key=self.counts.__getitem__)]
        super()._observe(key)


class DropsEvenForKnownKeys(Right):
    def _observe(self, key: OffloadKey) -> None:
        if len(self.counts) >= self.max_tracker_size:
            oldest, _ = self.counts.popitem(last=False)
            if oldest == key:
                self.counts[key] = 1
        super()._observe(key)


class Unbounded(Right):
    def _observe(self, key: OffloadKey) -> None:
        self.counts[key] = self.counts.pop(key, 0) + 1


class HoldsOneMore(Right):
    def _observe(self, key: OffloadKey) -> None:
        self.counts[key] = self.counts.pop(key, 0) + 1
        if len(self.counts) > self.max_tracker_size + 1:
            self.counts.popitem(last=False)


class KeepsTheCallsOwnKeys(Right):
    """As v0.30: keys of one call do not push each other out."""

    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        keys = list(keys)
        for key in keys:
            full = len(self.counts) >= self.max_tracker_size
            if key in self.counts or not (full and set(self.counts) <= set(keys)):
                self._observe(key)
        return self._backing.lookup(keys)


class CountsOncePerCall(Right):
    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        keys = list(keys)
        for key in dict.fromkeys(keys):
            self._observe(key)
        return self._backing.lookup(keys)


class CountsUpToTheFirstMiss(Right):
    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        keys = list(keys)
        run = self._backing.lookup(keys)
        for key in keys[: (run or 0) + 1] if isinstance(run, int) else keys:
            self._observe(key)
        return run


class DelegatesAnIteratorAlreadyUsedUp(Right):
    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        for key in keys:
            self._observe(key)
        return self._backing.lookup(keys)


class LooksUpQualifiedKeysOnly(Right):
    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        keys = list(keys)
        for key in keys:
            self._observe(key)
        return self._backing.lookup(self.passed(keys))


class NeedsOneMore(Right):
    def _qualifies(self, key: OffloadKey) -> bool:
        return self.counts.get(key, 0) > self.store_threshold


class CountsOffers(Right):
    """As v0.29."""

    def prepare_store(self, keys: Iterable[OffloadKey]) -> Any:
        keys = list(keys)
        for key in keys:
            self._observe(key)
        return super().prepare_store(keys)


class CountsTouches(Right):
    def touch(self, keys: Iterable[OffloadKey]) -> None:
        keys = list(keys)
        for key in keys:
            self._observe(key)
        self._backing.touch(keys)


class FiltersWhatTheBackingTook(Right):
    def prepare_store(self, keys: Iterable[OffloadKey]) -> Any:
        keys = list(keys)
        output = self._backing.prepare_store(keys)
        if output is not None and hasattr(output, "keys_to_store"):
            output.keys_to_store[:] = self.passed(output.keys_to_store)
        return output


class PassesAllOnceOneQualifies(Right):
    def prepare_store(self, keys: Iterable[OffloadKey]) -> Any:
        keys = list(keys)
        return self._backing.prepare_store(keys if self.passed(keys) else [])


class PassesTheLeadingRunOnly(Right):
    def prepare_store(self, keys: Iterable[OffloadKey]) -> Any:
        run: list[OffloadKey] = []
        for key in keys:
            if not self._qualifies(key):
                break
            run.append(key)
        return self._backing.prepare_store(run)


class SwallowsEmptyOffers(Right):
    def prepare_store(self, keys: Iterable[OffloadKey]) -> Any:
        passed = self.passed(keys)
        return self._backing.prepare_store(passed) if passed else None


class ForgetsWhatItPassed(Right):
    def prepare_store(self, keys: Iterable[OffloadKey]) -> Any:
        passed = self.passed(keys)
        for key in passed:
            self.counts.pop(key, None)
        return self._backing.prepare_store(passed)


class ForgetsFailedStores(Right):
    def complete_store(self, keys: Iterable[OffloadKey], success: bool = True) -> None:
        if not success:
            for key in keys:
                self.counts.pop(key, None)
        self._backing.complete_store(keys, success)


class LosesFailure(Right):
    def complete_store(self, keys: Iterable[OffloadKey], success: bool = True) -> None:
        self._backing.complete_store(keys, True)


class LosesTouches(Right):
    def touch(self, keys: Iterable[OffloadKey]) -> None:
        pass


# Each wrong filter with one check that must fail on it.
VARIANTS: tuple[tuple[type[Right], Callable[[Form], None]], ...] = (
    (AcceptsThresholdOne, threshold_at_least_two),
    (AcceptsTrackerZero, tracker_at_least_one),
    (NeverRenews, repeat_renews),
    (DropsNewest, tracker_drops_least_recent),
    (DropsRarest, tracker_drops_least_recent),
    (DropsEvenForKnownKeys, tracker_drops_least_recent),
    (Unbounded, tracker_drops_least_recent),
    (HoldsOneMore, tracker_drops_least_recent),
    (KeepsTheCallsOwnKeys, tracker_drops_least_recent),
    (CountsOncePerCall, lookup_counts_each_key),
    (CountsUpToTheFirstMiss, lookup_counts_each_key),
    (CountsUpToTheFirstMiss, lookup_counts_before_it_delegates),
    (DelegatesAnIteratorAlreadyUsedUp, lookup_delegates_all),
    (LooksUpQualifiedKeysOnly, lookup_delegates_all),
    (NeedsOneMore, store_needs_threshold),
    (CountsOffers, store_needs_threshold),
    (PassesAllOnceOneQualifies, store_needs_threshold),
    (PassesTheLeadingRunOnly, filtered_before_backing),
    (FiltersWhatTheBackingTook, filtered_before_backing),
    (SwallowsEmptyOffers, empty_offer_delegated),
    (CountsTouches, all_else_delegated),
    (LosesFailure, all_else_delegated),
    (LosesTouches, all_else_delegated),
    (ForgetsWhatItPassed, counts_outlive_chunks),
    (ForgetsFailedStores, counts_outlive_chunks),
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_what_the_variants_derive_from_is_right(check: Callable[[Form], None]) -> None:
    check(replace(V019, make=Right))


@pytest.mark.parametrize(
    ("variant", "check"), VARIANTS, ids=[f"{v.__name__}-{c.__name__}" for v, c in VARIANTS]
)
def test_wrong_filter_is_told_apart(variant: type[Right], check: Callable[[Form], None]) -> None:
    # An unraised error is pytest's own exception, no AssertionError.
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(replace(V019, make=variant))


def test_every_check_tells_some_wrong_filter_apart() -> None:
    assert {check for _, check in VARIANTS} == set(CHECKS)


# --- What follows from the clauses: traces with the values of vLLM 0.18.1 to 0.20.2 --------------


def test_an_offer_larger_than_the_tracker_never_passes(form: Form) -> None:
    filtered = form.managing(8, 2, 3)
    stored = []
    for _ in range(4):
        form.look(filtered, A, B, C, D)
        stored.append(form.stored(filtered, A, B, C, D))
        assert tracked(filtered) == [(B, 1), (C, 1), (D, 1)]
    assert stored == [[], [], [], []]


def test_an_offer_as_large_as_the_tracker_passes(form: Form) -> None:
    filtered = form.managing(8, 2, 3)
    stored = []
    for _ in range(3):
        form.look(filtered, A, B, C)
        stored.append(form.stored(filtered, A, B, C))
    assert stored == [[], [A, B, C], []]


def test_lookups_that_stop_at_the_first_miss_count_one_key_a_request(form: Form) -> None:
    filtered = form.managing(8)
    stored = []
    for _ in range(4):
        form.look_until_miss(filtered, A, B, C, D)
        stored.append(form.stored(filtered, A, B, C, D))
    assert stored == [[], [A], [], [B]]
    assert tracked(filtered) == [(A, 4), (B, 2)]


def test_lookups_of_a_whole_prefix_count_all_of_it(form: Form) -> None:
    filtered = form.managing(8)
    stored = []
    for _ in range(4):
        form.look(filtered, A, B, C, D)
        stored.append(form.stored(filtered, A, B, C, D))
    assert stored == [[], [A, B, C, D], [], []]


def test_one_request_that_looks_up_twice_passes_alone(form: Form) -> None:
    filtered = form.managing(4)
    form.look(filtered, A)
    # However often it offers, only lookups count.
    assert [form.stored(filtered, A) for _ in range(3)] == [[], [], []]
    form.look(filtered, A)
    assert form.stored(filtered, A) == [A]


def test_offers_that_are_refused_leave_the_count(form: Form) -> None:
    filtered = form.managing(2)
    form.look(filtered, A, B, A, B)
    assert form.stored(filtered, A, B) == [A, B]
    filtered.prepare_load([A, B], *form.extra)
    assert [form.stored(filtered, C) for _ in range(3)] == [[], [], []]
    form.look(filtered, C, C)
    assert [form.offer(filtered, C) for _ in range(3)] == [None, None, None]
    assert tracked(filtered) == [(A, 2), (B, 2), (C, 2)]


def test_a_failed_store_may_be_tried_again_at_once(form: Form) -> None:
    filtered = form.managing(4)
    form.look(filtered, A, A)
    assert form.offer(filtered, A).keys_to_store == [A]
    filtered.complete_store([A], success=False)
    assert form.offer(filtered, A).keys_to_store == [A]


def test_the_second_lookup_is_enough_for_a_threshold_of_two(form: Form) -> None:
    filtered = form.managing(8)
    form.look(filtered, A)
    assert form.stored(filtered, A) == []
    form.look(filtered, A)
    assert form.stored(filtered, A) == [A]


def test_a_limit_that_is_lowered_later_drops_no_key_for_a_known_one(form: Form) -> None:
    filtered, _ = form.recorded(2, 3)
    form.look(filtered, A, B, C)
    filtered.max_tracker_size = 1
    form.look(filtered, A)
    assert tracked(filtered) == [(B, 1), (C, 1), (A, 2)]
    form.look(filtered, D)  # nor more than one for a new one
    assert tracked(filtered) == [(C, 1), (A, 2), (D, 1)]


def test_a_full_tracker_is_as_fast_as_an_empty_one(form: Form) -> None:
    # A walk along the tracker at each lookup would take hours here.
    filtered, _ = form.recorded()
    for number in range(100_000):
        form.look(filtered, make_offload_key(number.to_bytes(4, "big"), 0))
    assert len(filtered.counts) == 64_000
    assert next(iter(filtered.counts)) == make_offload_key((36_000).to_bytes(4, "big"), 0)


# --- The interface of the seed -------------------------------------------------------------------


def test_names_and_defaults_are_those_of_the_seed(form: Form) -> None:
    """reuse-filter/defaults."""
    parameters = inspect.signature(form.make).parameters.values()
    assert [(p.name, p.default) for p in parameters] == [
        ("backing", inspect.Parameter.empty),
        ("store_threshold", 2),
        ("max_tracker_size", 64_000),
    ]
    filtered, _ = form.recorded(5, 7)
    assert (filtered.store_threshold, filtered.max_tracker_size) == (5, 7)
    assert type(filtered.counts) is OrderedDict


@pytest.mark.parametrize(
    ("form", "name", "parameters"),
    [
        (V019, "lookup", ["keys"]),
        (V019, "prepare_store", ["keys"]),
        (V019, "prepare_load", ["keys"]),
        (V020, "lookup", ["key", "req_context"]),
        (V020, "prepare_store", ["keys", "req_context"]),
        (V020, "prepare_load", ["keys", "req_context"]),
    ],
)
def test_parameters_of_the_two_forms(form: Form, name: str, parameters: list[str]) -> None:
    filtered, _ = form.recorded()
    assert list(inspect.signature(getattr(filtered, name)).parameters) == parameters


# --- The core ------------------------------------------------------------------------------------

NAMES = st.sampled_from("abcde")
SEQUENCES = st.lists(NAMES, max_size=30)
LIMITS = st.integers(1, 6)
THRESHOLDS = st.integers(2, 4)
quick = settings(derandomize=True, deadline=None, max_examples=300)


def test_core_by_hand() -> None:
    tracker: Tracker[str] = ()
    assert times_seen(tracker, "a") == 0
    tracker = observe(tracker, "a", 2)
    assert tracker == (("a", 1),)
    tracker = observe_all(tracker, "bab", 2)
    assert tracker == (("a", 2), ("b", 2))
    tracker = observe(tracker, "c", 2)
    assert tracker == (("b", 2), ("c", 1))
    assert observe(tracker, "b", 1) == (("c", 1), ("b", 3))  # what is known needs no room
    assert times_seen(tracker, "b") == 2
    assert qualifies(tracker, "b", 2)
    assert not qualifies(tracker, "b", 3)
    assert not qualifies(tracker, "a", 2)
    assert admitted(tracker, iter("cbab"), 2) == ("b", "b")
    assert admitted(tracker, "cb", 1) == ("c", "b")
    assert admitted(tracker, "", 2) == ()


@quick
@given(SEQUENCES, LIMITS)
def test_the_tracker_is_the_keys_seen_last_with_their_unbroken_counts(
    keys: list[str], limit: int
) -> None:
    # Said once more without a tracker: a key is forgotten between two sights of it if `limit`
    # other keys were seen in between.
    counts: list[int] = []
    for at, key in enumerate(keys):
        before = [i for i in range(at) if keys[i] == key]
        kept = bool(before) and len(set(keys[before[-1] + 1 : at])) < limit
        counts.append(counts[before[-1]] + 1 if kept else 1)
    last = {key: at for at, key in enumerate(keys)}
    expected = [(keys[at], counts[at]) for at in sorted(last.values())[-limit:]]
    assert list(observe_all((), keys, limit)) == expected


@quick
@given(SEQUENCES, SEQUENCES, LIMITS)
def test_how_lookups_are_cut_into_calls_does_not_matter(
    first: list[str], second: list[str], limit: int
) -> None:
    halfway = observe_all((), first, limit)
    assert observe_all(halfway, second, limit) == observe_all((), first + second, limit)


@quick
@given(SEQUENCES, SEQUENCES, LIMITS, THRESHOLDS)
def test_what_is_admitted_is_what_qualifies_in_order(
    seen: list[str], offered: list[str], limit: int, threshold: int
) -> None:
    tracker = observe_all((), seen, limit)
    expected = [key for key in offered if dict(tracker).get(key, 0) >= threshold]
    assert list(admitted(tracker, offered, threshold)) == expected


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["look", "offer"]), st.lists(st.sampled_from(KEYS), max_size=5)),
    max_size=30,
)


@quick
@given(OPERATIONS, THRESHOLDS, LIMITS)
def test_the_classes_do_what_the_core_says(
    operations: list[tuple[str, list[OffloadKey]]], threshold: int, limit: int
) -> None:
    for form in (V019, V020):
        filtered, backing = form.recorded(threshold, limit)
        tracker: Tracker[OffloadKey] = ()
        for operation, keys in operations:
            if operation == "look":
                if keys:
                    form.look(filtered, *keys)
                tracker = observe_all(tracker, keys, limit)
            else:
                form.offer(filtered, *keys)
                passed = list(admitted(tracker, keys, threshold))
                assert backing.calls[-1] == ("prepare_store", (passed, *form.extra))
            assert tuple(filtered.counts.items()) == tracker
