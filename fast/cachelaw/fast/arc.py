"""ARC on a tensor: `cachelaw.reference.arc`, under the newest interface.

What is said there is not said again; the names in the comments are clauses of `specs/arc.md`. The
four lists and the target lie in the memory, ghosts as nothing but their keys. Whether a chunk is
pending, which a touch needs to know, is learned from the insert and from the first mark.

A kernel chooses the victims. When single ones are evicted one after the other, with nothing but
inserts in between, they are chosen here, from the oldest of each list, looked up ahead of time: the
target stays, and so does what T2 holds.

The modules of the editions (`v024.py`, `v031.py`, `v033.py`) give these classes the signatures of
their day.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from cachelaw.fast import kernels
from cachelaw.fast.lru import in_request_order
from cachelaw.fast.table import FURTHEST, Policy, key_from, keys_from, ref_count
from cachelaw.reference import OffloadKey, ReqContext
from cachelaw.reference.policy import Victims

# What the queue can be open for, see Table.
PENDING, IDLE, TOUCHED = object(), object(), object()


class TouchedARC(Policy):
    """ARC that counts every touch as a use (v0.30).

    Args:
        cache_capacity: the number of chunks that fit.

    Raises:
        ValueError: `cache_capacity` is not an int of 1 or more.
    """

    ghosts_per_chunk = 2
    ranked = False

    falls_back_to_t1 = True
    """Whether T1 below its target gives up chunks when T2 has none to give."""

    _views = (*Policy._views, "mark_evictable")

    def __init__(self, cache_capacity: int) -> None:
        self._marks: set[OffloadKey] = set()  # what was marked as idle since the last time
        super().__init__(cache_capacity)
        self._look_nowhere()

    def _look_nowhere(self) -> None:
        """Know nothing of which chunks are the oldest."""
        self._moved = True  # whether something that was carried out may have changed that
        # Rows and keys of the oldest of T1 and of T2, the oldest last.
        self._oldest: tuple[list[tuple[int, OffloadKey]], ...] = ([], [])
        self._leaves: list[int] = []  # numbers of keys in the queue, and rows that left before them
        self._t2_size = self._target = 0
        self._passes_over = False  # whether busy ones, which may become idle, are older than those
        self._reach = 0  # how far to look ahead

    @property
    def target_t1_size(self) -> float:
        """The size that T1 should have."""
        self._step(0)
        target = self._view[kernels.TARGET : kernels.TARGET + 1].view(np.float64)
        return float(target[0])

    def insert(  # type: ignore[override]  # the interface broke in v0.33
        self, key: OffloadKey, chunk: Any, req_context: ReqContext | None
    ) -> None:
        """Put the chunk into T1 (`arc/insert-into-t1`)."""
        if type(key) is not bytes:
            key = key_from(key)
        self._chunks[key] = chunk
        what = PENDING if chunk.ref_cnt < 0 else IDLE
        if self._open is not what:
            if self._marks:
                self._note_marks()
            self._begin(what, kernels.INSERT, what is PENDING)
        self._keys.append(key)
        if len(self._keys) >= self._limit:
            self._step(0)

    def remove(self, key: OffloadKey) -> None:
        """Forget the chunk, leaving no ghost (`arc/remove-leaves-no-ghost`)."""
        self._chunks.pop(key, None)
        self._note_marks()
        self._note(kernels.FORGET, 0, [key_from(key)])

    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext | None) -> None:
        """Promote, renew, or adapt to ghosts, tail first (`arc/batch-tail-first`)."""
        touched = keys_from(keys)
        if touched:
            touched.reverse()
            if self._marks:
                self._note_marks()
            if self._open is not TOUCHED:
                self._begin(TOUCHED, kernels.TOUCH, 0)
            self._keys += touched
            if len(self._keys) >= self._limit:
                self._step(0)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Learn that the chunk is idle, and so pending no more."""
        # Instances have the method of the set in its place, see _bind: nothing costs less.
        self._marks.add(key)

    def mark_non_evictable(self, key: OffloadKey) -> None:
        """See to it that not too many marks are waiting."""
        if len(self._marks) >= self._limit:
            self._note_marks()

    def _note_marks(self) -> None:
        """Note which chunks have become idle since the last time."""
        marks = self._marks
        if self._open is PENDING:
            inserted = self._keys[self._first :]
            others = marks.difference(inserted)
            if len(others) == len(marks) - len(inserted):  # none of them is pending any more
                self._program[self._opened + 1] = 0
                self._close()
                marks = others
        keys = [key for key in marks if isinstance(key, bytes)]
        self._marks.clear()
        if keys:
            self._note(kernels.READY, 0, keys)

    def clear(self) -> None:
        """Become as new."""
        super().clear()
        self._marks.clear()
        self._look_nowhere()

    def _bind(self) -> None:
        super()._bind()
        vars(self)["mark_evictable"] = self._marks.add

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict `n` chunks from T1 or T2 as the target says, or none."""
        if n < 1:
            return []
        if n > len(self._chunks):
            return None
        if n == 1 and not self._has_changed():
            victims = self._evict_oldest(protected)
            if victims is not None:
                return victims
        self._reach = 0
        found = self._step(n)
        victims = self._chosen(n, protected) if found == n else None
        if victims is None:
            victims = self._evict_among(n, protected, found)
        self._look_nowhere()
        self._moved = False
        self._settled = len(self._chunks)
        return victims

    def _has_changed(self) -> bool:
        """Say whether anything happened that may matter to what was looked up."""
        marked = self._passes_over and bool(self._marks)
        return self._moved or marked or self._has_more_than_inserts()

    def _evict_oldest(self, protected: AbstractSet[OffloadKey]) -> Victims | None:
        """Evict one chunk if it is plain which, else do nothing and return None."""
        t1_size = len(self._chunks) - self._t2_size
        oldest = self._oldest[t1_size < self._target]  # as `gives` in kernels.py, for most cases
        if not oldest:
            self._look_ahead()
            t1_size = len(self._chunks) - self._t2_size
            oldest = self._oldest[t1_size < self._target]
            if not oldest:
                return None
        at = len(oldest) - 1
        while oldest[at][1] in protected:
            at -= 1
            if at < 0:
                return None
        row, key = oldest[at]
        chunk = self._chunks[key]
        if chunk.ref_cnt:
            return None
        del oldest[at], self._chunks[key]
        self._t2_size -= oldest is self._oldest[1]
        self._settled -= 1
        self._marks.discard(key)  # should the key come again, that mark is not its
        self._leaves += (len(self._keys), row)
        return [(key, chunk)]

    def _look_ahead(self) -> None:
        """Look up the oldest of a list of which none are known any more."""
        self._reach = min(2 * self._reach + 4, FURTHEST)
        self._step(0)
        if self._moved:
            return
        wanted = [0 if known else self._reach for known in self._oldest]
        found = kernels.arc_peek(self._view, *wanted)
        in_t1, count = divmod(found, kernels.NUMBER)
        rows = self._view[self._out : self._out + count]
        keys = self._names[rows].tolist()
        self._chunks_of(keys)
        named = list(zip(rows.tolist(), keys, strict=True))
        for known, some in zip(self._oldest, (named[:in_t1], named[in_t1:]), strict=True):
            if some:
                known[:] = reversed(some)
        self._t2_size = self._header[kernels.COUNTS + kernels.T2]
        self._target = int(self._view[kernels.TARGET : kernels.TARGET + 1].view(np.float64)[0])
        self._passes_over |= self._header[kernels.PASSED] > 0

    def _chosen(self, n: int, protected: AbstractSet[OffloadKey]) -> Victims | None:
        """Hand over the `n` chunks that were chosen, or none if one of them may not leave."""
        if n == 1:
            # As below, without what only many are worth.
            row = self._header[self._out]
            key = self._names[row]
            chunk = self._chunks.pop(key)
            if key not in protected and not chunk.ref_cnt:
                self._names[row] = None
                return [(key, chunk)]
            self._chunks[key] = chunk
            return None
        rows = self._view[self._out : self._out + n]
        victims = self._take_out(self._names[rows].tolist(), protected)
        if victims:
            self._names[rows] = None  # a ghost is nothing but its key in the memory
        return victims

    def _evict_among(
        self, n: int, protected: AbstractSet[OffloadKey], found: int
    ) -> Victims | None:
        """Evict when some of the `found` that were chosen first may not leave, or too few were."""
        kept: list[int] = []
        ahead, doubted = 4, False
        victims: Victims | None = None
        while victims is None:
            if found == n:
                self._header[kernels.TAKEN] = 0
                kept += self._pass_over(n, protected)
                # Look further each time, so that few rounds do, however many are passed over.
                kept += self._pass_over(
                    kernels.arc_peek(self._view, ahead, ahead) & kernels.LOW, protected
                )
                ahead *= 2
            elif doubted:
                break
            else:
                # What is idle again had a mark. Should one have failed to come, this is seen here.
                doubted = True
                kernels.arc_doubt(self._view)
            found = kernels.arc_select(self._view, n, self.falls_back_to_t1)
            if found == n:
                victims = self._chosen(n, protected)
        kernels.arc_settle(self._view)
        self._view[self._out : self._out + len(kept)] = kept
        kernels.arc_unkeep(self._view, len(kept))
        return victims

    def _pass_over(self, count: int, protected: AbstractSet[OffloadKey]) -> list[int]:
        """Have those of the first `count` rows in `out` passed over that may not leave.

        Returns:
            The rows of those that are protected.
        """
        names = self._names[self._view[self._out : self._out + count]].tolist()
        statuses = self._chunks_of(names)
        held = set(filter(protected.__contains__, names)) if protected else set()
        kept = [at for at, key in enumerate(names, self._out) if key in held] if held else []
        busy: list[int] = []
        if any(map(ref_count, statuses)):
            busy = [at for at, chunk in enumerate(statuses, self._out) if chunk.ref_cnt]
        rows = [self._header[at] for at in kept]
        for at in kept:
            self._header[at] |= kernels.KEEP
        for at in busy:
            self._header[at] |= kernels.PARK
        kernels.arc_flag(self._view, count)
        return rows

    def _step(self, n: int) -> int:
        self._moved |= self._has_more_than_inserts()
        if self._marks:
            self._moved |= self._passes_over
            self._note_marks()
        leaves = self._leaves
        if leaves:
            self._close()
            self._program[:0] = (kernels.LEAVE, len(leaves) // 2, *leaves)
            self._names[leaves[1::2]] = None  # as in _chosen, for all of them at once
            leaves.clear()
        data, words, length = self._packed()  # which may move the memory
        found = kernels.arc_step(self._view, data, words, length, n, self.falls_back_to_t1)
        self._name_rows()
        self._settled = len(self._chunks)
        return found

    def cachelaw_state(self, *requests: ReqContext) -> Hashable:
        """Return a value that is equal for two caches exactly if they will behave alike.

        It is the target, T1, T2, B1 and B2, and the keys that are taken to be pending.
        """
        target = self.target_t1_size
        lists = [self._rows_in(which) for which in (kernels.T1, kernels.T2)]
        pending = frozenset(
            self._key_of(row)
            for rows in lists
            for row in rows
            if int(self._records[row, kernels.META]) & kernels.PENDING
        )
        lists += [self._rows_in(which) for which in (kernels.B1, kernels.B2)]
        return target, *(tuple(map(self._key_of, rows)) for rows in lists), pending

    def _rows_in(self, which: int) -> list[int]:
        """Return the rows of a list, least recent first."""
        header = self._header
        first, end = header[kernels.FIRSTS + which], header[kernels.ENDS + which]
        order = header[kernels.ORDER] + (which - 1) * header[kernels.ORDER_SIZE]
        rows = self._view[order + first : order + end]
        places = self._records[rows, kernels.META] & kernels.PLACE
        slots = self._records[rows, kernels.SLOT]
        found: list[int] = rows[(places == which) & (slots == np.arange(first, end))].tolist()
        return found


class RefusingARC(TouchedARC):
    """ARC without the fallback to T1 (v0.24 to v0.27)."""

    falls_back_to_t1 = False


class ARC(TouchedARC):
    """ARC that counts a request's use of a chunk once, when the request ends (v0.31)."""

    def on_store_miss(self, keys: Iterable[OffloadKey], req_context: ReqContext) -> None:
        """Adapt to ghosts (`arc/miss-adapts`)."""
        missed = keys_from(keys)
        if missed:
            missed.reverse()
            self._note(kernels.MISS, 0, missed)

    def on_request_finished(
        self,
        key_groups: Sequence[Sequence[OffloadKey]],
        insertion_only_keys: AbstractSet[OffloadKey],
        reused_keys: AbstractSet[OffloadKey],
        req_context: ReqContext,
    ) -> None:
        """Promote what was reused, renew what was only stored, tail first."""
        keys = in_request_order(key_groups, req_context)
        keys.reverse()
        if insertion_only_keys.issuperset(keys) if isinstance(insertion_only_keys, set) else False:
            reused = [0] * len(keys)
        else:
            seen = [
                (key, key not in insertion_only_keys)
                for key in keys
                if key in insertion_only_keys or key in reused_keys  # arc/merely-seen-stays
            ]
            keys = [key for key, _ in seen]
            reused = [int(is_reused) for _, is_reused in seen]
        if keys:
            self._note_marks()
            self._close()
            self._keys += keys
            self._program += (kernels.FINISH + kernels.ONE * len(keys), 0)
            self._program += reused
            if len(self._keys) >= self._limit:
                self._step(0)
