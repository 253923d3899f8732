"""The recipe for GitHub Actions, as far as it can be tried without GitHub."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from junitparser import JUnitXml

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")

POLICY = '''
class MyPolicy:
    """First in, first out."""

    def __init__(self, cache_capacity):
        self.chunks = {}

    def get(self, key):
        return self.chunks.get(key)

    def insert(self, key, chunk, req_context):
        self.chunks[key] = chunk

    def remove(self, key):
        del self.chunks[key]

    def touch(self, keys, req_context):
        pass

    def clear(self):
        self.chunks.clear()

    def evict(self, n, protected):
        idle = [k for k, c in self.chunks.items() if c.ref_cnt == 0 and k not in protected]
        if len(idle) < n:
            return None
        return [(key, self.chunks.pop(key)) for key in idle[:n]]

    def mark_evictable(self, key):
        pass

    mark_non_evictable = mark_evictable

    def on_store_miss(self, keys, req_context):
        pass

    on_request_access = on_store_miss

    def on_request_finished(self, key_groups, insertion_only_keys, reused_keys, req_context):
        pass
'''


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    (text,) = blocks("yaml")
    workflow = yaml.safe_load(text)
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow) == {"name", True, "permissions", "jobs"}
    assert set(workflow[True]) == {"push", "pull_request"}
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "security-events": "write"}
    assert job["timeout-minutes"] <= 30
    made: list[dict[str, Any]] = job["steps"]
    return made


def certify(steps: list[dict[str, Any]]) -> str:
    (script,) = (step["run"] for step in steps if "cachelaw certify" in step.get("run", ""))
    return str(script)


def test_the_workflow_has_what_it_needs_in_order(steps: list[dict[str, Any]]) -> None:
    assert all(("uses" in step) != ("run" in step) for step in steps)
    said = [step.get("uses", step.get("run", "")) for step in steps]
    wanted = (
        *("actions/checkout@", "actions/setup-python@", "pip install cachelaw", "cachelaw certify"),
        *("github/codeql-action/upload-sarif@", "actions/upload-artifact@"),
    )
    assert len(said) == len(wanted)
    for line, part in zip(said, wanted, strict=True):
        assert part in line
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"])


def test_what_is_uploaded_is_what_is_written(steps: list[dict[str, Any]]) -> None:
    words = shlex.split(certify(steps).replace("\\\n", " "))
    written = {word for word in words if re.fullmatch(r"[\w.]+\.(sarif|xml|html)", word)}
    sarif, reports = steps[-2:]
    assert sarif["with"]["sarif_file"] in written
    assert set(reports["with"]["path"].split()) == written
    # A violation ends the step before them; they run all the same, for a file that is there.
    for step in (sarif, reports):
        assert "!cancelled()" in step["if"]
        (file,) = re.findall(r"hashFiles\('(.*?)'\) != ''", step["if"])
        assert file in written


@pytest.mark.parametrize(
    ("policy", "status"), [(POLICY, 0), (POLICY.replace("idle[:n]", "idle[: n + 1]"), 1)]
)
def test_its_commands_run(
    policy: str, status: int, steps: list[dict[str, Any]], tmp_path: Path
) -> None:
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "policies.py").write_text(policy)
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["sh", "-e", "-c", certify(steps)],
        cwd=tmp_path,
        env={**os.environ, "PATH": programs, "CACHELAW_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, done.stdout + done.stderr
    sarif = json.loads((tmp_path / "cachelaw.sarif").read_text())
    failures = JUnitXml.fromfile(str(tmp_path / "cachelaw.xml")).failures
    assert len(sarif["runs"][0]["results"]) == failures
    assert (failures > 0) is (status == 1)
    assert (tmp_path / "cachelaw.html").stat().st_size > 1000


def test_the_tests_it_shows_are_collected(tmp_path: Path) -> None:
    (text,) = blocks("python")
    (tmp_path / "test_mine.py").write_text(text)
    (commands,) = blocks("console")
    lines = re.findall(r"^\$ (pytest .*)$", commands, flags=re.M)
    assert len(lines) == 2
    for words in ([str(tmp_path)], shlex.split(lines[-1])[1:]):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:xdist", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "evict/distinct" in done.stdout
