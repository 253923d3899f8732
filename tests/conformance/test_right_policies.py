"""No false alarm: right policies conform, whatever their order, and so does each reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from cachelaw.conformance import shrink
from cachelaw.conformance.certify import BUDGETS, certify
from cachelaw.conformance.laws import ALSO_BY_CALL
from cachelaw.conformance.processes import PROCESS_LAWS
from cachelaw.conformance.subject import resolve
from cachelaw.conformance.twins import TWINS
from cachelaw.conformance.verdict import Verdict, exit_status
from cachelaw.reference.editions import EDITIONS, V019, V024, V027, V030, V033, Edition

RIGHT = {
    "Fifo": V033,
    "Lfu": V033,
    "Slru": V033,
    "Sieve": V033,
    "S3Fifo": V033,
    "AtRandom": V033,
    "Gate": V033,
    "MostRecent": V024,
    "SecondChance": V019,
    "made_by_a_function": V033,
}
"""What conforms, with the edition whose interface it was written for."""

SOURCE = Path(__file__).with_name("right.py")


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_policy_conforms(name: str) -> None:
    subject = resolve(f"{SOURCE}:{name}", edition=RIGHT[name].name)
    report = certify(subject, BUDGETS["quick"], seed=1)
    assert subject.profile == "contract"
    assert [result.law.clause.name for result in report.violations] == []
    assert report.verdict is Verdict.HOLDS
    assert exit_status(report.verdict) == 0
    open_laws = [r for r in report.results if r.verdict is Verdict.UNDETERMINED]
    assert open_laws == []


def test_a_randomized_policy_is_not_judged_by_twins() -> None:
    report = certify(resolve(f"{SOURCE}:AtRandom"), BUDGETS["quick"], seed=1)
    excused = {r.law.clause.name for r in report.results if r.verdict is Verdict.NOT_APPLICABLE}
    assert excused == {*TWINS, *PROCESS_LAWS} - set(ALSO_BY_CALL)


def test_a_policy_that_may_refuse_is_excused_from_one_clause() -> None:
    report = certify(resolve(f"{SOURCE}:Gate"), BUDGETS["quick"], seed=1)
    excused = {r.law.clause.name for r in report.results if r.verdict is Verdict.NOT_APPLICABLE}
    offers_no_state = {"state/no-side-effect"}
    assert excused - offers_no_state == {"evict/none-only-when-short"}


@pytest.mark.parametrize("name", ["AtRandom", "Gate"])
def test_nothing_is_excused_that_was_not_declared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 100)
    silent = tmp_path / "silent.py"
    silent.write_text(SOURCE.read_text().replace("    cachelaw: ", "    not_declared: "))
    report = certify(resolve(f"{silent}:{name}"), BUDGETS["quick"], seed=1)
    assert report.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_the_reference_lru_conforms(edition: Edition) -> None:
    subject = resolve(f"{edition.module}:LRU", edition=edition.name)
    report = certify(subject, BUDGETS["quick"], seed=1)
    assert (subject.profile, subject.edition) == ("lru", edition)
    assert report.verdict is Verdict.HOLDS, report.violations
    assert exit_status(report.verdict) == 0


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_the_reference_arc_conforms_but_for_the_fault_of_its_day(
    edition: Edition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 100)
    subject = resolve(f"{edition.module}:ARC", edition=edition.name)
    report = certify(subject, BUDGETS["quick"], seed=1)
    assert (subject.profile, subject.edition) == ("arc", edition)
    violated = [result.law.clause.name for result in report.violations]
    assert violated == (["evict/none-only-when-short"] if edition <= V027 else [])
    assert Verdict.UNDETERMINED not in {result.verdict for result in report.results}


@pytest.mark.parametrize("edition", [V030, V033], ids=str)
@pytest.mark.parametrize("policy", ["LRU", "ARC"])
def test_the_reference_keeps_the_contract_without_its_profile(
    edition: Edition, policy: str
) -> None:
    subject = resolve(f"{edition.module}:{policy}", profile="contract", edition=edition.name)
    report = certify(subject, BUDGETS["quick"], seed=2)
    assert report.verdict is Verdict.HOLDS, report.violations
