"""The mutator changes one thing at a time, finds all that there is, and always the same."""

from __future__ import annotations

import ast

import pytest

from cachelaw.conformance.mutants.generated import FAMILY, REFERENCE
from cachelaw.conformance.mutants.mutate import mutations

SOURCE = '''
from dataclasses import dataclass, replace


@dataclass
class State:
    """A state."""

    size: int = 0


def step(state: State, keys: list[int], limit: int) -> State:
    """Take a step."""
    for key in reversed(list(keys)):
        if key >= limit and key not in state.t1:
            state = replace(state, t1=(*state.t1, key))
    return state
'''

FOUND = {
    "State-size/1/constant": ("0", "1"),
    "State-size/1/constant-2": ("0", "-1"),
    "step/3/dropped": (None, ""),
    "step/3/order": ("reversed(list(keys))", "list(keys)"),
    "step/3/call-dropped": ("list(keys)", "keys"),
    "step/4/dropped": (None, ""),
    "step/4/negated": (None, "not (key >= limit and key not in state.t1)"),
    "step/4/always": (None, "True"),
    "step/4/never": (None, "False"),
    "step/4/and-to-or": (None, "key >= limit or key not in state.t1"),
    "step/4/operand-dropped": (None, "key not in state.t1"),
    "step/4/operand-dropped-2": (None, "key >= limit"),
    "step/4/gte-to-gt": ("key >= limit", "key > limit"),
    "step/4/gte-to-lt": ("key >= limit", "key < limit"),
    "step/4/notin-to-in": ("key not in state.t1", "key in state.t1"),
    "step/4/wrong-list": ("state.t1", "state.t2"),
    "step/5/dropped": (None, ""),
    "step/5/call-dropped": (None, "state"),
    "step/5/forgotten-update": ("(*state.t1, key)", "state.t1"),
    "step/5/wrong-list": ("t1=(*state.t1, key)", "t2=(*state.t1, key)"),
    "step/5/order": ("(*state.t1, key)", "(key, *state.t1)"),
    "step/5/wrong-list-2": ("state.t1", "state.t2"),
    "step/6/answer-dropped": ("return state", "return"),
}


def test_every_mutation_of_a_small_source() -> None:
    found = {mutation.name: mutation for mutation in mutations(SOURCE)}
    assert list(found) == list(FOUND)
    for name, (before, after) in FOUND.items():
        assert found[name].after == after, name
        assert before is None or found[name].before == before, name


def test_a_mutation_changes_its_place_alone() -> None:
    original = ast.unparse(ast.parse(SOURCE))
    found = mutations(SOURCE)
    for mutation in found:
        changed = ast.unparse(mutation.tree())
        assert changed != original, mutation.name
        lines = zip(original.splitlines(), changed.splitlines(), strict=False)
        first = next(at for at, (one, other) in enumerate(lines) if one != other)
        rest = len(original.splitlines()) - first
        after = changed.splitlines()
        # What follows the changed line stands as it did, unless a whole statement went.
        if mutation.after and "dropped" not in mutation.operator:
            assert after[first + 1 :] == original.splitlines()[first + 1 :], mutation.name
        assert len(after) <= first + rest + 1
    # Taking a tree out leaves no trace.
    assert [m.name for m in found] == [m.name for m in mutations(SOURCE)]
    assert ast.unparse(found[0].tree()) == ast.unparse(mutations(SOURCE)[0].tree())


@pytest.mark.parametrize("file", FAMILY)
def test_mutations_of_the_reference_compile_and_differ(file: str) -> None:
    source = (REFERENCE / f"{file}.py").read_text(encoding="utf-8")
    found = mutations(source)
    names = [mutation.name for mutation in found]
    assert len(set(names)) == len(names)
    texts = {ast.unparse(ast.parse(source))}
    for mutation in found:
        tree = mutation.tree()
        compile(tree, file, "exec")
        texts.add(ast.unparse(tree))
    assert len(texts) == len(found) + 1


@pytest.mark.parametrize(
    "source",
    [
        'def f() -> int:\n    """Return 1 < 2."""\n    raise ValueError("1 < 2")\n',
        "def f(keys: dict[str, 1]) -> None: ...\n",
        "from a import b\n\nX = 1 < 2\n",
    ],
)
def test_what_no_answer_depends_on_is_left_alone(source: str) -> None:
    assert {mutation.operator for mutation in mutations(source)} <= {"dropped"}
