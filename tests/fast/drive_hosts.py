"""Drive the real manager of a vLLM release over its own policy and over ours, side by side.

    drive_hosts.py VERSION lru|arc SEED CALLS

Ours is loaded as hosts load it, by `cache_policy_module_path`. After each call of the managers
their answers are compared, the calls that they made on their policies, what these answered, and
ref counts and slots of all chunks. Prints one line of JSON.

A script of its own, since a process holds one release; `test_hosts.py` runs it.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import random
import sys
from collections import Counter
from typing import Any

from tests.interop.drive_policies import Side, by_protocol, unusual

from cachelaw.conformance.generate import Program
from cachelaw.conformance.releases import load
from cachelaw.conformance.trace import Event, Layout, describe
from cachelaw.reference.editions import edition_named
from cachelaw.reference.protocol import Evict, Setting, start

EVENTS_A_RUN = 1_000


def shown(answer: Any) -> Any:
    """Return an answer as something that can be compared."""
    if answer is None or isinstance(answer, bool | int | str | bytes | enum.Enum):
        return answer
    if isinstance(answer, list | tuple | set | frozenset):
        parts = [shown(each) for each in answer]
        return sorted(parts, key=repr) if isinstance(answer, set | frozenset) else parts
    if dataclasses.is_dataclass(answer):
        return {
            field.name: shown(getattr(answer, field.name)) for field in dataclasses.fields(answer)
        }
    if hasattr(answer, "tolist"):
        return answer.tolist()
    return {name: shown(value) for name, value in vars(answer).items()}


def residents(side: Side) -> dict[int, tuple[int, int]]:
    """Return ref count and slot of every chunk."""
    policy, encode = side.recorder.policy, side.codec.encode
    found = {key: policy.get(encode(key)) for key in side.keys}
    return {
        key: (chunk.ref_cnt, getattr(chunk, "chunk_id", getattr(chunk, "block_id", -1)))
        for key, chunk in found.items()
        if chunk is not None
    }


def drive(version: str, policy: str, rng: random.Random, calls: int) -> dict[str, Any]:
    """Compare until so many calls of the managers were made, or something differs."""
    release = load(version)
    manager: Any = release.manager

    def with_ours(chunks: int, name: str) -> Any:
        return manager(chunks, name.upper(), "cachelaw.fast.vllm")

    ours: Any = with_ours
    loaded = dataclasses.replace(release, manager=ours)
    assert release.edition is not None and release.base is not None
    edition = edition_named(release.edition)
    seen: Counter[str] = Counter()
    turn = 0
    while seen["calls"] < calls:
        turn += 1
        capacity = 400 if turn % 5 == 0 else rng.randint(1, 64)
        layout = Layout(rng.choice((1, 2, 3)))
        setting: Setting[int] = Setting(edition, capacity, layout.group_of, layout.position_of)
        keys = 2 * capacity + 8
        program = Program(rng, setting, keys)
        one = Side(release, policy, setting, keys + 200)
        other = Side(loaded, policy, setting, keys + 200)
        assert isinstance(other.recorder.policy, release.base)
        assert type(other.recorder.policy).__module__ != type(one.recorder.policy).__module__
        state, events = start(setting), list[Event]()
        for _ in range(EVENTS_A_RUN):
            event = unusual(rng, setting, state, program.next(state))
            if isinstance(event, Evict):
                continue  # a manager evicts for a store, and only then
            events.append(event)
            answers = [shown(side.happen(event)) for side in (one, other)]
            seen["calls"] += 1
            seen[type(event).__name__] += 1
            noted = [(side.recorder.noted, side.recorder.answers) for side in (one, other)]
            kept = [residents(side) for side in (one, other)]
            for what, pair in (("answers", answers), ("calls", noted), ("chunks", kept)):
                if pair[0] != pair[1]:
                    trace = ", ".join(describe(event) for event in events[-30:])
                    differs = f"{what}: {pair[0]} and {pair[1]} after {trace}"
                    return {**seen, "divergence": differs, "capacity": capacity}
            for victims in one.recorder.answers:
                program.saw(victims)
                seen["evicted"] += len(victims or ())
                seen["refused"] += victims is None
            _, state = by_protocol(setting, state, event, one.recorder.answers)
    return {**seen, "divergence": None}


if __name__ == "__main__":
    name, profile, seed, amount = sys.argv[1:]
    found = drive(name, profile, random.Random(int(seed)), int(amount))
    print(json.dumps({"release": name, "policy": profile, **found}))
