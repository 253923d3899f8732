"""The fuzzer of `programs.py`: lanes call by call against the reference."""

from __future__ import annotations

import pytest
from tests.fast.lanes.programs import differing, fuzz, random_specs, record

from cachelaw.fast import lane_kernels as core
from cachelaw.fast import lanes


def test_lanes_answer_what_the_reference_answers() -> None:
    evicted, found = fuzz(seed=1, lanes=240, events=90)
    assert found == []
    assert evicted > 2_000  # or the programs would put nothing to the test


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10, 20))
def test_thousands_of_lanes_answer_what_the_reference_answers(seed: int) -> None:
    assert fuzz(seed, lanes=3_000, events=200)[1] == []


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        (core.LRU_LIST, core.LRU_IDLE),
        (core.LRU_IDLE, core.LRU_LIST),
        (core.LRU_RANKED, core.LRU_LIST),
        (core.ARC_V024, core.ARC),
        (core.ARC, core.LRU_LIST),
    ],
)
def test_the_wrong_lane_is_told(rule: int, other: int, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = [spec for spec in random_specs(2, 60) if spec.rule == rule]
    recorded = [record(i, spec, 120) for i, spec in enumerate(specs)]
    assert differing(recorded, "cpu") == []
    name = next(name for name, number in lanes.RULES.items() if number == rule)
    monkeypatch.setitem(lanes.RULES, name, other)
    if rule == core.ARC:
        monkeypatch.setitem(lanes.RULES, ("arc", "v0.31"), other)
        monkeypatch.setitem(lanes.RULES, ("arc", "v0.33"), other)
    assert differing(recorded, "cpu") != []
