"""Put the suite on trial: print the kill matrix.

    python -m cachelaw.conformance.mutants                       every mutant
    python -m cachelaw.conformance.mutants --sample 50 --seed 3  some of the generated ones
    python -m cachelaw.conformance.mutants NAME ...              these alone

Exit status: 0 if every mutant is killed, equivalent or unspecified; 1 if one is unexplained; 2 for
arguments that make no sense.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cachelaw.conformance.mutants import matrix
from cachelaw.conformance.mutants.trial import try_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cachelaw.conformance.mutants",
        description="Try the suite on wrong policies and print what kills each.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="these mutants alone")
    parser.add_argument("--kind", choices=("zoo", "generated"), help="these mutants alone")
    parser.add_argument("--sample", type=int, metavar="N", help="N of the generated mutants")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a row for each mutant")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page for people")
    parser.add_argument("--ran", default="", help="what the page says of when and where")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")

    wrong, made = matrix.zoo_candidates(), matrix.generated_candidates()
    if options.sample is not None:
        made = matrix.sample(made, options.sample, options.seed)
    chosen = [] if options.kind == "generated" else wrong
    chosen += [] if options.kind == "zoo" else made
    if options.names:
        known = {candidate.name: candidate for candidate in (*wrong, *made)}
        for name in options.names:
            if name not in known:
                parser.error(f"no mutant is called {name!r}; run without names to see them")
        chosen = [known[name] for name in options.names]

    rows = []
    for trial in try_all(chosen, options.jobs):
        rows.append(matrix.row_of(trial))
        print(matrix.line(rows[-1]), flush=True)
    rows = matrix.in_order(rows)
    print()
    for text in matrix.summary(rows):
        print(text)
    if options.json is not None:
        data = [row.as_json() for row in rows]
        lines = ",\n".join(json.dumps(row, sort_keys=True) for row in data)
        options.json.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    if options.page is not None:
        options.page.write_text(matrix.markdown(rows, options.ran), encoding="utf-8")
    return 1 if any(row.verdict == "unexplained" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
