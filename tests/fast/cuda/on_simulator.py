"""What is run in a process of its own, with NUMBA_ENABLE_CUDASIM=1; prints findings as JSON."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.fast.lanes.programs import fuzz
from tests.fast.lanes.test_replay import random_lanes, random_requests

from cachelaw.conformance.certify import Budget, certify
from cachelaw.conformance.subject import resolve
from cachelaw.fast.lane_policy import LaneARC, LaneLRU
from cachelaw.fast.lanes import Trace, replay

REDUCED = Budget("reduced", programs=6, events=50, twins=1)


def replays() -> list[str]:
    """Replay on both devices, and say where the results differ."""
    rng = random.Random(5)
    requests = random_requests(rng, 40, 14)
    lanes = random_lanes(rng, 70)  # more than the threads of a block
    found = []
    for semantics in ("requests", "references"):
        trace = Trace.of_requests(requests)
        here, there = (replay(trace, lanes, d, semantics=semantics) for d in ("cpu", "cudasim"))
        for name in ("hits", "resident", "stores", "evictions", "refusals", "targets"):
            if not np.array_equal(getattr(here, name), getattr(there, name)):
                found.append(f"{semantics}: {name} differ")
    return found


def certificates() -> list[dict[str, Any]]:
    """Certify a lane on both devices, at the same reduced budget, and return what matters."""
    found = []
    for kind in (LaneLRU, LaneARC):
        for device in ("cpu", "cudasim"):
            subject = resolve(
                f"cachelaw.fast.lane_policy:{kind.__name__}", parameters={"device": device}
            )
            report = certify(subject, REDUCED, seed=3)
            found.append(
                {
                    "subject": kind.__name__,
                    "device": device,
                    "verdict": report.verdict.name,
                    "calls": report.calls,
                    "laws": {r.law.clause.name: [r.verdict.name, r.met] for r in report.results},
                }
            )
    return found


if __name__ == "__main__":
    evicted, differing = fuzz(seed=4, lanes=66, events=40, device="cudasim")
    print(
        json.dumps(
            {
                "replays": replays(),
                "evicted": evicted,
                "programs": differing,
                "certificates": certificates(),
            }
        )
    )
