"""The filter of vLLM 0.21, brought into the form of v0.20.

In 0.21 every method but `take_events` is given the request's context, and keys come as collections
that can be walked more than once. The clauses and the rest of the edition are those of v0.20; so
such a filter is driven through one adapter in front of it and one behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from cachelaw.reference.context import ReqContext
from cachelaw.reference.manager import (
    LoadStoreSpec,
    OffloadingEvent,
    OffloadingManagerV020,
    PrepareStoreOutput,
)


class BackingV021:
    """A manager of v0.20, to be put behind a filter of vLLM 0.21.

    Args:
        backing: the manager.
        context: the one that calls must bring which v0.20 makes without a context.
    """

    def __init__(self, backing: OffloadingManagerV020, context: ReqContext) -> None:
        self._backing = backing
        self._context = context

    def lookup(self, key: Any, req_context: ReqContext) -> bool | None:
        """Pass on."""
        return self._backing.lookup(key, req_context)

    def prepare_load(self, keys: Iterable[Any], req_context: ReqContext) -> LoadStoreSpec:
        """Pass on."""
        return self._backing.prepare_load(keys, req_context)

    def prepare_store(
        self, keys: Iterable[Any], req_context: ReqContext
    ) -> PrepareStoreOutput | None:
        """Pass on."""
        return self._backing.prepare_store(keys, req_context)

    def touch(self, keys: Iterable[Any], req_context: ReqContext) -> None:
        """Pass on without the context."""
        self._check(req_context)
        self._backing.touch(keys)

    def complete_load(self, keys: Iterable[Any], req_context: ReqContext) -> None:
        """Pass on without the context."""
        self._check(req_context)
        self._backing.complete_load(keys)

    def complete_store(
        self, keys: Iterable[Any], req_context: ReqContext, success: bool = True
    ) -> None:
        """Pass on without the context."""
        self._check(req_context)
        self._backing.complete_store(keys, success)

    def take_events(self) -> Iterable[OffloadingEvent]:
        """Pass on."""
        return self._backing.take_events()

    def _check(self, context: ReqContext) -> None:
        if context is not self._context:
            raise ValueError("the backing is given another context than the filter was")


class FilterV021:
    """A filter of vLLM 0.21, to be driven as one of v0.20.

    Args:
        factory: makes the filter.
        backing: a manager of v0.20.
        arguments: what the filter is made with besides.
    """

    def __init__(
        self, factory: Callable[..., Any], backing: OffloadingManagerV020, **arguments: int
    ) -> None:
        self._context = ReqContext("r1")
        self.filter = factory(BackingV021(backing, self._context), **arguments)

    def lookup(self, key: Any, req_context: ReqContext) -> Any:
        """Pass on."""
        return self.filter.lookup(key, req_context)

    def prepare_load(self, keys: Iterable[Any], req_context: ReqContext) -> Any:
        """Pass on a collection."""
        return self.filter.prepare_load(list(keys), req_context)

    def prepare_store(self, keys: Iterable[Any], req_context: ReqContext) -> Any:
        """Pass on a collection."""
        return self.filter.prepare_store(list(keys), req_context)

    def touch(self, keys: Iterable[Any]) -> Any:
        """Pass on a collection and a context."""
        return self.filter.touch(list(keys), self._context)

    def complete_load(self, keys: Iterable[Any]) -> Any:
        """Pass on a collection and a context."""
        return self.filter.complete_load(list(keys), self._context)

    def complete_store(self, keys: Iterable[Any], success: bool = True) -> Any:
        """Pass on a collection and a context."""
        return self.filter.complete_store(list(keys), self._context, success)

    def take_events(self) -> Any:
        """Pass on."""
        return self.filter.take_events()
