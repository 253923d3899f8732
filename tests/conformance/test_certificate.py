"""Certificates: the same run has the same digest, and verifying says what differs."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.reports.made import MEASURED

from cachelaw.conformance.certificate import (
    add_verify,
    certificate,
    digest,
    job_of,
    portable,
    values,
    verify,
    written,
)
from cachelaw.conformance.certify import Budget, certify
from cachelaw.conformance.mutants.zoo import FILTERS, classes, subject_name
from cachelaw.conformance.reports.data import as_json
from cachelaw.conformance.sources import sources_of
from cachelaw.conformance.subject import Unusable, Wanted, find, resolve

TINY = Budget("quick", programs=1, events=10, twins=0)

POLICY = """\
from base import Base


class Mine(Base):
    def evict(self, n, protected):
        idle = [k for k, c in self.chunks.items() if c.ref_cnt == 0 and k not in protected]
        return [(k, self.chunks.pop(k)) for k in idle[:n]] if len(idle) >= n else None


def made(cache_capacity):
    return Mine(cache_capacity)
"""

BASE = """\
class Base:
    def __init__(self, cache_capacity, other=None):
        self.chunks = {}

    def get(self, key):
        return self.chunks.get(key)

    def insert(self, key, chunk):
        self.chunks[key] = chunk

    def remove(self, key):
        del self.chunks[key]

    def touch(self, keys):
        pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a subject in two files, which is also the current one."""
    (tmp_path / "mine.py").write_text(POLICY)
    (tmp_path / "base.py").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("cachelaw.conformance.processes.judge", lambda *arguments: ())
    monkeypatch.delitem(sys.modules, "base", raising=False)
    return tmp_path


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Certify in this process."""
    sys.modules.pop("base", None)
    report = certify(find(Wanted(**job["wanted"])), TINY, job["seed"], without=MEASURED)
    return as_json(report)


def reported(name: str = "mine.py:Mine") -> dict[str, Any]:
    return run({"wanted": Wanted(name).as_json(), "seed": 1})


# --- What is in it -------------------------------------------------------------------------------


def test_it_says_what_was_judged_and_how(folder: Path) -> None:
    data = reported()
    made = data["certificate"]
    assert made["subject"]["name"] == "mine.py:Mine"
    assert list(made["subject"]["sources"]) == ["base.py", "mine.py"]
    assert (made["edition"], made["profiles"]) == ("v0.20", ["contract"])
    assert made["clauses"] == {law["clause"]: law["verdict"] for law in data["laws"]}
    assert made["steps"] == {"calls": data["calls"], "events": data["events"]}
    assert made["scopes"]["programs"] == 1 and 64 in made["scopes"]["capacities"]
    assert made["digest"] == digest(made)


def test_no_path_and_no_time_is_in_it(folder: Path) -> None:
    here, there = reported(), reported(f"{folder}/mine.py:Mine")
    assert str(folder) not in json.dumps(here["certificate"])
    assert here["subject"] != there["subject"]
    assert here["certificate"] == there["certificate"]


def test_the_digest_is_over_canonical_json() -> None:
    assert digest({"b": 1, "a": "ü", "digest": "x"}) == digest({"a": "ü", "b": 1})
    # printf '{"a":"\303\274","b":1}' | sha256sum
    assert digest({"a": "ü", "b": 1}).startswith("4e7ff4080b1a")


def test_another_process_comes_to_the_same_digest(folder: Path) -> None:
    program = (
        "import sys; sys.path.insert(0, '.')\n"
        "from cachelaw.conformance import processes\n"
        "processes.judge = lambda *arguments: ()\n"
        "from cachelaw.conformance.certify import Budget, certify\n"
        "from cachelaw.conformance.reports.data import as_json\n"
        "from cachelaw.conformance.subject import resolve\n"
        "budget = Budget('quick', programs=1, events=10, twins=0)\n"
        f"without = frozenset({sorted(MEASURED)})\n"
        "report = certify(resolve('mine.py:Mine'), budget, 1, without=without)\n"
        "print(as_json(report)['certificate']['digest'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == reported()["certificate"]["digest"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine.py:Mine", "mine.py:Mine"),
        ("/some/where/mine.py:Mine.Inner", "mine.py:Mine.Inner"),
        ("package.module:Mine", "package.module:Mine"),
        ("vllm==0.29.0:arc", "vllm==0.29.0:arc"),
        ("exec:./policy --fast", "exec:policy --fast"),
    ],
)
def test_a_name_without_its_folder(name: str, said: str) -> None:
    assert portable(name) == said


def test_parameters_come_back_as_they_were() -> None:
    parameters = {"a": 1, "b": 0.5, "c": "text", "d": "1", "e": None, "f": [1, "x"], "g": "None"}
    assert values(written(parameters)) == parameters
    assert all(isinstance(text, str) for text in written(parameters).values())


# --- Sources -------------------------------------------------------------------------------------


def test_sources_of_a_factory_and_of_a_package(folder: Path) -> None:
    assert list(sources_of(resolve("mine.py:made"))) == ["base.py", "mine.py"]
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("from parts.inner import Mine as Mine\n")
    (folder / "parts" / "inner.py").write_text(POLICY)
    assert list(sources_of(resolve("parts:Mine"))) == ["base.py", "parts/inner.py"]


def test_a_change_in_a_base_class_changes_the_hash(folder: Path) -> None:
    before = sources_of(resolve("mine.py:Mine"))
    (folder / "base.py").write_text(BASE + "# more\n")
    after = sources_of(resolve("mine.py:Mine"))
    assert {name for name in before if before[name] != after[name]} == {"base.py"}


def test_what_is_ours_is_named_by_the_version_of_the_suite() -> None:
    assert sources_of(resolve("cachelaw.reference:ARC")) == {}
    right = resolve(subject_name(classes(FILTERS)["RightV021"]))
    assert sources_of(right) == {}


# --- Verifying -----------------------------------------------------------------------------------


def test_a_run_reproduces(folder: Path) -> None:
    data = reported()
    status, lines = verify(data["certificate"], data, None, run)
    assert status == 0
    assert lines[0].startswith(f"reproduces: {data['verdict']}, digest ")


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "suite": (lambda c: c.update(suite="0.0.1"), "suite: 0.0.1 then"),
    "seed": (lambda c: c.update(seed=1, budget="deep"), "budget: deep then, quick now"),
    "steps": (lambda c: c["steps"].update(calls=7), "steps calls: 7 then"),
    "verdict": (
        lambda c: c["clauses"].update({"evict/distinct": "violated"}),
        "clause evict/distinct: violated then, holds now",
    ),
    "missing": (
        lambda c: c["clauses"].update({"evict/gone": "holds"}),
        "clause evict/gone: not there now",
    ),
    "source": (
        lambda c: c["subject"]["sources"].update({"mine.py": "0" * 64}),
        "source mine.py: 000000000000... then",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_is_said_line_by_line(what: str, folder: Path) -> None:
    made = copy.deepcopy(reported()["certificate"])
    change, says = CHANGES[what]
    change(made)
    made["digest"] = digest(made)
    status, lines = verify(made, None, None, run)
    assert status == 1
    assert lines[0] == "does not reproduce:"
    assert len(lines) == 2 and lines[1].startswith(says)


def test_another_subject_is_noticed(folder: Path) -> None:
    data = reported()
    (folder / "mine.py").write_text(POLICY.replace("else None", "else []"))
    status, lines = verify(data["certificate"], data, None, run)
    assert status == 1
    assert any(line.startswith("source mine.py: ") for line in lines)
    assert any(line.startswith("clause evict/exact-count: holds then, violated") for line in lines)


def test_a_changed_certificate_is_not_run(folder: Path) -> None:
    data = reported()

    def never(job: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("it is not run")

    made = {**data["certificate"], "verdict": "holds", "seed": 2}
    status, lines = verify(made, None, None, never)
    assert status == 1 and "has been changed" in lines[0]
    data["laws"][0]["verdict"] = "undetermined"
    status, lines = verify(data["certificate"], data, None, never)
    assert status == 1 and "says otherwise" in lines[0]


def test_the_steps_of_what_is_randomized_are_no_promise(folder: Path) -> None:
    made = copy.deepcopy(reported()["certificate"])
    made["subject"]["declared"]["randomized"] = True
    other = copy.deepcopy(made)
    other["steps"]["calls"] += 1
    other["digest"] = made["digest"] = digest(made)
    status, _ = verify(made, None, None, lambda job: {"certificate": other})
    assert status == 0


def test_the_job_is_what_the_certificate_says() -> None:
    data = as_json(certify(resolve("cachelaw.reference:LRU"), TINY, seed=3, without=MEASURED))
    data["parameters"] = {"ratio": "0.5"}
    made = certificate(data, {})
    job = job_of(made, "elsewhere:LRU")
    wanted = Wanted(**job["wanted"])
    assert (wanted.name, wanted.edition, wanted.profile) == ("elsewhere:LRU", "v0.33", "lru")
    assert wanted.parameters == {"ratio": 0.5}
    assert (job["budget"], job["seed"]) == ("quick", 3)
    assert json.loads(json.dumps(job)) == {
        **job,
        "wanted": {**job["wanted"], "declared": list(job["wanted"]["declared"])},
    }


# --- The command ---------------------------------------------------------------------------------


def command(*arguments: str) -> int:
    parser = ArgumentParser()
    add_verify(parser.add_subparsers(), run)
    options = parser.parse_args(["verify", *arguments])
    status: int = options.run(options)
    return status


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = reported()
    (folder / "report.json").write_text(json.dumps(data))
    (folder / "certificate.json").write_text(json.dumps(data["certificate"]))
    assert command("report.json") == 0
    assert command("certificate.json") == 0
    assert capsys.readouterr().out.count("reproduces: ") == 2
    assert command("certificate.json", "mine.py:made") == 0  # the same sources
    (folder / "sub").mkdir()
    (folder / "mine.py").rename(folder / "sub" / "mine.py")
    with pytest.raises(Unusable, match="say where it is: cachelaw verify CERTIFICATE SUBJECT"):
        command("certificate.json")
    assert command("certificate.json", "sub/mine.py:Mine") == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
        ("{}", "neither a certificate nor a report"),
        ('{"certificate": null}', "neither a certificate nor a report"),
        ('{"certificate": {"format": 1}}', "neither a certificate nor a report"),
    ],
)
def test_what_is_no_certificate(text: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Unusable, match=says):
        command(str(path))


def test_a_form_of_tomorrow(folder: Path) -> None:
    made = {**reported()["certificate"], "format": 2}
    (folder / "certificate.json").write_text(json.dumps(made))
    with pytest.raises(Unusable, match="has format 2; this cachelaw reads format 1"):
        command("certificate.json")
