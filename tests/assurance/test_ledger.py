"""The ledger says what the record and the code say, and nothing that was not shown."""

from __future__ import annotations

import copy
from typing import Any

import pytest

pytest.importorskip("crosshair", reason="crosshair-tool is not installed")

from tests.assurance import evidence, ledger, shortest
from tests.assurance.noticed import noticed, noticed_in_filter
from tests.assurance.record import counted, on_record, record

from cachelaw.conformance.explore.plan import planned, rows, scope_of
from cachelaw.conformance.mutants import zoo
from cachelaw.reference.cores import core_of
from cachelaw.reference.editions import V024, V030, V033, Edition
from cachelaw.specs.registry import CLAUSES


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """Return the record with another value somewhere."""
    other = copy.deepcopy(record())
    place = other
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = to
    return other


def pages() -> tuple[str, str]:
    """Return the pages as they stand."""
    return ledger.PAGE.read_text(encoding="utf-8"), shortest.PAGE.read_text(encoding="utf-8")


def fresh() -> tuple[str, str]:
    """Return the pages as they should stand."""
    programs = record()["differences"]["found"]
    return ledger.page(record()), shortest.rewritten(pages()[1], programs)


# --- Up to date ----------------------------------------------------------------------------------


def test_the_ledger_is_up_to_date() -> None:
    assert ledger.complaints(record(), *pages()) == [], ledger.UPDATE


def test_every_clause_has_a_row_with_evidence() -> None:
    found = {}
    for line in pages()[0].partition("### Without a law")[0].splitlines():
        if line.startswith("| `"):
            name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert name not in found
            found[name.strip("`")] = cells
    assert list(found) == list(CLAUSES)
    for name, cells in found.items():
        assert any(cells), name
        assert ledger.NOTHING not in cells[0], f"{name} has neither a law nor other evidence"


# --- The record is that of the code --------------------------------------------------------------


def test_all_that_is_planned_is_on_record() -> None:
    """That the counts are right is asserted by the tests that explore."""
    kept = record()["explorations"]["found"]
    assert len(kept) == len(list(planned()))
    for policy, edition, alphabet, scope, checks in planned(("lru", "arc")):
        row = on_record(policy, edition.name, alphabet, checks)
        assert row["scope"] == {name: getattr(scope, name) for name in scope.__slots__}


@pytest.mark.parametrize("policy", ["textbook", "filter"])
def test_what_has_no_edition_is_explored_as_on_record(policy: str) -> None:
    found = [counted(row) for row in rows((policy,))]
    kept = [row for row in record()["explorations"]["found"] if row["policy"] == policy]
    assert found == kept


NOTICED = [("lru", V024), ("lru", V033), ("arc", V030)]


@pytest.mark.parametrize(("profile", "edition"), NOTICED, ids=lambda value: str(value))
def test_rules_object_to_wrong_steps(profile: str, edition: Edition) -> None:
    core = core_of(profile, edition)
    scope = scope_of(profile, edition, "calls", "steps", full=False)
    wanted = frozenset(record()["noticed"]["found"][f"{profile} {edition}"])
    assert len(wanted) > 20
    assert noticed(core, scope, enough=wanted) >= wanted


def test_rules_of_the_filter_object_to_wrong_steps() -> None:
    assert (
        sorted(noticed_in_filter(*evidence.FILTER_SCOPE)) == record()["noticed"]["found"]["filter"]
    )


# --- The ledger can fail -------------------------------------------------------------------------


def test_another_number_is_noticed() -> None:
    states = on_record("arc", "v0.30", "calls", "steps")["states"]
    at = [row["states"] for row in record()["explorations"]["found"]].index(states)
    other = changed("explorations", "found", at, "states", to=states + 1)
    assert ledger.differing(other, *fresh()) == [
        "specs/assurance.md is not what the record and the code say; run `make ledger`"
    ]


def test_another_program_is_noticed() -> None:
    differences = record()["differences"]["found"]
    at = next(number for number, each in enumerate(differences) if each["steps"])
    steps = ["u1 offers 0", *differences[at]["steps"][1:]]
    other = changed("differences", "found", at, "steps", to=steps)
    assert ledger.differing(other, *fresh()) == [
        "specs/editions.md does not show the shortest programs on record; run `make ledger`"
    ]


@pytest.mark.parametrize("name", evidence.SECTIONS)
def test_a_record_about_other_things_is_stale(name: str) -> None:
    other = changed(name, "about", to="something else")
    line = f"the record of {name} is about other things than there are; run `make ledger`"
    assert line in ledger.complaints(other, *pages())
    del other[name]
    assert name in evidence.stale(other)


@pytest.mark.parametrize(
    "path",
    [
        ("theorems", "found", "arc_sizes", "proved", False),
        ("theorems", "found", "arc_sizes", "refuted", 0),
        ("contracts", "found", "arc_trims_its_ghosts", "not confirmed"),
        ("pairs", "found", "tracker", "answer", "not exhausted"),
        ("explorations", "found", 0, "extent", "to depth 12"),
        ("certified", "found", "cachelaw.reference.v033:ARC", "violated", ["evict/distinct"]),
    ],
    ids=lambda path: f"{path[0]}-{path[-2]}",
)
def test_what_was_not_shown_makes_no_ledger(path: tuple[Any, ...]) -> None:
    with pytest.raises(ledger.LedgerError):
        ledger.page(changed(*path[:-1], to=path[-1]))


def test_a_clause_without_evidence_makes_no_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it says itself that it has no law; then the page says that nothing shows it."""
    with_law, without = CLAUSES["arc/second-use-promotes"], CLAUSES["arc/lists-disjoint"]
    monkeypatch.setitem(CLAUSES, "arc/nothing-shows-it", without)
    assert f"| `arc/nothing-shows-it` | {ledger.NOTHING}" in ledger.page(record())
    monkeypatch.setitem(CLAUSES, "arc/nothing-shows-it", with_law)
    with pytest.raises(ledger.LedgerError, match="no evidence for arc/nothing-shows-it"):
        ledger.page(record())


def test_a_clause_of_the_host_without_a_test_makes_no_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = ledger.tests()
    del found["request-order/by-end-token"]
    monkeypatch.setattr(ledger, "tests", lambda: found)
    with pytest.raises(ledger.LedgerError, match="request-order/by-end-token binds the host"):
        ledger.page(record())


def test_one_more_mutant_asks_for_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class OneMore:
        breaks = "evict/distinct"

    there, old = fresh(), evidence.stale(record())
    wrong = [*ledger.wrong_classes(), OneMore]
    monkeypatch.setattr(ledger, "wrong_classes", lambda: iter(wrong))
    assert evidence.stale(record()) == old
    (said,) = ledger.differing(record(), *there)
    assert "specs/assurance.md" in said
    before = [line for line in there[0].splitlines() if line.startswith("| `evict/distinct`")]
    after = [
        line for line in ledger.page(record()).splitlines() if line.startswith("| `evict/distinct`")
    ]
    assert len(before) == len(after) == 1 and before != after


def test_all_of_the_zoo_counts() -> None:
    named = {made.__name__ for made in ledger.wrong_classes()}
    assert named >= set(zoo.mutants(zoo.ALL))
