"""Layers: the ways in which a wrong line of the core can come to light, each on its own.

- *contracts*: CrossHair refutes a contract that speaks of the function.
- *explore*: `cachelaw explore` finds a state or a step that breaks a clause.
- *golden*: 8,000 random events do not end in the answers that are on record in `golden.json`.
- *unit*: a test of the file fails.

A layer runs in a process of its own, in which a copy of the reference comes first on the path; the
process makes sure that the copy is what it imported. What counts is a definite answer: that a layer
ran out of time, or that CrossHair could not confirm, does not.

From the root of the repository:

    python -m tests.assurance.layers golden [--write]   the answers on record against the present
    python -m tests.assurance.layers matrix [--write]   every fault against every layer
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from tests.assurance.faults import FAULTS, REFERENCE, ROOT, Fault

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"
MATRIX = HERE / "matrix.json"

LAYERS = ("contracts", "explore", "golden", "unit")

SECONDS = 60
"""How long a layer may take over one fault."""

CONTRACT_SECONDS = 10.0
"""How long CrossHair may take over one contract. A wrong line is refuted within a few."""


KNOWN_TEST = "CACHELAW_KNOWN_TEST"
"""In the environment: the one test of the file to run, if not all."""


class Answer(NamedTuple):
    """What a layer says.

    Attributes:
        caught: whether it noticed that something is wrong.
        detail: what gave it away: a clause, a contract, a target or a test.
    """

    caught: bool
    detail: str = ""


# --- The answers on record -----------------------------------------------------------------------
#
# The suite compares a policy with the reference, so it cannot notice that the reference changed.
# What it would have seen is on record instead: which calls were made, and who left.

PROGRAMS = tuple(
    (at, capacity, 1 + at % 2, keys * capacity)
    for keys in (3, 4)
    for at, capacity in enumerate((2, 3, 4, 5, 6, 2, 3, 4, 5, 7), 700)
)
"""Seed, capacity, groups and number of keys of each random program.

Few of them come by a ratio of ghosts that is no whole number; two thousand events in four programs
missed wrong steps of ARC's target, and with other seeds so did four thousand in twenty.
"""

EVENTS = 400
"""The length of each."""


def targets() -> tuple[str, ...]:
    """Return what has answers on record."""
    from cachelaw.reference.editions import EDITIONS

    policies = [f"{policy} {edition}" for policy in ("lru", "arc") for edition in EDITIONS]
    return (*policies, "filter", "textbook")


def digest(target: str) -> str:
    """Return a digest of the answers of a policy of an edition, of the filter or of the textbook.

    Args:
        target: one of `targets`.
    """
    lines = {"filter": _filter_lines, "textbook": _textbook_lines}.get(target)
    made = hashlib.sha256()
    for line in lines() if lines else _policy_lines(*target.split()):
        made.update(line.encode() + b"\n")
    return made.hexdigest()[:32]


def _policy_lines(policy: str, name: str) -> Iterator[str]:
    from cachelaw.conformance.generate import Program
    from cachelaw.conformance.instance import Codec, Instance
    from cachelaw.conformance.trace import Layout, describe
    from cachelaw.reference.editions import edition_named
    from cachelaw.reference.protocol import Setting, State, objection, perform, start

    edition = edition_named(name)
    module = importlib.import_module(edition.module)
    for seed, capacity, groups, keys in PROGRAMS:
        layout, rng = Layout(groups), random.Random(seed)
        setting = Setting(edition, capacity, layout.group_of, layout.position_of)
        build = getattr(module, policy.upper())
        # As hosts do, each call passes bytes of its own: equal keys that are not the same object.
        codec = Codec(layout.group_of, fresh=True)
        instance = Instance(build, setting, module.ChunkStatus, codec)
        numbers = {codec.encode(key): key for key in range(keys)}
        program = Program(rng, setting, keys)
        books: State[int] = start(setting)
        for _ in range(EVENTS):
            event = program.next(books)
            yield f"{describe(event)} {objection(setting, books, event)}"
            steps, answer = perform(setting, books, event), None
            try:
                while True:
                    call = steps.send(answer)
                    yield f"{call.method} {_said(call.arguments)}"
                    made, answer = instance.carry_out(call), None
                    if call.method == "evict":
                        if made is not None:
                            answer = tuple(numbers[key] for key, _ in made)
                            for key in answer:
                                del instance.chunks[key]
                        program.saw(answer)
                        yield str(answer)
            except StopIteration as end:
                books = end.value


def _said(argument: Any) -> str:
    """Write an argument so that equal ones look alike in every Python."""
    if isinstance(argument, frozenset):
        return f"{{{_said(tuple(sorted(argument)))}}}"
    if isinstance(argument, tuple):
        return f"({' '.join(map(_said, argument))})"
    return str(argument)


def _filter_lines() -> Iterator[str]:
    from cachelaw.reference import reuse_filter
    from cachelaw.reference.context import ReqContext

    class Backing:
        """A manager that repeats what it is given."""

        def lookup(self, keys: Any, *context: Any) -> Any:
            return keys

        def prepare_store(self, keys: Any, *context: Any) -> Any:
            return keys

    backing: Any = Backing()
    context = ReqContext("r")
    for seed, limit, groups, _ in PROGRAMS:
        threshold = 1 + groups
        rng = random.Random(seed)
        tracker: reuse_filter.Tracker[int] = ()
        many: Any = reuse_filter.FilterReusedOffloadingManagerV019(backing, threshold, limit)
        single: Any = reuse_filter.FilterReusedOffloadingManagerV020(backing, threshold, limit)
        for _ in range(EVENTS):
            keys = [rng.randrange(2 * limit) for _ in range(rng.randint(1, limit + 1))]
            if rng.random() < 0.5:
                tracker = reuse_filter.observe_all(tracker, keys, limit)
                many.lookup(keys)
                for key in keys:
                    single.lookup(key, context)
            passed = reuse_filter.admitted(tracker, keys, threshold)
            yield f"{keys} {passed} {many.prepare_store(keys)}"
            yield f"{single.prepare_store(keys, context)}"


def _textbook_lines() -> Iterator[str]:
    from cachelaw.reference import textbook_arc

    for seed, capacity, _, many in PROGRAMS:
        rng = random.Random(seed)
        state: textbook_arc.TextbookState[int] = textbook_arc.empty(capacity)
        mutable: textbook_arc.TextbookARC[int] = textbook_arc.TextbookARC(capacity)
        for _ in range(EVENTS):
            # The smaller of two numbers, so that some keys are asked for more often.
            key = min(rng.randrange(many), rng.randrange(many))
            state, hit = textbook_arc.request(state, key)
            yield f"{key} {hit} {state.t1} {state.t2} {mutable.request(key)}"


# --- The layers, in a process whose reference is faulty ------------------------------------------


def _contracts(fault: Fault, copy: Path) -> Answer:
    from tests.proof import gate

    for name in fault.contracts:
        verdict = gate.ask(gate.all_contracts()[name], CONTRACT_SECONDS)
        if verdict.answer == "refuted":
            return Answer(True, name)
    return Answer(False)


def _explore(fault: Fault, copy: Path) -> Answer:
    from cachelaw.conformance.cli import main as command

    file = copy / "explored.json"
    policy, _, edition = fault.target.partition(" ")
    arguments = ["explore", "--policy", policy, "--json", str(file)]
    try:
        status = command([*arguments, "--edition", edition] if edition else arguments)
    except Exception as error:
        return Answer(True, f"raises {type(error).__name__}")
    if status not in (0, 1):
        raise RuntimeError(f"cachelaw explore answered {status}")
    rows = json.loads(file.read_text(encoding="utf-8"))["explorations"]
    broken = [row["clause"] for row in rows if row["clause"]]
    return Answer(status == 1, broken[0] if broken else "")


def _golden(fault: Fault, copy: Path) -> Answer:
    try:
        now = digest(fault.target)
    except Exception as error:
        return Answer(True, f"raises {type(error).__name__}")
    return Answer(now != on_record()[fault.target], fault.target if now else "")


def _unit(fault: Fault, copy: Path) -> Answer:
    import pytest

    failed: list[str] = []

    class Listener:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid.rpartition("::")[2].partition("[")[0])

    tests = f"tests/reference/test_{fault.file}.py"
    known = os.environ.get(KNOWN_TEST, "")
    chosen = ["-k", known] if known else []
    status = pytest.main([tests, *chosen, "-x", "-q", "-p", "no:cacheprovider"], [Listener()])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest answered {status}")
    return Answer(bool(failed), failed[0] if failed else "")


RUNS: dict[str, Callable[[Fault, Path], Answer]] = {
    "contracts": _contracts,
    "explore": _explore,
    "golden": _golden,
    "unit": _unit,
}


def _inside(layer: str, name: str, copy: Path) -> None:
    """Run a layer in this process and print its answer as the last line.

    Raises:
        RuntimeError: this process did not import the faulty copy.
    """
    fault = fault_named(name)
    loaded = importlib.import_module(f"cachelaw.reference.{fault.file}")
    path = copy / "cachelaw" / "reference" / f"{fault.file}.py"
    if loaded.__file__ is None or not path.samefile(loaded.__file__):
        raise RuntimeError(f"{loaded.__file__} was imported, not the copy")
    source = path.read_text(encoding="utf-8")
    if source == (REFERENCE / path.name).read_text(encoding="utf-8") and name != UNTOUCHED.name:
        raise RuntimeError("the copy has no fault")
    answer = RUNS[layer](fault, copy)
    if not answer.caught:
        answer = Answer(False)
    print("\n" + json.dumps(answer), flush=True)


# --- From outside --------------------------------------------------------------------------------

UNTOUCHED = Fault(
    "untouched",
    "recency:forget",
    "return tuple(other for other in order if other != key)",
    "return tuple(other for other in order if other != key)",
    "nothing",
    "lru v0.24",
    ("forget_takes_out_the_key_alone",),
)
"""No fault: no layer may catch it."""


def fault_named(name: str) -> Fault:
    """Return the fault called `name`."""
    return next(fault for fault in (*FAULTS, UNTOUCHED) if fault.name == name)


@contextmanager
def faulty(fault: Fault) -> Iterator[Path]:
    """Make a copy of the reference with a fault, for as long as the context lasts.

    Yields:
        The folder to be put on the path.
    """
    with tempfile.TemporaryDirectory(prefix="cachelaw-fault-") as folder:
        copy = Path(folder)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REFERENCE, copy / "cachelaw" / "reference", ignore=ignored)
        fault.put_into(copy / "cachelaw" / "reference")
        yield copy


def ask(
    layer: str, fault: Fault, copy: Path, path: Path | None = None, known_test: str = ""
) -> Answer:
    """Ask a layer about a fault, in a process of its own.

    Args:
        layer: one of `LAYERS`.
        fault: the fault.
        copy: the copy that has it.
        path: what comes first on the path, if not the copy.
        known_test: the one test that `unit` runs, if not all of the file.

    Raises:
        RuntimeError: the layer gave no answer.
    """
    environment = {**os.environ, "PYTHONPATH": str(path or copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environment[KNOWN_TEST] = known_test
    command = [sys.executable, "-m", "tests.assurance.layers", "inside", layer, fault.name]
    try:
        done = subprocess.run(
            [*command, str(copy)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Answer(False)
    if done.returncode:
        raise RuntimeError(f"{layer}, {fault.name}:\n{done.stdout}\n{done.stderr}")
    return Answer(*json.loads(done.stdout.splitlines()[-1]))


def ask_all(
    fault: Fault, layers: tuple[str, ...] = LAYERS, known_test: str = ""
) -> dict[str, Answer]:
    """Ask layers about a fault, at the same time; see `ask`."""
    with faulty(fault) as copy, ThreadPoolExecutor(len(layers)) as pool:
        answers = pool.map(lambda layer: ask(layer, fault, copy, None, known_test), layers)
        return dict(zip(layers, answers, strict=True))


def on_record() -> dict[str, str]:
    """Return the digests on record."""
    read: dict[str, str] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return read


def matrix() -> dict[str, dict[str, str]]:
    """Return the matrix on record: from each fault to the layers that catch it, and by what."""
    read: dict[str, dict[str, str]] = json.loads(MATRIX.read_text(encoding="utf-8"))
    return read


def _command_golden(write: bool) -> int:
    now = {target: digest(target) for target in targets()}
    if write:
        GOLDEN.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        return 0
    changed = [target for target in now if now[target] != on_record().get(target)]
    print("\n".join(f"{target}: other answers than on record" for target in changed) or "as before")
    return 1 if changed else 0


def _command_matrix(write: bool, names: list[str]) -> int:
    found: dict[str, dict[str, str]] = {}
    print(f"{'':40}{''.join(f'{layer:11}' for layer in LAYERS)}")
    for fault in [fault_named(name) for name in names] or FAULTS:
        begun = perf_counter()
        answers = ask_all(fault)
        found[fault.name] = {
            layer: answer.detail for layer, answer in answers.items() if answer.caught
        }
        marks = "".join(f"{'x' if layer in found[fault.name] else '-':11}" for layer in LAYERS)
        print(f"{fault.name:40}{marks}{perf_counter() - begun:6.1f} s", flush=True)
        if write:
            every = {**(matrix() if MATRIX.exists() else {}), **found}
            listed = {one.name: every[one.name] for one in FAULTS if one.name in every}
            MATRIX.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    return 0 if all(len(layers) >= 2 for layers in found.values()) else 1


def main(arguments: list[str] | None = None) -> int:
    """Carry a command out; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.assurance.layers")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("golden").add_argument("--write", action="store_true")
    table = commands.add_parser("matrix")
    table.add_argument("--write", action="store_true")
    table.add_argument("names", nargs="*", metavar="FAULT")
    inside = commands.add_parser("inside", help="run by the others")
    inside.add_argument("layer", choices=LAYERS)
    inside.add_argument("fault")
    inside.add_argument("copy", type=Path)
    chosen = parser.parse_args(arguments)
    if chosen.command == "golden":
        return _command_golden(chosen.write)
    if chosen.command == "matrix":
        return _command_matrix(chosen.write, chosen.names)
    _inside(chosen.layer, chosen.fault, chosen.copy)
    return 0


if __name__ == "__main__":
    sys.exit(main())
