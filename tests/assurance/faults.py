"""Faults: one line of the core each, replaced by one that is wrong.

The faults are what a slip of the pen could leave in the reference. `layers.py` puts one at a time
into a copy of the package and asks the layers of assurance, each on its own, whether they notice.
A line is named by the function, class or method that it stands in, and occurs there once.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "reference" / "cachelaw" / "reference"


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong line.

    Attributes:
        name: what is wrong, in a few words; unique.
        at: where, as `file:function` or `file:Class.method`, the file without its ending.
        line: the right line, without its indentation.
        wrong: what stands there instead.
        breaks: what is no longer so: a clause, or a few words.
        target: the policy and edition that show it, as `lru v0.24`; `filter` or `textbook` alone.
        contracts: the contracts of `tests/proof/contracts.py` that speak of the function.
    """

    name: str
    at: str
    line: str
    wrong: str
    breaks: str
    target: str
    contracts: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file's name, without its ending."""
        return self.at.partition(":")[0]

    def found_at(self, source: str) -> int:
        """Return the index of the right line among the lines of its file.

        Raises:
            ValueError: the line does not stand there exactly once.
        """
        first, last = _extent(source, self.at.partition(":")[2])
        lines = source.splitlines()
        found = [at for at in range(first, last) if lines[at].strip() == self.line]
        if len(found) != 1:
            raise ValueError(f"{self.name}: {len(found)} lines of {self.at} are {self.line!r}")
        return found[0]

    def put_into(self, reference: Path) -> None:
        """Replace the line in a copy of the package.

        Args:
            reference: the folder of the copy that holds the modules.

        Raises:
            ValueError: the folder is the working tree's, or the line is not there.
        """
        if reference.resolve() == REFERENCE.resolve():
            raise ValueError("faults go into copies only")
        path = reference / f"{self.file}.py"
        source = path.read_text(encoding="utf-8")
        lines, at = source.splitlines(), self.found_at(source)
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines[at] = textwrap.indent(self.wrong, indent)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _extent(source: str, where: str) -> tuple[int, int]:
    """Return the lines of a definition, from the first to after the last."""
    body: list[ast.stmt] = ast.parse(source).body
    found: ast.FunctionDef | ast.ClassDef | None = None
    for name in where.split("."):
        found = next(
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        )
        body = found.body
    assert found is not None and found.end_lineno is not None
    return found.lineno - 1, found.end_lineno


TAIL_FIRST = "for key in reversed(list(keys)):"
HEAD_FIRST = "for key in list(keys):"

RECENCY = (
    Fault(
        "renewed at the wrong end",
        "recency:renew",
        "return (*forget(order, key), key)",
        "return (key, *forget(order, key))",
        "lru/insert-is-use",
        "lru v0.19",
        ("renew_puts_the_key_last",),
    ),
    Fault(
        "renewed without being taken out",
        "recency:renew",
        "return (*forget(order, key), key)",
        "return (*order, key)",
        "a key has one place",
        "lru v0.19",
        ("renew_leaves_one_copy",),
    ),
    Fault(
        "keys told apart by identity",
        "recency:forget",
        "return tuple(other for other in order if other != key)",
        "return tuple(other for other in order if other is not key)",
        "equal keys are one key",
        "lru v0.19",
        ("forget_takes_out_the_key_alone",),
    ),
    Fault(
        "trimmed though short enough",
        "recency:trim",
        "return order[max(0, len(order) - limit) :]",
        "return order[len(order) - limit :]",
        "arc/victim-becomes-ghost",
        "arc v0.30",
        ("arc_trims_its_ghosts", "trim_keeps_the_recent_end"),
    ),
    Fault(
        "trimmed at the recent end",
        "recency:trim",
        "return order[max(0, len(order) - limit) :]",
        "return order[:limit]",
        "arc/ghosts-trimmed-to-capacity",
        "arc v0.30",
        ("arc_trims_its_ghosts", "trim_keeps_the_recent_end"),
    ),
    Fault(
        "pending chunks eligible",
        "recency:eligible",
        "return tuple(key for key in order if ref_cnt(key) == 0 and key not in protected)",
        "return tuple(key for key in order if ref_cnt(key) <= 0 and key not in protected)",
        "evict/idle-only",
        "lru v0.31",
        ("eligible_are_the_idle_and_unprotected",),
    ),
    Fault(
        "protected chunks eligible",
        "recency:eligible",
        "return tuple(key for key in order if ref_cnt(key) == 0 and key not in protected)",
        "return tuple(key for key in order if ref_cnt(key) == 0)",
        "evict/protected-honoured",
        "arc v0.19",
        ("eligible_are_the_idle_and_unprotected",),
    ),
)

LRU = (
    Fault(
        "absent keys touched in",
        "lru:list_touch",
        "if key in order:",
        "if True:",
        "touch/absent-ignored",
        "lru v0.22",
        ("list_touch_moves_residents_tail_first",),
    ),
    Fault(
        "fewer victims than asked for",
        "lru:list_evict",
        "if len(victims) < n:",
        "if len(victims) < min(n, 1):",
        "evict/exact-count",
        "lru v0.19",
        ("list_evict_takes_the_oldest",),
    ),
    Fault(
        "pending chunks have a place",
        "lru:evictable_insert",
        "idle = renew(state.idle, key) if ref_cnt == 0 else state.idle",
        "idle = renew(state.idle, key) if ref_cnt <= 0 else state.idle",
        "evict/idle-only",
        "lru v0.24",
    ),
    Fault(
        "touched busy chunks get a place",
        "lru:evictable_touch",
        "if key in idle:",
        "if key in state.resident:",
        "lru/touch-of-busy-lost",
        "lru v0.27",
        ("evictable_touch_needs_a_place",),
    ),
    Fault(
        "passed over and forgotten",
        "lru:evictable_evict",
        "idle = tuple(key for key in state.idle if key not in victims)",
        "idle = state.idle[n:]",
        "lru/passed-over-keeps-place",
        "lru v0.30",
        ("evictable_evict_takes_the_oldest",),
    ),
    Fault(
        "pinned chunks keep their place",
        "lru:evictable_unmark",
        "return EvictableOrder(state.resident, forget(state.idle, key))",
        "return state",
        "evict/idle-only",
        "lru v0.24",
        ("evictable_marks_give_and_take_a_place",),
    ),
    Fault(
        "ranks appended, not sorted in",
        "lru:place",
        "insort(entries, (rank, key))",
        "entries.append((rank, key))",
        "lru/batches-share-a-rank",
        "lru v0.33",
    ),
    Fault(
        "a number outlives the clear",
        "lru:number_request",
        "if memory is not None and memory.generation == state.generation:",
        "if memory is not None:",
        "lru/clear-voids-request-ranks",
        "lru v0.33",
    ),
    Fault(
        "accessed head leaves first",
        "lru:ranked_access",
        "joined = (memory.serial, -position)",
        "joined = (memory.serial, position)",
        "lru/access-joins-the-rank",
        "lru v0.33",
    ),
    Fault(
        "access demotes",
        "lru:ranked_access",
        "if rank < joined:  # lru/access-never-demotes",
        "if rank != joined:",
        "lru/access-never-demotes",
        "lru v0.33",
    ),
    Fault(
        "a batch shares a number",
        "lru:ranked_touch",
        "state = replace(state, serial=state.serial + 1)",
        "pass",
        "lru/touch-is-use",
        "lru v0.33",
    ),
)

ARC = (
    Fault(
        "the target starts at one",
        "arc:ArcState",
        "target: float = 0.0  # arc/target-starts-at-zero",
        "target: float = 1.0",
        "arc/target-starts-at-zero",
        "arc v0.30",
    ),
    Fault(
        "stored, and a ghost still",
        "arc:insert",
        "b1=forget(state.b1, key),",
        "b1=state.b1,",
        "arc/lists-disjoint",
        "arc v0.30",
        ("arc_insert_enters_t1_and_takes_the_ghost",),
    ),
    Fault(
        "removed from T1 alone",
        "arc:remove",
        "return replace(state, t1=forget(state.t1, key), t2=forget(state.t2, key))",
        "return replace(state, t1=forget(state.t1, key))",
        "remove/forgets",
        "arc v0.31",
        ("arc_remove_leaves_no_ghost",),
    ),
    Fault(
        "pending chunks promoted",
        "arc:touch",
        "if ref_cnt(key) < 0:",
        "if ref_cnt(key) < -1:",
        "arc/pending-stays-in-t1",
        "arc v0.30",
        ("arc_touch_promotes_ready_chunks_of_t1",),
    ),
    Fault(
        "misses taken head first",
        "arc:store_miss",
        TAIL_FIRST,
        HEAD_FIRST,
        "arc/miss-adapts",
        "arc v0.31",
    ),
    Fault(
        "a store counts as reuse",
        "arc:finish",
        "if key in inserted:",
        "if False:",
        "arc/store-is-not-reuse",
        "arc v0.33",
        ("arc_finish_tells_stores_from_reuse",),
    ),
    Fault(
        "T1 gives above its target only",
        "arc:evict",
        "at_target = len(state.t1) - taken_t1 >= int(state.target)",
        "at_target = len(state.t1) - taken_t1 > int(state.target)",
        "arc/t1-gives-at-target",
        "arc v0.30",
        ("arc_chooses_the_list_by_its_target", "arc_before_v030_refuses_below_its_target"),
    ),
    Fault(
        "the target not rounded down",
        "arc:evict",
        "at_target = len(state.t1) - taken_t1 >= int(state.target)",
        "at_target = len(state.t1) - taken_t1 >= state.target",
        "arc/t1-gives-at-target",
        "arc v0.30",
        ("arc_chooses_the_list_by_its_target", "arc_recounts_t1_for_each_victim"),
    ),
    Fault(
        "T1 counted once for the batch",
        "arc:evict",
        "at_target = len(state.t1) - taken_t1 >= int(state.target)",
        "at_target = len(state.t1) >= int(state.target)",
        "arc/t1-gives-at-target",
        "arc v0.27",
        ("arc_recounts_t1_for_each_victim",),
    ),
    Fault(
        "busy chunks of T1 not counted",
        "arc:evict",
        "at_target = len(state.t1) - taken_t1 >= int(state.target)",
        "at_target = len(from_t1) - taken_t1 >= int(state.target)",
        "arc/size-counts-busy-chunks",
        "arc v0.30",
        ("arc_chooses_the_list_by_its_target", "arc_evicts_from_t1_alone"),
    ),
    Fault(
        "T1 steps in before v0.30",
        "arc:evict",
        "if more_t1 and (at_target or (falls_back_to_t1 and not more_t2)):",
        "if more_t1 and (at_target or not more_t2):",
        "arc/no-fallback-to-t1",
        "arc v0.27",
        ("arc_before_v030_refuses_below_its_target", "arc_chooses_the_list_by_its_target"),
    ),
    Fault(
        "B2 never trimmed",
        "arc:evict",
        "b2=trim(state.b2 + gone_t2, state.capacity),",
        "b2=state.b2 + gone_t2,",
        "arc/ghosts-trimmed-to-capacity",
        "arc v0.30",
        ("arc_evicts_from_t2_alone", "arc_trims_its_ghosts"),
    ),
    Fault(
        "ghosts counted after the hit",
        "arc:_adapt",
        "step = max(1.0, len(state.b2) / len(state.b1))",
        "step = max(1.0, len(state.b2) / max(1, len(state.b1) - 1))",
        "arc/step-is-ratio-of-ghosts",
        "arc v0.30",
    ),
    Fault(
        "the step in whole numbers",
        "arc:_adapt",
        "step = max(1.0, len(state.b2) / len(state.b1))",
        "step = max(1.0, len(state.b2) // len(state.b1))",
        "arc/step-is-ratio-of-ghosts",
        "arc v0.30",
    ),
    Fault(
        "the target outgrows the capacity",
        "arc:_adapt",
        "target = min(state.target + step, float(state.capacity))  # arc/b1-hit-raises-target",
        "target = state.target + step",
        "arc/target-bounded",
        "arc v0.30",
    ),
    Fault(
        "a hit ghost is not renewed",
        "arc:_adapt",
        "return replace(state, target=target, b1=renew(state.b1, key))",
        "return replace(state, target=target)",
        "arc/ghost-hit-renews",
        "arc v0.30",
    ),
)

ORDER = (
    Fault(
        "the tail before the head",
        "order:by_position",
        "return sorted(keys, key=positions.__getitem__)",
        "return sorted(keys, key=positions.__getitem__, reverse=True)",
        "request-order/by-end-token",
        "lru v0.31",
        ("by_position_sorts_if_all_is_known",),
    ),
    Fault(
        "unknown positions count as the head",
        "order:by_position",
        "positions = {key: at for key in keys if (at := position_of(key)) is not None}",
        "positions = {key: position_of(key) or 0 for key in keys}",
        "request-order/partly-known-keeps-call-order",
        "lru v0.31",
        ("by_position_needs_every_position",),
    ),
    Fault(
        "position 0 counts as unknown",
        "order:by_position",
        "positions = {key: at for key in keys if (at := position_of(key)) is not None}",
        "positions = {key: at for key in keys if (at := position_of(key))}",
        "request-order/by-end-token",
        "lru v0.31",
        ("by_position_sorts_if_all_is_known",),
    ),
    Fault(
        "duplicates sorted",
        "order:by_position",
        "if len(positions) != len(keys):",
        "if len(positions) != len(set(keys)):",
        "request-order/duplicates-keep-call-order",
        "lru v0.31",
        ("by_position_keeps_duplicates",),
    ),
    Fault(
        "the last group first",
        "order:order_request_keys",
        "keys = [key for group in key_groups for key in group]",
        "keys = [key for group in reversed(key_groups) for key in group]",
        "request-order/ties-keep-call-order",
        "lru v0.31",
    ),
)

FILTER = (
    Fault(
        "one key too many tracked",
        "reuse_filter:observe",
        "if count == 0 and len(others) >= limit:",
        "if count == 0 and len(others) > limit:",
        "reuse-filter/tracker-drops-least-recent",
        "filter",
        ("observe_drops_the_least_recent", "observe_stays_within_its_limit"),
    ),
    Fault(
        "seen again, not renewed",
        "reuse_filter:observe",
        "return (*others, (key, count + 1))  # reuse-filter/repeat-renews",
        "return ((key, count + 1), *others) if count else (*others, (key, 1))",
        "reuse-filter/repeat-renews",
        "filter",
        ("observe_counts_and_renews",),
    ),
    Fault(
        "once more than the threshold",
        "reuse_filter:qualifies",
        "return times_seen(tracker, key) >= threshold  # reuse-filter/store-needs-threshold",
        "return times_seen(tracker, key) > threshold",
        "reuse-filter/store-needs-threshold",
        "filter",
        ("admission_needs_the_threshold",),
    ),
    Fault(
        "the decorator drops the most recent",
        "reuse_filter:_ReuseFilter._observe",
        "self.counts.popitem(last=False)  # reuse-filter/tracker-drops-least-recent",
        "self.counts.popitem()",
        "reuse-filter/tracker-drops-least-recent",
        "filter",
    ),
    Fault(
        "the decorator counts offers",
        "reuse_filter:FilterReusedOffloadingManagerV019.prepare_store",
        "passed = [key for key in keys if self._qualifies(key)]",
        "passed = [key for key in keys if self._observe(key) or self._qualifies(key)]",
        "reuse-filter/store-needs-threshold",
        "filter",
    ),
)

TEXTBOOK = (
    Fault(
        "a tie always taken from T1",
        "textbook_arc:replace",
        "from_t1 = size >= 1 and ((in_b2 and size == state.p) or size > state.p)",
        "from_t1 = size >= 1 and size >= state.p",
        "the tie rule of REPLACE",
        "textbook",
    ),
    Fault(
        "a ghost of T1 back into T1",
        "textbook_arc:_case_2",
        "return changed(room, b1=_without(room.b1, key), t2=(*room.t2, key))",
        "return changed(room, b1=_without(room.b1, key), t1=(*room.t1, key))",
        "Case II",
        "textbook",
    ),
    Fault(
        "the step of Case III in whole numbers",
        "textbook_arc:_case_3",
        "step = max(1.0, len(state.b1) / len(state.b2))",
        "step = max(1.0, len(state.b1) // len(state.b2))",
        "Case III",
        "textbook",
    ),
    Fault(
        "the directory one too large",
        "textbook_arc:_case_4",
        "if total == 2 * c:",
        "if total > 2 * c:",
        "|T1| + |T2| + |B1| + |B2| <= 2c",
        "textbook",
    ),
    Fault(
        "the mutable ARC without its tie rule",
        "textbook_arc:TextbookARC._replace",
        "from_t1 = size >= 1 and ((in_b2 and size == self._p) or size > self._p)",
        "from_t1 = size >= 1 and size > self._p",
        "the tie rule of REPLACE",
        "textbook",
    ),
)

PROTOCOL = (
    Fault(
        "pinned chunks cannot be read again",
        "protocol:objection",
        "if key not in chunks or chunks[key].ref_cnt < 0:",
        "if key not in chunks or chunks[key].ref_cnt != 0:",
        "chunk-status/ready-when-not-negative",
        "lru v0.24",
        ("transfers_need_the_right_status",),
    ),
    Fault(
        "pins do not add up",
        "protocol:_load_starts",
        "chunks[key] = Chunk(ref_cnt + 1, slot)",
        "chunks[key] = Chunk(1, slot)",
        "one pin for each load",
        "lru v0.30",
        ("load_starts_and_ends_cancel", "load_start_pins"),
    ),
    Fault(
        "marked at every end of a load",
        "protocol:_load_ends",
        "if ref_cnt == 1 and marks:",
        "if marks:",
        "marks only when the ref count becomes 0",
        "lru v0.24",
        ("load_end_unpins",),
    ),
    Fault(
        "an offer does not protect its own",
        "protocol:_store_offered",
        "state = yield from _evict(state, shortfall, frozenset(event.keys))",
        "state = yield from _evict(state, shortfall, frozenset())",
        "an offer evicts none of its own keys",
        "lru v0.24",
    ),
    Fault(
        "refused with just enough idle",
        "protocol:_store_offered",
        "if setting.edition.counts_idle_chunks and shortfall > state.idle:",
        "if setting.edition.counts_idle_chunks and shortfall >= state.idle:",
        "the manager refuses only if too few chunks are idle",
        "lru v0.24",
    ),
    Fault(
        "a miss reported again",
        "protocol:_store_offered",
        "new_misses = tuple(key for key in absent if key not in request.missed)",
        "new_misses = absent",
        "a miss is reported once to each request",
        "arc v0.31",
    ),
    Fault(
        "freed slots in the other order",
        "protocol:_evict",
        "return State(chunks, state.free + freed, state.requests)",
        "return State(chunks, state.free + freed[::-1], state.requests)",
        "the slot freed last is used next",
        "lru v0.24",
    ),
    Fault(
        "groups in the order of sight",
        "protocol:_request_ends",
        "for index in sorted(groups)",
        "for index in groups",
        "groups by index",
        "lru v0.31",
    ),
    Fault(
        "stored counts though reused",
        "protocol:_request_ends",
        "inserted_only = request.inserted - request.reused",
        "inserted_only = request.inserted",
        "hooks/finish-sets-disjoint",
        "arc v0.31",
    ),
    Fault(
        "reading one's own store is reuse",
        "protocol:_record",
        "found = request.reused.union(key for key in reused if key not in request.inserted)",
        "found = request.reused.union(reused)",
        "reading what one stored is no reuse",
        "arc v0.31",
    ),
    Fault(
        "the reset forgets nobody",
        "protocol:_reset",
        "name: request if request.ended else Request(outdated=True)",
        "name: request",
        "requests begin anew after a reset",
        "lru v0.31",
    ),
    Fault(
        "a reset request may end",
        "protocol:objection",
        "if request is not None and request.outdated:",
        "if False:",
        "no end of a request that did nothing since the reset",
        "lru v0.31",
    ),
)

FAULTS = (*RECENCY, *LRU, *ARC, *ORDER, *FILTER, *TEXTBOOK, *PROTOCOL)
"""All faults, by file."""
