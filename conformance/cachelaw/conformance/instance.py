"""Instances: one policy, with keys, chunks and request contexts that are its alone.

The protocol speaks of calls on small integers. An instance makes them on a real policy: it turns
keys into bytes, slots into status objects and request names into contexts, with the arguments that
hosts of the edition pass. Nothing is judged here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cachelaw.conformance.contexts import context_class
from cachelaw.reference.context import ReqContext
from cachelaw.reference.keys import make_offload_key
from cachelaw.reference.protocol import Call, Setting

Build = Callable[[int], Any]
"""Makes a policy from a capacity."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How an instance makes its calls. All manners are valid; none may change an answer.

    Attributes:
        fresh_keys: pass a new bytes object each time a key is passed, as hosts do.
        one_shot: pass iterators where the interface says Iterable.
        extra_gets: before each call, call `get` for its keys and for all residents.
    """

    fresh_keys: bool = True
    one_shot: bool = False
    extra_gets: bool = False


HOST_MANNER = Manner()


class Codec:
    """Keys as bytes: the order of the integers is the order of the bytes."""

    def __init__(self, group_of: Callable[[int], int], *, fresh: bool) -> None:
        self._group_of = group_of
        self._fresh = fresh
        self._depths: list[int] = []
        self._in_group: Counter[int] = Counter()
        self._parts: dict[int, tuple[bytes, bytes]] = {}
        self._decoded: dict[bytes, int] = {}

    def encode(self, key: int) -> Any:
        """Return the offload key of `key`."""
        try:
            left, right = self._parts[key]
        except KeyError:
            left, right = self._make(key)
        # Two halves put together are a bytes object of their own.
        return left + right if self._fresh else left

    def _make(self, key: int) -> tuple[bytes, bytes]:
        # Keys of different groups share a block hash, as chunks of the same tokens do: the hash
        # of a key is the number of lower keys in its group.
        while len(self._depths) <= key:
            group = self._group_of(len(self._depths))
            self._depths.append(self._in_group[group])
            self._in_group[group] += 1
        made = make_offload_key(self._depths[key].to_bytes(32, "big"), self._group_of(key))
        self._decoded[made] = key
        parts = self._parts[key] = (made[:18], made[18:]) if self._fresh else (made, b"")
        return parts

    def decode(self, made: Any) -> int | None:
        """Return the integer of an offload key, None if it was never passed."""
        return self._decoded.get(made) if isinstance(made, bytes) else None


class PlainCodec:
    """Keys as they are, for the reference, which takes anything that can be compared."""

    def encode(self, key: int) -> Any:
        """Return `key`."""
        return key

    def decode(self, made: Any) -> int | None:
        """Return `made`."""
        return made if isinstance(made, int) else None


class Instance:
    """A policy under the hands of a manager.

    Args:
        build: makes the policy.
        setting: edition, capacity, groups and positions.
        status: makes a status object from a slot.
        codec: how keys are passed.
        manner: how calls are made.
    """

    def __init__(
        self,
        build: Build,
        setting: Setting[int],
        status: Callable[[int], Any],
        codec: Codec | PlainCodec,
        manner: Manner = HOST_MANNER,
    ) -> None:
        self.setting = setting
        self.codec = codec
        self.chunks: dict[int, Any] = {}
        self.policy = build(setting.capacity)
        self.passed: list[tuple[Any, Any]] = []
        """Collections that the last call passed, each with a copy from before the call."""
        self._status = status
        self._one_shot = manner.one_shot
        self._extra_gets = manner.extra_gets
        self._insert_takes_context = setting.edition.has_request_access
        self._touch_takes_context = setting.edition.touch_takes_context
        self._make_context = context_class(setting.edition)
        self._contexts: dict[str, ReqContext] = {}

    def carry_out(self, call: Call) -> Any:
        """Make one call and return what the policy answered, untouched."""
        self.passed.clear()
        if self._extra_gets:
            for key in (*_keys_in(call), *sorted(self.chunks)):
                self.policy.get(self.codec.encode(key))
        if call.method == "get":  # half of all calls
            return self.policy.get(self.codec.encode(call.arguments[0]))
        return getattr(self, MAKERS[call.method])(*call.arguments)

    def context(self, request: str, keys: Iterable[int] = ()) -> ReqContext:
        """Return the context of `request`, which knows the positions of `keys` if it can."""
        context = self._contexts.get(request)
        if context is None:
            context = self._contexts[request] = self._make_context(request)
        for key in keys:
            position = self.setting.position_of(request, key)
            if position is not None:
                context.set_offload_key_position(self.codec.encode(key), position)
        return context

    def forget(self, request: str) -> None:
        """Let go of a request that has ended; another may have its name."""
        self._contexts.pop(request, None)

    def _insert(self, key: int, slot: int, request: str) -> Any:
        chunk = self.chunks[key] = self._status(slot)
        if self._insert_takes_context:
            context = self.context(request, (key,))
            return self.policy.insert(self.codec.encode(key), chunk, context)
        return self.policy.insert(self.codec.encode(key), chunk)

    def _remove(self, key: int) -> Any:
        answer = self.policy.remove(self.codec.encode(key))
        del self.chunks[key]
        return answer

    def _touch(self, keys: tuple[int, ...], request: str) -> Any:
        if self._touch_takes_context:
            return self.policy.touch(self._iterable(keys), self.context(request, keys))
        return self.policy.touch(self._iterable(keys))

    def _on_store_miss(self, keys: tuple[int, ...], request: str) -> Any:
        return self.policy.on_store_miss(self._iterable(keys), self.context(request, keys))

    def _on_request_access(self, keys: tuple[int, ...], request: str) -> Any:
        return self.policy.on_request_access(self._iterable(keys), self.context(request, keys))

    def _on_request_finished(
        self,
        groups: tuple[tuple[int, ...], ...],
        inserted: frozenset[int],
        reused: frozenset[int],
        request: str,
    ) -> Any:
        encode = self.codec.encode
        context = self.context(request, (key for group in groups for key in group))
        return self.policy.on_request_finished(
            tuple(tuple(encode(key) for key in group) for group in groups),
            self._keep({encode(key) for key in inserted}),
            self._keep({encode(key) for key in reused}),
            context,
        )

    def _evict(self, n: int, protected: frozenset[int]) -> Any:
        return self.policy.evict(n, self._keep({self.codec.encode(key) for key in protected}))

    def _clear(self) -> Any:
        answer = self.policy.clear()
        self.chunks.clear()
        return answer

    def _mark_evictable(self, key: int) -> Any:
        return self.policy.mark_evictable(self.codec.encode(key))

    def _mark_non_evictable(self, key: int) -> Any:
        return self.policy.mark_non_evictable(self.codec.encode(key))

    def _set_ref_cnt(self, key: int, ref_cnt: int) -> None:
        self.chunks[key].ref_cnt = ref_cnt

    def _iterable(self, keys: tuple[int, ...]) -> Any:
        encoded = [self.codec.encode(key) for key in keys]
        return iter(encoded) if self._one_shot else self._keep(encoded)

    def _keep(self, collection: Any) -> Any:
        self.passed.append((collection, collection.copy()))
        return collection


MAKERS = {
    method: f"_{method}"
    for method in (
        *("insert", "remove", "touch", "on_store_miss", "on_request_access"),
        *("on_request_finished", "evict", "clear", "mark_evictable", "mark_non_evictable"),
        "set_ref_cnt",
    )
}
"""The methods of `Instance` that make calls, but for `get`."""


def _keys_in(call: Call) -> Iterator[int]:
    """Yield the keys that a call passes and that `get` may be asked for."""
    match call.method:
        case "touch" | "on_store_miss" | "on_request_access":
            yield from call.arguments[0]
        case "evict":
            yield from sorted(call.arguments[1])
        case "on_request_finished":
            for group in call.arguments[0]:
                yield from group
        case "get" | "mark_evictable" | "mark_non_evictable":
            yield call.arguments[0]
