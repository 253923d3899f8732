"""The reference equals the releases: LRU and ARC, the protocol, the types that go with them.

Each release runs in a process of its own; what is done there stands in `drive_policies.py`. A
failure names the seed and the last events, and the same command line shows it again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance.hosts import host_calls
from cachelaw.conformance.releases import UnreachableError, fetch
from cachelaw.reference.editions import EDITIONS, edition_named, edition_of_release

pytestmark = pytest.mark.interop

DRIVER = Path(__file__).with_name("drive_policies.py")

VERSIONS = [
    "0.19.1",
    "0.20.2",
    "0.22.1",
    "0.24.0",
    "0.26.0",
    "0.29.0",
    "0.30.0",
    "0.32.0",
    "0.33.0",
]
"""One release of each edition."""

STEPS = 120_000
EVENTS = 10_000

POLICIES = pytest.mark.parametrize("policy", ["lru", "arc"])


def drive(
    mode: str, version: str, policy: str = "lru", seed: int = 1, amount: int = 0
) -> dict[str, Any]:
    """Run the driver and return what it saw; skip, or fail in CI, if the release is out of reach.

    It is no reason to skip that a fetched release cannot be loaded.
    """
    try:
        fetch(version)
    except UnreachableError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(f"vllm {version} cannot be fetched: {error}")
    arguments = [mode, version, policy, str(seed), str(amount)]
    done = subprocess.run(
        [sys.executable, str(DRIVER), *arguments],
        # The driver finds cachelaw where this process found it.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{' '.join(arguments)}:\n{done.stderr}"
    print(done.stdout, end="")
    seen: dict[str, Any] = json.loads(done.stdout)
    assert (seen["release"], seen["policy"], seen["seed"]) == (version, policy, seed)
    return seen


def test_there_is_a_release_of_each_edition() -> None:
    assert [edition_of_release(version) for version in VERSIONS] == list(EDITIONS)


@POLICIES
@pytest.mark.parametrize("version", VERSIONS)
def test_the_reference_equals_the_release(version: str, policy: str) -> None:
    seen = drive("lockstep", version, policy, seed=20_260_727, amount=STEPS)
    assert seen["divergence"] is None, seen
    assert seen["steps"] >= STEPS
    # Else the comparison would say little: every clause was put to the test, many chunks left.
    assert seen["not met"] == []
    assert seen["evictions"] > 3_000
    assert seen["refused"] > 100
    # A refusal that is a fault of its day is in the edition too (arc/no-fallback-to-t1).
    faulty = policy == "arc" and not edition_named(seen["edition"]).says_chunk
    assert (seen["wrong refusals"] > 0) is faulty


@POLICIES
@pytest.mark.parametrize("version", VERSIONS)
def test_the_protocol_makes_the_calls_of_the_manager(version: str, policy: str) -> None:
    """Call by call: method, keys in order, sets, groups, contexts, and the ref count then."""
    seen = drive("manager", version, policy, seed=31, amount=EVENTS)
    assert seen["divergence"] is None, seen
    assert seen["events"] >= EVENTS
    edition = edition_named(seen["edition"])
    # Every method that a host of the edition calls was called, and often.
    rare = {"clear": 20, "remove": 100}
    for method in host_calls(edition):
        assert seen[method] > rare.get(method, 500), method
    assert seen["evictions"] > 500
    assert seen["refused"] > 10
    assert (seen["refused unasked"] > 100) is edition.counts_idle_chunks


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0"])
@pytest.mark.parametrize(
    "number", range(5), ids=["goes-on", "touches-on", "stops", "has-ended", "begins-after"]
)
def test_a_request_that_a_reset_interrupts(version: str, number: int) -> None:
    """Does the policy hear of its end, and of what? A number picks one of the driver's RESETS."""
    seen = drive("reset", version, amount=number)
    assert seen["divergence"] is None, seen


@pytest.mark.parametrize("version", VERSIONS)
def test_types_and_functions_equal_those_of_the_release(version: str) -> None:
    seen = drive("types", version, amount=3_000)
    edition = edition_named(seen["edition"])
    assert seen["statuses"] == 3_000
    assert seen.get("keys", 0) == (0 if version == "0.19.1" else 3_000)
    # On theirs and on ours: the marks, a miss and an end, an access.
    assert seen["hooks"] == 2 * (
        edition.has_marks + 2 * edition.has_request_hooks + edition.has_request_access
    )
    if edition.has_request_hooks:
        assert seen["orders"] == seen["contexts"] == 3_000
        assert seen["reordered"] > 500
