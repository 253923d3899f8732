"""Engines: worker processes, all pinned to one CPU, of which one works at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any


class Engine:
    """A worker process.

    Args:
        name: what reports call it.
        cpu: the CPU that it keeps to.
    """

    def __init__(self, name: str, cpu: int) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fast.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ask("pin", cpu=cpu)

    def ask(self, do: str, **arguments: Any) -> Any:
        """Send a command and return its answer.

        Raises:
            RuntimeError: the process has ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"the process of {self.name} ended during {do!r}; see above why")
        return json.loads(line)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured of one engine.

    Attributes:
        samples: one number a round.
    """

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median."""
        return median(self.samples)

    @property
    def spread(self) -> float:
        """The distance between the quartiles, over the median."""
        ordered = sorted(self.samples)
        low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
        return (high - low) / self.median if self.median else 0.0


def ratio(other: Cell, own: Cell) -> Cell:
    """Return how many times longer `other` takes than `own`, round by round."""
    return Cell(tuple(a / b for a, b in zip(other.samples, own.samples, strict=True) if b))


def judged(subject: str) -> str:
    """Certify a subject at the quick budget, and return its verdict and the digest."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = ["certify", subject, "--budget", "quick", "--json", str(path)]
        ran = subprocess.run(
            [sys.executable, "-m", "cachelaw.conformance", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if not path.is_file():
            return f"not certified: {ran.stderr.strip().splitlines()[-1] if ran.stderr else '?'}"
        report = json.loads(path.read_text(encoding="utf-8"))
    certificate = report.get("certificate", {})
    verdict = {0: "conforms", 1: "violates", 3: "undetermined"}.get(ran.returncode, "unknown")
    digest = str(certificate.get("digest", ""))[:16]
    return f"{verdict} ({digest})" if digest else verdict
