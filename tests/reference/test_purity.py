"""The functional cores are functional, the classes over them thin, and all of it self-contained."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cachelaw.reference.policy
from cachelaw.reference import arc, lru
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import World, all_cores, core_of
from cachelaw.reference.editions import EDITIONS, V033, Edition
from cachelaw.reference.lru import EvictableOrder, RankedOrder, RequestRank
from cachelaw.reference.protocol import Call

if TYPE_CHECKING:
    from tests.reference.conftest import Host

EVERY = pytest.mark.parametrize("edition", EDITIONS, ids=str)
POLICIES = pytest.mark.parametrize("policy", ["lru", "arc"])

# --- Core functions leave their arguments alone --------------------------------------------------

LIST = ("a", "b", "c", "d")
IDLE = EvictableOrder(frozenset("abcd"), ("a", "b", "d"))
RANKED = RankedOrder((((1, -3), "a"), ((1, -2), "b"), ((2, 0), "c"), ((3, 0), "d")), serial=3)
ARC = ArcState(4, 1.5, ("a", "b"), ("c", "d"), ("x", "y"), ("u", "v", "w"))
COUNTS = {"a": 0, "b": -1, "c": 2, "d": 0}
MEMORY = RequestRank(2, 0)

# Each function, its first argument, and the others: mutable ones are given as lists and sets.
CALLS: list[tuple[Callable[..., Any], Any, tuple[Any, ...]]] = [
    (lru.list_insert, LIST, ("e",)),
    (lru.list_remove, LIST, ("b",)),
    (lru.list_touch, LIST, (["b", "z", "a"],)),
    (lru.list_evict, LIST, (1, {"a"}, COUNTS.__getitem__)),
    (lru.list_evict, LIST, (3, {"a"}, COUNTS.__getitem__)),
    (lru.evictable_insert, IDLE, ("e", -1)),
    (lru.evictable_insert, IDLE, ("e", 0)),
    (lru.evictable_remove, IDLE, ("c",)),
    (lru.evictable_touch, IDLE, (["b", "z", "a"],)),
    (lru.evictable_evict, IDLE, (1, {"a"})),
    (lru.evictable_evict, IDLE, (3, {"a"})),
    (lru.evictable_mark, IDLE, ("c",)),
    (lru.evictable_unmark, IDLE, ("a",)),
    (lru.ranked_insert, RANKED, ("e", None, None)),
    (lru.ranked_insert, RANKED, ("e", 7, MEMORY)),
    (lru.ranked_insert, RANKED, ("e", 7, None)),
    (lru.ranked_remove, RANKED, ("b",)),
    (lru.ranked_touch, RANKED, (["b", "z", "a"],)),
    (lru.ranked_access, RANKED, ([("a", 9), ("c", None), ("z", 3)], MEMORY)),
    (lru.ranked_evict, RANKED, (1, {"a"}, COUNTS.__getitem__)),
    (lru.ranked_evict, RANKED, (3, {"a"}, COUNTS.__getitem__)),
    (lru.ranked_clear, RANKED, ()),
    (arc.insert, ARC, ("x",)),
    (arc.remove, ARC, ("a",)),
    (arc.touch, ARC, (["x", "a", "b", "c", "u"], COUNTS.__getitem__)),
    (arc.store_miss, ARC, (["x", "u", "z"],)),
    (arc.finish, ARC, (["a", "c", "b", "x"], {"a", "x"}, {"b", "c"})),
    (arc.evict, ARC, (1, {"a"}, COUNTS.__getitem__)),
    (arc.evict, ARC, (3, {"a"}, COUNTS.__getitem__)),
    (arc.clear, ARC, ()),
]


def named(call: tuple[Callable[..., Any], Any, tuple[Any, ...]]) -> str:
    """Name a call in the report of a test."""
    return call[0].__name__


def copied(argument: Any) -> Any:
    """Copy a mutable argument."""
    return argument.copy() if isinstance(argument, list | set) else argument


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_a_core_function_leaves_its_arguments_alone(
    call: tuple[Callable[..., Any], Any, tuple[Any, ...]],
) -> None:
    function, state, arguments = call
    shown, kept = repr(state), [copied(argument) for argument in arguments]
    counts = dict(COUNTS)
    first = function(state, *arguments)
    assert repr(state) == shown
    assert list(arguments) == kept
    assert counts == COUNTS
    # And no memory of a call is left anywhere.
    assert function(state, *arguments) == first
    hash(first)


def test_every_core_function_is_called() -> None:
    called = {function for function, _, _ in CALLS}
    helpers = {lru.place, lru.rank_of, lru.number_request}
    for module in (lru, arc):
        for name, value in vars(module).items():
            is_own = getattr(value, "__module__", "") == module.__name__
            if is_own and not name.startswith("_") and not isinstance(value, type):
                assert value in called | helpers or not callable(value), name


@pytest.mark.parametrize("state", [IDLE, RANKED, ARC, MEMORY], ids=lambda s: type(s).__name__)
def test_a_state_cannot_be_changed(state: Any) -> None:
    for field in type(state).__dataclass_fields__:
        with pytest.raises(AttributeError):
            setattr(state, field, None)
    with pytest.raises((AttributeError, TypeError)):  # CPython 3.10 and 3.11 raise TypeError
        state.another = None


# --- States as values ----------------------------------------------------------------------------


@EVERY
@POLICIES
def test_equal_states_hash_equal(host: type[Host], edition: Edition, policy: str) -> None:
    """Two hosts that live through the same have equal states, made apart from each other."""
    for seed in range(3):
        one = host.of_layout(edition, policy, 3, groups=2)
        other = host.of_layout(edition, policy, 3, groups=2)
        states = [one.state]
        for event in one.at_random(seed, 60):
            other.happen(event)
            assert one.state == other.state
            assert hash(one.state) == hash(other.state)
            states.append(one.state)
        # A set of them holds each once.
        distinct = [state for at, state in enumerate(states) if state not in states[:at]]
        assert len(set(states)) == len(distinct) > 1


def test_states_that_differ_are_different() -> None:
    assert len({ARC, ArcState(4), ArcState(5), ArcState(4, 1.0), ArcState(4, 0.0, ("a",))}) == 5
    assert ArcState(4, 0.0, ("a",)) != ArcState(4, 0.0, (), ("a",))
    assert len({RANKED, replace(RANKED, serial=4), replace(RANKED, generation=1)}) == 3
    assert EvictableOrder(frozenset("a"), ()) != EvictableOrder(frozenset("a"), ("a",))


@EVERY
@POLICIES
def test_a_state_that_was_left_behind_does_not_change(
    host: type[Host], edition: Edition, policy: str
) -> None:
    cache = host.of_layout(edition, policy, 4)
    past: list[tuple[Any, str]] = []
    for _ in cache.at_random(seed=5, events=60):
        past.append((cache.state, repr(cache.state)))
    assert all(repr(state) == shown for state, shown in past)


# --- The classes add nothing to the core ---------------------------------------------------------


class Pure:
    """The core of one policy, driven by the calls of the protocol without any class.

    Args:
        cache: where edition, capacity, groups and positions are taken from.
        policy: `lru` or `arc`.
    """

    def __init__(self, cache: Host, policy: str) -> None:
        self.core = core_of(policy, cache.edition)
        self.state = self.core.start(cache.setting.capacity)
        self.position_of = cache.setting.position_of
        self.counts: dict[int, int] = {}
        self.memories: dict[str, RequestRank | None] = {}

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        """Make one call; return the victims of an evict."""
        method, arguments = call
        if method == "set_ref_cnt":
            self.counts[arguments[0]] = arguments[1]
        if method == "insert":
            self.counts[arguments[0]] = -1
        has_request = method in ("insert", "touch") or method.startswith("on_")
        request = arguments[-1] if has_request else ""
        world = World(self.counts.__getitem__, self.position_of, self.memories.get(request))
        self.state, victims, self.memories[request] = self.core.apply(self.state, call, world)
        return victims


@EVERY
@POLICIES
@pytest.mark.parametrize("groups", [1, 3])
def test_the_class_equals_the_core(
    host: type[Host], edition: Edition, policy: str, groups: int
) -> None:
    evicted = 0
    for seed in range(6):
        cache = host.of_layout(edition, policy, capacity=1 + 2 * seed, groups=groups)
        core = Pure(cache, policy)
        for event in cache.at_random(seed, 120):
            answers = []
            for call in cache.calls:
                answer = core.carry_out(call)
                if call.method == "evict":
                    answers.append(answer)
                    evicted += len(answer or ())
            assert answers == cache.answers, event
            assert core.state == cache.state, event
    assert evicted > 20


@EVERY
@POLICIES
def test_the_class_keeps_the_very_objects(host: type[Host], edition: Edition, policy: str) -> None:
    """get/same-object and evict/same-object; a class adds the objects to the keys of the core."""
    cache = host(edition, policy, 3)
    cache.store(1, 2, 3)
    given = dict(cache.instance.chunks)
    assert all(cache.policy.get(key) is given[key] for key in given)
    answer = cache.policy.evict(2, {2})
    assert [key for key, _ in answer] == [1, 3]
    assert all(chunk is given[key] for key, chunk in answer)
    assert all(type(pair) is tuple for pair in answer)
    assert cache.policy.get(1) is None
    assert cache.policy.get(2) is given[2]


@EVERY
@POLICIES
def test_a_class_lets_go_of_what_was_removed(
    host: type[Host], edition: Edition, policy: str
) -> None:
    """remove/forgets, clear/forgets-all: the object goes with its key."""
    cache = host(edition, policy, 3)
    cache.store(1)
    cache.offer(2)
    first = cache.policy.get(2)
    cache.fail(2)
    assert cache.policy.get(2) is None
    cache.offer(2)
    assert cache.policy.get(2) is not first
    assert cache.policy.get(2) is cache.instance.chunks[2]
    if edition.has_clear:
        cache.reset()
        assert cache.policy.get(1) is cache.policy.get(2) is None


@EVERY
@POLICIES
def test_a_class_leaves_its_arguments_alone(
    host: type[Host], edition: Edition, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """call/arguments-unchanged, also later: nothing that was passed is kept and changed."""
    passed: list[tuple[Any, Any]] = []
    for seed in range(5):
        cache = host.of_layout(edition, policy, 4, groups=2)
        carry_out = cache.instance.carry_out

        def noting(call: Call, make: Callable[[Call], Any] = carry_out, of: Any = cache) -> Any:
            answer = make(call)
            passed.extend(of.instance.passed)
            return answer

        monkeypatch.setattr(cache.instance, "carry_out", noting)
        for _ in cache.at_random(seed, events=80):
            pass
    assert sum(bool(before) for _, before in passed) > 20
    assert all(collection == before for collection, before in passed)


@EVERY
@POLICIES
def test_instances_share_nothing(host: type[Host], edition: Edition, policy: str) -> None:
    """instances/share-nothing: a neighbour that lives through something else changes nothing."""
    alone = host.of_layout(edition, policy, 3)
    watched, neighbour = (host.of_layout(edition, policy, 3) for _ in range(2))
    others = neighbour.at_random(seed=8, events=80)
    for event in alone.at_random(seed=7, events=80):
        next(others)
        watched.happen(event)
        assert watched.answers == alone.answers
        assert watched.state == alone.state


def test_there_is_a_core_for_every_policy_of_every_edition() -> None:
    found = [(core.profile, core.edition) for core in all_cores()]
    assert sorted(found) == [(policy, e) for policy in ("arc", "lru") for e in EDITIONS]
    with pytest.raises(ValueError, match="'fifo'"):
        core_of("fifo", V033)


# --- Nothing but the standard library ------------------------------------------------------------

FOLDER = Path(cachelaw.reference.policy.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def imported(tree: ast.AST) -> Iterable[str]:
    """Yield the full name of every module that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            yield str(node.module)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_imports_the_standard_library_and_the_reference_alone(path: Path) -> None:
    for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
        own = name == "cachelaw.reference" or name.startswith("cachelaw.reference.")
        assert own or name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_imports_nothing_by_other_means(path: Path) -> None:
    names = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
    }
    assert not names & {"__import__", "import_module", "exec", "eval"}


def test_the_files_are_all_there() -> None:
    assert {"arc.py", "lru.py", "protocol.py", "policy.py", "v033.py"} <= {p.name for p in FILES}
