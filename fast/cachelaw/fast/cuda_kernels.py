"""The lane core on a GPU, or in numba's simulator of one: one thread a lane.

The kernels only find a thread's lane and call the functions of `lane_kernels.py`. Lanes share
nothing that is written, so no thread waits for another. State arrays are key-major,
`[rows, lanes]`: the threads of a warp use the same key at the same time, and so read neighbouring
words.

Only for who needs a GPU or the simulator: the import brings numba-cuda.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba.cuda

from cachelaw.fast import lane_kernels as core
from cachelaw.fast.lane_kernels import Array, Lane, Plan

cuda: Any = numba.cuda
# The simulator looks for this module among the globals of a kernel, under whatever name.

THREADS = 64
"""Threads a block."""


def launchable(function: Callable[..., None]) -> Any:
    """Make a kernel of a function: `kernel[blocks, threads](...)` runs it in every thread."""
    return cuda.jit(function)


@core.shared
def lane_at(state: Lane, i: int) -> Lane:
    """Return lane `i` of key-major arrays; `names` is one for all lanes."""
    return Lane(
        state.links[:, i],
        state.where[:, i],
        state.busy[:, i],
        state.flags[:, i],
        state.ranks[:, i],
        state.names,
        state.counts[:, i],
        state.target[:, i],
    )


@launchable
def clear_lanes(state: Lane) -> None:
    """Make every lane empty."""
    i = cuda.grid(1)
    if i < state.target.shape[1]:
        core.clear(lane_at(state, i))


@launchable
def serve_lanes(
    state: Lane,
    plan: Plan,
    keys: Array,
    seen: Array,
    starts: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Serve requests `first` to `last` - 1 in every lane."""
    i = cuda.grid(1)
    if i < plan.rules.size:
        core.serve_all(
            lane_at(state, i),
            plan.rules[i],
            plan.capacities[i],
            plan.thresholds[i],
            keys,
            seen[plan.trackers[i]],
            starts,
            first,
            last,
            tally[:, i],
        )


@launchable
def refer_lanes(
    state: Lane,
    plan: Plan,
    keys: Array,
    seen: Array,
    first: int,
    last: int,
    tally: Array,
) -> None:
    """Replay references `first` to `last` - 1 in every lane that has lists."""
    i = cuda.grid(1)
    if i < plan.rules.size:
        core.refer(
            lane_at(state, i),
            plan.rules[i],
            plan.capacities[i],
            plan.thresholds[i],
            keys,
            seen[plan.trackers[i]],
            first,
            last,
            tally[:, i],
        )


@launchable
def refer_windows(
    plan: Plan,
    previous: Array,
    following: Array,
    first: int,
    last: int,
    windows: Array,
    tally: Array,
) -> None:
    """Replay references `first` to `last` - 1 in every lane that is LRU without a filter."""
    i = cuda.grid(1)
    if i < plan.rules.size:
        core.refer_lru_window(
            previous, following, first, last, plan.capacities[i], windows[:, i], tally[:, i]
        )


@launchable
def perform_lanes(state: Lane, plan: Plan, code: Array, ends: Array, answers: Array) -> None:
    """Make in every lane the calls of its own program; lane i's is `code[ends[i]:ends[i + 1]]`.

    Answers are key-major too.
    """
    i = cuda.grid(1)
    if i < plan.rules.size:
        core.perform_all(
            lane_at(state, i),
            plan.rules[i],
            plan.capacities[i],
            code,
            ends[i],
            ends[i + 1],
            answers[:, i],
        )
