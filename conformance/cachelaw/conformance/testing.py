"""Certification inside pytest: a base class for tests, and what the plugin shares with it.

One law is one test, and its verdict the outcome: violated or undetermined fails, not applicable is
skipped, an expected violation is an expected failure. A subject is certified once in a run, when
the first of its tests runs; with xdist the first worker to need it does so for all.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from cachelaw.conformance import store
from cachelaw.conformance.certify import BUDGETS
from cachelaw.conformance.expect import unknown_clause
from cachelaw.conformance.laws import laws_of
from cachelaw.conformance.plain import plain
from cachelaw.conformance.reports import shown
from cachelaw.conformance.subject import PROFILES, Unusable, Wanted
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trial import certified
from cachelaw.conformance.verdict import Verdict

SHARED = "cachelaw_shared"
"""Under this name a worker of xdist is told of the folder that all workers share."""

_Outcome = dict[str, Any]
_outcomes = pytest.StashKey[dict[str, _Outcome]]()


class PolicyConformance:
    """Subclass this in your tests; each law becomes a test `test_clause[NAME]`.

        class TestMine(PolicyConformance):
            subject = "my.module:Policy"
            profile = "lru"

    Attributes:
        subject: what to certify, as `cachelaw certify` takes it; or else
        policy: a class, or a factory, at the top level of this or an importable module.
        profile: what to judge it as; None takes what a release or `policy` says, else `contract`.
        edition: the contract to judge it by; None takes the newest that fits.
        host: a release, such as `vllm==0.30.0`, whose modules the subject imports.
        parameters: what its constructor is given besides the capacity.
        declared: what is said of it that its class does not say: `randomized`, `may_refuse`,
            `specification`.
        budget: `quick`, `standard` or `deep`; the option --cachelaw-budget goes before it.
        seed: what all random choices come from.
        expected_failures: clauses that it is known to break, each with the reason; or their names.
    """

    subject: ClassVar[str | None] = None
    policy: ClassVar[Callable[..., Any] | None] = None
    profile: ClassVar[str | None] = None
    edition: ClassVar[str | None] = None
    host: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Any]] = {}
    declared: ClassVar[Iterable[str]] = ()
    budget: ClassVar[str] = "quick"
    seed: ClassVar[int] = 1
    expected_failures: ClassVar[Mapping[str, str] | Collection[str]] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of each law; pytest calls this while it collects."""
        if "clause" not in metafunc.fixturenames:
            return
        try:
            trial = _trial_of(type(self), metafunc.config)
        except Unusable as error:
            raise pytest.Collector.CollectError(f"{type(self).__name__}: {error}") from None
        marks = group_marks(trial, metafunc.config)
        metafunc.parametrize(
            "clause", [pytest.param(name, marks=marks, id=name) for name in trial.clauses]
        )

    def test_clause(self, clause: str, pytestconfig: pytest.Config) -> None:
        """Report the verdict on one law."""
        report_verdict(_trial_of(type(self), pytestconfig), clause, pytestconfig)


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be certified, and what is expected of it.

    Attributes:
        wanted: the subject.
        profile: by which profile tests were collected.
        budget: how much to search, by name.
        seed: what all random choices come from.
        expected: by clause, why it is expected to be violated.
    """

    wanted: Wanted
    profile: str
    budget: str = "quick"
    seed: int = 1
    expected: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise Unusable(f"there is no profile {self.profile!r}; there are {', '.join(PROFILES)}")
        if self.budget not in BUDGETS:
            raise Unusable(f"there is no budget {self.budget!r}; there are {', '.join(BUDGETS)}")
        for name in self.expected:
            if trouble := unknown_clause(name):
                raise Unusable(f"expected failures: {trouble}")
            if name not in self.clauses:
                raise Unusable(f"expected failures: {name} is no clause of profile {self.profile}")

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that are judged, in the order of the registry."""
        return tuple(law.clause.name for law in laws_of(self.profile))

    @property
    def key(self) -> str:
        """What tells its certification from others'."""
        said = [self.wanted.as_json(), self.budget, self.seed]
        return hashlib.sha256(json.dumps(said, sort_keys=True, default=repr).encode()).hexdigest()


def profile_of(name: str, policy: Any = None) -> str:
    """Return the profile that a subject is known to have before it is imported."""
    if name.startswith("vllm=="):
        said = name.rpartition(":")[2]
        return "reuse-filter" if said == "filter" else said if said in PROFILES else "contract"
    declared = getattr(policy, "cachelaw", None)
    return str(declared.get("profile", "contract")) if isinstance(declared, dict) else "contract"


def group_marks(trial: Trial, config: pytest.Config) -> list[pytest.MarkDecorator]:
    """Return marks by which `--dist loadgroup` gives all tests of a subject to one worker."""
    if not config.pluginmanager.hasplugin("xdist"):
        return []
    return [pytest.mark.xdist_group(f"cachelaw-{trial.key[:8]}")]


def report_verdict(trial: Trial, clause: str, config: pytest.Config) -> None:
    """End a test with the outcome that the verdict on a law means.

    Args:
        trial: the subject, which is certified if it is not yet.
        clause: the law.
        config: of this run of pytest.
    """
    outcome = _outcome(trial, config)
    if "unusable" in outcome:
        pytest.fail(outcome["unusable"], pytrace=False)
    data = outcome["report"]
    law = next((law for law in data["laws"] if law["clause"] == clause), None)
    if law is None or len(data["laws"]) != len(trial.clauses):
        profile = data["profiles"][-1]
        pytest.fail(
            f"{data['subject']} claims the profile {profile}, and its tests were collected for "
            f"{trial.profile}: name the profile in the attribute `profile` or with "
            f"--cachelaw-profile {profile}",
            pytrace=False,
        )
    verdict, note = law["verdict"], plain(shown.note(data, law))
    if clause in trial.expected:
        _report_expected(clause, verdict, note, trial.expected[clause])
    elif verdict == Verdict.VIOLATED.value:
        pytest.fail(_told(data, law), pytrace=False)
    elif verdict == Verdict.UNDETERMINED.value:
        pytest.fail(f"undetermined for {data['subject']}: {note}", pytrace=False)
    elif verdict == Verdict.NOT_APPLICABLE.value:
        pytest.skip(f"not applicable: {note}")


def _report_expected(clause: str, verdict: str, note: str, why: str) -> None:
    if verdict == Verdict.VIOLATED.value:
        pytest.xfail(why or "violated, as expected")
    if verdict == Verdict.UNDETERMINED.value:
        pytest.fail(f"expected to fail, but undetermined: {clause}: {note}", pytrace=False)
    said = "holds" if verdict == Verdict.HOLDS.value else "is not applicable"
    pytest.fail(f"stale: {clause} {said}; take it out of the expected failures", pytrace=False)


def _told(data: shown.Data, law: shown.Data) -> str:
    found = law["counterexample"]
    lines = [
        f"VIOLATED {law['clause']} by {data['subject']}, edition {data['edition']}",
        *shown.told(law).splitlines(),
    ]
    path = store.reproduction_path(found["id"])
    if found["reproduction"]["text"] is not None and path is not None:
        lines.append(f"reproduction: python {path}")
    lines += [f"diagnosis: {one['reading']}: {one['says']}" for one in data["diagnosis"]]
    return "\n".join(map(plain, lines))


# --- One certification in a run ------------------------------------------------------------------


def _outcome(trial: Trial, config: pytest.Config) -> _Outcome:
    """Return what came of certifying a subject, which happens at most once."""
    known = config.stash.setdefault(_outcomes, {})
    if trial.key not in known:
        shared = getattr(config, "workerinput", {}).get(SHARED)
        known[trial.key] = _shared(trial, Path(shared)) if shared else _certified(trial)
    return known[trial.key]


def _shared(trial: Trial, folder: Path) -> _Outcome:
    """Return what another worker has found, or be the one that finds it."""
    path = folder / f"{trial.key}.json"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.write_text(json.dumps(_certified(trial)), encoding="utf-8")
        outcome: _Outcome = json.loads(path.read_text(encoding="utf-8"))
    return outcome


def _certified(trial: Trial) -> _Outcome:
    try:
        data = certified(trial.wanted, BUDGETS[trial.budget], trial.seed, Limits(), announce=print)
    except Unusable as error:
        return {"unusable": str(error)}
    trouble = store.keep(data)
    if trouble is not None:
        print(f"cachelaw: {trouble}")
    return {"report": data}


# --- Test classes --------------------------------------------------------------------------------


def _trial_of(tests: type[PolicyConformance], config: pytest.Config) -> Trial:
    """Return what a test class asks for.

    Raises:
        Unusable: it asks for what there is not.
    """
    if (tests.subject is None) == (tests.policy is None):
        raise Unusable("set `subject` to the name of a subject, or `policy` to a class")
    name = tests.subject if tests.subject is not None else _name_of(tests.policy, tests)
    wanted = Wanted(
        name,
        tests.profile,
        tests.edition,
        tuple(tests.declared),
        tests.host,
        dict(tests.parameters),
    )
    known = tests.expected_failures
    expected = dict(known) if isinstance(known, Mapping) else dict.fromkeys(known, "")
    return Trial(
        wanted,
        tests.profile or profile_of(name, tests.policy),
        config.getoption("cachelaw_budget", None) or tests.budget,
        tests.seed,
        expected,
    )


def _name_of(policy: Any, tests: type[PolicyConformance]) -> str:
    """Return the name by which another process finds a class or a factory."""
    qualified = getattr(policy, "__qualname__", "")
    if not qualified or "<" in qualified:
        raise Unusable(
            f"`policy` must stand at the top level of a module, and {policy!r} does not: "
            "another process imports it by name"
        )
    module, file = policy.__module__, inspect.getsourcefile(policy)
    # pytest imports test modules by names of its own, which say nothing to another process.
    if file is None or module != tests.__module__ or _importable(module, Path(file)):
        return f"{module}:{qualified}"
    return f"{file}:{qualified}"


def _importable(module: str, file: Path) -> bool:
    part = Path(*module.split("."))
    places = (part.with_suffix(".py"), part / "__init__.py")
    return any(Path(entry or ".", place) == file for entry in sys.path for place in places)
