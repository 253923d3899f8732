"""Counterexamples are kept, found again by their id, and run again."""

from __future__ import annotations

import copy
import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.reports.made import made, named, right, wrong

from cachelaw.conformance import store
from cachelaw.conformance.replay import add_replay, again, carried_out, job_of
from cachelaw.conformance.reproduction import FAILS, outcome
from cachelaw.conformance.subject import Unusable, resolve

FILTER = "SkipsEmptyOffers"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CACHELAW_STATE", str(tmp_path / "state"))
    return tmp_path / "state" / "counterexamples"


def kept(data: dict[str, Any]) -> str:
    """Store a report and return the id of its first counterexample."""
    assert store.keep(data) is None
    return str(store.entries(data)[0]["id"])


def replay(*arguments: str) -> int:
    parser = ArgumentParser()
    add_replay(parser.add_subparsers())
    options = parser.parse_args(["replay", *arguments])
    status: int = options.run(options)
    return status


# --- Keeping -------------------------------------------------------------------------------------


def test_what_is_kept_is_found_by_its_id(state: Path) -> None:
    name = kept(wrong())
    assert len(name) == store.LENGTH
    assert {path.name for path in state.iterdir()} == {f"{name}.json", f"{name}.py"}
    (entry,) = store.find(name)
    assert entry == store.entries(wrong())[0]
    assert store.find(name[:4]) == [entry]
    assert store.stored() == [entry]


def test_the_same_counterexample_is_kept_once(state: Path) -> None:
    assert kept(wrong()) == kept(wrong())
    assert len(list(state.glob("*.json"))) == 1
    kept(made(named(FILTER)))
    assert len(list(state.glob("*.json"))) == 2


def test_a_right_policy_leaves_nothing(state: Path) -> None:
    assert store.keep(right()) is None
    assert not state.exists()


def test_a_file_subject_is_kept_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = {**wrong(), "subject": "mine.py:Mine"}
    (entry,) = store.entries(data)
    assert entry["subject"] == f"{tmp_path}/mine.py:Mine"


def test_the_stored_reproduction_is_the_one_of_the_report() -> None:
    path = store.reproduction_path(kept(wrong()))
    assert path is not None
    assert outcome(path.read_text()) == FAILS
    assert store.reproduction_path("0123456789") is None


def test_the_stored_reproduction_runs_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, name = named("WipesCache").split(":")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.py").write_text(f"from {source} import {name} as Mine\n")
    monkeypatch.chdir(tmp_path)
    data = made("sub/mine.py:Mine")
    path = store.reproduction_path(kept(data))
    (text,) = (
        law["counterexample"]["reproduction"]["text"]
        for law in data["laws"]
        if "counterexample" in law
    )
    assert '"sub/mine.py"' in text and "the folder that cachelaw was run in" in text
    assert path is not None
    assert f'"{tmp_path}/sub/mine.py"' in path.read_text()
    assert "# It needs the subject and the standard library." in path.read_text()
    monkeypatch.chdir(tmp_path / "sub")
    assert outcome(path.read_text()) == FAILS
    assert outcome(text) != FAILS


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    said = store.keep(wrong())
    assert said is not None and "cannot be stored" in said and "\n" not in said


def test_a_folder_that_is_none_is_one_line(state: Path) -> None:
    state.parent.write_text("a file")
    said = store.keep(wrong())
    assert said is not None and "cannot be stored" in said and "\n" not in said
    assert store.reproduction_path("0123456789") is None


def test_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACHELAW_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert store.folder() == Path("/state/cachelaw/counterexamples")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/somebody")
    assert store.folder() == Path("/somebody/.local/state/cachelaw/counterexamples")


# --- Finding -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("0123456789", "no counterexample 0123456789 is stored"),
        ("abc", "neither an id nor a file"),
        ("no/such/file.json", "neither an id nor a file"),
        ("*", "neither an id nor a file"),
    ],
)
def test_what_is_not_there(name: str, says: str) -> None:
    with pytest.raises(Unusable, match=says.replace("*", r"\*")):
        store.find(name)


def test_a_beginning_of_several(state: Path) -> None:
    state.mkdir(parents=True)
    for name in ("abcd111111", "abcd222222"):
        (state / f"{name}.json").write_text("{}")
    with pytest.raises(Unusable, match="is the beginning of abcd111111, abcd222222"):
        store.find("abcd")


@pytest.mark.parametrize("text", ["{}", '{"laws": 1}', '{"laws": [{"counterexample": {}}]}', "[1]"])
def test_a_file_that_holds_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(Unusable):
        store.find(str(path))


def test_files_that_are_no_counterexamples_are_not_listed(state: Path) -> None:
    name = kept(wrong())
    (state / "notes.json").write_text("{")
    assert [entry["id"] for entry in store.stored()] == [name]


# --- Running again -------------------------------------------------------------------------------

EVERY_KIND = {
    "in lockstep": "WipesCache",
    "against the reference": "FirstInFirstOut",
    "by twins": "SharedTable",
    "a filter": FILTER,
    "the construction of a filter": "AcceptsEmptyTracker",
}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_it_fails_again_in_the_same_words(kind: str) -> None:
    (entry, *_) = store.entries(made(named(EVERY_KIND[kind])))
    found = entry["counterexample"]
    assert carried_out(json.loads(json.dumps(job_of(entry)))) == {
        "outcome": "fails",
        "expected": found["expected"],
        "actual": found["actual"],
    }


def test_by_processes_it_fails_again() -> None:
    trace = {
        "edition": "v0.33",
        "capacity": 4,
        "groups": 1,
        "events": [
            {"event": "store offered", "keys": [1, 2, 3, 4], "request": "u1"},
            {"event": "store succeeds", "keys": [1, 2, 3, 4]},
        ],
    }
    clause = "determinism/independent-of-hash-seed"
    assert again(resolve(named("HashOrder")), clause, trace, "process") is not None
    assert again(resolve(named("Fifo")), clause, trace, "process") is None


def test_a_twin_may_have_broken_another_clause() -> None:
    (entry,) = store.entries(wrong())
    found = copy.deepcopy(entry)
    found["counterexample"]["found_by"] = "twin"
    result = carried_out(job_of(found))
    assert result["outcome"] == "fails"


def test_on_a_right_policy_it_is_fixed() -> None:
    (entry,) = store.entries(wrong())
    assert carried_out(job_of(entry, named("Fifo"))) == {"outcome": "fixed"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"subject": "no.such.module:Mine"}, "there is no module no.such.module"),
        ({"profile": "reuse-filter"}, "cannot be constructed from a backing manager"),
        ({"found_by": "large"}, "can only be found again by cachelaw certify"),
        ({"trace": {"edition": "v0.33", "events": []}}, "the trace has no 'capacity'"),
    ],
)
def test_what_cannot_be_run_is_an_error(change: dict[str, Any], says: str) -> None:
    (entry,) = store.entries(wrong())
    entry = copy.deepcopy(entry)
    for name, value in change.items():
        (entry if name in entry else entry["counterexample"])[name] = value
    result = carried_out(job_of(entry))
    assert result["outcome"] == "error"
    assert says in result["says"] and "\n" not in result["says"]


# --- The command ---------------------------------------------------------------------------------


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert replay() == 0
    assert "no counterexample is stored" in capsys.readouterr().out
    name = kept(wrong())
    assert replay() == 0
    assert capsys.readouterr().out == f"{name}  evict/exact-count  {named('WipesCache')}\n"
    assert replay(name) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"x fails  {name}  evict/exact-count  {named('WipesCache')}"
    assert lines[1:] == ["    expected: exactly 1 victim, or None", "    actual:   [1, 2]"]
    assert replay(name, named("Fifo")) == 0
    assert capsys.readouterr().out.startswith(f"+ fixed  {name}  ")
    assert replay(name, "no.such.module:Mine") == 2
    assert capsys.readouterr().out.startswith(f"! error  {name}  ")


def test_the_command_takes_a_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(wrong()))
    assert replay(str(path)) == 1
    path.write_text(json.dumps(right()))
    assert replay(str(path)) == 0
    assert "holds no counterexample" in capsys.readouterr().out
