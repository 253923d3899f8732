"""The report as JUnit XML, for the viewers of CI systems: one test case a clause.

There is no standard, only what readers make of it. So this keeps to what all of them take: suites
in `testsuites`, the counts as attributes, and in a test case at most one of `failure`, `error` and
`skipped`. A law that is not applicable is skipped, and so is a violation that is expected; one that
is undetermined is an error, since it has not been tested. An entry of --expect that is stale is a
test case too, which fails.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from cachelaw.conformance.plain import plain
from cachelaw.conformance.reports import shown
from cachelaw.conformance.reports.shown import Data
from cachelaw.conformance.verdict import Verdict


def write_junit(data: Data, path: Path) -> None:
    """Write a report as JUnit XML.

    Args:
        data: the report's data.
        path: where to.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_bytes(as_junit(data))


def as_junit(data: Data) -> bytes:
    """Return a report as JUnit XML, in UTF-8."""
    name = _text(f"cachelaw {data['subject']} {data['edition']}")
    suite = Xml.Element("testsuite", name=name)
    _properties(suite, data)
    kinds: list[str] = []
    for law in data["laws"]:
        case = Xml.SubElement(suite, "testcase")
        topic = law["clause"].partition("/")[0]
        # Nothing here is measured by a clock; readers want a number.
        case.attrib.update({"classname": topic, "name": law["clause"], "time": "0"})
        kind = _outcome(case, data, law)
        if kind:
            kinds.append(kind)
    for entry in shown.stale(data):
        case = Xml.SubElement(suite, "testcase")
        case.attrib.update({"classname": "expectations", "name": entry["clause"], "time": "0"})
        Xml.SubElement(case, "failure", message=_text(entry["says"]), type="stale")
        kinds.append("failure")
    said = [line for line in (shown.hosts(data), shown.printed(data)) if line]
    said += [f"{_text(one['reading'])}: {_text(one['says'])}" for one in data["diagnosis"]]
    said += shown.expectations(data)
    if said:
        Xml.SubElement(suite, "system-out").text = _text("\n".join(said))
    counts = {
        "tests": str(len(data["laws"]) + len(shown.stale(data))),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": "0",
    }
    suite.attrib.update(counts)
    everything = Xml.Element("testsuites", {"name": "cachelaw", **counts})
    everything.append(suite)
    Xml.indent(everything)
    made: bytes = Xml.tostring(everything, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _properties(suite: Xml.Element, data: Data) -> None:
    properties = Xml.SubElement(suite, "properties")
    facts = {
        "cachelaw": data["cachelaw"],
        "subject": data["subject"],
        "edition": data["edition"],
        "profiles": ", ".join(data["profiles"]),
        "budget": data["budget"],
        "seed": data["seed"],
        "digest": data["certificate"]["digest"],
    }
    for name, value in facts.items():
        Xml.SubElement(properties, "property", name=name, value=_text(str(value)))


def _outcome(case: Xml.Element, data: Data, law: Data) -> str:
    """Write down what came of a law; return the kind of the element, empty if it holds."""
    verdict = law["verdict"]
    if verdict == Verdict.HOLDS.value:
        return ""
    if "expected_failure" in law:
        comment = law["expected_failure"]
        message = "violated, as expected" + (f": {comment}" if comment else "")
        Xml.SubElement(case, "skipped", message=_text(message), type="expected")
        return "skipped"
    if verdict == Verdict.VIOLATED.value:
        found = law["counterexample"]
        message = f"expected {found['expected']}, but: {found['actual']}"
        failure = Xml.SubElement(case, "failure", message=_text(message), type="violated")
        failure.text = _text(shown.told(law))
        return "failure"
    if verdict == Verdict.UNDETERMINED.value:
        message = shown.note(data, law)
        Xml.SubElement(case, "error", message=_text(message), type="undetermined").text = message
        return "error"
    Xml.SubElement(case, "skipped", message=_text(law.get("note", "")), type="not applicable")
    return "skipped"


def _text(text: str) -> str:
    """Return text as XML 1.0 may hold it; other characters are written as escapes."""
    return "".join(c if c in "\n\t" or plain(c) == c else plain(c) for c in text)
