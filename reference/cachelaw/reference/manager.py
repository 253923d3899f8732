"""A manager, as small as it can be: something to put behind the reuse filter.

The filter of `reuse_filter.py` decorates an `OffloadingManager`. That interface is here, in the
two forms that the filter lived to see, with the values that pass through it. Beside it stands a
manager that does real work with any `CachePolicy` of these editions: every method becomes an event
of `protocol.py`, and what the protocol asks for is done to the policy. There is no second account
of when a policy is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from cachelaw.reference.chunk import BlockStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import V019, V020, Edition
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.policy import CachePolicyV019, check_capacity
from cachelaw.reference.protocol import (
    Call,
    Event,
    LoadEnds,
    LoadStarts,
    Lookup,
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

# --- Values --------------------------------------------------------------------------------------


class LoadStoreSpec(ABC):
    """Where blocks lie: what a worker needs in order to copy them."""

    @staticmethod
    @abstractmethod
    def medium() -> str:
        """Return the name of the medium, such as `CPU`."""


@dataclass(frozen=True, slots=True)
class CPULoadStoreSpec(LoadStoreSpec):
    """Blocks in the CPU buffer.

    Attributes:
        block_ids: the slot of each block, in the order in which the keys were given.
    """

    block_ids: tuple[int, ...] = ()

    @staticmethod
    def medium() -> str:
        """Return `CPU`."""
        return "CPU"


@dataclass(frozen=True, slots=True)
class PrepareStoreOutput:
    """What became of an offer that was not refused.

    Attributes:
        keys_to_store: the offered keys that were absent and now await their data, in the order
            of the offer.
        store_spec: where their data goes, in the same order.
        evicted_keys: the keys that left to make room, in the order in which they left.
    """

    keys_to_store: list[OffloadKey]
    store_spec: LoadStoreSpec
    evicted_keys: list[OffloadKey]


@dataclass(frozen=True, slots=True)
class OffloadingEvent:
    """News of blocks that appeared in the cache or vanished from it.

    Attributes:
        keys: the blocks.
        medium: where they are, or were.
        removed: True if they were evicted, False if their store succeeded.
    """

    keys: list[OffloadKey]
    medium: str
    removed: bool


# --- Interfaces ----------------------------------------------------------------------------------


class OffloadingManager:
    """What the managers of v0.19 and v0.20 have in common.

    A manager that has no use for one of these methods leaves it out. `keys` may be a one-shot
    iterable in each.
    """

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Mark blocks as used, head of the prefix first; any of them may be absent."""

    def complete_load(self, keys: Iterable[OffloadKey]) -> None:
        """End a load of `keys`: each loses one pin."""

    def complete_store(self, keys: Iterable[OffloadKey], success: bool = True) -> None:
        """End a store of `keys`: they become readable, or are forgotten without `success`."""

    def take_events(self) -> Iterable[OffloadingEvent]:
        """Return what happened since the last call, oldest first."""
        return ()


class OffloadingManagerV019(OffloadingManager, ABC):
    """The manager's interface of vLLM 0.18 and 0.19, and of the seed filter."""

    @abstractmethod
    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        """Return how many of the first `keys` are ready in a row, or None: ask again later."""

    @abstractmethod
    def prepare_load(self, keys: Iterable[OffloadKey]) -> LoadStoreSpec:
        """Pin ready blocks and return where they lie."""

    @abstractmethod
    def prepare_store(self, keys: Iterable[OffloadKey]) -> PrepareStoreOutput | None:
        """Make room for those of `keys` that are absent, or return None if there is none."""


class OffloadingManagerV020(OffloadingManager, ABC):
    """The manager's interface of vLLM 0.20: one key a lookup, and a context.

    In 0.21 `touch` and the completions take the context too; policies are driven as before.
    """

    @abstractmethod
    def lookup(self, key: OffloadKey, req_context: ReqContext) -> bool | None:
        """Return whether `key` is ready, or None: ask again later."""

    @abstractmethod
    def prepare_load(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> LoadStoreSpec:
        """Pin ready blocks and return where they lie."""

    @abstractmethod
    def prepare_store(
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> PrepareStoreOutput | None:
        """Make room for those of `keys` that are absent, or return None if there is none."""


# --- The manager ---------------------------------------------------------------------------------

ANY_REQUEST = ""
"""No policy of these editions hears of requests; in the events one name stands for all."""


class _Minimal(OffloadingManager):
    """All of the minimal manager but the three methods whose form changed.

    The books are the protocol's; beside them the manager holds the status objects, which are its
    own to write, and the events that nobody has taken yet.
    """

    edition: ClassVar[Edition]

    def __init__(self, num_blocks: int, policy: Callable[[int], CachePolicyV019]) -> None:
        self._setting: Setting[OffloadKey] = Setting(self.edition, check_capacity(num_blocks))
        self._state: State[OffloadKey] = start(self._setting)
        self._policy = policy(num_blocks)
        self._blocks: dict[OffloadKey, BlockStatus] = {}
        self._events: list[OffloadingEvent] = []

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Mark blocks as used, head of the prefix first; any of them may be absent.

        Raises:
            ValueError: a key stands twice; then nothing has changed.
        """
        self._perform(Touch(tuple(keys), ANY_REQUEST))

    def complete_load(self, keys: Iterable[OffloadKey]) -> None:
        """Take one pin from each of `keys`.

        Raises:
            ValueError: one of them is not pinned, or stands twice; then nothing has changed.
        """
        self._perform(LoadEnds(tuple(keys)))

    def complete_store(self, keys: Iterable[OffloadKey], success: bool = True) -> None:
        """Make pending blocks readable, or forget them.

        Args:
            keys: pending blocks, in any order and number.
            success: whether their data has arrived.

        Raises:
            ValueError: one of them is not pending, or stands twice; then nothing has changed.
        """
        keys = tuple(keys)
        self._perform(StoreSucceeds(keys) if success else StoreFails(keys))
        if success:
            self._announce(keys, removed=False)  # a failed store was never news

    def take_events(self) -> list[OffloadingEvent]:
        """Return what happened since the last call, oldest first."""
        events, self._events = self._events, []
        return events

    def _announce(self, keys: Iterable[OffloadKey], *, removed: bool) -> None:
        if keys := list(keys):
            self._events.append(OffloadingEvent(keys, CPULoadStoreSpec.medium(), removed))

    def _ready(self, key: OffloadKey) -> bool:
        ((_, block),) = self._perform(Lookup(key))
        return block is not None and bool(block.is_ready)

    def _load(self, keys: Iterable[OffloadKey]) -> CPULoadStoreSpec:
        keys = tuple(keys)
        self._perform(LoadStarts(keys, ANY_REQUEST))
        return CPULoadStoreSpec(tuple(self._state.chunks[key].slot for key in keys))

    def _offer(self, keys: Iterable[OffloadKey]) -> PrepareStoreOutput | None:
        done = self._perform(StoreOffered(tuple(keys), ANY_REQUEST))
        evictions = [victims for call, victims in done if call.method == "evict"]
        if None in evictions:
            return None
        evicted = [key for victims in evictions for key in victims]
        self._announce(evicted, removed=True)
        stored = [call.arguments[0] for call, _ in done if call.method == "insert"]
        spec = CPULoadStoreSpec(tuple(self._state.chunks[key].slot for key in stored))
        return PrepareStoreOutput(stored, spec, evicted)

    def _perform(self, event: Event[OffloadKey]) -> list[tuple[Call, Any]]:
        """Carry out `event`; return the calls it took, each with its answer."""
        reason = objection(self._setting, self._state, event)
        if reason is not None:
            raise ValueError(reason)
        done: list[tuple[Call, Any]] = []
        steps = perform(self._setting, self._state, event)
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as end:
                self._state = end.value
                return done
            answer = self._carry_out(call)
            done.append((call, answer))

    def _carry_out(self, call: Call) -> Any:
        """Do one step to the policy or to a status object; return what the protocol wants back."""
        match call:
            case Call("get", (key,)):
                return self._policy.get(key)
            case Call("set_ref_cnt", (key, ref_cnt)):
                self._blocks[key].ref_cnt = ref_cnt
            case Call("insert", (key, slot, _)):
                self._blocks[key] = BlockStatus(slot)
                self._policy.insert(key, self._blocks[key])
            case Call("remove", (key,)):
                self._policy.remove(key)
                del self._blocks[key]
            case Call("touch", (keys, _)):
                self._policy.touch(keys)
            case Call("evict", (n, protected)):
                victims = self._policy.evict(n, set(protected))
                if victims is not None:
                    for key, _ in victims:
                        del self._blocks[key]
                    return tuple(key for key, _ in victims)
        return None


class MinimalOffloadingManagerV019(_Minimal, OffloadingManagerV019):
    """A manager of edition v0.19 over any policy of that edition.

    Which slot a block gets is its own affair and differs from the releases, which use up fresh
    slots first; nobody else can tell.

    Args:
        num_blocks: the number of slots, 1 or more.
        policy: a policy class, or anything else that makes a policy when called with `num_blocks`.

    Raises:
        ValueError: `num_blocks` is not an int of 1 or more.
    """

    edition = V019

    def lookup(self, keys: Iterable[OffloadKey]) -> int:
        """Return how many of the first `keys` are ready in a row; none after is looked at."""
        run = 0
        for key in keys:
            if not self._ready(key):
                break
            run += 1
        return run

    def prepare_load(self, keys: Iterable[OffloadKey]) -> CPULoadStoreSpec:
        """Pin ready blocks and return where they lie.

        Raises:
            ValueError: one of them is not ready, or stands twice; then nothing has changed.
        """
        return self._load(keys)

    def prepare_store(self, keys: Iterable[OffloadKey]) -> PrepareStoreOutput | None:
        """Take in those of `keys` that are absent, evicting as many blocks as slots are short.

        Returns:
            What was taken in and what left for it; None if the policy refused to evict.

        Raises:
            ValueError: a key stands twice; then nothing has changed.
        """
        return self._offer(keys)


class MinimalOffloadingManagerV020(_Minimal, OffloadingManagerV020):
    """A manager of edition v0.20 over any policy of that edition.

    Arguments and errors are those of `MinimalOffloadingManagerV019`. The contexts are part of the
    interface; a manager of that edition has nothing to do with them.
    """

    edition = V020

    def lookup(self, key: OffloadKey, req_context: ReqContext) -> bool:
        """Return whether `key` is ready."""
        return self._ready(key)

    def prepare_load(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> CPULoadStoreSpec:
        """Pin ready blocks, or raise ValueError as v0.19 does; return where they lie."""
        return self._load(keys)

    def prepare_store(
        self, keys: Iterable[OffloadKey], req_context: ReqContext
    ) -> PrepareStoreOutput | None:
        """Take in absent `keys` or return None, as v0.19 does."""
        return self._offer(keys)
