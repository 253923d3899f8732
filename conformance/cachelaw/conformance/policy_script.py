"""Scripts of policies: recorded calls, written down, and a check of what the clause demands.

Where an earlier eviction goes another way than it did when the calls were recorded, what follows
proves nothing, and the file says so by skipping itself: another policy is not judged by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from cachelaw.conformance.contract import RESIDENCY, Breach
from cachelaw.conformance.lockstep import DIVERGED
from cachelaw.conformance.processes import SEEDS
from cachelaw.conformance.recording import Context, Key, Keys, Status, Step
from cachelaw.conformance.script import CHECK, CONTEXT, KEY, NUMBER, Place
from cachelaw.reference.editions import Edition

LIVES = 20
"""Lives that are lived in each process: policies that roll dice may agree by accident."""

SAME_KEY = '''
KEPT = {}


def same(number):
    """Return a key, the same object every time."""
    return KEPT.setdefault(number, k(number))
'''

STATUS = '''
class {name}(ctypes.Structure):
    """What a manager knows of a chunk: ref count -1 while it is stored, 0 idle, else pinned."""

    _fields_ = (("ref_cnt", ctypes.c_int32), ("{slot}", ctypes.c_int64))

    def __init__(self, {slot}):
        super().__init__(-1, {slot})

    @property
    def is_ready(self):
        return self.ref_cnt >= 0
'''

NUMBERS = '''
def numbers(answer):
    """Return the numbers of an eviction's victims, None if it was refused."""
    return None if answer is None else [number(key) for key, _ in answer]
'''

WENT = '''
def went(answer, recorded):
    """Go on if an eviction went as it did when these calls were recorded."""
    if numbers(answer) != recorded:
        raise unittest.SkipTest(f"evicts {numbers(answer)}, not {recorded}: no run to compare")
'''

ELSEWHERE = '''
def elsewhere(hash_seed):
    """Return the answers of many lives in a new process."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, __file__, "--answers"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])
'''

RESIDENCY_CLAUSES = {
    *RESIDENCY.values(),
    "get/same-object",
    "get/absent-is-none",
    "evict/forgets-victims",
    "evict/keeps-others",
    "evict/none-changes-nothing",
}
"""Clauses that are checked by asking `get` for every key."""

RAISES = "call/valid-call-returns"
ARGUMENTS = "call/arguments-unchanged"
STATUSES = "chunk-status/manager-writes"


class Writer:
    """Writes the calls of one life, and keeps the books that its checks need.

    Args:
        edition: whose calls they are.
        main: the instance that the check is about; another one is called `other`.
        gets: also write calls of `get`, which make no difference to most policies.
    """

    def __init__(self, edition: Edition, main: int, *, gets: bool) -> None:
        self.lines: list[str] = []
        self._status, self._slot = status_names(edition)
        self._main = main
        self._gets = gets
        self._positions: dict[str, dict[int, int]] = {}
        self._resident: dict[int, None] = {}
        self._known: dict[int, None] = {}
        self._statuses: dict[int, tuple[int, int]] = {}

    def write(self, steps: Sequence[Step], *, guarded: bool = True) -> None:
        """Write steps.

        Args:
            steps: what happened before the step that counts.
            guarded: go on only if evictions go as they went.
        """
        for step in steps:
            self._begin(step)
            if step.method == "evict" and guarded:
                self._add(f"went({self._call(step)}, {step.answer})")
            elif step.method == "event":
                self._add(f"# {step.arguments[0]}")
            elif step.method == "set_ref_cnt":
                key, count = step.arguments
                self._add(f"{self._name(step, 'chunk')}[{key}].ref_cnt = {count}")
            elif step.method != "get" or self._gets:
                self._add(self._call(step))
            self._end(step)

    def write_answer(self, step: Step, form: str) -> None:
        """Write an eviction whose answer counts.

        Args:
            step: the eviction.
            form: what to do with it, such as `return numbers({})`.
        """
        self._begin(step)
        self._add(form.format(self._call(step)))

    def write_check(self, breach: Breach, last: Step) -> bool:
        """Write the step that breaks a clause, and the check of it; say whether there is one."""
        clause = breach.clause
        if clause in RESIDENCY_CLAUSES:
            self.write([last])
            self._check_residency()
            return True
        if clause == STATUSES and last.method != "evict":
            self.write([last])
        else:
            self._begin(last)
        if clause == STATUSES:
            if last.method == "evict":
                self._add(self._call(last))
            for key, (count, slot) in self._statuses.items():
                chunk = f"chunk[{key}]"
                self._add(
                    f"check(({chunk}.ref_cnt, {chunk}.{self._slot}) == ({count}, {slot}), "
                    f'"the status of {key} is as the manager left it")'
                )
            return True
        if clause == RAISES or last.method == "cachelaw_state":
            self._add("try:")
            self._add(f"    {self._call(last)}")
            self._add("except (Exception, SystemExit) as error:")
            self._add('    raise AssertionError(f"{CLAUSE}: it raised {error!r}") from error')
            return True
        if clause == ARGUMENTS:
            self._check_arguments(last)
            return True
        says = self._says_of_answer(breach, last)
        if says is None:
            return False
        self._add(f"answer = {self._call(last)}")
        self._add(f"check({says[0]}, {says[1]})")
        return True

    # --- checks ---

    def _check_residency(self) -> None:
        for key in self._known:
            if key in self._resident:
                says = f"{key} is resident, and get returns the object that was inserted"
                self._add(f'check(policy.get(k({key})) is chunk[{key}], "{says}")')
            else:
                self._add(f'check(policy.get(k({key})) is None, "{key} is absent")')

    def _check_arguments(self, last: Step) -> None:
        written: list[str] = []
        for argument in last.arguments:
            if isinstance(argument, Keys) and argument.kind in ("list", "set"):
                name = f"passed_{len(written) + 1}"
                self._add(f"{name} = {self._argument(argument)}")
                written.append(name)
            else:
                written.append(self._argument(argument))
        names = [name for name in written if name.startswith("passed_")]
        self._add(f"before = [passed.copy() for passed in ({', '.join(names)},)]")
        self._add(f"policy.{last.method}({', '.join(written)})")
        self._add(f'check([{", ".join(names)}] == before, "what is passed stays as it was")')

    def _says_of_answer(self, breach: Breach, last: Step) -> tuple[str, str] | None:
        """Return the condition on an eviction's answer, and what to say if it is not met."""
        if last.method != "evict":
            return None
        n, protected = last.arguments
        expected = breach.expected
        if breach.clause == DIVERGED:
            wanted = None if expected == "None" else json.loads(expected)
            return f"numbers(answer) == {wanted}", f'f"{wanted}, not {{numbers(answer)}}"'
        idle = [key for key in self._resident if self._statuses[key][0] == 0]
        kept = [item.number for item in protected.items]
        conditions = {
            "evict/list-of-pairs": "isinstance(answer, list) and "
            "all(isinstance(entry, tuple) and len(entry) == 2 for entry in answer)",
            "evict/exact-count": f"len(answer) == {n}",
            "evict/distinct": "len({key for key, _ in answer}) == len(answer)",
            "evict/resident-only": f"all(key in {_keys(self._resident)} for key, _ in answer)",
            "evict/idle-only": f"all(key in {_keys(idle)} for key, _ in answer)",
            "evict/protected-honoured": f"not any(key in {_keys(kept)} for key, _ in answer)",
            "evict/same-object": "all(status is chunk[number(key)] for key, status in answer)",
        }
        if breach.clause in conditions:
            # Whether it may refuse is another clause.
            return f"answer is None or {conditions[breach.clause]}", 'f"not {answer}"'
        if breach.clause == "evict/zero-is-empty":
            return "answer == []", 'f"an empty list, not {answer}"'
        if breach.clause == "evict/none-only-when-short":
            enough = sorted(set(idle) - set(kept))
            return "answer is not None", f'"{n} of {enough}, which are idle and unprotected"'
        return None

    # --- calls ---

    def _begin(self, step: Step) -> None:
        """Make the contexts that a call passes, and note the keys that it names."""
        for argument in step.arguments:
            if isinstance(argument, Context):
                self._make_context(step, argument)
            if step.instance == self._main:
                self._see(argument)
        if step.method == "insert":
            key, status = step.arguments[0].number, step.arguments[1]
            self._add(f"{self._name(step, 'chunk')}[{key}] = {self._status}({status.slot})")

    def _see(self, argument: Any) -> None:
        if isinstance(argument, Key):
            self._known[argument.number] = None
        elif isinstance(argument, Keys):
            for item in argument.items:
                self._see(item)

    def _end(self, step: Step) -> None:
        """Enter into the books what a call has done."""
        if step.instance != self._main:
            return
        if step.method == "insert":
            key = step.arguments[0].number
            self._resident[key] = None
            self._statuses[key] = (-1, step.arguments[1].slot)
        elif step.method == "set_ref_cnt":
            key, count = step.arguments
            self._statuses[key] = (count, self._statuses[key][1])
        elif step.method == "remove":
            self._resident.pop(step.arguments[0].number, None)
        elif step.method == "clear":
            self._resident.clear()
        elif step.method == "evict":
            for victim in step.answer or ():
                self._resident.pop(-1 if victim is None else victim, None)

    def _make_context(self, step: Step, context: Context) -> None:
        name = self._context_name(step, context)
        if name not in self._positions:
            said = "".join(f", {attribute}={value!r}" for attribute, value in context.said)
            self._add(f'{name} = ReqContext("{context.request}"{said})')
        known = self._positions.setdefault(name, {})
        learnt = {key: end for key, end in context.positions if known.get(key) != end}
        if learnt:
            written = ", ".join(f"k({key}): {end}" for key, end in learnt.items())
            self._add(f"{name}.positions.update({{{written}}})")
            known.update(learnt)

    def _call(self, step: Step) -> str:
        if step.method == "make":
            self._add(f"{self._name(step, 'chunk')} = {{}}")
            return f"{self._name(step, 'policy')} = make({step.arguments[0]})"
        arguments = [
            self._context_name(step, argument)
            if isinstance(argument, Context)
            else f"{self._name(step, 'chunk')}[{step.arguments[0].number}]"
            if isinstance(argument, Status)
            else self._argument(argument)
            for argument in step.arguments
        ]
        return f"{self._name(step, 'policy')}.{step.method}({', '.join(arguments)})"

    def _argument(self, argument: Any) -> str:
        if isinstance(argument, Key):
            return f"{'same' if argument.same else 'k'}({argument.number})"
        if isinstance(argument, Context):
            return re.sub(r"\W", "_", argument.request)
        if not isinstance(argument, Keys):
            return repr(argument)
        items = ", ".join(self._argument(item) for item in argument.items)
        match argument.kind:
            case "set":
                return f"{{{items}}}" if items else "set()"
            case "tuple":
                return f"({items},)" if items else "()"
            case "iter":
                return f"iter([{items}])"
        return f"[{items}]"

    def _context_name(self, step: Step, context: Context) -> str:
        return self._name(step, re.sub(r"\W", "_", context.request))

    def _name(self, step: Step, name: str) -> str:
        if step.instance == self._main:
            return name
        return "other" if name == "policy" else f"other_{name}"

    def _add(self, line: str) -> None:
        self.lines.append(line)


def _keys(numbers: Any) -> str:
    return "(" + "".join(f"k({number}), " for number in numbers).rstrip(" ") + ")"


def status_names(edition: Edition) -> tuple[str, str]:
    """Return what an edition calls the status object, and the slot in it."""
    return ("ChunkStatus", "chunk_id") if edition.says_chunk else ("BlockStatus", "block_id")


# --- Bodies --------------------------------------------------------------------------------------


def without_trailing_gets(steps: Sequence[Step]) -> list[Step]:
    """Leave out what the suite asked after the call that counts."""
    kept = list(steps)
    while kept and kept[-1].method in ("get", "event") and not kept[-1].raised:
        kept.pop()
    return kept


def checked_life(
    edition: Edition, steps: Sequence[Step], breach: Breach, *, gets: bool
) -> list[str] | None:
    """Return the lines of a life whose last call breaks a clause; None if there is no check."""
    if not gets or breach.clause not in RESIDENCY_CLAUSES:
        steps = without_trailing_gets(steps)
    if not steps:
        return None
    writer = Writer(edition, steps[-1].instance, gets=gets)
    writer.write(steps[:-1])
    return writer.lines if writer.write_check(breach, steps[-1]) else None


def answered_life(edition: Edition, steps: Sequence[Step], *, gets: bool) -> list[str] | None:
    """Return the lines of a life that return the answer to its last eviction."""
    at = max((i for i, step in enumerate(steps) if step.method == "evict"), default=None)
    if at is None:
        return None
    writer = Writer(edition, steps[at].instance, gets=gets)
    writer.write(steps[:at])
    writer.write_answer(steps[at], "return numbers({})")
    return writer.lines


def repeated_life(edition: Edition, steps: Sequence[Step], *, gets: bool) -> list[str]:
    """Return the lines of a life that return its answers, up to one that was not recorded."""
    writer = Writer(edition, 0, gets=gets)
    writer.lines.append("answers = []")
    recorded: list[Any] = []
    since = 0
    for at, step in enumerate(steps):
        if step.method != "evict":
            continue
        if recorded:
            writer.lines.append(f"if answers != {recorded}:")
            writer.lines.append("    return answers")
        writer.write(steps[since:at])
        writer.write_answer(step, "answers.append(numbers({}))")
        recorded.append(step.answer)
        since = at + 1
    writer.lines.append("return answers")
    return writer.lines


def function(name: str, doc: str, lines: Sequence[str]) -> str:
    """Write a function."""
    said = [f'"""{doc}"""'] if doc else []
    return f"def {name}():\n" + "".join(f"    {line}\n" for line in (*said, *lines))


def body_of(edition: Edition, groups: int, place: Place, functions: Sequence[str]) -> list[str]:
    """Return the blocks of a file: what its functions need, and they.

    Args:
        edition: whose calls they make.
        groups: the number of KV cache groups.
        place: how the subject is called.
        functions: the functions of the file, the test last.
    """
    text = "\n".join(functions)
    capacity = "cache_capacity=capacity" if place.by_keyword else "capacity"
    make = f"def make(capacity):\n    return Subject({capacity}{place.arguments})\n"
    name, slot = status_names(edition)
    blocks = [f"GROUPS = {groups}", KEY]
    if "same(" in text:
        blocks.append(SAME_KEY)
    if f"{name}(" in text:
        blocks.append(STATUS.format(name=name, slot=slot))
    if "ReqContext(" in text:
        blocks.append(CONTEXT)
    if "number(" in text or "numbers(" in text or "went(" in text:
        blocks.append(NUMBER)
    if "numbers(" in text or "went(" in text:
        blocks.append(NUMBERS)
    if "went(" in text:
        blocks.append(WENT)
    if "check(" in text:
        blocks.append(CHECK)
    if "elsewhere(" in text:
        blocks.append(ELSEWHERE)
    return [*blocks, make, *functions]


def process_functions(edition: Edition, steps: Sequence[Step], clause: str) -> list[str]:
    """Return the functions of a file that compares two processes."""
    first, second = SEEDS[clause]
    which = "another process" if first == second else "a process with another hash seed"
    comparing = [
        f'one, other = elsewhere("{first}"), elsewhere("{second}")',
        f'check(one == other, f"{{one}} in a process, {{other}} in {which}")',
    ]
    doc = "Live once on a new instance; return the answers to its evictions."
    lines = repeated_life(edition, steps, gets=False)
    return [function("life", doc, lines), function("{test}", "", comparing)]


PROCESS_MAIN = f"""\
if sys.argv[1:] == ["--answers"]:
    print(json.dumps([life() for _ in range({LIVES})]))
else:
    {{test}}()
    print("the clause holds in this run")"""
"""What running a file that compares processes does."""


def death_functions(edition: Edition, before: Sequence[Step], last: Sequence[Step]) -> list[str]:
    """Return the functions of a file whose calls bring down the process that makes them.

    Args:
        edition: whose calls they are.
        before: the calls that the subject lives through.
        last: those of the event that it does not.
    """
    writer = Writer(edition, 0, gets=True)
    writer.write(before)
    writer.write(last, guarded=False)
    watching = [
        "command = [sys.executable, __file__, LIVE]",
        "try:",
        f"    done = subprocess.run(command, stdout=subprocess.PIPE, timeout={PATIENCE})",
        "except subprocess.TimeoutExpired:",
        f'    raise AssertionError(f"{{CLAUSE}}: no answer for {PATIENCE} seconds") from None',
        'said = done.stdout.decode(errors="replace").splitlines()[-1:]',
        "if said == [ELSEWHERE]:",
        '    raise unittest.SkipTest("an eviction went another way: no run to compare")',
        'check(said == [ALIVE], f"the process ended with status {done.returncode}")',
    ]
    return [
        'LIVE, ALIVE, ELSEWHERE = "--live", "alive", "elsewhere"',
        function("life", "Make the calls, in a process that may come to its end.", writer.lines),
        function("{test}", "", watching),
    ]


PATIENCE = 10
"""Seconds after which a process hangs; the calls take milliseconds."""

DEATH_MAIN = """\
if sys.argv[1:] == [LIVE]:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0)){limit}
    try:
        life()
    except unittest.SkipTest:
        print(ELSEWHERE, flush=True)
    else:
        print(ALIVE, flush=True)
else:
    {{test}}()
    print("the clause holds in this run")"""
"""What running a file does whose calls bring down a process; `limit` says how much it may take."""

MEMORY_LIMIT = "\n    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))"
