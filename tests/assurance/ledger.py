"""Write the ledger, `specs/assurance.md`: each clause with the evidence for it.

    python -m tests.assurance.ledger                  bring the record and the page up to date
    python -m tests.assurance.ledger --check          only say what is not; exit status 1 if any is
    python -m tests.assurance.ledger --again SECTION  run a section of the record again first

Counts of mutants, vectors, faults and tests are taken from the code and the files as they are;
everything else from the record in `evidence.json`. A clause without any evidence is an error, and
so is a record of a run that failed: the page can only say what was shown.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from proofs import THEOREMS, name_of
from tests.assurance import evidence, shortest
from tests.assurance.faults import FAULTS, ROOT
from tests.assurance.layers import matrix
from tests.assurance.record import record
from tests.conformance.explore import test_calls, test_programs
from tests.proof import gate, pairs, test_adaptation

from cachelaw.conformance.explore.invariants import invariants_of
from cachelaw.conformance.laws import LAWS
from cachelaw.conformance.mutants import zoo
from cachelaw.reference.cores import core_of
from cachelaw.reference.editions import edition_named
from cachelaw.specs.clause import PAGES
from cachelaw.specs.registry import CLAUSES

PAGE = ROOT / "specs" / "assurance.md"
VECTORS = ROOT / "specs" / "cachelaw" / "specs" / "vectors"

Cells = dict[str, str]
"""From a clause to what stands in its row; a clause that is not there has an empty cell."""


class LedgerError(Exception):
    """The record does not support what the page would say."""


class Item(NamedTuple):
    """A piece of evidence that several rows may name.

    Attributes:
        clauses: the clauses that it is evidence for.
        cells: what stands in its own table, after its number.
    """

    clauses: frozenset[str]
    cells: tuple[str, ...]


def numbered(letter: str, items: list[Item]) -> Cells:
    """Return the numbers of the items, by clause."""
    found: dict[str, list[str]] = {}
    for number, item in enumerate(items, 1):
        for clause in item.clauses:
            found.setdefault(clause, []).append(f"{letter}{number}")
    return {clause: " ".join(numbers) for clause, numbers in found.items()}


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def listed(letter: str, head: tuple[str, ...], items: list[Item]) -> str:
    """Return the table of numbered items."""
    rows = [(f"{letter}{number}", *item.cells) for number, item in enumerate(items, 1)]
    return table(("", *head), rows)


def named(clauses: Any) -> str:
    """Return clauses in the order of the registry, in code quotes."""
    return ", ".join(f"`{clause}`" for clause in CLAUSES if clause in clauses)


# --- Proofs and contracts ------------------------------------------------------------------------


def theorems(kept: dict[str, Any]) -> list[Item]:
    """Return the theorems that Z3 proved."""
    items = []
    for theorem in THEOREMS:
        found = kept["theorems"]["found"][name_of(theorem)]
        if not found["proved"] or found["refuted"] != found["variants"]:
            raise LedgerError(f"{name_of(theorem)} is not proved: {found}")
        claims = "; ".join(f"`{clause}`: {what}" for clause, what in theorem.PROVES.items())
        path = f"proofs/{name_of(theorem)}.py"
        refuted = f"{found['refuted']} of {found['variants']}"
        items.append(Item(frozenset(theorem.PROVES), (f"[`{path}`](../{path})", claims, refuted)))
    return items


def _paragraph(doc: str, first_word: str) -> str:
    """Return what a docstring says after a word, up to the next such word or an empty line."""
    found = re.search(rf"{first_word}: (.*?)(?=\n\n|\nClauses: |\Z)", doc, flags=re.S)
    return " ".join(found[1].split()) if found else ""


def contracts(kept: dict[str, Any]) -> list[Item]:
    """Return the contracts that CrossHair confirmed."""
    items = []
    for name, contract in gate.all_contracts().items():
        if kept["contracts"]["found"][name] != "confirmed":
            raise LedgerError(f"{name} is not confirmed")
        doc = inspect.getdoc(contract) or ""
        clauses = frozenset(re.findall(r"`([^`]+)`", _paragraph(doc, "Clauses")))
        if not clauses <= set(CLAUSES):
            raise LedgerError(f"{name} names what is no clause: {sorted(clauses - set(CLAUSES))}")
        claim = doc.partition("\n\n")[0].replace("\n", " ")
        items.append(Item(clauses, (f"`{name}`", claim, _paragraph(doc, "Bound").rstrip("."))))
    return items


def compared(kept: dict[str, Any]) -> Sequence[tuple[str, ...]]:
    """Return the pairs of functions that CrossHair found alike on all paths."""
    rows = []
    for pair in pairs.PAIRS:
        found = kept["pairs"]["found"][pair.name]
        if found["answer"] != "alike":
            raise LedgerError(f"{pair.name} is not shown to be like its counterpart: {found}")
        rows.append((pair.what, pair.bound, str(found["paths"])))
    return rows


STEPS_ENUMERATED = frozenset({"arc/step-is-ratio-of-ghosts"})


# --- The explorer --------------------------------------------------------------------------------


def explorations(kept: dict[str, Any]) -> list[Item]:
    """Return the explorations, those of editions with equal counts and questions together."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for row in kept["explorations"]["found"]:
        if row["extent"] != "closed":
            raise LedgerError(f"not closed: {row}")
        # What holds in one edition alone must not seem to hold in another of the same counts.
        asked = sorted(_explored(row, kept["noticed"]["found"]))
        alike.setdefault(json.dumps([{**row, "edition": ""}, asked]), []).append(row)
    items = []
    for rows in alike.values():
        row, scope = rows[0], rows[0]["scope"]
        names = [each["edition"] for each in rows]
        policy = f"{row['policy']} {', '.join(names)}".strip()
        bounds = f"c {scope['capacity']}, k {scope['keys']}"
        if row["policy"] in ("lru", "arc"):
            bounds += f", r {scope['requests']}, b {scope['batch']}, p {scope['pins']}"
            bounds += f", g {scope['groups']}" if scope["groups"] > 1 else ""
        cells = (
            policy,
            row["alphabet"],
            row["checks"],
            bounds,
            f"{row['states']:,}",
            f"{row['unreduced']:,}",
            f"{row['transitions']:,}",
            f"closed at {row['depth']}",
        )
        items.append(Item(_explored(row, kept["noticed"]["found"]), cells))
    return items


def _explored(row: dict[str, Any], noticed: dict[str, list[str]]) -> frozenset[str]:
    """Return the clauses that an exploration asked of every state or step."""
    if row["policy"] == "filter":
        return frozenset(noticed["filter"])
    if row["policy"] == "textbook":
        return frozenset()  # its rules are the paper's
    core = core_of(row["policy"], edition_named(row["edition"]))
    asked = set(invariants_of(core).values()) if row["checks"] != "class" else set()
    if row["checks"] == "steps":
        asked |= set(noticed[f"{row['policy']} {row['edition']}"])
    return frozenset(asked)


def larger() -> Sequence[tuple[str, ...]]:
    """Return the explorations that only `make deep` runs, whose counts its tests assert."""
    made = [
        *((case, "calls", counts, "closed") for case, counts in test_calls.DEEP.items()),
        *((case, "protocol", counts, "closed") for case, counts in test_programs.DEEP.items()),
        *((case, "protocol", counts, "to depth") for case, counts in test_programs.FAR.items()),
    ]
    rows = []
    for (profile, name, scope), alphabet, counts, extent in made:
        states, unreduced, transitions, depth = counts
        bounds = f"c {scope.capacity}, k {scope.keys}, r {scope.requests}, b {scope.batch}"
        bounds += f", p {scope.pins}" + (f", g {scope.groups}" if scope.groups > 1 else "")
        reached = f"closed at {depth}" if extent == "closed" else f"to depth {depth}"
        sizes = (f"{states:,}", f"{unreduced:,}", f"{transitions:,}")
        rows.append((f"{profile} {name}", alphabet, bounds, *sizes, reached))
    return rows


# --- Vectors, random steps, mutants, tests -------------------------------------------------------


def vectors() -> Cells:
    """Count the vectors of each clause, and the wrong policies that fail one of them."""
    cells = {}
    for path in sorted(VECTORS.rglob("*.json")):
        if "itf" in path.parts:
            continue
        for_clause = json.loads(path.read_text(encoding="utf-8"))
        wrong = {vector["wrong"]["policy"] for vector in for_clause}
        cells[for_clause[0]["clause"]] = f"{len(for_clause)} / {len(wrong)}"
    return cells


def certified(kept: dict[str, Any]) -> Cells:
    """Sum how often random programs and probes met each clause's condition on the reference."""
    met: Counter[str] = Counter()
    for name, found in kept["certified"]["found"].items():
        # What the reference breaks, it breaks because its edition's release does.
        known = {"evict/none-only-when-short", "cost/linear"}
        if not set(found["violated"]) <= known:
            raise LedgerError(f"{name} breaks {found['violated']}")
        met.update(found["met"])
    return {clause: f"{count:,}" for clause, count in met.items() if count}


def beside_releases(kept: dict[str, Any]) -> Cells:
    """Sum the steps beside releases, of the policies and editions that have each clause."""
    steps: Counter[str] = Counter()
    for name, seen in kept["releases"]["found"].items():
        policy = name.partition(":")[2]
        for clause in LAWS.values():
            one = clause.clause
            if one.profile == policy and one.holds_in(seen["edition"]):
                steps[one.name] += seen["steps"]
    return {clause: f"{count:,}" for clause, count in steps.items()}


def wrong_classes() -> Iterator[Any]:
    """Yield the wrong policies and filters of the zoo, and of zoos that lie beside tests."""
    modules = [importlib.import_module(f"{zoo.__name__}.{name}") for name in zoo.ALL]
    for path in sorted((ROOT / "tests" / "conformance").glob("*_zoo.py")):
        modules.append(importlib.import_module(f"tests.conformance.{path.stem}"))
    for module in modules:
        for made in zoo.classes_of(module).values():
            if zoo.is_wrong(made):
                yield made


def mutants() -> Cells:
    """Count the mutants that are rejected first for each clause, and those it also rejects.

    A clause without a law rejects nobody, whatever a mutant says that it breaks.
    """
    first: Counter[str] = Counter()
    also: Counter[str] = Counter()
    for made in wrong_classes():
        said = vars(made)
        first.update([said["breaks"]] if "breaks" in said else [])
        also.update(said.get("also", ()))
        also.update(said.get("breaks_one_of", ()))
    return {
        clause: f"{first[clause]}" + (f" + {also[clause]}" if also[clause] else "")
        for clause in {**first, **also}
        if clause in LAWS
    }


def faults() -> Cells:
    """Count the one-line faults of the core that break each clause; two layers catch each."""
    broken = Counter(fault.breaks for fault in FAULTS)
    for fault in FAULTS:
        if len(matrix()[fault.name]) < 2:
            raise LedgerError(f"fewer than two layers catch {fault.name}")
    return {clause: str(count) for clause, count in broken.items() if clause in CLAUSES}


def tests() -> dict[str, list[str]]:
    """Return the tests of the reference that name each clause in a decorator or docstring."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests" / "reference").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            said = " ".join(ast.unparse(each) for each in node.decorator_list)
            said += " " + (ast.get_docstring(node) or "")
            for clause in set(re.findall(r"[a-z0-9-]+/[a-z0-9-]+", said)) & set(CLAUSES):
                found.setdefault(clause, []).append(f"{path.name}::{node.name}")
    return found


# --- The page ------------------------------------------------------------------------------------

INTRO = """\
# What is shown of each clause, and how far

Written by `make ledger`; the tests fail while it is out of date. Each row is a clause, each column
a kind of evidence, and a cell says no more than its tool did:

- **for all**: a theorem of Z3 about every capacity and any number of keys. It is a theorem about an
  abstraction of the code; that the code makes the steps of the abstraction is tested on random
  runs, not proved. Some theorems prove a part of a clause; [the table](#proved-for-all) says which.
- **all paths**: a contract that CrossHair confirmed on every path, for the function that it names
  and within the bound that it names, such as lists of up to three keys. Beyond the bound it says
  nothing.
- **explored**: the model checker asked it of every state or step of the reference's core, at the
  scope of [that row](#explored), and its search was closed there. A rule counts only if it was seen
  to object to steps made wrong on purpose.
- **vectors**: golden vectors, which the reference passes, and the number of different wrong
  policies that fail them: one for each vector, some for several.
- **met**: how often the condition of the clause's law was met while the reference was certified,
  by probes and random programs together, without a violation.
- **beside releases**: policy calls in lockstep with vLLM's own releases whose edition has the
  clause. That its condition was met in each of these runs is asserted, not how often.
- **mutants**: wrong policies of the zoo that are rejected first for this clause, and after the plus
  those that are rejected for it too.
- **faults**: one-line faults put into the reference that break it; each is caught by two layers of
  the assurance or more.
- **tests**: tests of the reference that name the clause.

What none of this shows stands in [not-shown.md](not-shown.md).
"""


def page(kept: dict[str, Any]) -> str:
    """Return the page.

    Args:
        kept: the record.

    Raises:
        LedgerError: a clause has no evidence, or the record says that something failed.
    """
    proved, confirmed, explored = theorems(kept), contracts(kept), explorations(kept)
    of_tests = tests()
    columns: dict[str, Cells] = {
        "for all": numbered("T", proved),
        "all paths": numbered("C", confirmed),
        "explored": numbered("E", explored),
        "vectors": vectors(),
        "met": certified(kept),
        "beside releases": beside_releases(kept),
        "mutants": mutants(),
        "faults": faults(),
        "tests": {clause: str(len(names)) for clause, names in of_tests.items()},
    }
    enumerated = columns["all paths"]
    for clause in STEPS_ENUMERATED:
        enumerated[clause] = f"{enumerated.get(clause, '')} N1".strip()
    for name, bare in CLAUSES.items():
        if any(name in cells for cells in columns.values()):
            continue
        if bare.profile is None or not bare.no_law:
            raise LedgerError(f"no evidence for {name}")
        columns["for all"][name] = f"{NOTHING}: {bare.no_law}"
    strange = {name for cells in columns.values() for name in cells} - set(CLAUSES)
    if strange:
        raise LedgerError(f"evidence for what is no clause: {', '.join(sorted(strange))}")

    parts = [INTRO, "## Clauses\n"]
    for each in PAGES:
        rows = [
            (f"`{name}`", *(cells.get(name, "") for cells in columns.values()))
            for name, clause in CLAUSES.items()
            if clause.page == each
        ]
        parts += [f"### [{each}]({each}.md)\n", table(("clause", *columns), rows)]
    parts += _host_clauses(of_tests)
    parts += [
        "## Proved for all\n",
        _run_as(kept, "theorems"),
        "*Refuted* are variants that leave out what a theorem rests on; Z3 finds a counterexample "
        "to\neach, which shows that the proof could have failed.\n",
        listed("T", ("theorem", "proves", "refuted"), proved),
        "## Confirmed over all paths\n",
        _run_as(kept, "contracts"),
        listed("C", ("contract", "says", "bound"), confirmed),
        _enumerated(),
        "Counterparts of core functions that are fast, run beside them on every path:\n",
        _run_as(kept, "pairs"),
        table(("pair", "bound", "paths"), compared(kept)),
        "## Explored\n",
        _run_as(kept, "explorations"),
        EXPLORED,
        listed("E", EXPLORED_HEAD, explored),
        LARGER,
        table(("policy", "alphabet", *EXPLORED_HEAD[3:]), larger()),
        "## Random steps\n",
        _run_as(kept, "certified"),
        _random_steps(kept),
        "## Mutants and faults\n",
        _mutants(),
    ]
    return "\n".join(parts)


NOTHING = "**nothing**"
"""Stands in the row of a clause that has no law and nothing else either; a test allows none."""

EXPLORED_HEAD = (
    "policy",
    "alphabet",
    "asked",
    "scope",
    "states",
    "names told apart",
    "transitions",
    "extent",
)

EXPLORED = """\
Scope: c capacity, k keys, r requests at a time, b keys in a batch, p highest ref count, g KV cache
groups. *Calls* are all calls that a manager could make, in any order; *protocol* follows the
programs of a manager. Asked: invariants of every state everywhere; `steps`, rules of every step
too; `class`, the edition's class beside the core; `restated`, the paper's rules beside the
textbook's ARC. Tests assert every count. What ARC breaks up to v0.27, `evict/none-only-when-short`,
is not counted as explored there. Editions of a policy are compared by product as well, with the
shortest program that tells two apart: [editions.md](editions.md#shortest-programs).
"""

LARGER = """\
Larger scopes, whose counts only `make deep` asserts. *To depth d* means that no state further away
was visited: it says nothing about longer programs.
"""


def _run_as(kept: dict[str, Any], name: str) -> str:
    made = kept[name]
    return f"`{made['command']}`\n({made['date']}, {made['machine']}, {made['seconds']} s).\n"


def _host_clauses(of_tests: dict[str, list[str]]) -> list[str]:
    rows = []
    for name, clause in CLAUSES.items():
        if name in LAWS:
            continue
        checked = of_tests.get(name, [])
        if clause.profile is None and not checked:
            raise LedgerError(f"{name} binds the host, and no test of the reference names it")
        rows.append((f"`{name}`", "<br>".join(f"`{test}`" for test in checked)))
    return [
        "### Without a law\n",
        "No law judges these clauses of a subject; their pages say why. Tests under "
        "`tests/reference/`\ncheck that the reference, which stands for the host, keeps them:\n",
        table(("clause", "tests"), rows),
    ]


def _enumerated() -> str:
    most = test_adaptation.LARGEST
    return f"""\
N1: one step of ARC's target is the exact ratio rounded once, for all {most * (most + 1):,} pairs of
sizes of ghost lists of up to {most} keys: `tests/proof/test_adaptation.py`, asserted in every run.
"""


def _random_steps(kept: dict[str, Any]) -> str:
    subjects, seen = kept["certified"]["found"], kept["releases"]["found"]
    calls = sum(found["calls"] for found in subjects.values())
    steps, evictions = (sum(one[what] for one in seen.values()) for what in ("steps", "evictions"))
    broken = [found["violated"] for found in subjects.values() if found["violated"]]
    names = named({clause for violated in broken for clause in violated})
    rejected = f"""
{len(broken)} of them reproduce a fault of their releases and are rejected, for {names}.
What they were not rejected for counts.
"""
    return f"""\
{len(subjects)} classes of the reference, {calls:,} policy calls in lockstep.
{rejected if broken else ""}
{_run_as(kept, "releases")}
{len(seen)} policies of releases, {steps:,} policy calls and {evictions:,} victims, equal to the
reference's to the last.

Besides, Hypothesis writes programs for class and core side by side
(`tests/conformance/test_state_machines.py`): 40 a machine in every run, always the same; 3,000, and
others each time, with `HYPOTHESIS_PROFILE=deep`. They are not counted here.
"""


def _mutants() -> str:
    return f"""\
{len(list(wrong_classes()))} wrong policies and filters, each rejected for what it breaks:
`pytest tests/conformance/test_zoo.py tests/conformance/test_filters.py`.

{len(FAULTS)} one-line faults of the core, each caught by two layers at least:
`pytest tests/assurance/test_two_layers.py`. Which layers catch which is in
[`tests/assurance/matrix.json`](../tests/assurance/matrix.json).
"""


# --- The command ---------------------------------------------------------------------------------

UPDATE = "run `make ledger`"


def complaints(kept: dict[str, Any], text: str, editions: str) -> list[str]:
    """Say what is out of date, a line each.

    Args:
        kept: the record.
        text: the page as it stands.
        editions: the page of editions as it stands.
    """
    old = evidence.stale(kept)
    if old:
        about = "is about other things than there are"
        return [f"the record of {name} {about}; {UPDATE}" for name in old]
    return differing(kept, text, editions)


def differing(kept: dict[str, Any], text: str, editions: str) -> list[str]:
    """Say which pages are not what the record and the code say; see `complaints`."""
    try:
        wanted = page(kept)
    except LedgerError as error:
        return [str(error)]
    if text != wanted:
        return [f"specs/assurance.md is not what the record and the code say; {UPDATE}"]
    if editions != shortest.rewritten(editions, kept["differences"]["found"]):
        return [f"specs/editions.md does not show the shortest programs on record; {UPDATE}"]
    return []


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.assurance.ledger", description="Write specs/assurance.md."
    )
    parser.add_argument("--check", action="store_true", help="only say what is out of date")
    parser.add_argument(
        "--again",
        nargs="+",
        choices=evidence.SECTIONS,
        default=[],
        help="sections of the record to run again, though they are about what there is",
    )
    options = parser.parse_args(arguments)
    if options.check:
        there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        editions = shortest.PAGE.read_text(encoding="utf-8")
        said = complaints(record(), there, editions)
        for line in said:
            say(line)
        return 1 if said else 0
    old = evidence.stale(record())
    for name in evidence.SECTIONS:
        if name in old or name in options.again:
            say(f"{name}: {evidence.SECTIONS[name].command}")
            evidence.run(name)
    try:
        text = page(record())
    except LedgerError as error:
        say(f"no ledger: {error}")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    editions = shortest.PAGE.read_text(encoding="utf-8")
    editions = shortest.rewritten(editions, record()["differences"]["found"])
    shortest.PAGE.write_text(editions, encoding="utf-8")
    say(f"{PAGE.relative_to(ROOT)} says what was shown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
