"""The layout of the repository says what may know of what."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTIONS = ("specs", "reference", "conformance", "fast")

# portion -> the portions that it may import
ALLOWED = {
    "specs": {"specs"},
    "reference": {"reference"},
    "conformance": {"specs", "reference", "conformance"},
    "fast": {"reference", "fast"},
}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("portion", PORTIONS)
def test_dependencies_run_one_way(portion: str) -> None:
    files = list((ROOT / portion).rglob("*.py"))
    assert files
    for path in files:
        for name in _imports(path):
            parts = name.split(".")
            assert parts[0] != "tests", f"{path} imports tests"
            if parts[0] == "cachelaw" and len(parts) > 1:
                assert parts[1] in ALLOWED[portion], f"{path} imports {name}"


def test_cachelaw_is_a_namespace_of_four_typed_portions() -> None:
    for portion in PORTIONS:
        package = ROOT / portion / "cachelaw"
        assert not (package / "__init__.py").exists()
        assert (package / portion / "__init__.py").is_file()
        assert (package / portion / "py.typed").is_file()


def test_no_file_names_a_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "pyproject.toml" in listed
    forbidden = ("/ro" + "ot/", "/wo" + "rk/", "/ho" + "me/", "pythonhosted" + ".org")
    for name in listed:
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        for word in forbidden:
            assert word not in text, f"{name} contains {word}"


def test_the_wheel_holds_all_portions_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"cachelaw"}
    for portion in PORTIONS:
        assert f"cachelaw/{portion}/py.typed" in names
    assert "cachelaw/specs/registry.py" in names
    assert "cachelaw/reference/arc.py" in names
