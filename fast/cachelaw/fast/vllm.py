"""The module that a vLLM host loads: `"cache_policy_module_path": "cachelaw.fast.vllm"`.

`LRU` and `ARC` follow the semantics of the host's own release, so that nothing but the speed
changes. `LRUv024`, `LRUv031`, `LRUv033`, `ARCv024`, `ARCv030`, `ARCv031` and `ARCv033` have those
of one edition on whatever host; so does `policy("lru", edition="v0.31")` in a module of one's own.
On a host that does not make the calls which an edition lives on, what comes with them does not
happen.

It can only be imported inside vLLM, from 0.27 on.
"""

from __future__ import annotations

from typing import Any

from cachelaw.fast import arc, lru
from cachelaw.fast.host import adapt, edition_of_host, host_base
from cachelaw.fast.table import warm_up
from cachelaw.reference.editions import V024, V030, V031, V033, Edition, edition_named

_LRU = ((V033, lru.RankedLRU), (V031, lru.ListLRU), (V024, lru.EvictableLRU))
_ARC = ((V031, arc.ARC), (V030, arc.TouchedARC), (V024, arc.RefusingARC))


def policy(name: str, *, edition: str | None = None) -> type[Any]:
    """Return a fast policy as this host's own.

    Args:
        name: `lru` or `arc`.
        edition: whose semantics it has, `v0.24` or newer; None takes those of the host.

    Raises:
        ValueError: there is no policy or no edition of that name here.
    """
    known = {"lru": _LRU, "arc": _ARC}.get(name.lower())
    if known is None:
        raise ValueError(f"there is no fast policy {name!r}; there are lru and arc")
    base = host_base()
    chosen: Edition = edition_named(edition) if edition else edition_of_host(base)
    for since, made in known:
        if chosen >= since:
            return adapt(made, base)
    raise ValueError(f"cachelaw.fast has no edition older than v0.24, not {chosen}")


LRU, ARC = policy("lru"), policy("arc")
LRUv024, LRUv031, LRUv033 = (policy("lru", edition=name) for name in ("v0.24", "v0.31", "v0.33"))
ARCv024, ARCv030 = policy("arc", edition="v0.24"), policy("arc", edition="v0.30")
ARCv031, ARCv033 = policy("arc", edition="v0.31"), policy("arc", edition="v0.33")

warm_up()
