"""What the reference classes of all editions share: the chunks themselves.

The functional cores deal in keys alone. A host hands in status objects and wants the same objects
back (`get/same-object`, `evict/same-object`); they are kept here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.policy import Victims, check_capacity


def declaration(profile: str, edition: str, *, specification: bool = True) -> dict[str, str | bool]:
    """Return what a class says of itself to the suite, as its attribute `cachelaw`.

    Args:
        profile: the policy it claims to be, `lru` or `arc`.
        edition: the edition whose semantics it has.
        specification: whether it is written to be read, whatever it costs, as all classes of the
            reference are.
    """
    return {"profile": profile, "edition": edition, "specification": specification}


class Resident:
    """The resident chunks, by key.

    Args:
        cache_capacity: the number of chunks that fit.

    Raises:
        ValueError: `cache_capacity` is not an int of 1 or more.
    """

    def __init__(self, cache_capacity: int) -> None:
        self.cache_capacity = check_capacity(cache_capacity)
        self.chunks: dict[OffloadKey, Any] = {}

    def get(self, key: OffloadKey) -> Any:
        """Return the chunk resident under `key`, or None."""
        return self.chunks.get(key)

    def ref_cnt(self, key: OffloadKey) -> int:
        """Return the ref count of a resident chunk, as the manager keeps it."""
        count: int = self.chunks[key].ref_cnt
        return count

    def hand_over(self, victims: Iterable[OffloadKey] | None) -> Victims | None:
        """Forget the chunks of `victims` and return them with their keys; None stays None."""
        if victims is None:
            return None
        return [(key, self.chunks.pop(key)) for key in victims]
