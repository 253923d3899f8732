"""What the examples in the pages say is what the reference does."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.trace import Event, Trace, describe
from cachelaw.reference import arc
from cachelaw.reference.context import ReqContext
from cachelaw.reference.editions import EDITIONS, NEWEST, V031, Edition, edition_named
from cachelaw.reference.lru import EvictableOrder, RankedOrder
from cachelaw.reference.order import order_request_keys
from cachelaw.reference.protocol import (
    Evict,
    LoadEnds,
    LoadStarts,
    RequestEnds,
    StoreOffered,
    StoreSucceeds,
    Touch,
    objection,
    perform,
    start,
)
from cachelaw.reference.reuse_filter import Tracker, admitted, observe_all
from cachelaw.reference.textbook_arc import TextbookARC

SPECS = Path(__file__).parents[2] / "specs"

# --- Reading the pages ---


def rows(page: str, header: str) -> list[list[str]]:
    """Return the cells of the table that begins with `header`, the header's own first."""
    text = (SPECS / f"{page}.md").read_text(encoding="utf-8")
    assert text.count(f"\n{header}") == 1, header
    table = (header + text.partition(f"\n{header}")[2]).partition("\n\n")[0]
    head, _, *body = [
        [cell.strip() for cell in line[1:].rstrip("|").split("|")] for line in table.splitlines()
    ]
    assert body
    assert all(len(row) == len(head) for row in body)
    return [head, *body]


def editions_in(header: str) -> list[Edition]:
    """Read the head of a column: `v0.31`, or `v0.24 to v0.30`."""
    first, _, last = header.partition(" to ")
    return [e for e in EDITIONS if edition_named(first) <= e <= edition_named(last or first)]


LETTERS = "abcdefghijklmnopqrstuvwxyz"
PATTERNS: list[tuple[str, type]] = [
    (r"(?P<request>\w+) offers (?P<keys>[a-z ]+)", StoreOffered),
    (r"store of (?P<keys>[a-z ]+) succeeds", StoreSucceeds),
    (r"(?P<request>\w+) starts to load (?P<keys>[a-z ]+)", LoadStarts),
    (r"load of (?P<keys>[a-z ]+) ends", LoadEnds),
    (r"(?P<request>\w+) touches (?P<keys>[a-z ]+)", Touch),
    (r"(?P<request>\w+) ends", RequestEnds),
    (r"evict (?P<n>\d+)", Evict),
]


def numbers(keys: str) -> tuple[int, ...]:
    return tuple(LETTERS.index(key) for key in keys.split())


def letters(keys: Any) -> str:
    return " ".join(LETTERS[key] for key in keys)


def event_in(text: str) -> Event:
    """Read an event in the words of `describe`, with letters for keys."""
    for pattern, kind in PATTERNS:
        if match := re.fullmatch(pattern, text):
            fields: dict[str, Any] = match.groupdict()
            if "keys" in fields:
                fields["keys"] = numbers(fields["keys"])
            if "n" in fields:
                fields["n"] = int(fields["n"])
            event: Event = kind(**fields)
            words = re.sub(r"\b\d+\b", lambda key: LETTERS[int(key[0])], describe(event))
            assert words == text or isinstance(event, Evict)
            return event
    raise AssertionError(f"no event: {text}")


# --- Running them ---


class Host:
    """A manager of one edition over a reference policy."""

    def __init__(self, policy: str, edition: Edition, capacity: int) -> None:
        module = importlib.import_module(edition.module)
        self.setting = Trace(edition, capacity, ()).setting
        self.state = start(self.setting)
        self.instance = Instance(
            getattr(module, policy), self.setting, module.ChunkStatus, PlainCodec()
        )
        self.edition = edition

    def perform(self, event: Event) -> Any:
        """Let an event happen; return the victims of its eviction, None if there was none."""
        if isinstance(event, RequestEnds) and not self.edition.has_request_hooks:
            return None
        assert objection(self.setting, self.state, event) is None
        victims = answer = None
        steps = perform(self.setting, self.state, event)
        while True:
            try:
                call = steps.send(answer)
            except StopIteration as end:
                self.state = end.value
                return victims
            answer = self.instance.carry_out(call)
            if call.method == "evict" and answer is not None:
                victims = answer = tuple(key for key, _ in answer)
                for key in victims:
                    del self.instance.chunks[key]

    def access(self, key: int) -> Any:
        """Serve one key, as one request: a hit uses it, a miss stores it."""
        request = f"u{len(self.state.requests)}"
        victims = None
        if key in self.state.chunks:
            self.perform(LoadStarts((key,), request))
            self.perform(LoadEnds((key,)))
            if self.edition < V031:
                self.perform(Touch((key,), request))
        else:
            victims = self.perform(StoreOffered((key,), request))
            self.perform(StoreSucceeds((key,)))
        self.perform(RequestEnds(request))
        return victims

    @property
    def policy_state(self) -> Any:
        return self.instance.policy.state


# --- ARC ---


@pytest.mark.parametrize("edition", EDITIONS, ids=str)
def test_arc_step_by_step(edition: Edition) -> None:
    table = rows("arc", "| Step | Access | Found in |")
    host = Host("ARC", edition, 3)
    for number, row in enumerate(table[1:], 1):
        step, access, found, evicted, *state = row
        (key,) = numbers(access)
        before: arc.ArcState[int] = host.policy_state
        lists = {"T1": before.t1, "T2": before.t2, "B1": before.b1, "B2": before.b2}
        assert int(step) == number
        assert found == "".join(name for name, keys in lists.items() if key in keys)
        if edition < V031 and found in ("B1", "B2"):
            # The scheduler reported a miss by a touch.
            host.perform(Touch((key,), f"t{number}"))
        assert letters(host.access(key) or ()) == evicted
        after: arc.ArcState[int] = host.policy_state
        lists_after = [letters(keys) for keys in (after.t1, after.t2, after.b1, after.b2)]
        assert [*lists_after, f"{after.target:g}"] == state


def test_arc_step_of_a_half() -> None:
    text = (SPECS / "arc.md").read_text(encoding="utf-8")
    (sequence,) = re.findall(r"With capacity 3, after\n`([a-z ]+)`", text)
    assert "B1 holds f g, and B2 holds a b c. If f is accessed next, the step is 3/2" in text
    host = Host("ARC", NEWEST, 3)
    for key in numbers(sequence):
        host.access(key)
    assert letters(host.policy_state.b1) == "f g"
    assert letters(host.policy_state.b2) == "a b c"
    host.access(LETTERS.index("f"))
    assert host.policy_state.target == 1.5


def parting(sequence: str, capacity: int) -> list[tuple[str, str]]:
    """Return what vLLM's ARC and the paper's evict at each access."""
    host, paper = Host("ARC", NEWEST, capacity), TextbookARC[int](capacity)
    evicted = []
    for key in numbers(sequence):
        before = {*paper.state.t1, *paper.state.t2}
        paper.request(key)
        gone = before - {*paper.state.t1, *paper.state.t2}
        evicted.append((letters(host.access(key) or ()), letters(gone)))
    return evicted


def test_arc_departs_from_the_paper() -> None:
    for *_, sequence, ours, theirs in rows("arc", "| | The paper | vLLM | Shortest")[1:]:
        *before, last = parting(sequence.strip("`"), 2)
        assert all(vllm == paper for vllm, paper in before), sequence
        assert last == (ours, theirs), sequence


def test_arc_departs_at_other_capacities() -> None:
    text = (SPECS / "arc.md").read_text(encoding="utf-8")
    found = re.findall(r"(\w+) accesses\s\(`([a-z ]+)`\)|capacity 4 (\w+) \(`([a-z ]+)`\)", text)
    assert len(found) == 2
    for capacity, length, groups in ((3, "seven", found[0][:2]), (4, "eight", found[1][2:])):
        assert groups[0] == length
        *before, last = parting(groups[1], capacity)
        assert all(vllm == paper for vllm, paper in before)
        assert last[0] != last[1]
        assert len(before) + 1 == {"seven": 7, "eight": 8}[length]


# --- LRU ---


def lru_order(state: Any) -> str:
    if isinstance(state, EvictableOrder):
        return letters(state.idle)
    if isinstance(state, RankedOrder):
        return letters(key for _, key in state.entries)
    return letters(state)


def test_lru_orders() -> None:
    head, *body = rows("lru", "| Event | v0.22 |")
    for column, name in enumerate(head[1:], 1):
        host = Host("LRU", edition_named(name), 3)
        for row in body:
            host.perform(event_in(row[0]))
            reported = host.edition.has_request_hooks or not row[0].endswith("r1 ends")
            assert row[column] == (lru_order(host.policy_state) if reported else ""), row


# --- Editions ---


@pytest.mark.parametrize(
    ("policy", "header"),
    [
        ("LRU", "| Events | v0.19 to v0.22 | v0.24 to v0.30 |"),
        ("ARC", "| Events | v0.19 to v0.27 |"),
    ],
)
def test_edition_probes(policy: str, header: str) -> None:
    head, *body = rows("editions", header)
    columns = [editions_in(name) for name in head[1:]]
    assert [edition for column in columns for edition in column] == list(EDITIONS)
    for events, *victims in body:
        for column, victim in zip(columns, victims, strict=True):
            for edition in column:
                host = Host(policy, edition, 4)
                for event in events.split("; "):
                    host.perform(event_in(event))
                found = host.perform(Evict(1))
                assert ("None" if found is None else letters(found)) == victim, (events, edition)


# --- Reuse filter ---


def test_reuse_filter() -> None:
    tracker: Tracker[str] = ()
    for call, state, passed in rows("reuse-filter", "| Call | Tracker afterwards |")[1:]:
        method, *keys = call.split()
        if method == "lookup":
            tracker = observe_all(tracker, keys, 2)
            assert passed == " ".join(keys)
        else:
            assert method == "offer"
            empty = "nothing, in an empty offer"
            assert passed == (" ".join(admitted(tracker, keys, 2)) or empty)
        assert state == " ".join(f"{key}:{count}" for key, count in tracker)


# --- Request order ---


def test_request_order() -> None:
    for *groups, order in rows("request-order", "| Group 0 | Group 1 |")[1:]:
        context = ReqContext("r")
        key_groups: list[list[Any]] = []
        for group in groups:
            key_groups.append([])
            for member in group.split(", "):
                match = re.fullmatch(r"([a-z]) (?:at (\d+)|unknown)", member)
                assert match
                key_groups[-1].append(match[1])
                if match[2]:
                    context.set_offload_key_position(key_groups[-1][-1], int(match[2]))
        assert " ".join(map(str, order_request_keys(key_groups, context))) == order
