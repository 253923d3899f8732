"""Capacities in the thousands: what is wrong there alone is found, what is right passes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance import large
from cachelaw.conformance.finding import Finding, JudgedRun, Tally, lockstep_experiment
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.mutants.zoo.right import Fifo
from cachelaw.conformance.subject import resolve
from cachelaw.reference import v024

RIGHT = Path(__file__).with_name("right.py")


class LosesOneAbove64(Fifo):
    """The 65th resident is stored in a table that evictions forget to look at."""

    def evict(self, n: int, protected: set[Any]) -> Any:
        crowded = len(self.chunks) > 64
        victims = [key for at, key in enumerate(self.idle(protected)) if at != 64 or not crowded]
        return self.hand_over(victims[:n]) if len(victims) >= n else None


class NewestAbove64(v024.LRU):
    """With more than 64 idle chunks the newest leaves first."""

    def evict(self, n: int, protected: set[Any]) -> Any:
        if n == 0 or len(self.state.idle) <= 64:
            return super().evict(n, protected)
        idle = self.state.idle
        self.state = type(self.state)(self.state.resident, idle[::-1])
        victims = super().evict(n, protected)
        self.state = type(self.state)(self.state.resident, self.state.idle[::-1])
        return victims


class LosesOneAbove900(Fifo):
    """The same where 900 chunks must be exceeded."""

    def evict(self, n: int, protected: set[Any]) -> Any:
        idle = self.idle(protected)
        if len(self.chunks) > 900 and len(idle) >= n > 0:
            return self.hand_over(idle[1:n])
        return super().evict(n, protected)


def judged(name: str, tally: Tally | None = None) -> list[Finding]:
    subject = resolve(name if ":" in name else f"{__file__}:{name}")
    return large.judge(subject, tally or Tally(Counter()), seed=1)


def test_a_policy_that_is_wrong_above_64_is_found_out() -> None:
    found = judged("LosesOneAbove64")
    assert found[0].clause == "evict/none-only-when-short"
    assert found[0].how == "lockstep"
    assert 64 < found[0].trace.capacity <= large.READABLE
    # It shows again, at its last event.
    again = lockstep_experiment(resolve(f"{__file__}:LosesOneAbove64"))(found[0].trace)
    assert again[0] == found[0]


def test_a_divergence_above_64_is_found_out() -> None:
    found = judged("NewestAbove64")
    assert [one.clause for one in found] == [DIVERGED]
    assert 64 < found[0].trace.capacity <= large.READABLE


def test_a_finding_that_takes_hundreds_of_chunks_is_kept_as_it_is() -> None:
    found = judged("LosesOneAbove900")
    assert [one.clause for one in found] == ["evict/exact-count"]
    assert found[0].how == "large"
    assert found[0].trace.capacity > 900
    # It shows again, at its last event.
    subject = resolve(f"{__file__}:LosesOneAbove900")
    run = JudgedRun(subject, found[0].trace, Tally(Counter()), thorough=False)
    assert run.live_all() == [Finding(found[0].clause, *_rest(found[0]))]


def _rest(finding: Finding) -> tuple[Any, str, str]:
    return finding.trace, finding.expected, finding.actual


@pytest.mark.parametrize(
    "name", [f"{RIGHT}:Fifo", f"{RIGHT}:S3Fifo", "cachelaw.reference.v024:LRU"]
)
def test_what_is_right_passes(name: str) -> None:
    tally = Tally(Counter())
    assert judged(name, tally) == []
    assert tally.events > sum(one.events for one in large.UNIVERSAL) * 0.9
    assert tally.met["evict/keeps-others"] > 100
