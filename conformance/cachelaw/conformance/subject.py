"""Subjects: whatever is to be certified, found by name and brought into one form.

A subject is written `package.module:Name`, `path/file.py:Name` or `vllm==0.29.0:arc`, where Name
is a class, or any factory that takes the capacity. A reuse filter takes a backing manager,
`store_threshold` and `max_tracker_size` instead, and is called `filter` in a release. No base class
is needed.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from cachelaw.conformance import releases
from cachelaw.conformance.filters.backing import backing_for
from cachelaw.conformance.filters.trace import METHODS, WITH_CONTEXT, FilterTrace
from cachelaw.conformance.filters.v021 import FilterV021
from cachelaw.conformance.instance import PlainCodec
from cachelaw.reference.chunk import BlockStatus, ChunkStatus
from cachelaw.reference.editions import EDITIONS, V019, V020, Edition, edition_named

PROFILES = ("contract", "lru", "arc", "reuse-filter")


class Unusable(Exception):
    """The subject, or what was said of it, cannot be used. One line: what, and what to do."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A policy, or a reuse filter, that can be built and driven.

    Attributes:
        name: as the user wrote it.
        build: makes an instance from a capacity; of a filter, from the backing and, by name,
            `store_threshold` and `max_tracker_size`.
        status: makes the status objects that its host would insert.
        edition: the contract that it is judged by.
        fits: every edition whose host could drive it.
        profile: `contract`, or the policy that it claims to be: `lru`, `arc`, `reuse-filter`.
        randomized: it has declared that it does not answer alike twice.
        may_refuse: it has declared that it refuses evictions at will.
    """

    name: str
    build: Callable[..., Any]
    status: Callable[[int], Any]
    edition: Edition
    fits: tuple[Edition, ...]
    profile: str = "contract"
    randomized: bool = False
    may_refuse: bool = False


def resolve(
    name: str,
    *,
    profile: str | None = None,
    edition: str | None = None,
    declared: Iterable[str] = (),
    announce: Callable[[str], None] | None = None,
) -> Subject:
    """Find the subject called `name`.

    Args:
        name: as described in this module.
        profile: what to judge it as; None takes the release's policy or what the class declares,
            or `reuse-filter` for a class that has the methods of a manager and no policy's.
        edition: the contract to judge it by; None takes the release's, what the class declares,
            or the newest whose host could drive it.
        declared: `randomized` or `may_refuse`, besides what the class declares.
        announce: told of downloads.

    Raises:
        Unusable: there is no such subject, or no host could drive it.
    """
    if name.startswith("vllm") and "==" in name:
        return _from_release(name, profile, edition, frozenset(declared), announce)
    factory = _found(name)
    said = _declarations(factory, frozenset(declared), name)
    usual = "reuse-filter" if _looks_like_filter(factory) else "contract"
    profile = profile or str(said.get("profile", usual))
    if profile not in PROFILES:
        raise Unusable(f"there is no profile {profile!r}; there are {', '.join(PROFILES)}")
    if profile == "reuse-filter":
        given = edition or said.get("edition")
        return _filter(name, factory, _edition(str(given)) if given else None)
    build = builder(name, factory)
    fits = _fitting(build)
    wanted = edition or said.get("edition")
    chosen = _edition(str(wanted)) if wanted else fits[-1] if fits else None
    if chosen is None:
        raise Unusable(f"{name} fits no edition: {_misfit(build(2), EDITIONS[0])}")
    if chosen not in fits:
        raise Unusable(f"{name} does not fit {chosen}: {_misfit(build(2), chosen)}")
    return Subject(
        name,
        build,
        ChunkStatus if chosen.says_chunk else BlockStatus,
        chosen,
        fits,
        profile,
        bool(said.get("randomized")),
        bool(said.get("may_refuse")),
    )


def _edition(name: str) -> Edition:
    try:
        return edition_named(name)
    except ValueError as error:
        raise Unusable(str(error)) from None


# --- Subjects out of vLLM releases ---


def _from_release(
    name: str,
    profile: str | None,
    edition: str | None,
    declared: frozenset[str],
    announce: Callable[[str], None] | None,
) -> Subject:
    release_name, _, policy = name.partition(":")
    version = release_name.partition("==")[2]
    if (policy == "filter") != (profile == "reuse-filter") and profile is not None:
        raise Unusable(f"{name} cannot be judged as {profile}: leave out the profile")
    try:
        if policy == "filter":
            releases.require_filter(version)
        else:
            releases.require_policies(version)
        if policy not in ("lru", "arc", "filter"):
            raise Unusable(
                f"{name}: say which policy of the release, vllm=={version}:lru or "
                f"vllm=={version}:arc (or, up to 0.21, vllm=={version}:filter)"
            )
        release = releases.load(version, announce=announce)
    except releases.ReleaseError as error:
        raise Unusable(str(error)) from None
    if policy == "filter":
        if release.filter is None:
            raise Unusable(f"the filter of vllm {version} cannot be imported by this Python")
        # vLLM 0.18 has no edition, but its filter has the form of v0.19.
        return _filter(name, release.filter, _edition(edition or release.edition or V019.name))
    found = release.policies.get(policy)
    if found is None or release.edition is None or release.status is None:
        raise Unusable(f"vllm {version} has no policy {policy}")
    build = builder(name, found)
    fits = _fitting(build)
    chosen = _edition(edition or release.edition)
    if chosen not in fits:
        raise Unusable(f"{name} does not fit {chosen}: {_misfit(build(2), chosen)}")
    return Subject(
        name,
        build,
        release.status,
        chosen,
        fits,
        profile or policy,
        "randomized" in declared,
        "may_refuse" in declared,
    )


# --- Subjects out of modules and files ---


def _found(name: str) -> Any:
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise Unusable(
            f"{name!r} is no subject: write package.module:Class, path/file.py:Class or "
            "vllm==0.33.0:arc"
        )
    module = _module_from_file(place) if place.endswith(".py") else _module(place)
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise Unusable(f"{place} has no {attribute!r}{_suggestion(module)}")
    if not callable(found):
        raise Unusable(f"{name} is neither a class nor a factory: it cannot be called")
    return found


def _module(place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise Unusable(_import_trouble(place, error)) from error


def _module_from_file(place: str) -> ModuleType:
    path = Path(place)
    if not path.is_file():
        raise Unusable(f"there is no file {place}")
    # Named so that its classes can be pickled, and cannot hide another module of the same name.
    place_id = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"cachelaw_subject_{path.stem}_{place_id}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Unusable(f"{place} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Unusable(_import_trouble(place, error)) from error
    return module


def _import_trouble(place: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        missing = error.name
        if missing == place or place.startswith(missing + "."):
            return f"there is no module {place}: is its package installed in this environment?"
        return f"{place} imports {missing}, which is not installed"
    line = str(error).splitlines()[0] if str(error) else ""
    return f"importing {place} raised {type(error).__name__}: {line[:200]}"


def _suggestion(module: ModuleType) -> str:
    classes = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and (callable(getattr(value, "evict", None)) or _looks_like_filter(value))
    ]
    return f"; it has {', '.join(sorted(classes))}" if classes else ""


def _declarations(factory: Any, declared: frozenset[str], name: str) -> Mapping[str, Any]:
    said = getattr(factory, "cachelaw", {})
    if not isinstance(said, Mapping):
        raise Unusable(f"{name}: the attribute `cachelaw` must be a dict of declarations")
    known = {"profile", "edition", "randomized", "may_refuse"}
    for unknown in set(said) - known | declared - {"randomized", "may_refuse"}:
        raise Unusable(f"{name} declares {unknown!r}; there are {', '.join(sorted(known))}")
    return {**said, **dict.fromkeys(declared, True)}


# --- Fitting a host ---


def builder(name: str, factory: Callable[..., Any]) -> Callable[[int], Any]:
    """Return what makes an instance as hosts make it: by keyword, if the factory knows it.

    What is returned raises `Unusable` where the factory raises.
    """
    try:
        inspect.signature(factory).bind(cache_capacity=1)
        by_keyword = True
    except (TypeError, ValueError):
        by_keyword = False

    def build(capacity: int) -> Any:
        try:
            return factory(cache_capacity=capacity) if by_keyword else factory(capacity)
        except (Exception, SystemExit) as error:
            line = str(error).splitlines()[0] if str(error) else ""
            raise Unusable(
                f"{name} cannot be constructed from the capacity {capacity}: "
                f"{type(error).__name__}: {line[:200]}"
            ) from error

    return build


def _fitting(build: Callable[[int], Any]) -> tuple[Edition, ...]:
    policies = [build(capacity) for capacity in (1, 64, 2)]
    return tuple(edition for edition in EDITIONS if _misfit(policies[-1], edition) is None)


def host_calls(edition: Edition) -> dict[str, int]:
    """Return the methods that a host of `edition` calls, with the number of arguments."""
    calls = {"get": 1, "insert": 2, "remove": 1, "touch": 1, "evict": 2}
    if edition.touch_takes_context:
        calls["touch"] = 2
    if edition.has_clear:
        calls["clear"] = 0
    if edition.has_marks:
        calls |= {"mark_evictable": 1, "mark_non_evictable": 1}
    if edition.has_request_hooks:
        calls |= {"on_store_miss": 2, "on_request_finished": 4}
    if edition.has_request_access:
        calls |= {"on_request_access": 2, "insert": 3}
    return calls


def _misfit(policy: Any, edition: Edition) -> str | None:
    """Say why a host of `edition` could not drive `policy`, None if it could."""
    return _mismatch(policy, edition, host_calls(edition))


def _mismatch(driven: Any, edition: Edition, calls: Mapping[str, int]) -> str | None:
    for method, count in calls.items():
        bound = getattr(driven, method, None)
        if not callable(bound):
            return f"it has no method {method}"
        try:
            inspect.signature(bound).bind(*range(count))
        except TypeError:
            return (
                f"hosts of {edition} call {method} with {count} arguments, which it does not take"
            )
        except ValueError:
            continue  # a compiled method that has no signature to look at
    return None


# --- Filters ---


def _looks_like_filter(factory: Any) -> bool:
    """Say whether something is a class with the methods of a manager and not those of a policy."""
    return (
        inspect.isclass(factory)
        and all(callable(getattr(factory, name, None)) for name in ("lookup", "prepare_store"))
        and not hasattr(factory, "evict")
    )


def _filter(name: str, factory: Callable[..., Any], wanted: Edition | None) -> Subject:
    """Return a reuse filter as a subject.

    Raises:
        Unusable: it cannot be made, has no form that a host drives, or not the one of `wanted`.
    """
    every_call = dict.fromkeys(METHODS, 1) | {"take_events": 0, "complete_store": 2}
    with_contexts = every_call | dict.fromkeys(WITH_CONTEXT, 2)
    everywhere = with_contexts | {"touch": 2, "complete_load": 2, "complete_store": 3}
    builds: dict[Edition, Callable[..., Any]] = {}
    misfits: dict[Edition, str] = {}
    for edition, calls, build in (
        (V019, every_call, factory),
        (V020, with_contexts, factory),
        (V020, everywhere, partial(FilterV021, factory)),
    ):
        if edition not in builds:
            misfit = _misfit_of_filter(name, build, edition, calls)
            if misfit is None:
                builds[edition] = build
            else:
                misfits.setdefault(edition, misfit)
    if wanted not in (None, V019, V020):
        raise Unusable(f"{name}: there is no filter in {wanted}; it is of v0.19 or v0.20")
    if not builds:
        raise Unusable(f"{name} has no form of the filter: {'; '.join(misfits.values())}")
    chosen = wanted or max(builds)
    if chosen not in builds:
        raise Unusable(f"{name} does not fit {chosen}: {misfits[chosen]}")
    return Subject(name, builds[chosen], BlockStatus, chosen, tuple(builds), "reuse-filter")


def _misfit_of_filter(
    name: str, build: Callable[..., Any], edition: Edition, calls: Mapping[str, int]
) -> str | None:
    """Say why a host of `edition` that makes these calls could not drive a filter."""
    # Threshold and size are such that nobody turns them away who checks his arguments wrongly.
    trace = FilterTrace(edition, store_threshold=3, max_tracker_size=8)
    backing = backing_for(trace, PlainCodec())
    try:
        made = build(
            backing, store_threshold=trace.store_threshold, max_tracker_size=trace.max_tracker_size
        )
    except Exception as error:
        line = str(error).splitlines()[0] if str(error) else ""
        raise Unusable(
            f"{name} cannot be constructed from a backing manager, store_threshold and "
            f"max_tracker_size: {type(error).__name__}: {line[:200]}"
        ) from error
    return _mismatch(made.filter if isinstance(made, FilterV021) else made, edition, calls)
