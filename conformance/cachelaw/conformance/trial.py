"""Trials: a subject is certified in processes of its own, and its deaths are part of the verdict.

Where the process of a subject comes to its end, the run is repeated on what it was doing. If it
ends so again, that is a violation with a trace, which is made short by more processes; then another
process takes the run up behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from cachelaw.conformance import releases, replay, reproduction
from cachelaw.conformance.any_trace import AnyTrace
from cachelaw.conformance.certify import Budget
from cachelaw.conformance.filters.history import ELSE, FILTERED, LOOKUP
from cachelaw.conformance.filters.trace import FilterTrace
from cachelaw.conformance.flight import Flight
from cachelaw.conformance.subject import Unusable, Wanted
from cachelaw.conformance.supervisor import Death, Limits, Printed, carry_out
from cachelaw.reference.editions import EDITIONS, Edition, edition_named

MOST_DEATHS = 3
"""Deaths after which the rest of a run is left out."""

MOST_TRIES = 24
"""Processes that may come to their end to make one trace shorter."""

RETURNS = "call/valid-call-returns"
"""The clause that a policy breaks whose process comes to its end."""


def certified(
    wanted: Wanted,
    budget: Budget,
    seed: int,
    limits: Limits,
    progress: Callable[[str], None] = lambda line: None,
    announce: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Certify a subject in processes of its own.

    Args:
        wanted: the subject, and what was said of it.
        budget: how much random search to do.
        seed: what all random choices come from.
        limits: what the subject may take.
        progress: told, now and then, what is going on.
        announce: told of downloads.

    Returns:
        The data of the report.

    Raises:
        Unusable: there is no such subject, or no host could drive it.
    """
    trial = _Trial(wanted, limits, progress, announce)
    data = trial.certify(budget, seed)
    if wanted.host is not None:
        progress("other hosts")
        data["compatibility"] = host_by_host(wanted, limits)
    if data["violations"]:
        progress("running the reproductions")
        reproduction.run_all(data)
    return data


def replayed(job: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Run a counterexample again, in a process of its own.

    Args:
        job: what `replay.job_of` returns.
        limits: what the subject may take.

    Returns:
        What `replay.carried_out` returns; the end of the process is a failure.
    """
    wanted = Wanted(**job["wanted"])
    try:
        heard, death = _Trial(wanted, limits)._work({**job, "job": "replay"})
    except Unusable as error:
        return {"outcome": replay.ERROR, "says": str(error)}
    if death is not None:
        actual = f"the subject's process {death.says}"
        return {"outcome": replay.FAILS, "expected": "the call returns", "actual": actual}
    assert heard.replayed is not None
    return heard.replayed


@dataclass(slots=True)
class _Heard:
    """What a worker has said."""

    course: str | None = None
    report: dict[str, Any] | None = None
    fits: list[str] | None = None
    replayed: dict[str, Any] | None = None
    trying: int = -1


@dataclass(slots=True)
class _Trial:
    """One subject on trial."""

    wanted: Wanted
    limits: Limits
    progress: Callable[[str], None] = lambda line: None
    announce: Callable[[str], None] = lambda line: None
    printed: Printed = field(default_factory=Printed)

    def certify(self, budget: Budget, seed: int) -> dict[str, Any]:
        """Return the data of the report."""
        course: str | None = None
        deaths: list[dict[str, Any]] = []
        while True:
            job = {
                "job": "certify",
                "budget": budget.name,
                "seed": seed,
                "course": course,
                "skip": bool(deaths),
                "cut": "" if len(deaths) < MOST_DEATHS else _cut(deaths),
                "deaths": deaths,
            }
            heard, death = self._work(job)
            if death is None:
                assert heard.report is not None
                heard.report["printed"] = {
                    "bytes": self.printed.size,
                    "start": self.printed.start.decode(errors="replace"),
                }
                return heard.report
            if len(deaths) == MOST_DEATHS:
                raise Unusable(f"{self.wanted.name}: its process {death.says} once more")
            known = any(earlier["again"] for earlier in deaths)
            deaths.append(_noted(death) if known else self._examined(death))
            course = heard.course or course

    def fits(self) -> list[str]:
        """Return the editions whose hosts could drive the subject."""
        heard, death = self._work({"job": "hosts"})
        if death is not None:
            raise Unusable(f"{self.wanted.name}: its process {death.says} while it was loaded")
        assert heard.fits is not None
        return heard.fits

    def _work(
        self, job: dict[str, Any], limits: Limits | None = None
    ) -> tuple[_Heard, Death | None]:
        """Have a job done.

        Raises:
            Unusable: the subject cannot be found, or its process ends while it is loaded.
        """
        heard = _Heard()

        def told(message: dict[str, Any]) -> None:
            match message:
                case {"progress": line}:
                    self.progress(line)
                case {"announce": line}:
                    self.announce(line)
                case {"unusable": line}:
                    raise Unusable(line)
                case {"bug": traceback}:
                    raise RuntimeError(f"the suite's own fault, in its worker:\n{traceback}")
                case {"course": course}:
                    heard.course = course
                case {"report": report}:
                    heard.report = report
                case {"fits": fits}:
                    heard.fits = fits
                case {"replayed": outcome}:
                    heard.replayed = outcome
                case {"trying": number}:
                    heard.trying = number

        outcome = carry_out({**job, "wanted": self.wanted.as_json()}, limits or self.limits, told)
        self.printed.take(outcome.printed.start)
        self.printed.size += outcome.printed.size - len(outcome.printed.start)
        death = outcome.death
        if death is not None and death.flight is None:
            raise Unusable(f"{self.wanted.name}: its process {death.says} while it was loaded")
        return heard, death

    # --- deaths ---

    def _examined(self, death: Death) -> dict[str, Any]:
        """Repeat what killed a process, and say what came of it, as plain data."""
        flight = death.flight
        assert flight is not None
        self.progress(f"its process {death.says}; trying again")
        if flight.trace is None:
            return _noted(death)
        again = self._tried(flight, [flight.trace], self.limits)
        if again is None:
            return _noted(death)
        trace = self._shortened(replace(flight, trace=again[0]), hung=death.hung)
        return {**_noted(replace(death, flight=replace(flight, trace=trace))), "again": True}

    def _tried(
        self, flight: Flight, traces: list[Any], limits: Limits
    ) -> tuple[AnyTrace, Death] | None:
        """Run traces until one kills the process; return what it was, None if none does."""
        job = {
            "job": "try",
            "how": flight.how,
            "clause": flight.clause,
            "traces": [trace.as_json() for trace in traces],
        }
        heard, death = self._work(job, limits)
        if death is None or death.flight is None:
            return None
        recorded = death.flight.trace
        trace = traces[heard.trying] if recorded is None or flight.how == "twin" else recorded
        return trace, death

    def _shortened(self, flight: Flight, *, hung: bool) -> Any:
        """Leave out events of a trace as long as the process still comes to its end."""
        trace: Any = flight.trace
        # Whoever has hung once need not be given all of the time again and again.
        limits = replace(self.limits, seconds=max(0.5, self.limits.seconds / 5))
        tries = 0
        size = max(1, len(trace.events) // 2)
        while tries < (MOST_TRIES // 2 if hung else MOST_TRIES):
            events = trace.events
            candidates = [
                trace.with_events(events[:at] + events[at + size :])
                for at in range(0, len(events), size)
            ]
            tries += 1
            found = self._tried(flight, candidates, limits) if candidates else None
            if found is not None and len(found[0].events) < len(events):
                trace, _ = found
            elif size == 1:
                break
            else:
                size //= 2
        return trace


def _noted(death: Death) -> dict[str, Any]:
    """Return a death as plain data, as long as it has not come about again."""
    flight = death.flight
    assert flight is not None
    return {
        "clause": RETURNS if flight.trace is None else _clause(flight.trace),
        "how": flight.how,
        "says": death.says,
        "again": False,
        "trace": None if flight.trace is None else flight.trace.as_json(),
    }


def _clause(trace: AnyTrace) -> str:
    """Return the clause that a death in the last event of a trace breaks."""
    if not isinstance(trace, FilterTrace):
        return RETURNS
    method = trace.events[-1].method if trace.events else ""
    return {"lookup": LOOKUP, "prepare_store": FILTERED}.get(method, ELSE)


def _cut(deaths: list[dict[str, Any]]) -> str:
    return f"the subject's process came to its end {len(deaths)} times; the rest was not run"


# --- Hosts ---------------------------------------------------------------------------------------

HOST_RELEASES = {
    "v0.19": "0.19.1",
    "v0.20": "0.20.2",
    "v0.22": "0.22.1",
    "v0.24": "0.24.0",
    "v0.26": "0.26.0",
    "v0.27": "0.27.1",
    "v0.30": "0.30.0",
    "v0.31": "0.32.0",
    "v0.33": "0.33.0",
}
"""For each edition, a release of it that stands for its hosts."""


def host_by_host(wanted: Wanted, limits: Limits) -> list[dict[str, Any]]:
    """Try a subject that imports vllm inside a release of each edition.

    Args:
        wanted: the subject; its own host is tried as it is named.
        limits: what the subject may take.

    Returns:
        For each edition whether it `runs`, None if that is not known, and what `breaks`.
    """
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda edition: _inside(wanted, limits, edition), EDITIONS))


def _inside(wanted: Wanted, limits: Limits, edition: Edition) -> dict[str, Any]:
    version = _release_of(edition, wanted)
    row: dict[str, Any] = {"edition": edition.name, "runs": True, "breaks": ""}
    try:
        releases.fetch(version)
    except releases.ReleaseError as error:
        return {**row, "runs": None, "breaks": f"not known: {error}"}
    inside = replace(wanted, host=f"vllm=={version}", edition=edition.name)
    try:
        _Trial(inside, limits).fits()
    except Unusable as error:
        return {**row, "runs": False, "breaks": _without_name(str(error), inside)}
    return row


def _without_name(said: str, wanted: Wanted) -> str:
    """Return what is said of a subject without its name, which is known where it is read."""
    place = wanted.name.rpartition(":")[0]
    for start in (f"{wanted.name} does not fit {wanted.edition}: ", f"{place} ", f"{wanted.name} "):
        said = said.removeprefix(start)
    return said.replace(f"importing {place} raised ImportError: ", "")


def editions_that_run(
    wanted: Wanted, limits: Limits, announce: Callable[[str], None] = lambda line: None
) -> list[Wanted]:
    """Return the subject once for each edition whose host could drive it, oldest first.

    Raises:
        Unusable: there is no such subject, or no host could drive it.
    """
    if wanted.host is None:
        fits = _Trial(replace(wanted, edition=None), limits, announce=announce).fits()
        return [replace(wanted, edition=edition) for edition in fits]
    rows = host_by_host(wanted, limits)
    running = [row["edition"] for row in rows if row["runs"]]
    if not running:
        raise Unusable(f"{wanted.name} runs on no host: {rows[-1]['breaks']}")
    return [
        replace(wanted, edition=name, host=f"vllm=={_release_of(edition_named(name), wanted)}")
        for name in running
    ]


def _release_of(edition: Edition, wanted: Wanted) -> str:
    version = (wanted.host or "").partition("==")[2]
    same = bool(version) and releases.edition_of(version) == edition.name
    return version if same else HOST_RELEASES[edition.name]
