"""The verdict on what people run: the policies and filters of the releases, and evoke-vllm.

Every law is judged, and each violation that is expected is named here with its reason; one more or
one fewer fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import expect
from cachelaw.conformance.certify import BUDGETS
from cachelaw.conformance.laws import OFFERS_NONE
from cachelaw.conformance.releases import UnreachableError, edition_of, fetch
from cachelaw.conformance.subject import Wanted
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trial import certified
from cachelaw.conformance.twins import ASKING

pytestmark = pytest.mark.interop

REFUSES = "evict looks for victims in T2 alone once ghost hits have pushed the target above T1"
QUADRATIC = "evict(n) begins its scan anew for each of the n victims"

CLEAN: Mapping[str, str] = {}
UP_TO_027 = {"evict/none-only-when-short": REFUSES, "cost/linear": QUADRATIC}
UP_TO_029 = {"evict/none-only-when-short": REFUSES}

ARC: dict[str, Mapping[str, str]] = {
    "0.19.1": UP_TO_027,
    "0.20.2": UP_TO_027,
    "0.22.1": UP_TO_027,
    "0.24.0": UP_TO_027,
    "0.26.0": UP_TO_027,
    "0.27.1": UP_TO_027,
    "0.28.0": UP_TO_029,
    "0.29.0": UP_TO_029,
    "0.30.0": CLEAN,
    "0.31.0": CLEAN,
    "0.32.0": CLEAN,
    "0.33.0": CLEAN,
}
"""By release, the violations of its ARC. Its LRU has none."""

FILTERS = {"0.18.1": "v0.19", "0.19.1": "v0.19", "0.20.2": "v0.20", "0.21.0": "v0.20"}
"""By release, the form of its filter. 0.18 has no edition, and 0.19's form."""

MATRIX: list[tuple[str, str, Mapping[str, str]]] = [
    *((version, "lru", CLEAN) for version in ARC),
    *((version, "arc", expected) for version, expected in ARC.items()),
    *((version, "filter", CLEAN) for version in FILTERS),
]

EVOKE = "evoke-vllm==0.1.1"
EVOKE_POLICY = Wanted("evoke_vllm.policy:EvokeCachePolicy", edition="v0.24", host="vllm==0.24.0")
"""It is made for vLLM 0.24.0, which its requirements pin, and reads nothing of a request."""


def out_of_reach(why: str) -> None:
    """Skip, or fail in CI."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def verdict(wanted: Wanted, expected: Mapping[str, str], budget: str) -> dict[str, Any]:
    """Certify a subject; check that it breaks what is expected, and that nothing is left open."""
    data = certified(wanted, BUDGETS[budget], 1, Limits())
    assert set(data["violations"]) == set(expected), data["violations"]
    left_open = [law["clause"] for law in data["laws"] if law["verdict"] == "undetermined"]
    assert left_open == []
    applied = expect.apply(data, expected)
    assert applied["status"] == 0, applied["expectations"]
    return data


def verdict_on_release(version: str, name: str, expected: Mapping[str, str], budget: str) -> None:
    try:
        fetch(version)
    except UnreachableError as error:
        out_of_reach(f"vllm {version} cannot be fetched: {error}")
    data = verdict(Wanted(f"vllm=={version}:{name}"), expected, budget)
    if name == "filter":
        assert (data["edition"], data["profiles"]) == (FILTERS[version], ["reuse-filter"])
        assert {law["verdict"] for law in data["laws"]} == {"holds"}
        return
    edition = edition_of(version)
    assert (data["edition"], data["profiles"]) == (edition, ["contract", name])
    assert edition in data["fits"]
    for law in data["laws"]:
        if law["verdict"] == "not applicable":  # else a law would be missed that is excused
            offers_none = OFFERS_NONE if law["clause"] == ASKING else None
            assert law["note"] in (f"no clause of edition {edition}", offers_none), law["clause"]


@pytest.fixture
def evoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make evoke-vllm importable, without its requirements."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
            *("--dest", str(tmp_path), EVOKE),
        ],
        capture_output=True,
        timeout=120,
    )
    wheels = list(tmp_path.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        out_of_reach(f"{EVOKE} cannot be fetched: pip ended with status {done.returncode}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(tmp_path / "evoke")
    monkeypatch.syspath_prepend(tmp_path / "evoke")


def verdict_on_evoke(budget: str) -> None:
    data = verdict(EVOKE_POLICY, CLEAN, budget)
    assert (data["edition"], data["profiles"]) == ("v0.24", ["contract"])
    held = {law["clause"] for law in data["laws"] if law["verdict"] == "holds"}
    assert {law["clause"] for law in data["laws"]} - held == {ASKING}
    breaks = {row["edition"]: row["breaks"] for row in data["compatibility"]}
    assert [edition for edition, why in breaks.items() if not why] == ["v0.22", "v0.24"]
    for edition in ("v0.19", "v0.20"):
        assert breaks[edition].startswith("imports vllm.v1.kv_offload.base, which this release")
    for edition in ("v0.26", "v0.27"):
        assert "call touch with 2 arguments" in breaks[edition]
    for edition in ("v0.30", "v0.31", "v0.33"):
        assert breaks[edition].startswith("cannot import name 'BlockStatus'")


def test_the_matrix_has_every_edition() -> None:
    editions = {edition_of(version) for version in ARC}
    assert len(editions) == 9 and None not in editions


@pytest.mark.parametrize(
    ("version", "name", "expected"),
    [pytest.param(*entry, id=f"{entry[0]}-{entry[1]}") for entry in MATRIX],
)
def test_a_release_gets_its_verdict(version: str, name: str, expected: Mapping[str, str]) -> None:
    verdict_on_release(version, name, expected, "quick")


def test_evoke_conforms(evoke: None) -> None:
    verdict_on_evoke("quick")


@pytest.mark.deep
def test_a_longer_search_changes_no_verdict(evoke: None) -> None:
    for version, name, expected in MATRIX:
        verdict_on_release(version, name, expected, "standard")
    verdict_on_evoke("standard")
