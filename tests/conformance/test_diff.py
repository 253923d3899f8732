"""`cachelaw diff`: the shortest sequence of events on which two policies differ."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import difference, shrink
from cachelaw.conformance.certify import Budget
from cachelaw.conformance.difference import ALIKE, DIFFER, Pair, add_diff, beside, compare
from cachelaw.conformance.lockstep import Lockstep
from cachelaw.conformance.mutants.zoo import classes, subject_name
from cachelaw.conformance.subject import Subject, Unusable, Wanted, resolve
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trace import Trace, describe, trace_from_json
from cachelaw.reference.editions import V022, V024, V031
from cachelaw.reference.protocol import Evict, StoreOffered, StoreSucceeds, objection

LITTLE = Budget("little", programs=20, events=80, twins=0)
ZOO = {name: subject_name(made) for name, made in classes().items()}


def diff(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="cachelaw")
    add_diff(parser.add_subparsers(required=True), Limits())
    options = parser.parse_args(["diff", *arguments])
    status: int = options.run(options)
    return status


def shown(rows: Any) -> list[tuple[str, str, str]]:
    return [(event, str(one), str(other)) for event, one, other in rows]


def answers(subject: Subject, trace: Trace) -> list[Any]:
    """Let a policy live through a trace by itself."""
    run = Lockstep(subject, replace(trace, edition=subject.edition).setting)
    life = []
    for event in trace.events:
        assert objection(run.setting, run.state, event) is None, describe(event)
        life.append(run.step(event))
    return life


# --- What differs --------------------------------------------------------------------------------


def test_two_editions_of_lru() -> None:
    one, other = resolve("cachelaw.reference.v024:LRU"), resolve("cachelaw.reference.v031:LRU")
    found = compare(one, other, LITTLE, 1)
    assert shown(found.rows) == [
        ("u1 offers 1 2", "", ""),
        ("store of 2 1 succeeds", "", ""),
        ("evict 1", "[2]", "[1]"),
    ]
    assert found.shortest and found.trace is not None and found.trace.edition == V024
    # Each by itself answers as the table says.
    assert answers(one, found.trace)[-1] == [(2,)]
    assert answers(other, found.trace)[-1] == [(1,)]


def test_the_order_of_the_two_makes_no_difference_but_for_the_columns() -> None:
    names = ("cachelaw.reference.v031:LRU", "cachelaw.reference.v024:LRU")
    found = compare(resolve(names[0]), resolve(names[1]), LITTLE, 1)
    assert shown(found.rows)[-1] == ("evict 1", "[1]", "[2]")
    assert found.trace is not None and found.trace.edition == V024


def test_a_fault_that_no_probe_is_needed_for_is_found_by_programs() -> None:
    """Without the probes, random programs find what differs, and it is made short."""
    one, other = resolve(ZOO["StepIsOne"], edition="v0.22"), resolve("cachelaw.reference.v022:ARC")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(difference, "contract_probes", lambda edition: ())
        patch.setattr(difference, "twin_probes", lambda edition: ())
        patch.setattr(difference, "PROBES", {})
        patch.setattr(shrink, "MOST_TRANSITIONS", 100)
        found = compare(one, other, Budget("some", programs=60, events=120, twins=0), 1)
    assert found.trace is not None and len(found.trace.events) <= 16 and not found.shortest
    assert found.rows[-1][1].compared != found.rows[-1][2].compared
    assert all(row[1].compared == row[2].compared for row in found.rows[:-1])


def test_a_broken_clause_is_a_difference() -> None:
    found = compare(resolve(ZOO["OneTooMany"]), resolve(ZOO["Fifo"]), LITTLE, 1)
    assert str(found.rows[-1][1]).startswith("breaks evict/")
    assert not found.rows[-1][2].breach
    # Both alike in that: nothing is found, and nothing is asked after it.
    alike = compare(resolve(ZOO["OneTooMany"]), resolve(ZOO["OneTooMany"]), LITTLE, 1)
    assert alike.trace is None and alike.traces > 20


def test_after_both_have_broken_a_clause_nothing_happens_any_more() -> None:
    wrong = resolve(ZOO["OneTooMany"])
    events = (StoreOffered((1, 2), "u1"), StoreSucceeds((1, 2)))
    pair = Pair((wrong, wrong), Trace(wrong.edition, 2, events))
    for event in events:
        pair.step(event)
    one, other = pair.step(Evict(1))
    assert one.breach and one.compared == other.compared and pair.over
    assert pair.step(Evict(1))[0].compared == ((), "")


def test_to_be_refused_unasked_is_to_be_refused() -> None:
    """Hosts from v0.24 on do not ask a policy that cannot have enough idle chunks."""
    one, other = resolve("cachelaw.reference.v022:ARC"), resolve("cachelaw.reference.v024:ARC")
    events = (StoreOffered((1,), "u1"), StoreOffered((2,), "u1"))
    pair = Pair((one, other), Trace(V022, 1, events))
    pair.step(events[0])
    older, newer = pair.step(events[1])
    assert (older.answers, newer.answers) == ((None,), ())
    assert older.compared == newer.compared


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cachelaw.reference.v030:ARC", "cachelaw.reference.v030:ARC"),
        ("cachelaw.reference.v019:LRU", "cachelaw.reference.v022:LRU"),
        ("cachelaw.reference.v026:LRU", "cachelaw.reference.v030:LRU"),
    ],
)
def test_what_is_alike(one: str, other: str) -> None:
    found = compare(resolve(one), resolve(other), LITTLE, 1)
    assert found.trace is None and found.rows == ()
    assert found.traces > 100 and found.events > 2_000


def test_what_cannot_be_compared() -> None:
    fifo = resolve(ZOO["Fifo"])
    with pytest.raises(Unusable, match="randomized"):
        compare(fifo, replace(fifo, randomized=True), LITTLE, 1)
    with pytest.raises(Unusable, match="only policies"):
        compare(resolve("cachelaw.reference.v020:FilterReusedOffloadingManager"), fifo, LITTLE, 1)
    with pytest.raises(Unusable, match="does not answer alike twice"):
        _Fickle.lives = 0
        compare(replace(fifo, build=_Fickle), fifo, LITTLE, 1)


class _Fickle:
    """Evicts in another order in its first life only."""

    lives = 0

    def __new__(cls, cache_capacity: int) -> Any:
        cls.lives += 1
        name = "MostRecentFirst" if cls.lives == 1 else "Fifo"
        made = classes()[name](cache_capacity)
        return _Widened(made) if name == "MostRecentFirst" else made


class _Widened:
    """A policy of v0.19 for hosts of the newest edition."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.get, self.remove, self.evict = policy.get, policy.remove, policy.evict

    def insert(self, key: Any, chunk: Any, context: Any) -> None:
        self.policy.insert(key, chunk)

    def touch(self, *ignored: Any) -> None: ...

    on_store_miss = on_request_access = on_request_finished = touch
    clear = mark_evictable = mark_non_evictable = touch


# --- The command ---------------------------------------------------------------------------------


def test_the_command_shows_both_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "diff.json"
    names = ("cachelaw.reference.v024:LRU", "cachelaw.reference.v031:LRU")
    assert diff(*names, "--budget", "quick", "--json", str(file)) == 1
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert f"A  {names[0]}, driven by hosts of v0.24" in printed
    assert f"B  {names[1]}, driven by hosts of v0.31" in printed
    assert "only events that hosts of v0.24 have are used" in printed
    assert "a breadth-first search at this scope found no shorter trace" in printed
    data = json.loads(file.read_text(encoding="utf-8"))
    assert (data["verdict"], data["edition"], data["shortest"]) == (DIFFER, "v0.24", True)
    assert data["rows"][-1] == {"event": "evict 1", "answers": ["[2]", "[1]"]}
    assert len(trace_from_json(data["trace"]).events) == len(data["rows"]) == 3


def test_one_edition_for_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "diff.json"
    arguments = (ZOO["Fifo"], ZOO["Recent"], "--edition", "0.22", "--budget", "quick")
    assert diff(*arguments, "--json", str(file)) == 1
    data = json.loads(file.read_text(encoding="utf-8"))
    assert [subject["edition"] for subject in data["subjects"]] == ["v0.22", "v0.22"]
    assert "only events" not in capsys.readouterr().out


def test_no_difference_says_how_much_was_searched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "diff.json"
    name = "cachelaw.reference.v019:LRU"
    assert diff(name, name, "--budget", "quick", "--json", str(file)) == 0
    data = json.loads(file.read_text(encoding="utf-8"))
    assert data["verdict"] == ALIKE and data["trace"] is None and data["rows"] == []
    searched = data["searched"]
    assert searched["traces"] > 100 and searched["events"] > 5_000
    said = f"no difference found in {searched['traces']:,} programs of {searched['events']:,}"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere:Policy", "nowhere:Policy"), "there is no module nowhere"),
        ((ZOO["Fifo"], "nowhere:Policy"), "there is no module nowhere"),
        ((ZOO["Fifo"], ZOO["Fifo"], "--edition", "v9"), "no edition is called"),
        ((ZOO["Fifo"], ZOO["Fifo"], "--json", "no/such/folder/f"), "there is no folder"),
        (
            (ZOO["Fifo"], "tests.conformance.hostile:Exits", "--budget", "quick"),
            "the process in which they were compared exited with status 0",
        ),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(Unusable, match=says) as caught:
        diff(*arguments)
    assert "\n" not in str(caught.value)


# --- Two releases --------------------------------------------------------------------------------


def test_a_subject_that_cannot_share_the_process_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As two releases are; here it is said of two subjects that could share it."""
    versions = {"cachelaw.reference.v024:LRU": "1", "cachelaw.reference.v031:LRU": "2"}
    monkeypatch.setattr(difference, "_release", lambda wanted: versions[wanted.name])
    monkeypatch.setattr("cachelaw.conformance.releases.fetch", lambda version, announce: None)
    one = resolve("cachelaw.reference.v024:LRU")
    other = beside(one, Wanted("cachelaw.reference.v031:LRU"))
    assert other.foreign and other.name == "cachelaw.reference.v031:LRU"
    assert (other.edition, other.profile) == (V031, "lru")
    found = compare(one, other, LITTLE, 1)
    assert shown(found.rows)[-1] == ("evict 1", "[2]", "[1]")
    assert len(found.rows) == 3 and found.shortest


@pytest.mark.interop
def test_two_releases(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff("vllm==0.29.0:arc", "vllm==0.30.0:arc", "--budget", "quick") == 1
    printed = capsys.readouterr().out
    assert "A  vllm==0.29.0:arc, driven by hosts of v0.27" in printed
    assert "B  vllm==0.30.0:arc, driven by hosts of v0.30" in printed
    assert any(line.split()[-2:] == ["None", "[3]"] for line in printed.splitlines())
