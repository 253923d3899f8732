"""The bench measures what it says, at sizes at which the times mean nothing."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from benchmarks.fast import __main__ as command
from benchmarks.fast import report
from benchmarks.fast.engines import Cell, Engine, judged, ratio
from benchmarks.fast.lanes import LIBCACHESIM, zipf
from benchmarks.fast.policies import FAST, HOST, SHAPES, Table
from benchmarks.fast.worker import Policy, fresh


@pytest.mark.parametrize("subject", ["cachelaw.reference:LRU", "cachelaw.reference.v024:ARC"])
def test_every_shape_is_timed_and_leaves_a_full_cache(subject: str) -> None:
    policy = Policy(subject, 60)
    for shape in SHAPES:
        found = policy.measure(shape, 3, 2)
        hooks = policy.edition.has_request_hooks
        if shape == "evict 8192 protected" or (shape.startswith("on_") and not hooks):
            assert found is None
        else:
            assert found is not None
            assert all(ns > 0 for ns in found.values())
        assert len(set(policy._keys)) == 60
        assert {policy.policy.get(key).ref_cnt for key in policy._keys} == {0}
    with pytest.raises(ValueError, match="no shape 'guess'"):
        policy.measure("guess", 1, 1)


def test_a_fresh_key_is_equal_and_another() -> None:
    key = bytes(range(36))
    assert fresh(key) == key
    assert fresh(key) is not key


def test_an_engine_answers_and_says_when_it_has_ended(capfd: pytest.CaptureFixture[str]) -> None:
    with Engine("reference", cpu=max(os.sched_getaffinity(0))) as engine:
        assert engine.ask("policy", subject="cachelaw.reference:LRU", resident=20) == "v0.33"
        assert engine.ask("measure", shape="get", n=2, calls=2)["get"] > 0
        with pytest.raises(RuntimeError, match="the process of reference ended during 'guess'"):
            engine.ask("guess")
    assert "there is no command 'guess'" in capfd.readouterr().err


def test_ratios_are_taken_round_by_round() -> None:
    got = ratio(Cell((10.0, 40.0, 90.0)), Cell((10.0, 20.0, 30.0)))
    assert got.samples == (1.0, 2.0, 3.0)
    assert (got.median, got.spread) == (2.0, 1.0)


def test_targets_are_reached_or_missed_by_what_was_measured() -> None:
    def cells(times: float) -> dict[str, Cell]:
        slow = Cell((times,) * 3)
        return {FAST: Cell((1.0,) * 3), HOST: slow, report.SLOWER_THAN: slow}

    table = Table("lru", 100_000, {("touch", 1): cells(3.5), ("touch", 16): cells(0.6)})
    curve = {FAST: Cell((3.0,)), "fast again": Cell((3.0,)), LIBCACHESIM: Cell((1.0,))}
    text = report.markdown(
        report.Findings(tables=[table], curves={1_000_000: curve}), "make bench", 3
    )
    assert "| lru touch, n = 1 | at least 3x | 3.50x ±0 % | reached |" in text
    assert "| lru touch, n = 16 | at least 8x | 0.60x ±0 % | missed by 92 % |" in text
    assert "| lru touch, n = 512 | at least 20x | not run |  |" in text
    assert "against one capacity | at most 2x | 3.00x ±0 % | missed by 50 % |" in text
    assert "by more than 30 % at 1 of 2 shapes" in text
    assert "- touch, n = 16, 100,000 chunks: 0.60x ±0 %" in text
    assert "Lanes on a GPU: not run: there is no GPU on this machine." in text


def test_notes_survive_a_new_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "BENCHMARKS.md"
    record.write_text("old\n\n## Notes\n\nWritten by hand.\n", encoding="utf-8")
    monkeypatch.setattr(command, "RECORD", record)
    monkeypatch.setattr(command, "run", lambda options, allowed: report.Findings())
    arguments = ["bench", "--write", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert command.main() == 0
    text = record.read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks of the fast path")
    assert text.endswith("\n\n## Notes\n\nWritten by hand.\n")
    assert "old" not in text.splitlines()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--parts", "lane"], "there is no part lane"), (["--cpu", "9999"], "may not use CPU 9999")],
)
def test_wrong_usage_is_said(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    assert command.main() == 2
    assert said in capsys.readouterr().out


def test_a_verdict_comes_with_its_digest() -> None:
    assert re.fullmatch(r"conforms \([0-9a-f]{16}\)", judged("cachelaw.reference:ARC"))
    assert judged("cachelaw.reference:LFU").startswith("not certified: ")


def test_zipf_ids_are_permuted() -> None:
    keys = zipf(5_000, 300)
    assert keys.max() < 300
    most = sorted(set(keys.tolist()), key=keys.tolist().count)[-3:]
    assert most != [2, 1, 0]


@pytest.mark.parametrize("wrong", [("--resident", "abc"), ("--resident", "0"), ("--rounds", "-1")])
def test_what_is_no_number_is_refused_in_a_line(
    wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.parser().parse_args(wrong)
    assert ended.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.endswith(f"'{wrong[1]}' is no number of 1 or more, such as 7, 10k or 1M")
