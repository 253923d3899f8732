"""Equivalence: a mutant that no law finds out may be no mutant at all.

The product of a mutant and the reference: both are given the same calls, in any order, until no
pair of states is left that has not been seen. If every answer was the same, no host can tell the
two apart at that scope. What a scope leaves out, such as longer batches and larger capacities, is
left out of the claim too.

Two alphabets. `calls` gives any call at any time, and so claims the most. Where a mutant differs
there, `protocol` gives only what a manager of the edition would: what no manager does may differ.
Two things have no states to search and are compared one step at a time, from every state that
there is at a scope: how a request's keys are ordered, and the reuse filter's tracker.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import permutations, product
from typing import Any

from cachelaw.conformance.explore.calls import ABSENT, Calls, Scope, settled
from cachelaw.conformance.explore.plan import interchangeable
from cachelaw.conformance.explore.products import Pair, PairSymmetry, differs
from cachelaw.conformance.explore.programs import Programs
from cachelaw.conformance.explore.search import Exploration, Step, explore
from cachelaw.conformance.explore.symmetry import KeySymmetry, orbit, ranks
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.mutants.generated import Mutant
from cachelaw.reference import order as reference_order
from cachelaw.reference import reuse_filter
from cachelaw.reference.arc import ArcState
from cachelaw.reference.cores import Core, Outcome, World, core_of
from cachelaw.reference.lru import EvictableOrder, RankedOrder, RequestRank
from cachelaw.reference.protocol import Call, Setting

STATES = {made.__name__: made for made in (ArcState, EvictableOrder, RankedOrder, RequestRank)}
"""The classes of states. A mutant of one of them has a class of its own."""


class Differs(Exception):
    """The mutant did what the reference does not, or its states could not be kept finite."""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """A mutant that nothing tells from the reference, as far as the scope goes.

    Attributes:
        how: `calls`, `protocol`, or `each step` where states were not searched but listed.
        scope: how far it went, in words.
        states: pairs of states, up to the names of keys where these are interchangeable.
        transitions: calls made on both.
    """

    how: str
    scope: str
    states: int
    transitions: int


def equivalence(mutant: Mutant) -> Equivalence | None:
    """Return what shows that a mutant is no mutant; None if nothing does."""
    if mutant.target.startswith("Filter"):
        return _filter_steps(mutant)
    if mutant.file == "order":
        return _order_steps(mutant)
    for how, search in (("calls", _by_calls), ("protocol", _by_protocol)):
        scope = scope_of(mutant, how)
        try:
            found = search(mutant, scope)
        except Differs:
            continue
        if found.closed:
            return Equivalence(how, _words(scope), found.states, found.transitions)
    return None


def scope_of(mutant: Mutant, how: str) -> Scope:
    """Return the scope at which a mutant's product is searched, by either alphabet."""
    if mutant.target == "LRU v0.33":
        return Scope(2, 3, requests=2 if how == "calls" else 1, pins=1, groups=2)
    if how == "protocol":
        return Scope(2, 3, requests=1, pins=1)
    return Scope(3, 4, pins=1) if mutant.target.startswith("LRU") else Scope(2, 4, pins=1)


def _words(scope: Scope) -> str:
    parts = [f"capacity {scope.capacity}", f"{scope.keys} keys", f"batches of {scope.batch}"]
    if scope.groups > 1:
        parts.append(f"{scope.groups} groups")
    return ", ".join([*parts, f"{scope.requests} requests", f"pins of {scope.pins}"])


# --- A class as a core ---------------------------------------------------------------------------


def class_core(mutant: Mutant, scope: Scope) -> Core:
    """Return a mutant's class as a core: each call on an object that is put into the state before.

    Args:
        mutant: a policy; all that it knows is in `state` and `chunks`, and in what it leaves with
            requests.
        scope: capacity and number of keys.
    """
    core = core_of(mutant.target.partition(" ")[0].lower(), mutant.edition)
    build: Callable[[int], Any] = mutant.build()
    status = mutant.module(mutant.edition.module.rpartition(".")[2]).ChunkStatus
    chapter = "arc" if core.profile == "arc" else "lru"

    @cache
    def setting(position_of: Callable[[str, Any], int | None]) -> Setting[int]:
        return Setting(mutant.edition, scope.capacity, position_of=position_of)

    instance = Instance(build, setting(World(len).position_of), status, PlainCodec())
    policy = instance.policy

    def start(capacity: int) -> Any:
        return _plain(build(capacity).state)

    def own(value: Any) -> Any:
        """Return a state of the reference's classes as one of the mutant's."""
        made = getattr(mutant.module(chapter), type(value).__name__, None)
        return value if made is None else made(*_parts(value))

    def apply(state: Any, call: Call, world: World) -> Outcome:
        outcome = called(state, call, world)
        if isinstance(state, RankedOrder):
            # The search renumbers ranks (`settled`). See that other numbers make no difference.
            stretched = replace(world, memory=_stretched(world.memory))
            before = _stretched(state)
            again = called(before, call, stretched)
            if _settled(state, outcome) != _settled(before, again):
                raise Differs("it is not the order of its numbers alone that counts")
        return outcome

    def called(state: Any, call: Call, world: World) -> Outcome:
        method, arguments = call
        request = arguments[-1] if method in REQUESTED else ""
        instance.setting = setting(world.position_of)
        instance._contexts.clear()  # what requests remember is in the world
        instance.chunks.clear()
        policy.chunks.clear()
        policy.state = own(state)
        new = arguments[0] if method == "insert" else None
        for key in range(scope.keys):
            count = world.ref_cnt(key)
            if count != ABSENT and key != new:
                chunk = status(key)
                chunk.ref_cnt = count
                instance.chunks[key] = policy.chunks[key] = chunk
        residents = set(policy.chunks)
        if world.memory is not None:
            policy._memorize(instance.context(request), own(world.memory))
        answer = instance.carry_out(call)
        victims = None
        if method == "evict" and answer is not None:
            victims = tuple(key for key, _ in answer)
            residents -= set(victims)
        if method == "remove":
            residents.remove(arguments[0])
        if method == "insert":
            residents.add(new)
        if set(policy.chunks) != (set() if method == "clear" else residents):
            raise Differs(f"residents after {call}")
        memory = world.memory
        if hasattr(policy, "recall") and request:
            memory = _plain(policy.recall(instance.context(request)))
        return Outcome(_plain(policy.state), victims, memory)

    return Core(core.profile, mutant.edition, start, apply)


def _stretched(value: Any) -> Any:
    """Return a state, or what a request remembers, with other numbers in the same order."""
    match value:
        case RankedOrder(entries, serial, generation):
            moved = tuple(((2 * rank[0] + 5, rank[1]), key) for rank, key in entries)
            return RankedOrder(moved, 2 * serial + 5, generation + 1)
        case RequestRank(serial, generation):
            return RequestRank(2 * serial + 5, generation + 1)
    return value


def _settled(before: RankedOrder[int], outcome: Outcome) -> Any:
    """Return what may not depend on the numbers, such as whether ranks from before are void."""
    void = outcome.state.generation != before.generation
    return settled(outcome.state, (), (outcome.memory,)), outcome.victims, void


REQUESTED = ("insert", "touch", "on_store_miss", "on_request_access", "on_request_finished")
"""Calls whose last argument is a request."""


def _plain(value: Any) -> Any:
    """Return a state of a mutant's classes as one of the reference's.

    Raises:
        Differs: ranks are not given out in rising order, so that to renumber them may hide
            a difference.
    """
    made = STATES.get(type(value).__name__)
    if made is None:
        return tuple(value) if isinstance(value, list) else value
    state = made(*_parts(value))
    if isinstance(state, RankedOrder) and any(rank[0] > state.serial for rank, _ in state.entries):
        raise Differs("a rank is higher than the last number given out")
    return state


def _parts(state: Any) -> Iterator[Any]:
    """Yield the fields of a state, as values that can be hashed whatever a mutant put there."""
    for field in fields(state):
        part = getattr(state, field.name)
        if isinstance(part, list):
            part = tuple(part)
        yield frozenset(part) if isinstance(part, set) else part


# --- Products ------------------------------------------------------------------------------------


class PairOfCalls:
    """The reference's machine of calls and the mutant's, step by step.

    Args:
        one: the reference's.
        other: the mutant's, of the same scope.
    """

    def __init__(self, one: Calls, other: Calls) -> None:
        self.start = (one.start, other.start)
        self._machines = one, other

    def steps(self, state: Any) -> Iterator[Step[Call, Any]]:
        """Yield each call, whether both answered alike, and the states after."""
        one, other = (
            machine.steps(part) for machine, part in zip(self._machines, state, strict=True)
        )
        for (call, answer, after), (_, given, theirs) in zip(one, other, strict=True):
            alike = answer == given and after[1] == theirs[1]
            yield call, alike, (after, theirs)


class CallsSymmetry:
    """Keys are interchangeable in the pair if they are in both."""

    def __init__(self) -> None:
        self._single = KeySymmetry()

    def _marks(self, state: Any) -> list[Any]:
        one, other = self._single.marks(state[0]), self._single.marks(state[1])
        return list(zip(one, other, strict=True))

    def renaming(self, state: Any) -> tuple[int, ...]:
        """Return the renaming to the representative."""
        return ranks(self._marks(state))

    def rename(self, state: Any, names: tuple[int, ...]) -> Any:
        """Return `state` with other names."""
        return self._single.rename(state[0], names), self._single.rename(state[1], names)

    def rename_action(self, action: Call, names: tuple[int, ...]) -> Call:
        """Return a call with other names."""
        return self._single.rename_action(action, names)

    def orbit(self, state: Any) -> int:
        """Return how many states differ from `state` in names alone, itself among them."""
        return orbit(self._marks(state))


def _by_calls(mutant: Mutant, scope: Scope) -> Exploration[Any, Any]:
    core = core_of(mutant.target.partition(" ")[0].lower(), mutant.edition)
    pair = PairOfCalls(Calls(core, scope), Calls(class_core(mutant, scope), scope))
    return _explored(pair, CallsSymmetry() if interchangeable(core) else None)


def _by_protocol(mutant: Mutant, scope: Scope) -> Exploration[Any, Any]:
    core = core_of(mutant.target.partition(" ")[0].lower(), mutant.edition)
    theirs = class_core(mutant, scope)
    if mutant.target != "LRU v0.33":
        pair = Pair(Programs(core, scope), Programs(theirs, scope))
        return _explored(pair, PairSymmetry())
    # One search with a request that knows positions, and one with a request that does not.
    both = [
        _explored(Pair(Programs(core, scope, kind), Programs(theirs, scope, kind)), None)
        for kind in "ru"
    ]
    return max(both, key=lambda found: (not found.closed, found.states))


def _explored(pair: Any, symmetry: Any) -> Exploration[Any, Any]:
    try:
        return explore(pair, symmetry=symmetry, check_step=differs)
    except Differs:
        raise
    except Exception as error:
        raise Differs(f"the mutant raised {type(error).__name__}") from error


# --- One step from every state -------------------------------------------------------------------


def _order_steps(mutant: Mutant) -> Equivalence | None:
    """Compare how keys are ordered: every sequence of keys, whatever is known of positions."""
    keys, places = 4, (None, 0, 1, 2)
    theirs = mutant.module("order").by_position
    checked = 0
    for length in range(keys + 1):
        for sequence in product(range(keys), repeat=length):
            for positions in product(places, repeat=len(set(sequence))):
                at = dict(zip(sorted(set(sequence)), positions, strict=True)).get
                if list(theirs(sequence, at)) != reference_order.by_position(sequence, at):
                    return None
                checked += 1
    scope = f"all sequences of up to {keys} keys, their positions unknown or one of 3"
    return Equivalence("each step", scope, checked, checked)


def _filter_steps(mutant: Mutant) -> Equivalence | None:
    """Compare a filter's tracker: what it counts and what it lets pass, from every state."""
    keys, most, threshold = 3, 2, 2
    reference = getattr(reuse_filter, mutant.build().__name__)
    states = [
        tuple(zip(held, counts, strict=True))
        for length in range(most + 1)
        for held in permutations(range(keys), length)
        for counts in product(range(1, threshold + 2), repeat=length)
    ]
    checked = 0
    for state in states:
        for key in range(keys):
            outcomes = []
            for made in (reference, mutant.build()):
                tracked = made(None, store_threshold=threshold, max_tracker_size=most)
                tracked.counts = OrderedDict(state)
                passes = tracked._qualifies(key)
                tracked._observe(key)
                outcomes.append((passes, list(tracked.counts.items())))
            if outcomes[0] != outcomes[1]:
                return None
            checked += 1
    if not mutant.mutation.where.endswith(("_observe", "_qualifies")):
        return None  # what else is in the filter has not been compared
    scope = f"tracker of {most}, {keys} keys, counts up to {threshold + 1}, threshold {threshold}"
    return Equivalence("each step", scope, len(states), checked)
