"""Lanes and curves against libcachesim, in one process and on one thread."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.fast.engines import Cell
from cachelaw.fast.curves import lru_curve
from cachelaw.fast.lanes import RULES, LaneSpec, Trace, replay

Say = Callable[[str], None]
LIBCACHESIM = "libcachesim"
LANES = 16


def zipf(references: int, keys: int) -> Any:
    """Return references to permuted keys, drawn by Zipf's law with exponent 1."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, keys + 1)
    ranks = rng.choice(keys, references, p=weights / weights.sum())
    return rng.permutation(keys)[ranks]


@contextmanager
def trace_file(keys: Any) -> Iterator[str]:
    """Write references in libcachesim's binary form and yield the file's name."""
    fields = [("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")]
    table = np.zeros(len(keys), dtype=np.dtype(fields))
    table["key"], table["size"], table["next"] = keys, 1, -1
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.oracleGeneral.bin"
        path.write_bytes(table.tobytes())
        yield str(path)


def by_libcachesim(policy: str, capacity: int, path: str, keys: int) -> tuple[float, int]:
    """Replay a trace file in libcachesim; return the seconds that its C++ loop took, and hits."""
    other: Any = importlib.import_module("libcachesim")

    # Its hash table is sized for the keys there are: its default of 2**24 would be slower here.
    power = max(16, int(keys).bit_length())
    cache = getattr(other, policy.upper())(capacity, hashpower=power)
    reader = other.TraceReader(
        path,
        other.TraceType.ORACLE_GENERAL_TRACE,
        other.ReaderInitParam(ignore_obj_size=True),
    )
    references = os.path.getsize(path) // 24
    begin = perf_counter()
    miss_ratio, _ = cache.process_trace(reader)
    return perf_counter() - begin, round((1 - miss_ratio) * references)


def measure_lanes(rounds: int, say: Say = lambda line: None) -> dict[str, dict[str, Cell]]:
    """Return nanoseconds a reference of a lane, on 1M references to 100k keys.

    Raises:
        RuntimeError: LRU hits differ from libcachesim's.
    """
    references, count = 1_000_000, 100_000
    keys = zipf(references, count)
    capacities = np.geomspace(100, 80_000, LANES).astype(int).tolist()
    trace = Trace(keys)
    samples: dict[str, dict[str, list[float]]] = {"lru": {}, "arc": {}}
    with trace_file(keys) as path:
        for policy in samples:
            replay(trace, [LaneSpec(policy, 1)], threads=1)  # compiled, or taken from the cache
        for number in range(rounds):
            for policy, row in samples.items():
                say(f"lanes: round {number + 1} of {rounds}, {policy}")
                lanes = [LaneSpec(policy, capacity) for capacity in capacities]
                for name in ("fast", "fast again"):
                    begin = perf_counter()
                    result = replay(trace, lanes, threads=1)
                    took = perf_counter() - begin
                    row.setdefault(name, []).append(took * 1e9 / references / LANES)
                took = 0.0
                for i in range(number % 4, LANES, 4):
                    seconds, hits = by_libcachesim(policy, capacities[i], path, count)
                    took += seconds
                    if policy == "lru" and hits != result.hits[i]:
                        raise RuntimeError(f"hits of LRU differ: {hits}, {result.hits[i]}")
                row.setdefault(LIBCACHESIM, []).append(took * 1e9 / references / (LANES // 4))
    return {
        policy: {name: Cell(tuple(values)) for name, values in row.items()}
        for policy, row in samples.items()
    }


def measure_requests(rounds: int, say: Say = lambda line: None) -> dict[str, Cell]:
    """Return nanoseconds a key of a lane for whole requests of up to 64 keys, by policy."""
    keys = zipf(262_144, 100_000).reshape(-1, 64)
    trace = Trace.of_requests([list(dict.fromkeys(row.tolist())) for row in keys])
    capacities = np.geomspace(1_000, 80_000, 4).astype(int).tolist()
    samples: dict[str, list[float]] = {}
    for number in range(rounds + 1):  # the first compiles
        for policy, edition in RULES:
            say(f"requests: round {number} of {rounds}, {policy} {edition}")
            lanes = [LaneSpec(policy, capacity, edition) for capacity in capacities]
            begin = perf_counter()
            replay(trace, lanes, threads=1)
            took = (perf_counter() - begin) * 1e9 / len(trace) / len(lanes)
            if number:
                samples.setdefault(f"{policy} {edition}", []).append(took)
    return {name: Cell(tuple(values)) for name, values in samples.items()}


def measure_curve(
    references: int, count: int, rounds: int, say: Say = lambda line: None
) -> dict[str, Cell]:
    """Return the seconds that the curve takes, and those of one capacity in libcachesim.

    Raises:
        RuntimeError: their hits differ.
    """
    keys = zipf(references, count)
    trace = Trace(keys)
    lru_curve(Trace([1, 1]))
    samples: dict[str, list[float]] = {"fast": [], "fast again": [], LIBCACHESIM: []}
    with trace_file(keys) as path:
        for number in range(rounds):
            say(f"curve of {references:,}: round {number + 1} of {rounds}")
            for name in ("fast", "fast again"):
                begin = perf_counter()
                curve = lru_curve(trace)
                samples[name].append(perf_counter() - begin)
            seconds, hits = by_libcachesim("lru", count // 10, path, count)
            samples[LIBCACHESIM].append(seconds)
            if hits != curve.at(count // 10):
                raise RuntimeError(f"hits of the curve differ: {hits}, {curve.at(count // 10)}")
    return {name: Cell(tuple(values)) for name, values in samples.items()}


def measure_cuda(rounds: int, say: Say = lambda line: None) -> dict[str, Cell] | None:
    """Return the same on a GPU, and on all CPU threads beside it; None if there is no GPU.

    Keys are nanoseconds a reference of a lane, but for curves, which are seconds.
    """
    import torch

    if not torch.cuda.is_available():
        return None
    samples: dict[str, list[float]] = {}
    keys = zipf(100_000, 10_000)
    trace = Trace(keys)
    threads = len(os.sched_getaffinity(0))
    for policy in ("lru", "arc"):
        for lanes in (16, 256, 4_096, 16_384, 65_536):
            specs = [LaneSpec(policy, int(c)) for c in np.geomspace(10, 9_000, lanes).astype(int)]
            for device in ("cpu", "cuda"):
                replay(trace, specs[:1], device)
                for _ in range(rounds):
                    say(f"cuda: {policy}, {lanes} lanes on {device}")
                    begin = perf_counter()
                    replay(trace, specs, device)
                    took = (perf_counter() - begin) * 1e9 / len(trace) / lanes
                    where = f"{threads} CPU threads" if device == "cpu" else "CUDA"
                    samples.setdefault(f"{policy}, {lanes:,} lanes, {where}", []).append(took)
    for references, count in ((1_000_000, 100_000), (10_000_000, 1_000_000)):
        trace = Trace(zipf(references, count))
        for device in ("cpu", "cuda"):
            lru_curve(trace, device)
            for _ in range(rounds):
                say(f"cuda: curve of {references:,} on {device}")
                begin = perf_counter()
                lru_curve(trace, device)
                name = f"curve of {references:,}, {device.upper()}"
                samples.setdefault(name, []).append(perf_counter() - begin)
    return {name: Cell(tuple(values)) for name, values in samples.items()}
