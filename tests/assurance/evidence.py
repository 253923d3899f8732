"""What runs have shown, on record for the ledger: `evidence.json`, by section.

Each section says by which command it was recorded, when, on which machine, how long that took and
what it is *about*: the contracts, scopes, laws or releases there were. If there are others now, the
section is stale, and `python -m tests.assurance.ledger` runs it again. What a test of every run
asks anyhow is compared with the record by that test; the rest stands as of its date.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
import re
from collections.abc import Callable
from datetime import date
from time import perf_counter
from typing import Any, NamedTuple

from proofs import THEOREMS, name_of
from tests.assurance.noticed import noticed, noticed_in_filter
from tests.assurance.record import RECORD, counted, record
from tests.interop import test_policies as interop
from tests.proof import gate
from tests.proof.differences import judge
from tests.proof.pairs import PAIRS

from cachelaw.conformance.certify import BUDGETS, certify
from cachelaw.conformance.explore import transitions
from cachelaw.conformance.explore.plan import differences, planned, rows, scope_of
from cachelaw.conformance.explore.products import EDITION_SCOPES
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.subject import resolve
from cachelaw.conformance.verdict import Verdict
from cachelaw.reference.cores import all_cores
from cachelaw.reference.editions import EDITIONS, V019, V020

BUDGET = "quick"
"""The budget with which the reference is certified for the record."""


class Section(NamedTuple):
    """A part of the record.

    Attributes:
        command: what shows the same to a reader.
        about: returns what the section is about at present, as plain data.
        run: returns what is found, as plain data.
    """

    command: str
    about: Callable[[], Any]
    run: Callable[[], Any]


def digest(*functions: Callable[..., Any]) -> str:
    """Return a few digits that change if one of the functions does."""
    text = "".join(map(inspect.getsource, functions))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --- Proofs and contracts ------------------------------------------------------------------------


def _theorems() -> dict[str, Any]:
    found = {}
    for theorem in THEOREMS:
        answers = [str(answer) for answer in theorem.negated().values()]
        found[name_of(theorem)] = {
            "proved": str(theorem.prove()) == "unsat",
            "variants": len(answers),
            "refuted": answers.count("sat"),
        }
    return found


def _about_theorems() -> dict[str, list[str]]:
    return {name_of(theorem): sorted(theorem.PROVES) for theorem in THEOREMS}


def _contracts() -> dict[str, str]:
    return {name: gate.judge(name).answer for name in gate.all_contracts()}


def _about_contracts() -> dict[str, str]:
    return {name: digest(contract) for name, contract in gate.all_contracts().items()}


def _pairs() -> dict[str, Any]:
    found = {}
    for pair in PAIRS:
        compared = judge(pair)
        found[pair.name] = {"answer": compared.answer, "paths": compared.paths}
    return found


def _about_pairs() -> dict[str, str]:
    return {pair.name: digest(pair.core, pair.counterpart) for pair in PAIRS}


# --- The explorer --------------------------------------------------------------------------------


def _about_explorations() -> list[Any]:
    return [
        [policy, edition.name, alphabet, checks, repr(scope)]
        for policy, edition, alphabet, scope, checks in planned()
    ]


def _differences() -> list[dict[str, Any]]:
    found = []
    for each in differences(("lru", "arc")):
        if each.what.startswith("known fault"):
            continue
        policy, older, _, newer = each.what.split()
        pair = {"policy": policy, "older": older, "newer": newer}
        found.append({**pair, "steps": list(each.steps), "extent": each.extent})
    return found


def _about_differences() -> list[Any]:
    return [[edition.name for edition in EDITIONS], repr(EDITION_SCOPES)]


FILTER_SCOPE = (3, 4)


def _noticed() -> dict[str, list[str]]:
    found = {}
    for core in all_cores():
        scope = scope_of(core.profile, core.edition, "calls", "steps", full=False)
        found[f"{core.profile} {core.edition}"] = sorted(noticed(core, scope))
    return {**found, "filter": sorted(noticed_in_filter(*FILTER_SCOPE))}


def _about_noticed() -> list[Any]:
    scopes = [
        [
            f"{core.profile} {core.edition}",
            repr(scope_of(core.profile, core.edition, "calls", "steps", full=False)),
        ]
        for core in all_cores()
    ]
    rules = [rule for some in transitions.RULES.values() for rule in some]
    return [*scopes, ["rules", digest(*rules)]]


# --- Random steps --------------------------------------------------------------------------------


def _subjects() -> list[str]:
    policies = [f"{e.module}:{name}" for name in ("LRU", "ARC") for e in EDITIONS]
    return [*policies, *(f"{e.module}:FilterReusedOffloadingManager" for e in (V019, V020))]


def _certified() -> dict[str, Any]:
    found = {}
    for name in _subjects():
        report = certify(resolve(name), BUDGETS[BUDGET], seed=1)
        found[name] = {
            "calls": report.calls,
            "violated": [result.law.clause.name for result in report.violations],
            "met": {
                result.law.clause.name: result.met
                for result in report.results
                if result.verdict is Verdict.HOLDS
            },
        }
    return found


def _about_certified() -> dict[str, Any]:
    return {"budget": BUDGET, "subjects": _subjects(), "laws": sorted(LAWS)}


SEEN = ("edition", "steps", "evictions", "refused")


def _releases() -> dict[str, Any]:
    found = {}
    for version in interop.VERSIONS:
        for policy in ("lru", "arc"):
            seen = interop.drive("lockstep", version, policy, 20_260_727, interop.STEPS)
            if seen["divergence"] is not None or seen["not met"]:
                raise RuntimeError(f"vllm {version}, {policy}: {seen}")
            found[f"{version}:{policy}"] = {name: seen[name] for name in SEEN}
    return found


def _about_releases() -> list[Any]:
    return [interop.VERSIONS, interop.STEPS]


# --- The record ----------------------------------------------------------------------------------

SECTIONS = {
    "theorems": Section("python -m proofs", _about_theorems, _theorems),
    "contracts": Section("python -m tests.proof.gate", _about_contracts, _contracts),
    "pairs": Section("python -m tests.proof.differences", _about_pairs, _pairs),
    "explorations": Section(
        "cachelaw explore", _about_explorations, lambda: [counted(row) for row in rows()]
    ),
    "differences": Section(
        "cachelaw explore --policy lru; cachelaw explore --policy arc",
        _about_differences,
        _differences,
    ),
    "noticed": Section(
        "python -m tests.assurance.ledger --again noticed", _about_noticed, _noticed
    ),
    "certified": Section(
        f"cachelaw certify cachelaw.reference.v033:ARC --budget {BUDGET} --seed 1 "
        "(and so each class of each edition)",
        _about_certified,
        _certified,
    ),
    "releases": Section(
        'pytest tests/interop/test_policies.py -k "equals_the_release"', _about_releases, _releases
    ),
}
"""The sections, in the order in which they are run."""


def stale(kept: dict[str, Any]) -> list[str]:
    """Return the sections that are not on record, or were recorded about other things."""
    return [
        name
        for name, section in SECTIONS.items()
        if name not in kept or kept[name]["about"] != json.loads(json.dumps(section.about()))
    ]


def run(name: str) -> None:
    """Run a section and put it on record."""
    section = SECTIONS[name]
    begun = perf_counter()
    found = section.run()
    made = {
        "command": section.command,
        "date": date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}",
        "seconds": round(perf_counter() - begun),
        "about": section.about(),
        "found": found,
    }
    kept = {**record(), name: made}
    ordered = {each: kept[each] for each in SECTIONS if each in kept}
    text = json.dumps(ordered, indent=1)
    # A list of plain values is one line.
    text = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)
    RECORD.write_text(text + "\n", encoding="utf-8")
