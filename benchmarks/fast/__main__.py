"""Measure the fast path, print what was found, and with --write record it.

python -m benchmarks.fast [--quick] [--write] [--parts policies,manager,lanes,curves,cuda]
                          [--resident 10k,100k,1M] [--rounds N] [--cpu N]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from pathlib import Path

from benchmarks.fast import lanes, policies
from benchmarks.fast.engines import judged
from benchmarks.fast.report import Findings, markdown

RECORD = Path(__file__).resolve().parents[2] / "fast" / "BENCHMARKS.md"
NOTES = "## Notes"
PARTS = ("policies", "manager", "lanes", "curves", "cuda")
LANE_SUBJECTS = ("cachelaw.fast.lane_policy:LaneLRU", "cachelaw.fast.lane_policy:LaneARC")


def main() -> int:
    """Run the command line; return the exit status."""
    options = parser().parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        print(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
        return 2
    allowed = os.sched_getaffinity(0)
    if options.cpu is None:
        options.cpu = max(allowed)
    if options.cpu not in allowed:
        print(f"this process may not use CPU {options.cpu}; it may use {sorted(allowed)}")
        return 2
    text = markdown(run(options, allowed), command(options), options.rounds)
    print(text)
    if options.write:
        notes = ""
        if RECORD.is_file():
            _, mark, rest = RECORD.read_text(encoding="utf-8").partition(NOTES)
            notes = f"\n{mark}{rest}" if mark else ""
        RECORD.write_text(text + notes, encoding="utf-8")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.fast", description=__doc__)
    made.add_argument("--quick", action="store_true", help="few sizes, releases and rounds")
    made.add_argument("--write", action="store_true", help="record the findings")
    made.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    made.add_argument("--resident", type=_sizes, help="chunks in the cache: 10k,100k,1M")
    made.add_argument("--rounds", type=_count, help="default: 7, with --quick 3")
    made.add_argument("--cpu", type=int, help="the CPU to keep to; default: the last one")
    made.add_argument("--no-verdicts", action="store_true", help="certify nothing")
    return made


def _count(text: str) -> int:
    """Return a number of 1 or more, which may end in k or M."""
    digits, unit = text, 1
    if text.endswith(("k", "M")):
        digits, unit = text[:-1], 1_000 if text.endswith("k") else 1_000_000
    if not digits.isdecimal() or int(digits) == 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of 1 or more, such as 7, 10k or 1M"
        )
    return int(digits) * unit


def _sizes(text: str) -> list[int]:
    return [_count(one) for one in text.split(",")]


def command(options: argparse.Namespace) -> str:
    """Return the command that measures the same."""
    if options.parts == list(PARTS) and options.resident is None:
        return "make bench-quick" if options.quick else "make bench"
    return "python -m benchmarks.fast " + " ".join(
        argument for argument in sys.argv[1:] if argument != "--write"
    )


def run(options: argparse.Namespace, allowed: set[int]) -> Findings:
    """Measure what was asked for."""
    quick = options.quick
    options.rounds = rounds = options.rounds or (3 if quick else 7)
    sizes = options.resident or ([10_000] if quick else [10_000, 100_000, 1_000_000])
    releases = policies.RELEASES[1::2] if quick else policies.RELEASES
    shapes = policies.QUICK if quick else policies.SHAPES
    findings = Findings()
    if not options.no_verdicts:
        subjects = []
        if {"policies", "manager"} & set(options.parts):
            subjects += [policies.subject_of(policy) for policy in ("lru", "arc")]
            subjects += [
                f"vllm=={release}:{policy}" for release in releases for policy in ("lru", "arc")
            ]
        if {"lanes", "cuda"} & set(options.parts):
            subjects += LANE_SUBJECTS
        for subject in subjects:
            say(f"certifying {subject}")
            findings.subjects[subject] = judged(subject)
    if "policies" in options.parts:
        for policy in ("lru", "arc"):
            for resident in sizes:
                findings.tables.append(
                    policies.measure_policy(
                        policy,
                        resident,
                        cpu=options.cpu,
                        rounds=rounds,
                        releases=releases,
                        shapes=shapes,
                        say=say,
                    )
                )
    if "manager" in options.parts:
        cases = (
            [("lru", 10_000, 512)]
            if quick
            else [
                (policy, resident, n)
                for policy in ("lru", "arc")
                for resident, n in ((100_000, 512), (100_000, 4_096), (1_000_000, 4_096))
            ]
        )
        for policy, resident, n in cases:
            findings.managers[policy, resident, n] = policies.measure_manager(
                policy, resident, n, cpu=options.cpu, rounds=rounds, say=say
            )
    import torch

    torch.set_num_threads(1)
    os.sched_setaffinity(0, {options.cpu})
    gc.collect()
    gc.disable()
    if "lanes" in options.parts:
        findings.lanes = lanes.measure_lanes(rounds, say)
        findings.requests = lanes.measure_requests(rounds, say)
    if "curves" in options.parts:
        for references in (1_000_000,) if quick else (1_000_000, 10_000_000):
            findings.curves[references] = lanes.measure_curve(
                references, references // 10, rounds, say
            )
    gc.enable()
    os.sched_setaffinity(0, allowed)
    if "cuda" in options.parts:
        findings.cuda = lanes.measure_cuda(rounds, say)
    return findings


def say(line: str) -> None:
    """Tell on stderr what is being done."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
