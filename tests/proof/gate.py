"""The gate: every contract must be confirmed by CrossHair, and anything less is a failure.

CrossHair has three answers. *Refuted*: these arguments break the contract. *Confirmed*: it went
along every path and none does. And *not confirmed*: its time was up before it was through, which
by default it does not mention at all. A gate that takes silence for success passes contracts that
nobody has checked, and passes them the more often the busier the machine is. So here the answer
has to be *confirmed*, in so many words.

So that a busy machine does not fail what a quiet one confirms, each contract has twenty times the
time that it took when measured, and one more try, alone in a process of its own. A counterexample
is final.

`python -m tests.proof.gate` from the root of the repository prints the table.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from crosshair.core_and_libs import analyze_function, run_checkables
from crosshair.options import AnalysisKind, AnalysisOptionSet
from crosshair.statespace import MessageType
from tests.proof import contracts

ROOT = Path(__file__).parents[2]

ALLOWANCE = 20
"""How many times the measured time a contract may take."""

LEAST_SECONDS = 0.5
"""What a contract counts as if it was measured faster: warming up takes about that."""

MEASURED = {
    "renew_puts_the_key_last": 0.27,
    "renew_leaves_one_copy": 0.17,
    "forget_takes_out_the_key_alone": 0.18,
    "trim_keeps_the_recent_end": 0.09,
    "eligible_are_the_idle_and_unprotected": 1.46,
    "chunk_is_ready_when_not_negative": 0.01,
    "load_start_pins": 0.13,
    "load_end_unpins": 0.05,
    "load_starts_and_ends_cancel": 0.34,
    "store_end_makes_idle_or_absent": 0.07,
    "transfers_need_the_right_status": 0.30,
    "list_insert_is_a_use": 0.11,
    "list_touch_moves_residents_tail_first": 0.62,
    "list_evict_takes_the_oldest": 6.93,
    "evictable_evict_takes_the_oldest": 3.70,
    "evictable_marks_give_and_take_a_place": 0.21,
    "evictable_touch_needs_a_place": 0.51,
    "by_position_sorts_if_all_is_known": 0.42,
    "by_position_needs_every_position": 0.09,
    "by_position_keeps_duplicates": 0.01,
    "observe_counts_and_renews": 0.14,
    "observe_drops_the_least_recent": 0.14,
    "observe_stays_within_its_limit": 0.54,
    "admission_needs_the_threshold": 0.25,
    "arc_evicts_from_t1_alone": 2.65,
    "arc_evicts_from_t2_alone": 1.15,
    "arc_before_v030_refuses_below_its_target": 0.10,
    "arc_chooses_the_list_by_its_target": 0.17,
    "arc_recounts_t1_for_each_victim": 0.21,
    "arc_trims_its_ghosts": 0.66,
    "arc_insert_enters_t1_and_takes_the_ghost": 0.37,
    "arc_remove_leaves_no_ghost": 0.32,
    "arc_touch_promotes_ready_chunks_of_t1": 0.07,
    "arc_finish_tells_stores_from_reuse": 0.10,
}
"""Seconds to confirmation of each contract, measured with CrossHair 0.0.113 on one core."""

REFUTING = {MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR}


class Verdict(NamedTuple):
    """What CrossHair made of a contract.

    Attributes:
        answer: `confirmed`, `refuted` or `not confirmed`.
        detail: CrossHair's own words, the counterexample if there is one.
        seconds: how long it took.
    """

    answer: str
    detail: str
    seconds: float


def all_contracts() -> dict[str, Callable[..., Any]]:
    """Return the contracts by name, in the order of their file."""
    return {
        name: function
        for name, function in vars(contracts).items()
        if inspect.isfunction(function)
        and function.__module__ == contracts.__name__
        and not name.startswith("_")
    }


def budget(name: str) -> float:
    """Return the seconds that a contract may take."""
    return ALLOWANCE * max(MEASURED[name], LEAST_SECONDS)


def ask(contract: Callable[..., Any], seconds: float) -> Verdict:
    """Ask CrossHair about one function, once, in this process.

    Args:
        contract: a function with one postcondition in its docstring.
        seconds: its time, all of which a single path may use up.
    """
    options = AnalysisOptionSet(
        analysis_kind=(AnalysisKind.PEP316,),
        per_condition_timeout=seconds,
        per_path_timeout=seconds,
        report_all=True,
    )
    begun = perf_counter()
    messages = list(run_checkables(analyze_function(contract, options)))
    took = perf_counter() - begun
    states = [message.state for message in messages]
    detail = "; ".join(message.message for message in messages) or "CrossHair found no contract"
    if states == [MessageType.CONFIRMED]:
        return Verdict("confirmed", detail, took)
    answer = "refuted" if REFUTING.intersection(states) else "not confirmed"
    return Verdict(answer, detail, took)


def judge(name: str) -> Verdict:
    """Ask about a contract, and once more if it was not confirmed."""
    verdict = ask(all_contracts()[name], budget(name))
    return retry(name) if verdict.answer == "not confirmed" else verdict


def retry(name: str) -> Verdict:
    """Ask about a contract in a process of its own, with nothing else in it."""
    command = [sys.executable, "-m", "tests.proof.gate", "--once", name]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return Verdict(**json.loads(shown))


def main(arguments: list[str] | None = None) -> int:
    """Judge the contracts named, or all; return 0 if every one is confirmed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof.gate", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="CONTRACT", help="contracts to judge")
    parser.add_argument("--once", metavar="CONTRACT", help="ask about one and answer in JSON")
    chosen = parser.parse_args(arguments)
    if chosen.once is not None:
        verdict = ask(all_contracts()[chosen.once], budget(chosen.once))
        print(json.dumps(verdict._asdict()))
        return 0
    answers = set()
    for name in chosen.names or all_contracts():
        verdict = judge(name)
        answers.add(verdict.answer)
        detail = "" if verdict.answer == "confirmed" else f"  {verdict.detail}"
        print(f"{name:44}{verdict.answer:14}{verdict.seconds:8.2f}{detail}", flush=True)
    return 0 if answers == {"confirmed"} else 1


if __name__ == "__main__":
    sys.exit(main())
