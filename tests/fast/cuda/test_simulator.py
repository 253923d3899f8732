"""The kernels in numba's CUDA simulator: the same source, run thread by thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("on_simulator.py")


@pytest.fixture(scope="module")
def findings() -> dict[str, Any]:
    """Return what `on_simulator.py` found: numba is told of the simulator as it is imported."""
    pytest.importorskip("numba_cuda")
    ran = subprocess.run(
        [sys.executable, SCRIPT],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_lanes_count_alike(findings: dict[str, Any]) -> None:
    assert findings["replays"] == []


def test_programs_are_answered_alike(findings: dict[str, Any]) -> None:
    assert findings["programs"] == []
    assert findings["evicted"] > 200


@pytest.mark.parametrize("subject", ["LaneLRU", "LaneARC"])
def test_the_certificate_is_that_of_the_cpu(findings: dict[str, Any], subject: str) -> None:
    here, there = (
        {key: value for key, value in one.items() if key != "device"}
        for device in ("cpu", "cudasim")
        for one in findings["certificates"]
        if (one["subject"], one["device"]) == (subject, device)
    )
    verdicts = {name: verdict for name, (verdict, _) in there["laws"].items()}
    undecided = {name for name, verdict in verdicts.items() if verdict == "UNDETERMINED"}
    assert undecided == {"cost/linear", "memory/bounded-by-residents"}  # not counted so briefly
    assert set(verdicts.values()) == {"HOLDS", "NOT_APPLICABLE", "UNDETERMINED"}
    assert there["calls"] > 2_000
    assert there == here
