"""Wrong with the refusals of `evict`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, ClassVar

from cachelaw.conformance.mutants.zoo.right import Clock, Fifo, Lfu, Recent
from cachelaw.conformance.mutants.zoo.words import Key
from cachelaw.reference import v024


class ScanLimit(Fifo):
    """Looks at the three oldest chunks only."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        near = list(self.chunks)[:3]
        return [key for key in super().idle(protected) if key in near]


class FarScanLimit(Fifo):
    """Looks at the thirty oldest chunks only."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        near = list(self.chunks)[:30]
        return [key for key in super().idle(protected) if key in near]


class StrictCount(Fifo):
    """B21: wants one idle chunk more than it is asked for."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) if not n or n < len(self.idle(protected)) else None


class CountsProtected(Fifo):
    """Takes every protected key for an idle chunk less."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        enough = not n or len(self.idle()) - len(protected) >= n
        return super().evict(n, protected) if enough else None


class StopsAtBusy(Fifo):
    """Ends its search at the first chunk that is busy."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        busy = next((at for at, c in enumerate(self.chunks.values()) if c.ref_cnt), None)
        return [key for key in list(self.chunks)[:busy] if key not in protected]


class StopsAtProtected(Fifo):
    """Ends its search at the first chunk that is protected."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        keys = super().idle()
        stop = next((at for at, key in enumerate(keys) if key in protected), None)
        return keys[:stop]


class OneSegment(Lfu):
    """Takes a batch from the chunks that were never touched or from the others, not from both."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        keys = self.idle(protected)
        cold = [key for key in keys if not self.counts[key]]
        for segment in (cold, [key for key in keys if key not in cold]):
            if len(segment) >= n:
                return self.hand_over(segment[:n])
        return None


class NeverHot(Lfu):
    """Never evicts a chunk that was touched twice."""

    breaks = "evict/none-only-when-short"

    def idle(self, protected: Collection[Key] = ()) -> list[Key]:
        return [key for key in super().idle(protected) if self.counts[key] < 2]


class AdmissionGate(Lfu):
    """Refuses to give up a chunk that was touched for one that was not, without saying so."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        if n and any(self.counts[key] for key in self.idle(protected)[:n]):
            return None
        return super().evict(n, protected)


class HalfAtATime(Fifo):
    """Refuses batches of more than half the capacity."""

    breaks = "evict/none-only-when-short"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) if n <= max(1, self.capacity // 2) else None


class HandDoesNotWrap(Fifo):
    """A cursor that ends at the youngest chunk and goes back to the oldest at the next call."""

    breaks = "evict/none-only-when-short"
    hand = 0

    def evict(self, n: int, protected: set[Key]) -> Any:
        ahead = [key for key in self.idle(protected) if key in list(self.chunks)[self.hand :]]
        if len(ahead) < n:
            self.hand = 0
            return None
        self.hand = list(self.chunks).index(ahead[n - 1]) + 1 - n if n else self.hand
        return self.hand_over(ahead[:n])

    def clear(self) -> None:
        super().clear()
        self.hand = 0


class OnceBusyNeverIdle(v024.LRU):
    """Misses the end of a load, so that what was pinned once is never evicted."""

    breaks = "evict/none-only-when-short"

    def mark_evictable(self, key: Key) -> None:
        if key not in self.pinned:
            super().mark_evictable(key)

    def mark_non_evictable(self, key: Key) -> None:
        super().mark_non_evictable(key)
        self.pinned.add(key)

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.pinned: set[Key] = set()


class ForgetsCandidates(Fifo):
    """Never proposes a chunk again that it proposed for a batch which came to nothing."""

    breaks = "evict/none-only-when-short"
    also = ("evict/none-changes-nothing",)

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self.proposed: set[Key] = set()

    def evict(self, n: int, protected: set[Key]) -> Any:
        candidates = [key for key in self.idle(protected) if key not in self.proposed][:n]
        if len(candidates) == n:
            return self.hand_over(candidates)
        self.proposed.update(candidates)
        return None


class RefusalEvicts(Fifo):
    """B03: evicts one by one, and has nothing to undo it with when it runs out."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.hand_over(self.idle(protected)[:n])
        return victims if len(victims) == n else None


class RefusalClearsBits(Clock):
    """Clears reference bits on its way to a refusal."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None:
            self.used.clear()
        return answer


class RefusalTurnsRing(Clock):
    """Leaves its hand where a refused search ended."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None and self.chunks:
            first = next(iter(self.chunks))
            self.chunks[first] = self.chunks.pop(first)
        return answer


class RefusalDecays(Lfu):
    """Ages all counts, also when it then refuses."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if n:
            self.counts = Counter({key: count // 2 for key, count in self.counts.items()})
        return answer


class RefusalSorts(Recent):
    """B34: puts its order straight by key before it finds out that it must refuse."""

    breaks = "evict/none-changes-nothing"

    def evict(self, n: int, protected: set[Key]) -> Any:
        answer = super().evict(n, protected)
        if answer is None:
            self.chunks = dict(sorted(self.chunks.items()))
        return answer


class RandomRefusalEvicts(RefusalEvicts):
    """B03, by a policy that says that it is randomized, which is no excuse."""

    breaks = "evict/none-changes-nothing"
    cachelaw: ClassVar = {"randomized": True}


class GateEvicts(RefusalEvicts):
    """B03, by a policy that says that it may refuse, which is no excuse."""

    breaks = "evict/none-changes-nothing"
    cachelaw: ClassVar = {"may_refuse": True}


class RandomZeroIsNone(Fifo):
    """Returns None when it is asked for nothing, and says that it is randomized."""

    breaks = "evict/zero-is-empty"
    cachelaw: ClassVar = {"randomized": True}

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) or None


class ZeroIsNone(Fifo):
    """Returns None when it is asked for nothing."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n, protected) or None


class ZeroIsOne(Fifo):
    """Evicts at least one chunk."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        return super().evict(n if n or not self.idle(protected) else 1, protected)


class ZeroIsAll(Fifo):
    """Takes its victims by a slice whose end is minus nothing."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        victims = self.idle(protected)
        return self.hand_over(victims[::-1][-n:][::-1]) if len(victims) >= n else None


class ZeroTurnsRing(Clock):
    """Moves its hand before it looks at how many are wanted."""

    breaks = "evict/zero-is-empty"

    def evict(self, n: int, protected: set[Key]) -> Any:
        if not n and self.chunks:
            self.pass_over({}, protected)
        return super().evict(n, protected)
