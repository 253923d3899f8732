"""The interfaces of all editions, and what the reference classes make of their constructor."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from cachelaw.conformance.hosts import host_calls
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.reference import ReqContext
from cachelaw.reference.editions import EDITIONS, V027, V031, V033, Edition, edition_named
from cachelaw.reference.policy import check_capacity
from cachelaw.reference.protocol import Setting, StoreOffered, perform, start
from cachelaw.specs.registry import CLAUSES

Play = Callable[[Any], None]

FIVE = {"get", "insert", "remove", "touch", "evict"}
"""What a policy has to define in every edition."""

EVERY = pytest.mark.parametrize("edition", EDITIONS, ids=str)
POLICIES = pytest.mark.parametrize("policy", ["LRU", "ARC"])
NO_CAPACITY: list[object] = [0, -1, 2.5, "8", True, None]


COVERED: set[str] = set()
"""The clauses that a test here says it is about."""


def having(clause: str) -> pytest.MarkDecorator:
    """Run a test for each edition that has `clause`."""
    COVERED.add(clause)
    found = [edition for edition in EDITIONS if CLAUSES[clause].holds_in(edition.name)]
    return pytest.mark.parametrize("edition", found, ids=str)


def interface(edition: Edition) -> Any:
    """Return the interface of an edition."""
    return importlib.import_module(edition.module).CachePolicy


def recorder(edition: Edition) -> Any:
    """Make a policy that defines what it must and notes its touches, and nothing else."""

    def nothing(self: Any, *arguments: Any) -> None:
        raise AssertionError("a default hook called something that is not touch")

    def touch(self: Any, *arguments: Any) -> None:
        self.touches.append(arguments)

    body: dict[str, Any] = dict.fromkeys(interface(edition).__abstractmethods__, nothing)
    body |= {"touch": touch, "__init__": lambda self: setattr(self, "touches", [])}
    return type("Recorder", (interface(edition),), body)()


# --- What is abstract, and how it is called ------------------------------------------------------


@having("hooks/the-rest-is-abstract")
def test_what_a_policy_has_to_define(edition: Edition) -> None:
    expected = set(FIVE)
    if edition.has_clear:
        expected.add("clear")
    if edition < V027:
        expected.add("__init__")
    assert interface(edition).__abstractmethods__ == expected


@EVERY
def test_methods_take_what_hosts_pass(edition: Edition) -> None:
    for method, count in host_calls(edition).items():
        signature = inspect.signature(getattr(interface(edition), method))
        assert len(signature.parameters) == count + 1, method  # and self
        signature.bind(*range(count + 1))


@EVERY
@POLICIES
def test_the_reference_takes_what_hosts_pass(edition: Edition, policy: str) -> None:
    found = getattr(importlib.import_module(edition.module), policy)
    for method, count in host_calls(edition).items():
        assert len(inspect.signature(getattr(found, method)).parameters) == count + 1, method


@EVERY
def test_an_interface_is_no_policy(edition: Edition) -> None:
    with pytest.raises(TypeError, match="abstract"):
        interface(edition)(4)


@having("hooks/the-rest-is-abstract")
def test_each_missing_method_is_missed(edition: Edition) -> None:
    names = interface(edition).__abstractmethods__
    for missing in names:
        body = {name: lambda self, *rest: None for name in names - {missing}}
        with pytest.raises(TypeError, match=missing):
            type("Incomplete", (interface(edition),), body)(4)


@EVERY
def test_an_interface_has_those_before_it_in_its_family(edition: Edition) -> None:
    """Two families: the interfaces of before v0.31, and the seed's with those after it."""
    for other in EDITIONS:
        if (other >= V031) == (edition >= V031) and other <= edition:
            assert issubclass(interface(edition), interface(other))


# --- The default hooks ---------------------------------------------------------------------------


@having("hooks/marks-default-to-nothing")
def test_marks_default_to_nothing(edition: Edition) -> None:
    policy = recorder(edition)
    assert policy.mark_evictable(b"a") is None
    assert policy.mark_non_evictable(b"a") is None
    assert vars(policy) == {"touches": []}


@having("hooks/store-miss-defaults-to-touch")
def test_store_miss_defaults_to_touch(edition: Edition) -> None:
    policy, context = recorder(edition), ReqContext("r")
    keys = [b"a", b"b"]
    assert policy.on_store_miss(keys, context) is None
    policy.on_store_miss((), context)
    assert [list(touched) for touched, _ in policy.touches] == [[b"a", b"b"], []]
    assert all(given is context for _, given in policy.touches)


@having("hooks/store-miss-defaults-to-touch")
def test_store_miss_passes_a_one_shot_iterable_on(edition: Edition) -> None:
    policy = recorder(edition)
    policy.on_store_miss(iter([b"a", b"b"]), ReqContext("r"))
    ((touched, _),) = policy.touches
    assert list(touched) == [b"a", b"b"]


@having("hooks/finish-defaults-to-touch")
def test_finish_defaults_to_touch(edition: Edition) -> None:
    policy, context = recorder(edition), ReqContext("r")
    # Neither positions nor the sets of keys play a part in the default.
    for key, position in ((b"a", 3), (b"b", 2), (b"c", 1)):
        context.set_offload_key_position(key, position)  # type: ignore[arg-type]
    groups = ((b"a", b"b"), (), (b"c",))
    assert policy.on_request_finished(groups, {b"a"}, {b"b"}, context) is None
    assert [tuple(touched) for touched, _ in policy.touches] == list(groups)
    assert all(given is context for _, given in policy.touches)


@having("hooks/finish-defaults-to-touch")
def test_finish_of_nothing_touches_nothing(edition: Edition) -> None:
    policy = recorder(edition)
    policy.on_request_finished((), set(), set(), ReqContext("r"))
    assert policy.touches == []


@having("hooks/access-defaults-to-nothing")
def test_access_defaults_to_nothing(edition: Edition) -> None:
    policy, context = recorder(edition), ReqContext("r")
    unread = iter([b"a"])
    assert policy.on_request_access(unread, context) is None
    assert vars(policy) == {"touches": []}
    assert next(unread) == b"a"


def test_every_clause_of_the_hooks_is_here() -> None:
    assert {name for name in CLAUSES if name.startswith(("hooks/", "init/"))} == COVERED


# --- To be subclassed by anyone ------------------------------------------------------------------


class Fifo:
    """First in, first out, in as few lines as it takes; mixed into each edition's interface."""

    queue: dict[Any, Any]

    def __init__(self, cache_capacity: int) -> None:
        self.room, self.queue = cache_capacity, {}

    def get(self, key: Any) -> Any:
        return self.queue.get(key)

    def insert(self, key: Any, chunk: Any, *context: Any) -> None:
        self.queue[key] = chunk

    def remove(self, key: Any) -> None:
        del self.queue[key]

    def touch(self, keys: Iterable[Any], *context: Any) -> None:
        pass

    def evict(self, n: int, protected: set[Any]) -> list[tuple[Any, Any]] | None:
        idle = [k for k, chunk in self.queue.items() if chunk.ref_cnt == 0 and k not in protected]
        return None if len(idle) < n else [(key, self.queue.pop(key)) for key in idle[:n]]

    def clear(self) -> None:
        self.queue.clear()


@EVERY
def test_anyone_can_write_a_policy(edition: Edition) -> None:
    made: Any = type("Mine", (Fifo, interface(edition)), {})
    setting: Setting[int] = Setting(edition, 2)
    status = importlib.import_module(edition.module).ChunkStatus
    instance = Instance(made, setting, status, PlainCodec())
    assert isinstance(instance.policy, interface(edition))
    books = start(setting)
    for key in (1, 2):
        steps = perform(setting, books, StoreOffered((key,), "r"))
        try:
            while True:
                instance.carry_out(next(steps))
        except StopIteration as end:
            books = end.value
        instance.chunks[key].ref_cnt = 0
    assert instance.policy.evict(1, set()) == [(1, instance.chunks[1])]
    assert instance.policy.get(2) is instance.chunks[2]


@pytest.mark.parametrize("edition", [e for e in EDITIONS if e >= V027], ids=str)
def test_the_base_keeps_the_capacity(edition: Edition) -> None:
    """A policy without a constructor of its own is complete from v0.27 on."""
    names = interface(edition).__abstractmethods__
    body = {name: lambda self, *rest: None for name in names}
    made: Any = type("Bare", (interface(edition),), body)
    assert made(cache_capacity=7).cache_capacity == 7
    assert made(7).cache_capacity == 7


@EVERY
@POLICIES
def test_the_reference_can_be_extended(edition: Edition, policy: str) -> None:
    found = getattr(importlib.import_module(edition.module), policy)
    mine = type("Mine", (found,), {"get": lambda self, key: "mine"})(cache_capacity=3)
    assert mine.get(b"a") == "mine"
    assert mine.cache_capacity == 3


# --- The constructor of the reference classes ----------------------------------------------------


@having("init/takes-capacity")
@POLICIES
def test_a_policy_takes_its_capacity(edition: Edition, policy: str) -> None:
    found = getattr(importlib.import_module(edition.module), policy)
    for made in (found(cache_capacity=5), found(5)):
        assert made.cache_capacity == 5
        assert isinstance(made, interface(edition))
    with pytest.raises(TypeError):
        found()


@EVERY
@POLICIES
@pytest.mark.parametrize("capacity", NO_CAPACITY, ids=repr)
def test_what_is_no_capacity_is_named(edition: Edition, policy: str, capacity: object) -> None:
    found = getattr(importlib.import_module(edition.module), policy)
    with pytest.raises(ValueError, match="cache_capacity must be") as caught:
        found(cache_capacity=capacity)
    assert str(caught.value).endswith(f", got {capacity!r}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("capacity", [1, 2, 10**9])
def test_a_capacity_is_returned_as_it_is(capacity: int) -> None:
    assert check_capacity(capacity) is capacity


@EVERY
@POLICIES
def test_a_reference_class_says_what_it_is(edition: Edition, policy: str) -> None:
    """A class that two editions share declares the older; the subject is judged by either."""
    declared = getattr(importlib.import_module(edition.module), policy).cachelaw
    assert declared["profile"] == policy.lower()
    older = edition_named(declared["edition"])
    assert older <= edition
    shared = getattr(importlib.import_module(older.module), policy)
    assert shared is getattr(importlib.import_module(edition.module), policy)


def test_the_newest_classes_say_so() -> None:
    newest = importlib.import_module(V033.module)
    said = {"edition": "v0.33", "specification": True}
    assert newest.LRU.cachelaw == {"profile": "lru", **said}
    assert newest.ARC.cachelaw == {"profile": "arc", **said}
