"""The command line of the explorer."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance.explore import command, plan
from cachelaw.conformance.explore.calls import Scope
from cachelaw.conformance.explore.command import add_explore
from cachelaw.conformance.explore.plan import benchmark, rows, scope_of
from cachelaw.conformance.subject import Unusable
from cachelaw.reference import lru
from cachelaw.reference.editions import EDITIONS, V024
from cachelaw.reference.recency import renew


def explored(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="cachelaw")
    add_explore(parser.add_subparsers(required=True))
    options = parser.parse_args(["explore", *arguments])
    status: int = options.run(options)
    return status


def test_a_policy_of_one_edition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "explored.json"
    assert explored("--policy", "lru", "--edition", "v0.24", "--json", str(file)) == 0
    printed = capsys.readouterr().out
    assert "lru v0.24" in printed and "closed at 12" in printed and "3,256" in printed
    assert max(map(len, printed.splitlines())) <= 80
    data = json.loads(file.read_text(encoding="utf-8"))
    kinds = [(row["alphabet"], row["checks"]) for row in data["explorations"]]
    assert kinds == [
        ("calls", "states"),
        ("calls", "steps"),
        ("calls", "class"),
        ("protocol", "states"),
    ]
    assert data["explorations"][0]["unreduced"] == 431
    assert data["differences"] == []


def test_bounds_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--policy", "lru", "--edition", "0.24", "--alphabet", "calls", "--capacity", "2")
    assert explored(*arguments) == 0
    printed = capsys.readouterr().out
    assert "calls, steps  2 3 2 2" in printed
    assert explored(*arguments, "--keys", "2", "--depth", "2") == 0
    assert "to depth 2" in capsys.readouterr().out
    assert explored(*arguments, "--checks", "states") == 0
    assert "steps  2" not in capsys.readouterr().out


def test_bounds_of_ones_own_ask_the_rules_of_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No state is wrong here, but the steps between them are."""

    def head_first(order: tuple[int, ...], keys: tuple[int, ...]) -> tuple[int, ...]:
        for key in keys:
            order = renew(order, key) if key in order else order
        return order

    monkeypatch.setattr(lru, "list_touch", head_first)
    arguments = ("--policy", "lru", "--edition", "v0.22", "--alphabet", "calls", "--capacity", "2")
    assert explored(*arguments, "--checks", "states") == 0
    assert explored(*arguments) == 1
    assert "lru v0.22 breaks lru/batch-tail-first" in capsys.readouterr().out


@pytest.mark.parametrize("policy", ["textbook", "filter"])
def test_what_has_no_edition(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert explored("--policy", policy) == 0
    assert policy in capsys.readouterr().out
    with pytest.raises(Unusable, match="no protocol"):
        explored("--policy", policy, "--alphabet", "protocol")


def test_a_broken_invariant_is_shown_with_its_path(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lru, "evictable_unmark", lambda state, key: state)
    arguments = ("--policy", "lru", "--edition", "v0.24", "--capacity", "1", "--keys", "1")
    assert explored(*arguments) == 1
    printed = capsys.readouterr().out
    assert "lru v0.24 breaks lru/becoming-idle-is-use" in printed
    assert "1. insert(0, 0, u0)\n  2. completes(0)\n  3. pin(0)\n" in printed
    assert "1. u1 offers 0\n  2. store of 0 succeeds\n  3. u1 starts to load 0\n" in printed


def test_known_faults_are_told_and_do_not_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "scope_of", lambda *_, **__: Scope(1, 2, requests=1))
    file = tmp_path / "explored.json"
    assert explored("--policy", "arc", "--edition", "v0.27", "--json", str(file)) == 0
    assert "known fault: arc v0.27 breaks evict/none-only-when-short" in capsys.readouterr().out
    (fault,) = json.loads(file.read_text(encoding="utf-8"))["differences"]
    assert len(fault["steps"]) == 6 and len(fault["trace"]["events"]) == 6


@pytest.mark.parametrize(
    "arguments",
    [
        ("--edition", "v9"),
        ("--capacity", "0"),
        ("--keys", "-1"),
        ("--depth", "-1"),
        ("--policy", "lru", "--checks", "restated"),
        ("--policy", "textbook", "--checks", "class"),
        ("--alphabet", "protocol", "--checks", "steps", "--policy", "arc"),
        ("--json", "no/such/folder/f"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    with pytest.raises(Unusable):
        explored(*arguments)


def test_every_policy_has_a_scope() -> None:
    for policy in plan.POLICIES:
        for edition in EDITIONS:
            for alphabet in plan.ALPHABETS:
                for full in (False, True):
                    assert scope_of(policy, edition, alphabet, "states", full=full).capacity >= 2


def test_rows_of_one_alphabet() -> None:
    made = list(rows(("lru", "filter"), (V024,), ("protocol",)))
    assert [(row.policy, row.alphabet) for row in made] == [("lru", "protocol")]


def test_the_benchmark_counts_transitions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = benchmark(Scope(2, 3), rounds=3)
    assert len(rates) == 3 and 0 < rates[0] <= rates[-1]
    monkeypatch.setattr(command, "benchmark", lambda: [1000.0, 3000.0, 3100.0])
    assert explored("--benchmark") == 0
    assert "median 3,000 transitions a second, 1,000 to 3,100" in capsys.readouterr().out


def test_a_row_can_be_written() -> None:
    (row, *_) = rows(("lru",), (V024,), ("calls",))
    written: dict[str, Any] = row.as_json()
    assert json.loads(json.dumps(written))["scope"]["capacity"] == 3
