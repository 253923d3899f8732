"""Fetching and loading releases: tiny wheels, served by loopback or by file, never the network."""

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import releases, wheels
from cachelaw.conformance.releases import ReleaseError, UnreachableError
from cachelaw.conformance.wheels import Wheel

# A release in miniature: the layout of the real ones, and imports of every kind they have.
POLICY = """
from typing_extensions import override
from vllm.logger import init_logger
from vllm.tracing import traced
from vllm.v1.kv_offload.cpu.policies.base import CachePolicy

logger = init_logger(__name__)
logger.info_once("imported %s", __name__)

class {name}(CachePolicy):
    def __init__(self, cache_capacity):
        self.cache_capacity = cache_capacity

    @override
    @traced
    @traced("with arguments")
    def get(self, key):
        return None
"""
MEMBERS = {
    "vllm/__init__.py": "raise RuntimeError('the rest of vllm is not to be executed')",
    "vllm/v1/__init__.py": "raise RuntimeError('the rest of vllm is not to be executed')",
    "vllm/v1/kv_offload/__init__.py": "",
    "vllm/v1/kv_offload/base.py": """
from dataclasses import dataclass
import numpy as np
import torch
import torch.nn as nn
from vllm.v1.kv_hints import Envelope

@dataclass
class ReqContext:
    req_id: str
    hints: Envelope | None = None

class Spec(Envelope, nn.Module):
    tensor: torch.Tensor | None
    views: dict[str, np.ndarray[int]]

    def __init__(self, ids):
        super().__init__(ids)
        self.ids = np.array(ids, dtype=np.int64)
""",
    "vllm/v1/kv_offload/worker/worker.py": "",
    "vllm/v1/kv_offload/cpu/__init__.py": "",
    "vllm/v1/kv_offload/cpu/manager.py": """
import importlib
from vllm.v1.kv_offload.base import Spec
from vllm.v1.kv_offload.worker.worker import Handler

class CPUOffloadingManager:
    def __init__(self, name):
        module = importlib.import_module("vllm.v1.kv_offload.cpu.policies." + name)
        self.policy = module.LRUCachePolicy(2)
        self.spec = Spec([1, 2])
""",
    "vllm/v1/kv_offload/cpu/policies/__init__.py": "",
    "vllm/v1/kv_offload/cpu/policies/base.py": """
from abc import ABC, abstractmethod

class ChunkStatus:
    pass

class CachePolicy(ABC):
    @abstractmethod
    def get(self, key): ...
""",
    "vllm/v1/kv_offload/cpu/policies/lru.py": POLICY.format(name="LRUCachePolicy"),
    "vllm/v1/kv_offload/cpu/policies/arc.py": POLICY.format(name="ARCCachePolicy"),
    # What is not wanted is most of a wheel.
    "vllm/kernels.so": "".join(str(number) for number in range(100_000)),
}
WANTED = {name for name in MEMBERS if "/kv_offload/" in name and "/worker/" not in name}


def make_wheel(
    folder: Path,
    members: Mapping[str, str] = MEMBERS,
    version: str = "0.31.0",
    record: Callable[[list[str]], list[str]] = list,
) -> Path:
    """Write a wheel of `members`; `record` may falsify the lines of its RECORD."""
    info = f"vllm-{version}.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for name, text in files.items():
        digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(text)}")
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"vllm-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*record(lines), f"{info}/RECORD,,"]) + "\n")
    return wheel


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Server:
    """Serves a folder on loopback; `ranges` is the status for a range request: 206, 200, 416..."""

    def __init__(self, folder: Path, ranges: int = 206) -> None:
        self.sent = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = folder / self.path.strip("/")
                path = path / "index.html" if path.is_dir() else path
                if not path.is_file():
                    self.send_error(404)
                    return
                body = path.read_bytes()
                status, headers = 200, {}
                asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
                if asked and ranges == 206:
                    end = min(int(asked[2] or len(body)), len(body) - 1)
                    start = int(asked[1]) if asked[1] else max(0, len(body) - int(asked[2]))
                    end = end if asked[1] else len(body) - 1
                    headers["Content-Range"] = f"bytes {start}-{end}/{len(body)}"
                    body, status = body[start : end + 1], 206
                elif asked and ranges != 200:
                    self.send_error(ranges)
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                kind = "text/html" if path.suffix == ".html" else "application/octet-stream"
                self.send_header("Content-Type", kind)
                self.end_headers()
                try:
                    self.wfile.write(body)
                    server.sent += len(body)
                except OSError:
                    pass  # the client saw that the answer is not a range, and hung up

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CACHELAW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers = []

    def start(ranges: int = 206) -> Server:
        servers.append(Server(tmp_path, ranges))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Wheel], None]:
    """Answer in the place of pip."""

    def put(wheel: Wheel) -> None:
        monkeypatch.setattr(wheels, "find_wheel", lambda version, announce: wheel)

    return put


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, whoever asks pip fails the test."""

    def forbid() -> None:
        def find_wheel(version: str, announce: object) -> Wheel:
            raise AssertionError("pip was asked")

        monkeypatch.setattr(wheels, "find_wheel", find_wheel)

    return forbid


def assert_presentable(error: ReleaseError, tmp_path: Path) -> None:
    """One line, with no host, address or path in it."""
    text = str(error)
    assert "\n" not in text
    assert str(tmp_path) not in text
    assert not re.search(r"127\.0|://|localhost|Errno|pypi|/tmp|/home", text), text


# --- Versions ---


@pytest.mark.parametrize(
    ("version", "edition"),
    [
        ("0.11.2", None),
        ("0.18.1", None),
        ("0.19.0", "v0.19"),
        ("0.19.1", "v0.19"),
        ("0.20.2", "v0.20"),
        ("0.21.0", "v0.20"),
        ("0.22.1", "v0.22"),
        ("0.23.0", "v0.22"),
        ("0.24.0", "v0.24"),
        ("0.25.1", "v0.24"),
        ("0.26.0", "v0.26"),
        ("0.27.1", "v0.27"),
        ("0.29.0", "v0.27"),
        ("0.30", "v0.30"),
        ("0.31.0rc1", "v0.31"),
        ("0.32.0", "v0.31"),
        ("0.33.0.post1", "v0.33"),
        ("0.40.0", "v0.33"),
        ("1.0.0", "v0.33"),
    ],
)
def test_edition_of(version: str, edition: str | None) -> None:
    assert releases.edition_of(version) == edition


@pytest.mark.parametrize("version", ["", "foo", "0", "0.29.*", "../../etc", "0.29.0; rm", "v0.29"])
def test_what_is_not_a_version_gives_one_line(version: str, no_pip: Callable[[], None]) -> None:
    no_pip()
    for ask in (
        releases.fetch,
        releases.load,
        releases.edition_of,
        releases.require_policies,
        releases.require_filter,
    ):
        with pytest.raises(ReleaseError, match=r"is not a version of vllm: write it like vllm=="):
            ask(version)


def test_require_policies_needs_no_network(no_pip: Callable[[], None]) -> None:
    no_pip()
    releases.require_policies("0.19.0")
    with pytest.raises(ReleaseError, match=r"^vllm 0\.16\.0 has no CachePolicy: .*0\.19\.1 or"):
        releases.require_policies("0.16")


def test_require_filter_needs_no_network(no_pip: Callable[[], None]) -> None:
    no_pip()
    for version in ("0.18.0", "0.18.1", "0.19.1", "0.20.2", "0.21.0"):
        releases.require_filter(version)
    for version in ("0.17.1", "0.22.0", "0.33.0"):
        with pytest.raises(ReleaseError, match="has no FilterReusedOffloadingManager"):
            releases.require_filter(version)


# --- Fetching ---


def test_fetch_reads_only_the_wanted_parts(
    tmp_path: Path, cache: Path, serve: Callable[..., Server], offer: Callable[[Wheel], None]
) -> None:
    wheel, server = make_wheel(tmp_path), serve()
    offer(Wheel(f"{server.url}/{wheel.name}", sha256(wheel)))
    said: list[str] = []
    folder = releases.fetch("0.31", announce=said.append)
    assert folder == cache / "releases" / "vllm-0.31.0"
    files = {str(p.relative_to(folder)) for p in folder.rglob("*.py")}
    assert files == WANTED
    assert all((folder / name).read_text() == MEMBERS[name] for name in files)
    assert json.loads((folder / "release.json").read_text())["wheel_sha256"] == sha256(wheel)
    assert said == ["fetching the policy files of vllm 0.31.0, once"]
    assert server.sent < wheel.stat().st_size / 2
    assert [p.name for p in folder.parent.iterdir()] == [folder.name]


def test_a_complete_cache_needs_neither_pip_nor_network(
    tmp_path: Path, offer: Callable[[Wheel], None], no_pip: Callable[[], None]
) -> None:
    offer(Wheel(make_wheel(tmp_path).as_uri(), None))
    folder = releases.fetch("0.31.0")
    no_pip()
    said: list[str] = []
    assert releases.fetch("0.31.0", announce=said.append) == folder
    assert said == []


@pytest.mark.parametrize("status", [200, 416, 501])
def test_a_server_without_ranges_means_an_announced_download(
    status: int, tmp_path: Path, serve: Callable[..., Server], offer: Callable[[Wheel], None]
) -> None:
    wheel = make_wheel(tmp_path)
    offer(Wheel(f"{serve(status).url}/{wheel.name}", sha256(wheel)))
    said: list[str] = []
    folder = releases.fetch("0.31.0", announce=said.append)
    assert {str(p.relative_to(folder)) for p in folder.rglob("*.py")} == WANTED
    assert said[1:] == [
        "the package index cannot serve parts of a file: "
        "downloading the whole wheel of vllm 0.31.0 (0 MB)"
    ]


def alter(line: str) -> str:
    return line.replace("sha256=", "sha256=x") if "policies/arc.py" in line else line


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(lambda lines: [alter(line) for line in lines], id="another hash"),
        pytest.param(lambda lines: [ln for ln in lines if "arc" not in ln], id="not recorded"),
        pytest.param(lambda lines: [], id="empty"),
    ],
)
@pytest.mark.parametrize("local", [True, False])
def test_members_are_held_to_the_record(
    record: Callable[[list[str]], list[str]],
    local: bool,
    tmp_path: Path,
    cache: Path,
    serve: Callable[..., Server],
    offer: Callable[[Wheel], None],
) -> None:
    wheel = make_wheel(tmp_path, record=record)
    offer(Wheel(wheel.as_uri() if local else f"{serve().url}/{wheel.name}", sha256(wheel)))
    with pytest.raises(ReleaseError, match=r"^the wheel of vllm 0\.31\.0 is broken: ") as caught:
        releases.fetch("0.31.0")
    assert_presentable(caught.value, tmp_path)
    assert not (cache / "releases").exists()


@pytest.mark.parametrize("status", [None, 200, 206])
def test_a_truncated_wheel_is_broken(
    status: int | None, tmp_path: Path, serve: Callable[..., Server], offer: Callable[[Wheel], None]
) -> None:
    wheel = make_wheel(tmp_path)
    stated = sha256(wheel)
    wheel.write_bytes(wheel.read_bytes()[:-100])
    offer(Wheel(f"{serve(status).url}/{wheel.name}" if status else wheel.as_uri(), stated))
    with pytest.raises(ReleaseError, match="is broken") as caught:
        releases.fetch("0.31.0")
    assert_presentable(caught.value, tmp_path)


def test_a_wheel_read_as_a_whole_is_held_to_the_hash_of_the_index(
    tmp_path: Path, offer: Callable[[Wheel], None]
) -> None:
    offer(Wheel(make_wheel(tmp_path).as_uri(), "0" * 64))
    with pytest.raises(ReleaseError, match="is broken"):
        releases.fetch("0.31.0")


def test_a_wheel_that_cannot_be_reached(
    tmp_path: Path, serve: Callable[..., Server], offer: Callable[[Wheel], None]
) -> None:
    server = serve()
    gone = serve()
    gone.close()
    for url in (f"{server.url}/absent.whl", f"{gone.url}/a.whl", (tmp_path / "no.whl").as_uri()):
        offer(Wheel(url, None))
        with pytest.raises(UnreachableError, match="check the network") as caught:
            releases.fetch("0.31.0")
        assert_presentable(caught.value, tmp_path)


def test_a_release_without_offloading(tmp_path: Path, offer: Callable[[Wheel], None]) -> None:
    offer(Wheel(make_wheel(tmp_path, {"vllm/__init__.py": ""}, "0.6.0").as_uri(), None))
    with pytest.raises(ReleaseError, match=r"^vllm 0\.6\.0 has no KV-cache offloading: use vllm=="):
        releases.fetch("0.6.0")


def change(folder: Path) -> None:
    (folder / "vllm/v1/kv_offload/cpu/policies/lru.py").write_text("changed")


def delete(folder: Path) -> None:
    (folder / "vllm/v1/kv_offload/base.py").unlink()


def garble(folder: Path) -> None:
    (folder / "release.json").write_text("[1]")


def no_manifest(folder: Path) -> None:
    (folder / "release.json").unlink()


def a_file(folder: Path) -> None:
    folder.rename(folder.with_name("aside"))
    folder.write_text("")


@pytest.mark.parametrize("damage", [change, delete, garble, no_manifest, a_file])
def test_a_damaged_cache_is_fetched_again(
    damage: Callable[[Path], None], tmp_path: Path, offer: Callable[[Wheel], None]
) -> None:
    offer(Wheel(make_wheel(tmp_path).as_uri(), None))
    folder = releases.fetch("0.31.0")
    damage(folder)
    said: list[str] = []
    assert releases.fetch("0.31.0", announce=said.append) == folder
    assert said == ["the cached files of vllm 0.31.0 are damaged: fetching them again"]
    assert all((folder / name).read_text() == MEMBERS[name] for name in WANTED)


@pytest.mark.parametrize("damaged", [False, True])
def test_two_fetches_at_once_both_succeed(
    damaged: bool, tmp_path: Path, offer: Callable[[Wheel], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = Wheel(make_wheel(tmp_path).as_uri(), None)
    if damaged:
        offer(wheel)
        change(releases.fetch("0.31.0"))
    both = threading.Barrier(2, timeout=60)

    def find_wheel(version: str, announce: object) -> Wheel:
        both.wait()  # neither goes on before both have found the cache wanting
        return wheel

    monkeypatch.setattr(wheels, "find_wheel", find_wheel)
    results: list[Path] = []
    threads = [
        threading.Thread(target=lambda: results.append(releases.fetch("0.31.0"))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert {p.name for p in results[0].parent.iterdir()} == {"vllm-0.31.0"}
    assert all((results[0] / name).read_text() == MEMBERS[name] for name in WANTED)


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, offer: Callable[[Wheel], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CACHELAW_CACHE", str(tmp_path / "file"))
    offer(Wheel(make_wheel(tmp_path).as_uri(), None))
    with pytest.raises(ReleaseError, match="set CACHELAW_CACHE to a folder") as caught:
        releases.fetch("0.31.0")
    assert_presentable(caught.value, tmp_path)


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert releases._cache() == tmp_path / "cache"
    monkeypatch.delenv("CACHELAW_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert releases._cache() == tmp_path / "xdg" / "cachelaw"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert releases._cache() == tmp_path / ".cache" / "cachelaw"


# --- Asking pip: the real pip, with an index on loopback ---


@pytest.fixture
def index(
    tmp_path: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Server]:
    pytest.importorskip("pip", reason="this environment has no pip")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)

    def start(*files: Path) -> Server:
        server = serve()
        page = tmp_path / "simple" / "vllm" / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text(
            "<!DOCTYPE html><html><body>"
            + "".join(f'<a href="/{f.name}#sha256={sha256(f)}">{f.name}</a>' for f in files)
            + "</body></html>"
        )
        monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
        return server

    return start


def test_pip_names_the_wheel_without_downloading_it(
    tmp_path: Path, index: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, other = make_wheel(tmp_path), make_wheel(tmp_path, version="0.29.0")
    server = index(other, wheel)
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    said: list[str] = []
    found = wheels.find_wheel("0.31.0", said.append)
    assert found == Wheel(f"{server.url}/{wheel.name}", sha256(wheel))
    assert said == []
    assert server.sent < 1000


def test_a_pip_whose_finder_is_changed_is_asked_for_its_report(
    tmp_path: Path, index: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path)
    server = index(wheel)
    monkeypatch.setattr(wheels, "_ASK_FINDER", "raise ImportError('the finder has moved')")
    said: list[str] = []
    found = wheels.find_wheel("0.31.0", said.append)
    assert found == Wheel(f"{server.url}/{wheel.name}", sha256(wheel))
    assert said == ["this pip may have to download the whole wheel of vllm 0.31.0 to find it"]
    with pytest.raises(ReleaseError, match=r"the newest that pip finds is vllm==0\.31\.0"):
        wheels.find_wheel("0.31.7", said.append)


def test_no_such_release(tmp_path: Path, index: Callable[..., Server]) -> None:
    index(make_wheel(tmp_path, version="0.9.0"), make_wheel(tmp_path, version="0.29.0"))
    with pytest.raises(ReleaseError) as caught:
        releases.fetch("0.31.7")
    assert str(caught.value) == (
        "there is no wheel of vllm 0.31.7 for this machine: "
        "the newest that pip finds is vllm==0.29.0"
    )


def test_an_index_without_vllm(tmp_path: Path, index: Callable[..., Server]) -> None:
    index()
    with pytest.raises(ReleaseError, match="pip finds no wheel of vllm") as caught:
        releases.fetch("0.31.0")
    assert not isinstance(caught.value, UnreachableError)


def test_an_index_that_cannot_be_reached(tmp_path: Path, index: Callable[..., Server]) -> None:
    index().close()
    with pytest.raises(UnreachableError, match="the package index cannot be reached") as caught:
        releases.fetch("0.31.0")
    assert_presentable(caught.value, tmp_path)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("ModuleNotFoundError: No module named 'pip'", "this Python environment has no pip"),
        ("\nno such option: --report\n", "this pip is too old"),
        ("Traceback: http://127.0.0.1/simple", "pip could not look up vllm 0.31.0: run "),
    ],
)
def test_a_pip_that_gives_no_answer(
    log: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "_python", lambda *arguments: log)
    with pytest.raises(ReleaseError, match=f"^{line}") as caught:
        releases.fetch("0.31.0")
    assert_presentable(caught.value, tmp_path)


def test_a_python_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    with pytest.raises(ReleaseError, match=r"^pip cannot be started") as caught:
        releases.fetch("0.31.0")
    assert_presentable(caught.value, tmp_path)


# --- Loading: each in a process of its own ---


@pytest.fixture
def run(
    tmp_path: Path, offer: Callable[[Wheel], None]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Put releases into the cache, then run a program on them in a new Python without network."""

    def start(
        program: str, *versions: str, members: Mapping[str, str] = MEMBERS
    ) -> subprocess.CompletedProcess[str]:
        for version in versions:
            offer(Wheel(make_wheel(tmp_path, members, version).as_uri(), None))
            releases.fetch(version)
        prelude = (
            "import sys\n"
            "from cachelaw.conformance import releases, wheels\n"
            "wheels.find_wheel = None\n"
        )
        return subprocess.run(
            [sys.executable, "-c", prelude + program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return start


def test_load(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run(
        """
release = releases.load("0.31.0")
assert (release.version, release.edition, release.beyond_known) == ("0.31.0", "v0.31", False)
assert list(release.policies) == ["lru", "arc"]
assert release.status.__name__ == "ChunkStatus" and release.base.__name__ == "CachePolicy"
assert release.filter is None and release.wheel_sha256 is None
assert release.context("r").hints is None
for name, policy in release.policies.items():
    assert issubclass(policy, release.base)
    assert policy(3).get(b"k") is None  # decorators of stand-ins leave a method as it is
    assert policy.__name__ == f"{name.upper()}CachePolicy" and not hasattr(policy, "touch")
manager = release.manager("lru")
assert isinstance(manager.policy, release.policies["lru"])
assert list(manager.spec.ids) == [1, 2]
assert len(release.files) == 8 and len(release.files["vllm/v1/kv_offload/base.py"]) == 64
assert releases.load("0.31") is release
import vllm
assert vllm.__version__ == "0.31.0"
from vllm.v1.kv_offload.cpu.policies.lru import LRUCachePolicy
assert LRUCachePolicy is release.policies["lru"]
import vllm.anything.at_all as anything
assert not anything.FLAG and [*anything.LIST] == [] and not isinstance(1, anything.Kind)
assert not issubclass(int, anything.Kind) and not hasattr(anything, "__file__")
assert repr(anything.Kind.part) == "<stand-in for vllm.anything.at_all.Kind.part>"
""",
        "0.31.0",
    )
    assert done.returncode == 0, done.stderr


def test_a_module_that_the_release_does_not_have_is_missing(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(
        """
releases.load("0.31.0")
import vllm.v1.kv_offload.worker.any, vllm.v1.kv_offload.tiering.any, vllm.v1.other
for name in ("abstract", "cpu.absent", "cpu.policies.abstract"):
    try:
        __import__("vllm.v1.kv_offload." + name)
    except ModuleNotFoundError as error:
        assert error.name == "vllm.v1.kv_offload." + name
    else:
        raise AssertionError(name)
""",
        "0.31.0",
    )
    assert done.returncode == 0, done.stderr


def test_no_stand_in_of_another_library_stays(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(
        """
import importlib.util
before = {name for name in ("numpy", "torch", "triton") if importlib.util.find_spec(name)}
releases.load("0.31.0")
assert not {"torch", "triton", "torch.nn"} & sys.modules.keys()
assert "numpy" not in sys.modules or hasattr(sys.modules["numpy"], "__file__")
for name in {"numpy", "torch", "triton"} - before:
    assert importlib.util.find_spec(name) is None
""",
        "0.31.0",
    )
    assert done.returncode == 0, done.stderr


def test_modules_already_imported_are_used(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(
        """
import types
torch, nn, numpy = (types.ModuleType(name) for name in ("torch", "torch.nn", "numpy"))
class Tensor: pass
class Module: pass
torch.Tensor, torch.nn, nn.Module, numpy.int64, numpy.ndarray = Tensor, nn, Module, int, list
numpy.array = lambda values, dtype: ("array", *values)
sys.modules |= {"torch": torch, "torch.nn": nn, "numpy": numpy}
release = releases.load("0.31.0")
assert sys.modules["torch"] is torch and sys.modules["numpy"] is numpy
assert release.manager("lru").spec.ids == ("array", 1, 2)
""",
        "0.31.0",
    )
    assert done.returncode == 0, done.stderr


def test_one_release_per_process(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run(
        """
releases.load("0.31.0")
try:
    releases.load("0.34.0")
except releases.ReleaseError as error:
    print(error)
""",
        "0.31.0",
    )
    assert done.stdout == (
        "this process has loaded vllm 0.31.0, and a process holds one release: "
        "load vllm 0.34.0 in a process of its own\n"
    )


def test_not_beside_an_installed_vllm(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(
        """
import types
sys.modules["vllm"] = types.ModuleType("vllm")
try:
    releases.load("0.31.0")
except releases.ReleaseError as error:
    print(error)
""",
        "0.31.0",
    )
    assert done.stdout.startswith("this process has imported an installed vllm: ")


def test_a_release_newer_than_the_table(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(
        """
release = releases.load("0.40.0")
assert release.edition == "v0.33" and release.beyond_known
""",
        "0.40.0",
    )
    assert done.returncode == 0, done.stderr


def test_a_manager_that_fails_to_import_leaves_the_policies(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run(
        """
release = releases.load("0.31.0")
assert release.manager is None and len(release.policies) == 2
""",
        "0.31.0",
        members={**MEMBERS, "vllm/v1/kv_offload/cpu/manager.py": "import absent_library"},
    )
    assert done.returncode == 0, done.stderr


def test_policies_that_fail_to_import_are_an_error_and_leave_nothing(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    members = {**MEMBERS, "vllm/v1/kv_offload/cpu/policies/arc.py": "class ="}
    done = run(
        """
finders = list(sys.meta_path)
try:
    releases.load("0.31.0")
except releases.ReleaseError as error:
    print(error)
assert sys.meta_path == finders and not [name for name in sys.modules if "vllm" in name]
""",
        "0.31.0",
        members=members,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        r"the policies of vllm 0\.31\.0 cannot be imported by Python 3\.\d+ \(SyntaxError\): "
        r"try a newer Python or a newer cachelaw\n",
        done.stdout,
    )


def test_a_release_from_before_policies_has_its_filter(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    members = {
        "vllm/v1/kv_offload/__init__.py": "",
        "vllm/v1/kv_offload/abstract.py": "class OffloadingManager: pass",
        "vllm/v1/kv_offload/backends/__init__.py": "",
        "vllm/v1/kv_offload/reuse_manager.py": """
from vllm.v1.kv_offload.abstract import OffloadingManager
class FilterReusedOffloadingManager(OffloadingManager): pass
""",
    }
    done = run(
        """
release = releases.load("0.18.1")
assert release.filter.__name__ == "FilterReusedOffloadingManager"
assert release.policies == {} and release.edition is None
assert release.status is release.base is release.manager is release.context is None
""",
        "0.18.1",
        members=members,
    )
    assert done.returncode == 0, done.stderr
