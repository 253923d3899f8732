"""Subjects: whatever is to be certified, found by name and brought into one form.

A subject is written `package.module:Name`, `path/file.py:Name` or `vllm==0.29.0:arc`, where Name
is a class, or any factory that takes the capacity; or `exec:COMMAND`, a policy in any language
(`foreign.py`). A reuse filter takes a backing manager,
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
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from cachelaw.conformance import foreign, releases
from cachelaw.conformance.filters.backing import backing_for
from cachelaw.conformance.filters.trace import METHODS, WITH_CONTEXT, FilterTrace
from cachelaw.conformance.filters.v021 import FilterV021
from cachelaw.conformance.hosts import Compatibility, Unusable, builder, compatibility, mismatch
from cachelaw.conformance.instance import PlainCodec
from cachelaw.reference.chunk import BlockStatus, ChunkStatus
from cachelaw.reference.editions import EDITIONS, V019, V020, Edition, edition_named

__all__ = ["DECLARATIONS", "PROFILES", "Subject", "Unusable", "Wanted", "find", "resolve"]

PROFILES = ("contract", "lru", "arc", "reuse-filter")

DECLARATIONS = ("randomized", "may_refuse", "specification")
"""What a subject may declare of itself besides its profile and its edition."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asked for. Plain data, so that another process can find the same subject.

    Attributes:
        name: as described in this module.
        profile: what to judge it as; None takes the release's policy or what the class declares,
            or `reuse-filter` for a class that has the methods of a manager and no policy's.
        edition: the contract to judge it by; None takes the release's, the host's, what the class
            declares, or the newest whose host could drive it.
        declared: names of `DECLARATIONS`, besides what the class declares.
        host: a release, such as `vllm==0.30.0`, whose modules the subject imports; None where it
            imports none, or an installed vLLM.
        parameters: what its constructor is given besides the capacity.
    """

    name: str
    profile: str | None = None
    edition: str | None = None
    declared: tuple[str, ...] = ()
    host: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data, which `Wanted(**data)` reads back."""
        return asdict(self)


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
        specification: it has declared that it is written to be read, whatever it costs.
        wanted: how it was asked for, None if it was made by hand and cannot be found by name.
        hosts: of every edition, whether its host could drive it.
        foreign: it runs in a process of its own, behind a pipe.
        offers_state: it has a `cachelaw_state()`.
    """

    name: str
    build: Callable[..., Any]
    status: Callable[[int], Any]
    edition: Edition
    fits: tuple[Edition, ...]
    profile: str = "contract"
    randomized: bool = False
    may_refuse: bool = False
    specification: bool = False
    wanted: Wanted | None = None
    hosts: tuple[Compatibility, ...] = ()
    foreign: bool = False
    offers_state: bool = False


def resolve(
    name: str,
    *,
    profile: str | None = None,
    edition: str | None = None,
    declared: Iterable[str] = (),
    host: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Subject:
    """Find the subject called `name`. The arguments are those of `Wanted` and of `find`."""
    wanted = Wanted(name, profile, edition, tuple(declared), host, parameters or {})
    return find(wanted, announce)


def find(wanted: Wanted, announce: Callable[[str], None] | None = None) -> Subject:
    """Find the subject that was asked for.

    Args:
        wanted: its name, and what was said of it.
        announce: told of downloads.

    Raises:
        Unusable: there is no such subject, or no host could drive it.
    """
    name = wanted.name
    if name.startswith("vllm") and "==" in name:
        return _from_release(wanted, announce)
    if name.startswith(foreign.PREFIX):
        return _from_command(wanted)
    host = None if wanted.host is None else _host(wanted.host, announce)
    factory = _found(wanted)
    said = _declarations(factory, frozenset(wanted.declared), name)
    usual = "reuse-filter" if _looks_like_filter(factory) else "contract"
    profile = wanted.profile or str(said.get("profile", usual))
    if profile not in PROFILES:
        raise Unusable(f"there is no profile {profile!r}; there are {', '.join(PROFILES)}")
    given = wanted.edition or said.get("edition") or (host.edition if host else None)
    edition = _edition(str(given)) if given else None
    if profile == "reuse-filter":
        return _filter(wanted, partial(factory, **wanted.parameters), edition)
    build = builder(name, factory, wanted.parameters)
    hosts = compatibility(build)
    chosen = _chosen(name, hosts, edition)
    status: Any = ChunkStatus if chosen.says_chunk else BlockStatus
    return Subject(
        name,
        build,
        host.status if host and host.status else status,
        chosen,
        _running(hosts),
        profile,
        bool(said.get("randomized")),
        bool(said.get("may_refuse")),
        bool(said.get("specification")),
        wanted,
        hosts,
        offers_state=_offers_state(build(1)),
    )


def _offers_state(policy: Any) -> bool:
    try:
        return callable(getattr(policy, "cachelaw_state", None))
    except (Exception, SystemExit):
        return True  # and cannot be asked, which is for its law to say


def _edition(name: str) -> Edition:
    try:
        return edition_named(name)
    except ValueError as error:
        raise Unusable(str(error)) from None


def _running(hosts: tuple[Compatibility, ...]) -> tuple[Edition, ...]:
    return tuple(host.edition for host in hosts if host.runs)


def _chosen(name: str, hosts: tuple[Compatibility, ...], wanted: Edition | None) -> Edition:
    """Return the edition to judge by: the one wanted, else the newest whose host could run it."""
    fits = _running(hosts)
    if wanted is None and fits:
        return fits[-1]
    if wanted is None:
        raise Unusable(f"{name} fits no edition: {hosts[0].breaks}")
    if wanted not in fits:
        breaks = next(host.breaks for host in hosts if host.edition == wanted)
        raise Unusable(f"{name} does not fit {wanted}: {breaks}")
    return wanted


# --- Subjects out of vLLM releases, and releases as hosts ---


def _host(host: str, announce: Callable[[str], None] | None) -> releases.Release:
    """Make the modules of a release importable, for a subject that imports them."""
    package, _, version = host.partition("==")
    if package != "vllm" or not version:
        raise Unusable(f"{host!r} is no host: write it like vllm==0.30.0")
    try:
        releases.require_policies(version)
        return releases.load(version, announce=announce)
    except releases.ReleaseError as error:
        raise Unusable(str(error)) from None


def _from_release(wanted: Wanted, announce: Callable[[str], None] | None) -> Subject:
    name, profile = wanted.name, wanted.profile
    release_name, _, policy = name.partition(":")
    version = release_name.partition("==")[2]
    if wanted.host is not None:
        raise Unusable(f"{name} brings its own host: leave out --host")
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
        edition = _edition(wanted.edition or release.edition or V019.name)
        return _filter(wanted, partial(release.filter, **wanted.parameters), edition)
    found = release.policies.get(policy)
    if found is None or release.edition is None or release.status is None:
        raise Unusable(f"vllm {version} has no policy {policy}")
    build = builder(name, found, wanted.parameters)
    hosts = compatibility(build)
    return Subject(
        name,
        build,
        release.status,
        _chosen(name, hosts, _edition(wanted.edition or release.edition)),
        _running(hosts),
        profile or policy,
        "randomized" in wanted.declared,
        "may_refuse" in wanted.declared,
        "specification" in wanted.declared,
        wanted,
        hosts,
    )


# --- Subjects in other languages ---


def _from_command(wanted: Wanted) -> Subject:
    if wanted.host is not None:
        raise Unusable(f"{wanted.name} imports nothing: leave out --host")
    command = foreign.found(wanted.name, wanted.parameters, DECLARATIONS)
    said = command.greeting
    profile = wanted.profile or said.profile
    if profile not in PROFILES[:3]:
        raise Unusable(f"{wanted.name} is a policy, not {profile!r}: {', '.join(PROFILES[:3])}")
    given = wanted.edition or said.edition
    hosts = said.compatibility()
    chosen = _chosen(wanted.name, hosts, _edition(given) if given else None)
    return Subject(
        wanted.name,
        foreign.build_of(command, chosen),
        ChunkStatus if chosen.says_chunk else BlockStatus,
        chosen,
        _running(hosts),
        profile,
        wanted=wanted,
        hosts=hosts,
        foreign=True,
        **{name: name in said.declared or name in wanted.declared for name in DECLARATIONS},
    )


# --- Subjects out of modules and files ---


def _found(wanted: Wanted) -> Any:
    """Import what was asked for: a class, or any factory."""
    name = wanted.name
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise Unusable(
            f"{name!r} is no subject: write package.module:Class, path/file.py:Class or "
            "vllm==0.33.0:arc, or exec:COMMAND"
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
        if missing.startswith("vllm."):
            return f"{place} imports {missing}, which this release of vllm does not have"
        if missing == "vllm":
            return (
                f"{place} imports {missing}, and vllm is not installed: name a release whose "
                "modules it gets, as in --host vllm==0.33.0"
            )
        return f"{place} imports {missing}, which is not installed"
    line = str(error).splitlines()[0] if str(error) else ""
    if isinstance(error, ImportError):
        line = line.removesuffix(f" ({error.path})")
    return f"importing {place} raised {type(error).__name__}: {line[:200]}"


def _suggestion(module: ModuleType) -> str:
    # What is imported when it is first asked for stands in `__all__` alone.
    listed = getattr(module, "__all__", ())
    names = [*vars(module), *(listed if isinstance(listed, list | tuple) else ())]
    found: dict[str, Any] = {}
    for name in names:
        with suppress(Exception):  # it may need what is not installed, or be no name
            found[name] = getattr(module, name)
    classes = [
        name
        for name, value in found.items()
        if inspect.isclass(value)
        and (callable(getattr(value, "evict", None)) or _looks_like_filter(value))
    ]
    return f"; it has {', '.join(sorted(classes))}" if classes else ""


def _declarations(factory: Any, declared: frozenset[str], name: str) -> Mapping[str, Any]:
    said = getattr(factory, "cachelaw", {})
    if not isinstance(said, Mapping):
        raise Unusable(f"{name}: the attribute `cachelaw` must be a dict of declarations")
    known = {"profile", "edition", *DECLARATIONS}
    for unknown in set(said) - known | declared - set(DECLARATIONS):
        raise Unusable(f"{name} declares {unknown!r}; there are {', '.join(sorted(known))}")
    return {**said, **dict.fromkeys(declared, True)}


# --- Filters ---

GONE = "its hosts count offers inside the manager and put no filter before it"
"""Why no host from v0.22 on drives a filter."""


def _looks_like_filter(factory: Any) -> bool:
    """Say whether something is a class with the methods of a manager and not those of a policy."""
    return (
        inspect.isclass(factory)
        and all(callable(getattr(factory, name, None)) for name in ("lookup", "prepare_store"))
        and not hasattr(factory, "evict")
    )


def _filter(wanted: Wanted, factory: Callable[..., Any], edition: Edition | None) -> Subject:
    """Return a reuse filter as a subject.

    Raises:
        Unusable: it cannot be made, has no form that a host drives, or not the one of `edition`.
    """
    every_call = dict.fromkeys(METHODS, 1) | {"take_events": 0, "complete_store": 2}
    with_contexts = every_call | dict.fromkeys(WITH_CONTEXT, 2)
    everywhere = with_contexts | {"touch": 2, "complete_load": 2, "complete_store": 3}
    name = wanted.name
    builds: dict[Edition, Callable[..., Any]] = {}
    misfits: dict[Edition, str] = {}
    for form, calls, build in (
        (V019, every_call, factory),
        (V020, with_contexts, factory),
        (V020, everywhere, partial(FilterV021, factory)),
    ):
        if form not in builds:
            misfit = _misfit_of_filter(name, build, form, calls)
            if misfit is None:
                builds[form] = build
            else:
                misfits.setdefault(form, misfit)
    if edition not in (None, V019, V020):
        raise Unusable(f"{name}: there is no filter in {edition}; it is of v0.19 or v0.20")
    if not builds:
        raise Unusable(f"{name} has no form of the filter: {'; '.join(misfits.values())}")
    chosen = edition or max(builds)
    if chosen not in builds:
        raise Unusable(f"{name} does not fit {chosen}: {misfits[chosen]}")
    return Subject(
        name,
        builds[chosen],
        BlockStatus,
        chosen,
        tuple(builds),
        "reuse-filter",
        wanted=wanted,
        hosts=tuple(
            Compatibility(
                other, other in builds, "" if other in builds else misfits.get(other, GONE)
            )
            for other in EDITIONS
        ),
    )


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
    return mismatch(made.filter if isinstance(made, FilterV021) else made, edition, calls)
