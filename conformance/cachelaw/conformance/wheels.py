"""Find the wheel of a vLLM release and read a few files out of it, without downloading it.

A wheel of vLLM weighs some 340 MB, the files a policy consists of some 200 kB. pip knows where
the wheel is, since the user's index, proxy and certificates are in pip's settings; range requests
then read only the wanted members of the archive.
"""

import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import requests
from remotezip import RangeNotSupported, RemoteIOError, RemoteZip, RemoteZipError
from urllib3.exceptions import HTTPError

Announce = Callable[[str], None]


class ReleaseError(Exception):
    """A release that cannot be had, told in one line: what is wrong and what to do about it.

    The line never contains text of pip or of the network, the name of a host or a path.
    """


class UnreachableError(ReleaseError):
    """The package index or its files cannot be reached now; another time it may work."""


@dataclass(frozen=True)
class Wheel:
    """Where a wheel is, and the SHA-256 the index states for it (None if it states none)."""

    url: str
    sha256: str | None


# --- Which wheel: asked of pip ---

# `pip install --dry-run --report` is the documented question, but it answers only after a download
# of the whole wheel, except in the newest pips with an index that serves metadata apart. pip's own
# finder knows the address before that, in every pip since 20. It is not a documented interface,
# so the documented question remains for a pip where this fails.
_ASK_FINDER = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]  # no pip or json of the current folder
import json
from pip._internal.cli.cmdoptions import make_target_python
from pip._internal.commands.install import InstallCommand
from pip._vendor.packaging.version import parse

wanted, answer = parse(sys.argv[1]), sys.argv[2]

def sha256(link):
    return (getattr(link, "_hashes", None) or {}).get("sha256") or (
        link.hash if link.hash_name == "sha256" else None
    )

class Find(InstallCommand):
    def run(self, options, args):
        finder = self._build_package_finder(
            options=options,
            session=self.get_default_session(options),
            target_python=make_target_python(options),
            ignore_requires_python=True,
        )
        found = [c for c in finder.find_all_candidates("vllm") if c.link.is_wheel]
        with open(answer, "w") as file:
            json.dump({
                "versions": [str(version) for version in sorted({c.version for c in found})],
                "wheels": sorted(
                    (c.link.url_without_fragment, sha256(c.link))
                    for c in found if c.version == wanted
                ),
            }, file)
        return 0

sys.exit(Find("install", "").main(sys.argv[3:]))
"""

_PIP_OPTIONS = ("--only-binary=:all:", "--ignore-requires-python", "--retries=2")

# Settings that make sense for an installation and would refuse a question.
_PIP_ENVIRONMENT = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_USER": "0",
}


def find_wheel(version: str, announce: Announce) -> Wheel:
    """Ask pip where the wheel of vLLM `version` is, under the user's own pip settings.

    Arguments: the version in normal form; `announce` is told if pip has to download the wheel
    to answer. Raises UnreachableError if the index cannot be reached, and ReleaseError if pip is
    missing or too old, or if the index has no such release.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        log = _python("-c", _ASK_FINDER, version, str(answer), *_PIP_OPTIONS, f"vllm=={version}")
        if "No module named 'pip'" in log:
            raise ReleaseError(
                "this Python environment has no pip, which finds vllm releases: "
                "run `python -m ensurepip`, or `uv pip install pip` in an environment made by uv"
            )
        try:
            found = json.loads(answer.read_text())
        except (OSError, ValueError):
            return _find_wheel_by_report(version, announce)
    if found["wheels"]:
        return Wheel(*found["wheels"][0])
    raise _not_found(version, found["versions"], log)


def _find_wheel_by_report(version: str, announce: Announce) -> Wheel:
    """Ask by pip's documented installation report, which may download the whole wheel.

    Raises the errors of find_wheel. The format is pip's "installation report", version 1.
    """
    announce(f"this pip may have to download the whole wheel of vllm {version} to find it")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        log = _python(
            *("-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet"),
            *_PIP_OPTIONS,
            *("--report", str(report), f"vllm=={version}"),
        )
        try:
            download = json.loads(report.read_text())["install"][0]["download_info"]
            return Wheel(download["url"], download["archive_info"].get("hashes", {}).get("sha256"))
        except (OSError, ValueError, LookupError):
            pass
    if "no such option" in log:
        raise ReleaseError(
            "this pip is too old to find vllm releases: run `python -m pip install --upgrade pip`"
        )
    offered = re.search(r"\(from versions: ([^)]*)\)", log)
    if offered is None:
        raise ReleaseError(
            f"pip could not look up vllm {version}: run `python -m pip download --no-deps "
            f"vllm=={version}` to see its reason"
        )
    versions = [] if offered[1] == "none" else offered[1].split(", ")
    raise _not_found(version, versions, log)


def _python(*arguments: str) -> str:
    """Run this Python with `arguments` and pip's environment; returns all that it printed."""
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **_PIP_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=600,
        )
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(
            "pip had no answer from the package index for ten minutes: try again later"
        ) from error
    except OSError as error:
        raise ReleaseError("pip cannot be started: run cachelaw in an ordinary Python") from error
    return done.stdout


def _not_found(version: str, versions: list[str], log: str) -> ReleaseError:
    """Say why pip found no wheel: no such version, no index, or an index without vllm."""
    if versions:
        return ReleaseError(
            f"there is no wheel of vllm {version} for this machine: "
            f"the newest that pip finds is vllm=={versions[-1]}"
        )
    # pip reports an index that it cannot reach as one that has no versions, after retries.
    if "Retrying (" in log:
        return UnreachableError(
            f"the package index cannot be reached, so vllm {version} cannot be fetched: "
            "check the network and pip's settings (`pip config list`)"
        )
    return ReleaseError(
        "pip finds no wheel of vllm for this machine at all: "
        "check which package index it is set up with (`pip config list`)"
    )


# --- Members of the wheel ---

_RECORD = re.compile(r"[^/]+\.dist-info/RECORD")


class _BrokenWheel(Exception):
    """A wheel that contradicts its own RECORD or the hash the index states."""


# What zipfile raises for damage depends on where in the archive it is.
_BROKEN = (
    _BrokenWheel,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    UnicodeError,
    csv.Error,
)


def read_members(
    version: str, wheel: Wheel, wanted: re.Pattern[str], announce: Announce
) -> dict[str, bytes]:
    """Read the members whose whole name matches `wanted`, each checked against the RECORD.

    Reads by range requests, so what is not wanted is not downloaded; then the wheel's own SHA-256
    cannot be checked, and the trust is in the index's connection. A local wheel is read in place,
    and one on a server without range requests is downloaded, which `announce` is told; both are
    checked as a whole. Raises UnreachableError, or ReleaseError for a broken wheel.
    Source of the rule: the RECORD file of the wheel format (PEP 376 and PEP 427).
    """
    try:
        with ExitStack() as stack:
            return _checked_members(_open(version, wheel, announce, stack), wanted)
    except _BROKEN as error:
        raise ReleaseError(
            f"the wheel of vllm {version} is broken: its contents do not match what is recorded "
            "of them; try again, or use another package index"
        ) from error
    except (RemoteZipError, HTTPError, OSError) as error:
        raise UnreachableError(
            f"the wheel of vllm {version} cannot be read from the package index: "
            "check the network and try again"
        ) from error


def _open(version: str, wheel: Wheel, announce: Announce, stack: ExitStack) -> zipfile.ZipFile:
    """Open the wheel by the cheapest way there is; `stack` closes and removes what that needs."""
    address = urlsplit(wheel.url)
    if address.scheme == "file":
        path = Path(url2pathname(address.path))
        _check_whole(path, wheel)
        return stack.enter_context(zipfile.ZipFile(path))
    # One session keeps its connection, which saves most of the time of twenty small requests.
    session = stack.enter_context(requests.Session())
    session.headers["Accept-Encoding"] = "identity"
    try:
        archive: zipfile.ZipFile = RemoteZip(wheel.url, session=session, timeout=30)
        return stack.enter_context(archive)
    except (RangeNotSupported, RemoteIOError) as error:
        if not _lacks_ranges(error):
            raise
    path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "vllm.whl")
    _download(version, wheel, announce, session, path)
    _check_whole(path, wheel)
    return stack.enter_context(zipfile.ZipFile(path))


def _lacks_ranges(error: RemoteZipError) -> bool:
    """Tell a server that cannot serve ranges (ignored, 416, 501) from one that fails."""
    if isinstance(error, RangeNotSupported):
        return True
    response = getattr(error.__context__, "response", None)
    return getattr(response, "status_code", None) in (416, 501)


def _download(
    version: str, wheel: Wheel, announce: Announce, session: requests.Session, path: Path
) -> None:
    """Download the whole wheel to `path`, after saying so and how much it is."""
    with session.get(wheel.url, stream=True, timeout=30) as response:
        response.raise_for_status()
        length = response.headers.get("Content-Length", "")
        size = f" ({int(length) / 1e6:.0f} MB)" if length.isdigit() else ""
        announce(
            f"the package index cannot serve parts of a file: "
            f"downloading the whole wheel of vllm {version}{size}"
        )
        with path.open("wb") as file:
            for block in response.iter_content(1 << 20):
                file.write(block)


def _check_whole(path: Path, wheel: Wheel) -> None:
    """Compare a wheel on the disk with the SHA-256 of the index, where it states one."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if wheel.sha256 is not None and digest.hexdigest() != wheel.sha256:
        raise _BrokenWheel


def _checked_members(archive: zipfile.ZipFile, wanted: re.Pattern[str]) -> dict[str, bytes]:
    """Read the wanted members, in the order in which they lie, and hold each to the RECORD."""
    names = [info.filename for info in sorted(archive.infolist(), key=lambda i: i.header_offset)]
    records = [name for name in names if _RECORD.fullmatch(name)]
    if len(records) != 1:
        raise _BrokenWheel
    members = {name: archive.read(name) for name in names if wanted.fullmatch(name)}
    rows = csv.reader(io.StringIO(archive.read(records[0]).decode()))
    recorded = {row[0]: row[1] for row in rows if len(row) >= 2}
    for name, content in members.items():
        digest = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        if recorded.get(name) != f"sha256={digest}":
            raise _BrokenWheel
    return members
