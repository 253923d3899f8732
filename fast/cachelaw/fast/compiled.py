"""The one decorator of all kernels: plain Python functions, compiled by numba and kept on disk.

numba has no types and notices only edits in the file of the function itself: a kernel that calls
one in another file would go on with the code that it was compiled with. So the folder that holds
the compiled code is named after a hash of every source file of this package. Whatever is edited,
everything is compiled again, once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar, overload

P = ParamSpec("P")
R = TypeVar("R")

_SOURCES = Path(__file__).parent
_NUMBA_FOLDER = Lock()


@cache
def require_numba() -> Any:
    """Return numba. That it is installed has been checked by `cachelaw.fast` itself."""
    import numba

    return numba


def source_hash() -> str:
    """Return the hash that names the folder of the compiled code, 16 hex digits.

    It covers all Python files of this package, and what else decides the code but is not among
    the things numba looks at: whether array bounds are checked.
    """
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for path in sorted(_SOURCES.rglob("*.py")):
        digest.update(path.relative_to(_SOURCES).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """Return the folder for compiled code, or None if no place can be written to.

    It lies in NUMBA_CACHE_DIR if that is set, else beside the sources in `__pycache__`, else in
    the user's cache folder.
    """
    name = f"cachelaw-kernels-{source_hash()}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [Path(chosen)] if chosen else [_SOURCES / "__pycache__", Path(user) / "cachelaw"]
    for place in places:
        folder = place / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


@overload
def kernel(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def kernel(
    *,
    parallel: bool = False,
    nogil: bool = False,
    inline: bool = False,
    borrows: bool = False,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def kernel(
    function: Callable[P, R] | None = None,
    /,
    *,
    parallel: bool = False,
    nogil: bool = False,
    inline: bool = False,
    borrows: bool = False,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function with numba when it is first called, or take it from the cache folder.

    Floating point is IEEE 754 to the letter: nothing is reordered or fused. The plain function
    stays at hand, see `plain`.

    Args:
        function: the function, when the decorator is used without parentheses.
        parallel: whether `numba.prange` loops run on several threads.
        nogil: whether other Python threads may run while the kernel does. Only for kernels whose
            arrays nobody else can reach meanwhile.
        inline: whether the function becomes part of each kernel that calls it. For small functions
            in inner loops: a call that passes arrays costs more than they do.
        borrows: whether the function, and all that it calls, only uses arrays that it is given and
            makes none. Then nobody need count who holds them, which costs more than it looks: an
            atomic instruction or two in every small function.
    """

    def decorate(python: Callable[P, R]) -> Callable[P, R]:
        numba = require_numba()
        options: dict[str, Any] = {"parallel": parallel, "nogil": nogil, "forceinline": inline}
        if borrows:
            options["_nrt"] = False
        folder = cache_folder()
        with _NUMBA_FOLDER:  # numba reads the folder from its settings, once, while decorating
            before = numba.config.CACHE_DIR
            try:
                if folder is not None:
                    numba.config.CACHE_DIR = str(folder)
                compiled: Callable[P, R] = numba.njit(cache=folder is not None, **options)(python)
            finally:
                numba.config.CACHE_DIR = before
        return compiled

    return decorate if function is None else decorate(function)


def plain(compiled: Callable[P, R]) -> Callable[P, R]:
    """Return the Python function that a kernel was made of, for another compiler or for tests."""
    python: Callable[P, R] = getattr(compiled, "py_func", compiled)
    return python


def signatures(compiled: Callable[..., object]) -> int:
    """Return for how many combinations of argument types a kernel is compiled by now."""
    return len(getattr(compiled, "signatures", ()))
