"""What is said where a device cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cachelaw.fast.cuda import DeviceError, require_device
from cachelaw.fast.curves import lru_curve
from cachelaw.fast.lane_policy import LaneLRU
from cachelaw.fast.lanes import LaneSpec, Trace, replay


def cuda_is_here() -> bool:
    import torch

    return torch.cuda.is_available()


def test_there_is_no_other_device() -> None:
    with pytest.raises(ValueError, match="no device 'tpu'; there are cpu, cudasim, cuda"):
        require_device("tpu")
    with pytest.raises(ValueError, match="no device 'tpu'"):
        replay(Trace([1, 2]), [LaneSpec("lru", 1)], "tpu")


@pytest.mark.skipif(cuda_is_here(), reason="there is CUDA here")
def test_without_cuda_one_line_says_so() -> None:
    for use in (
        lambda: replay(Trace([1, 2]), [LaneSpec("lru", 1)], "cuda"),
        lambda: lru_curve(Trace([1, 2]), "cuda"),
        lambda: LaneLRU(4, device="cuda"),
    ):
        with pytest.raises(DeviceError) as raised:
            use()
        assert "needs CUDA" in str(raised.value)
        assert "device='cpu'" in str(raised.value)
        assert "\n" not in str(raised.value)


def test_the_simulator_has_to_be_chosen() -> None:
    with pytest.raises(DeviceError, match="NUMBA_ENABLE_CUDASIM=1"):
        LaneLRU(4, device="cudasim")


def test_the_simulator_is_not_taken_for_a_gpu() -> None:
    program = (
        "from cachelaw.fast.cuda import DeviceError, require_device\n"
        "require_device('cudasim')\n"
        "try:\n    require_device('cuda')\n"
        "except DeviceError as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "device 'cuda' is hidden by NUMBA_ENABLE_CUDASIM: unset it\n"


@pytest.mark.skipif(not cuda_is_here(), reason="there is no CUDA here")
def test_a_gpu_counts_what_the_cpu_counts() -> None:
    import random

    from tests.fast.lanes.programs import fuzz
    from tests.fast.lanes.test_replay import random_lanes, random_requests

    rng = random.Random(6)
    trace = Trace.of_requests(random_requests(rng, 200, 40))
    lanes = random_lanes(rng, 500)
    for semantics in ("requests", "references"):
        here, there = (replay(trace, lanes, d, semantics=semantics) for d in ("cpu", "cuda"))
        assert here.hits.tolist() == there.hits.tolist()
        assert here.evictions.tolist() == there.evictions.tolist()
        assert here.targets.tolist() == there.targets.tolist()
    assert lru_curve(trace).hits.tolist() == lru_curve(trace, "cuda").hits.tolist()
    assert fuzz(seed=8, lanes=300, events=80, device="cuda")[1] == []
