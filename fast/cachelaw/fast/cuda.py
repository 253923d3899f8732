"""Devices: the CPU, a CUDA GPU, and numba's simulator of one.

Arrays are made here, so that nobody else has to know where they lie: on the CPU in NumPy arrays
over the memory of torch tensors, on a GPU in torch CUDA tensors, which kernels see in place.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
import torch

Array = Any
"""What kernels on the device take for an array."""

DEVICES = ("cpu", "cudasim", "cuda")


class DeviceError(RuntimeError):
    """A device cannot be used. One line: which, why, and what to do."""


def require_device(device: str) -> str:
    """Return `device` if lanes can run on it.

    Args:
        device: `cpu`, `cudasim` (numba's CUDA simulator, slow, for tests) or `cuda`.

    Raises:
        ValueError: there is no such device.
        DeviceError: it cannot be used here.
    """
    if device not in DEVICES:
        raise ValueError(f"there is no device {device!r}; there are {', '.join(DEVICES)}")
    if device == "cpu":
        return device
    if find_spec("numba_cuda") is None:
        raise DeviceError(
            f"device {device!r} needs numba-cuda, which is not installed: "
            "pip install 'cachelaw[fast,cuda]'"
        )
    config: Any = numba.config
    simulated = bool(config.ENABLE_CUDASIM)
    if device == "cudasim":
        if not simulated:
            raise DeviceError(
                "device 'cudasim' needs the environment variable NUMBA_ENABLE_CUDASIM=1, set "
                "before numba is imported"
            )
        return device
    if simulated:
        raise DeviceError("device 'cuda' is hidden by NUMBA_ENABLE_CUDASIM: unset it")
    if not torch.cuda.is_available():
        raise DeviceError("device 'cuda' needs CUDA, and torch finds none here: use device='cpu'")
    if not _cuda().is_available():
        raise DeviceError(
            "device 'cuda' needs CUDA, and numba-cuda finds no driver here: use device='cpu'"
        )
    return device


def to_device(array: Array, device: str) -> Array:
    """Return what kernels on `device` take for a NumPy array: its contents on the device.

    On `cuda` they lie in a torch tensor, which the result keeps alive.
    """
    if device == "cpu":
        return array
    if device == "cudasim":
        return _cuda().to_device(array)
    if array.size == 0:  # there is no address for nothing, and no kernel looks at it
        array = np.zeros([1] * array.ndim, array.dtype)
    return _cuda().as_cuda_array(torch.from_numpy(array).to("cuda"))


def zeros(shape: tuple[int, ...], dtype: str, device: str) -> Array:
    """Return an array of zeros that kernels on `device` can write."""
    if device == "cuda":
        return _cuda().as_cuda_array(torch.zeros(shape, dtype=getattr(torch, dtype), device="cuda"))
    return to_device(torch.zeros(shape, dtype=getattr(torch, dtype)).numpy(), device)


def to_host(array: Array, device: str) -> Array:
    """Return the contents of an array on `device` as a NumPy array, when kernels are done."""
    return array if device == "cpu" else array.copy_to_host()


def _cuda() -> Any:
    import numba.cuda

    return numba.cuda
