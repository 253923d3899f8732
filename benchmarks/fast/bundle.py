"""Pack what a GPU host lacks that has torch and no network: numba for its Python.

    python -m benchmarks.fast.bundle [--python 3.12] [--to dist]

Fetches the wheels of numba, llvmlite and numba-cuda and what they need, but for NumPy, which a host
with torch has; unpacks them into one folder and packs that. On the host:

    tar -xf cachelaw-device-cp312.tar.xz -C SOMEWHERE
    PYTHONPATH=SOMEWHERE/site:reference:fast:conformance:specs python3 -m pytest tests/fast/cuda

The versions are those of this environment, so that what was tested here runs there.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

PACKAGES = ("numba", "llvmlite", "numba-cuda", "cuda-bindings", "cuda-core", "cuda-pathfinder")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64")
LEFT_OUT = (".a", ".pyx", ".pxd", ".pxi", ".h", ".hpp", ".c", ".cpp", ".cu")
"""Files that only a build needs."""


def fetch(python: str, folder: Path) -> list[Path]:
    """Fetch the wheels for a version of Python and return where they are."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--implementation", "cp"]
    command += ["--python-version", python, "--dest", str(folder)]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    command += [f"{name}=={version(name)}" for name in PACKAGES]
    subprocess.run(command, check=True)
    return sorted(folder.glob("*.whl"))


def pack(wheels: list[Path], site: Path, target: Path) -> None:
    """Unpack wheels into `site`, without tests and sources of builds, and pack it."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                parts = name.split("/")
                # numba imports a module of its tests in places; those of numba-cuda it does not.
                if "tests" in parts[:-1] or (
                    name.endswith(LEFT_OUT) and parts[0] not in ("numba_cuda", "numba")
                ):
                    continue
                archive.extract(name, site)
    with tarfile.open(target, "w:xz", preset=9) as archive:
        archive.add(site, "site")


def main() -> int:
    """Make the bundle and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fast.bundle")
    parser.add_argument("--python", default="3.12", help="the host's Python; default: 3.12")
    parser.add_argument("--to", type=Path, default=Path("dist"), help="folder; default: dist")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    target = options.to / f"cachelaw-device-cp{options.python.replace('.', '')}.tar.xz"
    with TemporaryDirectory() as scratch:
        wheels = fetch(options.python, Path(scratch))
        pack(wheels, Path(scratch) / "site", target)
        for wheel in wheels:
            print(wheel.name)
    print(f"{target}: {target.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
