"""Supervision: a job done by a fresh interpreter, which is watched while it does it.

The subject is somebody else's code. It may crash, leave, loop, eat memory or print whatever it
likes, and none of that may reach the process that judges it. So the parent starts a child, never by
fork, reads what the child reports in a file of its own, takes signs of life and the size of the
child's memory again and again, and ends the child with all its processes when it has to.
"""

from __future__ import annotations

import base64
import errno
import json
import mmap
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cachelaw.conformance import flight
from cachelaw.conformance.flight import Flight

_LOOK = 0.05
"""Seconds between two looks at a child."""

_MOST = 1 << 16
"""Bytes read at a time."""

DONE = {"done": True}
"""The last message of a child that has done its job."""

_SHOWN = 400
"""Bytes kept of what a subject prints."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a subject may take.

    Attributes:
        seconds: without a sign of life, which means within one event. Ten are thousands of times
            what an event takes.
        mebibytes: of resident memory, in any one process, interpreter and suite included.
        loading: seconds for being imported and made for the first time.
    """

    seconds: float = 10.0
    mebibytes: int = 2048
    loading: float = 120.0


@dataclass(frozen=True, slots=True)
class Death:
    """How a child came to its end.

    Attributes:
        says: what happened, in words that complete "the process of the subject ...".
        flight: what it was doing; None if it had not begun to run the subject.
        hung: whether it ran into the limit of time.
    """

    says: str
    flight: Flight | None
    hung: bool = False


@dataclass(slots=True)
class Printed:
    """What a subject wrote to its standard output and error.

    Attributes:
        size: how many bytes.
        start: the first of them.
    """

    size: int = 0
    start: bytes = b""

    def take(self, data: bytes) -> None:
        """Take in more."""
        self.start = (self.start + data)[:_SHOWN]
        self.size += len(data)


@dataclass(slots=True)
class Outcome:
    """What came of a job, besides the messages.

    Attributes:
        death: how the child came to its end before it was done; None if it was done.
        printed: what the subject printed.
    """

    death: Death | None = None
    printed: Printed = field(default_factory=Printed)


def carry_out(
    job: dict[str, Any],
    limits: Limits,
    told: Callable[[dict[str, Any]], None],
) -> Outcome:
    """Have a job done by a child (`worker.py`), and watch it.

    Args:
        job: plain data.
        limits: what the child may take.
        told: given every message of the child as it arrives.

    Returns:
        How it ended, and what it printed.

    Raises:
        OSError: there was no room for the child's reports.
    """
    with tempfile.TemporaryDirectory(prefix="cachelaw-") as folder:
        path = Path(folder, "job.json")
        record = Path(folder, "flight")
        path.write_text(json.dumps(job), encoding="utf-8")
        flight.make(record)
        return _Watch(path, record, limits, told).run()


class _Watch:
    """One child from its start to its end."""

    def __init__(
        self, job: Path, record: Path, limits: Limits, told: Callable[[dict[str, Any]], None]
    ) -> None:
        self._record = record
        self._limits = limits
        self._told = told
        self._outcome = Outcome()
        self._heard = 0
        self._done = False
        self._garbled = False
        self._partial = b""
        reports = job.with_name("reports")
        self._kept = job.with_name("course")
        with reports.open("wb") as writing:
            self._reports = reports.open("rb", buffering=0)
            self._child = subprocess.Popen(
                [
                    *(sys.executable, "-m", "cachelaw.conformance.worker"),
                    *(job, record, str(writing.fileno())),
                ],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(writing.fileno(),),
                start_new_session=True,
            )

    def run(self) -> Outcome:
        """Watch the child until it is done, dead or has to be ended."""
        assert self._child.stdout is not None
        with self._reports, self._child.stdout as printed:
            try:
                says, hung = self._watch(printed)
                self._end()
                self._hear()
                while data := _available(printed):
                    self._outcome.printed.take(data)
            finally:
                self._end()
        if self._kept.exists():
            self._told({"course": base64.b64encode(self._kept.read_bytes()).decode()})
        if not self._done:
            # What was done to the reports the child finds out before its next event.
            why = flight.why_ended(self._record) or int(self._garbled)
            if why == flight.NO_ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())
            says = flight.MEDDLED[why] or says or _ending(self._child.returncode)
            self._outcome.death = Death(says, flight.read(self._record), hung)
        return self._outcome

    def _watch(self, printed: IO[bytes]) -> tuple[str, bool]:
        """Return why the child has to be ended, nothing if it ended itself, and if it hung."""
        with (
            self._record.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory,
            selectors.DefaultSelector() as selector,
        ):
            os.set_blocking(printed.fileno(), False)
            selector.register(printed, selectors.EVENT_READ)
            beats, since = 0, time.monotonic()
            while self._child.poll() is None and not self._done:
                for key, _ in selector.select(_LOOK):
                    if data := os.read(key.fd, _MOST):
                        self._outcome.printed.take(data)
                    else:
                        selector.unregister(printed)
                if not selector.get_map():
                    time.sleep(_LOOK)
                self._hear()
                counted = flight.beats(memory) + self._heard
                limit = self._limits.seconds if flight.beats(memory) else self._limits.loading
                if counted != beats and not self._garbled:
                    beats, since = counted, time.monotonic()
                elif time.monotonic() - since > limit:
                    return f"gave no answer for {limit:g} seconds", True
                if _resident(self._child.pid) > self._limits.mebibytes:
                    return f"grew beyond {self._limits.mebibytes} MiB of memory", False
        return "", False

    def _hear(self) -> None:
        """Take in what the child has reported since."""
        while not self._garbled and (data := self._reports.read(_MOST)):
            *lines, self._partial = (self._partial + data).split(b"\n")
            for line in lines:
                try:
                    message = json.loads(line)
                except ValueError:
                    self._garbled = True
                    return
                if message == DONE:
                    self._done = True
                else:
                    self._heard += 1
                    self._told(message)

    def _end(self) -> None:
        """End the child and every process that it has started."""
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()


def _available(pipe: IO[bytes]) -> bytes:
    """Return what is in a pipe at this moment, or a part of it."""
    try:
        return os.read(pipe.fileno(), _MOST)
    except BlockingIOError:
        return b""  # somebody else holds the other end


def _resident(pid: int) -> int:
    """Return the resident memory of a process or of one that it has started, the larger.

    In mebibytes; 0 if the process has ended.
    """
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    children: list[str] = []
    with suppress(OSError):  # not every kernel tells
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    mebibytes = pages * os.sysconf("SC_PAGE_SIZE") >> 20
    return max([mebibytes, *(_resident(int(child)) for child in children)])


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unknown"
    return f"was ended by signal {-status} ({name})"
