"""The reuse filter on a tensor: `cachelaw.reference.reuse_filter`, in the form of v0.19.

What is said there is not said again; the names in the comments are clauses of
`specs/reuse-filter.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress

from cachelaw.fast import kernels
from cachelaw.fast.table import LIMIT, Table, keys_from
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.manager import (
    LoadStoreSpec,
    OffloadingEvent,
    OffloadingManagerV019,
    PrepareStoreOutput,
)


class Tracker(Table):
    """The keys seen most recently, each with the number of times.

    Args:
        limit: how many keys are remembered, 1 or more.
        threshold: how often a key must be seen to qualify.
    """

    def __init__(self, limit: int, threshold: int) -> None:
        super().__init__(limit, limit + 1, ranked=False)
        self._threshold = threshold

    def see(self, keys: list[OffloadKey]) -> None:
        """See `keys` one after the other, each as often as it stands there."""
        if keys:
            self._note(kernels.SEE, 0, keys)

    def qualified(self, keys: Sequence[OffloadKey]) -> list[OffloadKey]:
        """Return those of `keys` that qualify, in their order. To ask is not to see."""
        passed: list[OffloadKey] = []
        for first in range(0, len(keys), LIMIT):
            some = list(keys[first : first + LIMIT])
            self._step(0)
            # There is not always room in `out` for all answers at once.
            room = self._header[kernels.TAILS] - self._out
            for at in range(0, len(some), room):
                asked = some[at : at + room]
                self._keys += asked
                self._program += (kernels.ASK + kernels.ONE * len(asked), 0)
                self._step(0)
                answers = self._view[self._out : self._out + len(asked)].tolist()
                passed += compress(asked, answers)
        return passed

    def _step(self, n: int) -> int:
        data, words, length = self._packed()  # which may move the memory
        asked = kernels.filter_step(self._view, data, words, length, self._threshold)
        self._emptied()
        return asked

    def _rows_needed(self) -> int:
        return self._capacity + 1


class FilterReusedOffloadingManager(OffloadingManagerV019):
    """The filter of vLLM 0.18 and 0.19: a lookup counts all its keys.

    Args:
        backing: the manager that does the work.
        store_threshold: how often a key must be looked up before it may be stored, 2 or more.
        max_tracker_size: how many keys are remembered at most, 1 or more.

    Attributes:
        store_threshold: as given.
        max_tracker_size: as given.

    Raises:
        ValueError: `store_threshold` or `max_tracker_size` is not an int of that range.
    """

    def __init__(
        self,
        backing: OffloadingManagerV019,
        store_threshold: int = 2,
        max_tracker_size: int = 64_000,
    ) -> None:
        # reuse-filter/threshold-at-least-two, reuse-filter/tracker-at-least-one
        for name, value, least in (
            ("store_threshold", store_threshold, 2),
            ("max_tracker_size", max_tracker_size, 1),
        ):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(
                    f"FilterReusedOffloadingManager {name} must be an int >= {least}, got {value!r}"
                )
        self.store_threshold = store_threshold
        self.max_tracker_size = max_tracker_size
        self._backing = backing
        self._tracker = Tracker(max_tracker_size, store_threshold)

    def lookup(self, keys: Iterable[OffloadKey]) -> int | None:
        """Count each of `keys`, those past the first miss too, and pass all of them on."""
        keys = keys_from(keys)
        self._tracker.see(keys)  # reuse-filter/lookup-counts-each-key
        return self._backing.lookup(keys)  # reuse-filter/lookup-delegates-all

    def prepare_store(self, keys: Iterable[OffloadKey]) -> PrepareStoreOutput | None:
        """Pass on those of `keys` that were seen often enough, even if there are none."""
        # reuse-filter/store-needs-threshold, reuse-filter/filtered-before-backing
        return self._backing.prepare_store(self._tracker.qualified(keys_from(keys)))

    def touch(self, keys: Iterable[OffloadKey]) -> None:
        """Pass on; to touch is not to look up (`reuse-filter/all-else-delegated`)."""
        self._backing.touch(keys)

    def prepare_load(self, keys: Iterable[OffloadKey]) -> LoadStoreSpec:
        """Pass on; to load is not to look up (`reuse-filter/all-else-delegated`)."""
        return self._backing.prepare_load(keys)

    def complete_load(self, keys: Iterable[OffloadKey]) -> None:
        """Pass on (`reuse-filter/all-else-delegated`)."""
        self._backing.complete_load(keys)

    def complete_store(self, keys: Iterable[OffloadKey], success: bool = True) -> None:
        """Pass on; a failed store keeps its count (`reuse-filter/counts-outlive-chunks`)."""
        self._backing.complete_store(keys, success)

    def take_events(self) -> Iterable[OffloadingEvent]:
        """Pass on; an evicted chunk keeps its count (`reuse-filter/counts-outlive-chunks`)."""
        return self._backing.take_events()
