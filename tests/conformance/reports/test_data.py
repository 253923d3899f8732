"""The report's data keep to their schema, and the schema can refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.conformance.reports.made import hostile, made, named, right, wrong

from cachelaw.conformance.reports.data import write_json

SCHEMA = json.loads((files("cachelaw.specs") / "schemas" / "report-1.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        (named("Fifo"), ()),
        (named("Fifo"), ("randomized", "may_refuse")),
        (named("WipesCache"), ()),
        (named("FirstInFirstOut"), ()),
        (named("SharedTable"), ()),
        ("cachelaw.reference:ARC", ()),
        ("cachelaw.reference.v020:FilterReusedOffloadingManager", ()),
        (named("AcceptsEmptyTracker"), ()),
        (named("SkipsEmptyOffers"), ()),
    ],
)
def test_reports_keep_to_the_schema(name: str, declared: tuple[str, ...]) -> None:
    data = made(name, *declared)
    VALIDATOR.validate(data)
    assert json.loads(json.dumps(data)) == data
    assert {name for name, said in data["declared"].items() if said} >= set(declared)


def test_a_report_with_everything_in_it_keeps_to_the_schema() -> None:
    VALIDATOR.validate(hostile())


def _without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda data: data.pop(key)


def _counterexample(data: dict[str, Any]) -> dict[str, Any]:
    (found,) = (law["counterexample"] for law in data["laws"] if "counterexample" in law)
    assert isinstance(found, dict)
    return found


SPOILT: dict[str, Callable[[dict[str, Any]], object]] = {
    **{f"no {key}": _without(key) for key in SCHEMA["required"]},
    "another key": lambda data: data.update(more=1),
    "a verdict that there is not": lambda data: data.update(verdict="maybe"),
    "a law that is violated without a counterexample": lambda data: [
        law.pop("counterexample", None) for law in data["laws"]
    ],
    "a law that holds with one": lambda data: data["laws"][0].update(
        counterexample=_counterexample(data)
    ),
    "a trace of nothing": lambda data: _counterexample(data).update(trace={}),
    "an event that there is not": lambda data: _counterexample(data)["trace"]["events"].append(
        {"event": "explode"}
    ),
    "an id that is none": lambda data: _counterexample(data).update(id="XYZ"),
    "a source with its folder": lambda data: data["certificate"]["subject"].update(
        sources={"/somewhere/policy.py": "0" * 64}
    ),
}


@pytest.mark.parametrize("how", SPOILT)
def test_the_schema_refuses_what_is_spoilt(how: str) -> None:
    data = wrong()
    SPOILT[how](data)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(data)


def test_what_nobody_has_said_is_neutral() -> None:
    data = right()
    assert (data["host"], data["parameters"]) == (None, {})
    assert (data["diagnosis"], data["deaths"]) == ([], [])
    assert data["printed"] == {"bytes": 0, "start": ""}
    assert [row["edition"] for row in data["compatibility"] if row["runs"]] == data["fits"]


def test_the_written_file_is_the_data(tmp_path: Path) -> None:
    write_json(wrong(), tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == wrong()


def test_an_id_depends_on_the_trace() -> None:
    ids = {_counterexample(made(named(name)))["id"] for name in ("WipesCache", "SameTwice")}
    assert len(ids) == 2
    assert _counterexample(wrong())["id"] in ids
