"""The report as text: complete, at 80 columns, in a pipe, without colour."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from tests.conformance.reports.made import HOSTILE, hostile, made, named, right, unexpected, wrong

from cachelaw.conformance.reports import shown, text
from cachelaw.conformance.reproduction import FAILS


@pytest.fixture(autouse=True)
def _state(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CACHELAW_STATE", str(tmp_path))


def printed(data: dict[str, Any], **console: Any) -> str:
    file = io.StringIO()
    text.show(data, Console(file=file, highlight=False, width=80, **console))
    return file.getvalue()


def test_a_right_policy_on_one_screen() -> None:
    said = printed(right())
    assert "does not" not in said
    assert f"{right()['subject']} conforms" in " ".join(said.split())
    assert "runs on all hosts, v0.19 to v0.33" in said
    assert len(said.splitlines()) < 30


def test_topics_have_verdicts_and_counts() -> None:
    lines = printed(wrong()).splitlines()
    (evict,) = (line for line in lines if line.startswith("  evict "))
    assert "11 holds · 1 violated" in evict
    assert "      violated: evict/exact-count" in lines


def test_one_reason_is_given_once() -> None:
    data = wrong()
    reason = "the subject's process came to its end 3 times; the rest was not run"
    others = [law for law in data["laws"] if law["verdict"] == "holds"]
    for law in others:
        law.update(verdict="undetermined", note=reason)
    said = " ".join(printed(data).split())
    assert said.count(f"{len(others)} undetermined: {reason}") == 1
    assert said.count(reason) == 1
    assert said.index("violated: evict/exact-count") < said.index(reason)
    for law in others[2:]:
        law.update(verdict="not applicable", note="no clause of edition v0.33")
    said = " ".join(printed(data).split())
    few = ", ".join(law["clause"] for law in others[:2])
    assert f"undetermined: {few} ({reason})" in said
    assert said.count("not applicable: no clause of edition v0.33") == 1


def test_editions_stand_in_a_table() -> None:
    older = wrong()
    older["edition"] = "v0.31"
    file = io.StringIO()
    text.show_editions([older, right()], Console(file=file, width=80))
    rows = [line.split() for line in file.getvalue().splitlines()]
    assert ["v0.31", "violated", "1", "evict/exact-count"] in rows
    assert ["v0.33", "holds", "0"] in rows


def test_nouns_agree_with_their_numbers() -> None:
    data = wrong()
    search = {"capacity": 1, "keys": 1, "transitions": 2_000, "closed": False, "depth": 1}
    data["searches"] = [{**search, "states": 3, "m": 4, "snapshots": "pickle"}]
    said = " ".join(printed(data).split())
    assert (
        "exhaustive at capacity 1, 1 key: every sequence of 1 event, 2,000 transitions, "
        "m = 4: up to 4 hidden states of the subject for each state of the oracle"
    ) in said
    (law,) = shown.violated(data)
    found = law["counterexample"]
    for how in ("cost", "memory", "lockstep"):
        one = {**found, "found_by": how, "trace": {"events": [{}]}}
        assert shown.how_short(one).startswith("1 event")
        assert "1 events" not in shown.how_short(one)


def test_a_violation_is_told_in_full() -> None:
    data = wrong()
    said = printed(data)
    (law,) = shown.violated(data)
    found = law["counterexample"]
    for words in (
        "VIOLATED evict/exact-count",
        "capacity 2",
        "u1 offers 1 2",
        "evict(1, set())",
        "expected: exactly 1 victim, or None",
        "actual:   [1, 2]",
        "a breadth-first search at this scope found no shorter trace",
        f"cachelaw replay {found['id']}",
        "cachelaw clauses",
        "        answer = policy.evict(1, set())",
    ):
        assert words in said, words
    assert law["statement"] in " ".join(said.split())


def test_80_columns_a_pipe_and_no_colour() -> None:
    for data in (right(), wrong(), made(named("GroupAfterGroup")), made(named("SkipsEmptyOffers"))):
        said = printed(data)
        assert "\x1b" not in said
        # A line of the reproduction is code, to be copied, and stays whole.
        code = {
            f"    {line}"
            for law in shown.violated(data)
            for line in shown.functions(law["counterexample"]["reproduction"]).splitlines()
        }
        assert all(len(line) <= 80 for line in said.splitlines() if line not in code)


def test_colours_obey_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in printed(wrong(), force_terminal=True, color_system="standard")
    monkeypatch.setenv("NO_COLOR", "1")
    colourless = printed(wrong(), force_terminal=True, color_system="standard")
    assert "\x1b[31" not in colourless and "\x1b[1;31" not in colourless


def test_a_hostile_subject_does_not_reach_the_terminal() -> None:
    for data in (hostile(), unexpected(hostile())):
        said = printed(data)
        assert "\x1b" not in said and "\x00" not in said
        assert "\\x1b[31m" in said


def test_an_undetermined_law_says_which_budget_searches_further() -> None:
    data = right()
    law = data["laws"][0]
    law.update(verdict="undetermined", met=0, note="its condition was never met in this run")
    for budget, says in (
        ("quick", "--budget standard or deep searches further"),
        ("standard", "--budget deep searches further"),
        ("deep", "no budget searches further"),
    ):
        data["budget"] = budget
        assert says in " ".join(printed(data).split())
    law.update(met=3, note="another violation hides it")
    assert "searches further" not in printed(data)


def test_what_a_subject_does_besides_is_said() -> None:
    data = wrong()
    data["printed"] = {"bytes": 12_345, "start": "hello\n"}
    data["diagnosis"] = [{"reading": "integer step", "says": "its steps are whole numbers."}]
    data["host"] = "vllm==0.30.0"
    data["parameters"] = {"ratio": "0.5"}
    said = printed(data)
    for words in (
        "the subject printed 12,345 bytes: hello",
        "DIAGNOSIS integer step its steps are whole numbers.",
        "host vllm==0.30.0",
        "ratio=0.5",
    ):
        assert words in said


def test_the_outcome_of_the_reproduction_is_said() -> None:
    data = wrong()
    (law,) = shown.violated(data)
    reproduction = law["counterexample"]["reproduction"]
    reproduction["outcome"] = FAILS
    assert "it was run, and fails as it should" in printed(data)
    reproduction.update(text=None, outcome="none: it is a command")
    assert "reproduction: none: it is a command" in printed(data)


def test_an_expected_failure_is_named_as_one() -> None:
    data = wrong()
    next(law for law in data["laws"] if law["verdict"] == "violated")["expected_failure"] = "bug 17"
    assert "violated, as expected: evict/exact-count (bug 17)" in printed(data)


def test_long_counterexamples_are_shown_in_part() -> None:
    data = wrong()
    (law,) = shown.violated(data)
    found = law["counterexample"]
    found["rows"] = [{**found["rows"][0], "event": f"event {n}"} for n in range(1, 501)]
    said = printed(data)
    assert "event 1 " in said and "event 500 " in said and "event 250 " not in said
    assert "... 470 more events ..." in said


# --- Hosts ---------------------------------------------------------------------------------------


def row(edition: str, runs: bool | None, breaks: str = "") -> dict[str, Any]:
    return {"edition": edition, "runs": runs, "breaks": breaks}


CALLED = "hosts of {} call insert with 3 arguments, which it does not take"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], ""),
        ([row("v0.31", True), row("v0.33", True)], "runs on all hosts, v0.31 to v0.33"),
        (
            [
                row("v0.19", False, "it has no method clear"),
                row("v0.24", True),
                row("v0.26", True),
                row("v0.30", True),
                row("v0.31", False, CALLED.format("v0.31")),
                row("v0.33", False, CALLED.format("v0.33")),
            ],
            "runs on hosts v0.24 to v0.30; not on v0.19 (no method clear), "
            "v0.31 to v0.33 (insert is called with 3 arguments)",
        ),
        (
            [row("v0.19", True), row("v0.24", None, "unreachable"), row("v0.26", True)],
            "runs on hosts v0.19, v0.26; not known on v0.24 (unreachable)",
        ),
        ([row("v0.19", False, HOSTILE[:9])], "runs on no host; not on v0.19 (</script>)"),
    ],
)
def test_hosts_in_one_line(rows: list[dict[str, Any]], says: str) -> None:
    assert shown.hosts({"compatibility": rows}) == says
