"""The registry of clauses, the Markdown pages and the code speak of the same clauses."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cachelaw.conformance.laws import LAWS
from cachelaw.reference import EDITIONS, policy
from cachelaw.specs import clause, pages
from cachelaw.specs.registry import CLAUSES

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"
MARKDOWN = sorted(SPECS.glob("*.md"))
EDITION_NAMES = [edition.name for edition in EDITIONS]

NAME = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
TOPICS = sorted({name.partition("/")[0] for name in CLAUSES})


# --- The registry by itself ---


def test_names() -> None:
    for name in CLAUSES:
        assert NAME.fullmatch(name), name


def test_names_are_unique() -> None:
    # A second clause of the same name would have displaced the first in the mapping.
    text = Path(inspect.getfile(sys.modules["cachelaw.specs.registry"])).read_text()
    written = Counter(re.findall(r'^ +name="([^"]+)"', text, re.MULTILINE))
    assert written == Counter(CLAUSES.keys())


def test_clauses_stand_page_by_page() -> None:
    of_pages = [one.page for one in CLAUSES.values()]
    assert set(of_pages) == set(clause.PAGES)
    assert of_pages == sorted(of_pages, key=clause.PAGES.index)


def test_editions() -> None:
    assert list(pages.EDITIONS) == EDITION_NAMES
    for one in CLAUSES.values():
        assert one.since in EDITION_NAMES, one.name
        assert one.until in (None, *EDITION_NAMES), one.name
        assert one.again in (None, *EDITION_NAMES), one.name
        if one.modified:
            edition, said, _ = one.modified.partition(": ")
            assert said and edition in EDITION_NAMES, one.name
            assert one.holds_in(edition), one.name
        if one.until:
            assert EDITION_NAMES.index(one.since) <= EDITION_NAMES.index(one.until), one.name
        if one.again:
            assert one.until, one.name
            gap = EDITION_NAMES.index(one.again) - EDITION_NAMES.index(one.until)
            assert gap > 1, one.name


def test_profiles() -> None:
    for one in CLAUSES.values():
        assert one.profile in (None, *clause.PROFILES), one.name
        # What binds the host, no policy can break.
        assert one.profile is not None or one.no_law, one.name


def test_every_clause_has_a_law_or_says_why_not() -> None:
    assert set(LAWS) == {name for name, one in CLAUSES.items() if not one.no_law}


# --- The pages ---


def test_pages_agree_with_the_registry() -> None:
    assert pages.differences(SPECS) == []


@pytest.mark.parametrize("page", clause.PAGES)
def test_blocks_in_order(page: str) -> None:
    """Compare with the registry once more, without the code of `pages`."""
    text = (SPECS / f"{page}.md").read_text()
    expected = [one for one in CLAUSES.values() if one.page == page]
    assert re.findall(r"^### `(.+)`$", text, re.MULTILINE) == [one.name for one in expected]
    for one in expected:
        block = one.markdown()
        assert f"\n\n{block}\n" in text or text.endswith(f"\n\n{block}"), one.name


def test_edition_lists() -> None:
    """Read the lists of `editions.md` and compare them with the registry, clause by clause."""
    text = (SPECS / "editions.md").read_text()
    listed: dict[tuple[str, str], set[str]] = {}
    for edition in EDITION_NAMES:
        _, found, section = text.partition(f"### Clauses of {edition}\n")
        assert found, edition
        label = ""
        for line in section.partition("\n#")[0].splitlines():
            if heading := re.fullmatch(rf"(.+) {re.escape(edition)}:", line):
                label = heading[1]
            for name in re.findall(r"`([^`]+)`", line):
                listed.setdefault((label, edition), set()).add(name)
    expected: dict[tuple[str, str], set[str]] = {}
    for one in CLAUSES.values():
        changes: tuple[tuple[str, str | None], ...] = (
            ("New in", one.since),
            ("New again in", one.again),
            ("Modified in", one.modified.partition(":")[0]),
            ("Until", one.until),
        )
        for label, changed in changes:
            if changed:
                expected.setdefault((label, changed), set()).add(one.name)
    assert listed == expected


def test_interface_table() -> None:
    """The table of `editions.md` agrees with the signatures of the interface classes."""
    text = (SPECS / "editions.md").read_text()
    table = text.partition("## The interface\n")[2].partition("\n## ")[0]
    rows = [line.strip()[1:-1].split("|") for line in table.splitlines() if line.startswith("|")]
    header, _, *methods = [[cell.strip() for cell in row] for row in rows]
    assert ", ".join(header[1:]).split(", ") == EDITION_NAMES
    told: dict[str, dict[str, str]] = {name: {} for name in EDITION_NAMES}
    for method, *cells in methods:
        for editions, cell in zip(header[1:], cells, strict=True):
            for name in editions.split(", "):
                if cell:
                    told[name][method.strip("`")] = cell
    for edition in EDITIONS:
        module = __import__(edition.module, fromlist=["CachePolicy"])
        assert told[edition.name] == signatures(module.CachePolicy)


def signatures(interface: type) -> dict[str, str]:
    found = {}
    for name in dir(interface):
        method = getattr(interface, name)
        if name == "__init__" or (not name.startswith("_") and callable(method)):
            arguments = ", ".join(list(inspect.signature(method).parameters)[1:])
            abstract = ", abstract" if getattr(method, "__isabstractmethod__", False) else ""
            found[name] = f"({arguments}){abstract}"
    return found


def test_signatures_can_tell() -> None:
    assert signatures(policy.CachePolicyV019) != signatures(policy.CachePolicyV022)
    assert signatures(policy.CachePolicyV026) != signatures(policy.CachePolicyV027)


def test_sources_are_explained() -> None:
    """A fault or rule that is a clause's source has a row in `decisions.md` that names the clause.

    A row may also point to a whole page instead of its clauses.
    """
    text = (SPECS / "decisions.md").read_text()
    rows = dict(re.findall(r"^\| ([BC]\d+) \|(.*)$", text, re.MULTILINE))
    for one in CLAUSES.values():
        # B1 and B2 are lists of ARC.
        for row in re.findall(r"\b(?:B\d\d|C\d+)\b", one.source):
            assert f"`{one.name}`" in rows[row] or f"({one.page}.md)" in rows[row], one.name


# --- Names of clauses, wherever they stand ---

NAMED = re.compile(rf"(?:{'|'.join(TOPICS)})/[a-z0-9-]+")
QUOTED = re.compile(rf"([`\"'])({NAMED.pattern})\1")
IN_COMMENT = re.compile(rf"(?<![\w./-])({NAMED.pattern})(?![\w/]|\.\w)")


def names_in(text: str, *, python: bool) -> Iterator[str]:
    """Yield what looks like a clause's name: in quotes of any kind, or in a Python comment."""
    for line in text.splitlines():
        yield from (match[1] for match in QUOTED.findall(line))
        if python:
            yield from IN_COMMENT.findall(line.partition("# ")[2])


def test_names_in_can_tell() -> None:
    assert list(names_in("see `lru/no-such` and lru/this", python=False)) == ["lru/no-such"]
    assert list(names_in("x = 1  # arc/one, arc/two.", python=True)) == ["arc/one", "arc/two"]
    assert list(names_in("# see cachelaw/lru/x.py and arc/module.py", python=True)) == []
    assert list(names_in('law("evict/x")', python=True)) == ["evict/x"]


FILES = [
    *MARKDOWN,
    ROOT / "README.md",
    *sorted((ROOT / "reference").rglob("*.py")),
    *sorted((ROOT / "conformance").rglob("*.py")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_names_exist(path: Path) -> None:
    names = set(names_in(path.read_text(encoding="utf-8"), python=path.suffix == ".py"))
    assert names <= set(CLAUSES)


def test_where() -> None:
    for one in CLAUSES.values():
        file, _, anchor = one.where.partition("#")
        assert anchor in anchors(ROOT / file), one.name


# --- Links ---


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a Markdown file."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(kept.replace(" ", "-"))
    return found


def broken_links(path: Path) -> list[str]:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.name)
def test_links(path: Path) -> None:
    assert broken_links(path) == []


def test_links_can_break(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A `b/c-d`, e\n[x](#a-bc-d-e) [y](a.md#f) [z](no.md)\n")
    assert broken_links(tmp_path / "a.md") == ["a.md#f", "no.md"]


# --- Pages that do not agree ---


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the pages to a root of their own."""
    (tmp_path / "specs").mkdir()
    for path in MARKDOWN:
        shutil.copy(path, tmp_path / "specs")
    return tmp_path


def change(root: Path, page: str, before: str, after: str) -> None:
    path = root / "specs" / f"{page}.md"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def texts(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (root / "specs").glob("*.md")}


CLAUSE = CLAUSES["lru/touch-is-use"]
NEXT = CLAUSES["lru/batch-tail-first"]
ALIEN = "### `lru/nobody-knows`\n\nA rule.\n\n- Editions: New in v0.19.\n- Source: none\n\n"


@pytest.mark.parametrize(
    ("page", "before", "after", "said"),
    [
        ("lru", CLAUSE.statement, "Otherwise.", "`lru/touch-is-use` is not as in the registry"),
        ("lru", CLAUSE.markdown() + "\n", "", "has no `lru/touch-is-use`"),
        (
            "lru",
            CLAUSE.markdown(),
            ALIEN + CLAUSE.markdown(),
            "has `lru/nobody-knows`, which is in no registry",
        ),
        (
            "arc",
            "## The lists\n\n",
            "## The lists\n\n" + CLAUSE.markdown() + "\n",
            "has `lru/touch-is-use`, which belongs on lru.md",
        ),
        (
            "lru",
            NEXT.markdown() + "\n",
            NEXT.markdown() + "\n" + CLAUSE.markdown() + "\n",
            "has `lru/touch-is-use` twice",
        ),
        (
            "editions",
            "`lru/becoming-idle-is-use`, ",
            "",
            "`Clauses of v0.24` is not as in the registry",
        ),
        ("editions", "### Clauses of v0.26\n", "", "has no `Clauses of v0.26`"),
    ],
)
def test_tampered_page(
    copy: Path,
    capsys: pytest.CaptureFixture[str],
    page: str,
    before: str,
    after: str,
    said: str,
) -> None:
    whole = texts(copy)
    change(copy, page, before, after)
    assert pages.main(["--root", str(copy)]) == 1
    assert f"specs/{page}.md {said}" in capsys.readouterr().out.splitlines()
    assert texts(copy) != whole

    assert pages.main(["--root", str(copy), "--write"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"specs/{page}.md rewritten"]
    repaired = texts(copy)
    assert repaired.keys() == whole.keys()
    if "Clauses of v0.26" not in before:
        assert repaired == whole
    assert pages.main(["--root", str(copy)]) == 0


def test_order_is_repaired_by_hand(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = f"{CLAUSE.markdown()}\n{NEXT.markdown()}\n"
    change(copy, "lru", both, f"{NEXT.markdown()}\n{CLAUSE.markdown()}\n")
    swapped = texts(copy)
    for arguments in ([], ["--write"]):
        assert pages.main(["--root", str(copy), *arguments]) == 1
        assert capsys.readouterr().out.splitlines() == [
            "specs/lru.md `lru/touch-is-use` stands after `lru/batch-tail-first`; "
            "move it by hand, the registry has it before"
        ]
    assert texts(copy) == swapped


def test_prose_is_left_alone(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prose under a clause is complained of and kept, also if the clause itself is rewritten."""
    change(copy, "lru", CLAUSE.markdown(), CLAUSE.markdown() + "\nA remark.\n")
    change(copy, "lru", CLAUSE.statement, "Otherwise.")
    change(copy, "lru", "# LRU\n", "# LRU\n\n```\n# no heading\n### `lru/no-clause`\n```\n")
    assert pages.main(["--root", str(copy), "--write"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "specs/lru.md rewritten",
        "specs/lru.md `lru/touch-is-use` is followed by prose; give that a heading of its own",
    ]
    text = texts(copy)["lru.md"]
    assert f"{CLAUSE.markdown()}\nA remark.\n\n{NEXT.markdown()}" in text
    assert "# no heading" in text


def test_missing_pages(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (copy / "specs" / "arc.md").unlink()
    assert pages.main(["--root", str(copy), "--write"]) == 1
    assert capsys.readouterr().out.splitlines() == ["specs/arc.md is not there"]
    shutil.rmtree(copy / "specs")
    monkeypatch.chdir(copy)
    with pytest.raises(SystemExit) as stopped:
        pages.main([])
    assert stopped.value.code == 2
    assert "--root" in capsys.readouterr().err


def test_empty_page_is_filled(copy: Path) -> None:
    """Whatever is missing comes back, in order."""
    for path in (copy / "specs").glob("*.md"):
        path.write_text("# A page\n\nProse.")
    assert pages.main(["--root", str(copy), "--write"]) == 0
    assert texts(copy)["arc.md"].startswith("# A page\n\nProse.\n\n### `arc/lists-disjoint`\n")


def test_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cachelaw.specs.pages"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
