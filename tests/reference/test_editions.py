"""Editions: which release belongs to which, and what its hosts call."""

from __future__ import annotations

import importlib

import pytest

import cachelaw.reference
from cachelaw.conformance import releases
from cachelaw.conformance.hosts import host_calls
from cachelaw.reference.editions import (
    EDITIONS,
    NEWEST,
    V031,
    V033,
    Edition,
    edition_named,
    edition_of_release,
)

NAMES = ["v0.19", "v0.20", "v0.22", "v0.24", "v0.26", "v0.27", "v0.30", "v0.31", "v0.33"]

# The releases that the editions were read off, and a few between, before and after them.
RELEASES = {
    "0.11.2": None,
    "0.18.1": None,
    "0.19.0": "v0.19",
    "0.19.1": "v0.19",
    "0.20.2": "v0.20",
    "0.21.0": "v0.20",
    "0.22.1": "v0.22",
    "0.23.0": "v0.22",
    "0.24.0": "v0.24",
    "0.25.1": "v0.24",
    "0.26.0": "v0.26",
    "0.27.1": "v0.27",
    "0.28.0": "v0.27",
    "0.29.0": "v0.27",
    "0.30.0": "v0.30",
    "0.31.0": "v0.31",
    "0.32.0": "v0.31",
    "0.33.0": "v0.33",
    "0.34.0": "v0.33",
    "1.0.0": "v0.33",
}

# What hosts do, with the first edition in which they do it.
SINCE = {
    "has_clear": "v0.22",
    "has_marks": "v0.24",
    "counts_idle_chunks": "v0.24",
    "touch_takes_context": "v0.26",
    "says_chunk": "v0.30",
    "has_request_hooks": "v0.31",
    "has_request_access": "v0.33",
}


def test_the_editions_oldest_first() -> None:
    assert [edition.name for edition in EDITIONS] == NAMES
    assert list(EDITIONS) == sorted(EDITIONS)
    assert [str(edition) for edition in EDITIONS] == NAMES
    assert NEWEST.name == "v0.33"


def test_editions_compare_by_age_not_by_text() -> None:
    assert Edition((0, 9)) < Edition((0, 19)) < Edition((1, 0))
    assert Edition((0, 31)) == V031
    assert len({*EDITIONS, Edition((0, 31))}) == len(EDITIONS)


def test_an_edition_does_not_change() -> None:
    with pytest.raises(AttributeError):
        V031.since = (0, 32)  # type: ignore[misc]


@pytest.mark.parametrize("what", SINCE)
def test_what_hosts_do_and_since_when(what: str) -> None:
    for edition in EDITIONS:
        assert getattr(edition, what) is (edition >= edition_named(SINCE[what])), edition


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_each_edition_has_a_module_with_all_that_a_host_needs(edition: Edition) -> None:
    module = importlib.import_module(edition.module)
    assert module.__name__ == f"cachelaw.reference.{edition.name.replace('.', '').lower()}"
    assert {"ARC", "LRU", "CachePolicy", "ChunkStatus"} <= set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert issubclass(module.LRU, module.CachePolicy)
    assert issubclass(module.ARC, module.CachePolicy)


def test_names_without_an_edition_are_the_newest() -> None:
    newest = importlib.import_module(NEWEST.module)
    for name in ("ARC", "LRU", "CachePolicy", "ChunkStatus"):
        assert getattr(cachelaw.reference, name) is getattr(newest, name)
    for name in cachelaw.reference.__all__:
        assert hasattr(cachelaw.reference, name)


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_an_edition_is_found_by_its_name(edition: Edition) -> None:
    assert edition_named(edition.name) is edition
    assert edition_named(edition.name.removeprefix("v")) is edition


@pytest.mark.parametrize("name", ["", "v", "v0.21", "0.31.0", "V0.31", "0.3", "newest"])
def test_an_unknown_name_raises_and_lists_those_there_are(name: str) -> None:
    with pytest.raises(ValueError, match="no edition") as caught:
        edition_named(name)
    assert repr(name) in str(caught.value)
    assert all(known in str(caught.value) for known in NAMES)


@pytest.mark.parametrize("version", RELEASES)
def test_each_release_has_its_edition(version: str) -> None:
    found = edition_of_release(version)
    assert (found and found.name) == RELEASES[version]


@pytest.mark.parametrize("version", ["0.33", "0.33.0rc1", "0.33.0.post1", "0.33.0+cu129"])
def test_a_version_may_have_a_suffix(version: str) -> None:
    assert edition_of_release(version) is V033


@pytest.mark.parametrize("version", ["", "newest", "v0.29", "29", "0.x"])
def test_what_is_not_a_version_raises_and_is_named(version: str) -> None:
    with pytest.raises(ValueError, match="not a vLLM version") as caught:
        edition_of_release(version)
    assert repr(version) in str(caught.value)


@pytest.mark.parametrize("version", RELEASES)
def test_the_suite_sorts_releases_as_the_reference_does(version: str) -> None:
    """Two tables of borders exist, since each package stands for itself; they must agree."""
    assert releases.edition_of(version) == RELEASES[version]


def test_hosts_call_what_their_edition_has() -> None:
    """The suite's table of calls against the interface's own methods."""
    for edition in EDITIONS:
        interface = importlib.import_module(edition.module).CachePolicy
        methods = {name for name in vars_of(interface) if not name.startswith("_")}
        assert methods == set(host_calls(edition)), edition


def vars_of(interface: type) -> set[str]:
    """Return every name that a class and its bases define in this package."""
    return {
        name
        for base in interface.__mro__
        if base.__module__.startswith("cachelaw.")
        for name in vars(base)
    }
