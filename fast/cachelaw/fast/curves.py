"""The exact LRU miss-ratio curve: the hits at every capacity, in one pass over a trace.

LRU is a stack: what a cache of capacity c holds is what one of capacity c + 1 holds, but for one
key. So each reference has a *stack distance*, the number of different keys used since the last use
of its own key, itself included, and is a hit in exactly the caches at least that large (Mattson,
Gecsei, Slutz and Traiger, 1970). Two algorithms count the distances:

- `fenwick`, on the CPU: the last uses of all keys are bits in the order of time, with a Fenwick
  tree of their sums. Only last uses are kept, so the time axis is closed up whenever it is full.
- `partition`, in torch, for a GPU: the distance follows from the number of earlier references
  whose previous use lies further back, and numbers of earlier smaller ones are counted by
  partitioning bit by bit.

Semantics are those of `references` in `lanes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from cachelaw.fast.compiled import kernel
from cachelaw.fast.cuda import require_device
from cachelaw.fast.lanes import Trace

Int64 = npt.NDArray[np.int64]

BLOCK = 1 << 20
"""References between two reports of progress."""


@dataclass(frozen=True, slots=True)
class LruCurve:
    """The hits of LRU at every capacity.

    Attributes:
        references: the number of references, all of which count.
        hits: int64; `hits[c]` is the number of hits at capacity c, from 0 to the number of
            different keys, beyond which nothing changes.
        method: which algorithm counted, `fenwick` or `partition`.
    """

    references: int
    hits: Int64
    method: str

    def at(self, capacity: int) -> int:
        """Return the hits at a capacity of 0 or more."""
        if capacity < 0:
            raise ValueError(f"capacity must be 0 or more, got {capacity}")
        return int(self.hits[min(capacity, self.hits.size - 1)])

    @property
    def miss_ratio(self) -> npt.NDArray[np.float64]:
        """Misses over references, by capacity; 0 if there are no references."""
        return (self.references - self.hits) / max(1, self.references)


def lru_curve(
    trace: Trace,
    device: str = "cpu",
    *,
    method: str | None = None,
    store_threshold: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LruCurve:
    """Return the exact miss-ratio curve of LRU.

    Args:
        trace: the references; requests in it make no difference.
        device: `cpu` or `cuda`.
        method: `fenwick` (only on the CPU) or `partition`; None takes what is faster there.
        store_threshold: how often a key must have been looked up before it is stored, with a
            tracker that has no bound; 0 is no filter. With a bounded tracker LRU is no stack: the
            lanes count that.
        progress: called now and then with the number of references done and to do.

    Raises:
        ValueError: there is no such device or method.
        DeviceError: the device cannot be used here.
    """
    if device not in ("cpu", "cuda"):
        raise ValueError(f"a curve has no device {device!r}; there are cpu, cuda")
    method = method or ("fenwick" if device == "cpu" else "partition")
    if method not in ("fenwick", "partition") or (method == "fenwick" and device != "cpu"):
        raise ValueError(
            f"there is no method {method!r} on {device}; there are fenwick (on cpu), partition"
        )
    require_device(device)
    keys = trace.keys
    if store_threshold:
        # Nothing is stored before a key's n-th use, whatever the capacity: as if it were the first.
        seen = trace.lookups(None, np.arange(len(trace) + 1, dtype=np.int64))
        keys = keys[seen >= store_threshold]
    if method == "fenwick":
        histogram = _by_fenwick(keys, trace.key_count, progress)
    else:
        histogram = _by_partition(keys, trace.key_count, device)
    return LruCurve(len(trace), np.cumsum(histogram), method)


# --- The tree ------------------------------------------------------------------------------------

WORD = 32
"""Bits of the time axis in a word; the tree sums words."""


@kernel(nogil=True, borrows=True)
def count_distances(
    keys: npt.NDArray[np.int32],
    first: int,
    last: int,
    slots: npt.NDArray[np.int32],
    owners: npt.NDArray[np.int32],
    words: npt.NDArray[np.int64],
    tree: npt.NDArray[np.int32],
    clock: Int64,
    histogram: Int64,
) -> None:
    """Count the stack distances of references `first` to `last` - 1.

    The slots of the time axis that lie ahead are set from the start: no query reaches them, and so
    a use sets nothing, it only clears the bit of the use before.

    Args:
        keys: the references, as numbers from 0.
        first: the reference to begin with.
        last: the reference to end before.
        slots: for each key the slot of its last use, -1 if there is none; changed.
        owners: for each slot the key that used it; changed.
        words: the time axis, WORD bits each, set where a last use is and in all slots ahead;
            changed.
        tree: Fenwick tree over the sums of `words`, from 1 on; changed.
        clock: the next slot, and how many keys were used yet; changed.
        histogram: gets the number of references at each distance added.
    """
    now, used = clock[0], clock[1]
    size = words.size
    for t in range(first, last):
        key = keys[t]
        if now == owners.size:  # close up
            kept = 0
            for slot in range(now):
                owner = owners[slot]
                if slots[owner] == slot:
                    slots[owner] = kept
                    owners[kept] = owner
                    kept += 1
            now = kept
            for i in range(size):
                words[i] = (1 << WORD) - 1
                tree[i + 1] = WORD * ((i + 1) & -(i + 1))
        slot = slots[key]
        if slot < 0:
            used += 1
        else:
            at, bit = slot // WORD, slot % WORD
            # How many last uses lie at or before the slot: those in its word, then the tree.
            x = words[at] & ((2 << bit) - 1)
            x -= (x >> 1) & 0x55555555
            x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
            x = (x + (x >> 4)) & 0x0F0F0F0F
            before = ((x * 0x01010101) & 0xFFFFFFFF) >> 24
            i = at
            while i > 0:
                before += tree[i]
                i &= i - 1
            histogram[used - before + 1] += 1
            words[at] &= ~(1 << bit)
            i = at + 1
            while i <= size:
                tree[i] -= 1
                i += i & -i
        slots[key] = now
        owners[now] = key
        now += 1
    clock[0] = now
    clock[1] = used


def _by_fenwick(
    keys: npt.NDArray[np.int32], key_count: int, progress: Callable[[int, int], None] | None
) -> Int64:
    histogram = np.zeros(key_count + 1, np.int64)
    length = min(keys.size, max(4 * key_count, 1024))
    size = -(-length // WORD)
    slots, owners = np.full(key_count, -1, np.int32), np.zeros(length, np.int32)
    words = np.full(size, (1 << WORD) - 1, np.int64)
    nodes = np.arange(size + 1)
    tree = (WORD * (nodes & -nodes)).astype(np.int32)
    clock = np.zeros(2, np.int64)
    for first in range(0, keys.size, BLOCK):
        last = min(first + BLOCK, keys.size)
        count_distances(keys, first, last, slots, owners, words, tree, clock, histogram)
        if progress is not None:
            progress(last, keys.size)
    return histogram


# --- The partition -------------------------------------------------------------------------------


def earlier_and_smaller(values: Any) -> Any:
    """Count for each place of a permutation the smaller numbers that stand before it.

    From the highest bit to the lowest, the numbers that agree in all higher bits stand together,
    in their first order. Such a group has a place of its own in the order of size, since no number
    is missing, so where it begins can be read off any number in it. At each bit, a number that has
    it is passed by the zeros of its group that stood before it; then each group is split in two.

    Args:
        values: integer tensor, a permutation of 0 to n - 1.

    Returns:
        A tensor of the same type and device: the count for each *number*, not for each place.
    """
    counts = torch.zeros_like(values)
    places = torch.arange(values.numel(), dtype=values.dtype, device=values.device)
    for bit in reversed(range(max(1, values.numel() - 1).bit_length())):
        one = (values >> bit) & 1
        zeros = torch.cumsum(1 - one, 0, dtype=values.dtype) - (1 - one)  # those before each place
        begin = (values >> (bit + 1)) << (bit + 1)
        passed = zeros - zeros[begin.long()]
        counts += one * passed
        to = (begin + torch.where(one == 1, (1 << bit) + places - begin - passed, passed)).long()
        values = torch.empty_like(values).scatter_(0, to, values)
        counts = torch.empty_like(counts).scatter_(0, to, counts)
    return counts


def stack_distances(keys: Any) -> Any:
    """Return the stack distances of all references but the first to each key, in some order.

    Args:
        keys: integer tensor, the references; on any device.

    Returns:
        An int32 tensor on the same device, empty if no key comes twice.
    """
    n = keys.numel()
    ordered, order = torch.sort(keys, stable=True)
    again = ordered[1:] == ordered[:-1]
    previous = torch.full((n,), -1, dtype=torch.int32, device=keys.device)
    previous[order[1:][again]] = order[:-1][again].to(torch.int32)
    reuses = torch.nonzero(previous >= 0).squeeze(1)
    befores = previous[reuses]
    # The previous uses as numbers 0, 1, ... in their order; all are different.
    is_before = torch.zeros(n, dtype=torch.int32, device=keys.device)
    is_before[befores.long()] = 1
    values = (torch.cumsum(is_before, 0, dtype=torch.int32) - 1)[befores.long()]
    smaller = earlier_and_smaller(values)[values.long()]
    # Between its previous use and itself, a reference has as many different keys as there are
    # references whose own previous use is not in between: the first uses, and the smaller ones.
    # Counted from the start of the trace, all up to its previous use are too many.
    first_uses = reuses - torch.arange(reuses.numel(), device=keys.device)
    return (first_uses + smaller - befores).to(torch.int32)


def _by_partition(keys: npt.NDArray[np.int32], key_count: int, device: str) -> Int64:
    distances = stack_distances(torch.from_numpy(np.ascontiguousarray(keys)).to(device))
    histogram: Int64 = torch.bincount(distances, minlength=key_count + 1).cpu().numpy()
    return histogram
