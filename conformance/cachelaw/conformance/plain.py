"""Plain text: what a subject says, made fit to be shown."""

from __future__ import annotations


def plain(text: object) -> str:
    """Return text without characters that a terminal or a reader of XML would act on."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in the right form: `1 event`, `2,000 events`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
