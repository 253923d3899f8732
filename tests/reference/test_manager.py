"""The minimal manager: its two forms, its refusals, and its books beside those of the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachelaw.reference import v019, v020
from cachelaw.reference.chunk import BlockStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import OffloadKey, make_offload_key
from cachelaw.reference.manager import (
    CPULoadStoreSpec,
    LoadStoreSpec,
    MinimalOffloadingManagerV019,
    MinimalOffloadingManagerV020,
    OffloadingEvent,
    OffloadingManager,
    OffloadingManagerV019,
    OffloadingManagerV020,
    PrepareStoreOutput,
)
from cachelaw.reference.policy import CachePolicyV019, Victims

KEYS = tuple(make_offload_key(letter.encode(), 0) for letter in "abcdef")
A, B, C, D, E, F = KEYS
CONTEXT = ReqContext("r0")

POLICIES = (v019.LRU, v019.ARC)
EXTRA = {MinimalOffloadingManagerV019: (), MinimalOffloadingManagerV020: (CONTEXT,)}
FORMS = tuple(EXTRA)


class Host:
    """One manager and its policy, called in the way of its edition."""

    def __init__(
        self, form: Callable[..., Any], num_blocks: int, policy: Callable[[int], Any] = v019.LRU
    ) -> None:
        self.made: list[Any] = []
        self.manager = form(num_blocks, lambda capacity: self.keep(policy(capacity)))
        self.extra: tuple[Any, ...] = EXTRA[type(self.manager)]

    def keep(self, policy: Any) -> Any:
        self.made.append(policy)
        return policy

    @property
    def policy(self) -> Any:
        (policy,) = self.made
        return policy

    def ready(self, key: OffloadKey) -> bool:
        if self.extra:
            answer = self.manager.lookup(key, *self.extra)
            assert isinstance(answer, bool)
            return answer
        return bool(self.manager.lookup([key]) == 1)

    def offer(self, *keys: OffloadKey) -> PrepareStoreOutput | None:
        output: PrepareStoreOutput | None = self.manager.prepare_store(keys, *self.extra)
        return output

    def store(self, *keys: OffloadKey) -> PrepareStoreOutput:
        output = self.offer(*keys)
        assert output is not None
        self.manager.complete_store(output.keys_to_store)
        return output

    def load(self, *keys: OffloadKey) -> LoadStoreSpec:
        spec: LoadStoreSpec = self.manager.prepare_load(keys, *self.extra)
        return spec

    def snapshot(self) -> tuple[Any, ...]:
        """Everything that could have changed, as values."""
        manager, policy = self.manager, self.policy
        statuses = {key: (b.ref_cnt, b.block_id) for key, b in policy.chunks.items()}
        return (manager._state, list(manager._events), statuses, policy.state)


@pytest.fixture(params=FORMS, ids=["v019", "v020"])
def form(request: pytest.FixtureRequest) -> Any:
    return request.param


# --- What the methods do -------------------------------------------------------------------------


def test_a_block_is_ready_once_its_store_has_succeeded(form: Any) -> None:
    host = Host(form, 2)
    assert not host.ready(A)
    host.offer(A)
    assert not host.ready(A)
    host.manager.complete_store([A])
    assert host.ready(A)


def test_lookup_of_v019_is_the_leading_ready_run() -> None:
    host = Host(MinimalOffloadingManagerV019, 4)
    host.store(A, B, D)
    assert host.manager.lookup([A, B, C, D]) == 2
    assert host.manager.lookup([C, A]) == 0
    assert host.manager.lookup([]) == 0
    assert host.manager.lookup([A, A, B]) == 3


def test_lookup_of_v019_stops_at_the_first_that_is_not_ready() -> None:
    host = Host(MinimalOffloadingManagerV019, 4)
    host.store(A)
    keys = iter([A, B, C, D])
    assert host.manager.lookup(keys) == 1
    assert list(keys) == [C, D]


def test_an_offer_takes_in_what_is_absent_in_its_order(form: Any) -> None:
    host = Host(form, 4)
    host.store(B)
    output = host.offer(C, B, A)
    assert output == PrepareStoreOutput([C, A], CPULoadStoreSpec((1, 2)), [])


def test_an_offer_of_nothing_new_stores_nothing_even_if_the_cache_is_full(form: Any) -> None:
    host = Host(form, 1)
    host.store(A)
    nothing = PrepareStoreOutput([], CPULoadStoreSpec(()), [])
    assert host.offer(A) == nothing
    assert host.offer() == nothing


def test_an_offer_evicts_as_much_as_slots_are_short(form: Any) -> None:
    host = Host(form, 3)
    host.store(A, B)
    output = host.offer(C, D)
    assert output is not None
    assert (output.keys_to_store, output.evicted_keys) == ([C, D], [A])
    assert not host.ready(A)
    assert host.ready(B)


def test_the_slot_of_a_victim_is_used_again(form: Any) -> None:
    host = Host(form, 1)
    assert host.store(A).store_spec == CPULoadStoreSpec((0,))
    assert host.store(B).store_spec == CPULoadStoreSpec((0,))


def test_an_offer_evicts_none_of_its_own_keys(form: Any) -> None:
    host = Host(form, 2)
    host.store(A, B)
    output = host.offer(A, C)
    assert output is not None
    assert output.evicted_keys == [B]


def test_a_refused_offer_is_none_and_changes_nothing(form: Any) -> None:
    host = Host(form, 2)
    host.store(A, B)
    host.load(A)
    before = host.snapshot()
    assert host.offer(C, D) is None
    assert host.snapshot() == before


def test_a_load_pins_until_as_many_have_ended(form: Any) -> None:
    host = Host(form, 1)
    host.store(A)
    assert host.load(A) == CPULoadStoreSpec((0,))
    host.load(A)
    host.manager.complete_load([A])
    assert host.offer(B) is None
    host.manager.complete_load([A])
    output = host.offer(B)
    assert output is not None
    assert output.evicted_keys == [A]


def test_a_failed_store_is_forgotten_and_is_no_news(form: Any) -> None:
    host = Host(form, 1)
    host.offer(A)
    host.manager.complete_store([A], False)
    assert not host.ready(A)
    assert host.manager.take_events() == []
    assert host.store(B).evicted_keys == []


def test_touch_reaches_the_policy(form: Any) -> None:
    host = Host(form, 2)
    host.store(A, B)
    host.manager.touch([F, A])
    assert host.store(C).evicted_keys == [B]
    host.manager.touch([C, A])  # tail first, so that the head is the last to leave
    assert host.store(D, E).evicted_keys == [A, C]


def test_events_come_in_order_and_once(form: Any) -> None:
    host = Host(form, 2)
    host.store(A, B)
    host.store(C, D)
    host.manager.complete_store([])
    assert host.manager.take_events() == [
        OffloadingEvent([A, B], "CPU", False),
        OffloadingEvent([A, B], "CPU", True),
        OffloadingEvent([C, D], "CPU", False),
    ]
    assert host.manager.take_events() == []


def test_the_policy_reads_the_ref_count_that_the_manager_writes(form: Any) -> None:
    host = Host(form, 1)
    host.offer(A)
    block = host.policy.get(A)
    assert isinstance(block, BlockStatus)
    counts = [block.ref_cnt]
    host.manager.complete_store([A])
    counts.append(block.ref_cnt)
    host.load(A)
    counts.append(block.ref_cnt)
    host.load(A)
    counts.append(block.ref_cnt)
    host.manager.complete_load([A])
    counts.append(block.ref_cnt)
    assert counts == [-1, 0, 1, 2, 1]


def test_one_shot_iterables_are_enough(form: Any) -> None:
    host = Host(form, 2)
    host.manager.prepare_store(iter([A, B]), *host.extra)
    host.manager.complete_store(iter([A, B]))
    assert host.manager.prepare_load(iter([B]), *host.extra) == CPULoadStoreSpec((1,))
    host.manager.complete_load(iter([B]))
    host.manager.touch(iter([A]))
    output = host.manager.prepare_store(iter([C]), *host.extra)
    assert output.evicted_keys == [B]


class Fifo(CachePolicyV019):
    """A policy of somebody else's: the five methods and no more."""

    def __init__(self, cache_capacity: int) -> None:
        self.blocks: dict[OffloadKey, Any] = {}

    def get(self, key: OffloadKey) -> Any:
        return self.blocks.get(key)

    def insert(self, key: OffloadKey, chunk: Any) -> None:
        self.blocks[key] = chunk

    def remove(self, key: OffloadKey) -> None:
        del self.blocks[key]

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        pass

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        assert type(protected) is set  # as a host hands it over
        idle = [k for k, b in self.blocks.items() if b.ref_cnt == 0 and k not in protected][:n]
        return [(key, self.blocks.pop(key)) for key in idle] if len(idle) == n else None


def test_any_policy_of_the_edition_will_do(form: Any) -> None:
    host = Host(form, 2, Fifo)
    host.store(A, B)
    host.manager.touch([A])
    assert host.store(C).evicted_keys == [A]
    host.offer(D)
    host.manager.complete_store([D], success=False)
    assert [host.ready(key) for key in KEYS] == [False, False, True, False, False, False]


# --- Misuse --------------------------------------------------------------------------------------


Misuse = Callable[[Host], object]
MISUSES: dict[str, tuple[Misuse, str]] = {
    "load of an absent block": (lambda host: host.load(A, F), f"{F!r} is not ready"),
    "load of a pending block": (lambda host: host.load(A, C), f"{C!r} is not ready"),
    "load of a block twice": (lambda host: host.load(A, A), "a key stands twice in one call"),
    "end of a load that none began": (
        lambda host: host.manager.complete_load([B, A]),
        f"{A!r} is not pinned",
    ),
    "success of a store long done": (
        lambda host: host.manager.complete_store([C, A]),
        f"{A!r} is not pending",
    ),
    "failure of a store never begun": (
        lambda host: host.manager.complete_store([C, F], False),
        f"{F!r} is not pending",
    ),
    "offer of a block twice": (lambda host: host.offer(E, E), "a key stands twice in one call"),
    "touch of a block twice": (
        lambda host: host.manager.touch([A, A]),
        "a key stands twice in one call",
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
@pytest.mark.parametrize("policy", POLICIES)
def test_misuse_raises_the_protocols_objection_and_changes_nothing(
    form: Any, policy: Any, misuse: str
) -> None:
    attempt, reason = MISUSES[misuse]
    host = Host(form, 4, policy)
    host.store(A, B)
    host.load(B)
    host.offer(C)
    before = host.snapshot()
    with pytest.raises(ValueError) as raised:
        attempt(host)
    assert str(raised.value) == reason
    assert host.snapshot() == before


@pytest.mark.parametrize("num_blocks", [0, -1, True, 2.0, "2", None])
def test_a_cache_has_at_least_one_block(form: Any, num_blocks: Any) -> None:
    with pytest.raises(ValueError, match=repr(num_blocks)):
        form(num_blocks, v019.LRU)


# --- The interface -------------------------------------------------------------------------------


def test_what_is_not_abstract_does_nothing() -> None:
    manager = OffloadingManager()
    manager.touch([A])
    manager.complete_load([A])
    manager.complete_store([A], success=False)
    assert list(manager.take_events()) == []


@pytest.mark.parametrize("interface", [OffloadingManagerV019, OffloadingManagerV020])
def test_three_methods_are_abstract(interface: Any) -> None:
    assert interface.__abstractmethods__ == {"lookup", "prepare_load", "prepare_store"}


def test_the_medium_is_the_cpu() -> None:
    assert CPULoadStoreSpec.medium() == "CPU"
    assert issubclass(CPULoadStoreSpec, LoadStoreSpec)
    with pytest.raises(TypeError):
        LoadStoreSpec()  # type: ignore[abstract]


def test_policies_of_both_editions_are_the_same() -> None:
    assert (v020.LRU, v020.ARC) == POLICIES


# --- Any sequence --------------------------------------------------------------------------------

OPERATIONS = ("offer", "offer", "succeed", "succeed", "fail", "load", "unload", "touch", "look")
STEPS = st.lists(
    st.tuples(
        st.sampled_from((*OPERATIONS, "events")),
        st.lists(st.integers(0, len(KEYS) - 1), min_size=1, max_size=4, unique=True),
        st.sampled_from((True, True, True, False)),
    ),
    min_size=10,
    max_size=40,
)


def keys_for(operation: str, numbers: list[int], chunks: Any) -> list[OffloadKey]:
    """Choose keys by number among those that `operation` is allowed for."""
    fits: Callable[[int], bool] = {
        "succeed": lambda ref_cnt: ref_cnt < 0,
        "fail": lambda ref_cnt: ref_cnt < 0,
        "load": lambda ref_cnt: ref_cnt >= 0,
        "unload": lambda ref_cnt: ref_cnt > 0,
    }[operation]
    fitting = [key for key in KEYS if key in chunks and fits(chunks[key].ref_cnt)]
    return list({fitting[number % len(fitting)]: None for number in numbers}) if fitting else []


def take_step(host: Host, operation: str, keys: list[OffloadKey]) -> Any:
    """Call one method; misuse is part of the game. Returns what a caller would see."""
    manager = host.manager
    methods: dict[str, Callable[[], Any]] = {
        "offer": lambda: host.offer(*keys),
        "succeed": lambda: manager.complete_store(keys),
        "fail": lambda: manager.complete_store(keys, success=False),
        "load": lambda: host.load(*keys),
        "unload": lambda: manager.complete_load(keys),
        "touch": lambda: manager.touch(keys),
        "look": lambda: [host.ready(key) for key in keys],
        "events": lambda: manager.take_events(),
    }
    before = host.snapshot()
    try:
        answer = methods[operation]()
    except ValueError as error:
        assert host.snapshot() == before
        return str(error)
    if operation == "look":
        assert host.snapshot() == before
    return answer


def news(log: Iterable[tuple[str, Any]]) -> Iterator[OffloadingEvent]:
    for operation, answer in log:
        if operation == "events":
            yield from answer


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.sampled_from(POLICIES), st.integers(1, 4), STEPS)
def test_books_policy_and_statuses_agree_after_every_step(
    policy: Any, num_blocks: int, steps: list[tuple[str, list[int], bool]]
) -> None:
    hosts = [Host(form, num_blocks, policy) for form in FORMS]
    log = []
    for operation, numbers, valid in [*steps, ("events", [], True)]:
        keys = [KEYS[number] for number in numbers]
        if valid and operation in ("succeed", "fail", "load", "unload"):
            keys = keys_for(operation, numbers, hosts[0].manager._state.chunks)
        answers = [take_step(host, operation, keys) for host in hosts]
        assert answers[0] == answers[1]  # the editions differ in form only
        log.append((operation, answers[0]))
        for host in hosts:
            chunks = host.manager._state.chunks
            assert len(chunks) <= num_blocks
            assert sorted([*host.manager._state.free, *(c.slot for c in chunks.values())]) == list(
                range(num_blocks)
            )
            held = {key: (b.ref_cnt, b.block_id) for key, b in host.policy.chunks.items()}
            assert held == {key: (c.ref_cnt, c.slot) for key, c in chunks.items()}
            assert host.manager._blocks == host.policy.chunks
    resident: set[OffloadKey] = set()
    for event in news(log):
        keys_of_event = set(event.keys)
        assert keys_of_event
        if event.removed:
            assert keys_of_event <= resident
            resident -= keys_of_event
        else:
            assert not keys_of_event & resident
            resident |= keys_of_event
    assert resident == {k for k, c in hosts[0].manager._state.chunks.items() if c.ref_cnt >= 0}
