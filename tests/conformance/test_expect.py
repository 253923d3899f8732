"""Expected failures: they do not fail a run, and stale ones do."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Failure, JUnitXml
from rich.console import Console
from tests.conformance.reports.made import wrong

from cachelaw.conformance.expect import apply, read
from cachelaw.conformance.reports import shown, text
from cachelaw.conformance.reports.html import as_html
from cachelaw.conformance.reports.junit import as_junit
from cachelaw.conformance.reports.sarif import as_sarif
from cachelaw.conformance.subject import Unusable

SCHEMA = files("cachelaw.specs") / "schemas" / "report-1.json"


def data(**verdicts: str) -> dict[str, Any]:
    """Return a report with a verdict on some clauses, named as in `CLAUSES`."""
    laws = [{"clause": CLAUSES[name], "verdict": said} for name, said in verdicts.items()]
    return {"laws": laws, "status": 1, "verdict": "violated"}


CLAUSES = {
    "a": "evict/exact-count",
    "b": "evict/distinct",
    "c": "clear/equals-new",
    "d": "get/same-object",
}
A, B, C, D = CLAUSES.values()


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "expected"
    path.write_text(f"# what is known\n\n{A}  # bug 17 # still\n  {B}\n")
    assert read(path) == {A: "bug 17 # still", B: ""}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("evict/exact", "line 1: there is no clause 'evict/exact'; did you mean evict/exact-count"),
        ("evict/distnct", "there is no clause 'evict/distnct'; did you mean evict/distinct"),
        ("\nnonsense", "line 2: there is no clause 'nonsense'; cachelaw clauses lists them"),
        (f"{A}\n{A}", f"line 2: {A} stands there twice"),
        (f"{A} {B}", "there is no clause"),
    ],
)
def test_what_is_no_clause_is_wrong_usage(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "expected"
    path.write_text(text)
    with pytest.raises(Unusable, match=says):
        read(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="cannot be read"):
        read(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(Unusable, match="is not UTF-8"):
        read(tmp_path / "binary")


@pytest.mark.parametrize(
    ("verdicts", "expected", "status"),
    [
        ({"a": "violated", "b": "holds"}, {A: ""}, 0),
        ({"a": "violated", "b": "violated"}, {A: ""}, 1),
        ({"a": "violated", "b": "violated"}, {A: "", B: ""}, 0),
        ({"a": "holds", "b": "holds"}, {A: ""}, 1),
        ({"a": "not applicable", "b": "holds"}, {A: ""}, 1),
        ({"b": "holds"}, {A: ""}, 1),
        ({"a": "violated", "b": "undetermined"}, {A: ""}, 3),
        ({"a": "undetermined", "b": "holds"}, {A: ""}, 3),
        ({"a": "undetermined", "b": "violated"}, {A: ""}, 1),
        ({"a": "violated", "b": "undetermined", "c": "holds"}, {A: "", C: ""}, 1),
        ({"a": "holds"}, {}, 0),
        ({"a": "violated"}, {}, 1),
        ({"a": "undetermined"}, {}, 3),
        ({"a": "not applicable"}, {}, 3),
    ],
)
def test_the_status(verdicts: dict[str, str], expected: dict[str, str], status: int) -> None:
    applied = apply(data(**verdicts), expected)
    assert applied["status"] == status


def test_what_is_said() -> None:
    verdicts = {"a": "violated", "b": "holds", "c": "not applicable", "d": "undetermined"}
    other = "touch/any-iterable"
    applied = apply(data(**verdicts), {A: "bug 17", B: "", C: "", D: "", other: ""})
    assert [(entry["clause"], entry["stale"]) for entry in applied["expectations"]] == [
        (B, True),
        (C, True),
        (D, False),
        (other, True),
    ]
    assert shown.expectations(applied) == [
        "1 violation expected",
        f"stale: {B} holds; take it out of the file",
        f"stale: {C} is not applicable; take it out of the file",
        f"expected to fail, but undetermined: {D}",
        f"stale: {other} is not judged in this run; take it out of the file",
    ]
    marks = {law["clause"]: law.get("expected_failure") for law in applied["laws"]}
    assert marks == {A: "bug 17", B: None, C: None, D: None}


def test_every_report_says_what_is_stale() -> None:
    stale, other = "evict/distinct", "evict/exact-count"
    report = apply(wrong(), {stale: "", other: "bug 17", "touch/any-iterable": ""})
    says = f"stale: {stale} holds; take it out of the file"
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    (suite,) = JUnitXml.fromstring(as_junit(report))
    failed = [case for case in suite if any(isinstance(one, Failure) for one in case.result)]
    assert suite.failures == len(failed) == 2
    assert suite.tests == len(list(suite)) == len(report["laws"]) + 2
    assert (failed[0].classname, failed[0].name) == ("expectations", stale)
    assert failed[0].result[0].message == says
    run = as_sarif(report)["runs"][0]
    found = [result for result in run["results"] if "suppressions" not in result]
    assert found[0]["message"]["text"].endswith(f": {says}")
    rules = run["tool"]["driver"]["rules"]
    assert {rules[result["ruleIndex"]]["id"] for result in found} == {"expectations/stale"}
    file = io.StringIO()
    text.show(report, Console(file=file, width=200))
    for written in (file.getvalue(), as_html(report)):
        assert says in written and "1 violation expected" in written


def test_the_report_itself_stays_as_it_was() -> None:
    before = data(a="violated")
    applied = apply(before, {A: ""})
    assert before == data(a="violated")
    assert applied["verdict"] == "violated"
