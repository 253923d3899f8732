"""Drive a fast policy beside that of a vLLM release at full size; prints one line of JSON.

    drive_releases.py VERSION lru|arc SEED CAPACITY STEPS

Each step is a call with many keys, or an eviction and the inserts that it made room for. A script
of its own, since a process holds one release; `test_hosts.py` runs it.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
from collections import Counter
from typing import Any

from cachelaw.conformance.releases import load
from cachelaw.reference import OffloadKey, ReqContext


def drive(version: str, name: str, rng: random.Random, capacity: int, steps: int) -> Any:
    """Compare all evictions; return what was seen."""
    release = load(version)
    assert release.edition is not None
    edition = release.edition
    status: Any = release.status
    module = importlib.import_module(f"cachelaw.fast.{edition.replace('.', '')}")
    theirs: Any = release.policies[name]
    both = [theirs(cache_capacity=capacity), getattr(module, name.upper())(capacity)]
    has_hooks, has_access = edition >= "v0.31", edition >= "v0.33"
    keys = [rng.randbytes(32) + bytes(4) for _ in range(2 * capacity)]
    chunks: list[dict[bytes, Any]] = [{}, {}]
    idle: dict[bytes, None] = {}
    seen: Counter[str] = Counter()

    def insert(key: bytes, context: Any) -> None:
        for side, policy in enumerate(both):
            chunk = chunks[side][key] = status(len(chunks[side]))
            policy.insert(key, chunk, *((context,) if has_access else ()))
        if rng.random() < 0.9:
            for side, policy in enumerate(both):
                chunks[side][key].ref_cnt = 0
                policy.mark_evictable(key)
            idle[key] = None

    for key in keys[:capacity]:
        insert(key, ReqContext("fill"))
    for step in range(steps):
        context = ReqContext(f"r{step}")
        batch = rng.choices(keys, k=rng.choice((1, 16, 64, 512)))
        for place, key in enumerate(batch):
            if rng.random() < 0.98:
                context.set_offload_key_position(OffloadKey(key), 16 * (place // 2))
        arguments = (context,) if edition >= "v0.26" else ()
        what = rng.choice(("touch", "finish", "access", "pin", "evict", "evict", "evict"))
        if what == "touch" or not has_hooks:
            for policy in both:
                policy.touch(batch, *arguments)
        elif what == "finish":
            stored, reused = set(batch[::3]), set(batch[1::3])
            for policy in both:
                policy.on_request_finished([batch], stored, reused, context)
        elif what == "access" and has_access:
            for policy in both:
                policy.on_request_access(batch, context)
        elif what == "pin":
            for key in batch:
                if key in idle:
                    for side, policy in enumerate(both):
                        policy.mark_non_evictable(key)
                        chunks[side][key].ref_cnt += 1
                    del idle[key]
                elif key in chunks[0]:
                    for side, policy in enumerate(both):
                        chunks[side][key].ref_cnt = 0
                        policy.mark_evictable(key)
                    idle[key] = None
        if what == "evict" or not has_hooks:
            wanted = rng.choice((1, 1, 8, 64))
            protected = set(batch)
            if has_hooks:
                for policy in both:
                    policy.on_store_miss([key for key in batch if key not in chunks[0]], context)
            answers = [policy.evict(wanted, protected) for policy in both]
            shown = [answer and [key for key, _ in answer] for answer in answers]
            if shown[0] != shown[1]:
                return {**seen, "divergence": f"step {step}: evict({wanted}) differs"}
            for side, answer in enumerate(answers):
                assert all(chunk is chunks[side].pop(key) for key, chunk in answer or ())
            for key in shown[0] or ():
                idle.pop(key, None)
            absent = [key for key in dict.fromkeys(batch) if key not in chunks[0]]
            for key in absent[: capacity - len(chunks[0])]:
                insert(key, context)
            seen["evicted"] += len(shown[0] or ())
        seen[what] += 1
    return {**seen, "divergence": None}


if __name__ == "__main__":
    found = drive(
        sys.argv[1],
        sys.argv[2],
        random.Random(int(sys.argv[3])),
        int(sys.argv[4]),
        int(sys.argv[5]),
    )
    print(json.dumps({"release": sys.argv[1], "policy": sys.argv[2], **found}))
