"""What README and CONTRIBUTING tell people to type and to read is there."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from cachelaw.conformance import cli

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", _text(page)):
        assert (ROOT / target).exists(), f"{page} links to {target}"


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_exists(page: str) -> None:
    rules = set(re.findall(r"^([a-z-]+):", _text("Makefile"), flags=re.M))
    for target in re.findall(r"(?:^\$ |`)make ([a-z-]+)", _text(page), flags=re.M):
        assert target in rules, f"{page} says make {target}"


def test_every_command_of_the_readme_parses() -> None:
    commands = re.findall(r"^\$ (cachelaw .*)$", _text("README.md"), flags=re.M)
    assert len(commands) >= 4
    for command in commands:
        _, *words = shlex.split(command, comments=True)
        assert callable(cli.parser().parse_args(words).run)


def test_the_files_that_contributing_names_exist() -> None:
    named = re.findall(
        r"`((?:specs|reference|conformance|tests)/[\w/.]+)`", _text("CONTRIBUTING.md")
    )
    assert len(named) >= 5
    for name in named:
        assert (ROOT / name).exists(), name


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(
        # A make above this one, as in `make test`, would say where it enters.
        ["make", "--no-print-directory", "help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    documented = set(re.findall(r"^([a-z-]+):.*## ", _text("Makefile"), flags=re.M))
    phony = set(re.findall(r"^\.PHONY: (.*)$", _text("Makefile"), flags=re.M)[0].split())
    assert documented == phony
    assert {line.split()[0] for line in shown.splitlines()} == documented


def test_ci_runs_the_readmes_test_command() -> None:
    assert "\nmake test\n" in _text(".ci/run")
    assert "$ make test " in _text("README.md")
