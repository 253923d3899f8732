"""Wrong where two instances, or two runs, differ."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Collection
from hashlib import sha256
from typing import Any, ClassVar

from cachelaw.conformance.mutants.zoo.right import Fifo, Lfu, Recent
from cachelaw.conformance.mutants.zoo.words import Key


class IdentityTable(Fifo):
    """Finds chunks by the identity of the key object."""

    breaks = "keys/equal-is-same"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.keys: list[Key] = []

    def get(self, key: Key) -> Any:
        return self.chunks[key] if any(key is known for known in self.keys) else None

    def insert(self, key: Key, chunk: Any, context: Any = None) -> None:
        super().insert(key, chunk)
        self.keys.append(key)


class TouchByIdentity(Recent):
    """Renews a touched chunk only if the key is the very object that was inserted."""

    breaks = "keys/equal-is-same"

    def renew(self, key: Key) -> None:
        if any(key is known for known in self.chunks):
            super().renew(key)


class ProtectsByIdentity(Fifo):
    """Looks for protected keys by identity."""

    breaks = "keys/equal-is-same"
    also = ("evict/protected-honoured",)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [key for key in super().idle() if not any(key is other for other in protected)]


class SharedTable(Fifo):
    """Keeps the chunks of all instances in one table."""

    breaks = "instances/share-nothing"
    table: ClassVar[dict[Key, Any]] = {}

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.table.clear()
        self.chunks = self.table


class SharedCounts(Lfu):
    """Counts uses for all instances together."""

    breaks = "instances/share-nothing"
    all_counts: ClassVar[Counter[Key]] = Counter()

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.all_counts.clear()
        self.counts = self.all_counts


class RandomVictim(Fifo):
    """Draws its victims, without saying so."""

    breaks = "determinism/same-calls-same-results"
    rng: ClassVar[random.Random] = random.Random()

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        keys = super().idle(protected)
        return self.rng.sample(keys, len(keys))


class CoinTouch(Recent):
    """Takes in a touch with a probability of one half, without saying so."""

    breaks = "determinism/same-calls-same-results"
    rng: ClassVar[random.Random] = random.Random()

    def renew(self, key: Key) -> None:
        if self.rng.random() < 0.5:
            super().renew(key)


class HashOrder(Fifo):
    """Takes its victims in the order in which a set of keys is iterated."""

    breaks = "determinism/independent-of-hash-seed"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return list(set(super().idle(protected)))


class RandomSalt(Fifo):
    """Orders its victims by hashes with a salt that each process draws for itself."""

    breaks = "determinism/same-calls-same-results"
    salt: ClassVar[bytes] = os.urandom(8)

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return sorted(super().idle(protected), key=lambda key: sha256(self.salt + key).digest())
