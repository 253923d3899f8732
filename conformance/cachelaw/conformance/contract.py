"""The universal laws that a single call can break, judged as the calls are made.

The contract is a relation, not a function: any policy that keeps to it passes, whatever it evicts.
The witness knows what the manager knows, who is resident and with what ref count, looks at each
answer, and follows the policy's own choice of victims.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cachelaw.conformance.instance import Instance
from cachelaw.conformance.plain import counted
from cachelaw.reference.protocol import Call

USES = ("touch", "on_store_miss", "on_request_access", "on_request_finished")
"""Methods that report uses and change no residency."""

THOROUGH_UP_TO = 64
"""The capacity beyond which a look at every key after every call takes longer than it tells."""

RESIDENCY = {
    "get": "get/no-side-effect",
    "insert": "insert/makes-resident",
    "remove": "remove/forgets",
    "clear": "clear/forgets-all",
    "mark_evictable": "marks/keep-residency",
    "mark_non_evictable": "marks/keep-residency",
    **dict.fromkeys(USES, "touch/keeps-residency"),
}
"""The clause that a call breaks if residents are not as they should be after it."""


@dataclass(frozen=True, slots=True)
class Breach(Exception):
    """A clause is broken.

    Attributes:
        clause: the clause's name.
        expected: what the clause demands, in words.
        actual: what happened, in words.
    """

    clause: str
    expected: str
    actual: str


class Witness:
    """Makes the calls of a manager on one instance and judges each answer.

    Args:
        instance: the policy under test.
        met: counts, by clause, how often its condition was met.
        thorough: look at every key ever seen after every call, not only at those of the call;
            up to capacity 64.
        may_refuse: the policy has declared that it refuses evictions at will.
    """

    def __init__(
        self,
        instance: Instance,
        met: Counter[str],
        *,
        thorough: bool = False,
        may_refuse: bool = False,
    ) -> None:
        self.instance = instance
        self.met = met
        self.refusals: list[Breach] = []
        """Breaches of `evict/none-only-when-short`, after which a run can go on."""
        self._thorough = thorough and instance.setting.capacity <= THOROUGH_UP_TO
        self._may_refuse = may_refuse
        self._ref_cnt: dict[int, int] = {}
        self._slot: dict[int, int] = {}
        self._known: set[int] = set()
        self._slot_name = ""
        """What a status calls its slot; not known before the first insert."""

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        """Make one call.

        Returns:
            The victims of an `evict`, None if it refused or for any other call.

        Raises:
            Breach: the call broke a clause.
        """
        method, arguments = call
        if method == "set_ref_cnt":
            self._set_ref_cnt(*arguments)
            return None
        leaving = self._leaving(call) if method in ("remove", "clear") else ()
        try:
            answer = self.instance.carry_out(call)
        except (Exception, SystemExit) as error:
            raise _raised(error) from error
        self.met["call/valid-call-returns"] += 1
        for passed, before in self.instance.passed:
            self._judge_argument(passed, before)
        for key, chunk in leaving:
            self._judge_status(key, chunk)
        if method == "evict":
            return self._judge_evict(answer, *arguments)
        if method == "get":
            self._judge_get(arguments[0], answer)
        else:
            self._judge_other(method, arguments)
        return None

    def _set_ref_cnt(self, key: int, ref_cnt: int) -> None:
        """Let the manager write a ref count, after a look at what it wrote last."""
        chunk = self.instance.chunks[key]
        self._judge_status(key, chunk)
        chunk.ref_cnt = self._ref_cnt[key] = ref_cnt

    def _leaving(self, call: Call) -> list[tuple[int, Any]]:
        """Return the chunks that a `remove` or a `clear` takes out of the cache."""
        chunks = self.instance.chunks
        if call.method == "clear":
            return list(chunks.items())
        return [(call.arguments[0], chunks[call.arguments[0]])]

    # --- after every call ---

    def _judge_argument(self, passed: Any, before: Any) -> None:
        if before:
            self.met["call/arguments-unchanged"] += 1
        if passed != before:
            raise Breach(
                "call/arguments-unchanged",
                f"the {type(passed).__name__} passed still has {counted(len(before), 'key')}",
                f"it has been changed and has {len(passed)}",
            )

    def _judge_other(self, method: str, arguments: tuple[Any, ...]) -> None:
        clause = RESIDENCY[method]
        keys: Sequence[int]
        match method:
            case "insert":
                keys = arguments[:1]
                self._ref_cnt[keys[0]] = -1
                self._slot[keys[0]] = arguments[1]
                if not self._slot_name:
                    says_chunk = hasattr(self.instance.chunks[keys[0]], "chunk_id")
                    self._slot_name = "chunk_id" if says_chunk else "block_id"
            case "mark_evictable" | "mark_non_evictable":
                keys = arguments[:1]
            case "remove":
                keys = arguments[:1]
                del self._ref_cnt[keys[0]]
            case "on_request_finished":
                keys = [key for group in arguments[0] for key in group]
            case "clear":
                keys = tuple(self._known)
                self._ref_cnt.clear()
            case _:
                keys = arguments[0]
        self._known.update(keys)
        if keys:
            self.met[clause] += 1
        if method in USES and not self._ref_cnt.keys() >= set(keys):
            self.met["touch/absent-ignored"] += 1
        self._judge_residency(clause, self._looked_at(keys))

    def _judge_get(self, key: int, answer: Any) -> None:
        if key in self._ref_cnt:
            self.met["get/same-object"] += 1
            if answer is not self.instance.chunks[key]:
                raise _another(key, answer)
        else:
            self.met["get/absent-is-none"] += 1
            if answer is not None:
                actual = f"an object of type {type(answer).__name__}"
                raise Breach("get/absent-is-none", f"None, since {key} is absent", actual)
        if self._thorough:
            self._judge_residency("get/no-side-effect", self._looked_at(()))

    def _judge_status(self, key: int, chunk: Any) -> None:
        """Look whether a status is still as the manager wrote it."""
        self.met["chunk-status/manager-writes"] += 1
        slot = getattr(chunk, self._slot_name, None)
        if chunk.ref_cnt != self._ref_cnt[key] or slot != self._slot[key]:
            raise Breach(
                "chunk-status/manager-writes",
                f"the status of {key} is as the manager left it: ref count "
                f"{self._ref_cnt[key]}, slot {self._slot[key]}",
                f"ref count {chunk.ref_cnt}, slot {slot}",
            )

    def _looked_at(self, keys: Sequence[int]) -> Sequence[int]:
        """Return the keys to look at after a call: those that it is about, or all."""
        return sorted(self._known) if self._thorough else keys

    def _judge_residency(self, clause: str, keys: Sequence[int]) -> None:
        """Ask `get` for keys: is resident who should be?"""
        policy, encode = self.instance.policy, self.instance.codec.encode
        for key in keys:
            try:
                found = policy.get(encode(key))
            except (Exception, SystemExit) as error:
                raise _raised(error) from error
            if key not in self._ref_cnt:
                if found is not None:
                    raise Breach(clause, f"{key} is absent after the call", "it is resident")
            elif found is None:
                raise Breach(clause, f"{key} is still resident after the call", "it is absent")
            elif found is not self.instance.chunks[key]:
                raise _another(key, found)

    # --- evict ---

    def _judge_evict(
        self, answer: Any, n: int, protected: frozenset[int]
    ) -> tuple[int, ...] | None:
        if answer is None:
            self._judge_refusal(n, protected)
            return None
        if n == 0:
            self.met["evict/zero-is-empty"] += 1
            if answer != []:
                raise Breach("evict/zero-is-empty", "an empty list", _shown(answer))
        victims = self._judge_victims(answer, n, protected)
        for key in victims:
            self._judge_status(key, self.instance.chunks[key])
            del self._ref_cnt[key], self.instance.chunks[key]
        if victims:
            self.met["evict/forgets-victims"] += 1
            self._judge_residency("evict/forgets-victims", victims)
        if victims and self._ref_cnt:
            self.met["evict/keeps-others"] += 1
            self._judge_residency("evict/keeps-others", tuple(self._ref_cnt))
        return victims

    def _judge_refusal(self, n: int, protected: frozenset[int]) -> None:
        if n == 0:
            raise Breach("evict/zero-is-empty", "an empty list", "None")
        idle = [k for k, r in self._ref_cnt.items() if r == 0 and k not in protected]
        if len(idle) >= n and not self._may_refuse:
            self.refusals.append(
                Breach(
                    "evict/none-only-when-short",
                    f"{n} of the idle, unprotected {_listed(idle)}",
                    "None",
                )
            )
        self.met["evict/none-changes-nothing"] += bool(self._ref_cnt)
        looked_at = self._looked_at(tuple(self._ref_cnt))
        self._judge_residency("evict/none-changes-nothing", looked_at)

    def _judge_victims(self, answer: Any, n: int, protected: frozenset[int]) -> tuple[int, ...]:
        met, residents = self.met, self._ref_cnt
        met["evict/list-of-pairs"] += 1
        if not isinstance(answer, list) or not all(
            isinstance(entry, tuple) and len(entry) == 2 for entry in answer
        ):
            raise Breach("evict/list-of-pairs", "a list of (key, chunk) tuples", _shown(answer))

        met["evict/exact-count"] += n > 0
        met["evict/none-only-when-short"] += n > 0
        decoded = [self.instance.codec.decode(made) for made, _ in answer]
        shown = f"[{', '.join('?' if key is None else str(key) for key in decoded)}]"
        if len(answer) != n:
            raise Breach("evict/exact-count", f"exactly {counted(n, 'victim')}, or None", shown)

        met["evict/distinct"] += n > 1
        if len(set(decoded)) != n:
            raise Breach("evict/distinct", f"{n} different victims", shown)

        met["evict/resident-only"] += n > 0
        met["evict/idle-only"] += n > 0 and any(ref_cnt != 0 for ref_cnt in residents.values())
        met["evict/protected-honoured"] += n > 0 and any(
            residents.get(key) == 0 for key in protected
        )
        met["evict/same-object"] += n > 0
        victims: list[int] = []
        for key, (_, chunk) in zip(decoded, answer, strict=True):
            if key is None or key not in residents:
                raise Breach("evict/resident-only", f"residents of {_listed(residents)}", shown)
            if residents[key] != 0:
                pins = f"pinned by {counted(residents[key], 'load')}"
                state = "pending" if residents[key] < 0 else pins
                raise Breach("evict/idle-only", "idle chunks", f"{shown}; {key} is {state}")
            if key in protected:
                raise Breach("evict/protected-honoured", f"none of {_listed(protected)}", shown)
            if chunk is not self.instance.chunks[key]:
                raise Breach(
                    "evict/same-object", f"the object inserted under {key}", "another object"
                )
            victims.append(key)
        return tuple(victims)


def _raised(error: BaseException) -> Breach:
    return Breach("call/valid-call-returns", "the call returns", f"it raised {told(error)}")


def told(error: BaseException) -> str:
    """Return what an exception of the subject says, in a few words."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    return f"{type(error).__name__}: {_without_addresses(text)[:200]}"


def in_an_answer(method: str, error: Exception) -> Breach | None:
    """Return what is broken if looking at an answer raised an error; None if it is our own fault.

    Args:
        method: the call that was answered.
        error: what was raised, somewhere below the judgement of the answer.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    if module.startswith(("cachelaw.conformance.", "cachelaw.reference.")):
        return None
    clause = "evict/list-of-pairs" if method == "evict" else "get/same-object"
    return Breach(clause, "an answer that can be looked at", f"looking at it raised {told(error)}")


def _another(key: int, found: Any) -> Breach:
    actual = "None" if found is None else f"another object, of type {type(found).__name__}"
    return Breach("get/same-object", f"the object inserted under {key}", actual)


def _without_addresses(text: str) -> str:
    """Where an object lies in memory differs from run to run, and says nothing."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _listed(keys: Iterable[int]) -> str:
    return "{" + ", ".join(str(key) for key in sorted(keys)) + "}"


def _shown(answer: Any) -> str:
    try:
        text = _without_addresses(repr(answer))
    except Exception:
        return f"an object of type {type(answer).__name__} that cannot be shown"
    return text if len(text) <= 60 else text[:57] + "..."
