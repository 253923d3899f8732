"""Lanes against the reference, driven by the protocol, on random requests."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from tests.fast.lanes.by_protocol import by_protocol

from cachelaw.fast.lanes import RULES, LaneSpec, Result, Trace, replay

SEMANTICS = ("requests", "references")


def random_requests(rng: random.Random, count: int, keys: int) -> list[list[int]]:
    """Return requests that share prefixes, go back to old ones, and now and then are too long."""
    requests: list[list[int]] = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.4 or not requests:
            first = rng.randrange(keys)
            made = list(range(first, min(keys, first + rng.randint(1, 6))))
        elif kind < 0.7:
            old = rng.choice(requests[-8:])
            made = old[: rng.randint(1, len(old))]
            made += [key for key in rng.sample(range(keys), 2) if key not in made]
        else:
            made = rng.sample(range(keys), rng.randint(1, min(keys, 9)))
        requests.append(made)
    return requests


def random_lanes(rng: random.Random, count: int) -> list[LaneSpec]:
    """Return lanes of every policy and edition, with small capacities, some with a filter."""
    lanes = []
    for i in range(count):
        policy, edition = list(RULES)[i % len(RULES)]
        filtered = rng.random() < 0.4
        lanes.append(
            LaneSpec(
                policy,
                rng.choice((1, 1, 2, 2, 3, 4, 5, 7, 10, 16)),
                edition,
                rng.choice((2, 2, 3)) if filtered else 0,
                rng.choice((None, 1, 2, 5, 9)) if filtered else None,
            )
        )
    return lanes


def counted(result: Result, lane: int) -> tuple[int, int, int, int, int, float]:
    return (
        int(result.hits[lane]),
        int(result.resident[lane]),
        int(result.stores[lane]),
        int(result.evictions[lane]),
        int(result.refusals[lane]),
        float(result.targets[lane]),
    )


def differing(
    requests: Sequence[Sequence[int]], lanes: list[LaneSpec], semantics: str
) -> list[str]:
    """Say of each lane that does not count what the reference counts how they differ."""
    result = replay(Trace.of_requests(requests), lanes, semantics=semantics, threads=1)
    assert result.semantics == semantics
    return [
        f"{spec}: lane {got}, reference {expected}"
        for i, spec in enumerate(lanes)
        if (got := counted(result, i)) != (expected := by_protocol(spec, requests, semantics))
    ]


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("seed", range(12))
def test_lanes_count_what_the_reference_counts(seed: int, semantics: str) -> None:
    rng = random.Random(seed)
    requests = random_requests(rng, 60, rng.choice((5, 12, 25)))
    assert differing(requests, random_lanes(rng, 24), semantics) == []
