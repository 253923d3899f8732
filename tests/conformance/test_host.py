"""Policies that import vllm: told of --host without it, certified inside a release with it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import cli, trial
from cachelaw.conformance.contexts import context_class
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.releases import UnreachableError, fetch
from cachelaw.conformance.subject import Unusable, Wanted
from cachelaw.conformance.supervisor import Limits
from cachelaw.reference.chunk import ChunkStatus
from cachelaw.reference.editions import V020, V026, V027, V030, V031, V033
from cachelaw.reference.protocol import Setting

BODY = '''

class Fifo(CachePolicy):
    """First in, first out, as a subclass of vLLM's own base."""

    def __init__(self, cache_capacity{more}):
        self.cache_capacity = cache_capacity
        self.chunks = {{}}{check}

    def get(self, key):
        return self.chunks.get(key)

    def insert(self, key, chunk):
        assert isinstance(chunk, {status})
        self.chunks[key] = chunk

    def remove(self, key):
        del self.chunks[key]

    def touch(self, {touch}):
        pass

    def evict(self, n, protected):
        idle = [k for k, c in self.chunks.items() if c.ref_cnt == 0 and k not in protected]
        if len(idle) < n:
            return None
        return [(key, self.chunks.pop(key)) for key in idle[:n]]
'''

CLEAR = """
    def clear(self):
        self.chunks.clear()
"""

NEWER = (
    "from vllm.v1.kv_offload.cpu.policies.base import CachePolicy, ChunkStatus\n"
    + BODY.format(
        more=", *, size",
        check="\n        assert size == 3, repr(size)",
        status="ChunkStatus",
        touch="keys, req_context",
    )
    + CLEAR
    + "\n\ndef make(cache_capacity, size=3):\n    return Fifo(cache_capacity, size=size)\n"
)
OLDER = (
    "from vllm.v1.kv_offload.cpu.policies.abstract import BlockStatus, CachePolicy\n"
    + BODY.format(more="", check="", status="BlockStatus", touch="keys")
)

HOSTS = (*trial.HOST_RELEASES.values(),)


@pytest.fixture(scope="module")
def releases() -> None:
    """Fetch one release of each edition; skip, or fail in CI, if one is out of reach."""
    for version in HOSTS:
        try:
            fetch(version)
        except UnreachableError as error:
            if os.environ.get("CI"):
                pytest.fail(str(error))
            pytest.skip(f"vllm {version} cannot be fetched: {error}")


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder that holds the policies."""
    (tmp_path / "newer.py").write_text(NEWER)
    (tmp_path / "older.py").write_text(OLDER)
    (tmp_path / "moved.py").write_text(OLDER + CLEAR)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def little_search(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Wanted, str]]:
    """Put loading alone in place of certification; return what was asked for."""
    asked: list[tuple[Wanted, str]] = []

    def certified(wanted: Wanted, budget: Any, *rest: Any) -> dict[str, Any]:
        asked.append((wanted, budget.name))
        fits = trial._Trial(wanted, Limits()).fits()
        assert wanted.edition in fits
        return {"status": 0, "edition": wanted.edition}

    monkeypatch.setattr(cli, "certified", certified)
    monkeypatch.setattr(cli, "show", lambda data, console: print(data["edition"]))
    monkeypatch.setattr(cli, "show_editions", lambda reports, console: print("of", len(reports)))
    monkeypatch.setattr("cachelaw.conformance.store.keep", lambda data: None)
    return asked


def run(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    status = cli.main(["certify", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


# --- Without a host ---


@pytest.mark.skipif("vllm" in sys.modules, reason="vllm is here")
def test_without_vllm_one_is_told_of_the_option(
    policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["newer.py:make"], capsys) == (
        2,
        "",
        "cachelaw: newer.py imports vllm, and vllm is not installed: name a release whose modules "
        "it gets, as in --host vllm==0.33.0\n",
    )


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("0.30.0", "'0.30.0' is no host: write it like vllm==0.30.0"),
        ("torch==2.0", "'torch==2.0' is no host: write it like vllm==0.30.0"),
        ("vllm==", "'vllm==' is no host: write it like vllm==0.30.0"),
        ("vllm==0.18.1", "vllm 0.18.1 has no CachePolicy: policies became a plug-in with 0.19.0"),
        ("vllm==no", "no"),
    ],
)
def test_what_is_no_host(
    host: str, says: str, policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(["newer.py:make", "--host", host], capsys)
    assert (status, out) == (2, "")
    assert err.startswith(f"cachelaw: {says}" if len(says) > 2 else "cachelaw: ")
    assert err.count("\n") == 1


def test_contexts_have_what_hosts_of_the_edition_set() -> None:
    has = {
        edition: {
            name
            for name in ("req_id", "kv_transfer_params", "load_tier_filter", "kv_hints")
            if hasattr(context_class(edition)("r1"), name)
        }
        for edition in (V020, V026, V027, V030, V031, V033)
    }
    first = {"req_id", "kv_transfer_params"}
    assert has[V020] == has[V026] == first
    assert has[V027] == has[V030] == first | {"load_tier_filter"}
    assert has[V031] == has[V033] == first | {"load_tier_filter", "kv_hints"}
    instance = Instance(lambda capacity: None, Setting(V033, 2), ChunkStatus, PlainCodec())
    newest = instance.context("r1")
    assert isinstance(newest, context_class(V033))
    assert newest.kv_transfer_params is None
    assert newest.load_tier_filter.allows("cpu", None) is True  # type: ignore[attr-defined]


# --- Inside releases ---


@pytest.mark.interop
def test_a_policy_is_certified_inside_a_release(
    releases: None, policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--host", "vllm==0.30.0", "--budget", "quick", "--json", "report.json"]
    status, out, err = run(["newer.py:Fifo", "--param", "size=3", *options], capsys)
    assert (status, err) == (0, "")
    assert "newer.py:Fifo conforms" in " ".join(out.split())
    data = json.loads(Path("report.json").read_text())
    assert (data["edition"], data["host"]) == ("v0.30", "vllm==0.30.0")
    assert data["parameters"] == {"size": "3"}
    assert {row["edition"]: row["breaks"] for row in data["compatibility"]} == {
        **dict.fromkeys(
            ("v0.19", "v0.20"),
            "imports vllm.v1.kv_offload.cpu.policies.base, which this release of vllm does not "
            "have",
        ),
        **dict.fromkeys(
            ("v0.22", "v0.24", "v0.26", "v0.27"),
            "cannot import name 'ChunkStatus' from 'vllm.v1.kv_offload.cpu.policies.base'",
        ),
        "v0.30": "",
        "v0.31": "",
        "v0.33": "hosts of v0.33 call insert with 3 arguments, which it does not take",
    }
    assert [row["edition"] for row in data["compatibility"] if row["runs"]] == ["v0.30", "v0.31"]
    # Nothing says where this machine keeps releases.
    assert str(Path.home()) not in json.dumps(data["compatibility"]) + out


@pytest.mark.interop
def test_what_breaks_where(releases: None, policies: Path) -> None:
    """A module that was renamed, a missing method, an arity."""

    def rows(name: str) -> dict[str, str]:
        found = trial.host_by_host(Wanted(f"{name}.py:Fifo", host="vllm==0.20.2"), Limits())
        assert all(row["runs"] is not bool(row["breaks"]) for row in found)
        return {row["edition"]: row["breaks"] for row in found}

    for name in ("older", "moved"):  # for the import alone, whatever else would break
        found = rows(name)
        assert [edition for edition, breaks in found.items() if not breaks] == ["v0.19", "v0.20"]
        assert {breaks for breaks in found.values() if breaks} == {
            "imports vllm.v1.kv_offload.cpu.policies.abstract, which this release of vllm does not "
            "have"
        }
    Path("older.py").write_text(OLDER.replace("abstract", "base"))
    Path("moved.py").write_text(OLDER.replace("abstract", "base") + CLEAR)
    bare, whole = rows("older"), rows("moved")
    assert "abstract class Fifo" in bare["v0.22"] and bare["v0.22"].endswith("method clear")
    assert whole["v0.22"] == whole["v0.24"] == ""
    arity = "hosts of v0.26 call touch with 2 arguments, which it does not take"
    assert whole["v0.26"] == arity
    # Without a base class that insists on it, the missing method itself is named.
    loose = OLDER.replace("abstract", "base").replace("(CachePolicy)", "")
    Path("older.py").write_text(loose)
    assert rows("older")["v0.22"] == "it has no method clear"


@pytest.mark.interop
def test_all_editions_that_run(
    releases: None,
    policies: Path,
    little_search: list[tuple[Wanted, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--host", "vllm==0.31.0", "--budget", "quick"]
    given = ["newer.py:make", "--param", "size=3", *options]
    assert run([*given, "--editions", "all"], capsys) == (0, "v0.30\n\nv0.31\nof 2\n", "")
    assert [(wanted.edition, wanted.host) for wanted, _ in little_search] == [
        ("v0.30", "vllm==0.30.0"),
        ("v0.31", "vllm==0.31.0"),  # the one that was named stands for its edition
    ]
    assert run([*given, "--editions", "v0.30"], capsys) == (0, "v0.30\n", "")
    status, out, err = run([*given, "--editions", "v0.30,foo"], capsys)
    assert (status, out) == (2, "")
    assert err.startswith("cachelaw: --editions: no edition is called 'foo'; there are v0.19, ")
    status, out, err = run([*given, "--editions", "v0.30,v0.33"], capsys)
    assert (status, out) == (2, "")
    assert err == (
        "cachelaw: --editions: newer.py:make does not run on hosts of v0.33; on v0.30, v0.31\n"
    )
    status, out, err = run([*given, "--param", "size=4", "--editions", "all"], capsys)
    assert (status, out) == (2, "")
    assert "runs on no host" in err and err.count("\n") == 1


@pytest.mark.interop
def test_a_factory_gets_its_parameters(
    releases: None, policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--host", "vllm==0.30.0", "--budget", "quick"]
    status, out, err = run(["newer.py:make", "--param", "size=four", *options], capsys)
    assert (status, out) == (2, "")
    assert err.endswith("cannot be constructed from the capacity 1: AssertionError: 'four'\n")
    status, out, err = run(["newer.py:make", "--param", "speed=4", *options], capsys)
    assert (status, out) == (2, "")
    assert "unexpected keyword argument 'speed'" in err and err.count("\n") == 1
    fits = trial._Trial(Wanted("newer.py:make", host="vllm==0.30.0"), Limits()).fits()
    assert fits  # by itself, with the parameter that it has by default
    with pytest.raises(Unusable, match="missing 1 required keyword-only argument: 'size'"):
        trial._Trial(Wanted("newer.py:Fifo", host="vllm==0.30.0"), Limits()).fits()
