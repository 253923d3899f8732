"""What the bench found, as text that `fast/BENCHMARKS.md` holds."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version

from benchmarks.fast.engines import Cell, ratio
from benchmarks.fast.lanes import LANES, LIBCACHESIM
from benchmarks.fast.policies import AGAIN, FAST, HOST, REFERENCE, RELEASES, Table

NOT_RUN = "not run: there is no GPU on this machine"

# Speed as a multiple of vLLM 0.33.0, at 100,000 chunks, by what is timed and keys a call.
POLICY_TARGETS: dict[tuple[str, str, int], float] = {
    ("lru", "touch", 1): 3,
    ("lru", "touch", 16): 8,
    ("lru", "touch", 512): 20,
    ("lru", "touch", 8192): 20,
    ("lru", "evict", 1): 2.5,
    ("lru", "evict", 64): 10,
    ("lru", "evict", 4096): 10,
    ("lru", "insert", 1): 0.8,
    ("lru", "get", 1): 0.8,
    ("arc", "touch", 1): 1.5,
    ("arc", "touch", 16): 6,
    ("arc", "touch", 512): 8,
    ("arc", "touch", 8192): 10,
    ("arc", "evict", 1): 1.2,
    ("arc", "evict", 64): 2.5,
    ("arc", "evict", 4096): 3,
    ("arc", "insert", 1): 0.8,
    ("arc", "get", 1): 0.8,
}
MANAGER_TARGETS = {("lru", 100_000): 3.0, ("lru", 1_000_000): 5.0}
LANE_TARGETS = {"lru": (150e6, 4.0), "arc": (90e6, 2.5)}
CURVE_TARGETS = {1_000_000: 2.0, 10_000_000: 3.0}
SLOWER_THAN = "0.30.0"
AT_LEAST = 1 / 1.3
"""LRU is to be slower than 0.30.0 by more than 30 % at no shape."""


@dataclass
class Findings:
    """All that a run found; what was not run is empty.

    Attributes:
        subjects: verdict and digest of each subject.
        tables: calls on policies.
        managers: by policy, size and keys a request, nanoseconds a key.
        lanes: by policy, nanoseconds a reference of a lane.
        requests: by policy and edition, nanoseconds a key of a lane.
        curves: by number of references, seconds.
        cuda: what a GPU did; None if there is none.
    """

    subjects: dict[str, str] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    managers: dict[tuple[str, int, int], dict[str, Cell]] = field(default_factory=dict)
    lanes: dict[str, dict[str, Cell]] = field(default_factory=dict)
    requests: dict[str, Cell] = field(default_factory=dict)
    curves: dict[int, dict[str, Cell]] = field(default_factory=dict)
    cuda: dict[str, Cell] | None = None


def markdown(findings: Findings, command: str, rounds: int) -> str:
    """Return the findings as Markdown."""
    parts = [
        "# Benchmarks of the fast path",
        "",
        f"Written by `{command}`. Edit nothing above the notes at the end: the script writes it.",
        "",
        *_machine(rounds),
        "",
        "Engines run in processes of their own, pinned to one CPU, one after the other in every "
        "round, with the garbage collector off. Keys are 36 bytes, and new objects in every call. "
        "A sample is 8,192 keys, or 512 calls with one; before it come a quarter as many calls of "
        "the same kind that are not timed, since another engine has had the caches of the CPU. "
        "A time is the median over the rounds; ± is the distance between the quartiles, over the "
        "median. A ratio is the other engine's time over the fast path's, round by round: above 1 "
        "the fast path is faster. *Noise* is the same for the fast path against itself in a second "
        "process: no ratio says more than that column.",
        "",
        *_subjects(findings.subjects),
        *_targets(findings),
    ]
    for table in findings.tables:
        parts += _table(table)
    parts += _managers(findings.managers)
    parts += _lanes(findings)
    parts += _curves(findings.curves)
    parts += _cuda(findings.cuda)
    return "\n".join(parts).rstrip() + "\n"


def _machine(rounds: int) -> Iterable[str]:
    load = os.getloadavg()[1]
    packages = ", ".join(
        f"{name} {_version(name)}" for name in ("numba", "torch", "numpy", "libcachesim")
    )
    yield f"- Date: {date.today().isoformat()}, {rounds} rounds"
    yield f"- Machine: {_processor()}, {os.cpu_count()} CPUs, {platform.system()}"
    yield f"- Python {platform.python_version()}, {packages}"
    yield f"- Load average over the last 5 minutes at the end: {load:.1f}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
        return f"{names[0]} ({platform.machine()})"
    except (OSError, IndexError):
        return platform.machine()


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _times(cell: Cell | None) -> str:
    return "" if cell is None else f"{cell.median:.2f}x ±{100 * cell.spread:.0f} %"


def _ns(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{cell.median:,.{0 if cell.median >= 100 else 1}f} ±{100 * cell.spread:.0f} %"


def _against(row: Mapping[str, Cell], other: str) -> Cell | None:
    return ratio(row[other], row[FAST]) if FAST in row and other in row else None


def _subjects(subjects: Mapping[str, str]) -> list[str]:
    if not subjects:
        return []
    head = "What was measured, and what `cachelaw certify --budget quick` says of it:"
    return [head, "", *_rows(("subject", "verdict (digest)"), subjects.items())]


def _targets(findings: Findings) -> list[str]:
    rows: list[tuple[str, str, str, str]] = []

    def row(what: str, target: float, got: Cell | None, *, at_most: bool = False) -> None:
        sign = "at most" if at_most else "at least"
        if got is None:
            rows.append((what, f"{sign} {target:g}x", "not run", ""))
            return
        reached = got.median <= target if at_most else got.median >= target
        missed = got.median / target - 1 if at_most else 1 - got.median / target
        rows.append(
            (
                what,
                f"{sign} {target:g}x",
                _times(got),
                "reached" if reached else f"missed by {100 * missed:.0f} %",
            )
        )

    at = {(table.policy, table.resident): table for table in findings.tables}
    for (policy, shape, n), target in POLICY_TARGETS.items():
        table = at.get((policy, 100_000))
        cells = table.rows.get((shape, n), {}) if table else {}
        row(f"{policy} {shape}, n = {n}", target, _against(cells, HOST))
    for (policy, resident), target in MANAGER_TARGETS.items():
        found = [c for (p, r, _), c in findings.managers.items() if (p, r) == (policy, resident)]
        got = _against(found[0], HOST) if found else None
        row(f"manager, {policy}, {resident:,} chunks", target, got)
    for policy, (_, target) in LANE_TARGETS.items():
        row(
            f"{policy} lanes against libcachesim",
            target,
            _against(findings.lanes.get(policy, {}), LIBCACHESIM),
        )
    for references, target in CURVE_TARGETS.items():
        curve = findings.curves.get(references)
        got = ratio(curve[FAST], curve[LIBCACHESIM]) if curve else None
        row(f"LRU curve of {references:,} against one capacity", target, got, at_most=True)
    lines = [
        "## Targets",
        "",
        f"Policies and manager against vLLM {HOST}, 100,000 chunks unless said otherwise.",
        "",
        *_rows(("what", "target", "reached", ""), rows),
    ]
    return lines + _slower(findings.tables)


def _slower(tables: Iterable[Table]) -> list[str]:
    compared, slow = 0, []
    for table in tables:
        if table.policy != "lru":
            continue
        for (shape, n), cells in table.rows.items():
            got = _against(cells, SLOWER_THAN)
            if got is not None:
                compared += 1
                if got.median < AT_LEAST:
                    slow.append(f"{shape}, n = {n}, {table.resident:,} chunks: {_times(got)}")
    if not compared:
        return []
    text = f"LRU is slower than {SLOWER_THAN} by more than 30 % at {len(slow)} of {compared} shapes"
    return [text + (":" if slow else "."), "", *(f"- {line}" for line in slow), ""]


def _table(table: Table) -> list[str]:
    others = [
        name for name in (*RELEASES, REFERENCE) if any(name in r for r in table.rows.values())
    ]
    head = ("call", "n", "fast, ns/key", "noise", *(f"{name} / fast" for name in others))
    rows = (
        (
            shape,
            str(n),
            _ns(cells.get(FAST)),
            _times(_against(cells, AGAIN)),
            *(_times(_against(cells, name)) for name in others),
        )
        for (shape, n), cells in table.rows.items()
    )
    title = f"## {table.policy.upper()}, {table.resident:,} chunks"
    note = (
        "An empty cell: hosts of that edition make no such call, the cache is too small for it, or "
        "the evictions of that release are quadratic (`cost/linear`) and would take minutes."
    )
    return [title, "", note, "", *_rows(head, rows)]


def _managers(managers: Mapping[tuple[str, int, int], Mapping[str, Cell]]) -> list[str]:
    if not managers:
        return []
    rows = (
        (
            policy,
            f"{resident:,}",
            str(n),
            _ns(cells[FAST]),
            _times(_against(cells, AGAIN)),
            _ns(cells[HOST]),
            _times(_against(cells, HOST)),
        )
        for (policy, resident, n), cells in managers.items()
    )
    head = (
        "policy",
        "chunks",
        "keys a request",
        "fast, ns/key",
        "noise",
        f"{HOST}, ns/key",
        "ratio",
    )
    text = (
        f"The CPUOffloadingManager of vLLM {HOST}, with its own policy and with the fast one, "
        "loaded by `cache_policy_module_path`; six requests of ten share a prefix with an earlier "
        "one. Hits are the same."
    )
    return ["## The whole manager", "", text, "", *_rows(head, rows)]


def _millions(cell: Cell | None) -> str:
    return "" if cell is None else f"{1e3 / cell.median:,.1f} M/s ±{100 * cell.spread:.0f} %"


def _lanes(findings: Findings) -> list[str]:
    if not findings.lanes and not findings.requests:
        return []
    lines = [
        "## Lanes",
        "",
        f"Permuted Zipf(1.0), 1M references to 100k keys, {LANES} lanes with capacities from 100 "
        "to 80,000, one thread. libcachesim replays one capacity after the other in its C++ loop, "
        "with a hash table of a size that suits the keys. Its LRU hits are the same; its ARC is "
        "not vLLM's.",
        "",
    ]
    rows: list[tuple[str, ...]] = [
        (
            f"{policy}, references",
            f"{LANE_TARGETS[policy][0] / 1e6:.0f} M/s",
            _millions(cells[FAST]),
            _times(_against(cells, AGAIN)),
            _millions(cells[LIBCACHESIM]),
            _times(_against(cells, LIBCACHESIM)),
        )
        for policy, cells in findings.lanes.items()
    ]
    rows += [
        (f"{name}, requests of up to 64 keys", "", _millions(cell), "", "", "")
        for name, cell in findings.requests.items()
    ]
    head = ("lanes", "target", "fast", "noise", "libcachesim", "ratio")
    return lines + _rows(head, rows)


def _curves(curves: Mapping[int, Mapping[str, Cell]]) -> list[str]:
    if not curves:
        return []
    rows = (
        (
            f"{references:,}",
            f"{cells[FAST].median:.3f} s",
            _times(_against(cells, AGAIN)),
            f"{cells[LIBCACHESIM].median:.3f} s",
            _times(ratio(cells[FAST], cells[LIBCACHESIM])),
        )
        for references, cells in curves.items()
    )
    head = ("references", "all capacities", "noise", "libcachesim, one capacity", "all / one")
    text = "The exact LRU curve on the CPU, one thread; one key for ten references."
    return ["## LRU curves", "", text, "", *_rows(head, rows)]


def _cuda(cuda: Mapping[str, Cell] | None) -> list[str]:
    lines = ["## CUDA", ""]
    if cuda is None:
        return [*lines, f"Lanes on a GPU: {NOT_RUN}.", "", f"Curves on a GPU: {NOT_RUN}.", ""]
    rows = (
        (name, f"{cell.median:.3f} s" if name.startswith("curve") else _millions(cell))
        for name, cell in cuda.items()
    )
    return [*lines, *_rows(("what", "measured"), rows)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
