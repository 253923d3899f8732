"""The page stands alone, escapes what it did not write, and a browser finds nothing wrong."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.reports.made import hostile, made, named, right, unexpected, wrong

from cachelaw.conformance.reports.html import as_html, write_html

ALL: dict[str, Callable[[], dict[str, Any]]] = {
    "right": right,
    "wrong": wrong,
    "randomized": lambda: made(named("Fifo"), "randomized"),
    "hostile": hostile,
    "hostile and unexpected": lambda: unexpected(hostile()),
    "filter": lambda: made(named("SkipsEmptyOffers")),
}

VOID = {"meta", "br", "wbr"}


class Page(HTMLParser):
    """What a page consists of; its elements must be well nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if identity := dict(attrs).get("id"):
            self.ids.append(identity)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("which", ALL)
def test_the_page_stands_alone(which: str) -> None:
    page = Page(as_html(ALL[which]()))
    allowed = {"html", "head", "meta", "title", "style", "body", "header", "main", "section"}
    allowed |= {"footer", "article", "h1", "h2", "h3", "p", "dl", "div", "dt", "dd", "ul", "li"}
    allowed |= {"table", "thead", "tbody", "tr", "th", "td", "a", "span", "code", "pre", "details"}
    allowed |= {"summary", "strong", "br", "wbr"}
    for tag, attributes in page.tags:
        assert tag in allowed
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
        if "href" in attributes:
            target = attributes["href"] or ""
            assert target.startswith("#") and target[1:] in page.ids
    assert len(set(page.ids)) == len(page.ids)
    assert not any(word in page.text.lower() for word in ("@import", "url("))


@pytest.mark.parametrize("which", ["hostile", "hostile and unexpected"])
def test_what_a_subject_says_is_text(which: str) -> None:
    written = as_html(ALL[which]())
    assert "<script" not in written and "<img" not in written
    assert "\x1b" not in written and "\x00" not in written
    page = Page(written)
    assert page.text.count("<script>alert(1)</script>") >= 10


def test_everything_is_on_the_page() -> None:
    data = wrong()
    page = Page(as_html(data))
    text = " ".join(page.text.split())
    for law in data["laws"]:
        assert law["clause"] in text
        assert law["statement"].replace("`", "") in text
        assert law["clause"].replace("/", "--") in page.ids
    (found,) = (law["counterexample"] for law in data["laws"] if "counterexample" in law)
    for row in found["rows"]:
        assert row["event"] in text
        assert all(call in text for call in row["calls"])
    for words in (
        "does not conform",
        f"cachelaw replay {found['id']}",
        data["certificate"]["digest"],
        "runs on all hosts",
        "a breadth-first search at this scope found no shorter trace",
    ):
        assert words in text
    assert found["reproduction"]["text"] in page.text


# --- In a browser --------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

CANARY = """<!DOCTYPE html><title>canary</title>
<p id="seen"></p><img src="http://page.invalid/x.png">
<script>document.getElementById("seen").textContent = "ran"; console.error("wrong")</script>
"""


def browsed(page: Path, folder: Path) -> tuple[str, list[str], list[str]]:
    """Open a page; return the document, what the console said, and what was asked of the network.

    The browser has errands of its own, which the flags keep from leaving the machine.
    """
    if CHROMIUM is None:
        assert "CI" not in os.environ, "chromium is not installed"
        pytest.skip("chromium is not installed")
    log = folder / "net.json"
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            "--enable-logging=stderr",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    events: list[dict[str, Any]] = json.loads(log.read_text())["events"]
    asked = {str(event.get("params", {}).get("url", "")) for event in events}
    return done.stdout, said, [url for url in asked if url.startswith("http")]


def test_the_browser_would_notice(tmp_path: Path) -> None:
    page = tmp_path / "canary.html"
    page.write_text(CANARY)
    document, said, asked = browsed(page, tmp_path)
    assert 'id="seen">ran' in document
    assert any("wrong" in line for line in said)
    assert any("page.invalid" in url for url in asked)


@pytest.mark.parametrize("which", ["wrong", "hostile and unexpected"])
def test_a_browser_shows_the_page(which: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_html(ALL[which](), page)
    document, said, asked = browsed(page, tmp_path)
    assert said == []
    assert not any("page.invalid" in url for url in asked)
    assert Page(document).text.count("exact-count") >= 3
    assert "<script" not in document


TELEPHONE = """<!DOCTYPE html><title>a telephone</title>
<iframe style="width: 390px; height: 800px; border: 0" srcdoc="{}"></iframe><p>not loaded</p>
<script>
document.querySelector("iframe").onload = ({{target}}) => {{
  const root = target.contentDocument.documentElement;
  document.querySelector("p").textContent = `page ${{root.scrollWidth}} of ${{root.clientWidth}}`;
}}
</script>
"""


@pytest.mark.parametrize("which", ["wrong", "a long word"])
def test_only_tables_and_code_are_wider_than_a_telephone(which: str, tmp_path: Path) -> None:
    written = as_html(wrong()).replace("<details>", "<details open>")
    if which == "a long word":  # the measure can tell
        written = written.replace("<main>", f"<main><pre style='overflow: visible'>{'x' * 200}")
    page = tmp_path / "telephone.html"
    page.write_text(TELEPHONE.format(html.escape(written)))
    document, _, _ = browsed(page, tmp_path)
    said = document.rpartition("<p>page ")[2].partition("</p>")[0]
    width, shown = map(int, said.split(" of "))
    assert (width > shown) == (which == "a long word")
