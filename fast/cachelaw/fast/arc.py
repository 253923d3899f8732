"""ARC on a tensor: `cachelaw.reference.arc`, under the newest interface.

What is said there is not said again; the names in the comments are clauses of `specs/arc.md`. The
four lists and the target lie in the memory, ghosts as nothing but their keys. Whether a chunk is
pending, which a touch needs to know, is learned from the insert and from the first mark.

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
from cachelaw.fast.table import LIMIT, Policy, key_from, keys_from
from cachelaw.reference import OffloadKey, ReqContext
from cachelaw.reference.policy import Victims

INSERT_ONE = kernels.INSERT + kernels.ONE
FORGET_ONE = kernels.FORGET + kernels.ONE
READY_ONE = kernels.READY + kernels.ONE


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
        self._keys.append(key)
        self._program += (INSERT_ONE, chunk.ref_cnt < 0)
        if len(self._keys) >= LIMIT:
            self._step(0)

    def remove(self, key: OffloadKey) -> None:
        """Forget the chunk, leaving no ghost (`arc/remove-leaves-no-ghost`)."""
        self._chunks.pop(key, None)
        self._note(key_from(key), FORGET_ONE, 0)

    def touch(self, keys: Iterable[OffloadKey], req_context: ReqContext | None) -> None:
        """Promote, renew, or adapt to ghosts, tail first (`arc/batch-tail-first`)."""
        touched = keys_from(keys)
        if touched:
            touched.reverse()
            self._note_all(kernels.TOUCH, 0, touched)

    def mark_evictable(self, key: OffloadKey) -> None:
        """Learn that the chunk is idle, and so pending no more."""
        self._keys.append(key if type(key) is bytes else key_from(key))
        self._program += (READY_ONE, 0)
        if len(self._keys) >= LIMIT:
            self._step(0)

    def evict(self, n: int, protected: set[OffloadKey]) -> Victims | None:
        """Evict `n` chunks from T1 or T2 as the target says, or none."""
        if n < 1:
            return []
        if n > len(self._chunks):
            return None
        found = self._step(n)
        if found == n:
            victims = self._chosen(n, protected)
            if victims is not None:
                return victims
        return self._evict_among(n, protected, found)

    def _chosen(self, n: int, protected: AbstractSet[OffloadKey]) -> Victims | None:
        """Hand over the `n` chunks that were chosen, or none if one of them may not leave."""
        if n == 1:
            # As below, without what only many are worth.
            key = self._first_key_out()
            chunk = self._chunks.pop(key)
            if key not in protected and not chunk.ref_cnt:
                return [(key, chunk)]
            self._chunks[key] = chunk
            return None
        keys = self._keys_out(0, n)
        chunks = list(map(self._chunks.pop, keys))
        busy = any([chunk.ref_cnt for chunk in chunks])  # noqa: C419  # the list is faster
        if not busy and (not protected or protected.isdisjoint(keys)):
            return list(zip(keys, chunks, strict=True))
        self._chunks.update(zip(keys, chunks, strict=True))
        return None

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
                kept += self._pass_over(kernels.arc_peek(self._view, ahead), protected)
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
        kept: list[int] = []
        for at, key in enumerate(self._keys_out(0, count), self._out):
            if self._chunks[key].ref_cnt:
                self._header[at] |= kernels.PARK
            elif key in protected:
                kept.append(self._header[at])
                self._header[at] |= kernels.KEEP
        kernels.arc_flag(self._view, count)
        return kept

    def _step(self, n: int) -> int:
        data, words, length = self._packed()  # which may move the memory
        return kernels.arc_step(self._view, data, words, length, n, self.falls_back_to_t1)

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
        links, rows = self._header[kernels.LINKS], []
        row = self._header[links + 2 * (self._rows + which) + kernels.NEXT]
        while row < self._rows:
            rows.append(row)
            row = self._header[links + 2 * row + kernels.NEXT]
        return rows


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
            self._note_all(kernels.MISS, 0, missed)

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
            self._keys += keys
            self._program += (kernels.FINISH + kernels.ONE * len(keys), 0)
            self._program += reused
            if len(self._keys) >= LIMIT:
                self._step(0)
