"""The fast policies under the numba that vLLM hosts pin, which is older than the newest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PINNED = "0.65.0"
PIP = (sys.executable, "-m", "pip", "install", "--quiet")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not within")


@pytest.mark.interop
@pytest.mark.deep
def test_the_numba_that_hosts_pin_will_do(tmp_path: Path) -> None:
    """The comparison with the reference, compiled by that numba; it is installed for the test."""
    packages = tmp_path / "packages"
    subprocess.run(
        (*PIP, "--target", str(packages), f"numba=={PINNED}"),
        check=True,
        timeout=600,
    )
    environment = {**os.environ, "PYTHONPATH": str(packages), "NUMBA_CACHE_DIR": str(tmp_path)}
    version = subprocess.run(
        [sys.executable, "-c", "import numba; print(numba.__version__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.strip() == PINNED
    tests = Path(__file__).parent
    done = subprocess.run(
        (*PYTEST, str(tests / "test_against_reference.py"), str(tests / "test_kernels.py")),
        cwd=tests.parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    print(done.stdout.splitlines()[-1])
