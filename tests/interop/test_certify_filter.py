"""`cachelaw certify` on the reuse filters of the vLLM releases that have them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachelaw.conformance.releases import ReleaseError, fetch

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(
    ("version", "edition"),
    [("0.18.1", "v0.19"), ("0.19.1", "v0.19"), ("0.20.2", "v0.20"), ("0.21.0", "v0.20")],
)
def test_filters_of_the_releases_conform(version: str, edition: str, tmp_path: Path) -> None:
    try:
        fetch(version)
    except ReleaseError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    written = tmp_path / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "cachelaw.conformance", "certify", f"vllm=={version}:filter"),
            *("--budget", "quick", "--json", str(written)),
        ],
        # The child finds cachelaw where this process found it.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"vllm=={version}:filter conforms" in " ".join(done.stdout.split())
    report = json.loads(written.read_text())
    assert (report["edition"], report["profiles"]) == (edition, ["reuse-filter"])
    assert {law["verdict"] for law in report["laws"]} == {"holds"}
