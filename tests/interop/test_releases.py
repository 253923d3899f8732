"""Real releases, fetched from the package index and loaded, each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachelaw.conformance import releases

pytestmark = pytest.mark.interop

# Loads a release, and uses what it finds as far as every edition allows: a policy is made, a
# manager stores its chunk ids, which needs numpy or its stand-in.
PROGRAM = """
import json, sys
from cachelaw.conformance import releases

release = releases.load(sys.argv[1])
for policy in release.policies.values():
    assert issubclass(policy, release.base) and policy(4).get(b"key0") is None
    assert release.status(7).ref_cnt == -1
if release.context is not None:
    release.context("request")
ids = None
if release.manager is not None:
    ids = list(sys.modules[release.manager.__module__].CPULoadStoreSpec([3, 1]).block_ids)
    release.manager(*json.loads(sys.argv[2]))
print(json.dumps({
    "edition": release.edition,
    "beyond_known": release.beyond_known,
    "policies": sorted(release.policies),
    "status": release.status and release.status.__name__,
    "filter": release.filter is not None,
    "manager": release.manager is not None,
    "context": release.context is not None,
    "ids": ids and [int(number) for number in ids],
    "wheel": len(release.wheel_sha256 or ""),
    "stand-ins": [
        name for name in ("numpy", "torch", "triton")
        if name in sys.modules and not hasattr(sys.modules[name], "__file__")
    ],
}))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a cache of its own for these tests, so that they really fetch."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    ("version", "edition", "status", "with_filter", "with_context", "manager"),
    [
        ("0.18.1", None, None, True, False, None),
        ("0.19.1", "v0.19", "BlockStatus", True, False, [16, 4, "arc"]),
        ("0.20.2", "v0.20", "BlockStatus", True, True, [4, "arc"]),
        ("0.24.0", "v0.24", "BlockStatus", False, True, [4, "arc"]),
        ("0.29.0", "v0.27", "BlockStatus", False, True, [4, "arc"]),
        ("0.30.0", "v0.30", "ChunkStatus", False, True, [4, "arc"]),
        ("0.32.0", "v0.31", "ChunkStatus", False, True, [4, "arc"]),
        ("0.33.0", "v0.33", "ChunkStatus", False, True, [4, "arc"]),
    ],
)
def test_real_release(
    version: str,
    edition: str | None,
    status: str | None,
    with_filter: bool,
    with_context: bool,
    manager: list[object] | None,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CACHELAW_CACHE", str(cache))
    try:
        releases.fetch(version)
    except releases.UnreachableError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, version, json.dumps(manager)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "edition": edition,
        "beyond_known": False,
        "policies": ["arc", "lru"] if edition else [],
        "status": status,
        "filter": with_filter,
        "manager": manager is not None,
        "context": with_context,
        "ids": [3, 1] if manager else None,
        "wheel": 64,
        "stand-ins": [],
    }
