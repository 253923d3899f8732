"""Reuse filters, right and wrong.

`RightV019`, `RightV020` and `RightV021` keep every clause, written down as plainly as can be. Each
wrong class does one thing differently.
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
    """Right v019."""

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
    """Right v020."""

    def lookup(self, key: Any, context: Any) -> Any:
        self.see(key)
        return self.backing.lookup(key, context)

    def prepare_load(self, keys: Any, context: Any) -> Any:
        return self.backing.prepare_load(keys, context)

    def prepare_store(self, keys: Any, context: Any) -> Any:
        return self.backing.prepare_store([key for key in keys if self.passes(key)], context)


class RightV021(RightV020):
    """Right v021."""

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
    """Accepts threshold of one."""

    breaks = "reuse-filter/threshold-at-least-two"

    def check(self, threshold: int, size: int) -> None:
        if threshold < 1 or size < 1:
            raise ValueError("out of range")


class AssertsItsThreshold(RightV020):
    """Asserts its threshold."""

    breaks = "reuse-filter/threshold-at-least-two"

    def check(self, threshold: int, size: int) -> None:
        if threshold < 2:
            raise AssertionError("out of range")
        super().check(threshold, size)


class RefusesThresholdOfTwo(RightV019):
    """Refuses threshold of two."""

    breaks = "reuse-filter/threshold-at-least-two"

    def check(self, threshold: int, size: int) -> None:
        super().check(threshold - 1, size)


class AcceptsEmptyTracker(RightV019):
    """Known bug B39."""

    breaks = "reuse-filter/tracker-at-least-one"

    def check(self, threshold: int, size: int) -> None:
        super().check(threshold, 1)


class RefusesTrackerOfOne(RightV020):
    """Refuses tracker of one."""

    breaks = "reuse-filter/tracker-at-least-one"

    def check(self, threshold: int, size: int) -> None:
        super().check(threshold, size - 1)


# --- Counting ------------------------------------------------------------------------------------


class CountsUpToFirstMiss(RightV019):
    """Known bug B37."""

    breaks = "reuse-filter/lookup-counts-each-key"

    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        found = self.backing.lookup(keys)
        for key in keys[: (found or 0) + 1]:
            self.see(key)
        return found


class CountsMissesOnly(RightV020):
    """Counts misses only."""

    breaks = "reuse-filter/lookup-counts-each-key"

    def lookup(self, key: Any, context: Any) -> Any:
        found = self.backing.lookup(key, context)
        if not found:
            self.see(key)
        return found


class CountsEachRequestOnce(RightV020):
    """What the reviewers of known bug B40 asked for."""

    breaks = "reuse-filter/lookup-counts-each-key"

    def lookup(self, key: Any, context: Any) -> Any:
        if self.seen_by[key] != context.req_id:
            self.see(key)
        self.seen_by[key] = context.req_id
        return self.backing.lookup(key, context)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.seen_by: dict[Any, Any] = Counter()


class CountsAfterTheWalk(RightV019):
    """Counts after the walk."""

    breaks = "reuse-filter/lookup-counts-each-key"

    def lookup(self, keys: Any) -> Any:
        found = self.backing.lookup(list(keys))
        for key in keys:  # an iterator has nothing left
            self.see(key)
        return found


class IgnoresResidents(RightV019):
    """Ignores residents."""

    breaks = "reuse-filter/lookup-counts-each-key"

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
    """Passes on an exhausted iterator."""

    breaks = "reuse-filter/lookup-delegates-all"

    def lookup(self, keys: Any) -> Any:
        for key in keys:
            self.see(key)
        return self.backing.lookup(keys)


class LooksUpUntrackedKeysOnly(RightV019):
    """Looks up untracked keys only."""

    breaks = "reuse-filter/lookup-delegates-all"

    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        new = [key for key in keys if key not in self.seen]
        for key in keys:
            self.see(key)
        return self.backing.lookup(new)


class TakesLaterForNever(RightV020):
    """Takes later for never."""

    breaks = "reuse-filter/lookup-delegates-all"

    def lookup(self, key: Any, context: Any) -> Any:
        return bool(super().lookup(key, context))


class LosesTheContext(RightV020):
    """Loses the context."""

    breaks = "reuse-filter/lookup-delegates-all"

    def lookup(self, key: Any, context: Any) -> Any:
        self.see(key)
        return self.backing.lookup(key, type(context)("nobody"))


class CrashesWhenKeysAreDropped(RightV019):
    """Crashes when keys are dropped."""

    breaks = "reuse-filter/lookup-delegates-all"

    def lookup(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            self.see(key)
        self.last = [self.seen[key] for key in keys]
        return self.backing.lookup(keys)


# --- The tracker ---------------------------------------------------------------------------------


class FirstInFirstOut(RightV019):
    """Known bug B43."""

    breaks = "reuse-filter/repeat-renews"

    def see_again(self, key: Any) -> None:
        self.seen[key] += 1


class Unbounded(RightV020):
    """Known bug B43."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def make_room(self) -> None:
        pass


class DropsTheNewest(RightV019):
    """Known bug B43."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def make_room(self) -> None:
        self.seen.popitem()


class DropsTheRarest(RightV020):
    """Drops the rarest."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def make_room(self) -> None:
        del self.seen[min(self.seen, key=lambda key: self.seen[key])]


class DropsAll(RightV019):
    """Drops all."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def make_room(self) -> None:
        self.seen.clear()


class HoldsOneTooMany(RightV019):
    """Holds one too many."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def make_room(self) -> None:
        if len(self.seen) > self.limit:
            super().make_room()


class HoldsOneTooFew(RightV020):
    """Holds one too few."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def see(self, key: Any) -> None:
        super().see(key)
        if len(self.seen) == self.limit > 1:
            self.make_room()


class MakesRoomForWhatIsThere(RightV019):
    """Makes room for what is there."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def see(self, key: Any) -> None:
        if len(self.seen) >= self.limit > 1:
            self.make_room()
        super().see(key)


class SparesTheKeysOfTheLookup(RightV019):
    """What vLLM 0.30 made of known bug B35."""

    breaks = "reuse-filter/tracker-drops-least-recent"

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
    """Offer renews."""

    breaks = "reuse-filter/tracker-drops-least-recent"

    def passes(self, key: Any) -> bool:
        if key in self.seen:
            self.seen[key] = self.seen.pop(key)
        return super().passes(key)


# --- Offers --------------------------------------------------------------------------------------


class AsksForMoreThanTheThreshold(RightV019):
    """Known bug B43."""

    breaks = "reuse-filter/store-needs-threshold"

    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) > self.threshold


class AsksForExactlyTheThreshold(RightV020):
    """Asks for exactly the threshold."""

    breaks = "reuse-filter/store-needs-threshold"

    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) == self.threshold


class ThresholdOfTwoAlways(RightV020):
    """Threshold of two always."""

    breaks = "reuse-filter/store-needs-threshold"

    def passes(self, key: Any) -> bool:
        return self.seen.get(key, 0) >= 2


class CountsOffers(RightV019):
    """What vLLM counts from 0.29 on, besides."""

    breaks = "reuse-filter/store-needs-threshold"

    def prepare_store(self, keys: Any) -> Any:
        keys = list(keys)
        passed = [key for key in keys if self.passes(key)]
        for key in keys:
            self.see(key)
        return self.backing.prepare_store(passed)


class OffersInTheOrderOfTheTracker(RightV019):
    """Offers in the order of the tracker."""

    breaks = "reuse-filter/store-needs-threshold"

    def prepare_store(self, keys: Any) -> Any:
        offered = set(keys)
        passed = [key for key in self.seen if key in offered and self.passes(key)]
        return self.backing.prepare_store(passed)


class FiltersTheAnswer(RightV019):
    """Filters the answer."""

    breaks = "reuse-filter/filtered-before-backing"

    def prepare_store(self, keys: Any) -> Any:
        output = self.backing.prepare_store(list(keys))
        if output is None:
            return None
        stored = [key for key in output.keys_to_store if self.passes(key)]
        return type(output)(stored, output.store_spec, output.evicted_keys)


class FiltersTheAnswerInPlace(RightV020):
    """Filters the answer in place."""

    breaks = "reuse-filter/filtered-before-backing"

    def prepare_store(self, keys: Any, context: Any) -> Any:
        output = self.backing.prepare_store(keys, context)
        if output is not None:
            output.keys_to_store[:] = filter(self.passes, output.keys_to_store)
        return output


class OffersOneByOne(RightV019):
    """Offers one by one."""

    breaks = "reuse-filter/filtered-before-backing"

    def prepare_store(self, keys: Any) -> Any:
        output = self.backing.prepare_store([])
        for key in keys:
            if self.passes(key):
                output = self.backing.prepare_store([key])
        return output


class StoresEvenIfRefused(RightV020):
    """Stores even if refused."""

    breaks = "reuse-filter/filtered-before-backing"

    def prepare_store(self, keys: Any, context: Any) -> Any:
        return super().prepare_store(keys, context) or ()


class LooksBeforeItOffers(RightV019):
    """Looks before it offers."""

    breaks = "reuse-filter/filtered-before-backing"

    def prepare_store(self, keys: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        self.backing.lookup(passed)
        return self.backing.prepare_store(passed)


class SkipsEmptyOffers(RightV019):
    """Skips empty offers."""

    breaks = "reuse-filter/empty-offer-delegated"

    def prepare_store(self, keys: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        return self.backing.prepare_store(passed) if passed else None


# --- All else ------------------------------------------------------------------------------------


class TakesEveryStoreForSuccess(RightV019):
    """Takes every store for success."""

    breaks = "reuse-filter/all-else-delegated"

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        return self.backing.complete_store(keys)


class KeepsEventsToItself(RightV020):
    """Keeps events to itself."""

    breaks = "reuse-filter/all-else-delegated"

    def take_events(self) -> Any:
        return ()


class LogsWhatItTouches(RightV019):
    """Logs what it touches."""

    breaks = "reuse-filter/all-else-delegated"

    def touch(self, keys: Any) -> Any:
        self.log = [*keys]
        return self.backing.touch(keys)  # of an iterator, nothing is left


class LoadsAgain(RightV020):
    """Loads again."""

    breaks = "reuse-filter/all-else-delegated"

    def prepare_load(self, keys: Any, context: Any) -> Any:
        keys = list(keys)
        self.backing.prepare_load(keys, context)
        return self.backing.prepare_load(keys, context)


class ForgetsTheContextOfATouch(RightV021):
    """Forgets the context of a touch."""

    breaks = "reuse-filter/all-else-delegated"

    def touch(self, keys: Any, context: Any) -> Any:  # type: ignore[override]
        return self.backing.touch(keys, None)


class TouchCounts(RightV019):
    """Touch counts."""

    breaks = "reuse-filter/all-else-delegated"

    def touch(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            self.see(key)
        return self.backing.touch(keys)


class TouchRenews(RightV020):
    """Touch renews."""

    breaks = "reuse-filter/all-else-delegated"

    def touch(self, keys: Any) -> Any:
        keys = list(keys)
        for key in keys:
            if key in self.seen:
                self.seen[key] = self.seen.pop(key)
        return self.backing.touch(keys)


# --- Counts that get lost ------------------------------------------------------------------------


class Forgetful(RightV019):
    """Right: it could forget counts, and does not."""

    def forget(self, keys: Iterable[Any]) -> None:
        for key in keys:
            self.seen.pop(key, None)


class ForgetsWhatItAdmits(Forgetful):
    """Proposed in vLLM #52022."""

    breaks = "reuse-filter/counts-outlive-chunks"

    def prepare_store(self, keys: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        self.forget(passed)
        return self.backing.prepare_store(passed)


class ForgetsFailedStores(Forgetful):
    """Known bug B44."""

    breaks = "reuse-filter/counts-outlive-chunks"

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.forget(() if success else keys)
        return self.backing.complete_store(keys, success)


class ForgetsStored(Forgetful):
    """Forgets stored."""

    breaks = "reuse-filter/counts-outlive-chunks"

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.forget(keys if success else ())
        return self.backing.complete_store(keys, success)


class ForgetsEvicted(Forgetful):
    """Known bug B44."""

    breaks = "reuse-filter/counts-outlive-chunks"

    def prepare_store(self, keys: Any) -> Any:
        output = super().prepare_store(keys)
        self.forget(output.evicted_keys if output else ())
        return output


class ForgetsRemovedInEvents(Forgetful):
    """Forgets removed in events."""

    breaks = "reuse-filter/counts-outlive-chunks"

    def take_events(self) -> Any:
        events = list(self.backing.take_events())
        for event in events:
            self.forget(event.keys if event.removed else ())
        return events


class ForgetsRefused(RightV020):
    """Forgets refused."""

    breaks = "reuse-filter/counts-outlive-chunks"

    def prepare_store(self, keys: Any, context: Any) -> Any:
        passed = [key for key in keys if self.passes(key)]
        output = self.backing.prepare_store(passed, context)
        if output is None:
            for key in passed:
                del self.seen[key]
        return output


# --- What only random programs find --------------------------------------------------------------


class DropsTheSecondOfFive(RightV019):
    """Drops the second of five."""

    breaks_one_of = ("reuse-filter/repeat-renews", "reuse-filter/tracker-drops-least-recent")

    def make_room(self) -> None:
        del self.seen[list(self.seen)[self.limit == 5]]


class ForgetsTheThirdFailure(Forgetful):
    """Forgets the third failure."""

    breaks_one_of = ("reuse-filter/counts-outlive-chunks",)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.failures: Counter[Any] = Counter()

    def complete_store(self, keys: Any, success: bool = True) -> Any:
        keys = list(keys)
        self.failures.update(() if success else keys)
        self.forget(key for key in keys if self.failures[key] == 3)
        return self.backing.complete_store(keys, success)


# --- Keys ----------------------------------------------------------------------------------------


class ComparesIdentities(RightV019):
    """Hosts pass fresh keys, and so does the suite."""

    breaks = "reuse-filter/store-needs-threshold"

    def see(self, key: Any) -> None:
        super().see(id(key))

    def passes(self, key: Any) -> bool:
        return super().passes(id(key))


# --- What no host can drive ----------------------------------------------------------------------


class NoTouch(RightV019):
    """No touch."""

    unusable = "it has no method touch"

    touch = None  # type: ignore[assignment]
