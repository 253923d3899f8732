"""The worker: the process in which a subject runs.

Started by `supervisor.py` with a file that holds the job, a file to record in, and the number of an
open file to report over. Everything the subject prints goes elsewhere. A job is one of these:

- `certify`: judge the subject, from the start or from where another worker came to its end;
- `hosts`: say which hosts could drive it;
- `try`: run traces one after the other, saying before each which one it is;
- `diff`: search for a difference between it and another;
- `replay`: run a counterexample again.
"""

from __future__ import annotations

import base64
import ctypes
import errno
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from cachelaw.conformance import difference, flight
from cachelaw.conformance.certify import budget_for, certify
from cachelaw.conformance.course import Course
from cachelaw.conformance.diagnosis import diagnose
from cachelaw.conformance.filters.search import filter_experiment
from cachelaw.conformance.filters.trace import FilterTrace, filter_trace_from_json
from cachelaw.conformance.finding import Finding, lockstep_experiment, twin_experiment
from cachelaw.conformance.replay import carried_out
from cachelaw.conformance.reports.data import as_json
from cachelaw.conformance.subject import Subject, Unusable, Wanted, find
from cachelaw.conformance.supervisor import DONE
from cachelaw.conformance.trace import trace_from_json

DIE_WITH_PARENT = 1
"""The number of Linux's prctl for a signal at the parent's end."""


class Reporter:
    """Reports to the parent, over a file that the subject can reach as well.

    Args:
        file: the number of the open file.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._id = _identity(file)
        self._sent = 0

    def say(self, message: dict[str, Any]) -> None:
        """Send one message. If there is no room for it, this process ends."""
        flight.recorder.check()
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                written = os.write(self._file, data)
                self._sent += written
                data = data[written:]
        except OSError:
            flight.recorder.check()
            flight.recorder.end(flight.NO_ROOM)

    def keep(self, path: Path, data: bytes) -> None:
        """Put data into a file in place of what it held, at once. As with `say`."""
        try:
            new = path.with_suffix(".new")
            new.write_bytes(data)
            new.replace(path)
        except OSError:
            flight.recorder.end(flight.NO_ROOM)

    def meddled(self) -> int:
        """Return which of `flight.MEDDLED` has happened: is our place in the file another's?"""
        try:
            if os.lseek(self._file, 0, os.SEEK_CUR) == self._sent:
                return 0
            return 1 if _identity(self._file) == self._id else 2
        except OSError:
            return 2


def _identity(file: int) -> tuple[int, int]:
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def main() -> None:
    """Do the job."""
    _die_with_parent()
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    reporter = Reporter(int(sys.argv[3]))
    try:
        subject = find(
            Wanted(**job["wanted"]), announce=lambda line: reporter.say({"announce": line})
        )
        flight.install(Path(sys.argv[2]), reporter.meddled)
        flight.recorder.beat()
        JOBS[job["job"]](job, subject, reporter)
    except Unusable as error:
        reporter.say({"unusable": str(error)})
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            flight.recorder.end(flight.NO_ROOM)
        reporter.say({"bug": traceback.format_exc()})
    reporter.say(DONE)
    os._exit(0)  # threads that the subject has left behind must not keep this process


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)


# --- Jobs ---


def _certify(job: dict[str, Any], subject: Subject, reporter: Reporter) -> None:
    course = Course() if job["course"] is None else Course.from_bytes(_bytes(job["course"]))
    course.unit += job["skip"]
    course.cut = job["cut"]
    for plain in job["deaths"]:
        if plain["again"]:
            finding: Finding[Any] = Finding(
                plain["clause"],
                _trace(plain["trace"]),
                "the call returns",
                f"the subject's process {plain['says']}",
                "death",
            )
            course.found[finding.clause] = finding
        else:
            course.clouded[plain["clause"]] = (
                f"the subject's process {plain['says']}, in a run that did not end so again"
            )

    def reached(course: Course) -> None:
        # The last counts alone, so it takes the place of the one before.
        reporter.keep(Path(sys.argv[1]).with_name("course"), course.as_bytes())

    report = certify(
        subject,
        budget_for(subject, job["budget"]),
        job["seed"],
        lambda line: reporter.say({"progress": line}),
        course=course,
        reached=reached,
    )
    # A subject that has brought its process down would do it again.
    puzzling = bool(report.violations) and not job["deaths"]
    diagnosis = diagnose(subject, report.budget, report.seed) if puzzling else []
    flight.recorder.begin("report")
    reporter.say({"report": as_json(report, diagnosis=diagnosis, deaths=job["deaths"])})


def _hosts(job: dict[str, Any], subject: Subject, reporter: Reporter) -> None:
    reporter.say({"fits": [edition.name for edition in subject.fits]})


def _try(job: dict[str, Any], subject: Subject, reporter: Reporter) -> None:
    """Run experiments one after the other; whichever is the last has not come to its end."""
    for number, plain in enumerate(job["traces"]):
        reporter.say({"trying": number})
        trace = _trace(plain)
        if isinstance(trace, FilterTrace):
            filter_experiment(subject)(trace)
        elif job["how"] == "twin":
            twin_experiment(subject, job["clause"])(trace)
        else:
            lockstep_experiment(subject)(trace)


def _trace(plain: dict[str, Any]) -> Any:
    return filter_trace_from_json(plain) if "store_threshold" in plain else trace_from_json(plain)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _replay(job: dict[str, Any], subject: Subject, reporter: Reporter) -> None:
    reporter.say({"replayed": carried_out(job)})


def _diff(job: dict[str, Any], subject: Subject, reporter: Reporter) -> None:
    found = difference.carried_out(
        job,
        subject,
        lambda line: reporter.say({"progress": line}),
        lambda line: reporter.say({"announce": line}),
    )
    reporter.say({"difference": found})


JOBS = {"certify": _certify, "hosts": _hosts, "try": _try, "replay": _replay, "diff": _diff}

if __name__ == "__main__":
    main()
