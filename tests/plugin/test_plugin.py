"""The pytest plugin and the base class: what becomes a test, and which outcome it has.

Most runs have a report put in place of the certification, and count how often one was asked for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.reports.made import MEASURED, wrong

from cachelaw.conformance import testing
from cachelaw.conformance.certify import BUDGETS, Budget
from cachelaw.conformance.laws import laws_of
from cachelaw.conformance.subject import PROFILES, Unusable, Wanted

pytest_plugins = ["pytester"]

BROKEN = "evict/exact-count"
OPEN = "memory/bounded-by-residents"
EXCUSED = "cost/linear"
HOLDS = "evict/distinct"

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")

CLASS = """
from cachelaw.conformance.testing import PolicyConformance

class TestMine(PolicyConformance):
    subject = "my.module:Policy"
"""


def report() -> dict[str, Any]:
    """Return a report in which every verdict occurs."""
    data = wrong()
    assert [law["clause"] for law in data["laws"] if law["verdict"] == "violated"] == [BROKEN]
    known = {law["clause"]: law for law in data["laws"]}
    for law in known.values():  # so small a search leaves some open
        if law["verdict"] == "undetermined":
            law["verdict"] = "holds"
    for clause, verdict in ((OPEN, "undetermined"), (EXCUSED, "not applicable")):
        assert clause in MEASURED
        known[clause] = {
            "clause": clause,
            "verdict": verdict,
            "note": "its condition was never met in this run",
        }
    data["laws"] = list(known.values())
    # A note that the law of cost has, and one that says nothing of searching on.
    known[EXCUSED]["note"] = "it never hashed a key"
    return data


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Wanted, str]]:
    """Put the report in place of certification; return what is asked for."""
    calls: list[tuple[Wanted, str]] = []

    def certified(wanted: Wanted, budget: Budget, *rest: Any, **more: Any) -> dict[str, Any]:
        calls.append((wanted, budget.name))
        return report()

    monkeypatch.setattr(testing, "certified", certified)
    return calls


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*OPTIONS, *options)


CONTRACT = tuple(law.clause.name for law in laws_of("contract"))


# --- What pytest imports ---


def test_at_start_up_the_plugin_imports_nothing_of_cachelaw(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_other():\n"
        "    loaded = {name for name in sys.modules if name.startswith('cachelaw')}\n"
        "    assert 'cachelaw.conformance.pytest_plugin' in loaded\n"
        "    assert loaded - {'cachelaw.conformance.pytest_plugin'} <= "
        "{'cachelaw', 'cachelaw.conformance'}\n"
        "    assert not {'rich', 'jinja2', 'requests', 'remotezip'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *OPTIONS, "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_options_name_what_there_is(pytester: pytest.Pytester) -> None:
    said = run(pytester, "--help").stdout.str()
    assert f"{{{','.join(BUDGETS)}}}" in said
    for profile in PROFILES:
        assert profile in said


# --- Test classes ---


def test_each_law_is_a_test_and_its_verdict_the_outcome(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    pytester.makepyfile(CLASS)
    done = run(pytester, "-v", "-rs")
    done.assert_outcomes(passed=len(CONTRACT) - 4, failed=2, skipped=2)
    assert asked == [(Wanted("my.module:Policy"), "quick")]
    for clause, outcome in ((HOLDS, "PASSED"), (BROKEN, "FAILED"), (OPEN, "FAILED")):
        done.stdout.fnmatch_lines_random(f"*::TestMine::test_clause[[]{clause}[]] {outcome}*")
    done.stdout.fnmatch_lines_random(f"*[[]{EXCUSED}[]] SKIPPED*")
    text = done.stdout.str()
    # The counterexample, and nothing of how pytest came to it.
    assert f"VIOLATED {BROKEN} by " in text and "expected: " in text and "actual: " in text
    assert "once more: cachelaw replay " in text and f"cachelaw clauses {BROKEN}" in text
    assert "testing.py:" not in text.partition("short test summary")[0]
    assert "WipesCache: its condition was never met" in text
    assert "--budget standard or deep searches further" in text


def test_expected_failures_and_stale_ones(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    pytester.makepyfile(
        f"{CLASS}    expected_failures = {{{BROKEN!r}: 'bug 7', {HOLDS!r}: '', "
        f"{OPEN!r}: '', {EXCUSED!r}: ''}}\n"
    )
    done = run(pytester, "-rxf")
    done.assert_outcomes(passed=len(CONTRACT) - 5, failed=3, xfailed=1, skipped=1)
    done.stdout.fnmatch_lines_random(f"XFAIL *[[]{BROKEN}[]] - bug 7")
    done.stdout.fnmatch_lines_random(f"stale: {HOLDS} holds; take it out of *")
    done.stdout.fnmatch_lines_random(f"stale: {EXCUSED} is not applicable; *")
    done.stdout.fnmatch_lines_random(f"expected to fail, but undetermined: {OPEN}: *")
    # Names alone do, without reasons.
    pytester.makepyfile(f"{CLASS}    expected_failures = {{{BROKEN!r}}}\n")
    done = run(pytester, "-rx", "-k", BROKEN)
    done.assert_outcomes(xfailed=1, deselected=len(CONTRACT) - 1)
    done.stdout.fnmatch_lines(f"XFAIL *[[]{BROKEN}[]] - violated, as expected")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("subject = None", "set `subject` to the name of a subject, or `policy` to a class"),
        ("profile = 'mru'", "there is no profile 'mru'; there are contract, lru"),
        ("budget = 'huge'", "there is no budget 'huge'; there are quick"),
        ("expected_failures = {'evict/exact': ''}", "did you mean evict/exact-count?"),
        ("expected_failures = {'arc/ghosts': ''}", "there is no clause"),
        (
            f"expected_failures = {{{laws_of('lru')[-1].clause.name!r}: ''}}",
            "is no clause of profile contract",
        ),
        ("policy = lambda capacity: 0\n    subject = None", "must stand at the top level"),
    ],
)
def test_what_a_class_asks_for_in_vain_is_one_line(
    body: str, says: str, pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    pytester.makepyfile(f"{CLASS}    {body}\n")
    done = run(pytester)
    done.assert_outcomes(errors=1)
    text = done.stdout.str()
    assert "TestMine: " in text and says in text
    assert "Traceback" not in text and "testing.py" not in text
    assert asked == []


def test_an_unusable_subject_fails_every_test_with_the_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def certified(*given: Any, **more: Any) -> dict[str, Any]:
        raise Unusable("there is no module my.module")

    monkeypatch.setattr(testing, "certified", certified)
    pytester.makepyfile(CLASS)
    done = run(pytester, "-k", HOLDS)
    done.assert_outcomes(failed=1, deselected=len(CONTRACT) - 1)
    done.stdout.fnmatch_lines("there is no module my.module")


def test_a_profile_that_only_the_subject_knows_must_be_named(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = report()
    data["profiles"] = ["contract", "lru"]
    data["laws"].append({"clause": "lru/x", "verdict": "holds"})
    monkeypatch.setattr(testing, "certified", lambda *given, **more: data)
    pytester.makepyfile(CLASS)
    done = run(pytester)
    done.assert_outcomes(failed=len(CONTRACT))
    done.stdout.fnmatch_lines("*claims the profile lru, and its tests were *")


def test_classes_ask_for_what_they_say(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    pytester.makepyfile(
        f"""{CLASS}
    edition = "v0.24"
    host = "vllm==0.24.0"
    parameters = {{"size": 3}}
    declared = ["may_refuse"]
    budget = "standard"

class Here:
    cachelaw = {{"profile": "contract"}}

class TestHere(PolicyConformance):
    policy = Here

class TestLru(TestMine):
    profile = "lru"

    def test_something_else(self):
        pass
"""
    )
    done = run(pytester, "-k", f"{HOLDS} or else or (TestLru and lru)")
    mine, here, lru = (wanted for wanted, _ in asked)
    assert mine == Wanted(
        *("my.module:Policy", None, "v0.24", ("may_refuse",), "vllm==0.24.0", {"size": 3})
    )
    assert [budget for _, budget in asked] == ["standard", "quick", "standard"]
    # Another process finds the class by its file if not by its module.
    assert here.name in (
        f"{pytester.path / 'test_classes_ask_for_what_they_say.py'}:Here",
        "test_classes_ask_for_what_they_say:Here",
    )
    assert lru.profile == "lru"
    assert "test_something_else" not in done.stdout.str()  # it passes
    asked.clear()
    run(pytester, "--cachelaw-budget", "deep", "-k", HOLDS)
    assert {budget for _, budget in asked} == {"deep"}


# --- Subjects on the command line ---


def test_a_subject_on_the_command_line(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    pytester.makepyfile("def test_other(): pass")
    done = run(pytester, "-v", "--cachelaw", "my.module:Policy")
    done.assert_outcomes(passed=len(CONTRACT) - 4, failed=2, skipped=2)
    done.stdout.fnmatch_lines(f"my.module:Policy::{HOLDS} PASSED*")
    done.stdout.fnmatch_lines(f"*VIOLATED {BROKEN} by *")
    assert asked == [(Wanted("my.module:Policy"), "quick")]
    assert "Traceback" not in done.stdout.str()
    # Beside tests, if these are named too.
    done = run(pytester, "--cachelaw", "my.module:Policy", "-k", f"{HOLDS} or test_other", ".")
    done.assert_outcomes(passed=2, deselected=len(CONTRACT) - 1)


def test_options_of_the_command_line(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    expected = pytester.path / "expected"
    expected.write_text(f"{BROKEN}  # bug 7\n")
    said = {"profile": "contract", "edition": "v0.24", "budget": "standard"}
    options = [f"--cachelaw-{name}={value}" for name, value in said.items()]
    options += ["--cachelaw-host=vllm==0.24.0", f"--cachelaw-expect={expected}"]
    done = run(pytester, "-rx", "--cachelaw", "a:A", "--cachelaw", "b:B", *options)
    done.assert_outcomes(passed=2 * (len(CONTRACT) - 4), failed=2, skipped=4, xfailed=2)
    done.stdout.fnmatch_lines(f"XFAIL a:A::{BROKEN} - bug 7")
    assert asked == [
        (Wanted(name, "contract", "v0.24", (), "vllm==0.24.0"), "standard")
        for name in ("a:A", "b:B")
    ]


def test_the_tests_of_a_release_are_those_of_its_policy(
    pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    for name, profile in (("arc", "arc"), ("filter", "reuse-filter")):
        done = run(pytester, "--collect-only", "-q", "--cachelaw", f"vllm==0.19.1:{name}")
        listed = [line for line in done.outlines if line.startswith("vllm==")]
        assert listed == [f"vllm==0.19.1:{name}::{law.clause.name}" for law in laws_of(profile)]
    assert asked == []  # nothing is run to collect


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cachelaw-profile=mru"], "cachelaw: there is no profile 'mru'"),
        (["--cachelaw-expect=absent"], "cachelaw: --expect: absent cannot be read"),
        (["--cachelaw-budget=huge"], "invalid choice: 'huge'"),
    ],
)
def test_wrong_usage_is_one_line(
    options: list[str], says: str, pytester: pytest.Pytester, asked: list[tuple[Wanted, str]]
) -> None:
    done = run(pytester, "--cachelaw", "a:A", *options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert says in done.stderr.str() and "Traceback" not in done.stderr.str()


# --- Several workers ---


def test_workers_share_one_certification(pytester: pytest.Pytester) -> None:
    stored = pytester.path / "report.json"
    stored.write_text(json.dumps(report()))
    pytester.makeconftest(
        f"""
import json, os
from pathlib import Path
from cachelaw.conformance import testing

def certified(wanted, *rest, **more):
    with open({str(pytester.path / "asked")!r}, "a") as log:
        print(wanted.name, file=log)
    return json.loads(Path({str(stored)!r}).read_text())

testing.certified = certified

def pytest_runtest_logreport(report):
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and report.when == "call":
        with open({str(pytester.path / "ran")!r}, "a") as log:
            print(worker, report.nodeid, file=log)
"""
    )
    pytester.makepyfile(CLASS)
    done = pytester.runpytest_subprocess(*OPTIONS, "-n", "2", "--cachelaw", "a:A", ".")
    done.assert_outcomes(passed=2 * (len(CONTRACT) - 4), failed=4, skipped=4)
    assert sorted((pytester.path / "asked").read_text().split()) == ["a:A", "my.module:Policy"]
    workers: dict[str, set[str]] = {}
    for line in (pytester.path / "ran").read_text().splitlines():
        worker, _, node = line.partition(" ")
        workers.setdefault("a:A" if node.startswith("a:A") else "class", set()).add(worker)
    assert set(workers) == {"a:A", "class"}
    assert set().union(*workers.values()) == {"gw0", "gw1"}


def test_the_tests_of_a_subject_are_a_group(pytester: pytest.Pytester) -> None:
    """Which `--dist loadgroup` gives to one worker, where xdist and pytest get on together."""
    pytester.makepyfile(CLASS)
    groups: dict[str, set[Any]] = {}

    class Collected:
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            for item in session.items:
                mark = item.get_closest_marker("xdist_group")
                assert item.parent is not None
                groups.setdefault(item.parent.name, set()).add(mark and mark.args)

    for plugin in ((), ("-p", "no:xdist")):
        groups.clear()
        options = (*OPTIONS, *plugin, "--collect-only", "--cachelaw", "a:A", ".")
        pytester.inline_run(*options, plugins=[Collected()])
        sizes = {name: len(found) for name, found in groups.items()}
        assert sizes == {"a:A": 1, "TestMine": 1}
        if plugin:
            assert groups["a:A"] == groups["TestMine"] == {None}
        else:
            assert not groups["a:A"] & groups["TestMine"] and None not in groups["a:A"]


# --- In earnest ---


def test_real_policies_are_certified(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CACHELAW_STATE", str(tmp_path))
    pytester.makepyfile(
        """
from cachelaw.conformance.testing import PolicyConformance
from cachelaw.reference import LRU

class DropsProtection(LRU):
    def evict(self, n, protected):
        return super().evict(n, set())

class TestWrong(PolicyConformance):
    policy = DropsProtection
    profile = "contract"
"""
    )
    done = pytester.runpytest_subprocess(*OPTIONS, "-p", "no:xdist", "-rfs", "-k", "evict/")
    assert done.parseoutcomes()["failed"] == 1
    done.stdout.fnmatch_lines("VIOLATED evict/protected-honoured by *:DropsProtection, edition *")
    done.stdout.fnmatch_lines("reproduction: python *")
    shown = next(line for line in done.outlines if line.startswith("reproduction: python "))
    again = subprocess.run(
        [sys.executable, shown.removeprefix("reproduction: python ")],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=pytester.path,
    )
    assert again.returncode == 1, again.stdout + again.stderr
