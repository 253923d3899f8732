"""The protocol: from an event to calls, row by row, in every edition.

Keys are letters. `Books` stands for a manager and is told which keys a policy would let go; what
is compared is the exact list of calls. The clauses are those of `specs/cache-policy.md` that bind
the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cachelaw.reference.editions import EDITIONS, V031, Edition
from cachelaw.reference.protocol import (
    Call,
    Chunk,
    Event,
    Evict,
    LoadEnds,
    LoadStarts,
    Lookup,
    Request,
    RequestEnds,
    Reset,
    Setting,
    State,
    StoreFails,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
    perform,
    start,
)
from cachelaw.specs.registry import CLAUSES

if TYPE_CHECKING:
    from tests.reference.conftest import Host

EVERY = pytest.mark.parametrize("edition", EDITIONS, ids=str)
WITH_HOOKS = pytest.mark.parametrize("edition", [e for e in EDITIONS if e >= V031], ids=str)
WITH_CLEAR = pytest.mark.parametrize("edition", [e for e in EDITIONS if e.has_clear], ids=str)

COVERED: set[str] = set()
"""The clauses that a test here says it is about."""


def having(clause: str) -> pytest.MarkDecorator:
    """Run a test for each edition that has `clause`."""
    COVERED.add(clause)
    found = [edition for edition in EDITIONS if CLAUSES[clause].holds_in(edition.name)]
    return pytest.mark.parametrize("edition", found, ids=str)


class Books:
    """A manager's books, with a script for a policy.

    Args:
        edition: whose manager.
        capacity: the number of slots.
        groups: the KV cache group of a key, 0 if it is not named.
        positions: what each request knows of the positions of keys.
    """

    def __init__(
        self,
        edition: Edition,
        capacity: int,
        groups: Mapping[str, int] | None = None,
        positions: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        group_of, position_of = groups or {}, positions or {}
        self.setting: Setting[str] = Setting(
            edition,
            capacity,
            lambda key: group_of.get(key, 0),
            lambda request, key: position_of.get(request, {}).get(key),
        )
        self.state: State[str] = start(self.setting)

    def calls(self, event: Event[str], leave: str | None = None) -> list[Call]:
        """Let an event happen and return its calls; an evict is answered with `leave`."""
        assert self.objection(event) is None
        before, shown = self.state, show(self.state)
        made: list[Call] = []
        steps = perform(self.setting, self.state, event)
        answer: Any = None
        try:
            while True:
                call = steps.send(answer)
                made.append(call)
                is_evict = call.method == "evict" and leave is not None
                answer = tuple(leave or "") if is_evict else None
        except StopIteration as end:
            self.state = end.value
        assert show(before) == shown, "a state has changed"
        return made

    def objection(self, event: Event[str]) -> str | None:
        """Say what is wrong with an event."""
        return objection(self.setting, self.state, event)

    def store(self, keys: str, by: str = "r", leave: str | None = None) -> None:
        """Store keys, whatever calls it takes."""
        self.calls(StoreOffered(tuple(keys), by), leave)
        pending = [key for key in keys if self.state.chunks[key].ref_cnt < 0]
        self.calls(StoreSucceeds(tuple(pending)))

    def load(self, keys: str, by: str = "r") -> None:
        """Begin to load keys, whatever calls it takes."""
        self.calls(LoadStarts(tuple(keys), by))

    @property
    def counts(self) -> dict[str, int]:
        """The ref counts of the residents."""
        return {key: chunk.ref_cnt for key, chunk in self.state.chunks.items()}


def show(state: State[str]) -> Any:
    """Return the whole content of a state as values that cannot change."""
    return dict(state.chunks), state.free, dict(state.requests)


# --- Calls, as they are written below ------------------------------------------------------------


def get(*keys: str) -> list[Call]:
    return [Call("get", (key,)) for key in keys]


def count(key: str, ref_cnt: int) -> list[Call]:
    return [Call("set_ref_cnt", (key, ref_cnt))]


def idle(edition: Edition, key: str) -> list[Call]:
    return [Call("mark_evictable", (key,))] if edition.has_marks else []


def busy(edition: Edition, key: str) -> list[Call]:
    return [Call("mark_non_evictable", (key,))] if edition.has_marks else []


def miss(edition: Edition, keys: str, by: str = "r") -> list[Call]:
    return [Call("on_store_miss", (tuple(keys), by))] if edition.has_request_hooks else []


def access(edition: Edition, keys: str, by: str = "r") -> list[Call]:
    return [Call("on_request_access", (tuple(keys), by))] if edition.has_request_access else []


def evict(n: int, keys: str) -> list[Call]:
    return [Call("evict", (n, frozenset(keys)))]


def insert(key: str, slot: int, by: str = "r") -> list[Call]:
    return [Call("insert", (key, slot, by))]


def finished(groups: tuple[str, ...], inserted: str, reused: str, by: str = "r") -> list[Call]:
    keys = tuple(tuple(group) for group in groups)
    return [Call("on_request_finished", (keys, frozenset(inserted), frozenset(reused), by))]


def offer(keys: str, by: str = "r") -> StoreOffered[str]:
    return StoreOffered(tuple(keys), by)


# --- Lookups and loads ---------------------------------------------------------------------------


@EVERY
def test_a_lookup_is_a_get(edition: Edition) -> None:
    books = Books(edition, 2)
    books.store("a")
    before = show(books.state)
    assert books.calls(Lookup("a")) == get("a")
    assert books.calls(Lookup("z")) == get("z")
    assert show(books.state) == before


@EVERY
def test_a_load_starts(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("abc", by="u")
    books.load("b", by="u")
    assert books.calls(LoadStarts(("a", "b"), "r")) == [
        *get("a"),
        *busy(edition, "a"),
        *count("a", 1),
        *get("b"),
        *count("b", 2),  # its ref count was not 0
        *access(edition, "ab"),
    ]
    assert books.counts == {"a": 1, "b": 2, "c": 0}
    # The same request again sees nothing for the first time, another does.
    assert books.calls(LoadStarts(("b",), "r")) == [*get("b"), *count("b", 3)]
    assert books.calls(LoadStarts(("c", "b"), "r")) == [
        *get("c"),
        *busy(edition, "c"),
        *count("c", 1),
        *get("b"),
        *count("b", 4),
        *access(edition, "c"),
    ]


@EVERY
def test_a_load_that_is_not_recorded(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("ab", by="u")
    requests = dict(books.state.requests)
    assert books.calls(LoadStarts(("a", "b"), "r", recorded=False)) == [
        *get("a"),
        *busy(edition, "a"),
        *count("a", 1),
        *get("b"),
        *busy(edition, "b"),
        *count("b", 1),
    ]
    assert books.counts == {"a": 1, "b": 1}
    assert books.state.requests == requests
    # What was read unrecorded is still to be seen.
    assert books.calls(LoadStarts(("a",), "r"))[-1:] == (access(edition, "a") or count("a", 2))


@WITH_HOOKS
def test_a_load_that_is_not_recorded_is_no_reuse(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("ab", by="u")
    books.calls(LoadStarts(("a", "b"), "r", recorded=False))
    assert books.calls(RequestEnds("r")) == finished((), "", "")


@EVERY
def test_a_load_ends(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("ab")
    books.load("ab")
    books.load("b")
    assert books.calls(LoadEnds(("a", "b"))) == [
        *get("a"),
        *count("a", 0),
        *idle(edition, "a"),
        *get("b"),
        *count("b", 1),  # one load is left
    ]
    assert books.calls(LoadEnds(("b",))) == [*get("b"), *count("b", 0), *idle(edition, "b")]
    assert books.counts == {"a": 0, "b": 0}


@having("caller/marks-transitions")
def test_pins_are_counted(edition: Edition) -> None:
    books = Books(edition, 1)
    books.store("a")
    marks = [
        call.method
        for event in (
            LoadStarts(("a",), "r"),
            LoadStarts(("a",), "u"),
            LoadEnds(("a",)),
            LoadStarts(("a",), "u"),
            LoadEnds(("a",)),
            LoadEnds(("a",)),
            LoadStarts(("a",), "u"),
        )
        for call in books.calls(event)
        if call.method.startswith("mark")
    ]
    assert marks == ["mark_non_evictable", "mark_evictable", "mark_non_evictable"]


# --- Stores --------------------------------------------------------------------------------------


@EVERY
def test_an_offer_that_fits(edition: Edition) -> None:
    books = Books(edition, 3)
    assert books.calls(offer("ab")) == [
        *get("a", "b"),
        *miss(edition, "ab"),
        *access(edition, "ab"),
        *insert("a", 0),
        *insert("b", 1),
    ]
    assert books.state.chunks == {"a": Chunk(-1, 0), "b": Chunk(-1, 1)}
    assert books.state.free == (2,)


@EVERY
def test_an_offer_of_keys_in_every_condition(edition: Edition) -> None:
    books = Books(edition, 5)
    books.store("ab", by="u")
    books.load("b", by="u")
    books.calls(offer("c", by="u"))
    # a is idle, b pinned, c pending, d and e absent.
    assert books.calls(offer("dcbea")) == [
        *get("d", "c", "b", "e", "a"),
        *miss(edition, "de"),
        *access(edition, "dbea"),  # in the order of the offer, without the pending one
        *insert("d", 3),
        *insert("e", 4),
    ]
    assert books.counts == {"a": 0, "b": 1, "c": -1, "d": -1, "e": -1}


@EVERY
def test_an_offer_of_residents(edition: Edition) -> None:
    books = Books(edition, 2)
    books.store("ab", by="u")
    assert books.calls(offer("ab")) == [*get("a", "b"), *access(edition, "ab")]
    assert books.calls(offer("ba")) == get("b", "a")


@EVERY
def test_an_empty_offer(edition: Edition) -> None:
    books = Books(edition, 2)
    assert books.calls(offer("")) == []
    assert ("r" in books.state.requests) is edition.has_request_hooks


@having("caller/evicts-the-shortfall")
def test_an_offer_evicts_the_shortfall(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("ab", by="u")
    # One slot is free and two keys are absent.
    assert books.calls(offer("cda"), leave="b") == [
        *get("c", "d", "a"),
        *miss(edition, "cd"),
        *access(edition, "cda"),
        *evict(1, "cda"),
        *insert("c", 1),  # the slot that b left
        *insert("d", 2),
    ]
    assert books.counts == {"a": 0, "c": -1, "d": -1}
    assert books.state.free == ()


@having("caller/evicts-the-shortfall")
def test_an_offer_that_just_fits_evicts_nothing(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("a", by="u")
    assert not any(call.method == "evict" for call in books.calls(offer("bc")))


@having("caller/evicts-the-shortfall")
def test_many_leave_in_one_call(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("abc", by="u")
    made = books.calls(offer("def"), leave="bca")
    assert [call for call in made if call.method == "evict"] == evict(3, "def")
    # Slots are used in the order last freed, first taken.
    assert made[-3:] == [*insert("d", 0), *insert("e", 2), *insert("f", 1)]


@having("caller/evicts-the-shortfall")
def test_an_offer_that_no_idle_chunks_make_room_for(edition: Edition) -> None:
    """Since v0.24 the manager counts idle chunks; before, the policy is asked and refuses."""
    books = Books(edition, 2)
    books.store("ab", by="u")
    books.load("a", by="u")
    asked = [] if edition.counts_idle_chunks else evict(2, "cd")
    before = dict(books.state.chunks), books.state.free
    assert books.calls(offer("cd")) == [
        *get("c", "d"),
        *miss(edition, "cd"),
        *access(edition, "cd"),
        *asked,
    ]
    assert (books.state.chunks, books.state.free) == before


@having("caller/evicts-the-shortfall")
def test_protected_chunks_count_as_idle(edition: Edition) -> None:
    """Two are idle, so the policy is asked, and has to refuse: they are of the offer."""
    books = Books(edition, 2)
    books.store("ab", by="u")
    before = dict(books.state.chunks), books.state.free
    assert books.calls(offer("abc")) == [
        *get("a", "b", "c"),
        *miss(edition, "c"),
        *access(edition, "abc"),
        *evict(1, "abc"),
    ]
    assert (books.state.chunks, books.state.free) == before


@having("caller/evicts-the-shortfall")
def test_an_offer_larger_than_the_cache(edition: Edition) -> None:
    books = Books(edition, 2)
    books.store("a", by="u")
    asked = [] if edition.counts_idle_chunks else evict(2, "bcd")
    assert books.calls(offer("bcd"))[3:] == [
        *miss(edition, "bcd"),
        *access(edition, "bcd"),
        *asked,
    ]
    assert books.counts == {"a": 0}


@having("caller/protects-the-offer")
def test_the_whole_offer_is_protected(edition: Edition) -> None:
    books = Books(edition, 4)
    books.store("ab", by="u")
    books.load("b", by="u")
    books.calls(offer("c", by="u"))
    books.store("d", by="u")
    # Absent, pinned, pending and idle keys alike.
    assert evict(1, "xbca")[0] in books.calls(offer("xbca"), leave="d")
    assert books.counts == {"a": 0, "b": 1, "c": -1, "x": -1}


@having("caller/inserts-absent-keys")
def test_only_absent_keys_are_inserted(edition: Edition) -> None:
    books = Books(edition, 4)
    books.store("a")
    books.calls(offer("b"))
    made = [call.arguments[0] for call in books.calls(offer("abc")) if call.method == "insert"]
    assert made == ["c"]
    assert books.state.chunks["c"].ref_cnt == -1


@having("caller/misses-once-a-request")
def test_a_miss_is_reported_once_a_request(edition: Edition) -> None:
    books = Books(edition, 1)
    books.store("z", by="u")
    books.load("z", by="u")
    assert books.calls(offer("a")) == [*get("a"), *miss(edition, "a"), *access(edition, "a")]
    assert books.calls(offer("a")) == get("a")
    # Only what is new is reported; another request reports for itself.
    assert books.calls(offer("ab"))[2:] == [*miss(edition, "b"), *access(edition, "b")]
    assert books.calls(offer("ab", by="v"))[2:] == [
        *miss(edition, "ab", by="v"),
        *access(edition, "ab", by="v"),
    ]
    books.calls(LoadEnds(("z",)))
    assert books.calls(offer("a"), leave="z") == [*get("a"), *evict(1, "a"), *insert("a", 0)]


@having("caller/misses-once-a-request")
def test_a_key_that_left_again_is_not_reported_again(edition: Edition) -> None:
    books = Books(edition, 2)
    books.store("a")
    books.calls(Evict(1), leave="a")
    assert books.calls(offer("a")) == [*get("a"), *insert("a", 0)]
    books.calls(StoreFails(("a",)))
    assert books.calls(offer("a")) == [*get("a"), *insert("a", 0)]


@having("caller/access-on-first-sight")
def test_access_on_first_sight(edition: Edition) -> None:
    books = Books(edition, 4)
    books.store("ab", by="u")
    books.calls(offer("c", by="u"))
    assert access(edition, "ax")[0] in books.calls(offer("acx"))
    # c was pending when it was offered first; now that it is ready it is seen.
    books.calls(StoreSucceeds(("c",)))
    assert access(edition, "c")[0] in books.calls(offer("acx"))
    assert access(edition, "b")[0] in books.calls(LoadStarts(("c", "b"), "r"))
    books.calls(StoreSucceeds(("x",)))
    # It has seen everything there is, also what has left and come back.
    assert books.calls(LoadStarts(("x",), "r"))[-1].method == "set_ref_cnt"
    books.calls(Evict(1), leave="a")
    assert books.calls(offer("a")) == [*get("a"), *miss(edition, "a"), *insert("a", 0)]


@EVERY
def test_a_store_succeeds(edition: Edition) -> None:
    books = Books(edition, 3)
    books.calls(offer("abc"))
    assert books.calls(StoreSucceeds(("b", "a"))) == [
        *get("b"),
        *count("b", 0),
        *idle(edition, "b"),
        *get("a"),
        *count("a", 0),
        *idle(edition, "a"),
    ]
    assert books.counts == {"a": 0, "b": 0, "c": -1}


@having("caller/removes-pending-keys")
def test_a_store_fails(edition: Edition) -> None:
    books = Books(edition, 3)
    books.calls(offer("abc"))
    assert books.calls(StoreFails(("b", "a"))) == [
        *get("b"),
        Call("remove", ("b",)),
        *get("a"),
        Call("remove", ("a",)),
    ]
    assert books.counts == {"c": -1}
    assert sorted(books.state.free) == [0, 1]


@having("chunk-status/ref-count-counts-loads")
def test_a_ref_count_counts_loads(edition: Edition) -> None:
    books = Books(edition, 2)
    books.calls(offer("a"))
    assert books.counts == {"a": -1}
    books.calls(StoreSucceeds(("a",)))
    for loads in (1, 2, 3):
        books.load("a", by=f"r{loads}")
        assert books.counts == {"a": loads}
    for loads in (2, 1, 0):
        books.calls(LoadEnds(("a",)))
        assert books.counts == {"a": loads}


# --- Touches and evictions -----------------------------------------------------------------------


@EVERY
def test_a_touch(edition: Edition) -> None:
    books = Books(edition, 2)
    books.store("a", by="u")
    before = dict(books.state.chunks)
    assert books.calls(Touch(("z", "a"), "r")) == [Call("touch", (("z", "a"), "r"))]
    assert books.calls(Touch((), "r")) == [Call("touch", ((), "r"))]
    assert books.state.chunks == before
    # It is no sight: the request is known, and has seen nothing.
    known: Request[str] = Request()
    assert books.state.requests.get("r") == (known if edition.has_request_hooks else None)


@EVERY
@pytest.mark.parametrize(
    ("n", "leave", "left"),
    [(0, "", "ab"), (1, "b", "a"), (2, "ab", ""), (3, None, "ab")],
)
def test_an_eviction(edition: Edition, n: int, leave: str | None, left: str) -> None:
    books = Books(edition, 3)
    books.store("ab")
    made = books.calls(Evict(n, frozenset("z")), leave)
    assert made == evict(n, "z")
    assert books.counts == dict.fromkeys(left, 0)
    assert len(books.state.free) == 3 - len(left)


# --- The end of a request ------------------------------------------------------------------------


@having("caller/finishes-once")
def test_the_end_of_a_request(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("a", by="u")
    books.calls(offer("ab"))
    assert books.calls(RequestEnds("r")) == finished(("ab",), "b", "a")
    assert books.objection(RequestEnds("r")) == "request r has ended"
    # Its store is still under way.
    assert books.calls(StoreSucceeds(("b",))) == [*get("b"), *count("b", 0), *idle(edition, "b")]


@having("caller/finishes-once")
def test_the_end_of_a_request_that_saw_nothing(edition: Edition) -> None:
    books = Books(edition, 3)
    assert books.calls(RequestEnds("r")) == finished((), "", "")
    assert books.objection(RequestEnds("r")) == "request r has ended"
    books.calls(Touch(("a",), "u"))
    assert books.calls(RequestEnds("u")) == finished((), "", "", by="u")


@having("caller/finishes-once")
def test_the_end_names_what_is_no_longer_there(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("a")
    books.calls(Evict(1), leave="a")  # evicted
    books.calls(offer("b"))
    books.calls(StoreFails(("b",)))  # never stored
    books.store("xyz", by="u")
    books.load("xyz", by="u")
    books.calls(offer("c"))  # refused
    assert books.calls(RequestEnds("r")) == finished(("abc",), "ab", "")


@having("caller/finishes-once")
def test_the_end_of_a_request_with_loads_under_way(edition: Edition) -> None:
    books = Books(edition, 1)
    books.store("a", by="u")
    books.load("a")
    assert books.calls(RequestEnds("r")) == finished(("a",), "", "a")
    assert books.calls(LoadEnds(("a",))) == [*get("a"), *count("a", 0), *idle(edition, "a")]


@having("caller/groups-head-to-tail")
def test_groups_are_sorted_by_index(edition: Edition) -> None:
    groups = {"a": 2, "b": 0, "c": 2, "d": 10, "e": 0}
    books = Books(edition, 5, groups)
    books.calls(offer("dcb"))
    books.calls(offer("ea"))
    # Ten comes after two, and a group of which nothing was seen is left out.
    assert books.calls(RequestEnds("r")) == finished(("be", "ca", "d"), "abcde", "")


@having("caller/groups-head-to-tail")
def test_a_group_is_sorted_by_position_if_all_are_known(edition: Edition) -> None:
    groups = {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1}
    positions = {"r": {"a": 30, "b": 10, "c": 20, "x": 9}, "u": {"a": 1, "b": 2, "c": 3}}
    books = Books(edition, 5, groups, positions)
    books.calls(offer("abcyx"))
    # Group 0 by position, head first; group 1 as seen, since y's position is not known.
    assert books.calls(RequestEnds("r")) == finished(("bca", "yx"), "abcxy", "")


@having("caller/groups-head-to-tail")
def test_equal_positions_stay_as_seen(edition: Edition) -> None:
    books = Books(edition, 3, positions={"r": {"a": 0, "b": 0, "c": -1}})
    books.calls(offer("ba"))
    books.calls(offer("c"))
    assert books.calls(RequestEnds("r")) == finished(("cba",), "abc", "")


@having("caller/tells-insertion-from-reuse")
def test_insertion_is_told_from_reuse(edition: Edition) -> None:
    books = Books(edition, 6)
    books.store("abc", by="u")
    books.calls(offer("e", by="u"))
    books.calls(offer("ad"))  # a is found ready, d is stored
    books.calls(StoreSucceeds(("d",)))
    books.load("bd")  # b is found ready; d is its own
    books.calls(offer("d"))
    books.calls(offer("e"))  # pending: not even seen
    assert books.calls(RequestEnds("r")) == finished(("adb",), "d", "ab")


@having("caller/tells-insertion-from-reuse")
def test_what_was_reused_and_then_stored_is_reused(edition: Edition) -> None:
    books = Books(edition, 2)
    books.store("a", by="u")
    books.load("a")
    books.calls(LoadEnds(("a",)))
    books.calls(Evict(1), leave="a")
    books.store("a")
    assert books.calls(RequestEnds("r")) == finished(("a",), "", "a")


@having("caller/tells-insertion-from-reuse")
def test_what_was_stored_and_then_found_is_no_reuse(edition: Edition) -> None:
    """Not even if somebody else has stored it anew in between."""
    books = Books(edition, 2)
    books.store("a")
    books.calls(Evict(1), leave="a")
    books.store("a", by="u")
    books.load("a")
    assert books.calls(RequestEnds("r")) == finished(("a",), "a", "")
    assert books.calls(RequestEnds("u")) == finished(("a",), "a", "", by="u")


@having("caller/tells-insertion-from-reuse")
def test_what_was_refused_is_neither(edition: Edition) -> None:
    books = Books(edition, 1)
    books.store("a", by="u")
    books.load("a", by="u")
    books.calls(offer("b"))
    assert books.calls(RequestEnds("r")) == finished(("b",), "", "")


# --- Reset ---------------------------------------------------------------------------------------


@having("caller/resets-by-clear")
def test_a_reset(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("ab")
    books.load("a")
    books.calls(offer("c"))
    assert books.calls(Reset()) == [Call("clear", ())]
    assert books.state.chunks == {}
    assert sorted(books.state.free) == [0, 1, 2]
    # What was under way never completes.
    assert books.objection(LoadEnds(("a",))) == "'a' is not pinned"
    assert books.objection(StoreSucceeds(("c",))) == "'c' is not pending"
    assert books.objection(StoreFails(("c",))) == "'c' is not pending"
    assert books.calls(Reset()) == [Call("clear", ())]


@WITH_CLEAR
def test_slots_begin_anew_after_a_reset(edition: Edition) -> None:
    books = Books(edition, 3)
    books.calls(offer("ab"))
    books.calls(Reset())
    slots = [c.arguments[1] for c in books.calls(offer("abc", by="v")) if c.method == "insert"]
    assert slots == [0, 1, 2]


@having("caller/resets-by-clear")
def test_a_request_that_goes_on_after_a_reset(edition: Edition) -> None:
    """All that it saw is forgotten with the cache: it misses and sees anew."""
    books = Books(edition, 3)
    books.store("a")
    books.calls(Reset())
    assert books.calls(offer("a")) == [
        *get("a"),
        *miss(edition, "a"),
        *access(edition, "a"),
        *insert("a", 0),
    ]


@WITH_HOOKS
def test_a_request_from_before_a_reset_does_not_end(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("a")
    books.calls(Touch(("a",), "t"))
    books.calls(RequestEnds("v"))
    books.calls(Reset())
    for name in ("r", "t"):
        assert (
            books.objection(RequestEnds(name)) == f"request {name} did nothing since the last reset"
        )
    assert books.objection(RequestEnds("v")) == "request v has ended"
    # One that begins now does.
    books.store("b", by="w")
    assert books.calls(RequestEnds("w")) == finished(("b",), "b", "", by="w")


@WITH_HOOKS
def test_a_request_that_goes_on_after_a_reset_ends_with_what_it_did_since(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("a")
    books.calls(Reset())
    books.store("b")
    assert books.calls(RequestEnds("r")) == finished(("b",), "b", "")


# --- Objections ----------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (LoadStarts(("i", "i"), "r"), "a key stands twice in one call"),
        (LoadEnds(("p", "p")), "a key stands twice in one call"),
        (StoreOffered(("x", "i", "x"), "r"), "a key stands twice in one call"),
        (StoreSucceeds(("w", "w")), "a key stands twice in one call"),
        (StoreFails(("w", "w")), "a key stands twice in one call"),
        (Touch(("x", "x"), "r"), "a key stands twice in one call"),
        (LoadStarts(("x",), "r"), "'x' is not ready"),
        (LoadStarts(("i", "w"), "r"), "'w' is not ready"),
        (LoadStarts(("w",), "r", False), "'w' is not ready"),
        (LoadEnds(("x",)), "'x' is not pinned"),
        (LoadEnds(("p", "i")), "'i' is not pinned"),
        (LoadEnds(("w",)), "'w' is not pinned"),
        (StoreSucceeds(("x",)), "'x' is not pending"),
        (StoreSucceeds(("w", "i")), "'i' is not pending"),
        (StoreSucceeds(("p",)), "'p' is not pending"),
        (StoreFails(("x",)), "'x' is not pending"),
        (StoreFails(("w", "i")), "'i' is not pending"),
        (StoreFails(("p",)), "'p' is not pending"),
        (Evict(-1), "n is negative"),
        (Evict(-1, frozenset("i")), "n is negative"),
    ],
)
def test_what_no_manager_does(edition: Edition, event: Event[str], reason: str) -> None:
    """There are i, idle; p, pinned; w, pending; and x is absent."""
    books = mixed(edition)
    assert books.objection(event) == reason


@EVERY
@pytest.mark.parametrize(
    "event",
    [
        Lookup("x"),
        Lookup("w"),
        LoadStarts(("i", "p"), "r"),
        LoadStarts((), "r"),
        LoadEnds(("p",)),
        LoadEnds(()),
        StoreOffered(("x", "i", "p", "w"), "r"),
        StoreOffered((), "r"),
        StoreSucceeds(("w",)),
        StoreFails(("w",)),
        Touch(("x", "i", "p", "w"), "r"),
        Evict(0),
        Evict(99, frozenset("xipw")),
    ],
)
def test_what_managers_do(edition: Edition, event: Event[str]) -> None:
    books = mixed(edition)
    assert books.objection(event) is None
    books.calls(event)


def mixed(edition: Edition) -> Books:
    """Return books with a chunk in every condition."""
    books = Books(edition, 4)
    books.store("ip", by="u")
    books.load("p", by="u")
    books.calls(offer("w", by="u"))
    return books


@EVERY
@pytest.mark.parametrize(
    "event",
    [LoadStarts(("i",), "v"), StoreOffered(("x",), "v"), Touch(("i",), "v"), RequestEnds("v")],
)
def test_a_request_that_has_ended_does_nothing(edition: Edition, event: Event[str]) -> None:
    books = mixed(edition)
    if edition.has_request_hooks:
        books.calls(RequestEnds("v"))
        assert books.objection(event) == "request v has ended"
    elif isinstance(event, RequestEnds):
        assert books.objection(event) == f"no manager of {edition} reports the end of a request"
    else:
        assert books.objection(event) is None


@EVERY
def test_a_reset_needs_a_manager_that_has_it(edition: Edition) -> None:
    expected = None if edition.has_clear else f"no manager of {edition} can be reset"
    assert mixed(edition).objection(Reset()) == expected


# --- The books themselves ------------------------------------------------------------------------


@EVERY
def test_books_start_empty(edition: Edition) -> None:
    books = Books(edition, 3)
    assert show(books.state) == ({}, (2, 1, 0), {})
    assert books.state.idle == 0
    assert books.state.eligible() == frozenset()


@EVERY
def test_who_may_be_evicted(edition: Edition) -> None:
    books = mixed(edition)
    books.store("j", by="u")
    assert books.state.idle == 2
    assert books.state.eligible() == frozenset("ij")
    assert books.state.eligible(frozenset("jx")) == frozenset("i")


@EVERY
def test_requests_are_booked_only_where_policies_hear_of_them(edition: Edition) -> None:
    books = Books(edition, 3)
    books.store("a")
    books.load("a")
    books.calls(Touch(("a",), "t"))
    assert set(books.state.requests) == ({"r", "t"} if edition.has_request_hooks else set())


@pytest.mark.parametrize(
    "value",
    [
        Lookup("a"),
        LoadStarts(("a",), "r"),
        LoadEnds(("a",)),
        StoreOffered(("a",), "r"),
        StoreSucceeds(("a",)),
        StoreFails(("a",)),
        Touch(("a",), "r"),
        RequestEnds("r"),
        Reset(),
        Evict(1, frozenset("a")),
        Setting(EDITIONS[0], 2),
        Request(("a",)),
        State({}, (0,), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_events_and_books_are_values(value: Any) -> None:
    assert value == replace(value)
    for field in type(value).__dataclass_fields__:
        with pytest.raises(AttributeError):
            setattr(value, field, None)
    if not isinstance(value, State):  # its mappings are dicts, which nobody may change
        assert hash(value) == hash(replace(value))


def test_by_default_there_is_one_group_and_no_position() -> None:
    setting: Setting[str] = Setting(EDITIONS[-1], 3)
    assert setting.group_of("a") == 0
    assert setting.position_of("r", "a") is None


# --- Random runs ---------------------------------------------------------------------------------


class Auditor:
    """Follows the calls of a manager with books of its own and checks the caller's clauses.

    Args:
        setting: edition, capacity, groups and positions.
    """

    def __init__(self, setting: Setting[int]) -> None:
        self.setting = setting
        self.chunks: dict[int, list[int]] = {}  # ref count and slot
        self.missed: dict[str, set[int]] = {}
        self.seen: dict[str, list[int]] = {}
        self.ended: set[str] = set()
        self.met: set[str] = set()

    def audit(
        self, event: Event[int], calls: list[Call], left: list[tuple[int, ...] | None]
    ) -> None:
        """Check the calls of one event; `left` answers its evictions."""
        absent = [k for k in getattr(event, "keys", ()) if k not in self.chunks]
        ready = {key for key, (ref_cnt, _) in self.chunks.items() if ref_cnt >= 0}
        answers = iter(left)
        for at, (method, arguments) in enumerate(calls):
            follows = calls[at + 1] if at + 1 < len(calls) else Call("", ())
            before = calls[at - 1] if at else Call("", ())
            match method:
                case "insert":
                    self.inserts(event, *arguments)
                case "remove":
                    assert isinstance(event, StoreFails)
                    assert self.chunks.pop(arguments[0])[0] == -1
                    self.met.add("caller/removes-pending-keys")
                case "set_ref_cnt":
                    key, ref_cnt = arguments
                    self.counts(key, ref_cnt, before, follows)
                case "evict":
                    self.evicts(event, absent, arguments, next(answers))
                case "on_store_miss":
                    keys, request = arguments
                    missed = self.missed.setdefault(request, set())
                    assert list(keys) == [key for key in absent if key not in missed]
                    missed |= set(keys)
                    assert all(c.method == "get" for c in calls[:at])
                    self.met.add("caller/misses-once-a-request")
                case "on_request_access":
                    self.accesses(event, absent, ready, *arguments)
                case "on_request_finished":
                    self.finishes(*arguments)
                case "clear":
                    self.chunks.clear()
                    self.missed.clear()
                    self.seen.clear()
                    self.met.add("caller/resets-by-clear")
        assert len(self.chunks) <= self.setting.capacity

    def inserts(self, event: Event[int], key: int, slot: int, request: str) -> None:
        assert isinstance(event, StoreOffered)
        assert event.request == request
        assert key not in self.chunks
        assert 0 <= slot < self.setting.capacity
        assert slot not in {other for _, other in self.chunks.values()}
        self.chunks[key] = [-1, slot]
        self.met |= {"caller/inserts-absent-keys", "chunk-status/slot-is-unique"}

    def counts(self, key: int, ref_cnt: int, before: Call, follows: Call) -> None:
        was, self.chunks[key][0] = self.chunks[key][0], ref_cnt
        assert (was, ref_cnt) == (-1, 0) or abs(was - ref_cnt) == 1
        assert ref_cnt >= 0
        marks = self.setting.edition.has_marks
        assert (before == Call("mark_non_evictable", (key,))) is (marks and was == 0)
        assert (follows == Call("mark_evictable", (key,))) is (marks and ref_cnt == 0)
        self.met.add("caller/marks-transitions")

    def evicts(
        self,
        event: Event[int],
        absent: list[int],
        arguments: tuple[Any, ...],
        left: tuple[int, ...] | None,
    ) -> None:
        n, protected = arguments
        if isinstance(event, StoreOffered):
            assert n == len(absent) - (self.setting.capacity - len(self.chunks)) > 0
            assert protected == frozenset(event.keys)
            idle = sum(ref_cnt == 0 for ref_cnt, _ in self.chunks.values())
            assert n <= idle or not self.setting.edition.counts_idle_chunks
            self.met |= {"caller/evicts-the-shortfall", "caller/protects-the-offer"}
        for key in left or ():
            del self.chunks[key]

    def accesses(
        self,
        event: Event[int],
        absent: list[int],
        ready: set[int],
        keys: tuple[int, ...],
        request: str,
    ) -> None:
        assert isinstance(event, StoreOffered | LoadStarts)
        seen = self.seen.setdefault(request, [])
        visible = {*absent, *ready}
        assert list(keys) == [k for k in event.keys if k in visible and k not in seen]
        seen.extend(keys)
        self.met.add("caller/access-on-first-sight")

    def finishes(
        self,
        groups: tuple[tuple[int, ...], ...],
        inserted: frozenset[int],
        reused: frozenset[int],
        request: str,
    ) -> None:
        assert request not in self.ended
        self.ended.add(request)
        indices = [{self.setting.group_of(key) for key in group} for group in groups]
        assert all(len(index) == 1 for index in indices)
        assert sorted(min(index) for index in indices) == [min(index) for index in indices]
        for group in groups:
            positions = [self.setting.position_of(request, key) for key in group]
            known = [position for position in positions if position is not None]
            if len(known) == len(group):
                assert known == sorted(known)
        named = {key for group in groups for key in group}
        assert not inserted & reused
        assert inserted | reused <= named
        if self.setting.edition.has_request_access:
            assert named == set(self.seen.get(request, ()))
        self.met |= {
            "caller/finishes-once",
            "caller/groups-head-to-tail",
            "caller/tells-insertion-from-reuse",
        }


@EVERY
@pytest.mark.parametrize("policy", ["lru", "arc"])
def test_random_managers_keep_the_callers_clauses(
    host: type[Host], edition: Edition, policy: str
) -> None:
    met: set[str] = set()
    for seed in range(12):
        cache = host.of_layout(edition, policy, capacity=1 + seed, groups=1 + seed % 3)
        auditor = Auditor(cache.setting)
        for event in cache.at_random(seed, 150):
            auditor.audit(event, cache.calls, cache.answers)
            assert {key: tuple(chunk) for key, chunk in cache.books.chunks.items()} == {
                key: tuple(chunk) for key, chunk in auditor.chunks.items()
            }
        met |= auditor.met
    bound = {
        name
        for name, clause in CLAUSES.items()
        if name.startswith("caller/") and clause.holds_in(edition.name)
    }
    assert bound <= met, "not put to the test"


@having("chunk-status/slot-is-unique")
def test_slots_come_back(edition: Edition) -> None:
    books = Books(edition, 2)
    books.calls(offer("ab"))
    books.calls(StoreFails(("a",)))
    books.calls(offer("c"))
    assert {chunk.slot for chunk in books.state.chunks.values()} == {0, 1}


def test_every_clause_is_here() -> None:
    assert {name for name in CLAUSES if name.startswith("caller/")} <= COVERED
