"""Fast counterparts do what the core does, on every path; the gate takes nothing less."""

from __future__ import annotations

import inspect
from importlib.util import find_spec

import pytest

pytest.importorskip("crosshair", reason="crosshair-tool is not installed")

from tests.proof import differences
from tests.proof.pairs import PAIRS, Pair

pytestmark = pytest.mark.proof

THERE = [
    pytest.param(
        pair,
        id=pair.name,
        marks=() if pair.is_there else pytest.mark.skip(f"{pair.needs} is not installed"),
    )
    for pair in PAIRS
]


@pytest.mark.parametrize("pair", THERE)
def test_counterparts_are_alike_on_every_path(pair: Pair) -> None:
    found = differences.judge(pair)
    assert found.answer == "alike", found


@pytest.mark.parametrize("pair", THERE)
def test_a_wrong_counterpart_is_told_from_the_core(pair: Pair) -> None:
    found = differences.judge(pair._replace(counterpart=pair.wrong))
    assert found.answer == "different"
    assert pair.wrong.__name__ in found.detail


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_pairs_take_the_same_arguments(pair: Pair) -> None:
    first, *others = (inspect.signature(f) for f in (pair.core, pair.counterpart, pair.wrong))
    assert all(other == first for other in others)
    assert pair.what and pair.bound and pair.seconds > 0
    assert pair.is_there == (not pair.needs or find_spec(pair.needs) is not None)


def grows(number: int) -> bool:
    """Follow a path of its own for every number."""
    steps = 0
    while steps < number:
        steps += 1
    return steps >= number


def test_gate_fails_what_is_not_exhausted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = Pair(grows, grows, grows, "a loop without a bound", "none", 0.05)
    monkeypatch.setattr(differences, "PAIRS", (pair,))
    monkeypatch.setattr(differences, "LEAST_SECONDS", 0.05)
    assert differences.main([]) == 1
    assert "not exhausted" in capsys.readouterr().out


def test_gate_fails_what_differs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = PAIRS[0]._replace(counterpart=PAIRS[0].wrong)
    monkeypatch.setattr(differences, "PAIRS", (pair,))
    assert differences.main([]) == 1
    assert "different" in capsys.readouterr().out
