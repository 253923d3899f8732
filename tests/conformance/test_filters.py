"""The filter engine: right filters conform, and each wrong one is rejected for what it breaks."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from cachelaw.conformance.certify import BUDGETS, Report, certify
from cachelaw.conformance.cli import main
from cachelaw.conformance.filters.probes import FilterProbe, filter_probes
from cachelaw.conformance.filters.search import FilterRun, filter_experiment
from cachelaw.conformance.filters.trace import FilterTrace, filter_trace_from_json
from cachelaw.conformance.finding import Tally
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants.zoo import FILTERS, classes, filters
from cachelaw.conformance.reports.data import as_json
from cachelaw.conformance.reports.text import show
from cachelaw.conformance.subject import Subject, Unusable, resolve
from cachelaw.conformance.verdict import Verdict
from cachelaw.reference.editions import V019, V020, Edition

ZOO = classes(FILTERS)
ODD = Path(__file__).with_name("odd_filters.py")
FILTER_LAWS = [name for name, law in LAWS.items() if law.kind == "filter"]
REFERENCES = {V019: "cachelaw.reference.v019", V020: "cachelaw.reference.v020"}

RIGHT = {
    "RightV019": V019,
    "RightV020": V020,
    "RightV021": V020,
    "HandsOverLazily": V019,
    "DelegatesByName": V020,
    "made_by_a_function": V019,
}
"""What conforms, with the edition whose form it has."""

WRONG = {name: made.breaks for name, made in ZOO.items() if "breaks" in vars(made)}
"""What does not conform, with the clause that it breaks."""

FOUND_AT_RANDOM = {
    name: made.breaks_one_of for name, made in ZOO.items() if "breaks_one_of" in vars(made)
}
"""What passes every probe but one or none, with what a random program may put the blame on."""


def out_of_zoo(name: str, edition: str | None = None) -> Subject:
    place = filters.__name__ if hasattr(filters, name) else ODD
    return resolve(f"{place}:{name}", profile="reuse-filter", edition=edition)


def judged(subject: Subject) -> Report:
    return certify(subject, BUDGETS["quick"], 1)


def shown(report: Report) -> str:
    console = Console(file=io.StringIO(), width=160, color_system=None)
    show(as_json(report), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# --- What is right -------------------------------------------------------------------------------


@pytest.mark.parametrize("edition", REFERENCES, ids=str)
def test_reference_conforms(edition: Edition) -> None:
    subject = resolve(f"{REFERENCES[edition]}:FilterReusedOffloadingManager")
    assert (subject.profile, subject.edition, subject.fits) == ("reuse-filter", edition, (edition,))
    report = judged(subject)
    assert report.verdict is Verdict.HOLDS
    assert [result.law.clause.name for result in report.results] == FILTER_LAWS
    assert all(result.verdict is Verdict.HOLDS for result in report.results)
    # Each law was tried: the constructor by probes alone, the others over and over.
    for result in report.results:
        least = 2 if "at-least" in result.law.clause.name else 100
        assert result.met >= least, (result.law.clause.name, result.met)


@pytest.mark.parametrize("name", RIGHT)
def test_right_filters_conform(name: str) -> None:
    subject = out_of_zoo(name)
    assert subject.edition == RIGHT[name]
    report = judged(subject)
    assert report.verdict is Verdict.HOLDS, shown(report)


def test_probes_alone_determine_every_law() -> None:
    for edition, module in REFERENCES.items():
        subject = resolve(f"{module}:FilterReusedOffloadingManager")
        tally = Tally(Counter())
        for probe in filter_probes():
            assert FilterRun(subject, probe.trace(edition), tally).live_all() == []
        assert set(tally.met) == set(FILTER_LAWS)


@pytest.mark.parametrize("edition", REFERENCES, ids=str)
@pytest.mark.parametrize(
    "probe", list(filter_probes()), ids=lambda probe: probe.clause.partition("/")[2]
)
def test_every_probe_is_driven_and_meets_its_condition(
    probe: FilterProbe, edition: Edition
) -> None:
    subject = resolve(f"{REFERENCES[edition]}:FilterReusedOffloadingManager")
    trace = probe.trace(edition)
    tally = Tally(Counter())
    run = FilterRun(subject, trace, tally)
    run.live_all()
    assert tally.events == len(trace.events)  # no scheduler would object to any of them
    if trace.events or probe.store_threshold < 2 or probe.max_tracker_size < 1:
        assert tally.met[probe.clause]


# --- What is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRONG)
def test_wrong_filters_are_rejected(name: str) -> None:
    subject = out_of_zoo(name)
    report = judged(subject)
    clauses = [result.law.clause.name for result in report.violations]
    assert clauses[:1] == [WRONG[name]], shown(report)
    # One fault, one violation: what it may have hidden is left undetermined.
    assert len(clauses) == 1
    assert report.verdict is Verdict.VIOLATED
    check_counterexamples(report)


@pytest.mark.parametrize("name", FOUND_AT_RANDOM)
def test_random_programs_find_what_probes_miss(name: str) -> None:
    subject = out_of_zoo(name)
    for probe in filter_probes():
        trace = probe.trace(subject.edition)
        if FilterRun(subject, trace, Tally(Counter())).live_all():
            assert name == "ForgetsTheThirdFailure"  # the last probe goes as far
    report = judged(subject)
    (result,) = report.violations
    assert result.law.clause.name in FOUND_AT_RANDOM[name], shown(report)
    check_counterexamples(report)


def test_every_clause_is_broken_by_a_filter_of_the_zoo() -> None:
    assert set(WRONG.values()) == set(FILTER_LAWS)


def check_counterexamples(report: Report) -> None:
    """Every counterexample shows its breach again, also after a way through JSON."""
    for result in report.violations:
        finding = result.finding
        assert finding is not None
        trace = finding.trace
        assert isinstance(trace, FilterTrace)
        assert filter_trace_from_json(json.loads(json.dumps(trace.as_json()))) == trace
        again = filter_experiment(report.subject, finding.clause)(trace)
        assert [(f.clause, f.trace) for f in again] == [(finding.clause, trace)]
        rows = as_json(report)
        (law,) = (law for law in rows["laws"] if law["clause"] == finding.clause)
        assert law["counterexample"]["rows"][-1]["actual"] == finding.actual
        assert len(law["counterexample"]["rows"]) == max(1, len(trace.events))
    text = shown(report)
    assert "does not conform" in text and "max_tracker_size" in text


# --- Counterexamples and what is left open -------------------------------------------------------


def test_counterexample_is_short_and_readable() -> None:
    report = judged(out_of_zoo("AsksForMoreThanTheThreshold"))
    (result,) = report.violations
    assert result.finding is not None
    assert [(e.method, e.keys) for e in result.finding.trace.events] == [
        ("lookup", (1,)),
        ("lookup", (1,)),
        ("prepare_store", (1,)),
    ]
    text = shown(report)
    assert "store_threshold 2, max_tracker_size 2" in text
    assert "expected: the backing is given prepare_store([1])" in text
    assert "actual:   the backing is given prepare_store([])" in text


def test_construction_shows_itself() -> None:
    report = judged(out_of_zoo("AcceptsEmptyTracker"))
    (result,) = report.violations
    assert result.finding is not None and result.finding.trace.events == ()
    text = shown(report)
    assert "expected: ValueError" in text and "the construction alone shows it" in text


def test_what_a_known_fault_hides_does_not_hold() -> None:
    report = judged(out_of_zoo("AsksForMoreThanTheThreshold"))
    notes = {
        result.law.clause.name: result.note
        for result in report.results
        if result.verdict is Verdict.UNDETERMINED
    }
    assert "reuse-filter/counts-outlive-chunks" in notes
    assert all("reuse-filter/store-needs-threshold" in note for note in notes.values())


def test_two_faults_of_different_kinds_are_both_named() -> None:
    report = judged(out_of_zoo("SkipsEmptyOffersFirstInFirstOut"))
    assert {result.law.clause.name for result in report.violations} == {
        "reuse-filter/repeat-renews",
        "reuse-filter/empty-offer-delegated",
    }


def test_runs_are_repeatable() -> None:
    first, second = (judged(out_of_zoo("DropsTheSecondOfFive")) for _ in range(2))
    assert as_json(first) == as_json(second)


# --- Finding filters -----------------------------------------------------------------------------


def test_edition_overrides_the_form() -> None:
    subject = out_of_zoo("FitsBothForms")
    assert (subject.edition, subject.fits) == (V020, (V019, V020))
    assert judged(subject).verdict is Verdict.HOLDS
    older = out_of_zoo("FitsBothForms", edition="v0.19")
    assert older.edition == V019
    assert judged(older).verdict is Verdict.HOLDS


def test_a_manager_class_is_taken_for_a_filter() -> None:
    assert resolve(f"{filters.__name__}:RightV019").profile == "reuse-filter"
    assert resolve(f"{ODD}:DeclaredFilter").profile == "reuse-filter"


@pytest.mark.parametrize(
    ("name", "edition", "message"),
    [
        ("RightV019", "v0.20", "does not fit v0.20: hosts of v0.20 call lookup with 2 arguments"),
        ("RightV020", "v0.19", "does not fit v0.19: hosts of v0.19 call lookup with 1 argument,"),
        ("RightV019", "v0.31", "there is no filter in v0.31"),
        ("NoTouch", None, "has no form of the filter: it has no method touch"),
        ("TakesNothing", None, "cannot be constructed from a backing manager, store_threshold"),
        ("Nowhere", None, "has no 'Nowhere'"),
    ],
)
def test_unusable_filters(name: str, edition: str | None, message: str) -> None:
    with pytest.raises(Unusable, match=message) as raised:
        out_of_zoo(name, edition)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("version", ["0.24.0", "0.33.0", "0.17.0"])
def test_releases_without_a_filter(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", f"vllm=={version}:filter"]) == 2
    captured = capsys.readouterr()
    assert captured.err == (
        f"cachelaw: vllm {version} has no FilterReusedOffloadingManager: use one of "
        "vllm==0.18.0 to 0.21.0 (later it is the store_threshold of CPUOffloadingManager)\n"
    )


@pytest.mark.parametrize(
    ("subject", "profile"), [("vllm==0.20.2:filter", "lru"), ("vllm==0.20.2:lru", "reuse-filter")]
)
def test_a_release_is_not_judged_as_something_else(subject: str, profile: str) -> None:
    with pytest.raises(Unusable, match=f"cannot be judged as {profile}"):
        resolve(subject, profile=profile)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["certify", f"{filters.__name__}:ForgetsWhatItAdmits", "--profile", "reuse-filter"]
    written = tmp_path / "report.json"
    assert main([*arguments, "--budget", "quick", "--json", str(written)]) == 1
    assert "VIOLATED reuse-filter/counts-outlive-chunks" in capsys.readouterr().out
    data = json.loads(written.read_text())
    assert data["profiles"] == ["reuse-filter"]
    assert data["violations"] == ["reuse-filter/counts-outlive-chunks"]
    assert main(["certify", f"{filters.__name__}:RightV020", "--budget", "quick"]) == 0


# --- Traces --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"events": [{"method": "evict"}]}, "'evict' is not a method of a filter"),
        ({"events": [{"method": "touch", "colour": 1}]}, "event 'touch'"),
        ({"edition": "v9"}, "no edition is called 'v9'"),
    ],
)
def test_unreadable_traces(change: dict[str, object], message: str) -> None:
    data = FilterTrace(V019, 2, 1).as_json()
    with pytest.raises(ValueError, match=message):
        filter_trace_from_json({**data, **change})
    del data["store_threshold"]
    with pytest.raises(ValueError, match="no 'store_threshold'"):
        filter_trace_from_json(data)
