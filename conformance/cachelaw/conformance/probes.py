"""Directed probes: for each law, a short program that puts a policy to it.

Random programs may miss what a law is about. A probe meets its law's condition on purpose, at the
smallest scope at which a wrong policy can be told from a right one. Probes stand from the basic to
the specific: the clause that a policy is said to break is that of the first probe it fails.

Keys are small integers; the first letter of a request's name says what it knows of positions
(`trace.REQUEST_KINDS`). Where nothing else is said, requests know none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachelaw.conformance.trace import Event, Trace
from cachelaw.reference.editions import V022, V024, V030, V031, V033, Edition
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    RequestEnds,
    Reset,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
)

Events = tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A program that is there for one clause.

    Attributes:
        clause: what a policy that fails it breaks, if the answer was determined.
        capacity: the number of chunks that fit.
        events: what happens.
        groups: the number of KV cache groups.
    """

    clause: str
    capacity: int
    events: Events
    groups: int = 1

    def trace(self, edition: Edition) -> Trace:
        """Return the probe as a trace of `edition`."""
        return Trace(edition, self.capacity, self.events, self.groups)


# --- Words that programs are made of ---


def offered(*keys: int, by: str = "u1") -> Events:
    """Return the offer of some chunks that stays open."""
    return (StoreOffered(keys, by),)


def done(*keys: int) -> Events:
    """Return the success of a store."""
    return (StoreSucceeds(keys),)


def failed(*keys: int) -> Events:
    """Return the failure of a store."""
    return (StoreFails(keys),)


def stored(*keys: int, by: str = "u1") -> Events:
    """Return the offer of chunks in one batch, and its success."""
    return (StoreOffered(keys, by), StoreSucceeds(keys))


def stored_singly(*keys: int, by: str = "u1") -> Events:
    """Return the offer and success of chunks one after the other."""
    return tuple(event for key in keys for event in stored(key, by=by))


def pinned(*keys: int, by: str = "u8") -> Events:
    """Return the start of a load that nobody's request is charged with."""
    return (LoadStarts(keys, by, recorded=False),)


def loaded(*keys: int, by: str) -> Events:
    """Return the start and the end of a load by a request."""
    return (LoadStarts(keys, by), LoadEnds(keys))


def unpinned(*keys: int) -> Events:
    """Return the end of a load."""
    return (LoadEnds(keys),)


def touched(*keys: int, times: int = 1) -> Events:
    """Return touches of one batch."""
    return (Touch(keys, "u9"),) * times


def evicted(n: int, *protected: int) -> Events:
    """Return an eviction."""
    return (Evict(n, frozenset(protected)),)


def evicted_singly(n: int) -> Events:
    """Return evictions of one chunk each."""
    return evicted(1) * n


def ended(request: str) -> Events:
    """Return the end of a request."""
    return (RequestEnds(request),)


# --- The universal contract ---


def contract_probes(edition: Edition) -> Iterator[Probe]:
    """Yield the probes of the universal laws; the witness says which clause is broken."""
    yield Probe(
        "get/same-object",
        4,
        (
            *(Lookup(1), *evicted(1), *touched(), *touched(1)),
            *(*offered(1, 2), Lookup(1), *done(1), *touched(1, 7, 2), Lookup(7)),
            *(*done(2), *stored(3), *failed_store(4), Lookup(4), *stored(5)),
            *(*pinned(1), *touched(3, 1), *evicted(1, 3), Lookup(2), *unpinned(1)),
            *(*evicted(0), *evicted(0, 1), *evicted(2), Lookup(5)),
        ),
    )
    yield Probe("evict/exact-count", 4, (*stored(1, 2, 3, 4), *evicted(3)))
    yield Probe("evict/exact-count", 4, (*stored_singly(1, 2, 3, 4), *touched(2), *evicted(4)))
    yield Probe(
        "evict/idle-only",
        4,
        (*offered(1), *stored(2, 3, 4), *pinned(2, 3), *evicted(1), *unpinned(2), *evicted(1)),
    )
    yield Probe(
        "evict/idle-only",
        3,
        (
            *(*stored(1, 2, 3), *pinned(1), *pinned(1), *evicted(1), *unpinned(1), *evicted(1)),
            *unpinned(1),
        ),
    )
    # Uses of busy chunks do not make them idle, and the next victim may be pinned meanwhile.
    yield Probe(
        "evict/idle-only",
        4,
        (
            *(*offered(1), *stored(2, 3, 4), *pinned(2, 3), *touched(4, 3, 2, 1), *evicted(1)),
            *(*unpinned(2, 3), *stored(5, by="u2"), *evicted(1, 3, 5), *pinned(3), *evicted(1)),
        ),
    )
    yield Probe(
        "evict/protected-honoured",
        4,
        (*stored(1, 2, 3, 4), *touched(1), *evicted(1, 1, 2, 3), *evicted(2, 1, 8)),
    )
    yield Probe(
        "evict/protected-honoured",
        3,
        (*stored_singly(1, 2, 3), *offered(1, 2, 4), *done(4), *evicted(1, 1, 4)),
    )
    # A store fails, and fails again; nothing may be left that an eviction could meet with.
    yield Probe(
        "remove/forgets",
        3,
        (*stored(1), *failed_store(2), *evicted(1), *failed_store(2, 3), *stored(2), *evicted(1)),
    )
    # A refusal with idle chunks at hand, in every place where they can be.
    yield Probe("evict/none-only-when-short", 2, (*stored(1, 2), *touched(1, 2), *evicted(2)))
    yield Probe(
        "evict/none-only-when-short",
        4,
        (*stored_singly(1, 2, 3, 4), *pinned(1, 2, 3), *evicted(1), *unpinned(1, 2, 3)),
    )
    yield Probe(
        "evict/none-only-when-short",
        4,
        (*stored(1, 2, 3, 4), *touched(3, 4), *evicted(1, 1, 2, 3), *evicted(1, 1, 2)),
    )
    yield Probe(
        "evict/none-only-when-short",
        3,
        (*stored(1, 2, 3), *evicted(2), *touched(1, 2), *evicted(1)),
    )
    # All but the youngest are busy, and then protected, at sizes beyond those of small bounds.
    for capacity in (40, 200):
        wide = tuple(range(1, capacity + 1))
        yield Probe(
            "evict/none-only-when-short",
            capacity,
            (
                *(*stored(*wide), *pinned(*wide[:-1]), *evicted(1), *unpinned(*wide[:-1])),
                *(*evicted(1, *wide[:-2]), *evicted(capacity - 2)),
            ),
        )
    # A refusal for good reason, and what must be left of it: nothing.
    yield Probe(
        "evict/none-changes-nothing",
        4,
        (
            *(*stored_singly(1, 2, 3, 4), *touched(2), *pinned(3)),
            *(*evicted(4), *evicted(3, 1), *evicted(9), *unpinned(3)),
        ),
    )
    yield Probe("evict/zero-is-empty", 2, (*evicted(0), *stored(1, 2), *evicted(0), *evicted(1)))
    yield Probe("evict/exact-count", 1, (*stored(1), *offered(2), *done(2), *evicted(1)))
    # One prefix in two groups: chunks that end at the same token, and have the same block hash.
    yield Probe(
        "get/same-object",
        4,
        (*stored(0, 1, 2, 3), Lookup(0), Lookup(1), *touched(0, 2), *evicted(2), *failed_store(5)),
        groups=2,
    )
    if edition.has_request_hooks:
        yield Probe(
            "touch/keeps-residency",
            3,
            (
                *(*stored(1, 2, by="r1"), *loaded(1, by="r2"), *offered(3, 4, by="r2")),
                *(*ended("r1"), *evicted(1), *ended("r2"), *ended("u7")),
                *(*stored(5, by="m3"), *ended("m3")),
            ),
        )
    if edition.has_clear:
        yield Probe(
            "clear/forgets-all",
            4,
            (
                *(*stored(1, 2, 4), *offered(3), *pinned(1), *touched(1, 2), *evicted(1), Reset()),
                *(Lookup(1), Lookup(2), *stored(2, 1, by="u2"), *touched(2), *evicted(1)),
            ),
        )


def failed_store(*keys: int, by: str = "u1") -> Events:
    """Return the offer of chunks and its failure."""
    return (*offered(*keys, by=by), *failed(*keys))


# --- LRU ---


def lru_probes(edition: Edition) -> Iterator[Probe]:
    """Yield the probes of LRU, those of the edition's clauses."""
    by_transfers = V024 <= edition <= V030
    three = stored_singly(1, 2, 3)
    # Touches in the order of insertion: whatever is said of either, the order is the same.
    in_turn = (*three, *touched(1), *touched(2), *touched(3))
    yield Probe("lru/oldest-leaves-first", 3, in_turn)
    yield Probe("lru/oldest-leaves-first", 3, (*in_turn, *evicted(2)))
    yield Probe(
        "lru/becoming-idle-is-use" if by_transfers else "lru/insert-is-use",
        2,
        (*stored(1), *touched(1), *stored(2)),
    )
    # Keys that come in falling order, for those who order equals by their keys.
    yield Probe(
        "lru/becoming-idle-is-use" if by_transfers else "lru/insert-is-use", 2, stored_singly(2, 1)
    )
    yield Probe("lru/touch-is-use", 3, (*three, *touched(1)))
    yield Probe("lru/batch-tail-first", 4, (*stored_singly(1, 2, 3, 4), *touched(1, 2, 3)))
    yield Probe("lru/passed-over-keeps-place", 3, (*three, *evicted(1, 1)))
    order_of_transfers = (
        (*offered(1, by="u1"), *offered(2, by="u2"), *done(2), *done(1)),
        (*stored_singly(1, 2), *pinned(1), *unpinned(1)),
    )
    for events in order_of_transfers:
        clause = "lru/becoming-idle-is-use" if by_transfers else "lru/transfer-is-no-use"
        yield Probe(clause, 2, events)
    if not by_transfers:
        yield Probe(
            "lru/passed-over-keeps-place",
            4,
            (*stored_singly(1, 2, 3, 4), *pinned(2), *evicted(2), *unpinned(2)),
        )
    touch_while_busy = (
        (*three, *pinned(2), *touched(2), *touched(1), *unpinned(2)),
        (*offered(1), *offered(2), *touched(1), *done(1, 2)),
    )
    for events in touch_while_busy:
        clause = "lru/touch-of-busy-lost" if by_transfers else "lru/touch-of-busy-counts"
        yield Probe(clause, 3, events)
    # Hundreds of uses, for clocks that wrap around or are rounded.
    many = tuple(range(1, 17))
    rounds = tuple(e for at in range(16) for e in touched(*many[at:], *many[:at], times=2))
    yield Probe("lru/touch-is-use", 16, (*stored(*many), *rounds))
    if edition >= V031:
        yield Probe(
            "lru/finish-is-use", 2, (*stored(1, by="u1"), *stored(2, by="u2"), *ended("u1"))
        )
        yield Probe(
            "lru/finish-is-use",
            3,
            (*stored(1, 3, by="u1"), *stored(2, by="u2"), *loaded(1, by="u3"), *ended("u3")),
        )
        yield Probe(
            "lru/finish-is-use",
            3,
            (
                *(*stored(1, by="u1"), *offered(3, by="u3"), *stored(2, by="u2"), *pinned(1)),
                *(*ended("u1"), *ended("u3"), *unpinned(1), *done(3)),
            ),
        )
        yield Probe(
            "lru/finish-in-prefix-order",
            4,
            (*stored(0, 2, 1, 3, by="r1"), *ended("r1")),
            groups=2,
        )
        # The second request knows every other position, and so none of them counts.
        yield Probe(
            "lru/finish-in-prefix-order",
            8,
            (
                *(*stored(0, 2, 1, 3, by="r1"), *ended("r1")),
                *(*stored(6, 5, 8, 7, by="m2"), *ended("m2")),
            ),
            groups=2,
        )
    if edition >= V033:
        yield from _rank_probes()


def _rank_probes() -> Iterator[Probe]:
    yield Probe("lru/batches-share-a-rank", 4, (*stored(1, 2, by="r1"), *stored(3, 4, by="r1")))
    batches = (*stored(1, 2, 3, 4, by="r1"), *stored(5, 6, 7, 8, by="r1"), *stored(9, by="r1"))
    yield Probe("lru/batches-share-a-rank", 9, batches)
    yield Probe(
        "lru/batches-share-a-rank",
        4,
        (*stored(1, 2, by="r1"), *stored(9, by="u2"), *stored(3, by="r1")),
    )
    yield Probe(
        "lru/access-joins-rank",
        3,
        (*stored(1, by="u1"), *stored(2, by="u2"), *loaded(1, by="r3"), *stored(3, by="r3")),
    )
    # Both join, and the later position leaves first; an absent key before them changes nothing.
    yield Probe("lru/access-joins-rank", 2, (*stored_singly(1, 2), *loaded(1, 2, by="r2")))
    yield Probe(
        "lru/access-joins-rank",
        3,
        (*stored(1, by="u1"), *stored(2, by="u2"), *offered(3, 1, by="r3"), *done(3)),
    )
    yield Probe(
        "lru/access-never-demotes",
        4,
        (*stored(9, by="r1"), *stored(1, 2, by="r2"), *loaded(1, by="r1")),
    )
    yield Probe(
        "lru/access-needs-position",
        3,
        (*stored(1, by="u1"), *stored(2, by="u2"), *loaded(1, by="u3")),
    )
    yield Probe("lru/equal-rank-by-key-order", 3, stored(1, 0, by="r1"), groups=2)
    yield Probe(
        "lru/clear-voids-request-ranks",
        3,
        (*stored(1, by="r1"), Reset(), *stored_singly(2, 3, by="u2"), *stored(4, by="r1")),
    )
    yield Probe(
        "lru/clear-voids-request-ranks",
        3,
        (
            *(*stored(1, by="r1"), Reset(), *stored(1, by="r1"), Reset()),
            *(*stored_singly(2, 3, by="u2"), *stored(4, by="r1")),
        ),
    )


# --- ARC ---


def arc_probes(edition: Edition) -> Iterator[Probe]:
    """Yield the probes of ARC, those of the edition's clauses."""
    yield Probe("arc/oldest-of-its-list-first", 3, stored_singly(1, 2, 3))
    yield Probe("arc/target-starts-at-zero", 4, (*stored(1, 2, 3, 4), *touched(4), *evicted(1)))
    # T2 = 1 2, in this order for whatever reason.
    promoted = (*stored(1, 2, 3), *touched(1), *touched(2))
    yield Probe(
        "arc/oldest-of-its-list-first", 3, (*promoted, *touched(1), *touched(2), *evicted(2))
    )
    yield Probe("arc/second-use-promotes", 3, (*stored(1, 2), *touched(1), *stored(3)))
    yield Probe("arc/second-use-promotes", 3, promoted)
    yield Probe("arc/use-renews-t2", 3, (*promoted, *touched(1)))
    yield Probe(
        "arc/pending-stays-in-t1",
        3,
        (*offered(1), *stored(2), *touched(1), *done(1), *stored(3)),
    )
    yield Probe("arc/batch-tail-first", 3, (*stored(1, 2, 3), *touched(1, 2)))
    # T1 = 1 (busy), T2 = 2 3.
    yield Probe(
        "arc/falls-back-to-t2",
        3,
        (*stored(1, 2, 3), *touched(2), *touched(3), *pinned(1), *evicted(1)),
    )
    # T1 = 1 2 3 4, of which 1 is busy.
    yield Probe(
        "arc/oldest-of-its-list-first", 4, (*stored(1, 2, 3, 4), *pinned(1), *evicted(1, 2))
    )
    if edition < V030:
        yield Probe("arc/no-fallback-to-t1", 4, _below_target_without_t2())
    yield from _target_probes(edition)
    yield from _ghost_probes(edition)
    yield from _wide_probes()
    if edition >= V022:
        yield Probe(
            "arc/clear-forgets-all",
            4,
            (
                *(*stored(1, 2, 3, 4), *evicted(4), *touched(1), *touched(2), *touched(3)),
                *(Reset(), *stored(1, 2, 3, by="u2"), *touched(3), *evicted(1)),
            ),
        )
    if edition >= V031:
        yield from _request_probes()


def _below_target_without_t2() -> Events:
    """T1 = 3 4, T2 empty, B1 = 1 2, target 3, and a victim is asked for."""
    hits = (*touched(1), *touched(2), *touched(1))
    return (*stored(1, 2, 3, 4), *evicted_singly(2), *hits, *evicted(1))


def _target_probes(edition: Edition) -> Iterator[Probe]:
    """Who gives the victim, and how far a ghost hit moves the target."""
    # T1 = 4, T2 = 5, B1 = 1 2 3; hits raise the target, by whatever way they are reported.
    buried = (*stored(1, 2, 3, 4, 5), *touched(5), *evicted_singly(3))
    touches = tuple(e for key in (1, 2, 3) for e in touched(key))
    misses = tuple(e for key in (1, 2, 3) for e in failed_store(key, by="u2"))
    both = (*touches, *misses) if edition >= V031 else touches
    yield Probe("arc/b1-hit-raises-target", 5, (*buried, *both, *evicted(1)))
    yield Probe("arc/touch-adapts", 5, (*buried, *touches, *evicted(1)))
    yield Probe("arc/ghost-hit-renews", 5, (*buried, *touched(1, times=3), *evicted(1)))
    # T1 = 2, T2 = 4 3, B1 = 1.
    split = (*stored(1, 2, 3, 4), *touched(4), *touched(3), *evicted(1))
    yield Probe("arc/t1-gives-at-target", 4, (*split, *touched(1), *evicted(1)))
    yield Probe("arc/t2-gives-below-target", 4, (*split, *touched(1, times=2), *evicted(1)))
    if edition >= V031:
        yield from _miss_probes()
    if edition >= V030:
        yield Probe("arc/falls-back-to-t1", 4, _below_target_without_t2())
        # T1 = 3 4 5, T2 = 6, B1 = 1 2, target 4: T2 gives one victim and then T1 the others.
        yield Probe(
            "arc/oldest-of-its-list-first",
            6,
            (
                *(*stored(1, 2, 3, 4, 5, 6), *touched(6), *evicted_singly(2)),
                *(*touched(1), *touched(2), *touched(1), *touched(2), *evicted(3)),
            ),
        )
    # Target 2, then B2 = 4 and its hit lowers the target to 1.
    lowered = (*split, *touched(1, times=2), *evicted(1), *touched(4))
    yield Probe("arc/b2-hit-lowers-target", 4, (*lowered, *evicted(1)))
    # T1 = 2 3, T2 = 5 4, B1 = 1, target 2.
    even = (*stored(1, 2, 3, 4, 5), *touched(5), *touched(4), *evicted(1), *touched(1, times=2))
    yield Probe("arc/size-counts-busy-chunks", 5, (*even, *pinned(2), *evicted(1)))
    yield Probe("arc/size-counts-busy-chunks", 5, (*even, *evicted(1, 2)))
    # T1 = 2 6 with 6 pending, and the same target.
    yield Probe(
        "arc/size-counts-busy-chunks",
        5,
        (*even, *pinned(2), *evicted(1), *unpinned(2), *evicted(1), *offered(6), *evicted(1)),
    )
    yield Probe("arc/each-victim-anew", 5, (*even, *evicted(2)))
    yield from _step_probes()
    # Six hits in B1 leave the target at 3, from where one hit in B2, worth 3, brings it to 0.
    yield Probe(
        "arc/target-bounded",
        3,
        (
            *(*stored(1, 2, 3), *evicted(3), *touched(1, 2, 3, times=2), *stored(4, 5, 6)),
            *(*touched(6, 5), *evicted(1), *touched(5), *evicted(1)),
        ),
    )
    # Six hits in B1 leave the target at 3, from where one hit in B2 brings it to 2.
    yield Probe(
        "arc/target-bounded",
        3,
        (
            *(*stored(1, 2, 3), *touched(3), *touched(2), *evicted(1), *touched(1, times=6)),
            *(*stored(4), *evicted(1), *touched(3), *evicted(1)),
        ),
    )
    # Three hits in B2 leave the target at 0, from where two hits in B1 bring it to 2.
    yield Probe(
        "arc/target-bounded",
        4,
        (
            *(*stored(1, 2, 3, 4), *touched(4), *touched(3), *pinned(1, 2), *evicted(1)),
            *(*unpinned(1, 2), *touched(4, times=3), *evicted(1), *touched(1, times=2)),
            *evicted(1),
        ),
    )


def _wide_probes() -> Iterator[Probe]:
    """The capacity is what bounds target and ghosts, however large it is."""
    capacity = 16
    old, new = tuple(range(1, capacity + 1)), tuple(range(101, 101 + capacity))
    # B1 is full of ghosts, whose hits raise the target to the capacity; T1 lacks one chunk of it.
    full = (*stored(*old), *evicted(capacity))
    yield Probe(
        "arc/target-bounded",
        capacity,
        (
            *(*full, *touched(*old, times=2), *stored(*new, by="u2"), *touched(new[0])),
            *evicted(1),
        ),
    )
    # 1 has left B1 to 99, so that 2 is the oldest ghost.
    yield Probe(
        "arc/ghosts-trimmed-to-capacity",
        capacity,
        (
            *(*full, *stored(99), *evicted(1), *touched(2, times=2)),
            *(*stored(*new[:2], by="u2"), *touched(new[1]), *evicted(1)),
        ),
    )


def _step_probes() -> Iterator[Probe]:
    """How far one hit moves the target."""
    # T1 = 3, T2 = 5 4, B1 = 1 2, B2 = 8 7 6: a hit in B1 is worth 3/2.
    uneven = (
        *(*stored(1, 2, 3, 4, 5, 6, 7, 8), *(t for k in (8, 7, 6, 5, 4) for t in touched(k))),
        *(*pinned(1, 2, 3), *evicted_singly(3), *unpinned(1, 2, 3), *evicted_singly(2)),
    )
    clause = "arc/step-is-ratio-of-ghosts"
    # Two hits are worth 3, more than T1 = 3 9 and no more than T1 = 3 9 10.
    two_hits = (*touched(1), *touched(2), *evicted(1))
    yield Probe(clause, 8, (*uneven, *stored(9), *two_hits))
    yield Probe(clause, 8, (*uneven, *stored(9, 10), *two_hits))
    # T1 = 3, T2 = 4, B1 = 1 2, B2 = 5, target 3: a hit in B2 is worth 2, one in B1 is worth 1.
    lopsided = (
        *(*stored(1, 2, 3, 4, 5), *touched(5), *touched(4), *evicted_singly(2)),
        *(*touched(1), *touched(2), *touched(1), *evicted(1)),
    )
    yield Probe(clause, 5, (*lopsided, *touched(5), *evicted(1)))
    yield Probe(clause, 5, (*lopsided, *touched(5), *touched(1), *evicted(1)))
    yield Probe("arc/target-rounded-in-comparison", 8, (*uneven, *touched(1), *evicted(1)))
    # T1 = 4, T2 = 6 5, B1 = 1 2 3, B2 = 8 7, target 3: a hit in B2 is worth 3/2, one in B1 1.
    other_way = (
        *(*stored(1, 2, 3, 4, 5, 6, 7, 8), *(t for k in (8, 7, 6, 5) for t in touched(k))),
        *(*evicted_singly(3), *pinned(4), *evicted_singly(2), *unpinned(4)),
        *(*touched(1), *touched(2), *touched(3), *touched(8)),
    )
    yield Probe(clause, 8, (*other_way, *evicted(1)))
    yield Probe(clause, 8, (*other_way, *touched(1), *evicted(1)))
    # T1 = 2 3, T2 = 4, B1 = 1, B2 = 6 5: up by 2, down by 1 twice to 0, and up by 2 again.
    yield Probe(
        clause,
        6,
        (
            *(*stored(1, 2, 3, 4, 5, 6), *touched(6), *touched(5), *touched(4), *evicted(1)),
            *(*pinned(2, 3), *evicted_singly(2), *unpinned(2, 3)),
            *(*touched(1), *touched(6), *touched(5), *touched(1), *evicted(1)),
        ),
    )


def _ghost_probes(edition: Edition) -> Iterator[Probe]:
    """Who becomes a ghost, for how long, and what ends it."""
    # Both victims of a batch are ghosts: two hits raise the target above T1 = 3.
    yield Probe(
        "arc/victim-becomes-ghost",
        4,
        (*stored(1, 2, 3, 4), *touched(4), *evicted(2), *touched(1), *touched(2), *evicted(1)),
    )
    yield Probe(
        "arc/remove-leaves-no-ghost",
        3,
        (*stored(2, 3), *touched(3), *failed_store(1), *touched(1, times=2), *evicted(1)),
    )
    yield Probe(
        "arc/insert-into-t1", 3, (*stored(1, 2), *evicted(1), *stored(1, by="u2"), *stored(3))
    )
    yield Probe(
        "arc/insert-takes-ghost",
        3,
        (
            *(*stored(1, 2, 3), *touched(3), *evicted(1), *failed_store(1, by="u2")),
            *(*touched(1, times=2), *evicted(1)),
        ),
    )
    # T1 = 2, T2 = 3, B1 = 1, B2 = 4 and a target of 2 or 3, when 4 comes back and goes.
    yield Probe(
        "arc/insert-takes-ghost",
        4,
        (
            *(*stored(1, 2, 3, 4), *touched(4), *touched(3), *evicted(1), *touched(1, times=3)),
            *(*evicted(1), *failed_store(4, by="u2"), *touched(4, times=2), *evicted(1)),
        ),
    )
    yield from _trimming_probes(edition)


def _trimming_probes(edition: Edition) -> Iterator[Probe]:
    """Capacity 2: the third ghost pushes out the oldest, and a hit makes a ghost the newest."""
    clause = "arc/ghosts-trimmed-to-capacity"
    # T1 = 6, T2 = 7: which of them leaves tells whether the target was moved before.
    asked = (*stored(6, 7, by="u2"), *touched(7), *evicted(1))
    turns = tuple(e for key in (1, 2, 3) for e in (*stored(key), *evicted(1)))
    yield Probe(clause, 2, (*turns, *touched(1, times=2), *asked))
    yield Probe(clause, 2, (*turns, *touched(2, times=2), *asked))
    batches = (*stored(1, 2), *evicted(2), *stored(3, 4), *evicted(2))
    yield Probe(clause, 2, (*batches, *touched(2, times=2), *asked))
    # The same of B2, with a target of 2 that hits in B2 would lower.
    hot_turns = tuple(e for k in (1, 2, 3) for e in (*stored(k), *touched(k), *evicted(1)))
    target_2 = (*stored(4), *evicted(1), *touched(4, times=2))
    yield Probe(clause, 2, (*hot_turns, *target_2, *touched(1, times=2), *asked))
    yield Probe(clause, 2, (*hot_turns, *target_2, *touched(2, times=2), *asked))
    # B1 is as long as the cache is large, however large T1 is.
    yield Probe(
        clause,
        4,
        (
            *(*stored(1, 2, 3, 4), *evicted(4), *stored(5), *evicted(1), *stored(6, 7, 8)),
            *(*touched(8), *evicted(1), *touched(3, times=3), *evicted(1)),
        ),
    )
    renewed = (*touched(1), *stored(3), *evicted(1), *touched(1))
    yield Probe("arc/ghost-hit-renews", 2, (*stored(1, 2), *evicted(2), *renewed, *asked))
    # T2 = 1 2, then B2 = 1 2, of which 1 is renewed.
    hot_pair = (*stored(1, 2), *touched(2, 1), *evicted_singly(2))
    hot_third = (*stored(3), *touched(3), *evicted(1), *target_2, *touched(1, times=2), *asked)
    yield Probe("arc/ghost-hit-renews", 2, (*hot_pair, *touched(1), *hot_third))
    yield Probe("arc/batch-tail-first", 2, (*hot_pair, *touched(1, 2), *hot_third))
    if edition >= V031:
        # T1 = 8 9, both pinned, so that the offer is refused; then B1 = 8 9.
        yield Probe(
            "arc/miss-adapts",
            2,
            (
                *(*hot_pair, *stored(8, 9), *pinned(8, 9), *offered(1, 2, by="u2")),
                *(*unpinned(8, 9), *evicted_singly(2), *stored(3), *touched(3), *evicted(1)),
                *(*touched(8), *touched(9), *touched(1, times=2), *asked),
            ),
        )


def _miss_probes() -> Iterator[Probe]:
    """What it does to the target that a ghost is offered."""
    # T2 = 4 3, B1 = 1 2; the offer of both raises the target to 2, then T1 = 1.
    yield Probe(
        "arc/miss-adapts",
        4,
        (
            *(*stored(1, 2, 3, 4), *touched(4), *touched(3), *evicted_singly(2)),
            *(*offered(1, 2, by="u2"), *done(1), *failed(2), *evicted(1)),
        ),
    )
    # T1 = 2, T2 = 4 3, B1 = 1; the offer raises the target to 1 and no further.
    yield Probe(
        "arc/miss-adapts",
        4,
        (
            *(*stored(1, 2, 3, 4), *touched(4), *touched(3), *evicted(1)),
            *(*failed_store(1, by="u2"), *evicted(1)),
        ),
    )


def _request_probes() -> Iterator[Probe]:
    """What a request's end does."""
    yield Probe(
        "arc/store-is-not-reuse",
        3,
        (*stored(1, by="u1"), *stored(2, by="u2"), *ended("u1"), *stored(3, by="u3")),
    )
    yield Probe(
        "arc/reuse-promotes",
        3,
        (*stored(1, 2, by="u1"), *loaded(1, by="u2"), *ended("u2"), *stored(3, by="u3")),
    )
    # 1 and 2 are busy when u1 ends, which has stored 1 and reused 2.
    yield Probe(
        "arc/reuse-promotes",
        4,
        (
            *(*stored(2, by="u2"), *stored(1, by="u1"), *loaded(2, by="u1"), *stored(3, by="u2")),
            *(*pinned(1, 2), *ended("u1"), *unpinned(1, 2), *stored(4, by="u3")),
        ),
    )
    yield Probe(
        "arc/reuse-promotes",
        3,
        (
            *(*stored(1, 2, by="u1"), *loaded(1, by="u2"), *evicted(2), *stored(5, by="u3")),
            *(*offered(1, by="u4"), *ended("u2"), *done(1), *stored(6, by="u3")),
        ),
    )
    # 1 is promoted while it is pending, and then its store fails.
    yield Probe(
        "arc/remove-leaves-no-ghost",
        3,
        (
            *(*stored(1, 2, by="u1"), *loaded(1, by="u2"), *evicted(2), *stored(5, by="u3")),
            *(*offered(1, by="u4"), *ended("u2"), *failed(1), *stored(6, by="u3")),
        ),
    )
    # T2 = 1 2, of which the end of a request renews what it reused, or both that it stored.
    renewed = (*stored(1, 2, by="u1"), *touched(1), *touched(2))
    yield Probe("arc/use-renews-t2", 2, (*renewed, *loaded(1, by="u3"), *ended("u3")))
    yield Probe("arc/store-is-not-reuse", 2, (*renewed, *ended("u1")))
    # The offer of 2 by u1 is refused; u2 stores it.
    yield Probe(
        "arc/merely-seen-stays",
        2,
        (
            *(*stored_singly(1, 3, by="u8"), *pinned(1, 3), *offered(2, by="u1")),
            *(*unpinned(1, 3), *evicted(2), *stored(2, by="u2"), *stored(4, by="u3")),
            *ended("u1"),
        ),
    )
    # Besides, u1 has read 1, which is a ghost when u1 ends: T1 = 2 4, T2 = 5, B1 = 1 3, target 1.
    yield Probe(
        "arc/merely-seen-stays",
        3,
        (
            *(*stored_singly(1, 3, 5, by="u8"), *loaded(1, by="u1"), *touched(5)),
            *(*pinned(1, 3, 5), *offered(2, by="u1"), *unpinned(1, 3, 5), *evicted(2)),
            *(*stored(2, by="u2"), *stored(4, by="u3"), *touched(3), *ended("u1"), *evicted(2)),
        ),
    )
    yield Probe(
        "arc/finish-in-prefix-order", 4, (*stored(0, 2, 1, 3, by="r1"), *ended("r1")), groups=2
    )
    yield Probe(
        "arc/finish-in-prefix-order",
        8,
        (
            *(*stored(0, 2, 1, 3, by="r1"), *ended("r1")),
            *(*stored(6, 5, 8, 7, by="m2"), *ended("m2")),
        ),
        groups=2,
    )


# --- Twins ---


def twin_probes(edition: Edition) -> Iterator[Probe]:
    """Yield programs that are run by two instances, one of them disturbed (`twins`)."""
    busy = (
        *(*stored_singly(1, 2, 3, 4), *touched(4, 3), *pinned(1), *evicted(1), *touched(2, 3)),
        *(*touched(2), *unpinned(1), *stored(5, 6, by="u2"), *touched(5, 1, 9), *evicted(1)),
        *(*touched(6), *stored(7, by="u3"), *touched(3, 6), *evicted(1)),
    )
    if edition.has_request_hooks:
        busy += (*loaded(7, by="u4"), *stored(8, 2, by="r4"), *ended("u4"), *ended("u2"))
        busy += (*stored(9, by="r4"), *evicted(1), *ended("r4"), *stored(4, 3, by="r5"))
    yield Probe("determinism/same-calls-same-results", 4, busy)
    # Ghosts of both lists and a target between them, for policies that have such.
    yield Probe(
        "determinism/same-calls-same-results",
        4,
        (
            *(*stored_singly(1, 2, 3, 4), *touched(4), *touched(3), *evicted(1)),
            *(*touched(1, times=2), *evicted(1), *touched(2), *stored(5, by="u2")),
            *(*touched(1), *stored(6, by="u2"), *touched(6), *evicted(2)),
            *(*touched(4, 5), *stored(1, 7, by="u3"), *touched(2), *evicted(1)),
            *(*stored_singly(8, 9, by="u3"), *evicted(1, 8, 1, 2), *evicted(1, 9, 5, 3)),
        ),
    )

    # Uses that a clear has to make forgotten: what was used, and what was used by running requests.
    yield Probe(
        "clear/equals-new" if edition.has_clear else "determinism/same-calls-same-results",
        4,
        (
            *(*stored_singly(1, 2, 3), *evicted(1), *stored(4, by="r2"), *stored(5, by="u3")),
            *(*stored_singly(1, 2, 3, by="u4"), *touched(1, 2), *touched(1), *stored(6, by="r2")),
            *(*evicted(1), *touched(6, 4, 1, 2, 3)),
        ),
    )

    # A busy chunk is passed over by one eviction after the other, then is idle again.
    yield Probe(
        "state/no-side-effect",
        5,
        (*stored(1, 2, 3, 4, 5), *pinned(1), *evicted(1), *evicted(1), *unpinned(1), *evicted(1)),
    )


PROBES = {"lru": lru_probes, "arc": arc_probes}
"""The probes of each profile whose answers are determined."""
