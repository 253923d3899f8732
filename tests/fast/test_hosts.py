"""The fast policies inside real vLLM managers, and beside real vLLM policies at full size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance.releases import UnreachableError, fetch

pytestmark = pytest.mark.interop

HERE = Path(__file__).parent
VERSIONS = ("0.28.0", "0.30.0", "0.32.0", "0.33.0")
CALLS = 20_000

POLICIES = pytest.mark.parametrize("policy", ["lru", "arc"])


def drive(script: str, version: str, *arguments: str) -> dict[str, Any]:
    """Run a driver and return what it saw; skip, or fail in CI, if the release is out of reach."""
    try:
        fetch(version)
    except UnreachableError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(f"vllm {version} cannot be fetched: {error}")
    paths = [str(HERE.parents[1]), *(path for path in sys.path if path)]
    done = subprocess.run(
        [sys.executable, str(HERE / script), version, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout, end="")
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@POLICIES
@pytest.mark.parametrize("version", VERSIONS)
def test_a_manager_cannot_tell_the_fast_policy_from_its_own(version: str, policy: str) -> None:
    seen = drive("drive_hosts.py", version, policy, "1", str(CALLS))
    assert seen["divergence"] is None, seen
    assert seen["calls"] >= CALLS
    # Else the comparison would say little.
    assert seen["evicted"] > 1_000
    assert seen["refused"] > 10
    assert seen["StoreFails"] > 100
    assert seen["Reset"] > 50


@POLICIES
@pytest.mark.parametrize("version", ["0.24.0", "0.32.0", "0.33.0"])
def test_at_full_size_it_answers_as_the_release(version: str, policy: str) -> None:
    seen = drive("drive_releases.py", version, policy, "1", "100000", "3000")
    assert seen["divergence"] is None, seen
    assert seen["evicted"] > 10_000
