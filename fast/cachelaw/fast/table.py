"""What the fast classes share: the memory of the kernels, and the queue in front of it.

All that is known of the order of keys lies in one tensor, the memory, which only kernels write
(`kernels.py` says what is where). What a call means for the order shows at the next eviction and
not before, so calls are noted in a queue, and carried out together when many keys are waiting or
an eviction needs to know. A call for one key then costs no call of a kernel.

A policy besides holds the chunks in a dict, so that `get` costs what a dict costs, and the key
objects of residents by the rows that the kernels gave them: to find a victim in the dict by the
object that it was inserted with costs half of what an equal one costs.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import torch

from cachelaw.fast import kernels
from cachelaw.reference import CachePolicy, OffloadKey
from cachelaw.reference.policy import Victims, check_capacity

LIMIT = kernels.QUEUE
"""So many keys wait in the queue of the largest caches."""

FURTHEST = 128
"""So many victims are looked up ahead of time at most."""

TOGETHER = 256
"""So many chunks are taken out of the cache together."""

PRESIZED = 1 << 20
"""Up to this capacity the memory is as large as it will ever need to be from the beginning."""

_KEY_WORDS = kernels.INLINE // 8
_WORD: Any = np.int64


def key_from(key: object) -> OffloadKey:
    """Return `key` as plain bytes.

    Raises:
        TypeError: it is not a bytes object.
    """
    if not isinstance(key, bytes):
        raise TypeError(f"a key must be bytes, got {type(key).__name__}: {key!r:.60}")
    return OffloadKey(bytes(key))


def keys_from(keys: Iterable[OffloadKey]) -> list[OffloadKey]:
    """Return `keys` as a list of plain bytes.

    Raises:
        TypeError: one of them is not a bytes object.
    """
    found = list(keys)
    if [*map(type, found)].count(bytes) == len(found):
        return found
    return [key_from(key) for key in found]


class Table(ABC):
    """Keys in one tensor, with a queue in front of it.

    Args:
        capacity: how many keys count against the limits of the kernels.
        rows: how many keys there is room for at first.
        ranked: whether the order is one of ranks, see `new_memory`.
    """

    _limit = LIMIT
    """So many keys wait in the queue at most."""

    def __init__(self, capacity: int, rows: int, *, ranked: bool) -> None:
        warm_up()
        self._keys: list[OffloadKey] = []
        self._program: list[int] = []
        self._open: object = None  # what keys can still be added to the last instruction for
        self._opened = self._first = 0  # where that instruction is, and its first key
        self._capacity, self._ranked = capacity, ranked
        self._take_memory(rows, 0)

    def memory_bytes(self) -> int:
        """Return the size of the tensor, in bytes."""
        return self._memory.numel() * self._memory.element_size()

    @abstractmethod
    def _step(self, n: int) -> int:
        """Carry out what has happened since the last time, and choose `n` keys.

        Returns:
            How many were chosen.
        """

    @abstractmethod
    def _rows_needed(self) -> int:
        """Return how many keys may be in the memory once the queue is carried out."""

    def _forget_all(self) -> None:
        """Become as new."""
        self._keys.clear()
        self._program.clear()
        self._open = None
        kernels.empty(self._view)

    # --- The queue ---

    def _begin(self, what: object, kind: int, rank: int) -> None:
        """Begin an instruction, to which keys can be added as long as `_open` is `what`."""
        if self._open is not None:
            self._close()
        program = self._program
        self._open, self._opened, self._first = what, len(program), len(self._keys)
        program += (kind, rank)

    def _close(self) -> int:
        """See to it that no more keys are added to the last instruction.

        Returns:
            How many were added since it was begun.
        """
        if self._open is None:
            return 0
        self._open = None
        count = len(self._keys) - self._first
        self._program[self._opened] += kernels.ONE * count
        return count

    def _note(self, kind: int, rank: int, keys: list[OffloadKey]) -> None:
        """Note an instruction, without words for its keys."""
        self._close()
        self._keys += keys
        self._program += (kind + kernels.ONE * len(keys), rank)
        if len(self._keys) >= self._limit:
            self._step(0)

    def _packed(self) -> tuple[Any, int, int]:
        """Return the queue, in a form that kernels read.

        Returns:
            The program with its keys, the length of the program in words, and the length of each
            key in bytes or MIXED.
        """
        keys = self._keys
        self._close()
        words = len(self._program)
        if not words:
            return kernels.NOTHING, 0, 1
        length = len(keys[0]) if keys else 8
        if not length or (len(keys) > 1 and [*map(len, keys)].count(length) != len(keys)):
            length = kernels.MIXED
        self._make_room(keys, length)
        code = array("q", self._program).tobytes()
        if length == kernels.MIXED:
            data = code + b"".join(map(_sized, keys))
        else:
            filling = bytes(-length % 8)
            data = code + filling.join(keys) + filling
        return np.frombuffer(data, _WORD), words, length

    def _emptied(self) -> list[OffloadKey]:
        """Empty the queue, which was carried out, and return the keys that were in it."""
        keys = self._keys
        self._keys = []
        self._program.clear()
        return keys

    # --- The memory ---

    def _take_memory(self, rows: int, tails: int) -> None:
        """Take a memory of a size, an empty one."""
        self._memory = new_memory(rows, tails, self._capacity, ranked=self._ranked)
        self._bind()

    def _bind(self) -> None:
        """Take hold of the memory: views of it that are made once, not in every call."""
        view: Any = self._memory.numpy()  # numpy's types say less than its arrays can do
        self._view = view
        self._header = memoryview(view)
        first = int(self._view[kernels.RECORDS])
        self._rows = int(self._view[kernels.ROWS])
        self._records = self._view[first : first + self._rows * kernels.WIDTH].reshape(
            self._rows, kernels.WIDTH
        )
        self._out = int(self._view[kernels.OUT])

    def _make_room(self, keys: list[OffloadKey], length: int) -> None:
        """See to it that the queue finds room: rows, and words for long keys.

        Args:
            keys: the keys of the queue.
            length: of each of them, or MIXED.
        """
        rows, tails = self._rows_needed(), 0
        if not 0 < length <= kernels.INLINE:
            tails = sum(-(-len(key) // 8) for key in keys if len(key) > kernels.INLINE)
        header = self._header
        if rows > self._rows or header[kernels.TAILS_USED] + tails > header[kernels.TAILS_SIZE]:
            self._grow(rows, tails)

    def _grow(self, rows: int, tails: int) -> None:
        """Move into a memory with room for `rows` rows and for `tails` words more."""
        old = self._view
        if rows > self._rows:
            rows = max(rows, 2 * self._rows)
        self._take_memory(max(rows, self._rows), 2 * (kernels.live_tails(old) + tails))
        kernels.move(old, self._view)

    # --- Keys out of the memory ---

    def _key_of(self, row: int) -> OffloadKey:
        """Return the key in `row`."""
        record = self._records[row]
        length = int(record[kernels.META]) >> 8
        if length <= kernels.INLINE:
            return OffloadKey(record[:_KEY_WORDS].tobytes()[:length])
        tail = int(self._view[kernels.TAILS]) + int(record[kernels.HEAD_WORDS])
        words = -(-length // 8) - kernels.HEAD_WORDS
        head = record[: kernels.HEAD_WORDS].tobytes()
        return OffloadKey((head + self._view[tail : tail + words].tobytes())[:length])

    # --- Copies ---

    _views: tuple[str, ...] = ("_view", "_header", "_records")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs; the views of the memory are made anew."""
        self._close()
        return {name: value for name, value in vars(self).items() if name not in self._views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what `__getstate__` returned."""
        vars(self).update(state)
        self._bind()


class Policy(Table, CachePolicy):
    """A policy whose order lies in one tensor.

    Args:
        cache_capacity: the number of chunks that fit.

    Attributes:
        cache_capacity: as given.

    Raises:
        ValueError: `cache_capacity` is not an int of 1 or more.
    """

    ghosts_per_chunk = 0
    """How many keys without a chunk are remembered for each chunk that fits."""

    ranked = True
    """Whether the order is one of ranks, or one of lists."""

    _views = (*Table._views, "get")

    def __init__(self, cache_capacity: int) -> None:
        CachePolicy.__init__(self, check_capacity(cache_capacity))
        self._chunks: dict[OffloadKey, Any] = {}
        self._limit = min(LIMIT, 4 * cache_capacity + 4)  # so that small caches stay small
        self._spare_rows = self.ghosts_per_chunk * cache_capacity + self._limit
        self._settled = 0  # how many residents there are, without those in the queue
        self._names: Any = np.empty(0, dtype=object)  # by row, the key objects of residents
        rows = min(cache_capacity, PRESIZED) + self._spare_rows
        Table.__init__(self, cache_capacity, rows, ranked=self.ranked)

    def memory_bytes(self) -> int:
        """Return the size of the tensor and of the list of key objects, in bytes."""
        return super().memory_bytes() + int(self._names.nbytes)

    def get(self, key: OffloadKey) -> Any:
        """Return the chunk resident under `key`, or None; also for what cannot be a key."""
        # Instances have the method of their dict in its place, see _bind.
        return self._chunks.get(key)

    def clear(self) -> None:
        """Become as new."""
        self._chunks.clear()
        self._settled = 0
        self._names.fill(None)
        self._forget_all()

    @abstractmethod
    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict exactly `n` idle chunks, none of them in `protected`, or change nothing."""

    def _chunks_of(self, keys: list[OffloadKey]) -> Sequence[Any]:
        """Return the chunks of residents.

        One call for all of them: their places in the dict are then read side by side, and what
        follows, one after the other, finds them where they can be had fast.
        """
        if len(keys) > 1:
            return itemgetter(*keys)(self._chunks)  # type: ignore[no-any-return]
        return [self._chunks[key] for key in keys]

    def _take_out(
        self, keys: list[OffloadKey], protected: AbstractSet[OffloadKey], may_be_busy: bool = True
    ) -> Victims | None:
        """Take the chunks of residents out of the cache, or none if one of them may not leave."""
        chunks = self._chunks
        victims: Victims = []
        # A block at a time: what one step has read of it is still at hand for the next.
        for first in range(0, len(keys), TOGETHER):
            some = keys[first : first + TOGETHER]
            if protected and not protected.isdisjoint(some):
                break
            statuses = self._chunks_of(some)
            if may_be_busy and any(map(ref_count, statuses)):
                break
            for key in some:
                del chunks[key]
            victims += zip(some, statuses, strict=True)
        else:
            return victims
        chunks.update(victims)
        return None

    def _has_more_than_inserts(self) -> bool:
        """Say whether the queue has anything but inserts of new keys.

        All else adds keys to it, and no residents.
        """
        return len(self._chunks) - len(self._keys) != self._settled

    def _name_rows(self) -> None:
        """Empty the queue, which was carried out, and take down the rows of new residents."""
        keys, count = self._emptied(), self._header[kernels.NEW_COUNT]
        if count == 0:
            return
        new = self._view[kernels.NEW : kernels.NEW + count]
        if count == len(keys) > 1:
            self._names[new & kernels.LOW] = keys
        else:
            for numbered in new.tolist():
                self._names[numbered & kernels.LOW] = keys[numbered // kernels.NUMBER]

    def _rows_needed(self) -> int:
        # Each resident has a row, and so has each ghost; a key that is removed has one until its
        # removal, which is in the queue, is carried out.
        return len(self._chunks) + self._spare_rows

    def _take_memory(self, rows: int, tails: int) -> None:
        super()._take_memory(rows, tails)
        names = np.full(rows, None, dtype=object)
        names[: len(self._names)] = self._names
        self._names = names

    def _bind(self) -> None:
        super()._bind()
        vars(self)["get"] = self._chunks.get


ref_count = attrgetter("ref_cnt")
"""Returns the ref count of a chunk."""


def _sized(key: OffloadKey) -> bytes:
    """Return the length of a key and the key, in whole words."""
    return array("q", (len(key),)).tobytes() + key + bytes(-len(key) % 8)


def new_memory(rows: int, tails: int, capacity: int, *, ranked: bool) -> torch.Tensor:
    """Return a memory that is empty.

    Args:
        rows: how many keys there is room for.
        tails: how many words there are for the rest of long keys.
        capacity: the number of chunks that fit.
        ranked: whether the order is one of ranks, in a log and a heap, as LRU has it, or one of
            lists, as ARC has it.
    """
    index = 1 << (2 * rows - 1).bit_length()
    log = 3 * rows if ranked else 0
    heap = 2 * rows if ranked else 0
    # No list is longer than that: ARC's ghosts take `capacity` rows of either list.
    longest = max(rows - 2 * capacity, capacity) + kernels.BLOCK
    order = 0 if ranked else 2 * longest
    sizes = {
        kernels.RECORDS: rows * kernels.WIDTH,
        kernels.INDEX: index,
        kernels.LOG: 2 * log,
        kernels.HEAP: 3 * heap,
        kernels.ORDER: (kernels.LISTS - 1) * order,
        kernels.OUT: rows if ranked else longest,
        kernels.TAILS: tails,
    }
    words = kernels.HEADER + sum(sizes.values())
    # numpy asks the system for large pages where torch does not. Rows begin with a cache line.
    spare: Any = np.zeros(words + 7, dtype=np.int64)
    first = -(spare.ctypes.data // 8) % 8
    memory = spare[first : first + words]
    if rows <= 4 * PRESIZED:
        memory.fill(0)  # have the system provide it now: a call would wait for that
    at = kernels.HEADER
    for section, size in sizes.items():
        memory[section] = at
        at += size
    memory[kernels.ROWS] = rows
    memory[kernels.MASK] = index - 1
    memory[kernels.SEED] = secrets.randbits(63)
    memory[kernels.LOG_SIZE] = log
    memory[kernels.HEAP_SIZE] = heap
    memory[kernels.TAILS_SIZE] = tails
    memory[kernels.CAPACITY] = capacity
    memory[kernels.ORDER_SIZE] = order
    kernels.empty(memory)
    return torch.from_numpy(memory)


@cache
def warm_up() -> None:
    """Compile all kernels, or load them, so that no call has to; done once in a process."""
    for store in _words(kernels.LAST + kernels.ONE, 1, 2):
        small: Any = new_memory(2, 0, 1, ranked=True).numpy()
        kernels.lru_step(small, store, 2, 8, 0, 1, 0)
    larger: Any = new_memory(4, 0, 1, ranked=True).numpy()
    kernels.lru_unpark(small)
    kernels.live_tails(small)
    kernels.move(small, larger)
    for store in _words(kernels.INSERT + kernels.ONE, 0, 2):
        small = new_memory(2, 0, 1, ranked=False).numpy()
        kernels.arc_step(small, store, 2, 8, 1, True)
    kernels.arc_select(small, 0, True)
    kernels.arc_settle(small)
    kernels.arc_peek(small, 1, 1)
    kernels.arc_flag(small, 0)
    kernels.arc_unkeep(small, 0)
    kernels.arc_doubt(small)
    for store in _words(kernels.SEE + kernels.ONE, 0, 2):
        small = new_memory(2, 0, 1, ranked=False).numpy()
        kernels.filter_step(small, store, 2, 8, 2)


def _words(*values: int) -> Iterator[Any]:
    """Yield the same words as they come, in memory that can be written and in a bytes object."""
    words = array("q", values)
    yield np.frombuffer(words, dtype=np.int64)
    yield np.frombuffer(words.tobytes(), dtype=np.int64)
