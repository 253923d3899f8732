"""Hypothesis writes the programs: the classes of the editions beside their functional cores.

A machine is a manager with two policies, the class that hosts drive and the core that the explorer
explores. Rules are the events of the protocol; `objection` says which are possible, and `perform`
what they come to. After each event both have answered alike and know the same, and what the
explorer asks of every state holds.

The explorer is complete at small scope, these machines are not complete at any. They go where it
does not: capacities up to 8, long batches, requests of all kinds at a time.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cachelaw.conformance.explore.calls import ABSENT
from cachelaw.conformance.explore.invariants import invariants_of, tracker_check
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.trace import REQUEST_KINDS, Event, Layout
from cachelaw.reference import arc, lru, recency, v024, v031, v033
from cachelaw.reference.context import ReqContext
from cachelaw.reference.cores import Core, World, core_of
from cachelaw.reference.editions import V019, V024, V031, V033
from cachelaw.reference.lru import RequestRank
from cachelaw.reference.protocol import (
    Call,
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
from cachelaw.reference.reuse_filter import (
    FilterReusedOffloadingManagerV019,
    FilterReusedOffloadingManagerV020,
    Tracker,
    admitted,
    observe_all,
)

KEYS = 12
CAPACITIES = st.integers(1, 8)
BATCHES = st.lists(st.integers(0, KEYS - 1), max_size=6, unique=True).map(tuple)

TO_MEMORY = ("insert", "on_request_access")
"""The calls that a policy may note something of in the request's context."""


# --- Policies ------------------------------------------------------------------------------------


class Policies(RuleBasedStateMachine):
    """A manager over a class and a core; what is under test is said by the subclasses.

    Attributes:
        core: the functional core.
        build: makes the class's policy from a capacity.
    """

    core: ClassVar[Core]
    build: ClassVar[Callable[[int], Any]]

    requests = Bundle("requests")

    @initialize(capacity=CAPACITIES, groups=st.integers(1, 2))
    def begin(self, capacity: int, groups: int) -> None:
        edition, layout = self.core.edition, Layout(groups)
        self.setting = Setting(edition, capacity, layout.group_of, layout.position_of)
        self.books: State[int] = start(self.setting)
        self.state = self.core.start(capacity)
        self.memories: dict[str, RequestRank | None] = {}
        status = importlib.import_module(edition.module).ChunkStatus
        self.instance = Instance(type(self).build, self.setting, status, PlainCodec())
        self.begun = 0

    # --- the two policies, and the manager that drives them ---

    def happen(self, event: Event) -> None:
        """Let an event happen; both policies must answer alike."""
        assert objection(self.setting, self.books, event) is None
        steps = perform(self.setting, self.books, event)
        answer: tuple[int, ...] | None = None
        try:
            while True:
                answer = self.carry_out(steps.send(answer))
        except StopIteration as end:
            self.books = end.value

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        """Make a call on both policies; return what they agree on."""
        chunks = self.instance.chunks
        answer = self.instance.carry_out(call)
        request = call.arguments[-1] if call.method in TO_MEMORY else ""
        world = World(
            lambda key: int(chunks[key].ref_cnt),
            self.setting.position_of,
            self.memories.get(request),
        )
        self.state, victims, memory = self.core.apply(self.state, call, world)
        if call.method in TO_MEMORY:
            self.memories[request] = memory
        if call.method == "get":
            assert answer is chunks.get(call.arguments[0])
        elif call.method == "evict":
            left = None if answer is None else tuple(key for key, _ in answer)
            assert left == victims, f"the class evicts {left}, the core {victims}"
            for key, chunk in answer or ():
                assert chunk is chunks.pop(key)
        else:
            assert answer is None
        return victims

    def possible(self, make: Callable[[tuple[int, ...]], Event]) -> list[int]:
        """Return the keys that an event could be about."""
        keys = range(KEYS)
        return [key for key in keys if objection(self.setting, self.books, make((key,))) is None]

    def some(self, data: st.DataObject, make: Callable[[tuple[int, ...]], Event]) -> None:
        """Let an event happen to one key or more that it could be about."""
        keys = st.lists(st.sampled_from(self.possible(make)), min_size=1, max_size=4, unique=True)
        self.happen(make(tuple(data.draw(keys))))

    # --- what happens ---

    @rule(target=requests, kind=st.sampled_from(sorted(REQUEST_KINDS)))
    def a_request_begins(self, kind: str) -> str:
        self.begun += 1
        return f"{kind}{self.begun}"

    @rule(request=requests, first=st.integers(0, KEYS - 1), length=st.integers(1, 6))
    def a_prefix_is_offered(self, request: str, first: int, length: int) -> None:
        keys = tuple(range(first, min(KEYS, first + length)))
        self.happen(StoreOffered(keys[::-1] if request[0] == "s" else keys, request))

    @rule(request=requests, keys=BATCHES)
    def keys_are_offered(self, request: str, keys: tuple[int, ...]) -> None:
        self.happen(StoreOffered(keys, request))

    @precondition(lambda self: self.possible(StoreSucceeds))
    @rule(data=st.data())
    def stores_succeed(self, data: st.DataObject) -> None:
        self.some(data, StoreSucceeds)

    @precondition(lambda self: self.possible(StoreSucceeds))
    @rule()
    def all_stores_succeed(self) -> None:
        self.happen(StoreSucceeds(tuple(self.possible(StoreSucceeds))))

    @precondition(lambda self: self.possible(StoreFails))
    @rule(data=st.data())
    def stores_fail(self, data: st.DataObject) -> None:
        self.some(data, StoreFails)

    @precondition(lambda self: self.possible(lambda keys: LoadStarts(keys, "")))
    @rule(data=st.data(), request=requests, recorded=st.booleans())
    def loads_start(self, data: st.DataObject, request: str, recorded: bool) -> None:
        self.some(data, lambda keys: LoadStarts(keys, request, recorded))

    @precondition(lambda self: self.possible(LoadEnds))
    @rule(data=st.data())
    def loads_end(self, data: st.DataObject) -> None:
        self.some(data, LoadEnds)

    @rule(request=requests, keys=BATCHES)
    def keys_are_touched(self, request: str, keys: tuple[int, ...]) -> None:
        self.happen(Touch(keys, request))

    @rule(key=st.integers(0, KEYS - 1))
    def a_key_is_looked_up(self, key: int) -> None:
        self.happen(Lookup(key))

    @rule(n=st.integers(0, 5), protected=st.frozensets(st.integers(0, KEYS - 1), max_size=4))
    def chunks_are_evicted(self, n: int, protected: frozenset[int]) -> None:
        self.happen(Evict(n, protected))

    @precondition(lambda self: self.core.edition.has_request_hooks)
    @rule(request=consumes(requests))
    def a_request_ends(self, request: str) -> None:
        # Since a reset it may have done nothing; then nobody hears of its end.
        assume(objection(self.setting, self.books, RequestEnds(request)) is None)
        self.happen(RequestEnds(request))

    @precondition(lambda self: objection(self.setting, self.books, Reset()) is None)
    @rule()
    def the_cache_is_reset(self) -> None:
        self.happen(Reset())

    # --- what always holds ---

    @invariant()
    def both_know_the_same(self) -> None:
        assert self.instance.policy.state == self.state

    @invariant()
    def clauses_hold(self) -> None:
        chunks = self.books.chunks
        refs = tuple(chunks[key].ref_cnt if key in chunks else ABSENT for key in range(KEYS))
        for holds, clause in invariants_of(self.core).items():
            assert holds(self.state, refs), f"{clause} is broken in {self.state}"


def machine(core: Core, build: Callable[[int], Any] | None = None) -> type[Policies]:
    """Make the machine of a core beside a class, by default that of its edition."""
    build = build or getattr(importlib.import_module(core.edition.module), core.profile.upper())
    attributes = {"core": core, "build": staticmethod(build)}
    return type(f"{core.profile.upper()}{core.edition.module[-3:]}", (Policies,), attributes)


@pytest.mark.parametrize("edition", [V019, V024, V031, V033], ids=str)
@pytest.mark.parametrize("profile", ["lru", "arc"])
def test_the_class_does_what_the_core_does(profile: str, edition: Any) -> None:
    run_state_machine_as_test(machine(core_of(profile, edition)))


# --- The filter ----------------------------------------------------------------------------------


class Backing:
    """A manager that hands back what it is given."""

    def lookup(self, keys: Any, *context: ReqContext) -> Any:
        return keys

    def prepare_store(self, keys: Any, *context: ReqContext) -> Any:
        return keys

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given: given


class Filters(RuleBasedStateMachine):
    """Both forms of the filter beside the functional tracker.

    Attributes:
        many: makes the filter whose lookup takes many keys.
        single: makes the filter whose lookup takes one.
    """

    many: ClassVar[Callable[..., Any]] = FilterReusedOffloadingManagerV019
    single: ClassVar[Callable[..., Any]] = FilterReusedOffloadingManagerV020

    @initialize(threshold=st.integers(2, 4), limit=st.integers(1, 6))
    def begin(self, threshold: int, limit: int) -> None:
        self.threshold, self.limit = threshold, limit
        self.tracker: Tracker[int] = ()
        self.filters = [
            made(Backing(), threshold, limit) for made in (type(self).many, type(self).single)
        ]

    @rule(keys=st.lists(st.integers(0, 7), max_size=8))
    def keys_are_looked_up(self, keys: list[int]) -> None:
        self.tracker = observe_all(self.tracker, keys, self.limit)
        many, single = self.filters
        assert many.lookup(iter(keys)) == keys
        assert [single.lookup(key, ReqContext("r")) for key in keys] == keys

    @rule(keys=st.lists(st.integers(0, 7), max_size=8))
    def keys_are_offered(self, keys: list[int]) -> None:
        passed = list(admitted(self.tracker, keys, self.threshold))
        many, single = self.filters
        assert many.prepare_store(iter(keys)) == passed
        assert single.prepare_store(iter(keys), ReqContext("r")) == passed

    @rule(keys=st.lists(st.integers(0, 7), max_size=3), success=st.booleans())
    def all_else_happens(self, keys: list[int], success: bool) -> None:
        for made in self.filters:
            made.touch(keys)
            made.complete_store(keys, success)
            made.complete_load(keys)
            made.take_events()

    @invariant()
    def all_know_the_same(self) -> None:
        for made in self.filters:
            assert tuple(made.counts.items()) == self.tracker

    @invariant()
    def clauses_hold(self) -> None:
        assert tracker_check(self.limit)(self.tracker) is None


def test_the_filters_do_what_the_tracker_does() -> None:
    run_state_machine_as_test(Filters)


# --- The machines can fail -----------------------------------------------------------------------


class TouchesBusy(v024.LRU):
    """A touch gives busy chunks a place."""

    def touch(self, keys: Iterable[Any]) -> None:
        for key in reversed(list(keys)):
            if key in self.state.resident:
                self.state = lru.evictable_mark(self.state, key)


class PromotesPending(v031.ARC):
    """A touch promotes chunks whose store is under way."""

    def touch(  # type: ignore[override]  # the interface broke in v0.26
        self, keys: Iterable[Any], req_context: ReqContext
    ) -> None:
        self.state = arc.touch(self.state, keys, lambda key: 0)


class RemembersAcrossResets(v033.LRU):
    """A number that was given before a reset is good after it."""

    def clear(self) -> None:
        self.chunks.clear()
        self.state = lru.RankedOrder(generation=self.state.generation)


class HeadFirst(v031.LRU):
    """Groups are not woven together at the end of a request."""

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[Any]],
        insertion_only_keys: Any,
        reused_keys: Any,
        req_context: ReqContext,
    ) -> None:
        self.state = lru.list_touch(self.state, [key for group in key_groups for key in group])


class DropsTheMostRecent(FilterReusedOffloadingManagerV019):
    """A full tracker loses what was seen last."""

    def _observe(self, key: Any) -> None:
        count = self.counts.pop(key, 0)
        if count == 0 and len(self.counts) >= self.max_tracker_size:
            self.counts.popitem()
        self.counts[key] = count + 1


def to_find() -> settings:
    """Return settings under which a fault is found, but not shrunk: that takes longest."""
    return settings(phases=[Phase.generate], max_examples=400)


@pytest.mark.parametrize(
    ("core", "mutant"),
    [
        (core_of("lru", V024), TouchesBusy),
        (core_of("lru", V031), HeadFirst),
        (core_of("lru", V033), RemembersAcrossResets),
        (core_of("arc", V031), PromotesPending),
    ],
    ids=["lru v0.24", "lru v0.31", "lru v0.33", "arc v0.31"],
)
def test_a_wrong_class_is_found(core: Core, mutant: Callable[[int], Any]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine(core, mutant), settings=to_find())


def test_a_wrong_filter_is_found() -> None:
    wrong = type("Wrong", (Filters,), {"many": DropsTheMostRecent})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(wrong, settings=to_find())


def test_a_wrong_core_is_found_by_its_invariants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Class and core are wrong alike; what they know is not what a clause asks for."""
    monkeypatch.setattr(lru, "evictable_unmark", lambda state, key: state)
    with pytest.raises(AssertionError, match="lru/becoming-idle-is-use is broken"):
        run_state_machine_as_test(machine(core_of("lru", V024)), settings=to_find())
    monkeypatch.setattr(arc, "trim", lambda order, limit: recency.trim(order, limit + 1))
    with pytest.raises(AssertionError, match="arc/ghosts-trimmed-to-capacity is broken"):
        run_state_machine_as_test(machine(core_of("arc", V019)), settings=to_find())
