"""Pairs of functions that must not differ: one of the core, and its counterpart that is fast.

Each pair has two functions of the same numbers, one that asks the core and one that asks the
counterpart, and a third that is wrong on purpose. `differences.py` lets CrossHair run the first two
side by side on symbolic numbers. Numbers beyond the bound are answered None by both, so that the
bound is part of the functions; a key that goes into a mapping becomes concrete there, and CrossHair
tries every key within the bound.

To add a pair, write its functions and a line of `PAIRS`. Arithmetic of floats is no good: on the
target of ARC CrossHair was not through after minutes (`test_adaptation.py` enumerates it).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

from cachelaw.reference import arc, textbook_arc
from cachelaw.reference.reuse_filter import FilterReusedOffloadingManagerV019, observe_all


class Pair(NamedTuple):
    """A function of the core and its counterpart.

    Attributes:
        core: asks the core.
        counterpart: asks what stands for it.
        wrong: asks a counterpart with a slip; CrossHair has to tell it from the core.
        what: which two are compared.
        bound: the arguments for which they are.
        seconds: how long it took to go through all paths when it was measured.
        needs: a module without which the counterpart cannot be imported, empty if there is none.
    """

    core: Callable[..., Any]
    counterpart: Callable[..., Any]
    wrong: Callable[..., Any]
    what: str
    bound: str
    seconds: float
    needs: str = ""

    @property
    def name(self) -> str:
        """The name: that of the function that asks the core."""
        return self.core.__name__

    @property
    def is_there(self) -> bool:
        """Whether the counterpart can be asked here."""
        return not self.needs or find_spec(self.needs) is not None


# --- The tracker of the reuse filter: a tuple, and an ordered mapping ----------------------------

TRACKED = 2


def tracker(first: int, second: int, third: int) -> tuple[tuple[int, int], ...] | None:
    """Observe three keys with the core."""
    keys = (first, second, third)
    return observe_all((), keys, TRACKED) if all(0 <= key <= 2 for key in keys) else None


class _NoManager:
    """Stands behind the filter; nobody looks at what it answers."""

    def lookup(self, keys: Any) -> None: ...


def tracker_of_the_class(first: int, second: int, third: int) -> tuple[tuple[int, int], ...] | None:
    """Observe three keys with the filter's class."""
    return _observed_by(FilterReusedOffloadingManagerV019, (first, second, third))


class _DropsTheMostRecent(FilterReusedOffloadingManagerV019):
    def _observe(self, key: Any) -> None:
        if key not in self.counts and len(self.counts) >= self.max_tracker_size:
            self.counts.popitem()
        self.counts[key] = self.counts.pop(key, 0) + 1


def tracker_with_a_slip(first: int, second: int, third: int) -> tuple[tuple[int, int], ...] | None:
    """Observe three keys with a class that drops the wrong one."""
    return _observed_by(_DropsTheMostRecent, (first, second, third))


def _observed_by(made: Any, keys: tuple[int, ...]) -> tuple[tuple[int, int], ...] | None:
    if not all(0 <= key <= 2 for key in keys):
        return None
    seen = made(_NoManager(), 2, TRACKED)
    seen.lookup(keys)
    return tuple(seen.counts.items())


# --- The textbook's ARC: functions, and a class with ordered mappings ----------------------------

WARM = (0, 0, 1, 2, 1, 3, 4, 3)
"""Requested before, at capacity 3: every list is then in use, and the target above 0."""


def textbook(first: int, second: int) -> tuple[object, ...] | None:
    """Serve two keys with the functions."""
    if not all(0 <= key <= 5 for key in (first, second)):
        return None
    state: textbook_arc.TextbookState[int] = textbook_arc.empty(3)
    hits = []
    for key in (*WARM, first, second):
        state, hit = textbook_arc.request(state, key)
        hits.append(hit)
    return (tuple(hits), state)


def textbook_of_the_class(first: int, second: int) -> tuple[object, ...] | None:
    """Serve two keys with the class."""
    return _served_by(textbook_arc.TextbookARC, (first, second))


class _NeverRenews(textbook_arc.TextbookARC[int]):
    def request(self, key: int) -> bool:
        return key in self._t2 or super().request(key)


def textbook_with_a_slip(first: int, second: int) -> tuple[object, ...] | None:
    """Serve two keys with a class in which a hit in T2 changes nothing."""
    return _served_by(_NeverRenews, (first, second))


def _served_by(made: Any, keys: tuple[int, ...]) -> tuple[object, ...] | None:
    if not all(0 <= key <= 5 for key in keys):
        return None
    cache = made(3)
    hits = tuple([cache.request(key) for key in (*WARM, *keys)])
    return (hits, cache.state)


# --- ARC's decisions: within the core's operations, and as functions of numbers ------------------


def list_that_gives(size: int, target: int, idle1: bool, idle2: bool, falls_back: bool) -> int:
    """Ask the core for one victim; return the list it came from, 0 if none did."""
    if not _is_choice(size, target, idle1):
        return -1
    state = arc.ArcState(4, target, tuple(range(size)), (7,))
    busy = {0: not idle1, 7: not idle2}

    def ref_cnt(key: int) -> int:
        return int(busy.get(key, True))

    _, victims = arc.evict(state, 1, (), ref_cnt, falls_back_to_t1=falls_back)
    return 0 if victims is None else 2 if victims == (7,) else 1


def _fast(name: str) -> Callable[..., int]:
    """Return the Python function that a kernel is made of."""
    compiled = importlib.import_module("cachelaw.fast.compiled")
    made: Callable[..., int] = compiled.plain(
        getattr(importlib.import_module("cachelaw.fast.kernels"), name)
    )
    return made


def list_that_gives_fast(size: int, target: int, idle1: bool, idle2: bool, falls_back: bool) -> int:
    """Ask the kernel."""
    if not _is_choice(size, target, idle1):
        return -1
    return _fast("gives")(size, target, idle1, idle2, falls_back)


def list_that_gives_with_a_slip(
    size: int, target: int, idle1: bool, idle2: bool, falls_back: bool
) -> int:
    """Ask a kernel for which T1 has to be above its target."""
    if not _is_choice(size, target, idle1):
        return -1
    return _fast("gives")(size - 1, target, idle1, idle2, falls_back)


def _is_choice(size: int, target: int, idle1: bool) -> bool:
    """Say whether T1 is small enough, and has the chunk that is to be idle."""
    return 0 <= size <= 3 and target >= 0 and (size >= 1 or not idle1)


PAIRS = (
    Pair(
        tracker,
        tracker_of_the_class,
        tracker_with_a_slip,
        "`reuse_filter.observe_all` and the `OrderedDict` of the filter's class",
        "three lookups of three keys, a tracker of two",
        3.0,
    ),
    Pair(
        textbook,
        textbook_of_the_class,
        textbook_with_a_slip,
        "`textbook_arc.request` and the class `TextbookARC`: hits, lists and target",
        "capacity 3, eight requests that bring all lists into use, then any two of six keys",
        4.0,
    ),
    Pair(
        list_that_gives,
        list_that_gives_fast,
        list_that_gives_with_a_slip,
        "the choice of a list in `arc.evict` and `fast.kernels.gives`",
        "one victim, up to three chunks in T1 and one in T2, any whole target of 0 or more",
        4.0,
        "numba",
    ),
)
"""All pairs."""
