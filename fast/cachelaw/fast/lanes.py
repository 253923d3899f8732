"""Lanes: many independent caches over one stream of requests.

    trace = Trace.of_requests([[1, 2, 3], [1, 2, 4], ...])
    lanes = [LaneSpec("lru", c) for c in (100, 1_000)] + [LaneSpec("arc", 1_000, "v0.31")]
    result = replay(trace, lanes)
    result.hits / result.references

Each lane has its own policy, edition, capacity and reuse filter. Two semantics are on offer, and
the result names the one that was used:

- `requests`: each request is served as `cachelaw.reference.protocol` says, alone: before v0.31
  its keys are touched; the leading run of residents is loaded, and pinned until the request is
  over; all its keys are offered, and the absent ones are stored, all of them or none; then the
  store ends, the load ends, and from v0.31 the request. Hits are the keys of the leading run.
- `references`: each key is a request of its own. A hit is a touch; a miss is reported, evicts one
  chunk if the cache is full, and is stored. Hits are the references to residents.

The reuse filter counts all keys of each lookup, as that of v0.19 does, and only what was looked up
often enough is offered. Its tracker may be bounded or not; both are exact, for a tracker does not
depend on what any cache does, and is followed once for all lanes that share its size.

A lane takes 11 bytes of state a key of the trace; plain LRU in `references` takes none. On a GPU
each lane is one thread, and a thread there is far slower than a core here, so that a replay needs
many lanes. From how many on a GPU pays has not been measured. The estimate is some thousands: at
2 to 4 microseconds a reference and lane, 4,000 lanes are as fast as ten or so cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cachelaw.fast import lane_kernels as core
from cachelaw.fast.cuda import Array, require_device, to_device, to_host, zeros

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

RULES = {
    ("lru", "v0.24"): core.LRU_IDLE,
    ("lru", "v0.31"): core.LRU_LIST,
    ("lru", "v0.33"): core.LRU_RANKED,
    ("arc", "v0.24"): core.ARC_V024,
    ("arc", "v0.31"): core.ARC,
    ("arc", "v0.33"): core.ARC,
}
"""The number by which the kernels know a policy of an edition."""

BLOCK = 1 << 18
"""References between two looks at the clock: progress and interruption come as often."""


def rule_of(policy: str, edition: str) -> int:
    """Return the number of a policy of an edition.

    Raises:
        ValueError: lanes do not have it; the message lists what there is.
    """
    try:
        return RULES[policy, edition]
    except KeyError:
        known = ", ".join(f"{name} {since}" for name, since in RULES)
        raise ValueError(f"lanes have no {policy!r} of {edition!r}; there are {known}") from None


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """What one lane is to be.

    Args:
        policy: `lru` or `arc`.
        capacity: the number of chunks that fit, 1 or more.
        edition: whose semantics: `v0.24`, `v0.31` or `v0.33`.
        store_threshold: how often a key must have been looked up before it is offered, 2 or more,
            as in the reuse filter; 0 is no filter.
        max_tracker_size: how many keys the filter remembers at most, 1 or more; None is no bound.

    Raises:
        ValueError: there is no such lane.
    """

    policy: str
    capacity: int
    edition: str = "v0.33"
    store_threshold: int = 0
    max_tracker_size: int | None = None

    def __post_init__(self) -> None:
        rule_of(self.policy, self.edition)
        _check("capacity", self.capacity, 1)
        if self.store_threshold != 0:
            _check("store_threshold", self.store_threshold, 2)
        if self.max_tracker_size is not None:
            _check("max_tracker_size", self.max_tracker_size, 1)

    @property
    def rule(self) -> int:
        """The number by which the kernels know its policy and edition."""
        return RULES[self.policy, self.edition]


def _check(name: str, value: int, least: int) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise ValueError(f"{name} of a lane must be an int, got {value!r}")
    if not least <= value < 2**31:
        raise ValueError(f"{name} of a lane must be from {least} to 2**31 - 1, got {value}")


class Trace:
    """A stream of requests, with its keys numbered 0, 1, ... in their order.

    Args:
        keys: keys of all requests, one after the other; any integers.
        starts: where each request begins, and at last the number of keys; None makes each key a
            request of its own.

    Attributes:
        keys: int32, the keys as numbers.
        names: int64, the key that each number stands for.
        starts: int64, request r is `keys[starts[r]:starts[r + 1]]`.
        has_requests: whether requests were given.

    Raises:
        ValueError: `keys` or `starts` are not of that form, or a key stands twice in a request.
    """

    def __init__(self, keys: npt.ArrayLike, starts: npt.ArrayLike | None = None) -> None:
        given = np.asarray(keys)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ValueError("keys of a trace must be integers in one dimension")
        if given.size >= 2**31 - 1:
            raise ValueError(f"a trace has fewer than 2**31 - 1 keys, got {given.size}")
        self.names, numbers = np.unique(given, return_inverse=True)
        self.keys: Int32 = numbers.astype(np.int32)
        self.has_requests = starts is not None
        if starts is None:
            self.starts: Int64 = np.arange(given.size + 1, dtype=np.int64)
            return
        self.starts = np.ascontiguousarray(starts, dtype=np.int64)
        ordered = self.starts.size > 0 and bool(np.all(self.starts[1:] >= self.starts[:-1]))
        if not ordered or self.starts[0] != 0 or self.starts[-1] != given.size:
            raise ValueError("starts of a trace must rise from 0 to the number of keys")
        request = np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))
        order = np.lexsort((self.keys, request))
        same = (np.diff(self.keys[order]) == 0) & (np.diff(request[order]) == 0)
        if same.any():
            at = int(request[order][1:][same][0])
            raise ValueError(f"a key stands twice in request {at} of the trace")

    @classmethod
    def of_requests(cls, requests: Iterable[Sequence[int]]) -> Trace:
        """Make a trace of requests, each the keys of one prefix, head first."""
        lists = [np.asarray(request, dtype=np.int64) for request in requests]
        sizes = np.array([0, *map(len, lists)], dtype=np.int64)
        return cls(np.concatenate(lists) if lists else np.zeros(0, np.int64), np.cumsum(sizes))

    def __len__(self) -> int:
        return self.keys.size

    @property
    def key_count(self) -> int:
        """The number of different keys."""
        return int(self.names.size)

    @cached_property
    def occurrences(self) -> tuple[Int32, Int32]:
        """For each reference the one before and the next one to the same key.

        -1 if there is none before, the number of references if there is no next.
        """
        previous, following = np.empty_like(self.keys), np.empty_like(self.keys)
        last = np.full(self.key_count, -1, np.int32)
        core.find_occurrences(self.keys, last, previous, following)
        return previous, following

    def lookups(self, limit: int | None, starts: Int64) -> Int32:
        """Return for each key of each request how often it was looked up when it is offered.

        Args:
            limit: how many keys the tracker holds; None is no bound.
            starts: the requests.
        """
        count = self.key_count
        seen = np.zeros_like(self.keys)
        links, counts = np.zeros(2 * (count + 1), np.int32), np.zeros(count, np.int32)
        core.count_lookups(
            self.keys, starts, count if limit is None else limit, links, counts, seen
        )
        return seen


@dataclass(frozen=True, slots=True)
class Result:
    """What a replay counted; each array is int64, one number a lane, unless said otherwise.

    Attributes:
        semantics: `requests` or `references`, as this module defines them.
        device: where it ran.
        lanes: the lanes, in the order of all arrays.
        requests: the number of requests, of references if those were the semantics.
        references: the number of keys in them.
        hits: keys of leading runs, or references to residents.
        resident: keys that were resident when they were looked up; in `references` equal to hits.
        stores: chunks stored.
        evictions: chunks evicted.
        refusals: requests of which nothing could be stored.
        targets: float64, ARC's target at the end; 0 for LRU.
    """

    semantics: str
    device: str
    lanes: tuple[LaneSpec, ...]
    requests: int
    references: int
    hits: Int64
    resident: Int64
    stores: Int64
    evictions: Int64
    refusals: Int64
    targets: npt.NDArray[np.float64]

    @property
    def hit_ratio(self) -> npt.NDArray[np.float64]:
        """Hits over references, one number a lane; 0 if there are no references."""
        return self.hits / max(1, self.references)


class State:
    """The state arrays of some lanes, on a device.

    Args:
        lanes: how many.
        keys: how many keys there are.
        ranked: whether one of them is LRU_RANKED.
        device: `cpu`, `cudasim` or `cuda`.

    Attributes:
        arrays: what kernels take.
    """

    def __init__(self, lanes: int, keys: int, *, ranked: bool, device: str) -> None:
        self.device = device
        keys = max(keys, 1)  # a GPU has no array of nothing

        def made(rows: int, dtype: str) -> Array:
            return zeros((lanes, rows) if device == "cpu" else (rows, lanes), dtype, device)

        names = np.arange(keys if ranked else 1, dtype=np.int64)
        self.arrays = core.Lane(
            links=made(2 * (keys + core.LISTS), "int32"),
            where=made(keys, "int8"),
            busy=made(keys, "int8"),
            flags=made(keys, "int8"),
            ranks=made(2 * keys if ranked else 1, "int64"),
            names=to_device(names, device),
            counts=made(core.COUNTS, "int64"),
            target=made(1, "float64"),
        )
        if device == "cpu":
            core.clear_rows(self.arrays)
        else:
            from cachelaw.fast.cuda_kernels import THREADS, clear_lanes

            clear_lanes[-(-lanes // THREADS), min(lanes, THREADS)](self.arrays)

    @property
    def targets(self) -> npt.NDArray[np.float64]:
        """The targets, one a lane."""
        found: npt.NDArray[np.float64] = to_host(self.arrays.target, self.device).reshape(-1)
        return found

    def order(self, lane: int, which: int) -> list[int]:
        """Return the keys in a list of a lane, oldest first; for tests."""
        links = to_host(self.arrays.links, self.device)
        row = links[lane] if self.device == "cpu" else links[:, lane]
        node = row.size // 2 - core.LISTS + which - 1
        found: list[int] = []
        at = int(row[2 * node])
        while at != node:
            found.append(at)
            at = int(row[2 * at])
        return found


def plan_of(lanes: Sequence[LaneSpec], trackers: Sequence[int], device: str) -> core.Plan:
    """Return what kernels take for `lanes`, with the row of `seen` for each."""
    return core.Plan(
        *(
            to_device(np.array(column, dtype=np.int64), device)
            for column in (
                [lane.rule for lane in lanes],
                [lane.capacity for lane in lanes],
                [lane.store_threshold for lane in lanes],
                trackers,
            )
        )
    )


def replay(
    trace: Trace,
    lanes: Iterable[LaneSpec],
    device: str = "cpu",
    *,
    semantics: str | None = None,
    progress: Progress | None = None,
    threads: int | None = None,
) -> Result:
    """Send a trace through lanes.

    KeyboardInterrupt comes through after at most a block of some hundred thousand references a
    lane, and then nothing is returned.

    Args:
        trace: the requests.
        lanes: what each lane is to be.
        device: `cpu`, `cudasim` or `cuda`.
        semantics: `requests` or `references`; None takes `requests` if the trace has them.
        progress: called now and then with the number of keys done, over all lanes, and to do.
        threads: how many CPU threads share the lanes; None takes as many as this process may use.

    Raises:
        ValueError: there are no such semantics, device or number of threads.
        DeviceError: the device cannot be used here.
    """
    semantics = semantics or ("requests" if trace.has_requests else "references")
    if semantics not in ("requests", "references"):
        raise ValueError(f"there are no semantics {semantics!r}; there are requests, references")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be 1 or more, got {threads}")
    require_device(device)
    specs = tuple(lanes)
    run = _Run(trace, semantics, device, progress, threads or len(os.sched_getaffinity(0)), specs)
    tallies = np.zeros((len(specs), core.TALLIES), np.int64)
    targets = np.zeros(len(specs))
    with ThreadPoolExecutor(run.threads) as run.pool:
        for part, indices in run.parts().items():
            tallies[indices], targets[indices] = part(run, [specs[i] for i in indices])
    columns = [np.ascontiguousarray(column) for column in tallies.T]
    return Result(
        semantics,
        device,
        specs,
        run.starts.size - 1,
        len(trace),
        columns[core.RUN],
        columns[core.RESIDENT],
        columns[core.STORES],
        columns[core.EVICTIONS],
        columns[core.REFUSALS],
        targets,
    )


@dataclass
class _Run:
    """One replay: what is common to the kinds of lanes in it."""

    trace: Trace
    semantics: str
    device: str
    progress: Progress | None
    threads: int
    specs: tuple[LaneSpec, ...]
    pool: ThreadPoolExecutor = field(init=False)
    done: int = 0

    def __post_init__(self) -> None:
        whole = self.semantics == "requests"
        self.starts = self.trace.starts if whole else np.arange(len(self.trace) + 1, dtype=np.int64)

    def parts(self) -> dict[Callable[[_Run, list[LaneSpec]], Any], list[int]]:
        """Share the lanes out among the ways to replay them."""
        shared_out: dict[Callable[[_Run, list[LaneSpec]], Any], list[int]] = {}
        for i, spec in enumerate(self.specs):
            if self.semantics == "requests":
                part = _requests
            elif spec.policy == "lru" and spec.store_threshold == 0:
                part = _windows
            else:
                part = _references
            shared_out.setdefault(part, []).append(i)
        return shared_out

    def seen(self, specs: list[LaneSpec]) -> tuple[Array, list[int]]:
        """Return the look-ups counted by each tracker, and which row is whose."""
        limits: dict[int | None, int] = {}
        for spec in specs:
            if spec.store_threshold:
                limits.setdefault(spec.max_tracker_size, len(limits))
        rows = [self.trace.lookups(limit, self.starts) for limit in limits]
        table = np.stack(rows) if rows else np.zeros((1, 1), np.int32)
        trackers = [limits.get(s.max_tracker_size, 0) if s.store_threshold else 0 for s in specs]
        return to_device(table, self.device), trackers

    def blocks(self) -> list[tuple[int, int]]:
        """Cut the requests into blocks of some `BLOCK` keys, at least one request each."""
        cuts = [0]
        while cuts[-1] < self.starts.size - 1:
            end = int(np.searchsorted(self.starts, self.starts[cuts[-1]] + BLOCK, "right")) - 1
            cuts.append(max(end, cuts[-1] + 1))
        return list(pairwise(cuts))

    def each(
        self, count: int, on_cpu: Callable[..., None], on_gpu: str, arguments: Callable[..., Any]
    ) -> None:
        """Run a kernel over all blocks.

        Args:
            count: the number of lanes.
            on_cpu: the kernel on the CPU.
            on_gpu: the name of the kernel in `cuda_kernels`.
            arguments: makes the kernel's arguments from the first and the last request of a block.
        """
        shares = min(self.threads, count)
        cuts = [count * i // shares for i in range(shares + 1)]
        for first, last in self.blocks():
            given = arguments(first, last)
            if self.device == "cpu":
                running = [
                    self.pool.submit(on_cpu, lower, upper, *given)
                    for lower, upper in pairwise(cuts)
                ]
                for one in running:
                    one.result()
            else:
                from cachelaw.fast import cuda_kernels

                grid = -(-count // cuda_kernels.THREADS), min(count, cuda_kernels.THREADS)
                getattr(cuda_kernels, on_gpu)[grid](*given)
                cuda_kernels.cuda.synchronize()
            self.done += int(self.starts[last] - self.starts[first]) * count
            if self.progress is not None:
                self.progress(self.done, len(self.trace) * len(self.specs))

    def tally(self, count: int) -> Array:
        shape = (count, core.TALLIES) if self.device == "cpu" else (core.TALLIES, count)
        return zeros(shape, "int64", self.device)

    def counted(self, tally: Array) -> Int64:
        found: Int64 = to_host(tally, self.device)
        return found if self.device == "cpu" else found.T


Counted = tuple[Int64, npt.NDArray[np.float64]]


def _requests(run: _Run, specs: list[LaneSpec]) -> Counted:
    state = State(len(specs), run.trace.key_count, ranked=False, device=run.device)
    seen, trackers = run.seen(specs)
    plan, tally = plan_of(specs, trackers, run.device), run.tally(len(specs))
    keys, starts = to_device(run.trace.keys, run.device), to_device(run.starts, run.device)
    run.each(
        len(specs),
        core.serve_rows,
        "serve_lanes",
        lambda first, last: (state.arrays, plan, keys, seen, starts, first, last, tally),
    )
    return run.counted(tally), state.targets


def _references(run: _Run, specs: list[LaneSpec]) -> Counted:
    state = State(len(specs), run.trace.key_count, ranked=False, device=run.device)
    seen, trackers = run.seen(specs)
    plan, tally = plan_of(specs, trackers, run.device), run.tally(len(specs))
    keys = to_device(run.trace.keys, run.device)
    run.each(
        len(specs),
        core.refer_rows,
        "refer_lanes",
        lambda first, last: (state.arrays, plan, keys, seen, first, last, tally),
    )
    return run.counted(tally), state.targets


def _windows(run: _Run, specs: list[LaneSpec]) -> Counted:
    previous, following = (to_device(array, run.device) for array in run.trace.occurrences)
    plan, tally = plan_of(specs, [0] * len(specs), run.device), run.tally(len(specs))
    shape = (len(specs), 2) if run.device == "cpu" else (2, len(specs))
    windows = zeros(shape, "int64", run.device)
    run.each(
        len(specs),
        core.refer_window_rows,
        "refer_windows",
        lambda first, last: (plan, previous, following, first, last, windows, tally),
    )
    return run.counted(tally), np.zeros(len(specs))
