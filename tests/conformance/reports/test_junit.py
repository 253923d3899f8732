"""JUnit XML, as its readers read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from tests.conformance.reports.made import hostile, made, named, right, unexpected, wrong

from cachelaw.conformance.reports.junit import as_junit, write_junit

KINDS = {"violated": Failure, "undetermined": Error, "not applicable": Skipped}


def undetermined() -> dict[str, Any]:
    data = wrong()
    data["laws"][0].update(verdict="undetermined", met=0, note="its condition was never met")
    return data


ALL: dict[str, Callable[[], dict[str, Any]]] = {
    "right": right,
    "wrong": wrong,
    "undetermined": undetermined,
    "randomized": lambda: made(named("Fifo"), "randomized"),
    "hostile": hostile,
    "hostile and unexpected": lambda: unexpected(hostile()),
    "filter": lambda: made(named("SkipsEmptyOffers")),
}


@pytest.mark.parametrize("which", ALL)
def test_a_reader_reads_one_case_a_clause(which: str, tmp_path: Path) -> None:
    data = ALL[which]()
    write_junit(data, tmp_path / "junit.xml")
    read = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    (suite,) = read
    cases = list(suite)
    assert [case.name for case in cases] == [law["clause"] for law in data["laws"]]
    for case, law in zip(cases, data["laws"], strict=True):
        assert case.classname == law["clause"].split("/")[0]
        kind = KINDS.get(law["verdict"])
        if "expected_failure" in law:
            kind = Skipped
        assert [type(result) for result in case.result] == ([] if kind is None else [kind])
    counts = (suite.tests, suite.failures, suite.errors, suite.skipped)
    assert counts == (read.tests, read.failures, read.errors, read.skipped)
    found = [result for case in cases for result in case.result]
    assert counts == (
        len(cases),
        *(sum(isinstance(one, kind) for one in found) for kind in (Failure, Error, Skipped)),
    )


def test_a_failure_holds_the_counterexample() -> None:
    (suite,) = JUnitXml.fromstring(as_junit(wrong()))
    results = [result for case in suite for result in case.result]
    (failure,) = (result for result in results if isinstance(result, Failure))
    assert failure.message == "expected exactly 1 victim, or None, but: [1, 2]"
    for words in ("capacity 2", "u1 offers 1 2", "evict(1, set())  -> [1, 2]", "cachelaw replay "):
        assert words in failure.text


def test_reasons_are_given() -> None:
    (suite,) = JUnitXml.fromstring(as_junit(ALL["randomized"]()))
    reasons = {case.name: case.result[0].message for case in suite if case.result}
    assert "randomized" in reasons["get/no-side-effect"]
    (suite,) = JUnitXml.fromstring(as_junit(undetermined()))
    (error,) = next(case.result for case in suite if case.name == "chunk-status/manager-writes")
    assert isinstance(error, Error)
    assert "--budget standard or deep searches further" in error.message


@pytest.mark.parametrize("which", ALL)
def test_the_form_that_all_readers_share(which: str) -> None:
    """The rules that the published schemas have in common."""
    root = Xml.fromstring(as_junit(ALL[which]()))
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        order = [child.tag for child in suite]
        assert order == sorted(order, key=["properties", "testcase", "system-out"].index)
        for number in ("tests", "failures", "errors", "skipped"):
            assert int(suite.attrib[number]) >= 0
        float(suite.attrib["time"])
        for case in suite.iter("testcase"):
            assert set(case.attrib) == {"name", "classname", "time"}
            assert len(case) <= 1
            for outcome in case:
                assert outcome.tag in ("failure", "error", "skipped")
                assert outcome.attrib["message"] and outcome.attrib["type"]


def test_what_xml_cannot_hold_is_escaped() -> None:
    written = as_junit(hostile())
    assert b"\x1b" not in written and b"\x00" not in written
    assert b"<script>" not in written
    assert b"\\x1b[31m" in written
