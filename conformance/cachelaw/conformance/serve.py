"""Serving: any subject as a command that speaks the protocol of `foreign.py`.

Two releases of vLLM cannot be loaded by one process. Where both are needed, one of them is served:
`python -m cachelaw.conformance.serve WANTED`, with the fields of `Wanted` as JSON.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cachelaw.conformance.foreign import FORMAT
from cachelaw.conformance.subject import DECLARATIONS, Subject, Unusable, Wanted, find
from cachelaw.reference.context import ReqContext

COLLECTIONS = {
    "touch": (list,),
    "on_store_miss": (list,),
    "on_request_access": (list,),
    "evict": (int, set),
    "on_request_finished": (tuple, set, set),
}
"""The kinds of the arguments that are no keys and no requests, as hosts pass them."""


@dataclass
class Served:
    """An instance of a policy, with the chunks and the contexts of its manager.

    Args:
        policy: the instance.
        slot_name: the attribute of a chunk that holds its slot.
        chunks: every chunk that was inserted last under its key.
        contexts: of each request.
    """

    policy: Any
    slot_name: str
    chunks: dict[str, Any] = field(default_factory=dict)
    contexts: dict[str, ReqContext] = field(default_factory=dict)

    def carry_out(self, subject: Subject, call: Sequence[Any]) -> Any:
        """Carry out one call and return its result."""
        method, *arguments = call
        match method:
            case "ref_cnt":
                self.chunks[arguments[0]].ref_cnt = arguments[1]
                return None
            case "save":
                return base64.b64encode(_pickled(self)).decode()
            case "insert":
                key, slot, *requests = arguments
                chunk = self.chunks[key] = subject.status(slot)
                self.policy.insert(_key(key), chunk, *map(self._context, requests))
                return None
        answer = getattr(self.policy, method)(*self._arguments(method, arguments))
        if method == "get" and answer is not None:
            return self._slot(answer)
        if method == "evict" and isinstance(answer, list):
            return [[key.hex(), self._slot(chunk)] for key, chunk in answer]
        return answer if method == "evict" else None

    def _slot(self, chunk: Any) -> Any:
        """Return the slot of a chunk; an object that was never inserted has none."""
        known = any(chunk is one for one in self.chunks.values())
        return getattr(chunk, self.slot_name) if known else f"an object: {type(chunk).__name__}"

    def _arguments(self, method: str, arguments: list[Any]) -> list[Any]:
        kinds = COLLECTIONS.get(method, ())
        given: list[Any] = [kind(_key(one)) for kind, one in zip(kinds, arguments, strict=False)]
        return given + [
            self._context(one) if isinstance(one, dict) else _key(one)
            for one in arguments[len(kinds) :]
        ]

    def _context(self, said: dict[str, Any]) -> ReqContext:
        name = said["request"]
        context = self.contexts.setdefault(name, ReqContext(name))
        for key, position in said["positions"].items():
            context.set_offload_key_position(_key(key), position)
        return context


def _key(written: Any) -> Any:
    """Return a key, or keys at any depth, as bytes; numbers as they are."""
    if isinstance(written, str):
        return bytes.fromhex(written)
    return [_key(one) for one in written] if isinstance(written, list) else written


def _pickled(served: Served) -> bytes:
    """Pickle without the memory of which equal objects are one, so that equal states are equal."""
    # Chunks that were evicted would only tell apart what is alike.
    served.chunks = {
        key: chunk
        for key, chunk in served.chunks.items()
        if served.policy.get(bytes.fromhex(key)) is chunk
    }
    file = io.BytesIO()
    pickle.Pickler(file, pickle.HIGHEST_PROTOCOL).dump(served)
    return file.getvalue()


def greeting(subject: Subject) -> dict[str, Any]:
    """Return the first line for a subject."""
    return {
        "cachelaw": FORMAT,
        "editions": [edition.name for edition in subject.fits],
        "edition": subject.edition.name,
        "profile": subject.profile,
        **{name: getattr(subject, name) for name in DECLARATIONS},
        "save": _can_save(subject),
    }


def _can_save(subject: Subject) -> bool:
    try:
        pickle.loads(pickle.dumps(subject.build(2)))
    except Exception:
        return False
    return True


def main() -> None:
    """Serve the subject that the argument names."""
    saying = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the subject prints is no answer

    def say(line: dict[str, Any]) -> None:
        saying.write(json.dumps(line) + "\n")
        saying.flush()

    try:
        subject = find(Wanted(**json.loads(sys.argv[1])))
    except Unusable as error:
        say({"unusable": str(error)})
        return
    say(greeting(subject))
    instances: dict[int, Served] = {}
    slot_name = "chunk_id" if subject.edition.says_chunk else "block_id"
    for line in map(json.loads, sys.stdin):
        for dropped in line.get("drop", ()):
            del instances[dropped]
        try:
            if "new" in line:
                new = line["new"]
                instances[line["id"]] = (
                    pickle.loads(base64.b64decode(new["saved"]))
                    if "saved" in new
                    else Served(subject.build(new["capacity"]), slot_name)
                )
            served = instances[line["id"]]
            results = [served.carry_out(subject, call) for call in line["calls"]]
        except Exception as error:
            say({"error": f"{type(error).__name__}: {error}"})
        else:
            say({"results": results})


if __name__ == "__main__":
    main()
    os._exit(0)  # threads that the subject has left behind must not keep this process
