"""The reference behind lanes: requests sent through the functional cores by the protocol.

What `cachelaw.fast.lanes` promises is written down here a second time, in events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachelaw.fast.lanes import LaneSpec
from cachelaw.reference import reuse_filter
from cachelaw.reference.cores import World, core_of
from cachelaw.reference.editions import edition_named
from cachelaw.reference.protocol import (
    Event,
    LoadEnds,
    LoadStarts,
    RequestEnds,
    Setting,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
    perform,
    start,
)


@dataclass
class Cache:
    """One cache of the reference, and what it counted."""

    spec: LaneSpec
    hits: int = 0
    resident: int = 0
    stores: int = 0
    evictions: int = 0
    refusals: int = 0
    positions: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        edition = edition_named(self.spec.edition)
        self.setting: Setting[int] = Setting(
            edition,
            self.spec.capacity,
            position_of=lambda request, key: self.positions.get((request, key)),
        )
        self.core = core_of(self.spec.policy, edition)
        self.policy: Any = self.core.start(self.spec.capacity)
        self.books = start(self.setting)
        self.memories: dict[str, Any] = {}
        self.tracker: reuse_filter.Tracker[int] = ()

    def happens(self, event: Event[int]) -> None:
        """Let a manager perform an event on the policy."""
        assert objection(self.setting, self.books, event) is None
        ref_cnt = {key: chunk.ref_cnt for key, chunk in self.books.chunks.items()}
        steps = perform(self.setting, self.books, event)
        answer: Any = None
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as end:
                self.books = end.value
                return
            answer = None
            if call.method == "set_ref_cnt":
                ref_cnt[call.arguments[0]] = call.arguments[1]
                continue
            if call.method == "insert":
                ref_cnt[call.arguments[0]] = -1
            request = getattr(event, "request", "")
            world = World(
                lambda key: ref_cnt[key],
                lambda request, key: self.positions.get((request, key)),
                self.memories.get(request),
            )
            self.policy, answer, memory = self.core.apply(self.policy, call, world)
            self.memories[request] = memory
            if call.method == "evict" and answer is not None:
                self.evictions += len(answer)

    def offers(self, keys: Sequence[int]) -> tuple[int, ...]:
        """Look up `keys` in the reuse filter, and return those that pass."""
        if not self.spec.store_threshold:
            return tuple(keys)
        limit = self.spec.max_tracker_size
        for key in keys:
            self.tracker = reuse_filter.observe(
                self.tracker, key, len(self.tracker) + 1 if limit is None else limit
            )
        return tuple(
            key
            for key in keys
            if reuse_filter.times_seen(self.tracker, key) >= self.spec.store_threshold
        )

    def store(self, keys: tuple[int, ...], request: str) -> None:
        """Offer `keys`, and let the store of what was taken in succeed."""
        before = set(self.books.chunks)
        self.happens(StoreOffered(keys, request))
        taken = tuple(key for key in keys if key in self.books.chunks and key not in before)
        self.stores += len(taken)
        self.refusals += not taken and not before.issuperset(keys)
        self.happens(StoreSucceeds(taken))

    def serve(self, keys: Sequence[int], request: str) -> None:
        """Serve one request."""
        self.positions = {(request, key): i + 1 for i, key in enumerate(keys)}
        hooks = self.setting.edition.has_request_hooks
        chunks = self.books.chunks
        self.resident += sum(key in chunks for key in keys)
        run = next((i for i, key in enumerate(keys) if key not in chunks), len(keys))
        self.hits += run
        offered = self.offers(keys)
        if not hooks:
            self.happens(Touch(tuple(keys), request))
        self.happens(LoadStarts(tuple(keys[:run]), request))
        self.store(offered, request)
        self.happens(LoadEnds(tuple(keys[:run])))
        if hooks:
            self.happens(RequestEnds(request))

    def refer(self, key: int, request: str) -> None:
        """Take in one reference."""
        hit = key in self.books.chunks
        self.hits += hit
        self.resident += hit
        offered = self.offers((key,))
        if hit or not self.setting.edition.has_request_hooks:
            self.happens(Touch((key,), request))
        if not hit and offered:
            self.store(offered, request)

    @property
    def counted(self) -> tuple[int, int, int, int, int, float]:
        """What a lane's result has to say."""
        return (
            self.hits,
            self.resident,
            self.stores,
            self.evictions,
            self.refusals,
            getattr(self.policy, "target", 0.0),
        )


def by_protocol(
    spec: LaneSpec, requests: Iterable[Sequence[int]], semantics: str
) -> tuple[int, int, int, int, int, float]:
    """Return what the reference counts: hits, resident, stores, evictions, refusals, target."""
    cache = Cache(spec)
    for number, keys in enumerate(requests):
        if semantics == "requests":
            cache.serve(keys, f"r{number}")
        else:
            for i, key in enumerate(keys):
                cache.refer(key, f"r{number}.{i}")
    return cache.counted
