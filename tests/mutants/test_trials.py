"""A trial says of a mutant what the suite does, and of nothing else that it was found out."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest

from cachelaw.conformance.mutants import generated, matrix, trial
from cachelaw.conformance.mutants.__main__ import main
from cachelaw.conformance.mutants.equivalence import equivalence
from cachelaw.conformance.mutants.trial import (
    CRASHED,
    HUNG,
    PROBES_ALONE,
    UNUSABLE,
    Candidate,
    Trial,
    staged,
    try_all,
)
from cachelaw.conformance.mutants.zoo import FILTERS, classes, subject_name
from cachelaw.conformance.subject import Unusable, resolve
from cachelaw.reference import arc, v031

FIFO = Candidate("Fifo", subject_name(classes()["Fifo"]))
WIPES = Candidate("WipesCache", subject_name(classes()["WipesCache"]))


def at_probes(candidate: Candidate) -> Trial:
    return staged(candidate, resolve(candidate.subject), PROBES_ALONE)


def mutant(name: str) -> Candidate:
    found = {candidate.name: candidate for candidate in matrix.generated_candidates()}
    return found[name]


# --- Generated mutants ---------------------------------------------------------------------------


def test_mutants_are_subjects_of_their_editions() -> None:
    for target in ("LRU v0.24", "LRU v0.33", "ARC v0.27", "Filter v0.19"):
        made = next(one for one in generated.mutants().values() if one.target == target)
        subject = resolve(made.subject)
        profile = target.partition(" ")[0].lower().replace("filter", "reuse-filter")
        assert (subject.profile, subject.edition) == (profile, made.edition)


def test_an_unknown_mutant_is_named_as_such() -> None:
    with pytest.raises(Unusable, match="has no 'arc/nowhere'"):
        resolve("cachelaw.conformance.mutants.generated:arc/nowhere")


def test_a_mutant_leaves_the_reference_as_it_is() -> None:
    state = arc.ArcState(2, t1=(1, 2))
    name = "arc/evict/31/gte-to-gt/arc-v0_31"
    made = generated.mutants()[name].build()
    assert made is not v031.ARC and not issubclass(made, v031.ARC)
    assert arc.evict(state, 1, (), lambda key: 0)[1] == (1,)
    mutated = generated.mutants()[name].module("arc")
    wrong = mutated.evict(arc.ArcState(2, 2.0, t1=(1, 2), t2=(3,)), 1, (), lambda key: 0)
    right = arc.evict(arc.ArcState(2, 2.0, t1=(1, 2), t2=(3,)), 1, (), lambda key: 0)
    assert (right[1], wrong[1]) == ((1,), (3,))


def test_every_function_of_a_policy_is_mutated() -> None:
    mutated = {(one.file, one.mutation.where) for one in generated.mutants().values()}
    left = []
    for file in generated.TARGETS:
        tree = ast.parse((generated.REFERENCE / f"{file}.py").read_text(encoding="utf-8"))
        for node in tree.body:
            parts = node.body if isinstance(node, ast.ClassDef) else [node]
            for part in parts:
                if isinstance(part, ast.FunctionDef):
                    inside = f"{node.name}-" if isinstance(node, ast.ClassDef) else ""
                    if (file, f"{inside}{part.name}") not in mutated:
                        left.append(f"{file}.{inside}{part.name}")
    tracker = ("times_seen", "observe", "observe_all", "qualifies", "admitted")
    left = [name for name in left if not name.endswith("-cachelaw_state")]
    assert left == ["resident.declaration", *(f"reuse_filter.{name}" for name in tracker)]


# --- Trials --------------------------------------------------------------------------------------


def test_what_is_right_survives_and_what_is_wrong_does_not() -> None:
    assert not at_probes(FIFO).killed
    assert at_probes(FIFO).steps > 100
    found = at_probes(WIPES)
    assert found.killed and found.clause == classes()["WipesCache"].breaks
    assert 0 < found.steps < at_probes(FIFO).steps


def test_a_fault_of_the_edition_does_not_count() -> None:
    """ARC of v0.27 refuses where it should not; a mutant of it is killed only by another clause."""
    original = Candidate("ARC", "cachelaw.reference.v027:ARC")
    assert at_probes(original).killed
    excused = Candidate("ARC", original.subject, frozenset({"evict/none-only-when-short"}))
    assert not at_probes(excused).killed
    those = [one for one in matrix.generated_candidates() if one.name.endswith("arc-v0_27")]
    assert those and all(one.excused == excused.excused for one in those)
    assert mutant("arc/evict/31/gte-to-gt/arc-v0_31").excused == frozenset()


def test_a_mutant_that_cannot_be_made_is_unusable() -> None:
    (found,) = try_all([Candidate("NoTouch", subject_name(classes(FILTERS)["NoTouch"]))], 1)
    assert (found.killed, found.clause, found.ended) == (True, None, UNUSABLE)


HOSTILE = """
import os, time
from cachelaw.conformance.mutants.zoo.right import Fifo

class Exits(Fifo):
    def evict(self, n, protected):
        os._exit(0)

class Sleeps(Fifo):
    def evict(self, n, protected):
        time.sleep(60)
"""


def test_a_mutant_that_takes_its_process_along(tmp_path: Path) -> None:
    path = tmp_path / "hostile.py"
    path.write_text(HOSTILE, encoding="utf-8")
    (found,) = try_all([Candidate("Exits", f"{path}:Exits")], 1)
    assert (found.killed, found.clause, found.ended) == (True, None, CRASHED)


def test_a_mutant_that_does_not_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hostile.py"
    path.write_text(HOSTILE, encoding="utf-8")
    monkeypatch.setattr(trial, "SECONDS", 2)
    began = time.monotonic()
    (found,) = try_all([Candidate("Sleeps", f"{path}:Sleeps")], 1)
    assert (found.killed, found.clause, found.ended) == (True, None, HUNG)
    assert time.monotonic() - began < 50


def test_a_fault_of_the_suite_kills_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object) -> Trial:
        raise KeyError("ours")

    monkeypatch.setattr(trial, "staged", fails)
    (found,) = try_all([FIFO], 1)
    assert not found.killed and found.ended.startswith("the suite failed: KeyError")
    assert matrix.row_of(found).verdict == "unexplained"


# --- Equivalence ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("lru/evictable_remove/3/call-dropped-2/lru-v0_24", "calls"),
        ("arc/evict/44/dropped/arc-v0_31", "calls"),
        ("order/by_position/15/call-dropped/arc-v0_31", "each step"),
        ("reuse_filter/_ReuseFilter-_observe/3/operand-dropped/filter-v0_19", "each step"),
    ],
)
def test_what_makes_no_difference_is_equivalent(name: str, how: str) -> None:
    found = equivalence(generated.mutants()[name])
    assert found is not None and found.how == how
    assert found.states > 10 and found.transitions >= found.states


@pytest.mark.parametrize(
    "name",
    [
        "recency/renew/3/order/lru-v0_31",
        "lru/evictable_touch/8/dropped/lru-v0_24",
        "lru/ranked_touch/10/dropped/lru-v0_33",
        # Two resets are needed to see it, and ranks that are renumbered must not hide it.
        "lru/ranked_clear/3/operand-dropped/lru-v0_33",
        "arc/finish/21/dropped/arc-v0_31",
        "v033/LRU-remove/4/dropped/lru-v0_33",
        "order/by_position/17/order/arc-v0_31",
        "reuse_filter/_ReuseFilter-_qualifies/2/gte-to-gt/filter-v0_20",
        "reuse_filter/_ReuseFilter-touch/3/dropped/filter-v0_19",
    ],
)
def test_what_makes_a_difference_is_not(name: str) -> None:
    assert equivalence(generated.mutants()[name]) is None


# --- The command ---------------------------------------------------------------------------------


def test_the_command_tries_what_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["WipesCache", "arc/evict/31/gte-to-gt/arc-v0_31", "--json", str(tmp_path / "m")]
    assert main([*arguments, "--page", str(tmp_path / "p"), "--ran", "Today."]) == 0
    out = capsys.readouterr().out
    assert "killed by evict/" in out and "generated: 1 mutants: 1 killed" in out
    rows = matrix.read(tmp_path / "m")
    assert [row.trial.name for row in rows] == arguments[:2]
    assert (tmp_path / "p").read_text(encoding="utf-8") == matrix.markdown(rows, "Today.")


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["Nobody"], "no mutant is called 'Nobody'"),
        (["--jobs", "0"], "--jobs must be 1 or more"),
    ):
        with pytest.raises(SystemExit) as raised:
            main(arguments)
        assert raised.value.code == 2
        assert message in capsys.readouterr().err
