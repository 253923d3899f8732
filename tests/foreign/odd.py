"""A command that misbehaves: the Fifo of specs/INTERPRETING.md, up to its third eviction.

The arguments are the file that holds the Fifo's text, and what to do then, or at once.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def say(line: str) -> None:
    print(line, flush=True)


def greet_and_leave() -> None:
    say('{"cachelaw": 1, "editions": ["v0.24"]}')
    os._exit(4)


AT_ONCE: dict[str, Callable[[], None]] = {
    "silent": lambda: time.sleep(60),
    "talks": lambda: say("ready"),
    "future": lambda: say('{"cachelaw": 2, "editions": ["v0.24"]}'),
    "nowhere": lambda: say('{"cachelaw": 1, "editions": ["v7"]}'),
    "leaves": lambda: os._exit(3),
    "greets": greet_and_leave,
}

THEN: dict[str, Callable[[], Any]] = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "exit": lambda: os._exit(5),
    "garbage": lambda: say("no JSON"),
    "endless": lambda: say("x" * (1 << 25)),
    "list": lambda: say("[]"),
    "few": lambda: say('{"results": []}'),
    "bomb": lambda: [bytearray(1 << 24) for _ in range(1 << 12)],
    "hang": lambda: time.sleep(600),
    "raise": lambda: 1 / 0,
    "victims": lambda: "soon",
    "unknown": lambda: [["00", 7]],
}

STRIKING = """
    def evict(self, n, protected):
        self.evictions = getattr(self, "evictions", 0) + 1
        return self.evictions == 3 and strike() or self.usual(n, protected)
"""


def main() -> None:
    text, what = Path(sys.argv[1]).read_text(encoding="utf-8"), sys.argv[2]
    if what in AT_ONCE:
        AT_ONCE[what]()
        return
    text = text.replace("def evict(self", "def usual(self")
    text = text.replace("\n    def clear(self)", f"{STRIKING}\n    def clear(self)")
    exec(text, {"strike": THEN[what]})


main()
