"""Any policy inside any vLLM: one adapter between a policy and the host that drives it.

A host of vLLM 0.27 or newer loads a policy by the path of a module, and insists on a subclass of
its own `CachePolicy`. The interface of that class changed with the releases: `touch` got the
request's context, then `insert` did, and hooks were added. So no class written for one release runs
on all.

`adapt` makes the class that a host wants around a policy that is written once, against the newest
interface (`cachelaw.reference.CachePolicy`), and translates:

| Host makes | The policy gets |
|---|---|
| `insert(key, chunk)`, before 0.33 | `insert(key, chunk, context)`, a context of no request |
| a context that knows no positions, before 0.31 | one that answers None |
| no `on_store_miss`, `on_request_finished` or `on_request_access`, before 0.31 or 0.33 | no call |
| `BlockStatus`, before 0.30 | the host's own object, as it is: policies read `ref_cnt` alone |

A module of one's own that a host can load is then two lines:

    from cachelaw.fast.host import adapt
    MyPolicy = adapt(my_package.MyPolicy)

Nothing here knows a policy of this package, or anything of the conformance suite.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from cachelaw.reference.editions import V019, V022, V024, V026, V027, V030, V031, V033, Edition

T = TypeVar("T")

METHODS = ("get", "insert", "remove", "touch", "evict", "clear")
HOOKS = (
    "mark_evictable",
    "mark_non_evictable",
    "on_store_miss",
    "on_request_access",
    "on_request_finished",
)


class NoRequest:
    """The context of a call that comes without one, or with one that knows no positions.

    Args:
        host_context: the context that the host gave, None if it gave none.
    """

    def __init__(self, host_context: Any = None) -> None:
        self.req_id = str(getattr(host_context, "req_id", ""))
        self._host_context = host_context
        self._state: dict[type, Any] = {}

    def get_offload_key_position(self, key: bytes) -> int | None:
        """Return None: the position is not known."""
        return None

    def set_state(self, value: object) -> None:
        """Keep `value` with the host's request if it can keep something."""
        keep = getattr(self._host_context, "set_state", None)
        if keep is None:
            self._state[type(value)] = value
        else:
            keep(value)

    def get_state(self, kind: type[T]) -> T | None:
        """Return what was kept of type `kind`, or None."""
        recall = getattr(self._host_context, "get_state", None)
        return self._state.get(kind) if recall is None else recall(kind)


def host_base() -> Any:
    """Return the class `CachePolicy` of the vLLM that this process runs in.

    Raises:
        ImportError: there is none, or one too old to load a policy from elsewhere.
    """
    try:
        base = importlib.import_module("vllm.v1.kv_offload.cpu.policies.base").CachePolicy
        importlib.import_module("vllm.v1.kv_offload.cpu.policies.factory")
    except (ImportError, AttributeError):
        raise ImportError(
            "a policy can be adapted to a host inside vLLM 0.27 or newer only: "
            "import cachelaw.fast for use without vLLM"
        ) from None
    return base


def edition_of_host(base: Any) -> Edition:
    """Return the edition of a host, by what its `CachePolicy` has.

    Args:
        base: the host's class.
    """
    if hasattr(base, "on_request_access"):
        return V033
    if hasattr(base, "on_request_finished"):
        return V031
    if "ChunkStatus" in vars(importlib.import_module(base.__module__)):
        return V030
    if not getattr(base.__init__, "__isabstractmethod__", False):
        return V027
    if takes(base.touch, 3):
        return V026
    if hasattr(base, "mark_evictable"):
        return V024
    return V022 if hasattr(base, "clear") else V019


def takes(function: Callable[..., Any], count: int) -> bool:
    """Say whether `function` can be called with `count` positional arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


def adapt(policy: Callable[[int], Any], base: Any = None) -> type[Any]:
    """Return the class that a host wants, around a policy.

    Args:
        policy: makes a policy of the newest interface from the capacity; a class as a rule.
        base: the host's `CachePolicy`, None for that of the vLLM that this process runs in.

    Returns:
        A subclass of `base`. Its instances have the policy as `policy`.

    Raises:
        ImportError: `base` is None and this process runs in no vLLM that can load a policy.
    """
    host = base or host_base()
    insert_has_context = takes(host.insert, 4)
    touch_has_context = takes(host.touch, 3)
    contexts_know_positions = edition_of_host(host) >= V031

    def __init__(self: Any, cache_capacity: int) -> None:
        self.cache_capacity = cache_capacity
        made = self.policy = policy(cache_capacity)
        # What needs no translation is called directly: a method here would cost a call more.
        direct = {"get", "remove", "evict", "clear", *HOOKS}
        if insert_has_context:
            direct.add("insert")
        if touch_has_context and contexts_know_positions:
            direct.add("touch")
        for name in direct:
            if hasattr(host, name) and hasattr(made, name):
                vars(self)[name] = getattr(made, name)

    def insert(self: Any, key: bytes, chunk: Any, *context: Any) -> None:
        self.policy.insert(key, chunk, context[0] if context else NoRequest())

    def touch(self: Any, keys: Any, *context: Any) -> None:
        given = context[0] if context else None
        self.policy.touch(keys, given if contexts_know_positions else NoRequest(given))

    body: dict[str, Any] = {name: _passing_on(name) for name in METHODS}
    body |= {"__init__": __init__, "insert": insert, "touch": touch}
    body["__doc__"] = f"{getattr(policy, '__name__', policy)} as a policy of this vLLM."
    return type(f"Adapted{getattr(policy, '__name__', 'Policy')}", (host,), body)


def _passing_on(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any) -> Any:
        return getattr(self.policy, name)(*arguments)

    method.__name__ = name
    return method
