"""What a clause is.

Every rule of the specs is a clause with a stable name, `topic/rule-in-words`. The registry
(`registry.py`) holds them all; each stands in one Markdown file under `specs/`, in exactly the form
that `Clause.markdown` gives it, and a test compares the two both ways.
"""

from __future__ import annotations

from dataclasses import dataclass

PAGES = (
    "chunk-status",
    "cache-policy",
    "lru",
    "arc",
    "reuse-filter",
    "request-order",
)
"""The Markdown files that hold clauses, in reading order."""

PROFILES = ("contract", "lru", "arc", "reuse-filter")
"""What a subject can claim: the universal contract, or a policy by name besides."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule.

    Args:
        name: `topic/rule-in-words`; never changes and is never reused.
        page: the Markdown file that holds it, without the ending.
        statement: the rule in one or two sentences.
        source: where the rule comes from: a seed, vLLM releases, a paper's page, or our decision.
        since: the first edition that has it.
        until: the last edition that has it, None if the newest still does.
        again: a later edition that took it up again, for good.
        profile: the claim it belongs to, None if it binds the host and no policy can break it.
        reason: why, where the rule is a choice.
        modified: an edition in which the wording changed, with what changed.
        no_law: why the suite has no law for it; empty if it has one.
        implied_by: clauses that nobody keeps who breaks this one: they say all that it says and
            more, or are judged by means of it.
    """

    name: str
    page: str
    statement: str
    source: str
    since: str = "v0.19"
    until: str | None = None
    again: str | None = None
    profile: str | None = "contract"
    reason: str = ""
    modified: str = ""
    no_law: str = ""
    implied_by: tuple[str, ...] = ()

    @property
    def editions(self) -> str:
        """The editions that have the clause, in the two words New and Modified."""
        said = [(self.since, f"New in {self.since}.")]
        if self.modified:
            said.append((self.modified.partition(":")[0], f"Modified in {self.modified}."))
        if self.until:
            said.append((self.until, f"Until {self.until}."))
        if self.again:
            said.append((self.again, f"New again in {self.again}."))
        return " ".join(phrase for _, phrase in sorted(said, key=lambda item: _age(item[0])))

    @property
    def where(self) -> str:
        """The file and heading to read."""
        anchor = self.name.replace("/", "")
        return f"specs/{self.page}.md#{anchor}"

    def holds_in(self, edition: str) -> bool:
        """Whether the edition named `edition`, such as `v0.31`, has the clause."""
        age = _age(edition)
        if self.again and age >= _age(self.again):
            return True
        return age >= _age(self.since) and (self.until is None or age <= _age(self.until))

    def markdown(self) -> str:
        """The clause as it stands in its Markdown file."""
        lines = [f"### `{self.name}`", "", self.statement, ""]
        lines.append(f"- Editions: {self.editions}")
        lines.append(f"- Source: {self.source}")
        if self.reason:
            lines.append(f"- Reason: {self.reason}")
        if self.implied_by:
            names = ", ".join(f"`{name}`" for name in self.implied_by)
            lines.append(f"- Implied by: {names}")
        if self.no_law:
            lines.append(f"- No law: {self.no_law}")
        return "\n".join(lines) + "\n"


def _age(edition: str) -> tuple[int, int]:
    major, minor = edition.removeprefix("v").split(".")
    return int(major), int(minor)
