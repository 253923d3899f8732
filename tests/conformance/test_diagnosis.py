"""Diagnosis: each known reading is known again, and nothing is made up where none fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from cachelaw.conformance import diagnosis
from cachelaw.conformance.certify import Budget
from cachelaw.conformance.diagnosis import (
    ARC_PARTS,
    LRU_CHANGES,
    LRU_EDITIONS,
    Reading,
    arc_readings,
    diagnose,
    lru_readings,
)
from cachelaw.conformance.mutants.zoo import classes, subject_name
from cachelaw.conformance.subject import Subject, Wanted, resolve
from cachelaw.conformance.supervisor import Limits
from cachelaw.conformance.trial import certified
from cachelaw.reference.chunk import BlockStatus, ChunkStatus
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import EDITIONS, V022, V024, V027, V031, V033, Edition
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.protocol import Call, Setting

LITTLE = Budget("little", programs=16, events=100, twins=0)


class Played:
    """A policy that answers as a reading does, for hosts of one edition."""

    def __init__(self, reading: Reading, edition: Edition, cache_capacity: int) -> None:
        self._contexts: dict[str, ReqContext] = {}
        self._chunks: dict[bytes, Any] = {}
        self._counts: dict[bytes, int] = {}
        setting: Setting[Any] = Setting(edition, cache_capacity, position_of=self._position)
        self._player: Any = reading.begin(setting)
        self._slot = "chunk_id" if edition.says_chunk else "block_id"

    def _position(self, request: str, key: bytes) -> int | None:
        context = self._contexts.get(request)
        return None if context is None else context.get_offload_key_position(OffloadKey(key))

    def _call(self, method: str, *arguments: Any) -> Any:
        for key, chunk in self._chunks.items():
            if chunk.ref_cnt != self._counts[key]:
                self._counts[key] = chunk.ref_cnt
                self._player.carry_out(Call("set_ref_cnt", (key, chunk.ref_cnt)))
        return self._player.carry_out(Call(method, arguments))

    def _request(self, context: ReqContext | None) -> str:
        if context is None:
            return "u"
        self._contexts[context.req_id] = context
        return context.req_id

    def get(self, key: bytes) -> Any:
        return self._chunks.get(key)

    def insert(self, key: bytes, chunk: Any, context: ReqContext | None = None) -> None:
        self._call("insert", key, getattr(chunk, self._slot), self._request(context))
        self._chunks[key], self._counts[key] = chunk, -1

    def remove(self, key: bytes) -> None:
        self._call("remove", key)
        del self._chunks[key]

    def touch(self, keys: Iterable[bytes], context: ReqContext | None = None) -> None:
        self._call("touch", tuple(keys), self._request(context))

    def on_store_miss(self, keys: Iterable[bytes], context: ReqContext) -> None:
        self._call("on_store_miss", tuple(keys), self._request(context))

    def on_request_access(self, keys: Iterable[bytes], context: ReqContext) -> None:
        self._call("on_request_access", tuple(keys), self._request(context))

    def on_request_finished(
        self, groups: Any, inserted: Any, reused: Any, context: ReqContext
    ) -> None:
        said = tuple(map(tuple, groups)), frozenset(inserted), frozenset(reused)
        self._call("on_request_finished", *said, self._request(context))

    def evict(self, n: int, protected: Iterable[bytes]) -> Any:
        victims = self._call("evict", n, frozenset(protected))
        return None if victims is None else [(key, self._chunks.pop(key)) for key in victims]

    def clear(self) -> None:
        self._call("clear")
        self._chunks.clear()

    def mark_evictable(self, key: bytes) -> None:
        self._call("mark_evictable", key)

    def mark_non_evictable(self, key: bytes) -> None:
        self._call("mark_non_evictable", key)


def played(reading: Reading, profile: str, edition: Edition) -> Subject:
    return Subject(
        reading.name,
        lambda capacity: Played(reading, edition, capacity),
        ChunkStatus if edition.says_chunk else BlockStatus,
        edition,
        (edition,),
        profile,
    )


def names(subject: Subject) -> list[str]:
    return [found["reading"] for found in diagnose(subject, LITTLE)]


ARC = {reading.name: reading for reading, _ in arc_readings(V033)}
RIGHT = "fallback to T1"
"""The reading that is right in v0.33."""


@pytest.mark.parametrize("name", sorted({name for name, _, _ in ARC_PARTS} - {RIGHT}))
def test_a_reading_of_arc_is_known_again(name: str) -> None:
    assert names(played(ARC[name], "arc", V033)) == [name]


@pytest.mark.parametrize(
    ("name", "edition"),
    [
        ("fallback to T1", V027),
        ("paper's tie rule", V022),
        ("integer step", V024),
        ("touch does not adapt", V027),
    ],
)
def test_a_reading_of_arc_in_an_older_edition(name: str, edition: Edition) -> None:
    readings = {reading.name: reading for reading, _ in arc_readings(edition)}
    assert name in names(played(readings[name], "arc", edition))


@pytest.mark.parametrize(
    ("name", "edition"),
    [(name, V033) for name, _, _ in (*LRU_EDITIONS[:2], *LRU_CHANGES)]
    + [(name, V031) for name, _, _ in (*LRU_EDITIONS[1:2], *LRU_CHANGES)]
    + [("LRU of v0.31", V024), ("batch head first", V024), ("first in, first out", V022)],
)
def test_a_reading_of_lru_is_known_again(name: str, edition: Edition) -> None:
    readings = {reading.name: reading for reading in lru_readings(edition)}
    assert names(played(readings[name], "lru", edition)) == [name]


def test_two_readings_together_are_known_again() -> None:
    parts = {name: parts for name, _, parts in ARC_PARTS}
    made = diagnosis.arc_of(V033, (*parts["step of one"], *parts["ghosts to T2"]))
    both = Reading("both", "", made)
    assert names(played(both, "arc", V033)) == ["step of one; ghosts to T2"]


@pytest.mark.parametrize(
    ("name", "profile"),
    [("T2MostRecentFirst", "arc"), ("SignsSwapped", "arc"), ("MostRecentFirst", "lru")],
)
def test_what_follows_no_reading_gets_none(name: str, profile: str) -> None:
    assert diagnose(resolve(subject_name(classes()[name]), profile=profile), LITTLE) == []


@pytest.mark.parametrize("profile", ["lru", "arc"])
@pytest.mark.parametrize("edition", [EDITIONS[0], V024, V033], ids=str)
def test_what_is_right_gets_none(profile: str, edition: Edition) -> None:
    right = resolve(f"{edition.module}:{profile.upper()}")
    assert right.profile == profile
    assert diagnose(right, LITTLE) == []


def test_what_claims_no_policy_gets_none() -> None:
    wrong = played(ARC["step of one"], "contract", V033)
    assert diagnose(wrong, LITTLE) == []


def test_a_policy_taken_for_the_other_is_told_which_it_is() -> None:
    lru = resolve("cachelaw.reference.v031:LRU", profile="arc")
    assert names(lru) == ["LRU of v0.31"]
    arc = resolve("cachelaw.reference.v031:ARC", profile="lru")
    assert names(arc) == ["ARC of v0.31"]


def test_a_report_says_it() -> None:
    wanted = Wanted(subject_name(classes()["StepTruncated"]), profile="arc")
    data = certified(wanted, LITTLE_OF_ALL, 1, Limits())
    (reading,) = data["diagnosis"]
    assert reading["reading"] == "integer step"
    assert "evictions" in reading["says"] and "integer division" in reading["says"]


LITTLE_OF_ALL = Budget("quick", programs=0, events=0, twins=0)
"""A worker takes the numbers of the budget of that name."""
