"""mypy --strict looks at every portion: a planted error in each is seen."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PORTIONS = ("specs", "reference", "conformance", "fast")
OTHERS = ("tests", "proofs", "benchmarks")
PLANTED = "def planted() -> int:\n    return 'no int'\n"


def test_mypy_sees_a_planted_error_in_each_portion(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    places = [f"{portion}/cachelaw/{portion}/planted.py" for portion in PORTIONS]
    for portion in PORTIONS:
        shutil.copytree(
            ROOT / portion,
            tmp_path / portion,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for folder in OTHERS:
        (tmp_path / folder).mkdir()
        places.append(f"{folder}/planted.py")
    for place in places:
        (tmp_path / place).write_text(PLANTED, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stderr
    lines = ran.stdout.splitlines()
    assert sorted(line.split(":")[0] for line in lines) == sorted(places), ran.stdout
