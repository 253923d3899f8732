"""The engines: probes, traces, shrinking, verdicts, subjects, and the command line over them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import certify as certifying
from cachelaw.conformance import cost, shrink
from cachelaw.conformance.certify import Budget, Report, certify
from cachelaw.conformance.cli import main
from cachelaw.conformance.finding import (
    Finding,
    JudgedRun,
    Tally,
    lockstep_experiment,
    twin_experiment,
)
from cachelaw.conformance.hosts import host_calls
from cachelaw.conformance.laws import LAWS, laws_for
from cachelaw.conformance.lockstep import Lockstep
from cachelaw.conformance.mutants.zoo import classes, subject_name
from cachelaw.conformance.probes import PROBES, Probe, contract_probes, twin_probes
from cachelaw.conformance.reports.data import as_json
from cachelaw.conformance.subject import DECLARATIONS, Unusable, resolve
from cachelaw.conformance.trace import (
    Event,
    Trace,
    describe,
    event_as_json,
    event_from_json,
    trace_from_json,
)
from cachelaw.conformance.verdict import Verdict, exit_status, overall
from cachelaw.reference.editions import EDITIONS, V019, V022, V024, V027, V033, Edition
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
)
from cachelaw.specs.registry import CLAUSES

RIGHT = Path(__file__).with_name("right.py")
ZOO = {name: subject_name(made) for name, made in classes().items()}
NOTHING = Budget("nothing", programs=0, events=0, twins=0, sizes=cost.SIZES)
LITTLE = Budget("little", programs=4, events=40, twins=1, sizes=cost.SIZES)

REFERENCES = [(edition, profile) for edition in EDITIONS for profile in ("lru", "arc")]


def the_reference(edition: Edition, profile: str) -> Any:
    return resolve(f"{edition.module}:{profile.upper()}", edition=edition.name)


# --- Probes ---


@pytest.mark.parametrize(("edition", "profile"), REFERENCES, ids=str)
def test_a_probe_meets_its_condition_on_the_reference(edition: Edition, profile: str) -> None:
    subject = the_reference(edition, profile)
    excused = "evict/none-only-when-short" if profile == "arc" and edition <= V027 else None
    for number, probe in enumerate((*contract_probes(edition), *PROBES[profile](edition))):
        tally = Tally(Counter())
        found = JudgedRun(subject, probe.trace(edition), tally).live_all()
        where = f"{number}: {probe.clause}"
        assert {finding.clause for finding in found} <= {excused}, where
        assert tally.met[probe.clause] > 0, where


@pytest.mark.parametrize(("edition", "profile"), REFERENCES, ids=str)
def test_a_manager_could_issue_every_event_of_a_probe(edition: Edition, profile: str) -> None:
    subject = the_reference(edition, profile)
    for probe in (*contract_probes(edition), *PROBES[profile](edition)):
        run = Lockstep(subject, probe.trace(edition).setting)
        for event in probe.events:
            assert objection(run.setting, run.state, event) is None, (probe.clause, event)
            run.step(event)


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_probes_cover_every_law_of_the_edition(
    edition: Edition, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before any random program: a right policy has no law left undetermined at any budget.
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 100)
    for profile in ("lru", "arc"):
        report = certify(the_reference(edition, profile), NOTHING, seed=1)
        left = [r.law.clause.name for r in report.results if r.verdict is Verdict.UNDETERMINED]
        assert left == []


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_probes_name_clauses_of_their_edition(edition: Edition) -> None:
    probes = [*contract_probes(edition), *twin_probes(edition)]
    for profile in PROBES:
        probes.extend(PROBES[profile](edition))
    for probe in probes:
        assert probe.clause in LAWS
        assert CLAUSES[probe.clause].holds_in(edition.name), probe.clause


# --- Traces ---


def every_kind_of_event() -> Iterator[Event]:
    yield Lookup(3)
    yield LoadStarts((1, 2), "r1")
    yield LoadStarts((1,), "u1", recorded=False)
    yield LoadEnds((2, 1))
    yield StoreOffered((5, 4), "s2")
    yield StoreSucceeds((5,))
    yield StoreFails((4,))
    yield Touch((), "m1")
    yield RequestEnds("r1")
    yield Reset()
    yield Evict(0)
    yield Evict(2, frozenset({7, 3}))


@pytest.mark.parametrize("event", list(every_kind_of_event()), ids=describe)
def test_an_event_is_read_back_from_json(event: Event) -> None:
    assert event_from_json(json.loads(json.dumps(event_as_json(event)))) == event


@pytest.mark.parametrize("edition", [V019, V024, V033], ids=str)
def test_a_trace_is_read_back_from_json(edition: Edition) -> None:
    for probe in (*contract_probes(edition), *PROBES["arc"](edition), *twin_probes(edition)):
        trace = probe.trace(edition)
        assert trace_from_json(json.loads(json.dumps(trace.as_json()))) == trace
    everything = Trace(V033, 8, tuple(every_kind_of_event()), groups=3)
    assert trace_from_json(json.loads(json.dumps(everything.as_json()))) == everything


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"event": "defragment"}, "'defragment' is not an event; there are lookup, load starts"),
        ({}, "None is not an event|'' is not an event"),
        ({"event": "evict", "count": 2}, "event 'evict': .*count"),
        ({"event": "touch", "keys": [1]}, "event 'touch': .*request"),
    ],
)
def test_what_is_no_event_is_said_in_one_line(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        event_from_json(data)


def test_what_is_no_trace_is_said_in_one_line() -> None:
    whole = Trace(V033, 2, (Lookup(1),)).as_json()
    for name in whole:
        with pytest.raises(ValueError, match=f"the trace has no '{name}'"):
            trace_from_json({key: value for key, value in whole.items() if key != name})
    with pytest.raises(ValueError, match=r"no edition is called 'v9.9'"):
        trace_from_json({**whole, "edition": "v9.9"})


# --- Shrinking ---


REFUSED = "evict/none-only-when-short"


def long_refusal() -> Finding:
    """B01 on the ARC of v0.27, after a good deal that has nothing to do with it."""
    events: tuple[Event, ...] = (
        *(Lookup(9), StoreOffered((1, 2, 3, 4), "u1"), StoreSucceeds((2, 1)), Evict(0)),
        *(StoreSucceeds((3, 4)), LoadStarts((3,), "u2"), LoadEnds((3,)), Touch((8,), "u2")),
        *(Evict(1), Evict(1), Lookup(3), Touch((1,), "u3"), Touch((2,), "u1"), Evict(9)),
        *(Touch((1,), "u1"), Touch((2,), "u1"), Lookup(4), Evict(1), Lookup(1)),
    )
    subject = the_reference(V027, "arc")
    found = lockstep_experiment(subject)(Trace(V027, 4, events))
    return next(finding for finding in found if finding.clause == REFUSED)


def test_a_long_trace_becomes_the_shortest_known() -> None:
    finding = long_refusal()
    experiment = lockstep_experiment(the_reference(V027, "arc"))
    assert len(finding.trace.events) > 15
    reduced = shrink.Shrinker(experiment, finding).reduce()
    assert (reduced.clause, reduced.shortest) == (REFUSED, False)
    kinds = [type(event) for event in reduced.trace.events]
    assert kinds == [StoreOffered, StoreSucceeds, Evict, Touch, Evict]
    assert reduced.trace.capacity == 3
    assert [again.clause for again in experiment(reduced.trace)][:1] == [REFUSED]


def test_the_search_finds_what_is_shorter_and_says_that_nothing_is() -> None:
    subject = resolve(ZOO["WipesCache"])
    experiment = lockstep_experiment(subject)
    done = (StoreSucceeds((2,)), StoreSucceeds((1,)))
    roundabout = Trace(V033, 2, (StoreOffered((1, 2), "u1"), *done, Touch((1,), "u1"), Evict(1)))
    (finding,) = experiment(roundabout)
    short = shrink.shortest(subject, finding, experiment)
    assert [describe(event) for event in short.trace.events] == [
        "u1 offers 1 2",
        "store of 1 2 succeeds",
        "evict 1",
    ]
    assert short.shortest


def test_nothing_is_called_the_shortest_before_the_search_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subject, finding = the_reference(V027, "arc"), long_refusal()
    experiment = lockstep_experiment(subject)
    reduced = shrink.Shrinker(experiment, finding).reduce()
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 50)
    assert shrink.shortest(subject, reduced, experiment) == reduced
    assert not reduced.shortest


def test_nothing_is_called_the_shortest_of_a_subject_that_cannot_be_copied(
    tmp_path: Path,
) -> None:
    source = tmp_path / "uncopied.py"
    source.write_text(
        "from cachelaw.reference import v027\n"
        "class ARC(v027.ARC):\n"
        "    def __init__(self, cache_capacity):\n"
        "        super().__init__(cache_capacity)\n"
        "        self.kept = lambda: None\n"
    )
    subject = resolve(f"{source}:ARC")
    finding = long_refusal()
    reduced = shrink.Shrinker(lockstep_experiment(subject), finding).reduce()
    assert not shrink.shortest(subject, reduced, lockstep_experiment(subject)).shortest


def test_a_finding_of_twins_becomes_short() -> None:
    subject = resolve(ZOO["WalksTwice"])
    clause = "touch/any-iterable"
    long = next(twin_probes(V033)).trace(V033)
    (finding,) = twin_experiment(subject, clause)(long)
    short = shrink.Shrinker(twin_experiment(subject, clause), finding).reduce()
    # Offered and touched; the drain shows that the touch went unheard.
    assert [type(event) for event in short.trace.events] == [StoreOffered, Touch]
    assert not short.shortest


def test_the_search_for_the_shortest_does_not_list_what_it_cannot_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = 0

    def counted(keys: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
        nonlocal listed
        for batch in permutations(keys, size):
            listed += 1
            assert listed <= 2 * shrink.MOST_TRANSITIONS, "this is not going to end"
            yield batch

    monkeypatch.setattr(shrink, "permutations", counted)
    subject = resolve(ZOO["WipesCache"])
    keys = tuple(range(1, 10))
    wide = Trace(V033, 9, (StoreOffered(keys, "u1"), StoreSucceeds(keys), Evict(1)))
    (finding,) = lockstep_experiment(subject)(wide)
    assert shrink.shortest(subject, finding, lockstep_experiment(subject)) == finding


# --- Verdicts ---


H, V, U, N = Verdict.HOLDS, Verdict.VIOLATED, Verdict.UNDETERMINED, Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("verdicts", "whole", "status"),
    [
        ((H,), H, 0),
        ((H, N), H, 0),
        ((H, V, U, N), V, 1),
        ((V, N), V, 1),
        ((H, U, N), U, 3),
        ((U,), U, 3),
        ((N,), U, 3),
        ((), U, 3),
    ],
)
def test_the_whole_is_violated_else_undetermined_else_holds(
    verdicts: tuple[Verdict, ...], whole: Verdict, status: int
) -> None:
    assert overall(verdicts) is whole
    assert overall(reversed(verdicts)) is whole
    assert exit_status(whole) == status


def test_nothing_applicable_is_not_conformance() -> None:
    assert exit_status(Verdict.NOT_APPLICABLE) == 3


# --- Certifying ---


@pytest.mark.parametrize(
    "name",
    [
        f"{RIGHT}:Slru",
        ZOO["NewcomersZero"],
        ZOO["RefusalDecays"],
        "cachelaw.reference.v031:ARC",
    ],
    ids=lambda name: str(name).rpartition(":")[2],
)
def test_the_same_seed_makes_the_same_report(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 200)
    one, two = (as_json(certify(resolve(name), LITTLE, seed=7)) for _ in range(2))
    assert json.dumps(one) == json.dumps(two)


@pytest.mark.parametrize("name", ["InventsStatus", "SnapshotsPinned"])
def test_no_address_of_an_object_is_in_a_report(name: str) -> None:
    report = certify(resolve(ZOO[name]), NOTHING, seed=1)
    assert " at 0x" not in json.dumps(as_json(report))


def test_another_seed_makes_other_programs() -> None:
    subject = resolve(f"{RIGHT}:Fifo")
    one, two = (certify(subject, LITTLE, seed=seed) for seed in (1, 2))
    assert one.calls != two.calls
    assert one.verdict is two.verdict is Verdict.HOLDS


def test_a_report_has_every_law_of_the_claimed_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "MOST_TRANSITIONS", 100)
    for edition, profile in ((V022, "lru"), (V033, "arc")):
        subject = the_reference(edition, profile)
        report = certify(subject, NOTHING, seed=1)
        assert [result.law for result in report.results] == list(laws_for(subject))
        for result in report.results:
            applies = result.law.excuse(subject) is None
            short = profile == "arc" and edition <= V027
            if not short:
                assert result.verdict is (Verdict.HOLDS if applies else Verdict.NOT_APPLICABLE)
            assert bool(result.note) == (result.verdict is Verdict.NOT_APPLICABLE)


def without_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the search nothing that it could run."""
    for name in ("contract_probes", "twin_probes"):
        monkeypatch.setattr(certifying, name, lambda edition: iter(()))
    nothing = dict.fromkeys(PROBES, lambda edition: iter(()))
    monkeypatch.setattr(certifying, "PROBES", nothing)


def test_a_law_that_was_never_put_to_the_test_is_undetermined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_probes(monkeypatch)
    monkeypatch.setattr("cachelaw.conformance.processes.judge", lambda *arguments: ())
    nothing = replace(NOTHING, sizes=())
    report = certify(the_reference(V033, "arc"), nothing, seed=1)
    found = {result.verdict for result in report.results}
    assert found == {Verdict.UNDETERMINED, Verdict.NOT_APPLICABLE}
    assert report.verdict is Verdict.UNDETERMINED
    assert exit_status(report.verdict) == 3
    open_laws = [r for r in report.results if r.verdict is Verdict.UNDETERMINED]
    assert {result.note for result in open_laws} == {"its condition was never met in this run"}


def test_one_law_left_open_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_but_one(edition: Edition) -> Iterator[Probe]:
        clause = "lru/equal-rank-by-key-order"
        yield from (p for p in PROBES["lru"](edition) if p.groups == 1 and p.clause != clause)

    monkeypatch.setattr(certifying, "PROBES", {**PROBES, "lru": all_but_one})
    monkeypatch.setattr(
        certifying,
        "contract_probes",
        lambda edition: (p for p in contract_probes(edition) if p.groups == 1),
    )
    report = certify(the_reference(V033, "lru"), NOTHING, seed=1)
    left = {r.law.clause.name for r in report.results if r.verdict is Verdict.UNDETERMINED}
    assert left == {"lru/equal-rank-by-key-order", "lru/finish-in-prefix-order"}
    assert report.verdict is Verdict.UNDETERMINED


def test_a_violation_outweighs_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certifying, "twin_probes", lambda edition: iter(()))
    report = certify(resolve(ZOO["WipesCache"]), NOTHING, seed=1)
    assert Verdict.UNDETERMINED in {result.verdict for result in report.results}
    assert report.verdict is Verdict.VIOLATED


def certified_quietly(source: Path, name: str) -> Report:
    return certify(resolve(f"{source}:{name}"), LITTLE, seed=1)


@pytest.mark.parametrize(
    "body",
    [
        "        assert cache_capacity > 1",
        "        assert cache_capacity & (cache_capacity - 1) == 0",
    ],
    ids=["two or more", "powers of two"],
)
def test_a_subject_that_some_capacity_cannot_construct_is_unusable(
    body: str, tmp_path: Path
) -> None:
    source = tmp_path / "choosy.py"
    source.write_text(
        f"import sys\nsys.path.insert(0, {str(RIGHT.parent)!r})\nfrom right import Fifo\n"
        f"class Choosy(Fifo):\n    def __init__(self, cache_capacity):\n{body}\n"
        "        super().__init__(cache_capacity)\n"
    )
    with pytest.raises(Unusable, match="cannot be constructed"):
        certified_quietly(source, "Choosy")


def test_budgets_grow() -> None:
    quick, standard, deep = (certifying.BUDGETS[name] for name in ("quick", "standard", "deep"))
    for one, next_one in ((quick, standard), (standard, deep)):
        assert one.programs < next_one.programs
        assert one.twins < next_one.twins
    assert {name: budget.name for name, budget in certifying.BUDGETS.items()} == {
        name: name for name in certifying.BUDGETS
    }


# --- Subjects ---


POLICY = """\
class Policy:
    def __init__(self, cache_capacity): pass
    def get(self, key): pass
    def insert(self, key, chunk): pass
    def remove(self, key): pass
    def touch(self, keys): pass
    def evict(self, n, protected): pass
"""
CLEAR = "    def clear(self): pass\n"
MARKS = "    def mark_evictable(self, key): pass\n    def mark_non_evictable(self, key): pass\n"
HOOKS = (
    "    def on_store_miss(self, keys, ctx): pass\n"
    "    def on_request_finished(self, groups, inserted, reused, ctx): pass\n"
)
ACCESS = "    def on_request_access(self, keys, ctx): pass\n"


def with_touch_context(text: str) -> str:
    return text.replace("touch(self, keys)", "touch(self, keys, ctx)")


def with_insert_context(text: str) -> str:
    return text.replace("insert(self, key, chunk)", "insert(self, key, chunk, ctx)")


DETECTED = {
    "without clear": (POLICY, "v0.19 v0.20"),
    "with clear": (POLICY + CLEAR, "v0.19 v0.20 v0.22"),
    "with marks": (POLICY + CLEAR + MARKS, "v0.19 v0.20 v0.22 v0.24"),
    "marks without clear": (POLICY + MARKS, "v0.19 v0.20"),
    "touch with context": (
        with_touch_context(POLICY + CLEAR + MARKS),
        "v0.26 v0.27 v0.30",
    ),
    "with request hooks": (
        with_touch_context(POLICY + CLEAR + MARKS + HOOKS),
        "v0.26 v0.27 v0.30 v0.31",
    ),
    "insert with context": (
        with_insert_context(with_touch_context(POLICY + CLEAR + MARKS + HOOKS + ACCESS)),
        "v0.33",
    ),
    "contexts that may be left out": (
        with_insert_context(with_touch_context(POLICY + CLEAR + MARKS + HOOKS + ACCESS)).replace(
            "ctx)", "ctx=None)"
        ),
        "v0.19 v0.20 v0.22 v0.24 v0.26 v0.27 v0.30 v0.31 v0.33",
    ),
}


@pytest.mark.parametrize("case", DETECTED)
def test_the_newest_edition_that_fits_is_taken(case: str, tmp_path: Path) -> None:
    text, fits = DETECTED[case]
    source = tmp_path / "policy.py"
    source.write_text(text)
    subject = resolve(f"{source}:Policy")
    assert " ".join(edition.name for edition in subject.fits) == fits
    assert subject.edition == subject.fits[-1]
    assert subject.profile == "contract"
    assert subject.status(5).ref_cnt == -1
    slot = "chunk_id" if subject.edition.says_chunk else "block_id"
    assert getattr(subject.status(5), slot) == 5
    oldest = resolve(f"{source}:Policy", edition=fits.split()[0])
    assert oldest.edition == oldest.fits[0]


def test_a_host_calls_more_from_edition_to_edition() -> None:
    calls = [set(host_calls(edition)) for edition in EDITIONS]
    assert all(older <= newer for older, newer in pairwise(calls))


UNUSABLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "no colon": ("cachelaw.reference", {}, "is no subject: write package.module:Class"),
    "no class named": ("cachelaw.reference:", {}, "is no subject"),
    "no such module": ("no.such.module:Policy", {}, "there is no module no.such.module"),
    "no such file": ("no/such/file.py:Policy", {}, "there is no file no/such/file.py"),
    "no such class": ("{file}:Police", {}, "has no 'Police'; it has .*Policy"),
    "abstract": (
        "cachelaw.reference.policy:CachePolicyV033",
        {},
        "cannot be constructed from .*: TypeError: Can't instantiate abstract class",
    ),
    "constructor raises": ("{file}:Raises", {}, "cannot be constructed .*: OSError: no buffer"),
    "constructor takes nothing": ("{file}:TakesNothing", {}, "cannot be constructed .*TypeError"),
    "not callable": ("{file}:CONSTANT", {}, "neither a class nor a factory"),
    "wrong arity": (
        "{file}:WrongArity",
        {},
        "fits no edition: hosts of v0.19 call evict with 2 arguments, which it does not take",
    ),
    "a method missing": ("{file}:Bare", {}, "fits no edition: it has no method get"),
    "unknown profile": ("{file}:Policy", {"profile": "mru"}, "no profile 'mru'; there are"),
    "unknown profile declared": ("{file}:DeclaresMru", {}, "no profile 'mru'; there are"),
    "unknown edition": ("{file}:Policy", {"edition": "v9.9"}, "no edition is called 'v9.9'"),
    "unknown edition declared": ("{file}:DeclaresV9", {}, "no edition is called 'v9.9'"),
    "edition that does not fit": (
        "{file}:Policy",
        {"edition": "v0.33"},
        "does not fit v0.33: hosts of v0.33 call insert with 3 arguments|does not fit v0.33: ",
    ),
    "declarations that are no dict": ("{file}:SaysWords", {}, "must be a dict of declarations"),
    "unknown declaration": ("{file}:SaysFast", {}, "declares 'fast'; there are"),
    "import fails": ("{broken}:Policy", {}, "importing .* raised RuntimeError: no luck"),
    "import of what is missing": ("{needy}:Policy", {}, "imports no_such_package, which is not"),
    "syntax error": ("{garbled}:Policy", {}, "importing .* raised SyntaxError"),
    "no release": ("vllm==:arc", {}, "vllm|version"),
    "no policy of a release": ("vllm==0.30.0:mru", {}, "say which policy of the release"),
    "a release without policies": ("vllm==0.11.2:arc", {}, "0.11.2"),
}

SUBJECTS = (
    POLICY
    + CLEAR
    + """
class Raises(Policy):
    def __init__(self, cache_capacity):
        raise OSError("no buffer\\nin two lines")

class TakesNothing(Policy):
    def __init__(self): pass

class WrongArity(Policy):
    def evict(self, n): pass

class Bare:
    def __init__(self, cache_capacity): pass
    def evict(self, n, protected): pass

class DeclaresMru(Policy):
    cachelaw = {"profile": "mru"}

class DeclaresV9(Policy):
    cachelaw = {"edition": "v9.9"}

class SaysWords(Policy):
    cachelaw = "lru"

class SaysFast(Policy):
    cachelaw = {"fast": True}

CONSTANT = 3
"""
)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "file": SUBJECTS,
        "broken": "raise RuntimeError('no luck')\n",
        "needy": "import no_such_package\n",
        "garbled": "class Policy(:\n",
    }
    made = {name: tmp_path / f"{name}.py" for name in texts}
    for name, text in texts.items():
        made[name].write_text(text)
    return made


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_subject_is_said_in_one_line(case: str, places: dict[str, Path]) -> None:
    name, said, message = UNUSABLE[case]
    with pytest.raises(Unusable, match=message) as caught:
        resolve(name.format(**places), **said)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_subject_ends_with_status_2(
    case: str, places: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    name, said, _ = UNUSABLE[case]
    if "profile" in said:
        return  # argparse knows the profiles; see the usage errors below
    options = [part for option, value in said.items() for part in (f"--{option}", value)]
    status = main(["certify", name.format(**places), "--budget", "quick", *options])
    output = capsys.readouterr()
    assert status == 2
    assert output.out == ""
    assert output.err.startswith("cachelaw: ")
    assert output.err.count("\n") == 1


# --- The command line ---


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make lines wide."""
    monkeypatch.setenv("COLUMNS", "200")


def test_certify_ends_with_status_0_when_a_policy_conforms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["certify", f"{RIGHT}:Fifo", "--budget", "quick"]) == 0
    output = capsys.readouterr().out
    assert "edition v0.33 · profile contract" in output
    assert "right.py:Fifo conforms" in output
    assert "VIOLATED" not in output


def test_certify_ends_with_status_1_and_shows_the_trace(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "cachelaw.reference.v027:ARC"
    assert main(["certify", name, "--budget", "quick", "--seed", "3"]) == 1
    output = capsys.readouterr().out
    assert "profile contract, arc" in output
    assert "VIOLATED evict/none-only-when-short" in output
    assert "expected: 1 of the idle, unprotected {" in output
    assert "actual:   None" in output
    assert f"{name} does not conform" in output
    assert "cachelaw clauses evict/none-only-when-short" in output
    assert "seed 3" in output


def test_certify_takes_declarations_profile_and_edition(
    capsys: pytest.CaptureFixture[str],
) -> None:
    certify_arc = ["certify", "cachelaw.reference.v027:ARC", "--budget", "quick"]
    assert main([*certify_arc, "--declare", "may_refuse"]) == 0
    assert "the subject declares that it may refuse" in " ".join(capsys.readouterr().out.split())
    as_contract = ["--profile", "contract", "--declare", "may_refuse", "--edition", "0.26"]
    assert main([*certify_arc, *as_contract]) == 0
    assert "edition v0.26 · profile contract" in capsys.readouterr().out


def test_certify_ends_with_status_3_when_a_law_is_undetermined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It ends its process once and never again, so that nothing is known of that.
    source = tmp_path / "once.py"
    source.write_text(
        "import os, pathlib\n"
        "from tests.conformance.right import Fifo\n"
        f"MARK = pathlib.Path({str(tmp_path / 'mark')!r})\n"
        "class Once(Fifo):\n"
        "    def evict(self, n, protected):\n"
        "        if not MARK.exists():\n"
        "            MARK.touch()\n"
        "            os._exit(3)\n"
        "        return super().evict(n, protected)\n"
    )
    assert main(["certify", f"{source}:Once", "--budget", "quick"]) == 3
    output = " ".join(capsys.readouterr().out.split())
    assert "undetermined: call/valid-call-returns (the subject's process exited" in output
    assert "in a run that did not end so again" in output
    assert "Once undetermined" in output


def test_the_json_says_what_the_text_says(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    name = "cachelaw.reference.v027:ARC"
    assert main(["certify", name, "--budget", "quick", "--json", str(path)]) == 1
    data = json.loads(path.read_text())
    assert data["subject"] == name
    assert data["profiles"] == ["contract", "arc"]
    assert (data["edition"], data["fits"]) == ("v0.27", ["v0.26", "v0.27", "v0.30"])
    assert data["declared"] == dict.fromkeys(DECLARATIONS, False) | {"specification": True}
    assert (data["budget"], data["seed"]) == ("quick", 1)
    assert (data["verdict"], data["status"]) == ("violated", 1)
    assert data["violations"] == [REFUSED]
    laws = {law["clause"]: law for law in data["laws"]}
    assert list(laws) == [law.clause.name for law in laws_for(resolve(name))]
    assert {law["verdict"] for law in laws.values()} == {"holds", "violated", "not applicable"}
    assert all(law["met"] > 0 for law in laws.values() if law["verdict"] == "holds")
    assert laws["arc/miss-adapts"]["note"] == "no clause of edition v0.27"

    shown = laws[REFUSED]["counterexample"]
    trace = trace_from_json(shown["trace"])
    assert len(shown["rows"]) == len(trace.events)
    assert [row["event"] for row in shown["rows"]] == [describe(e) for e in trace.events]
    found = lockstep_experiment(resolve(name))(trace)
    assert (found[0].clause, found[0].expected) == (REFUSED, shown["expected"])


def test_a_report_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{RIGHT}:Fifo"
    missing = tmp_path / "nowhere" / "report.json"
    assert main(["certify", name, "--budget", "quick", "--json", str(missing)]) == 2
    assert capsys.readouterr().err == f"cachelaw: --json: there is no folder {missing.parent}\n"
    assert main(["certify", name, "--budget", "quick", "--json", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"cachelaw: --json: {tmp_path} cannot be written: ")
    assert error.count("\n") == 1


def test_two_reports_in_one_file_are_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    named = ["certify", f"{RIGHT}:Fifo", "--json", "same.out", "--html", f"{tmp_path}/same.out"]
    assert main(named) == 2
    error = capsys.readouterr().err
    assert error == f"cachelaw: --json and --html name the same file: {tmp_path}/same.out\n"
    assert not (tmp_path / "same.out").exists()


def test_editions_that_there_are_not_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", f"{RIGHT}:Fifo", "--editions", "v0.33,foo"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("cachelaw: --editions: no edition is called 'foo'; there are v0.19, ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "soon"])
def test_limits_are_above_0(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["certify", "a:B", f"--time-limit={given}"])
    assert caught.value.code == 2
    assert f"'{given}' is not a number above 0" in capsys.readouterr().err


def test_clauses_lists_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses"]) == 0
    assert capsys.readouterr().out.split() == list(CLAUSES)


@pytest.mark.parametrize(
    "name", ["evict/distinct", "lru/insert-is-use", "memory/bounded-by-residents"]
)
def test_clauses_explains_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses", name]) == 0
    output = capsys.readouterr().out
    clause = CLAUSES[name]
    assert output.splitlines()[0] == name
    assert "".join(clause.statement.split()) in "".join(output.split())
    assert clause.where in output
    judged = f"judged by {LAWS[name].kind}" if name in LAWS else "none: "
    assert f"law:       {judged}" in output


def test_clauses_helps_with_a_name_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clauses", "distinct"]) == 2
    error = capsys.readouterr().err
    assert error == "cachelaw: there is no clause 'distinct'; did you mean evict/distinct?\n"
    assert main(["clauses", "evict/distnct"]) == 2
    assert "did you mean evict/distinct" in capsys.readouterr().err
    assert main(["clauses", "no/such"]) == 2
    assert "cachelaw clauses lists them" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["certify"],
        ["certify", "a:B", "--profile", "mru"],
        ["certify", "a:B", "--budget", "huge"],
        ["certify", "a:B", "--seed", "x"],
        ["certify", "a:B", "--declare", "fast"],
        ["clauses", "a", "b"],
        ["defragment"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: cachelaw" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["certify", "--help"], ["--version"]])
def test_help_and_version_end_with_status_0(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert "cachelaw" in capsys.readouterr().out
