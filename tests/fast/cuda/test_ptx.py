"""The kernels compiled for an H200 without one: what their arithmetic becomes.

That they compile says that nothing in them is beyond a GPU. Of the numbers only ARC's target is no
integer, and it has to be CPython's double to the last bit: no multiplication may be fused with an
addition, and no division be approximate.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from types import SimpleNamespace
from typing import Any

import pytest

from cachelaw.fast.lane_kernels import Lane, Plan

H200 = (9, 0)


@pytest.fixture(scope="module")
def types() -> Any:
    """Return numba's types, if kernels can be compiled here."""
    if importlib.util.find_spec("numba_cuda") is None:
        absent("numba-cuda is not installed")
    config: Any = importlib.import_module("numba.core.config")
    if config.ENABLE_CUDASIM:
        pytest.skip("the simulator compiles nothing")
    pathfinder: Any = importlib.import_module("cuda.pathfinder")

    for library in ("nvvm", "nvrtc"):
        try:
            pathfinder.load_nvidia_dynamic_lib(library)
        except pathfinder.DynamicLibNotFoundError:
            absent(f"{library} is not installed: pip install nvidia-nvvm nvidia-cuda-nvrtc")
    from numba import types

    return types


def absent(reason: str) -> None:
    """Skip, but fail in CI: a check that never runs would look green there."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def arguments(types: Any) -> dict[str, tuple[Any, ...]]:
    """Return the types of each kernel's arguments, as a replay passes them."""
    number, numbers, bits = types.int64, types.int64[::1], types.int8[:, ::1]
    table, keys = types.int64[:, ::1], types.int32[::1]
    lane = types.NamedTuple(
        (types.int32[:, ::1], bits, bits, bits, table, numbers, table, types.float64[:, ::1]), Lane
    )
    plan = types.NamedTuple((numbers,) * 4, Plan)
    seen = types.int32[:, ::1]
    return {
        "clear_lanes": (lane,),
        "serve_lanes": (lane, plan, keys, seen, numbers, number, number, table),
        "refer_lanes": (lane, plan, keys, seen, number, number, table),
        "refer_windows": (plan, keys, keys, number, number, table, table),
        "perform_lanes": (lane, plan, numbers, numbers, table),
    }


def test_every_kernel_has_its_arguments_here(types: Any) -> None:
    from cachelaw.fast import cuda_kernels

    kernels = {name for name, value in vars(cuda_kernels).items() if hasattr(value, "py_func")}
    assert kernels - {"lane_at"} == set(arguments(types))


@pytest.mark.parametrize(
    ("name", "divides"),
    [
        ("clear_lanes", False),
        ("serve_lanes", True),
        ("refer_lanes", True),
        ("refer_windows", False),
        ("perform_lanes", True),
    ],
)
def test_kernels_compile_and_keep_to_ieee(
    name: str, divides: bool, types: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachelaw.fast import cuda_kernels

    dispatcher = importlib.import_module("numba.cuda.dispatcher")

    # Functions called by a kernel ask the driver what to compile for, and there is no driver.
    device = SimpleNamespace(compute_capability=H200)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    ptx, _ = cuda_kernels.cuda.compile(
        getattr(cuda_kernels, name).py_func,
        types.void(*arguments(types)[name]),
        cc=H200,
        output="ptx",
        abi="numba",
        device=False,
    )
    assert ".target sm_90" in ptx
    operations = set(re.findall(r"\b(\w+(?:\.\w+)*\.f64)\b", ptx))
    assert not [operation for operation in operations if operation.startswith(("fma", "mad"))]
    assert not [operation for operation in operations if ".approx" in operation]
    assert ("div.rn.f64" in operations) == divides
