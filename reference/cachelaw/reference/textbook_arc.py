"""ARC as its authors published it: the textbook algorithm.

The source is N. Megiddo and D. S. Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache",
FAST'03. Figure 4 is the algorithm: a subroutine REPLACE and four cases, one of which applies to
each request. Section III gives the conditions that hold between requests.

**The idea.** Keep the keys seen once lately apart from the keys seen at least twice, and let the
request stream decide how much of the cache either kind deserves. To learn that, remember for a
while which keys were evicted. A request for a remembered key says that its side was too small.

**The state.** A cache of capacity c holds four lists of keys, each a tuple, least recently used
first:

====  =================================================================================
T1    cached keys that were requested once since they entered
T2    cached keys that were requested at least twice
B1    ghost list of T1: keys evicted from T1, remembered without their chunk
B2    ghost list of T2: keys evicted from T2, remembered without their chunk
====  =================================================================================

A real number p in [0, c] is the target size of T1. What is left, c - p, is the target of T2. The
paper writes L1 for B1 followed by T1, and L2 for B2 followed by T2. L1 and L2 together are the
directory: what a cache of twice the size would hold under the policy that the paper calls DBL(2c).

**Not vLLM's ARC.** The policy `arc` of vLLM has the same four lists and the same step of p, but:

- its test for a victim from T1 is ``|T1| >= int(p)``, whichever ghost list the key came from;
- a ghost comes back into T1, not into T2;
- B1 and B2 may each grow to c, where here |T1| + |B1| <= c and all four lists hold at most 2c;
- p moves in a call of its own, evictions come in batches, and pinned chunks are passed over.

So the two evict different keys, and what is expected of one must not be asked of the other.

**How to read on.** `TextbookState` is the state, `replace` is the subroutine, the four cases
follow in the paper's order, `request` picks the case, and `check` recounts everything.
`TextbookARC` at the end is the same algorithm on mutable lists, for traces of millions of requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

# Under its own name it would hide the subroutine that the paper calls REPLACE.
from dataclasses import replace as changed
from typing import Generic, TypeVar

__all__ = ["TextbookARC", "TextbookState", "check", "empty", "replace", "request"]

K = TypeVar("K", bound=Hashable)


# --- The state -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextbookState(Generic[K]):
    """All that ARC knows between two requests; immutable and hashable.

    Attributes:
        capacity: c, the number of keys that the cache holds when full; at least 1.
        p: the target size of T1, in keys, in [0, c].
        t1: T1, cached, requested once; least recently used first, as all four lists are.
        t2: T2, cached, requested at least twice.
        b1: B1, the ghost list of T1.
        b2: B2, the ghost list of T2.

    The paper's p is a real number, ours an IEEE-754 double. Up to c = 6 no decision depends on the
    difference. From c = 7 on, a sum of thirds may round past a tie |T1| = p.

    Nothing is checked on construction; `check` does that, and `empty` makes the first state. Name
    the key type on the variable, `state: TextbookState[int]`: a call of `TextbookState[int](...)`
    is a TypeError on Python 3.10 and 3.11, as for any generic dataclass with frozen and slots.

    Source: FAST'03, Figure 4, INITIALIZATION, and section III.
    """

    capacity: int
    p: float
    t1: tuple[K, ...]
    t2: tuple[K, ...]
    b1: tuple[K, ...]
    b2: tuple[K, ...]


def empty(capacity: int) -> TextbookState[K]:
    """Return the state before the first request: four empty lists and p = 0.

    Args:
        capacity: c, in keys; an int of at least 1.

    Raises:
        ValueError: capacity is below 1 or not an int; a bool does not count as an int.

    Source: FAST'03, Figure 4, INITIALIZATION.
    """
    _require_capacity(capacity)
    return TextbookState(capacity=capacity, p=0.0, t1=(), t2=(), b1=(), b2=())


def _require_capacity(capacity: object) -> None:
    """Raise ValueError unless capacity is an int, not a bool, of at least 1."""
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1:
        raise ValueError(f"capacity must be an int of at least 1, not {capacity!r}")


def _without(keys: tuple[K, ...], key: K) -> tuple[K, ...]:
    """Return keys without key, order kept."""
    return tuple(k for k in keys if k != key)


# --- REPLACE -------------------------------------------------------------------------------------
#
# One cached key becomes a ghost. It comes from T1 if T1 is not empty and
#
#     |T1| > p,  or  |T1| = p and the requested key is in B2;
#
# otherwise it comes from T2. In both lists the least recently used key goes, and it becomes the
# most recently used ghost of its own side.
#
# The second half is the tie rule. At |T1| = p both sides have their due, so the request decides:
# a key out of B2 asks for more room for T2, therefore T1 gives way.


def replace(state: TextbookState[K], in_b2: bool) -> TextbookState[K]:
    """Evict one key into the ghost list of its side: the subroutine REPLACE.

    Args:
        state: the state, with p already adapted to the request.
        in_b2: whether the requested key is in B2; it decides a tie between |T1| and p.

    Raises:
        ValueError: neither list may give a key: T2 is empty and T1 is empty or within its target.
            `request` never gets there.

    Source: FAST'03, Figure 4, subroutine REPLACE.
    """
    # LOOKUP
    # Nothing to do: the caller knows where the requested key is.

    # ADAPT
    # Nothing to do: the caller has adapted p.

    # SELECT
    size = len(state.t1)
    from_t1 = size >= 1 and ((in_b2 and size == state.p) or size > state.p)

    # COMMIT
    if from_t1:
        return changed(state, t1=state.t1[1:], b1=(*state.b1, state.t1[0]))
    if not state.t2:
        raise ValueError(f"REPLACE finds no victim: T2 is empty, |T1| = {size}, p = {state.p}")
    return changed(state, t2=state.t2[1:], b2=(*state.b2, state.t2[0]))


# --- Case I: the key is in T1 or T2 --------------------------------------------------------------
#
# A hit. The key was requested before, so from now on it counts as requested at least twice: it
# becomes the most recently used key of T2. Nothing is learned about p.


def _case_1(state: TextbookState[K], key: K) -> TextbookState[K]:
    """Serve a key of T1 or T2. Source: FAST'03, Figure 4, Case I."""
    # LOOKUP
    # Nothing to do: `request` found the key in T1 or T2.

    # ADAPT
    # Nothing to do: only a ghost moves p.

    # SELECT
    # Nothing to do: the key has its place in the cache already.

    # COMMIT
    return changed(state, t1=_without(state.t1, key), t2=(*_without(state.t2, key), key))


# --- Case II: the key is in B1 -------------------------------------------------------------------
#
# A miss that a larger T1 would have turned into a hit. So p grows, by 1 or, if B1 is the shorter
# ghost list, by |B2| / |B1|, a real number: a hit in a short list is rarer and weighs more. p stops
# at c. Both lengths still count the key itself. Then REPLACE makes room, and the key, requested for
# the second time, moves to the most recently used end of T2.


def _case_2(state: TextbookState[K], key: K) -> TextbookState[K]:
    """Serve a ghost of T1. Source: FAST'03, Figure 4, Case II."""
    # LOOKUP
    # Nothing to do: `request` found the key in B1.

    # ADAPT
    step = max(1.0, len(state.b2) / len(state.b1))
    adapted = changed(state, p=min(state.p + step, float(state.capacity)))

    # SELECT
    room = replace(adapted, in_b2=False)

    # COMMIT
    return changed(room, b1=_without(room.b1, key), t2=(*room.t2, key))


# --- Case III: the key is in B2 ------------------------------------------------------------------
#
# The mirror image: a larger T2 would have had the key. So p shrinks, by 1 or, if B2 is the shorter
# ghost list, by |B1| / |B2|, and stops at 0. REPLACE makes room, this time with the tie rule, and
# the key returns to the most recently used end of T2.


def _case_3(state: TextbookState[K], key: K) -> TextbookState[K]:
    """Serve a ghost of T2. Source: FAST'03, Figure 4, Case III."""
    # LOOKUP
    # Nothing to do: `request` found the key in B2.

    # ADAPT
    step = max(1.0, len(state.b1) / len(state.b2))
    adapted = changed(state, p=max(state.p - step, 0.0))

    # SELECT
    room = replace(adapted, in_b2=True)

    # COMMIT
    return changed(room, b2=_without(room.b2, key), t2=(*room.t2, key))


# --- Case IV: the key is in none of the four lists -----------------------------------------------
#
# A miss of which nothing is known. Room is needed in the directory and in the cache.
#
# Case A, |T1| + |B1| = c: L1 is full and has to lose its least recently used key.
#     If |T1| < c, that key is a ghost: forget it, then REPLACE.
#     If |T1| = c, then B1 is empty and the key is cached: drop it from T1, and leave no ghost.
# Case B, |T1| + |B1| < c, and the four lists together hold at least c keys, so the cache is full:
#     If they hold 2c keys, forget the least recently used ghost of B2.
#     Then REPLACE.
#
# With fewer than c keys in the four lists there is room for one more.
#
# In the end the key enters T1 at its most recently used end.


def _case_4(state: TextbookState[K], key: K) -> TextbookState[K]:
    """Serve a key of which nothing is known. Source: FAST'03, Figure 4, Case IV."""
    # LOOKUP
    # Nothing to do: `request` found the key nowhere.

    # ADAPT
    # Nothing to do: only a ghost moves p.

    # SELECT
    c = state.capacity
    l1 = len(state.t1) + len(state.b1)
    total = l1 + len(state.t2) + len(state.b2)
    room = state
    if l1 == c:  # Case A
        if len(state.t1) < c:
            room = replace(changed(state, b1=state.b1[1:]), in_b2=False)
        else:
            room = changed(state, t1=state.t1[1:])
    elif total >= c:  # Case B
        if total == 2 * c:
            room = changed(state, b2=state.b2[1:])
        room = replace(room, in_b2=False)

    # COMMIT
    return changed(room, t1=(*room.t1, key))


# --- One request ---------------------------------------------------------------------------------


def request(state: TextbookState[K], key: K) -> tuple[TextbookState[K], bool]:
    """Serve one request and return the next state and whether it was a hit.

    After it the key is cached, at the most recently used end of T1 or T2. A request evicts at most
    one key from the cache.

    Args:
        state: a state that `empty` or `request` returned.
        key: the key requested.

    Returns:
        The next state, and True if the key was in T1 or T2, else False.

    Raises:
        ValueError: only if state breaks the conditions of `check`; see `replace`.

    Source: FAST'03, Figure 4, Cases I to IV.
    """
    # LOOKUP
    hit = key in state.t1 or key in state.t2
    if hit:
        case = _case_1
    elif key in state.b1:
        case = _case_2
    elif key in state.b2:
        case = _case_3
    else:
        case = _case_4

    # ADAPT
    # Nothing to do here: the case adapts p.

    # SELECT
    # Nothing to do here: the case makes room.

    # COMMIT
    return case(state, key), hit


# --- What holds between requests -----------------------------------------------------------------


def check(state: TextbookState[K]) -> None:
    """Recount every list and raise unless the paper's conditions hold.

    ====  ===========================================================================
    A.1   the lists are disjoint; L1 is T1 with B1, L2 is T2 with B2
    A.2   if L1 and L2 together hold less than c keys, then B1 and B2 are empty
    A.3   if they hold c keys or more, then T1 and T2 together hold exactly c
    A.4   every key of T1 is more recent than every key of B1; likewise T2 and B2
    A.5   T1 and T2 together are exactly what the policy keeps in the cache
    ====  ===========================================================================

    To these come the bounds of the directory, |L1| <= c and |L1| + |L2| <= 2c, and 0 <= p <= c.
    A.4 and A.5 speak of the past and cannot be seen in one state: the tests compare L1 and L2, in
    order, with those of DBL(2c) after every request.

    Args:
        state: the state to recount.

    Raises:
        AssertionError: a condition is broken; the message names the first one.

    Source: FAST'03, section III, conditions A.1 to A.5 and the bounds of DBL(2c); Figure 4 for p.
    """
    c = state.capacity
    l1 = (*state.b1, *state.t1)
    l2 = (*state.b2, *state.t2)
    cached = len(state.t1) + len(state.t2)
    total = len(l1) + len(l2)
    conditions = {
        "capacity: c >= 1": c >= 1,
        "target: 0 <= p <= c": 0 <= state.p <= c,
        "A.1: no key is twice in the four lists": len({*l1, *l2}) == total,
        "A.2: ghost lists are empty while the directory is below c": total >= c or cached == total,
        "A.3: the cache is full once the directory holds c": total < c or cached == c,
        "directory: |T1| + |B1| <= c": len(l1) <= c,
        "directory: |T1| + |T2| + |B1| + |B2| <= 2c": total <= 2 * c,
    }
    for name, holds in conditions.items():
        if not holds:
            raise AssertionError(f"{name} does not hold in {state}")


# --- The same for long traces --------------------------------------------------------------------


class TextbookARC(Generic[K]):
    """ARC on mutable lists, for replaying traces of millions of requests.

    It makes the decisions of `request`, each in constant time. Where the core is written case by
    case, this text is written step by step, each step covering all cases; the tests hold the two
    against each other after every request.

    Args:
        capacity: c, in keys; an int of at least 1.

    Raises:
        ValueError: capacity is below 1 or not an int; a bool does not count as an int.

    Source: FAST'03, Figure 4.
    """

    __slots__ = ("_b1", "_b2", "_capacity", "_p", "_t1", "_t2")

    def __init__(self, capacity: int) -> None:
        _require_capacity(capacity)
        self._capacity = capacity
        self._p = 0.0
        # Only the keys of an OrderedDict are used; the first is the least recently used one.
        self._t1: OrderedDict[K, None] = OrderedDict()
        self._t2: OrderedDict[K, None] = OrderedDict()
        self._b1: OrderedDict[K, None] = OrderedDict()
        self._b2: OrderedDict[K, None] = OrderedDict()

    @property
    def state(self) -> TextbookState[K]:
        """The present state as a value of the core; a copy, in time proportional to its size."""
        return TextbookState(
            capacity=self._capacity,
            p=self._p,
            t1=tuple(self._t1),
            t2=tuple(self._t2),
            b1=tuple(self._b1),
            b2=tuple(self._b2),
        )

    def request(self, key: K) -> bool:
        """Serve one request and return whether it was a hit.

        Args:
            key: the key requested; after the call it is cached.

        Returns:
            True if the key was in T1 or T2, else False.

        Raises:
            TypeError: the key is not hashable; the state is as before.

        Source: FAST'03, Figure 4, Cases I to IV.
        """
        t1, t2, b1, b2 = self._t1, self._t2, self._b1, self._b2

        # LOOKUP
        hit = key in t1 or key in t2
        in_b1 = not hit and key in b1
        in_b2 = not hit and not in_b1 and key in b2

        # ADAPT
        if in_b1:
            self._p = min(self._p + max(1.0, len(b2) / len(b1)), float(self._capacity))
        elif in_b2:
            self._p = max(self._p - max(1.0, len(b1) / len(b2)), 0.0)

        # SELECT
        if in_b1 or in_b2:
            self._replace(in_b2)
        elif not hit:
            self._make_room()

        # COMMIT
        if in_b1:
            del b1[key]
        elif in_b2:
            del b2[key]
        elif not hit:
            t1[key] = None
            return False
        elif key in t1:
            del t1[key]
        # For a key of T2 this keeps the entry, which then moves to the end.
        t2[key] = None
        t2.move_to_end(key)
        return hit

    def _replace(self, in_b2: bool) -> None:
        """Evict one key into the ghost list of its side, as `replace` does."""
        # LOOKUP
        # Nothing to do: the caller knows where the requested key is.

        # ADAPT
        # Nothing to do: the caller has adapted p.

        # SELECT
        size = len(self._t1)
        from_t1 = size >= 1 and ((in_b2 and size == self._p) or size > self._p)

        # COMMIT
        if from_t1:
            self._b1[self._t1.popitem(last=False)[0]] = None
        else:
            self._b2[self._t2.popitem(last=False)[0]] = None

    def _make_room(self) -> None:
        """Make room for a key of which nothing is known, as Case IV does."""
        # LOOKUP
        # Nothing to do: the caller found the key nowhere.

        # ADAPT
        # Nothing to do: only a ghost moves p.

        # SELECT
        c = self._capacity
        l1 = len(self._t1) + len(self._b1)
        total = l1 + len(self._t2) + len(self._b2)

        # COMMIT
        if l1 == c:
            if len(self._t1) < c:
                self._b1.popitem(last=False)
                self._replace(in_b2=False)
            else:
                self._t1.popitem(last=False)
        elif total >= c:
            if total == 2 * c:
                self._b2.popitem(last=False)
            self._replace(in_b2=False)
