"""Hosts: which editions' managers could construct and drive a policy, and what breaks elsewhere.

A host calls certain methods with a certain number of arguments. Whether a policy takes these calls
shows in its signatures. Nothing is called here but the constructor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cachelaw.conformance.plain import counted
from cachelaw.reference.editions import EDITIONS, Edition


class Unusable(Exception):
    """The subject, or what was said of it, cannot be used. One line: what, and what to do."""


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Whether a host of one edition could run a subject.

    Attributes:
        edition: the host's edition.
        runs: whether it could; None if that could not be found out.
        breaks: what breaks there, or why it is not known; empty if it runs.
    """

    edition: Edition
    runs: bool | None
    breaks: str = ""


def builder(
    name: str, factory: Callable[..., Any], parameters: Mapping[str, Any]
) -> Callable[[int], Any]:
    """Return what makes an instance as hosts make it: by keyword, if the factory knows it.

    What is returned raises `Unusable` where the factory raises.

    Args:
        name: the subject's name, for messages.
        factory: a class, or anything that takes the capacity.
        parameters: what else the constructor is given, by name.
    """
    try:
        inspect.signature(factory).bind(cache_capacity=1, **parameters)
        by_keyword = True
    except (TypeError, ValueError):
        by_keyword = False

    def build(capacity: int) -> Any:
        try:
            if by_keyword:
                return factory(cache_capacity=capacity, **parameters)
            return factory(capacity, **parameters)
        except (Exception, SystemExit) as error:
            line = str(error).splitlines()[0] if str(error) else ""
            raise Unusable(
                f"{name} cannot be constructed from the capacity {capacity}: "
                f"{type(error).__name__}: {line[:200]}"
            ) from error

    return build


def host_calls(edition: Edition) -> dict[str, int]:
    """Return the methods that a host of `edition` calls, with the number of arguments."""
    calls = {"get": 1, "insert": 2, "remove": 1, "touch": 1, "evict": 2}
    if edition.touch_takes_context:
        calls["touch"] = 2
    if edition.has_clear:
        calls["clear"] = 0
    if edition.has_marks:
        calls |= {"mark_evictable": 1, "mark_non_evictable": 1}
    if edition.has_request_hooks:
        calls |= {"on_store_miss": 2, "on_request_finished": 4}
    if edition.has_request_access:
        calls |= {"on_request_access": 2, "insert": 3}
    return calls


def compatibility(build: Callable[[int], Any]) -> tuple[Compatibility, ...]:
    """Say of every edition whether its host could drive what `build` makes.

    Raises:
        Unusable: it cannot be constructed.
    """
    policies = [build(capacity) for capacity in (1, 64, 2)]
    misfits = [(edition, misfit(policies[-1], edition)) for edition in EDITIONS]
    return tuple(Compatibility(edition, why is None, why or "") for edition, why in misfits)


def misfit(policy: Any, edition: Edition) -> str | None:
    """Say why a host of `edition` could not drive `policy`, None if it could."""
    return mismatch(policy, edition, host_calls(edition))


def mismatch(driven: Any, edition: Edition, calls: Mapping[str, int]) -> str | None:
    """Say which of these calls an object does not take, None if it takes them all."""
    for method, count in calls.items():
        bound = getattr(driven, method, None)
        if not callable(bound):
            return f"it has no method {method}"
        try:
            inspect.signature(bound).bind(*range(count))
        except TypeError:
            given = counted(count, "argument")
            return f"hosts of {edition} call {method} with {given}, which it does not take"
        except ValueError:
            continue  # a compiled method that has no signature to look at
    return None
