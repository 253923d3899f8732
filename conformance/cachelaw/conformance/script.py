"""Scripts: the frame of a reproduction, a Python file that checks one clause on one subject.

The file is for somebody who has the subject and nothing else. Its middle is written by
`policy_script.py` or `filters/script.py`; here is what all of them have: what the file says of
itself, what it imports, and how it finds the subject.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachelaw.specs.clause import Clause

KEY = '''
MADE = []  # so that no two keys are ever at the same address


def k(number):
    """Return a key: a block hash of 32 bytes, then its group in 4; a new object every time."""
    MADE.append((number // GROUPS).to_bytes(32, "big") + (number % GROUPS).to_bytes(4, "big"))
    return MADE[-1]
'''

NUMBER = '''
def number(key):
    """Return the number of a key."""
    return int.from_bytes(key[:32], "big") * GROUPS + int.from_bytes(key[32:], "big")
'''

CONTEXT = '''
class ReqContext:
    """A request, as policies and filters see it."""

    kv_transfer_params = kv_hints = None

    def __init__(self, req_id, **said):
        self.req_id = req_id
        self.positions = {}
        self.state = {}
        vars(self).update(said)

    def set_offload_key_position(self, key, end_token):
        self.positions[key] = end_token

    def get_offload_key_position(self, key):
        return self.positions.get(key)

    def set_state(self, value):
        self.state[type(value)] = value

    def get_state(self, kind):
        return self.state.get(kind)
'''

CHECK = '''
def check(holds, says):
    """Demand what the clause demands."""
    if not holds:
        raise AssertionError(f"{CLAUSE}: {says}")
'''


SPEC = """\
SPEC = importlib.util.spec_from_file_location("cachelaw_subject", {})"""
"""The line that finds a subject's file."""

FOLDER = "the folder that cachelaw was run in"
"""What a file needs besides, if it finds its subject by a path from there."""


@dataclass(frozen=True, slots=True)
class Place:
    """How a file gets hold of a subject.

    Attributes:
        lines: import what is needed and bind it to `Subject`.
        needs: what it needs besides the subject and the standard library.
        arguments: how the constructor is called, after the capacity or the backing.
        by_keyword: whether it takes the capacity by name.
    """

    lines: tuple[str, ...]
    needs: tuple[str, ...]
    arguments: str
    by_keyword: bool


@dataclass(frozen=True, slots=True)
class Script:
    """A file in three parts, so that the middle can be tried without importing the subject.

    Attributes:
        header: comments and the imports of the standard library.
        imports: the import of the subject.
        body: the rest.
        test: the name of the test function.
    """

    header: str
    imports: str
    body: str
    test: str

    @property
    def text(self) -> str:
        """The whole file."""
        return f"{self.header}\n{self.imports}\n{self.body}"


def assemble(
    clause: Clause, name: str, edition: str, place: Place, body: Sequence[str], main: str = ""
) -> Script:
    """Put a file together.

    Args:
        clause: the clause that it shows broken.
        name: the subject, as the user wrote it.
        edition: whose host makes the calls.
        place: how the subject is found.
        body: blocks of the file, the test function last; what they need is imported. In them
            `{test}` stands for the name of the test function.
        main: what running the file does; empty runs the test.
    """
    wrap = textwrap.TextWrapper(98, break_on_hyphens=False, break_long_words=False)
    needs = "".join(f", {need}" for need in place.needs)
    said = [
        clause.name,
        *wrap.wrap(clause.statement),
        "",
        f"Subject: {' '.join(name.split())}, called as hosts of {edition} call it.",
        "This fails as long as the subject breaks the clause. Run it with pytest, or by itself.",
        f"It needs the subject{needs} and the standard library.",
    ]
    comments = "\n".join(f"# {line}".rstrip() for line in said)
    test = "test_" + re.sub(r"\W", "_", clause.name)
    main = main or '{test}()\nprint("the clause holds in this run")'
    tail = 'if __name__ == "__main__":\n' + textwrap.indent(main, "    ")
    text = "\n\n".join(block.strip("\n") + "\n" for block in (*body, tail)).replace("{test}", test)
    words = "\n".join([text, *place.lines])
    modules = [
        module
        for module in (
            "ctypes",
            "importlib.util",
            "json",
            "os",
            "resource",
            "subprocess",
            "sys",
            "unittest",
        )
        if re.search(rf"\b{re.escape(module)}\b\.", words)
    ]
    header = comments + "\n\n" + "".join(f"import {module}\n" for module in modules)
    imports = "\n".join(place.lines) + "\n"
    return Script(header, imports, f'CLAUSE = "{clause.name}"\n{text}', test)


def place_of(
    name: str, host: str | None, parameters: Mapping[str, Any], *, by_keyword: bool
) -> Place | None:
    """Return how a file finds a subject; None if it is no Python object.

    Args:
        name: as the user wrote it.
        host: the release that supplies vllm's modules, `vllm==X`, None if none does.
        parameters: what the constructor is given besides, by name.
        by_keyword: whether it takes the capacity by name.
    """
    if name.startswith("exec:"):
        return None
    arguments = "".join(f", {key}={value!r}" for key, value in parameters.items())
    place, _, attribute = name.rpartition(":")
    of_release = name.startswith("vllm") and "==" in name
    lines: list[str] = []
    needs: list[str] = []
    if of_release or host:
        version = (host or place).partition("==")[2]
        lines = ["from cachelaw.conformance import releases", ""]
        needs = [f"cachelaw to supply vllm {version}"]
        if of_release:
            which = "filter" if attribute == "filter" else f'policies["{attribute}"]'
            lines.append(f'Subject = releases.load("{version}").{which}')
            return Place(tuple(lines), tuple(needs), arguments, by_keyword)
        lines += [f'releases.load("{version}")  # before the subject imports vllm', ""]
    if place.endswith(".py"):
        lines += [
            SPEC.format(json.dumps(place)),
            "MODULE = sys.modules[SPEC.name] = importlib.util.module_from_spec(SPEC)",
            "SPEC.loader.exec_module(MODULE)",
            f"Subject = MODULE.{attribute}",
        ]
        if not Path(place).is_absolute():
            needs.append(FOLDER)
    else:
        first, dot, rest = attribute.partition(".")
        lines += [f"from {place} import {first}", "", f"Subject = {first}{dot}{rest}"]
    return Place(tuple(lines), tuple(needs), arguments, by_keyword)


def from_anywhere(text: str, name: str) -> str:
    """Return the text of a file that was run in the current folder so that it runs from any.

    Args:
        text: the file.
        name: the subject, as the user wrote it.
    """
    place, _, _ = name.rpartition(":")
    if not place.endswith(".py"):
        return text
    absolute = str(Path(place).absolute())
    text = text.replace(SPEC.format(json.dumps(place)), SPEC.format(json.dumps(absolute)))
    return text.replace(f", {FOLDER}", "")
