"""The report as one HTML page that stands alone: no network, no scripts, no files beside it.

Whatever a subject has put into the report is escaped by the template engine; and the page tells
browsers that it may load and run nothing, should anything get through.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from cachelaw.conformance.plain import plain
from cachelaw.conformance.reports import shown
from cachelaw.conformance.reports.shown import Data

MARKS = {"holds": "✓", "violated": "✗", "undetermined": "?", "not applicable": "\u2013"}
"""What stands for a verdict besides its colour."""


def write_html(data: Data, path: Path) -> None:
    """Write a report as an HTML page.

    Args:
        data: the report's data.
        path: where to.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_text(as_html(data), encoding="utf-8", errors="backslashreplace")


def as_html(data: Data) -> str:
    """Return a report as an HTML page."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["plain"] = plain
    environment.filters["breakable"] = _breakable
    environment.filters["prose"] = _prose
    template = environment.from_string(_read("page.html.jinja"))
    return template.render(
        data=data,
        style=Markup(_read("page.css")),  # our own file
        shown=shown,
        marks=MARKS,
        conclusion=shown.CONCLUSIONS[data["verdict"]],
        tally=shown.tally(data["laws"]),
        violated=shown.violated(data),
        anchors={law["clause"]: law["clause"].replace("/", "--") for law in data["laws"]},
        certificate=json.dumps(data["certificate"], indent=2),
    )


def _read(name: str) -> str:
    return (files("cachelaw.conformance.reports") / name).read_text(encoding="utf-8")


def _breakable(text: Any) -> Markup:
    """Return text, escaped, that a browser may break after the joints of a long name."""
    made = Markup.escape(plain(text))
    for joint in ("/", ".", ":", "_"):
        made = made.replace(joint, Markup(joint + "<wbr>"))
    return made


def _prose(text: str) -> Markup:
    """Return text, escaped, with what stands in backquotes as code."""
    escaped = str(Markup.escape(plain(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))
