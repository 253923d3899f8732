"""Keep the Markdown pages true to the registry.

A clause stands twice: as data in `registry.py`, and for people in a page under `specs/`. So do the
lists in `editions.md` of what each edition changed. This module compares the two.

    python -m cachelaw.specs.pages            names every difference; exit status 1 if there is one
    python -m cachelaw.specs.pages --write    first brings the pages up to date

What is generated is a heading and the lines under it, down to the last list item before the next
heading. Everything else is prose, which `--write` never changes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from cachelaw.specs.clause import PAGES, Clause
from cachelaw.specs.registry import CLAUSES

EDITION_PAGE = "editions"
EDITIONS = ("v0.19", "v0.20", "v0.22", "v0.24", "v0.26", "v0.27", "v0.30", "v0.31", "v0.33")
"""The names of `cachelaw.reference.EDITIONS`, which this portion does not import."""

Blocks = dict[str, str]
"""The generated text of one page by its heading line, in order."""


# --- What should stand there ---------------------------------------------------------------------


def blocks_of(page: str, clauses: Iterable[Clause] | None = None) -> Blocks:
    """Return what is generated on `page`, heading by heading.

    Args:
        page: the name of a Markdown file under `specs/`, without the ending.
        clauses: the registry, if it is not the real one.
    """
    every = tuple(CLAUSES.values() if clauses is None else clauses)
    if page == EDITION_PAGE:
        texts = [_edition_block(edition, every) for edition in EDITIONS]
    else:
        texts = [clause.markdown() for clause in every if clause.page == page]
    return {text.partition("\n")[0]: text.rstrip("\n") for text in texts}


def _edition_block(edition: str, clauses: Sequence[Clause]) -> str:
    """Return the lists of what `edition` changed."""
    lists: list[tuple[str, Callable[[Clause], bool]]] = [
        ("New in", lambda clause: clause.since == edition),
        ("New again in", lambda clause: clause.again == edition),
        ("Modified in", lambda clause: clause.modified.startswith(f"{edition}:")),
        ("Until", lambda clause: clause.until == edition),
    ]
    lines = [f"### Clauses of {edition}"]
    for label, belongs in lists:
        items = []
        for page in PAGES:
            names = [f"`{c.name}`" for c in clauses if c.page == page and belongs(c)]
            if names:
                items.append(f"- [{page}]({page}.md): {', '.join(names)}")
        if items:
            lines += ["", f"{label} {edition}:", "", *items]
    if len(lines) == 1:
        lines += ["", "- No clause is new, modified or gone."]
    return "\n".join(lines)


# --- What stands there ---------------------------------------------------------------------------


def sections_of(text: str) -> list[str]:
    """Cut a page before each heading. Joined, the sections are the page again."""
    sections = [""]
    fenced = False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            sections.append("")
        sections[-1] += line
    return sections


def _heading(section: str) -> str:
    return section.partition("\n")[0]


def _is_generated(section: str) -> bool:
    return section.startswith(("### `", "### Clauses of "))


def _cut(section: str) -> tuple[str, str]:
    """Cut a generated section after its last list item: what is generated, and prose after it."""
    lines = section.splitlines(keepends=True)
    items = [number for number, line in enumerate(lines) if line.startswith("- ")]
    end = items[-1] + 1 if items else len(lines)
    return "".join(lines[:end]).rstrip("\n"), "".join(lines[end:]).strip("\n")


def page_differences(page: str, text: str, blocks: Blocks) -> list[str]:
    """Name each difference between a page and what should stand there, one line each.

    Args:
        page: the page's name, for the messages.
        text: the page.
        blocks: what `blocks_of` returns.
    """
    found = [section for section in sections_of(text) if _is_generated(section)]
    headings = [_heading(section) for section in found]
    said = [f"has no `{_name(heading)}`" for heading in blocks if heading not in headings]
    for number, (heading, section) in enumerate(zip(headings, found, strict=True)):
        generated, prose = _cut(section)
        if heading not in blocks:
            said.append(f"has `{_name(heading)}`, {_stray(heading)}")
        elif heading in headings[:number]:
            said.append(f"has `{_name(heading)}` twice")
        elif generated != blocks[heading]:
            said.append(f"`{_name(heading)}` is not as in the registry")
        elif prose:
            said.append(f"`{_name(heading)}` is followed by prose; give that a heading of its own")
    order = list(blocks)
    places = [order.index(heading) for heading in dict.fromkeys(headings) if heading in blocks]
    for before, after in pairwise(places):
        if after < before:
            said.append(
                f"`{_name(order[after])}` stands after `{_name(order[before])}`; "
                "move it by hand, the registry has it before"
            )
    return [f"specs/{page}.md {line}" for line in said]


def _name(heading: str) -> str:
    return heading.removeprefix("### ").strip("`")


def _stray(heading: str) -> str:
    clause = CLAUSES.get(_name(heading))
    return "which is in no registry" if clause is None else f"which belongs on {clause.page}.md"


def rewritten(text: str, blocks: Blocks) -> str:
    """Return a page with its generated parts brought up to date.

    What is missing goes after what the registry has before it, else to the end of the page; what
    is too much is taken out. The order of what is there stays as it is.
    """
    sections: list[str] = []
    done: set[str] = set()
    for section in sections_of(text):
        if not _is_generated(section):
            sections.append(section)
            continue
        heading, (_, prose) = _heading(section), _cut(section)
        if heading in blocks and heading not in done:
            done.add(heading)
            sections.append(_paragraphs(blocks[heading], prose))
        elif prose:
            sections.append(_paragraphs(prose))
    before = None
    for heading, block in blocks.items():
        if heading not in done:
            places = [n for n, section in enumerate(sections) if _heading(section) == before]
            place = places[0] + 1 if places else len(sections)
            sections[place - 1] = _paragraphs(sections[place - 1].rstrip("\n"))
            sections.insert(place, _paragraphs(block))
        before = heading
    return "".join(sections).rstrip("\n") + "\n"


def _paragraphs(*texts: str) -> str:
    return "".join(f"{text}\n\n" for text in texts if text)


# --- The command ---------------------------------------------------------------------------------


def differences(specs: Path) -> list[str]:
    """Name every difference between the pages in the folder `specs` and the registry."""
    said: list[str] = []
    for page in (*PAGES, EDITION_PAGE):
        path = specs / f"{page}.md"
        if path.is_file():
            said += page_differences(page, path.read_text(encoding="utf-8"), blocks_of(page))
        else:
            said.append(f"specs/{page}.md is not there")
    return said


def write(specs: Path) -> list[str]:
    """Bring the pages in the folder `specs` up to date; return the names of those that changed."""
    changed = []
    for page in (*PAGES, EDITION_PAGE):
        path = specs / f"{page}.md"
        if path.is_file():
            before = path.read_text(encoding="utf-8")
            after = rewritten(before, blocks_of(page))
            if after != before:
                path.write_text(after, encoding="utf-8")
                changed.append(page)
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cachelaw.specs.pages",
        description="Compare the clauses in specs/*.md with the registry.",
    )
    parser.add_argument("--write", action="store_true", help="bring the pages up to date first")
    parser.add_argument(
        "--root", type=Path, default=Path(), help="root of the repository (default: this folder)"
    )
    options = parser.parse_args(arguments)
    specs: Path = options.root / "specs"
    if not specs.is_dir():
        parser.error("there is no folder specs; name the root of the repository with --root")
    if options.write:
        for page in write(specs):
            print(f"specs/{page}.md rewritten")
    said = differences(specs)
    for line in said:
        print(line)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
