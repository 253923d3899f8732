"""Edition v0.19 (vLLM 0.19) on a tensor: the reuse filter; see `cachelaw.reference.v019`."""

from __future__ import annotations

from cachelaw.fast.reuse_filter import FilterReusedOffloadingManager

__all__ = ["FilterReusedOffloadingManager"]
