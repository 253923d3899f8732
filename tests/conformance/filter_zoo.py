"""Reuse filters, right and wrong, to test the filter engine with.

`RightV019`, `RightV020` and `RightV021` keep every clause, written down as plainly as can be. Each
other class does one thing differently; `test_filters.py` says which clause that breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any


class Core:
    """Counting and admission, without the methods whose form changed."""

    def __init__(self, backing: Any, store_threshold: int = 2, max_tracker_size: int = 64_000):
        self.check(store_threshold, max_tracker_size)
        self.backing = backing
        self.threshold = store_threshold
        self.limit = max_tracker_size
        self.seen: dict[Any, int] = {}

    def check(self, threshold: int, size: int) -> None:
        if threshold < 2 or size < 1:
            raise ValueError("out of range")

    def see(self, key: Any) -> None:
        if key in self.seen:
            self.see_again(key)
        else:
            if len(self.seen) >= self.limit:
                self.make_room()
            self.seen[key] = 1

    def see_again(self, key: Any) -> None:
        self.seen[key] = self.seen.pop(key) + 1

    def make_room(self) -> None:
        del self.seen[next(iter(self.seen))]

    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) >= self.threshold

    def touch(self, keys: Any) -> Any:
        return self.backing.touch(keys)

    def complete_load(self, keys: Any) -> Any:
        return self.backing.complete_load(keys)

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        return self.backing.complete_store(keys, success)

    def take_events(self) -> Any:
        return self.backing.take_events()


class RightV019(Core):
    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            self.see(key)
        return self.backing.lookup(keys)

    def prepare_load(self, keys: Any) -> Any:
        return self.backing.prepare_load(keys)

    def prepare_store(self, keys: Any) -> Any:
        return self.backing.prepare_store([key for key in keys if self.passes(key)])


class RightV020(Core):
    def lookup(self, key: Any, context: Any) -> Any:
        self.see(key)
        return self.backing.lookup(key, context)

    def prepare_load(self, keys: Any, context: Any) -> Any:
        return self.backing.prepare_load(keys, context)

    def prepare_store(self, keys: Any, context: Any) -> Any:
        return self.backing.prepare_store([key for key in keys if self.passes(key)], context)


class RightV021(RightV020):
    def touch(self, keys: Any, context: Any) -> Any:  # type: ignore[override]
        return self.backing.touch(keys, context)

    def complete_load(self, keys: Any, context: Any) -> Any:  # type: ignore[override]
        return self.backing.complete_load(keys, context)

    def complete_store(self, keys: Any, context: Any, success: bool = True) -> Any:  # type: ignore[override]
        return self.backing.complete_store(keys, context, success)


class HandsOverLazily(RightV019):
    """Right too: its iterators and generators hold what the seed's lists hold."""

    def prepare_store(self, keys: Any) -> Any:
        return self.backing.prepare_store(key for key in tuple(keys) if self.passes(key))

    def touch(self, keys: Any) -> Any:
        self.backing.touch(tuple(keys))
        return "done"

    def take_events(self) -> Any:
        yield from self.backing.take_events()


class DelegatesByName(RightV020):
    """Right too: whatever it does not define, its backing does."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("touch", "complete_load", "complete_store", "take_events"):
            return getattr(self.backing, name)
        return super().__getattribute__(name)


def made_by_a_function(backing: Any, store_threshold: int, max_tracker_size: int) -> Any:
    """Right too."""
    return RightV019(backing, store_threshold, max_tracker_size)


# --- Construction --------------------------------------------------------------------------------


class AcceptsThresholdOfOne(RightV019):
    def check(self, threshold: int, size: int) -> None:
        if threshold < 1 or size < 1:
            raise ValueError("out of range")


class AssertsItsThreshold(RightV020):
    def check(self, threshold: int, size: int) -> None:
        if threshold < 2:
            raise AssertionError("out of range")
        super().check(threshold, size)


class RefusesThresholdOfTwo(RightV019):
    def check(self, threshold: int, size: int) -> None:
        super().check(threshold - 1, size)


class AcceptsEmptyTracker(RightV019):
    """Known bug B39."""

    def check(self, threshold: int, size: int) -> None:
        super().check(threshold, 1)


class RefusesTrackerOfOne(RightV020):
    def check(self, threshold: int, size: int) -> None:
        super().check(threshold, size - 1)


# --- Counting ------------------------------------------------------------------------------------


class CountsUpToFirstMiss(RightV019):
    """Known bug B37."""

    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        found = self.backing.lookup(keys)
        for key in keys[: (found or 0) + 1]:
            self.see(key)
        return found


class CountsMissesOnly(RightV020):
    def lookup(self, key: Any, context: Any) -> Any:
        found = self.backing.lookup(key, context)
        if not found:
            self.see(key)
        return found


class CountsEachRequestOnce(RightV020):
    """What the reviewers of known bug B40 asked for."""

    def lookup(self, key: Any, context: Any) -> Any:
        if self.seen_by[key] != context.req_id:
            self.see(key)
        self.seen_by[key] = context.req_id
        return self.backing.lookup(key, context)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.seen_by: dict[Any, Any] = Counter()


class CountsAfterTheWalk(RightV019):
    def lookup(self, keys: Any) -> Any:
        found = self.backing.lookup(list(keys))
        for key in keys:  # an iterator has nothing left
            self.see(key)
        return found


class IgnoresResidents(RightV019):
    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.resident: set[Any] = set()

    def see(self, key: Any) -> None:
        if key not in self.resident:
            super().see(key)

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.resident.update(keys if success else ())
        return self.backing.complete_store(keys, success)


# --- Lookups -------------------------------------------------------------------------------------


class PassesOnAnExhaustedIterator(RightV019):
    def lookup(self, keys: Any) -> Any:
        for key in keys:
            self.see(key)
        return self.backing.lookup(keys)


class LooksUpUntrackedKeysOnly(RightV019):
    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        new = [key for key in keys if key not in self.seen]
        for key in keys:
            self.see(key)
        return self.backing.lookup(new)


class TakesLaterForNever(RightV020):
    def lookup(self, key: Any, context: Any) -> Any:
        return bool(super().lookup(key, context))


class LosesTheContext(RightV020):
    def lookup(self, key: Any, context: Any) -> Any:
        self.see(key)
        return self.backing.lookup(key, type(context)("nobody"))


class CrashesWhenKeysAreDropped(RightV019):
    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            self.see(key)
        self.last = [self.seen[key] for key in keys]
        return self.backing.lookup(keys)


# --- The tracker ---------------------------------------------------------------------------------


class FirstInFirstOut(RightV019):
    """Known bug B43."""

    def see_again(self, key: Any) -> None:
        self.seen[key] += 1


class Unbounded(RightV020):
    """Known bug B43."""

    def make_room(self) -> None:
        pass


class DropsTheNewest(RightV019):
    """Known bug B43."""

    def make_room(self) -> None:
        self.seen.popitem()


class DropsTheRarest(RightV020):
    def make_room(self) -> None:
        del self.seen[min(self.seen, key=lambda key: self.seen[key])]


class DropsAll(RightV019):
    def make_room(self) -> None:
        self.seen.clear()


class HoldsOneTooMany(RightV019):
    def make_room(self) -> None:
        if len(self.seen) > self.limit:
            super().make_room()


class HoldsOneTooFew(RightV020):
    def see(self, key: Any) -> None:
        super().see(key)
        if len(self.seen) == self.limit > 1:
            self.make_room()


class MakesRoomForWhatIsThere(RightV019):
    def see(self, key: Any) -> None:
        if len(self.seen) >= self.limit > 1:
            self.make_room()
        super().see(key)


class SparesTheKeysOfTheLookup(RightV019):
    """What vLLM 0.30 made of known bug B35."""

    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            others = [other for other in self.seen if other not in keys]
            if key not in self.seen and len(self.seen) >= self.limit:
                if not others:
                    continue
                del self.seen[others[0]]
            self.see(key)
        return self.backing.lookup(keys)


class OfferRenews(RightV020):
    def passes(self, key: Any) -> bool:
        if key in self.seen:
            self.seen[key] = self.seen.pop(key)
        return super().passes(key)


# --- Offers --------------------------------------------------------------------------------------


class AsksForMoreThanTheThreshold(RightV019):
    """Known bug B43."""

    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) > self.threshold


class AsksForExactlyTheThreshold(RightV020):
    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) == self.threshold


class ThresholdOfTwoAlways(RightV020):
    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) >= 2


class CountsOffers(RightV019):
    """What vLLM counts from 0.29 on, besides."""

    def prepare_store(self, keys: Any) -> Any:
        keys = list(keys)
        passed = [key for key in keys if self.passes(key)]
        for key in keys:
            self.see(key)
        return self.backing.prepare_store(passed)


class OffersInTheOrderOfTheTracker(RightV019):
    def prepare_store(self, keys: Any) -> Any:
        offered = set(keys)
        passed = [key for key in self.seen if key in offered and self.passes(key)]
        return self.backing.prepare_store(passed)


class FiltersTheAnswer(RightV019):
    def prepare_store(self, keys: Any) -> Any:
        output = self.backing.prepare_store(list(keys))
        if output is None:
            return None
        stored = [key for key in output.keys_to_store if self.passes(key)]
        return type(output)(stored, output.store_spec, output.evicted_keys)


class FiltersTheAnswerInPlace(RightV020):
    def prepare_store(self, keys: Any, context: Any) -> Any:
        output = self.backing.prepare_store(keys, context)
        if output is not None:
            output.keys_to_store[:] = filter(self.passes, output.keys_to_store)
        return output


class OffersOneByOne(RightV019):
    def prepare_store(self, keys: Any) -> Any:
        output = self.backing.prepare_store([])
        for key in keys:
            if self.passes(key):
                output = self.backing.prepare_store([key])
        return output


class StoresEvenIfRefused(RightV020):
    def prepare_store(self, keys: Any, context: Any) -> Any:
        return super().prepare_store(keys, context) or ()


class LooksBeforeItOffers(RightV019):
    def prepare_store(self, keys: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        self.backing.lookup(passed)
        return self.backing.prepare_store(passed)


class SkipsEmptyOffers(RightV019):
    def prepare_store(self, keys: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        return self.backing.prepare_store(passed) if passed else None


# --- All else ------------------------------------------------------------------------------------


class TakesEveryStoreForSuccess(RightV019):
    def complete_store(self, keys: Any, success: bool = True) -> Any:
        return self.backing.complete_store(keys)


class KeepsEventsToItself(RightV020):
    def take_events(self) -> Any:
        return ()


class LogsWhatItTouches(RightV019):
    def touch(self, keys: Any) -> Any:
        self.log = [*keys]
        return self.backing.touch(keys)  # of an iterator, nothing is left


class LoadsAgain(RightV020):
    def prepare_load(self, keys: Any, context: Any) -> Any:
        keys = list(keys)
        self.backing.prepare_load(keys, context)
        return self.backing.prepare_load(keys, context)


class ForgetsTheContextOfATouch(RightV021):
    def touch(self, keys: Any, context: Any) -> Any:  # type: ignore[override]
        return self.backing.touch(keys, None)


class TouchCounts(RightV019):
    def touch(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            self.see(key)
        return self.backing.touch(keys)


class TouchRenews(RightV020):
    def touch(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            if key in self.seen:
                self.seen[key] = self.seen.pop(key)
        return self.backing.touch(keys)


# --- Counts that get lost ------------------------------------------------------------------------


class Forgetful(RightV019):
    def forget(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self.seen.pop(key, None)


class ForgetsWhatItAdmits(Forgetful):
    """Proposed in vLLM #52022."""

    def prepare_store(self, keys: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        self.forget(passed)
        return self.backing.prepare_store(passed)


class ForgetsFailedStores(Forgetful):
    """Known bug B44."""

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.forget(() if success else keys)
        return self.backing.complete_store(keys, success)


class ForgetsStored(Forgetful):
    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.forget(keys if success else ())
        return self.backing.complete_store(keys, success)


class ForgetsEvicted(Forgetful):
    """Known bug B44."""

    def prepare_store(self, keys: Any) -> Any:
        output = super().prepare_store(keys)
        self.forget(output.evicted_keys if output else ())
        return output


class ForgetsRemovedInEvents(Forgetful):
    def take_events(self) -> Any:
        events = list(self.backing.take_events())
        for event in events:
            self.forget(event.keys if event.removed else ())
        return events


class ForgetsRefused(RightV020):
    def prepare_store(self, keys: Any, context: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        output = self.backing.prepare_store(passed, context)
        if output is None:
            for key in passed:
                del self.seen[key]
        return output


# --- What only random programs find --------------------------------------------------------------


class DropsTheSecondOfFive(RightV019):
    def make_room(self) -> None:
        del self.seen[list(self.seen)[self.limit == 5]]


class ForgetsTheThirdFailure(Forgetful):
    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.failures: Counter[Any] = Counter()

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.failures.update(() if success else keys)
        self.forget(key for key in keys if self.failures[key] == 3)
        return self.backing.complete_store(keys, success)


# --- Not for the tables --------------------------------------------------------------------------


class ComparesIdentities(RightV019):
    """Hosts pass fresh keys, and so does the suite."""

    def see(self, key: Any) -> None:
        super().see(id(key))

    def passes(self, key: Any) -> bool:
        return super().passes(id(key))


class SkipsEmptyOffersFirstInFirstOut(SkipsEmptyOffers, FirstInFirstOut):
    pass


class FitsBothForms(RightV019):
    """Right as either."""

    def lookup(self, *args: Any) -> Any:
        if len(args) == 1:
            return super().lookup(*args)
        self.see(args[0])
        return self.backing.lookup(*args)

    def prepare_load(self, *args: Any) -> Any:
        return self.backing.prepare_load(*args)

    def prepare_store(self, keys: Any, *context: Any) -> Any:
        return self.backing.prepare_store([key for key in keys if self.passes(key)], *context)


class DeclaredFilter(RightV019):
    cachelaw = {"profile": "reuse-filter", "edition": "v0.19"}  # noqa: RUF012


class NoTouch(RightV019):
    touch = None  # type: ignore[assignment]


class TakesNothing:
    pass
