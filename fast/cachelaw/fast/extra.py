"""What `cachelaw.fast` needs beyond `cachelaw`: numba, numpy and torch."""

from __future__ import annotations

from importlib.util import find_spec

NEEDED = ("numba", "numpy", "torch")


def require_extra() -> None:
    """See to it that everything needed is installed.

    Raises:
        ImportError: something is not; the message names it and the extra that brings it.
    """
    missing = [name for name in NEEDED if not _installed(name)]
    if missing:
        raise ImportError(
            f"cachelaw.fast needs {' and '.join(missing)}, not installed here: "
            "pip install 'cachelaw[fast]'"
        )


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False
