"""Lanes and curves on real traces, against hits that were counted independently of cachelaw.

The traces are not part of this repository. They are looked for below the folder that the
environment variable CACHELAW_TRACES names, else below shared/traces beside the repository.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import zstandard
from tests.fast.lanes.test_interface import hits_of_arc

from cachelaw.fast.curves import lru_curve
from cachelaw.fast.lanes import LaneSpec, Trace, replay

REPOSITORY = Path(__file__).resolve().parents[3]


def absent(path: Path) -> NoReturn:
    """Skip for want of a file; in CI fail, since a check that never runs would look green there."""
    reason = f"no file {path}; set CACHELAW_TRACES to a folder with ground_truth.json"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def file(*parts: str) -> Path:
    named = os.environ.get("CACHELAW_TRACES")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "traces"
    path = folder.joinpath(*parts)
    if not path.is_file():
        absent(path)
    return path


def truth(name: str) -> dict[int, dict[str, int]]:
    """Return the exact hits on a trace, by capacity."""
    found = json.loads(file("ground_truth.json").read_text(encoding="utf-8"))
    caps: dict[str, dict[str, int]] = found["traces"][name]["caps"]
    return {int(capacity): hits for capacity, hits in caps.items()}


def mooncake(name: str) -> Trace:
    lines = file("mooncake", f"{name}_trace.jsonl").read_text(encoding="ascii").splitlines()
    return Trace.of_requests(json.loads(line)["hash_ids"] for line in lines)


def pages(name: str) -> Trace:
    """Read a trace of the ARC paper; a line `start n ignore reqno` stands for n pages."""
    with (
        file("arc", f"{name}.lis.zst").open("rb") as packed,
        zstandard.ZstdDecompressor().stream_reader(packed) as plain,
    ):
        table = np.loadtxt(
            io.TextIOWrapper(plain, encoding="ascii"), dtype=np.int64, usecols=(0, 1)
        )
    starts, counts = table.T
    first = np.repeat(starts - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    return Trace(first + np.arange(first.size))


def numbers(name: str) -> Trace:
    with gzip.open(file("caffeine_lirs", f"{name}.trace.gz"), "rt") as lines:
        return Trace([int(line) for line in lines if line.strip().isdigit()])


TRACES: dict[str, Any] = {
    "mooncake/conversation": lambda: mooncake("conversation"),
    "mooncake/synthetic": lambda: mooncake("synthetic"),
    "arc/OLTP": lambda: pages("OLTP"),
    "caffeine_lirs/loop": lambda: numbers("loop"),
}


@pytest.mark.parametrize(
    "name",
    [*TRACES, *(pytest.param(f"arc/{p}", marks=pytest.mark.deep) for p in ("P2", "P3", "P12"))],
)
def test_lru_hits_on_every_reference(name: str) -> None:
    trace = TRACES.get(name, lambda: pages(name[4:]))()
    expected = {capacity: hits["lru"] for capacity, hits in truth(name).items() if "lru" in hits}
    assert expected
    result = replay(trace, [LaneSpec("lru", c) for c in expected], semantics="references")
    assert dict(zip(expected, result.hits.tolist(), strict=True)) == expected
    curve = lru_curve(trace)
    assert {capacity: curve.at(capacity) for capacity in expected} == expected


def test_the_partition_finds_them_too() -> None:
    curve = lru_curve(mooncake("synthetic"), method="partition")
    expected = {capacity: hits["lru"] for capacity, hits in truth("mooncake/synthetic").items()}
    assert {capacity: curve.at(capacity) for capacity in expected} == expected


@pytest.mark.parametrize("edition", ["v0.31", "v0.33"])
@pytest.mark.parametrize("name", ["conversation", "synthetic"])
def test_lru_hits_of_whole_requests(name: str, edition: str) -> None:
    # Counted there: the leading run of residents, then all keys of the request used last to first.
    # Where every request fits, that leaves what a request leaves here.
    trace = mooncake(name)
    longest = int(np.diff(trace.starts).max())
    expected = {
        capacity: hits["lru_rev_prefix"]
        for capacity, hits in truth(f"mooncake/{name}").items()
        if capacity >= longest
    }
    assert len(expected) > 5
    result = replay(trace, [LaneSpec("lru", c, edition) for c in expected])
    assert result.semantics == "requests"
    assert dict(zip(expected, result.hits.tolist(), strict=True)) == expected


@pytest.mark.parametrize("capacity", [1_000, 10_000])
def test_arc_hits_on_every_reference(capacity: int) -> None:
    # The ground truth has the ARC of the paper, which is another: specs/arc.md says where.
    trace = pages("OLTP")
    result = replay(trace, [LaneSpec("arc", capacity)])
    expected = hits_of_arc(trace.keys.tolist(), capacity)
    assert (int(result.hits[0]), float(result.targets[0])) == expected
    assert expected[0] != truth("arc/OLTP")[capacity]["arc"]
