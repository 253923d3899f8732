"""The pytest plugin: `pytest --cachelaw my.module:Policy`.

Every run of pytest in an environment that has cachelaw imports this module, so it imports nothing
but pytest until it is asked for something. What the outcomes mean stands in `testing.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cachelaw.conformance.testing import Trial

_folder = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("cachelaw", "certification of cache policies")
    group.addoption(
        "--cachelaw",
        action="append",
        default=[],
        metavar="SUBJECT",
        help="certify package.module:Class, path/file.py:Class or a release such as "
        "vllm==0.30.0:arc, a test for each law; may be given more than once. Without files to "
        "test, nothing else runs",
    )
    group.addoption(
        "--cachelaw-profile",
        metavar="PROFILE",
        help="what to judge it as: contract, lru, arc or reuse-filter (default: contract, or what "
        "the release says)",
    )
    group.addoption(
        "--cachelaw-edition",
        metavar="EDITION",
        help="the contract to judge it by, such as v0.31 (default: the newest that fits)",
    )
    group.addoption(
        "--cachelaw-budget",
        choices=("quick", "standard", "deep"),
        help="how much search follows the probes (default: quick); goes before the `budget` of "
        "test classes",
    )
    group.addoption(
        "--cachelaw-expect",
        metavar="FILE",
        help="a file of clauses that it is known to break, one a line",
    )
    group.addoption(
        "--cachelaw-host",
        metavar="vllm==X",
        help="a release whose modules the subject gets where it imports vllm",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run no other tests where only a subject was named."""
    if config.option.cachelaw and config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []


@pytest.hookimpl(tryfirst=True)  # before others pick among the items
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add an item for each law of each subject that was named."""
    for name in config.option.cachelaw:
        subject = _Subject.from_parent(session, name=name, nodeid=name)
        items.extend(subject.collect())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist where all workers share what they find."""
    stash = node.config.stash
    if _folder not in stash:
        stash[_folder] = tempfile.TemporaryDirectory(prefix="cachelaw-")
    node.workerinput["cachelaw_shared"] = stash[_folder].name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what workers have shared."""
    if _folder in config.stash:
        config.stash[_folder].cleanup()


class _Subject(pytest.Collector):
    """A subject that was named on the command line."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each law of its profile."""
        from cachelaw.conformance import testing

        trial = self._trial()
        for clause in trial.clauses:
            item = _Law.from_parent(self, name=clause, trial=trial)
            for mark in testing.group_marks(trial, self.config):
                item.add_marker(mark)
            yield item

    def _trial(self) -> Trial:
        from cachelaw.conformance import expect, testing
        from cachelaw.conformance.subject import Unusable, Wanted

        said = self.config.option
        try:
            expected = said.cachelaw_expect and expect.read(Path(said.cachelaw_expect))
            return testing.Trial(
                Wanted(
                    self.name, said.cachelaw_profile, said.cachelaw_edition, (), said.cachelaw_host
                ),
                said.cachelaw_profile or testing.profile_of(self.name),
                said.cachelaw_budget or "quick",
                expected=expected or {},
            )
        except Unusable as error:
            raise pytest.UsageError(f"cachelaw: {error}") from None


class _Law(pytest.Item):
    """A law of a subject."""

    def __init__(self, *, trial: Trial, **given: Any) -> None:
        super().__init__(**given)
        self._trial = trial

    def runtest(self) -> None:
        """Report the verdict."""
        from cachelaw.conformance import testing

        testing.report_verdict(self._trial, self.name, self.config)

    def reportinfo(self) -> tuple[str, None, str]:
        """Say where it stands, and what it is called."""
        return self._trial.wanted.name, None, self.name
