"""Hostile subjects: right policies that do, now and then, what no policy should do to its host."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any

from tests.conformance.right import Fifo


class _Hostile(Fifo):
    """Misbehaves at the third eviction that takes a chunk from an instance."""

    def __init__(self, cache_capacity: int) -> None:
        super().__init__(cache_capacity)
        self._evictions = 0

    def evict(self, n: int, protected: Any) -> Any:
        self._evictions += n > 0
        if self._evictions == 3:
            self.strike()
        return super().evict(n, protected)

    def strike(self) -> None:
        raise NotImplementedError


class Crashes(_Hostile):
    def strike(self) -> None:
        os.kill(os.getpid(), signal.SIGABRT)


class Segfaults(_Hostile):
    def strike(self) -> None:
        ctypes.string_at(0)


class Exits(_Hostile):
    def strike(self) -> None:
        os._exit(0)


class Hangs(_Hostile):
    def strike(self) -> None:
        while True:
            pass


class Bombs(_Hostile):
    """Takes all the memory there is."""

    def strike(self) -> None:
        hoard = []
        while True:
            hoard.append(bytearray(os.urandom(1) * (1 << 24)))


class Spams(Fifo):
    """Prints at every call, on both streams."""

    def get(self, key: Any) -> Any:
        print("looking up " * 50)
        os.write(2, b"still looking\n" * 50)
        return super().get(key)


class TakesSignals(_Hostile):
    """Ignores every signal it can, then hangs."""

    def strike(self) -> None:
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass


class LeavesThread(Fifo):
    """Leaves a thread behind that never ends."""

    def __init__(self, cache_capacity: int) -> None:
        import threading

        super().__init__(cache_capacity)
        if threading.active_count() < 5:
            threading.Thread(target=threading.Event().wait).start()


class LeavesAtLoading(Fifo):
    """Ends the process when it is made."""

    def __init__(self, cache_capacity: int) -> None:
        os._exit(7)


class _Odd:
    """Cannot be compared, hashed or shown."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    def __hash__(self) -> int:
        raise RuntimeError("not to be hashed")

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")

    def __len__(self) -> int:
        raise RuntimeError("not to be counted")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


class _OddKey(bytes):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not to be compared")

    def __hash__(self) -> int:
        raise RuntimeError("not to be hashed")


class OddAnswer(Fifo):
    """Answers an eviction with an object that fights back."""

    def evict(self, n: int, protected: Any) -> Any:
        return _Odd() if n else []


class OddVictims(Fifo):
    """Answers with keys that fight back."""

    def evict(self, n: int, protected: Any) -> Any:
        victims = super().evict(n, protected)
        return victims and [(_OddKey(key), chunk) for key, chunk in victims]


class OddChunk(Fifo):
    """Finds an object that fights back."""

    def get(self, key: Any) -> Any:
        return None if super().get(key) is None else _Odd()


class ClosesAll(_Hostile):
    """Closes every file of its process, those of the suite among them."""

    def strike(self) -> None:
        os.closerange(0, 256)


class Babbles(_Hostile):
    """Writes into every open file, those of the suite among them."""

    def strike(self) -> None:
        for number in range(3, 64):
            try:
                os.write(number, b"hello\n")
            except OSError:
                continue


class Recurses(_Hostile):
    def strike(self) -> None:
        sys.setrecursionlimit(10**9)
        self.strike()
