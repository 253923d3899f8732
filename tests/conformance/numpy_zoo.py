"""Policies that keep their books in arrays of numpy, to see that these are counted."""

from __future__ import annotations

import random

import numpy as np

from cachelaw.conformance.mutants.zoo.right import Recent
from cachelaw.conformance.mutants.zoo.words import Key


class GrowingArray(Recent):
    """An array grows by a number for each touch."""

    breaks = "memory/bounded-by-residents"

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.times = np.zeros(1)

    def renew(self, key: Key) -> None:
        super().renew(key)
        self.times = np.append(self.times, 1.0)[:]  # a view, whose base holds the numbers


class AllInAdvance(Recent):
    """Right: takes what it needs at once, and draws numbers from a generator."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.times = np.zeros(100_000)
        self.rng = random.Random(1)

    def renew(self, key: Key) -> None:
        super().renew(key)
        self.times[0] += self.rng.random()
