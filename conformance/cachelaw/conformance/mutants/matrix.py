"""The kill matrix: every mutant, the first clause that kills it, and how many steps that takes.

A mutant is *killed* if the suite finds it out; a survivor is *equivalent* if its product with the
reference shows no difference, *unspecified* if what it changes is nothing that a clause with a law
speaks of, and *unexplained* otherwise.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from cachelaw.conformance.explore.transitions import known_faults
from cachelaw.conformance.mutants import generated, zoo
from cachelaw.conformance.mutants.equivalence import Equivalence
from cachelaw.conformance.mutants.trial import Candidate, Trial
from cachelaw.reference.cores import core_of

UNSPECIFIED = {
    "reuse_filter/_check/9/": "what an argument is that is no int: no clause speaks of it",
    "reuse_filter/_ReuseFilter-__init__/2/": "the defaults: `reuse-filter/defaults` has no law, "
    "since hosts give both arguments",
}
"""For the beginning of a survivor's name, why no law can find it out."""

VERDICTS = ("killed", "equivalent", "unspecified", "unexplained")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the matrix.

    Attributes:
        kind: `zoo` or `generated`.
        verdict: one of `VERDICTS`.
        trial: what came of it.
        change: what was changed, of a generated mutant; of one of the zoo, what it says of itself.
        reason: of a survivor, why; empty if there is no reason to give.
    """

    kind: str
    verdict: str
    trial: Trial
    change: str
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {
            "name": self.trial.name,
            "kind": self.kind,
            "verdict": self.verdict,
            "clause": self.trial.clause,
            "stage": self.trial.stage,
            "steps": self.trial.steps,
            "clauses": list(self.trial.clauses),
            "ended": self.trial.ended,
            "change": self.change,
            "reason": self.reason,
            "equal": None if self.trial.equal is None else asdict(self.trial.equal),
        }


def from_json(data: dict[str, Any]) -> Row:
    """Read a row back."""
    equal = data["equal"]
    trial = Trial(
        data["name"],
        data["clause"],
        data["stage"],
        data["steps"],
        tuple(data["clauses"]),
        data["ended"],
        None if equal is None else Equivalence(**equal),
    )
    return Row(data["kind"], data["verdict"], trial, data["change"], data["reason"])


def read(path: Path) -> list[Row]:
    """Return the rows of a file that the command wrote."""
    return [from_json(data) for data in json.loads(path.read_text(encoding="utf-8"))]


# --- What is tried -------------------------------------------------------------------------------


def zoo_candidates() -> list[Candidate]:
    """Return the wrong policies and filters of the zoo."""
    wrong = zoo.mutants(zoo.ALL)
    return [Candidate(name, zoo.subject_name(made)) for name, made in wrong.items()]


def generated_candidates() -> list[Candidate]:
    """Return the mutants of the reference, in the order of its sources."""
    return [
        Candidate(name, mutant.subject, _excused(mutant))
        for name, mutant in generated.mutants().items()
    ]


def sample(candidates: Sequence[Candidate], size: int, seed: int) -> list[Candidate]:
    """Return some of the candidates, in their order."""
    chosen = set(random.Random(seed).sample(range(len(candidates)), min(size, len(candidates))))
    return [candidate for at, candidate in enumerate(candidates) if at in chosen]


def _excused(mutant: generated.Mutant) -> frozenset[str]:
    policy = mutant.target.partition(" ")[0].lower()
    return frozenset() if policy == "filter" else known_faults(core_of(policy, mutant.edition))


# --- What came of it -----------------------------------------------------------------------------


def row_of(trial: Trial) -> Row:
    """Return the line of a trial."""
    mutant = generated.mutants().get(trial.name)
    if mutant is not None:
        change = f"{mutant.mutation.before} -> {mutant.mutation.after or 'nothing'}"
        kind = "generated"
    else:
        made = zoo.mutants(zoo.ALL).get(trial.name)
        change, kind = str(getattr(made, "__doc__", "")), "zoo"
    change = " ".join(change.split())
    if trial.killed:
        return Row(kind, "killed", trial, change)
    if trial.equal is not None:
        said = f"{trial.equal.how}: {trial.equal.scope}; closed"
        return Row(kind, "equivalent", trial, change, said)
    for beginning, reason in UNSPECIFIED.items():
        if trial.name.startswith(beginning):
            return Row(kind, "unspecified", trial, change, reason)
    return Row(kind, "unexplained", trial, change, trial.ended)


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Return rows in the order of the zoo and then of the sources."""
    names = [candidate.name for candidate in (*zoo_candidates(), *generated_candidates())]
    place = {name: at for at, name in enumerate(names)}
    return sorted(rows, key=lambda row: place.get(row.trial.name, len(place)))


# --- What people see -----------------------------------------------------------------------------


def line(row: Row) -> str:
    """Return a row as a line of text."""
    trial = row.trial
    if row.verdict != "killed":
        return f"{row.verdict:<12} {trial.name}  {row.change}  ({row.reason})"
    by = trial.clause or trial.ended
    return f"killed by {by} after {trial.steps} steps ({trial.stage or 'at once'})  {trial.name}"


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what the rows come to, a line each."""
    for kind in ("zoo", "generated"):
        of_kind = [row for row in rows if row.kind == kind]
        if not of_kind:
            continue
        counts = Counter(row.verdict for row in of_kind)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        yield f"{kind}: {len(of_kind)} mutants: {said}"
        steps = [row.trial.steps for row in of_kind if row.trial.clause is not None]
        if steps:
            yield f"{kind}: steps to kill: median {median(steps):g}, most {max(steps)}"
        stages = Counter(row.trial.stage for row in of_kind if row.trial.clause is not None)
        yield f"{kind}: killed by " + ", ".join(f"{n} {stage}" for stage, n in stages.items())


def markdown(rows: Sequence[Row], heading: str) -> str:
    """Return the page that tells of the matrix.

    Args:
        rows: all rows, in order.
        heading: what was run, with date and machine.
    """
    lines = [PREFACE.strip(), "", "## What came of it", "", heading, ""]
    lines += ["| mutants | all | killed | equivalent | unspecified | unexplained | median steps |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for kind in ("zoo", "generated"):
        of_kind = [row for row in rows if row.kind == kind]
        counts = Counter(row.verdict for row in of_kind)
        steps = [row.trial.steps for row in of_kind if row.trial.clause is not None]
        cells = [str(counts[verdict]) for verdict in VERDICTS]
        middle = f"{median(steps):g}" if steps else ""
        lines.append(f"| {kind} | {len(of_kind)} | {' | '.join(cells)} | {middle} |")
    lines += ["", *_by_stage(rows), "", *_by_clause(rows), "", *_survivors(rows)]
    return "\n".join(lines) + "\n"


def _by_stage(rows: Sequence[Row]) -> Iterator[str]:
    yield "| killed by | zoo | generated |"
    yield "|---|---|---|"
    counts = Counter(
        (row.trial.stage if row.trial.clause else row.trial.ended, row.kind)
        for row in rows
        if row.verdict == "killed"
    )
    for stage in dict.fromkeys(stage for stage, _ in counts):
        yield f"| {stage} | {counts[stage, 'zoo']} | {counts[stage, 'generated']} |"


def _by_clause(rows: Sequence[Row]) -> Iterator[str]:
    yield "## By clause"
    yield ""
    yield "How many mutants each clause is the first to kill, and how many steps that takes."
    yield ""
    yield "| clause | zoo | generated | median steps |"
    yield "|---|---|---|---|"
    first: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.trial.clause is not None:
            first[row.trial.clause].append(row)
    for clause, those in sorted(first.items()):
        counts = Counter(row.kind for row in those)
        steps = median(row.trial.steps for row in those)
        yield f"| `{clause}` | {counts['zoo']} | {counts['generated']} | {steps:g} |"


def _survivors(rows: Sequence[Row]) -> Iterator[str]:
    yield "## Survivors"
    for verdict in VERDICTS[1:]:
        those = [row for row in rows if row.verdict == verdict]
        yield ""
        yield f"### {verdict.capitalize()}"
        yield ""
        if not those:
            yield "None."
            continue
        yield "| mutant | change | why |"
        yield "|---|---|---|"
        for row in those:
            change = row.change.replace("|", "\\|")
            reason = row.reason
            if row.trial.equal is not None:
                reason += f", {row.trial.equal.states:,} states"
            yield f"| `{row.trial.name}` | `{change}` | {reason} |"


PREFACE = """
# Mutants

The suite says that a policy conforms. This page says how far to trust it: wrong policies by the
hundred, and whether the suite finds each of them out.

- The *zoo* (`cachelaw.conformance.mutants.zoo`) is wrong on purpose, one short class each. Each
  says which clause it breaks, and the tests see that this clause is the first to be reported.
- The *generated* mutants are all first-order mutations of the reference's policies and of its
  filter: one operator, comparison, constant, condition, order, list, off-by-one, update or
  statement each (`mutate.py`). None is left out because it is hard to kill.

A mutant is tried by the directed probes, then by the budgets `quick` and `standard`, until a
clause is found broken. *Steps* are the events performed in that stage until then. A generated one
that survives `quick` is searched for a difference from the reference: both under every call in
any order, until no pair of states is new (*calls*); if they differ there, under all that a
manager would do (*protocol*); what has no states is compared in each step. One that shows no
difference is *equivalent*, at the scope named, and not tried further. *Unspecified* means that it
differs in what no clause with a law speaks of. A mutant of an edition that breaks a clause
itself, as ARC before v0.30 does, counts as killed only by another.

`make mutants` runs all of it again and writes this page and `tests/mutants/matrix.json`, which
has a row for each mutant. `cachelaw certify` takes each by its name, such as
`cachelaw.conformance.mutants.generated:arc/evict/31/gte-to-gt/arc-v0_31`.
"""
