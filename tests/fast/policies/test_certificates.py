"""The suite's own verdict on the fast classes, of all editions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUBJECTS = [
    "cachelaw.fast:LRU",
    "cachelaw.fast:ARC",
    "cachelaw.fast.v031:LRU",
    "cachelaw.fast.v031:ARC",
    "cachelaw.fast.v024:LRU",
    "cachelaw.fast:FilterReusedOffloadingManager",
]

CERTIFY = (sys.executable, "-m", "cachelaw.conformance", "certify")

FAULT_OF_ITS_DAY = "evict/none-only-when-short"
"""What the ARC of v0.24 breaks, in the reference as well (`arc/no-fallback-to-t1`)."""


def certify(subject: str, budget: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the certificate."""
    file = folder / "certificate.json"
    done = subprocess.run(
        (*CERTIFY, subject, "--budget", budget, "--json", str(file)),
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    certificate: dict[str, Any] = json.loads(file.read_text())
    return done.returncode, certificate


@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_conforms(subject: str, tmp_path: Path) -> None:
    status, certificate = certify(subject, "quick", tmp_path)
    assert status == 0, certificate


def test_the_arc_of_v024_has_the_fault_of_its_day_and_no_other(tmp_path: Path) -> None:
    status, certificate = certify("cachelaw.fast.v024:ARC", "quick", tmp_path)
    assert status == 1
    assert certificate["violations"] == [FAULT_OF_ITS_DAY]


@pytest.mark.deep
@pytest.mark.parametrize("subject", SUBJECTS)
def test_it_conforms_at_standard_budget(subject: str, tmp_path: Path) -> None:
    status, certificate = certify(subject, "standard", tmp_path)
    assert status == 0, certificate
