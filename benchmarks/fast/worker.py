"""One engine in a process of its own: a policy with a full cache, and ways to time its calls.

    python -m benchmarks.fast.worker

Reads one JSON object a line, and answers each with one. A process holds one vLLM release, so every
engine gets one. What is timed is the calls alone: keys are made before, as new objects that equal
those in the cache, for that is what hosts pass; contexts and chunks too.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

from cachelaw.conformance import releases
from cachelaw.conformance.subject import resolve
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import Edition

TOKENS = 16
"""In a chunk: positions are multiples of it."""


def fresh(key: bytes) -> bytes:
    """Return another object that equals `key` and was never hashed."""
    return key[:18] + key[18:]


def timed(calls: list[tuple[Any, ...]], function: Callable[..., Any]) -> int:
    """Make the calls and return the nanoseconds that they took."""
    begin = perf_counter_ns()
    for arguments in calls:
        function(*arguments)
    return perf_counter_ns() - begin


class Policy:
    """A policy whose cache is full, every chunk idle.

    Args:
        subject: as `cachelaw certify` takes it.
        resident: the capacity, and the number of chunks.
    """

    def __init__(self, subject: str, resident: int) -> None:
        found = resolve(subject)
        self.edition: Edition = found.edition
        self.policy = found.build(resident)
        self._status = found.status
        self._rng = random.Random(1)
        self._capacity = resident
        self._keys: list[bytes] = []
        self._gone: deque[bytes] = deque(maxlen=max(resident // 2, 1))
        self._places: dict[bytes, int] = {}
        self._chunks: dict[bytes, Any] = {}
        for _ in range(resident):
            self._insert([self._new_key()])
        # Give ARC ghosts, and something in T2.
        turnover = resident // 4
        self._touch(self._some(turnover))
        self._renew(turnover)

    def measure(self, shape: str, n: int, calls: int) -> dict[str, float] | None:
        """Time a shape of call.

        Args:
            shape: a method's name, `mark pair`, or `evict` with what is protected.
            n: keys in each call.
            calls: how many calls.

        Returns:
            Nanoseconds a key, by what was timed; None if hosts of the edition make no such call.
        """
        method = getattr(self, f"_time_{shape.replace(' ', '_')}", None)
        if method is None:
            raise ValueError(f"there is no shape {shape!r}")
        # Pay what is owed for earlier calls of other shapes, and find the caches of the CPU warm.
        method(n, max(1, calls // 4))
        found = method(n, calls)
        return None if found is None else {k: ns / (n * calls) for k, ns in found.items()}

    # --- shapes ---

    def _time_touch(self, n: int, calls: int) -> dict[str, int]:
        made: list[tuple[Any, ...]] = [self._with_context(self._some(n)) for _ in range(calls)]
        return {"touch": timed(made, self.policy.touch)}

    def _time_on_request_access(self, n: int, calls: int) -> dict[str, int] | None:
        if not self.edition.has_request_access:
            return None
        made = [(keys, self._knowing(keys)) for keys in self._batches(n, calls)]
        return {"on_request_access": timed(made, self.policy.on_request_access)}

    def _time_on_request_finished(self, n: int, calls: int) -> dict[str, int] | None:
        if not self.edition.has_request_hooks:
            return None
        made: list[tuple[Any, ...]] = [
            ((tuple(keys),), set(), set(keys), self._knowing(keys))
            for keys in self._batches(n, calls)
        ]
        return {"on_request_finished": timed(made, self.policy.on_request_finished)}

    def _time_on_store_miss(self, n: int, calls: int) -> dict[str, int] | None:
        if not self.edition.has_request_hooks or len(self._gone) < n:
            return None
        made = [
            (list(map(fresh, self._rng.sample(self._gone, n))), ReqContext("r"))
            for _ in range(calls)
        ]
        return {"on_store_miss": timed(made, self.policy.on_store_miss)}

    def _time_get(self, n: int, calls: int) -> dict[str, int]:
        made = [(key,) for _ in range(calls) for key in self._some(n)]
        return {"get": timed(made, self.policy.get)}

    def _time_mark_pair(self, n: int, calls: int) -> dict[str, int] | None:
        if not self.edition.has_marks:
            return None
        took = 0
        for keys in self._batches(n, calls):
            took += timed([(fresh(key),) for key in keys], self.policy.mark_non_evictable)
            for key in keys:
                self._chunks[key].ref_cnt = 1
            for key in keys:
                self._chunks[key].ref_cnt = 0
            took += timed([(fresh(key),) for key in keys], self.policy.mark_evictable)
        return {"mark pair": took}

    def _time_evict(self, n: int, calls: int) -> dict[str, int] | None:
        return self._evict(n, calls, 0, "evict")

    def _time_evict_n_protected(self, n: int, calls: int) -> dict[str, int] | None:
        return self._evict(n, calls, n, "evict, n protected")

    def _time_evict_8192_protected(self, n: int, calls: int) -> dict[str, int] | None:
        return self._evict(n, calls, 8192, "evict, 8192 protected")

    def _evict(self, n: int, calls: int, protected: int, name: str) -> dict[str, int] | None:
        if n + protected > self._capacity * 3 // 4:
            return None
        evicting = inserting = 0
        for _ in range(calls):
            kept = set(self._some(protected))
            begin = perf_counter_ns()
            victims = self.policy.evict(n, kept)
            evicting += perf_counter_ns() - begin
            self._left(victims)
            inserting += self._insert([self._new_key() for _ in range(n)])
        found = {name: evicting}
        if not protected:
            found["insert"] = inserting
        return found

    # --- the cache ---

    def _new_key(self) -> bytes:
        return self._rng.randbytes(32) + b"\0\0\0\0"

    def _some(self, n: int) -> list[bytes]:
        return [fresh(self._rng.choice(self._keys)) for _ in range(n)] if n else []

    def _batches(self, n: int, calls: int) -> Iterator[list[bytes]]:
        for _ in range(calls):
            yield list(map(fresh, self._rng.sample(self._keys, min(n, len(self._keys)))))

    def _with_context(self, keys: list[bytes]) -> tuple[Any, ...]:
        return (keys, ReqContext("r")) if self.edition.touch_takes_context else (keys,)

    def _knowing(self, keys: list[bytes]) -> ReqContext:
        context = ReqContext("r")
        for i, key in enumerate(keys):
            context.set_offload_key_position(key, (i + 1) * TOKENS)  # type: ignore[arg-type]
        return context

    def _touch(self, keys: list[bytes]) -> None:
        self.policy.touch(*self._with_context(keys))

    def _insert(self, keys: list[bytes]) -> int:
        """Insert chunks, make them idle, and return the nanoseconds of the inserts alone."""
        made: list[tuple[Any, ...]] = [(fresh(key), self._status(i)) for i, key in enumerate(keys)]
        chunks = [chunk for _, chunk in made]
        if self.edition.has_request_access:
            context = ReqContext("r")
            made = [(*arguments, context) for arguments in made]
        took = timed(made, self.policy.insert)
        for key, chunk in zip(keys, chunks, strict=True):
            chunk.ref_cnt = 0
            self._chunks[key] = chunk
            self._places[key] = len(self._keys)
            self._keys.append(key)
            if self.edition.has_marks:
                self.policy.mark_evictable(fresh(key))
        return took

    def _left(self, victims: Any) -> None:
        assert victims is not None
        gone = {key for key, _ in victims}
        self._gone.extend(gone)
        for key in gone:  # in any order: keys are picked at random
            del self._chunks[key]
            at = self._places.pop(key)
            last = self._keys.pop()
            if last != key:
                self._keys[at] = last
                self._places[last] = at

    def _renew(self, n: int) -> None:
        # A few at a time: there is a release whose evictions cost more than they evict.
        for first in range(0, n, 256):
            some = min(n - first, 256)
            self._left(self.policy.evict(some, set()))
            self._insert([self._new_key() for _ in range(some)])


class Manager:
    """The CPUOffloadingManager of a release, with its own policy or one that it loads.

    Args:
        release: such as `0.33.0`.
        policy: `lru` or `arc`, or the name of a class in `module`.
        module: where the host finds its policy, None for its own.
        resident: the number of chunks.
    """

    def __init__(self, release: str, policy: str, module: str | None, resident: int) -> None:
        found = releases.load(release)
        assert found.manager is not None and found.context is not None
        self._context = found.context
        self.manager: Any = found.manager(
            num_chunks=resident, cache_policy=policy, cache_policy_module_path=module
        )
        self._rng = random.Random(2)
        self._served: deque[list[bytes]] = deque(maxlen=max(4, resident // 1024))
        self._requests = 0
        self.keys = self.hits = 0
        self._resident = resident

    def fill(self, n: int) -> None:
        """Serve requests of `n` keys until the cache has been full for a while."""
        while self.keys < 2 * self._resident:
            self._serve(*self._request(n))

    def measure(self, n: int, calls: int) -> dict[str, float]:
        """Serve requests of `n` keys, six of ten of which share a prefix with an old one."""
        made = [self._request(n) for _ in range(calls)]
        before = self.hits
        begin = perf_counter_ns()
        for keys, context in made:
            self._serve(keys, context)
        took = perf_counter_ns() - begin
        return {"manager": took / (n * calls), "hits": float(self.hits - before)}

    def _request(self, n: int) -> tuple[list[bytes], Any]:
        old = self._rng.choice(self._served) if self._served and self._rng.random() < 0.6 else []
        shared = old[: self._rng.randint(1, n)] if old else []
        keys = [fresh(key) for key in shared]
        keys += [self._rng.randbytes(32) + b"\0\0\0\0" for _ in range(n - len(keys))]
        self._served.append(keys)
        self._requests += 1
        context = self._context(req_id=f"r{self._requests}")
        for i, key in enumerate(keys):
            context.set_offload_key_position(key, (i + 1) * TOKENS)
        return [fresh(key) for key in keys], context

    def _serve(self, keys: list[bytes], context: Any) -> None:
        manager = self.manager
        manager.on_new_request(context)
        run = 0
        for key in keys:
            if manager.lookup(key, context).name != "HIT":
                break
            run += 1
        if run:
            manager.prepare_load(keys[:run], context)
        stored = manager.prepare_store(keys, context)
        if stored is not None:
            manager.complete_store(stored.keys_to_store, context)
        if run:
            manager.complete_load(keys[:run], context)
        manager.on_request_finished(context)
        self.keys += len(keys)
        self.hits += run


def main() -> None:
    """Answer commands until the input ends."""
    engine: Any = None
    for line in sys.stdin:
        command = json.loads(line)
        match command.pop("do"):
            case "pin":
                os.sched_setaffinity(0, {command["cpu"]})
                answer: Any = True
            case "policy":
                engine = Policy(**command)
                answer = engine.edition.name
            case "manager":
                fill = command.pop("fill")
                engine = Manager(**command)
                engine.fill(fill)
                answer = True
            case "measure":
                gc.collect()
                gc.freeze()
                gc.disable()
                answer = engine.measure(**command)
                gc.enable()
            case "end":
                return
            case other:
                raise ValueError(f"there is no command {other!r}")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
