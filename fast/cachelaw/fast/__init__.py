"""LRU, ARC and the reuse filter as people would run them: state in tensors, compiled kernels.

Names here are those of the newest edition that has them; `cachelaw.fast.v031` and its siblings
hold the others. They answer as `cachelaw.reference` does, call for call. `fast/README.md` says how
to use them in vLLM, and what they cost.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cachelaw.fast.extra import require_extra

require_extra()

# Only what is there can be imported.
from cachelaw.fast.v019 import FilterReusedOffloadingManager  # noqa: E402
from cachelaw.fast.v033 import ARC, LRU  # noqa: E402

if TYPE_CHECKING:
    from cachelaw.fast.curves import LruCurve, lru_curve
    from cachelaw.fast.lane_policy import LaneARC, LaneLRU
    from cachelaw.fast.lanes import LaneSpec, Result, Trace, replay

__all__ = [
    "ARC",
    "LRU",
    "FilterReusedOffloadingManager",
    "LaneARC",
    "LaneLRU",
    "LaneSpec",
    "LruCurve",
    "Result",
    "Trace",
    "lru_curve",
    "replay",
]

_SIMULATION = {
    "LaneARC": "lane_policy",
    "LaneLRU": "lane_policy",
    "LaneSpec": "lanes",
    "LruCurve": "curves",
    "Result": "lanes",
    "Trace": "lanes",
    "lru_curve": "curves",
    "replay": "lanes",
}
"""What no host needs is imported when it is first asked for, from these modules."""


def __getattr__(name: str) -> Any:
    if name not in _SIMULATION:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_SIMULATION[name]}"), name)
