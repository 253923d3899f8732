"""Calls on policies, and the whole manager: the fast path against the releases of vLLM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.fast.engines import Cell, Engine

FAST = "fast"
AGAIN = "fast again"
REFERENCE = "reference"
RELEASES = ("0.24.0", "0.30.0", "0.32.0", "0.33.0")
HOST = "0.33.0"
"""Whose manager is run, and what targets are in terms of."""

BATCHES = (1, 16, 512, 8192)
EVICTIONS = (1, 16, 64, 512, 4096, 8192)
SHAPES = {
    "touch": BATCHES,
    "on_request_access": BATCHES,
    "on_request_finished": BATCHES,
    "on_store_miss": BATCHES,
    "get": (1,),
    "mark pair": (1,),
    "evict": EVICTIONS,
    "evict n protected": EVICTIONS,
    "evict 8192 protected": (1, 64, 4096),
}
QUADRATIC = {("arc", "0.24.0")}
"""Whose evictions break `cost/linear`: not timed with more than 64 chunks, which takes minutes."""

QUICK = {shape: sizes[:1] if len(sizes) < 3 else (1, 64) for shape, sizes in SHAPES.items()}

Say = Callable[[str], None]


@dataclass
class Table:
    """What was measured of one policy at one size; nanoseconds a key.

    Attributes:
        policy: `lru` or `arc`.
        resident: chunks in the cache.
        rows: by what was timed and the keys a call, a cell for each engine that has it.
    """

    policy: str
    resident: int
    rows: dict[tuple[str, int], dict[str, Cell]] = field(default_factory=dict)


def subject_of(policy: str) -> str:
    """Return the name under which `cachelaw certify` knows the fast policy."""
    return f"cachelaw.fast:{policy.upper()}"


def calls_of(n: int) -> int:
    """Return how many calls of `n` keys make a sample."""
    return max(1, min(512, 8192 // n))


def measure_policy(
    policy: str,
    resident: int,
    *,
    cpu: int,
    rounds: int,
    releases: tuple[str, ...] = RELEASES,
    shapes: dict[str, tuple[int, ...]] = SHAPES,
    say: Say = lambda line: None,
) -> Table:
    """Time every shape of call on all engines, one engine after the other in every round."""
    table = Table(policy, resident)
    subjects = {FAST: subject_of(policy), AGAIN: subject_of(policy)}
    subjects |= {release: f"vllm=={release}:{policy}" for release in releases}
    if resident <= 10_000:
        subjects[REFERENCE] = f"cachelaw.reference:{policy.upper()}"
    samples: dict[tuple[str, int], dict[str, list[float]]] = {}
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine(name, cpu)) for name in subjects]
        for engine in engines:
            say(f"{policy}, {resident:,} resident: filling {engine.name}")
            engine.ask("policy", subject=subjects[engine.name], resident=resident)
        for number in range(rounds):
            for shape, n in _cases(shapes, resident):
                say(f"{policy}, {resident:,} resident: round {number + 1} of {rounds}, {shape} {n}")
                # Who comes first finds the caches of the CPU cold; let that go round.
                turn = number % len(engines)
                for engine in engines[turn:] + engines[:turn]:
                    calls = calls_of(n)
                    if (policy, engine.name) in QUADRATIC and shape.startswith("evict") and n > 64:
                        continue
                    if engine.name == REFERENCE:
                        if n > 16:
                            continue
                        calls = min(calls, 4)
                    found = engine.ask("measure", shape=shape, n=n, calls=calls)
                    for timed, ns in (found or {}).items():
                        row = samples.setdefault((timed, n), {})
                        row.setdefault(engine.name, []).append(ns)
    for key, row in samples.items():
        table.rows[key] = {name: Cell(tuple(values)) for name, values in row.items()}
    return table


def _cases(shapes: dict[str, tuple[int, ...]], resident: int) -> Iterator[tuple[str, int]]:
    for shape, sizes in shapes.items():
        for n in sizes:
            if n <= resident:
                yield shape, n


def measure_manager(
    policy: str,
    resident: int,
    n: int,
    *,
    cpu: int,
    rounds: int,
    say: Say = lambda line: None,
) -> dict[str, Cell]:
    """Time whole requests on the manager of vLLM, with its own policy and with the fast one.

    Raises:
        RuntimeError: the policies did not count the same hits.
    """
    ours = (policy.upper(), "cachelaw.fast.vllm")
    loaded = {FAST: ours, AGAIN: ours, HOST: (policy, None)}
    samples: dict[str, list[float]] = {name: [] for name in loaded}
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine(name, cpu)) for name in loaded]
        for engine in engines:
            say(f"manager, {policy}, {resident:,}: filling {engine.name}")
            name, module = loaded[engine.name]
            engine.ask(
                "manager", release=HOST, policy=name, module=module, resident=resident, fill=n
            )
        for number in range(rounds):
            say(f"manager, {policy}, {resident:,}: round {number + 1} of {rounds}")
            hits = set()
            for engine in engines:
                found = engine.ask("measure", n=n, calls=max(2, 16_384 // n))
                samples[engine.name].append(found["manager"])
                hits.add(found["hits"])
            if len(hits) != 1:
                raise RuntimeError(f"manager, {policy}: hits differ: {sorted(hits)}")
    return {name: Cell(tuple(values)) for name, values in samples.items()}
