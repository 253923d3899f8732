"""Sources: which files a subject was made of, and their hashes.

They go into the certificate, which says of what it speaks. Files are named as Python imports them
or, for a subject out of a file, by the file's own name: where they lie is nobody's business.
What a subject calls but does not derive from, in other modules, is not among them.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from cachelaw.conformance import foreign
from cachelaw.conformance.filters.backing import backing_for
from cachelaw.conformance.filters.trace import FilterTrace
from cachelaw.conformance.filters.v021 import FilterV021
from cachelaw.conformance.instance import PlainCodec
from cachelaw.conformance.subject import Subject


def sources_of(subject: Subject) -> dict[str, str]:
    """Return the files that define a subject, by name, each with the SHA-256 of its contents.

    They are those of its class and of what that derives from, outside the standard library and
    cachelaw, and of the factory that makes it.

    Args:
        subject: has been found in this process, so that its modules are imported.
    """
    if subject.foreign:
        contents = foreign.files_of(subject.name)
        return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())}
    files: dict[str, str] = {}
    for module in _modules(subject):
        path = getattr(module, "__file__", None)
        if path is None or _is_ours_or_pythons(module):
            continue
        try:
            data = Path(path).read_bytes()
        except OSError:
            continue  # it was there when it was imported; nothing can be said of it
        files[_named(module, Path(path))] = hashlib.sha256(data).hexdigest()
    return dict(sorted(files.items()))


def factory_of(name: str) -> Any | None:
    """Return what a subject's name stands for, if its module is imported; else None.

    Args:
        name: `package.module:Class` or `path/file.py:Class`.
    """
    place, _, attribute = name.rpartition(":")
    found: Any = _imported(place)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    return found


def _imported(place: str) -> ModuleType | None:
    if not place.endswith(".py"):
        return sys.modules.get(place)
    path = str(Path(place).resolve())
    candidates = [module for name, module in sys.modules.items() if name.startswith("cachelaw_")]
    return next(
        (
            module
            for module in candidates
            if str(Path(getattr(module, "__file__", None) or ".").resolve()) == path
        ),
        None,
    )


def _modules(subject: Subject) -> Iterator[ModuleType]:
    factory = factory_of(subject.name)
    kinds: list[Any] = [] if factory is None else [factory]
    made = _made(subject)
    if made is not None:
        kinds.extend(type(made).__mro__)
    if inspect.isclass(factory):
        kinds.extend(factory.__mro__)
    for kind in kinds:
        module = sys.modules.get(getattr(kind, "__module__", None) or "")
        if module is not None:
            yield module


def _made(subject: Subject) -> Any | None:
    """Return an instance, None if none can be made."""
    try:
        if subject.profile != "reuse-filter":
            return subject.build(2)
        trace = FilterTrace(subject.edition, store_threshold=2, max_tracker_size=2)
        made = subject.build(
            backing_for(trace, PlainCodec()), store_threshold=2, max_tracker_size=2
        )
        return made.filter if isinstance(made, FilterV021) else made
    except Exception:
        return None


def _is_ours_or_pythons(module: ModuleType) -> bool:
    root = module.__name__.partition(".")[0]
    return root == "cachelaw" or root in sys.stdlib_module_names


def _named(module: ModuleType, path: Path) -> str:
    """Name a file as it is imported, without the folder it lies in."""
    if module.__name__.startswith("cachelaw_subject_"):
        return path.name
    parts = module.__name__.split(".")
    return "/".join([*parts, path.name] if path.stem == "__init__" else [*parts[:-1], path.name])
