"""Every fault of the list comes to light in at least two layers that know nothing of each other."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("crosshair", reason="crosshair-tool is not installed")

from tests.assurance.faults import FAULTS, REFERENCE, Fault
from tests.assurance.layers import (
    LAYERS,
    UNTOUCHED,
    Answer,
    ask,
    ask_all,
    digest,
    faulty,
    matrix,
    on_record,
    targets,
)

LARGE = ("lru v0.33", "arc v0.31", "arc v0.33")
"""To explore one of these takes longer than to run the tests of a file."""


def two_of(fault: Fault) -> tuple[str, ...]:
    """Return the two cheapest layers that are on record to catch a fault."""
    caught_by = matrix()[fault.name]
    dearest = ("unit", "explore") if fault.target in LARGE else ("explore", "unit")
    return tuple(layer for layer in ("golden", "contracts", *dearest) if layer in caught_by)[:2]


# --- The list ------------------------------------------------------------------------------------


def test_faults_have_names_of_their_own() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 20
    assert UNTOUCHED.name not in names


def test_faults_are_in_every_file_of_the_core() -> None:
    files = {"recency", "lru", "arc", "order", "reuse_filter", "textbook_arc", "protocol"}
    assert {fault.file for fault in FAULTS} == files


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_line_is_there(fault: Fault) -> None:
    source = (REFERENCE / f"{fault.file}.py").read_text(encoding="utf-8")
    fault.found_at(source)
    assert fault.wrong != fault.line
    assert fault.target in targets()


def test_a_line_that_is_not_there_is_noticed() -> None:
    fault = Fault("gone", "recency:trim", "return order", "return ()", "nothing", "lru v0.19")
    with pytest.raises(ValueError, match="gone: 0 lines of recency:trim"):
        fault.found_at((REFERENCE / "recency.py").read_text(encoding="utf-8"))


def test_the_working_tree_is_safe() -> None:
    with pytest.raises(ValueError, match="copies only"):
        FAULTS[0].put_into(REFERENCE)


# --- What is on record ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", targets())
def test_answers_are_those_on_record(target: str) -> None:
    """If a change of the generator is behind it: `python -m tests.assurance.layers golden`."""
    assert digest(target) == on_record()[target]


def test_nothing_else_is_on_record() -> None:
    assert tuple(on_record()) == targets()


def test_the_matrix_has_every_fault_in_two_layers() -> None:
    assert list(matrix()) == [fault.name for fault in FAULTS]
    for name, caught_by in matrix().items():
        assert set(caught_by) <= set(LAYERS), name
        assert len(caught_by) >= 2, name


def test_no_layer_is_idle() -> None:
    """Each layer catches a third of all faults and more."""
    for layer in LAYERS:
        assert 3 * sum(layer in caught_by for caught_by in matrix().values()) > len(FAULTS)


# --- The layers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_two_layers_catch_it(fault: Fault) -> None:
    layers = two_of(fault)
    answers = ask_all(fault, layers, known_test=matrix()[fault.name].get("unit", ""))
    assert [answer.caught for answer in answers.values()] == [True, True], answers


@pytest.mark.deep
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_all_layers_that_are_on_record_catch_it(fault: Fault) -> None:
    caught_by = {layer for layer, answer in ask_all(fault).items() if answer.caught}
    assert caught_by >= set(matrix()[fault.name])


@pytest.mark.parametrize("layer", LAYERS)
def test_no_layer_catches_an_untouched_copy(layer: str) -> None:
    with faulty(UNTOUCHED) as copy:
        assert ask(layer, UNTOUCHED, copy) == Answer(False)


def test_a_layer_makes_sure_that_it_has_the_copy() -> None:
    with faulty(UNTOUCHED) as copy, pytest.raises(RuntimeError, match="not the copy"):
        ask("golden", UNTOUCHED, copy, path=copy / "elsewhere")
    assert str(copy) not in sys.path
