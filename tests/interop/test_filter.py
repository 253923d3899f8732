"""The reference filter and the minimal manager equal those of the vLLM releases that have them.

Each release runs in a process of its own; what is done there stands in `drive_filter.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance.releases import ReleaseError, fetch

pytestmark = pytest.mark.interop

DRIVER = Path(__file__).with_name("drive_filter.py")
SEEDS = (1, 20_260_727)


def drive(version: str, subject: str, seed: int, steps: int) -> dict[str, Any]:
    """Run the driver and return what it saw; skip, or fail in CI, if the release is out of reach.

    It is no reason to skip that a fetched release cannot be loaded.
    """
    try:
        fetch(version)
    except ReleaseError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, str(DRIVER), version, subject, str(seed), str(steps)],
        # The driver finds cachelaw where this process found it.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{version} {subject} seed {seed}:\n{done.stderr}"
    print(done.stdout, end="")
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ["0.18.1", "0.19.1", "0.20.2"])
def test_filter_equals_the_releases(version: str, seed: int) -> None:
    seen = drive(version, "filter", seed, 100_000)
    assert seen["steps"] >= 100_000
    # Else the comparison would say nothing: keys are dropped, pass, and are held back.
    assert min(seen[what] for what in ("dropped", "passed", "withheld")) > 10_000
    assert seen["raised"] > 100


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", ["lru", "arc"])
@pytest.mark.parametrize("version", ["0.19.1", "0.20.2"])
def test_minimal_manager_equals_the_releases(version: str, policy: str, seed: int) -> None:
    seen = drive(version, policy, seed, 100_000)
    assert seen["steps"] >= 100_000
    assert min(seen[what] for what in ("stored", "evicted", "refused", "events", "pinned")) > 1_000
    assert seen["failed"] > 100
