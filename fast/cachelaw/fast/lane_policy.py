"""One lane behind the CachePolicy interface: the kernels of the lanes as a subject for the suite.

    cachelaw certify cachelaw.fast:LaneARC --param device=cudasim

Nothing here decides anything. Keys get numbers, a call becomes a program of one call, one thread
of the kernel runs it where the lane lies, and the answer is turned back into keys and chunks. Each
call is a launch, so this is for judging kernels and not for serving; hosts take
`cachelaw.fast.LRU`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cachelaw.fast import lane_kernels as core
from cachelaw.fast.cuda import require_device, to_device, to_host, zeros
from cachelaw.fast.lanes import LaneSpec, State, plan_of
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.policy import check_capacity

Victims = list[tuple[OffloadKey, Any]]

GAP = 1 << 32
"""Between the names of neighbouring keys, so that others fit in."""


@dataclass(frozen=True, slots=True)
class _Numbered:
    """What a lane leaves in a request's context: the request's rank in that one cache."""

    owner: object
    serial: int
    generation: int


class Names:
    """Numbers in the order of keys, for keys that come and go.

    A key's name may change when another comes; `changed` says whether one has since it was reset.
    """

    def __init__(self) -> None:
        self._keys: list[Any] = []
        self._names: list[int] = []
        self.changed = False

    def add(self, key: Any) -> int:
        """Return a name for a key that has none."""
        at = bisect_left(self._keys, key)
        low = self._names[at - 1] if at > 0 else None
        high = self._names[at] if at < len(self._names) else None
        if low is None or high is None:
            name = high - GAP if high is not None else low + GAP if low is not None else 0
        else:
            name = (low + high) // 2
        self._keys.insert(at, key)
        self._names.insert(at, name)
        if name == low:  # no room between the two
            self._names = [i * GAP for i in range(len(self._keys))]
            self.changed = True
        return self._names[at]

    def drop(self, key: Any) -> None:
        """Forget a key."""
        at = bisect_left(self._keys, key)
        del self._keys[at], self._names[at]

    def items(self) -> Iterable[tuple[Any, int]]:
        """Return all keys with their names."""
        return zip(self._keys, self._names, strict=True)


class LanePolicy:
    """A lane as a policy.

    Args:
        cache_capacity: the number of chunks that fit.
        device: where the lane is: `cpu`, `cudasim` or `cuda`.
        edition: whose semantics: `v0.24`, `v0.31` or `v0.33`; the methods take what the hosts of
            all three pass.

    Raises:
        ValueError: one of them is not of that kind.
        DeviceError: the device cannot be used here.
    """

    policy: ClassVar[str]

    def __init__(self, cache_capacity: int, device: str = "cpu", edition: str = "v0.33") -> None:
        self.cache_capacity = check_capacity(cache_capacity)
        self.device = require_device(device)
        spec = LaneSpec(self.policy, cache_capacity, edition)
        self._rule = spec.rule
        # Ghosts have numbers too.
        keys = cache_capacity * (3 if self._rule >= core.ARC_V024 else 1)
        self._state = State(1, keys, ranked=self._rule == core.LRU_RANKED, device=device)
        self._plan = plan_of([spec], [0], device)
        self._free = list(range(keys))
        self._numbers: dict[OffloadKey, int] = {}
        self._keys: dict[int, OffloadKey] = {}
        self._chunks: dict[OffloadKey, Any] = {}
        self._names = Names()
        self._generation = 1
        self._answers = zeros((1, 2) if device == "cpu" else (2, 1), "int64", device)
        self._perform(core.EVICT)  # compiles, so that no call has to wait for it

    def get(self, key: OffloadKey) -> Any:
        """Return the chunk resident under `key`, or None."""
        return self._chunks.get(key)

    def insert(self, key: OffloadKey, chunk: Any, req_context: Any = None) -> None:
        """Make `chunk` resident under `key`.

        Raises:
            RuntimeError: more chunks would be resident than there is room for.
        """
        number = self._numbers.get(key)
        if number is None:
            number = self._number(key)
        self._chunks[key] = chunk
        position = self._position(key, req_context)
        busy = min(max(chunk.ref_cnt, core.PENDING), core.PINNED)
        remembered = self._remembered(req_context)
        (serial,) = self._perform(core.INSERT, busy, *remembered, keys=[(number, position)])
        if position >= 0:
            self._remember(req_context, serial)

    def remove(self, key: OffloadKey) -> None:
        """Forget the resident `key`, or raise KeyError."""
        del self._chunks[key]
        self._perform(core.REMOVE, keys=[(self._numbers[key], 0)])
        self._forget(self._numbers[key])

    def touch(self, keys: Iterable[OffloadKey], req_context: Any = None) -> None:
        """Mark chunks as used, head of the prefix first."""
        self._use(core.TOUCH, keys)

    def on_store_miss(self, keys: Iterable[OffloadKey], req_context: Any) -> None:
        """Observe absent keys that are about to be stored."""
        self._use(core.STORE_MISS, keys)

    def on_request_access(self, keys: Iterable[OffloadKey], req_context: Any) -> None:
        """Observe keys that a running request sees for the first time."""
        if self._rule != core.LRU_RANKED:
            return
        known = self._known((key, self._position(key, req_context)) for key in keys)
        remembered = self._remembered(req_context)
        (serial,) = self._perform(core.ACCESS, *remembered, keys=known)
        self._remember(req_context, serial)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: Any,
    ) -> None:
        """Take in all that a request used, the tail of the prefix first."""
        used = (
            (key, core.STORED * (key in insertion_only_keys) | core.FOUND * (key in reused_keys))
            for key in order_request_keys(key_groups, req_context)
        )
        self._perform(core.FINISH, keys=self._known(used))

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict exactly `n` idle chunks, none of them in `protected`, or change nothing."""
        if n > len(self._chunks):
            return None
        known = self._known((key, 0) for key in protected)
        forgotten, *numbers = self._perform(core.EVICT, n, keys=known, answers=1 + 2 * n)
        if forgotten < 0:
            return None
        keys = [self._keys[number] for number in numbers[:n]]
        ghosts = self._rule >= core.ARC_V024
        for number in numbers[n : n + forgotten] if ghosts else numbers[:n]:
            self._forget(number)
        return [(key, self._chunks.pop(key)) for key in keys]

    def clear(self) -> None:
        """Become as new."""
        self._perform(core.CLEAR)
        self._generation += 1
        for number in list(self._keys):
            self._forget(number)
        self._chunks.clear()

    def mark_evictable(self, key: OffloadKey) -> None:
        """Learn that the ref count of `key` has become 0."""
        self._perform(core.MARK, core.IDLE, keys=[(self._numbers[key], 0)])

    def mark_non_evictable(self, key: OffloadKey) -> None:
        """Learn that the ref count of `key` is about to leave 0."""
        self._perform(core.MARK, core.PINNED, keys=[(self._numbers[key], 0)])

    # --- numbers ---

    def _number(self, key: OffloadKey) -> int:
        if not self._free:
            raise RuntimeError(
                f"more than {self.cache_capacity} chunks were inserted into a lane of that capacity"
            )
        number = self._numbers[key] = self._free.pop()
        self._keys[number] = key
        if self._rule == core.LRU_RANKED:
            renamed = {number: self._names.add(key)}
            if self._names.changed:
                self._names.changed = False
                renamed = {self._numbers[other]: name for other, name in self._names.items()}
            self._rename(renamed)
        return number

    def _rename(self, renamed: dict[int, int]) -> None:
        names = to_host(self._state.arrays.names, self.device)
        for number, name in renamed.items():
            names[number] = name
        if self.device != "cpu":
            arrays = self._state.arrays._replace(names=to_device(names, self.device))
            self._state.arrays = arrays

    def _forget(self, number: int) -> None:
        key = self._keys.pop(number)
        del self._numbers[key]
        self._free.append(number)
        if self._rule == core.LRU_RANKED:
            self._names.drop(key)

    def _known(self, keys: Iterable[tuple[OffloadKey, int]]) -> list[tuple[int, int]]:
        """Return the numbers of those keys that have one; the others can move nothing."""
        numbers = self._numbers
        return [(numbers[key], extra) for key, extra in keys if key in numbers]

    # --- requests ---

    def _position(self, key: OffloadKey, req_context: Any) -> int:
        if self._rule != core.LRU_RANKED or req_context is None:
            return -1
        position = req_context.get_offload_key_position(key)
        return -1 if position is None else int(position)

    def _remembered(self, req_context: Any) -> tuple[int, int]:
        if self._rule != core.LRU_RANKED or req_context is None:
            return 0, 0
        kept = req_context.get_state(_Numbered)
        mine = kept is not None and kept.owner is self
        return (kept.serial, kept.generation) if mine else (0, 0)

    def _remember(self, req_context: Any, serial: int) -> None:
        req_context.set_state(_Numbered(self, serial, self._generation))

    # --- calls ---

    def _use(self, operation: int, keys: Iterable[OffloadKey]) -> None:
        self._perform(operation, keys=self._known((key, 0) for key in keys))

    def _perform(
        self,
        operation: int,
        *arguments: int,
        keys: Sequence[tuple[int, int]] = (),
        answers: int = 1,
    ) -> list[int]:
        """Run one call on the lane and return the numbers that it answered."""
        head = [operation, *arguments, *[0] * (3 - len(arguments)), len(keys)]
        code = np.array([*head, *(n for pair in keys for n in pair)], dtype=np.int64)
        ends = np.array([0, code.size], dtype=np.int64)
        cpu = self.device == "cpu"
        if answers > max(self._answers.shape):
            self._answers = zeros((1, answers) if cpu else (answers, 1), "int64", self.device)
        given = (
            self._state.arrays,
            self._plan,
            to_device(code, self.device),
            to_device(ends, self.device),
            self._answers,
        )
        if cpu:
            core.perform_rows(0, 1, *given)
        else:
            from cachelaw.fast.cuda_kernels import perform_lanes

            perform_lanes[1, 1](*given)
        found: list[int] = to_host(self._answers, self.device).reshape(-1)[:answers].tolist()
        return found


class LaneLRU(LanePolicy):
    """LRU in a lane."""

    policy = "lru"
    cachelaw: ClassVar[dict[str, str]] = {"profile": "lru", "edition": "v0.33"}


class LaneARC(LanePolicy):
    """ARC in a lane."""

    policy = "arc"
    cachelaw: ClassVar[dict[str, str]] = {"profile": "arc", "edition": "v0.33"}
