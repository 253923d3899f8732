"""The policies of a vLLM release, without installing vLLM.

A release is named by its version, as in `vllm==0.29.0:arc`. Its policy files are fetched once out
of the wheel (cachelaw.conformance.wheels), kept in a folder per user, verified on every use, and
imported beside stand-ins (cachelaw.conformance.standins). Sources of what is said about versions:
the wheels themselves; specs/ tells what each edition changed.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cachelaw.conformance import wheels
from cachelaw.conformance.standins import ReleaseFinder
from cachelaw.conformance.wheels import ReleaseError, UnreachableError
from cachelaw.reference.editions import NEWEST, edition_of_release

__all__ = [
    "Release",
    "ReleaseError",
    "UnreachableError",
    "edition_of",
    "fetch",
    "load",
    "require_filter",
    "require_policies",
]

Announce = Callable[[str], None]

# --- Versions ---

_VERSION = re.compile(r"(\d+(?:\.\d+)+)((?:a|b|rc)\d+)?(\.post\d+)?")

_FIRST_WITH_FILTER, _FIRST_WITHOUT_FILTER = (0, 18), (0, 22)


def _normal(version: str) -> str:
    """Bring a version into one form, `0.29` to `0.29.0`. Raises ReleaseError if it is none."""
    match = _VERSION.fullmatch(version.strip())
    if match is None:
        raise ReleaseError(f"{version[:40]!r} is not a version of vllm: write it like vllm==0.29.0")
    numbers = [str(int(number)) for number in match[1].split(".")]
    return ".".join([*numbers, "0"][: max(3, len(numbers))]) + (match[2] or "") + (match[3] or "")


def _minor(version: str) -> tuple[int, int]:
    major, minor = _normal(version).split(".")[:2]
    return int(major), int(minor)


def edition_of(version: str) -> str | None:
    """Name the edition of the contract that a release has, `v0.31` for 0.31.0 and 0.32.0.

    None before 0.19, where vLLM had no policy interface. A release newer than any known to this
    table counts as the newest edition; `Release.beyond_known` says so. Raises ReleaseError for
    what is not a version.
    """
    edition = edition_of_release(_normal(version))
    return edition.name if edition else None


def require_policies(version: str) -> None:
    """Refuse a release that has no policy interface, without touching the network.

    Raises ReleaseError for a release before 0.19.0, the first wheel with cpu/policies, and for
    what is not a version.
    """
    if edition_of(version) is None:
        raise ReleaseError(
            f"vllm {_normal(version)} has no CachePolicy: policies became a plug-in with 0.19.0; "
            "use vllm==0.19.1 or newer (its eviction lived inside LRUOffloadingManager and "
            "ARCOffloadingManager)"
        )


def require_filter(version: str) -> None:
    """Refuse a release that has no FilterReusedOffloadingManager, without touching the network.

    The wheels from 0.18.0 to 0.21.0 have reuse_manager.py. Raises ReleaseError for the others
    and for what is not a version.
    """
    if not _FIRST_WITH_FILTER <= _minor(version) < _FIRST_WITHOUT_FILTER:
        raise ReleaseError(
            f"vllm {_normal(version)} has no FilterReusedOffloadingManager: "
            "use one of vllm==0.18.0 to 0.21.0 (later it is the store_threshold of "
            "CPUOffloadingManager)"
        )


# --- The files of a release, kept per user ---

# Policies, the reuse filter and the CPU manager lie in these folders of every release.
_WANTED = re.compile(r"vllm/v1/kv_offload/(cpu/|cpu/policies/|backends/)?\w+\.py")
_LEFT_OUT = ("vllm.v1.kv_offload.worker", "vllm.v1.kv_offload.tiering")
_MANIFEST = "release.json"


@dataclass(frozen=True)
class _Files:
    """The verified files of a release: where they lie, member -> contents, the wheel's hash."""

    folder: Path
    contents: dict[str, bytes]
    wheel_sha256: str | None


def fetch(version: str, *, announce: Announce | None = None) -> Path:
    """Make sure that the policy files of a release are in the user's cache.

    The cache is $CACHELAW_CACHE, else $XDG_CACHE_HOME/cachelaw, else ~/.cache/cachelaw. Returns
    the folder in it that contains `vllm/`. A complete cache is verified and neither pip nor the
    network is touched. `announce` gets a line for whatever else takes time or is repaired.
    Raises UnreachableError if the package index cannot be reached, and ReleaseError for all else
    that prevents it.
    """
    return _obtain(_normal(version), announce or _silent).folder


def _silent(line: str) -> None:
    """Announce to nobody."""


def _obtain(version: str, announce: Announce) -> _Files:
    """Take the verified files out of the cache, after fetching them if need be."""
    folder = _cache() / "releases" / f"vllm-{version}"
    files = _verified(folder)
    if files is not None:
        return files
    if os.path.lexists(folder):
        announce(f"the cached files of vllm {version} are damaged: fetching them again")
    else:
        announce(f"fetching the policy files of vllm {version}, once")
    wheel = wheels.find_wheel(version, announce)
    contents = wheels.read_members(version, wheel, _WANTED, announce)
    if not contents:
        raise ReleaseError(
            f"vllm {version} has no KV-cache offloading: use vllm==0.19.1 or newer for its policies"
        )
    return _published(folder, _Files(folder, contents, wheel.sha256), version)


def _cache() -> Path:
    if given := os.environ.get("CACHELAW_CACHE"):
        return Path(given).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "cachelaw"
    try:
        return Path.home() / ".cache" / "cachelaw"
    except RuntimeError as error:
        raise ReleaseError(
            "there is no home folder to keep releases in: set CACHELAW_CACHE to a folder"
        ) from error


def _verified(folder: Path) -> _Files | None:
    """Read a folder of the cache; None if it is absent or differs from its manifest."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        recorded: dict[str, str] = manifest["files"]
        contents = {member: (folder / member).read_bytes() for member in recorded}
        if recorded and recorded == _digests(contents):
            return _Files(folder, contents, manifest["wheel_sha256"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    return None


def _digests(contents: dict[str, bytes]) -> dict[str, str]:
    return {member: hashlib.sha256(content).hexdigest() for member, content in contents.items()}


def _published(folder: Path, files: _Files, version: str) -> _Files:
    """Put files into the cache at once or not at all; another process may do the same meanwhile.

    Raises ReleaseError if the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as scratch:
            new = Path(scratch, "new")
            for member, content in files.contents.items():
                (new / member).parent.mkdir(parents=True, exist_ok=True)
                (new / member).write_bytes(content)
            manifest = {
                "version": version,
                "wheel_sha256": files.wheel_sha256,
                "files": _digests(files.contents),
            }
            (new / _MANIFEST).write_text(json.dumps(manifest, indent=1))
            _put_in_place(new, folder, Path(scratch, "old"))
    except OSError as error:
        raise ReleaseError(
            "the cache of releases cannot be written: set CACHELAW_CACHE to a folder that can be"
        ) from error
    return files


def _put_in_place(new: Path, folder: Path, old: Path) -> None:
    """Rename `new` to `folder`; a damaged one goes to `old`, another process's good one stays.

    Raises OSError if that does not succeed.
    """
    for attempt in range(10):
        try:
            os.rename(new, folder)
            return
        except OSError as error:
            reason = error
        if _verified(folder) is not None:
            return
        with suppress(FileNotFoundError):
            os.rename(folder, old.with_name(f"{old.name}-{attempt}"))
    raise reason


# --- The classes of a release ---


@dataclass(frozen=True)
class Release:
    """The classes of one vLLM release, imported in this process.

    `policies` is empty, and `status` and `base` are None, before 0.19. `status` is what a policy
    holds per key (BlockStatus, from 0.30 ChunkStatus), `base` the abstract CachePolicy, `filter`
    FilterReusedOffloadingManager, `manager` CPUOffloadingManager if it can be imported, `context`
    the ReqContext that calls take from 0.20 on. `wheel_sha256` is what the package index states
    for the wheel, None if it states nothing; `files` maps each member to its SHA-256 in hex.
    `beyond_known` says that the release is newer than the table of editions.
    """

    version: str
    wheel_sha256: str | None
    edition: str | None
    beyond_known: bool
    policies: dict[str, type]
    status: type | None
    base: type | None
    filter: type | None
    manager: type | None
    context: type | None
    files: dict[str, str]


_loaded: Release | None = None


def load(version: str, *, announce: Announce | None = None) -> Release:
    """Import the policies of a release into this process, fetching them first if need be.

    A process holds one release, since its modules are named `vllm...` like any other's: the same
    version again gives the same object. Its modules stay importable for managers and for policies
    that are written against it. Arguments and errors are those of fetch; besides, ReleaseError
    is raised for a second version, beside a vllm that is already imported, and for policies that
    this Python cannot import.
    """
    global _loaded
    version = _normal(version)
    if _loaded is not None:
        if _loaded.version == version:
            return _loaded
        raise ReleaseError(
            f"this process has loaded vllm {_loaded.version}, and a process holds one release: "
            f"load vllm {version} in a process of its own"
        )
    if "vllm" in sys.modules:
        raise ReleaseError(
            "this process has imported an installed vllm: "
            f"load vllm {version} in a process that has not"
        )
    files = _obtain(version, announce or _silent)
    finder = ReleaseFinder(files.contents, files.folder, version)
    # torch and triton serve annotations only and would cost seconds; a manager keeps its chunk
    # ids in numpy arrays, so that one is the real one where it is installed.
    roots = ["torch", "triton"] if _installed("numpy") else ["torch", "triton", "numpy"]
    finder.install()
    try:
        with finder.lend(roots):
            _loaded = _imported(version, files)
        finder.close(_LEFT_OUT)
    except BaseException:
        finder.uninstall()
        raise
    return _loaded


def _installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _imported(version: str, files: _Files) -> Release:
    """Import all that a Release names; only a policy that fails to import is an error."""
    try:
        policies = {
            name: policy
            for name, attribute in (("lru", "LRUCachePolicy"), ("arc", "ARCCachePolicy"))
            if (policy := _class(files, f"cpu.policies.{name}", attribute)) is not None
        }
    except Exception as error:
        raise ReleaseError(
            f"the policies of vllm {version} cannot be imported by Python "
            f"{sys.version_info[0]}.{sys.version_info[1]} ({type(error).__name__}): "
            "try a newer Python or a newer cachelaw"
        ) from error
    # The modules of the interface were renamed from abstract to base in 0.21.
    interface = ("cpu.policies.base", "cpu.policies.abstract")
    return Release(
        version=version,
        wheel_sha256=files.wheel_sha256,
        edition=edition_of(version),
        beyond_known=_minor(version) > NEWEST.since,
        policies=policies,
        status=_first(files, interface, ("ChunkStatus", "BlockStatus")),
        base=_first(files, interface, ("CachePolicy",)),
        filter=_first(files, ("reuse_manager",), ("FilterReusedOffloadingManager",)),
        manager=_first(files, ("cpu.manager",), ("CPUOffloadingManager",)),
        context=_first(files, ("base", "abstract"), ("ReqContext",)),
        files=_digests(files.contents),
    )


def _first(files: _Files, modules: tuple[str, ...], names: tuple[str, ...]) -> type | None:
    """Return the first class there is among these; what cannot be imported counts as absent."""
    for module in modules:
        for name in names:
            with suppress(Exception):
                if (found := _class(files, module, name)) is not None:
                    return found
    return None


def _class(files: _Files, module: str, name: str) -> type | None:
    """Import a class of the release; None if the release has no such file or class."""
    stem = "vllm/v1/kv_offload/" + module.replace(".", "/")
    if not {f"{stem}.py", f"{stem}/__init__.py"} & files.contents.keys():
        return None
    found = getattr(importlib.import_module(stem.replace("/", ".")), name, None)
    return found if isinstance(found, type) else None
