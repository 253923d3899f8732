"""The gate for pairs: CrossHair must find no difference, and must have followed every path.

`crosshair diffbehavior` runs two functions on the same symbolic arguments. That it found no
difference says nothing by itself: its time may have been up. So here it has to have *exhausted* all
paths, with either function first. What differs is a failure, and what is not exhausted too.

`python -m tests.proof.differences` from the root of the repository prints the table.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

from crosshair.diff_behavior import ExceptionEquivalenceType, diff_behavior_with_signature
from crosshair.options import DEFAULT_OPTIONS, AnalysisOptions, AnalysisOptionSet
from tests.proof.gate import ALLOWANCE, LEAST_SECONDS
from tests.proof.pairs import PAIRS, Pair


class Compared(NamedTuple):
    """What CrossHair made of two functions.

    Attributes:
        answer: `alike`, `different` or `not exhausted`.
        detail: arguments for which they differ, with both results.
        paths: how many paths it followed, of both orders together.
        seconds: how long it took.
    """

    answer: str
    detail: str
    paths: int
    seconds: float


def compare(one: Callable[..., Any], other: Callable[..., Any], seconds: float) -> Compared:
    """Run two functions side by side on every path of their arguments.

    Args:
        one: a function of numbers.
        other: another with the same parameters.
        seconds: the time for each order of the two.
    """
    begun = perf_counter()
    exhausted, paths = True, 0
    for first, second in ((one, other), (other, one)):
        options = _options(seconds)
        differences = list(
            diff_behavior_with_signature(
                first,
                second,
                inspect.signature(first, eval_str=True),
                options,
                ExceptionEquivalenceType.TYPE_AND_MESSAGE,
            )
        )
        assert options.stats is not None
        paths += options.stats["num_paths"]
        exhausted = exhausted and options.stats["exhaustion"] > 0
        if differences:
            found = differences[0]
            given = ", ".join(f"{name}={value}" for name, value in found.args.items())
            said = f"({given}): {first.__name__} {found.result1.describe(set())}, "
            said += f"{second.__name__} {found.result2.describe(set())}"
            return Compared("different", said, paths, perf_counter() - begun)
    answer = "alike" if exhausted else "not exhausted"
    return Compared(answer, "", paths, perf_counter() - begun)


def _options(seconds: float) -> AnalysisOptions:
    options: AnalysisOptions = DEFAULT_OPTIONS.overlay(
        AnalysisOptionSet(
            per_condition_timeout=seconds,
            per_path_timeout=seconds,
            max_uninteresting_iterations=sys.maxsize,
        )
    )
    options.stats = Counter()
    return options


def judge(pair: Pair) -> Compared:
    """Compare the two functions of a pair, within twenty times the time that it took once."""
    return compare(pair.core, pair.counterpart, ALLOWANCE * max(pair.seconds, LEAST_SECONDS))


def main(arguments: list[str] | None = None) -> int:
    """Judge every pair; return 0 if all are alike on all paths, else 1."""
    argparse.ArgumentParser(
        prog="python -m tests.proof.differences", description=main.__doc__
    ).parse_args(arguments)
    answers = set()
    for pair in PAIRS:
        if not pair.is_there:
            print(f"{pair.name:24}not asked: {pair.needs} is not installed")
            continue
        found = judge(pair)
        answers.add(found.answer)
        print(
            f"{pair.name:24}{found.answer:16}{found.paths:6} paths{found.seconds:8.2f} s  "
            f"{found.detail}",
            flush=True,
        )
    return 0 if answers == {"alike"} else 1


if __name__ == "__main__":
    sys.exit(main())
