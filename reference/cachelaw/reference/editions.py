"""Editions: the contract as of a vLLM release, named after the first release that had it.

The interface grew over the releases, and twice it broke: `touch` got the request's context in
0.26, `insert` got it in 0.33. An `Edition` answers what a host of those releases calls, and how.
What each edition changed is told in `specs/editions.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, order=True, slots=True)
class Edition:
    """The contract of vLLM releases from `since` on, until the next edition.

    Editions compare by age: `edition >= V031` asks whether a host calls the request-scoped hooks.

    Args:
        since: major and minor number of the first release that had this contract.
    """

    since: tuple[int, int]

    @property
    def name(self) -> str:
        """The edition's name, such as `v0.31`."""
        return f"v{self.since[0]}.{self.since[1]}"

    @property
    def module(self) -> str:
        """The module that holds the reference classes of this edition."""
        return f"cachelaw.reference.v{self.since[0]}{self.since[1]:02d}"

    @property
    def has_clear(self) -> bool:
        """Whether the host can reset the cache and so calls `clear` (v0.22)."""
        return self >= V022

    @property
    def has_marks(self) -> bool:
        """Whether the host calls `mark_evictable` and `mark_non_evictable` (v0.24)."""
        return self >= V024

    @property
    def counts_idle_chunks(self) -> bool:
        """Whether the host refuses an offer itself when too few chunks are idle (v0.24)."""
        return self >= V024

    @property
    def touch_takes_context(self) -> bool:
        """Whether `touch` is called with the request's context (v0.26)."""
        return self >= V026

    @property
    def says_chunk(self) -> bool:
        """Whether the status object is `ChunkStatus` and not yet-older `BlockStatus` (v0.30)."""
        return self >= V030

    @property
    def has_request_hooks(self) -> bool:
        """Whether the host calls `on_store_miss` and `on_request_finished` (v0.31)."""
        return self >= V031

    @property
    def has_request_access(self) -> bool:
        """Whether the host calls `on_request_access`, and `insert` with a context (v0.33)."""
        return self >= V033

    def __str__(self) -> str:
        return self.name


V019 = Edition((0, 19))
V020 = Edition((0, 20))
V022 = Edition((0, 22))
V024 = Edition((0, 24))
V026 = Edition((0, 26))
V027 = Edition((0, 27))
V030 = Edition((0, 30))
V031 = Edition((0, 31))
V033 = Edition((0, 33))

EDITIONS = (V019, V020, V022, V024, V026, V027, V030, V031, V033)
"""All editions, oldest first."""

NEWEST = EDITIONS[-1]
"""The edition that a name without an edition means."""

_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.\d+)*(?:[.\-+]?\w+)*")


def edition_named(name: str) -> Edition:
    """Return the edition called `name`.

    Args:
        name: such as `v0.31`; the leading `v` may be left out.

    Raises:
        ValueError: no edition has that name; the message lists those there are.
    """
    for edition in EDITIONS:
        if name in (edition.name, edition.name[1:]):
            return edition
    known = ", ".join(edition.name for edition in EDITIONS)
    raise ValueError(f"no edition is called {name!r}; there are {known}")


def edition_of_release(version: str) -> Edition | None:
    """Return the edition that a vLLM release belongs to, or None if it has no CachePolicy.

    A release newer than the newest edition belongs to the newest edition.

    Args:
        version: a vLLM version such as `0.29.0`.

    Raises:
        ValueError: `version` is not a version number.
    """
    match = _RELEASE.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a vLLM version; write one such as 0.29.0")
    number = (int(match[1]), int(match[2]))
    older = [edition for edition in EDITIONS if edition.since <= number]
    return older[-1] if older else None
