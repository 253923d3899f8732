"""Diagnosis: which known reading of a policy a subject follows, where it is not the right one.

Whoever implements ARC from the paper, or LRU from another release, is not wrong at random. A
*reading* is the reference with one decision taken differently. The subject is watched through the
probes and some random programs, and each reading is put to the same calls. One that gives every
answer that the subject gave explains it; if no reading does alone, two together may.

Readings of ARC are the reference with some classes of the zoo of mutants mixed in, those of LRU its
functional cores, told of some calls in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, Protocol

from cachelaw.conformance.certify import Budget, drive, scope_of
from cachelaw.conformance.finding import JudgedRun, Tally
from cachelaw.conformance.instance import Instance, PlainCodec
from cachelaw.conformance.lockstep import Answers
from cachelaw.conformance.mutants.zoo import arc_ghosts, arc_target, arc_uses
from cachelaw.conformance.oracle import Status
from cachelaw.conformance.probes import PROBES, contract_probes
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.reference.cores import World, core_of
from cachelaw.reference.editions import V024, V030, V031, V033, Edition
from cachelaw.reference.keys import OffloadKey
from cachelaw.reference.lru import RequestRank
from cachelaw.reference.order import by_position
from cachelaw.reference.protocol import Call, Setting
from cachelaw.reference.recency import trim

MOST_PROGRAMS = 40
"""Random programs in which a subject is watched besides the probes."""

MOST_EVENTS = 150
"""Events in each."""

MOST_READINGS = 3
"""Readings that are named, if several give the same answers."""


# --- What a subject answered ---------------------------------------------------------------------


class Heard(NamedTuple):
    """A call, and the victims if it was an `evict`: None if that was refused."""

    call: Call
    victims: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Life:
    """All calls that were made on one instance, up to the first that broke the contract."""

    setting: Setting[int]
    heard: tuple[Heard, ...]


def watch(subject: Subject, budget: Budget, seed: int) -> list[Life]:
    """Drive a subject through probes and random programs and note what it answers.

    Args:
        subject: a policy of the profile `lru` or `arc`.
        budget: how many random programs to run, up to `MOST_PROGRAMS`.
        seed: what their choices come from.
    """
    edition, freely = subject.edition, replace(subject, profile="contract")
    lives: list[Life] = []
    for probe in (*PROBES[subject.profile](edition), *contract_probes(edition)):
        run = _WatchedRun(freely, probe.trace(edition))
        run.live_all()
        lives.append(run.life)
    for number in range(min(budget.programs, MOST_PROGRAMS)):
        rng, trace = scope_of(seed, number, edition)
        run = _WatchedRun(freely, trace)
        drive(run, rng, min(budget.events, MOST_EVENTS))
        lives.append(run.life)
    return lives


class _WatchedRun(JudgedRun):
    """A run of which the calls and the answers are noted."""

    def __init__(self, subject: Subject, trace: Trace) -> None:
        super().__init__(subject, trace, Tally(Counter()), thorough=False)
        self._calls: list[Call] = []
        self.lockstep.watch = self._calls
        self._victims: list[tuple[int, ...] | None] = []

    def live(self, event: Event) -> Answers | None:
        """Let one event happen, and note the answers to its evictions."""
        answers = super().live(event)
        self._victims.extend(answers or ())
        return answers

    @property
    def life(self) -> Life:
        """What has been noted, without the look-ups."""
        heard: list[Heard] = []
        victims = iter(self._victims)
        for call in self._calls:
            if call.method == "evict":
                try:
                    heard.append(Heard(call, next(victims)))
                except StopIteration:
                    break  # the call that broke the contract
            elif call.method != "get":
                heard.append(Heard(call, None))
        return Life(self.lockstep.setting, tuple(heard))


# --- What a reading answers ----------------------------------------------------------------------


class Player(Protocol):
    """An instance of a reading."""

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        """Make one call; return the victims of an `evict`, None if it refused or for others."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to take a policy.

    Attributes:
        name: in a few words.
        says: what it does, to follow "answers exactly like".
        begin: makes an instance of it.
    """

    name: str
    says: str
    begin: Callable[[Setting[int]], Player]

    def explains(self, lives: Iterable[Life]) -> bool:
        """Say whether it gives every answer that was noted."""
        return all(self._explains(life) for life in lives)

    def _explains(self, life: Life) -> bool:
        player = self.begin(life.setting)
        for call, victims in life.heard:
            answer = player.carry_out(call)
            if call.method == "evict" and answer != victims:
                return False
        return True


class _OfClass:
    """A class of policies, driven as hosts of the setting's edition drive it."""

    def __init__(self, build: Callable[[int], Any], setting: Setting[int]) -> None:
        self._instance = Instance(build, setting, Status, PlainCodec())

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        answer = self._instance.carry_out(call)
        if call.method != "evict" or answer is None:
            return None
        victims = tuple(key for key, _ in answer)
        for key in victims:
            del self._instance.chunks[key]
        return victims


Change = Callable[[Call, Setting[int]], "Call | None"]
"""What a reading makes of a call; None if it does not listen to it."""


class _OfCore:
    """A functional core of any edition, told of calls as the reading takes them."""

    def __init__(
        self, profile: str, edition: Edition, change: Change, setting: Setting[int]
    ) -> None:
        core = core_of(profile, edition)
        self._apply = core.apply
        self._state = core.start(setting.capacity)
        self._change = change
        self._setting = setting
        self._refs: dict[int, int] = {}
        self._memories: dict[str, RequestRank | None] = {}

    def carry_out(self, call: Call) -> tuple[int, ...] | None:
        method, arguments = call
        if method == "set_ref_cnt":
            self._refs[arguments[0]] = arguments[1]
            return None
        if method == "insert":
            self._refs[arguments[0]] = -1
        taken = self._change(call, self._setting)
        victims: tuple[int, ...] | None = None
        if taken is not None:
            request = str(arguments[-1]) if method in _NAMED else ""
            world = World(
                self._refs.__getitem__, self._setting.position_of, self._memories.get(request)
            )
            self._state, victims, memory = self._apply(self._state, taken, world)
            if request:
                self._memories[request] = memory
        if method == "remove":
            del self._refs[arguments[0]]
        elif method == "clear":
            self._refs.clear()
        for key in victims or ():
            del self._refs[key]
        return victims


_NAMED = ("insert", "touch", "on_store_miss", "on_request_access", "on_request_finished")
"""Calls that bear the name of a request last."""


# --- Readings of ARC -----------------------------------------------------------------------------


class _Arc(arc_uses.OpenArc):
    """Right, in the editions in which `falls_back` is what it should be."""

    falls_back = True

    def choose(
        self, n: int, from_t1: list[OffloadKey], from_t2: list[OffloadKey]
    ) -> list[OffloadKey] | None:
        victims: list[OffloadKey] = []
        size = len(self.state.t1)
        while len(victims) < n:
            gives = self.t1_gives(size, self.state.target) or (self.falls_back and not from_t2)
            if from_t1 and gives:
                victims.append(from_t1.pop(0))
                size -= 1
            elif from_t2:
                victims.append(from_t2.pop(0))
            else:
                return None
        return victims


class _PaperTie(arc_uses.OpenArc):
    hit_b2 = False

    def adapt(self, key: OffloadKey) -> None:
        self.hit_b2 = key in self.state.b2
        super().adapt(key)

    def t1_gives(self, size: int, target: float) -> bool:
        return size > target or (size == target and self.hit_b2)


class _AllWithinTwice(arc_uses.OpenArc):
    def remember(self, gone_t1: tuple[OffloadKey, ...], gone_t2: tuple[OffloadKey, ...]) -> None:
        state, c = self.state, self.cache_capacity
        b1 = trim(state.b1 + gone_t1, c - len(state.t1))
        held = len(state.t1) + len(state.t2) + len(b1)
        self.state = replace(state, b1=b1, b2=trim(state.b2 + gone_t2, 2 * c - held))


class _TwiceAsManyGhosts(arc_uses.OpenArc):
    def remember(self, gone_t1: tuple[OffloadKey, ...], gone_t2: tuple[OffloadKey, ...]) -> None:
        state, most = self.state, 2 * self.cache_capacity
        b1, b2 = trim(state.b1 + gone_t1, most), trim(state.b2 + gone_t2, most)
        self.state = replace(state, b1=b1, b2=b2)


class _FallsBack:
    falls_back = True


class _DoesNotFallBack:
    falls_back = False


class _MissUnheard(arc_uses.OpenArc):
    def on_store_miss(self, keys: Iterable[OffloadKey], req_context: Any) -> None: ...


class _FinishUnheard(arc_uses.OpenArc):
    def on_request_finished(
        self, groups: Any, inserted: Any, reused: Any, context: Any
    ) -> None: ...


class _FinishTouches(arc_uses.OpenArc):
    def on_request_finished(self, groups: Any, inserted: Any, reused: Any, context: Any) -> None:
        for keys in groups:
            self.touch(keys, context)


class _AdaptsAtInsert(arc_uses.OpenArc):
    """Adapts when a ghost is stored again, by which time room has been made."""

    _storing = False

    def admit(self, key: OffloadKey) -> None:
        self._storing = True
        self.adapt(key)
        self._storing = False
        super().admit(key)

    def adapt(self, key: OffloadKey) -> None:
        if self._storing:
            super().adapt(key)


PAPER = (_PaperTie, arc_uses.GhostIntoT2, _AllWithinTwice)

ARC_PARTS: tuple[tuple[str, str, tuple[type, ...]], ...] = (
    (
        "paper's tie rule",
        "with the tie rule of the paper: T1 gives above its target, and at it only after a ghost "
        "hit in B2",
        (_PaperTie,),
    ),
    (
        "T1 gives above its target only",
        "in which T1 gives above its target, and not at it",
        (arc_target.StrictlyGreater,),
    ),
    (
        "target not rounded",
        "that compares T1 with the target as it is, not rounded down",
        (arc_target.TargetRoundedUp,),
    ),
    (
        "integer target",
        "that rounds the target down whenever it moves",
        (arc_target.TargetIsInteger,),
    ),
    ("integer step", "whose step is an integer division", (arc_target.StepTruncated,)),
    ("step of one", "whose target always moves by one", (arc_target.StepIsOne,)),
    (
        "sizes taken after the hit",
        "that takes the sizes of the ghost lists after the ghost has left its own",
        (arc_target.SizesTakenAfter,),
    ),
    (
        "ghosts to T2",
        "that lets a ghost that is stored again enter T2, as the paper does",
        (arc_uses.GhostIntoT2,),
    ),
    (
        "ghost leaves when hit",
        "that takes a ghost away when it is hit, and not when it is stored again",
        (arc_target.GhostTaken,),
    ),
    (
        "ghost keeps its place",
        "that does not renew a ghost that is hit",
        (arc_target.GhostKeepsPlace,),
    ),
    (
        "T1 and B1 within c",
        "that bounds T1 and B1 together by the capacity, as the paper does, and B2 alone",
        (arc_ghosts.GhostsShareBudget,),
    ),
    (
        "2c in all four lists",
        "that bounds its ghosts as the paper does: T1 and B1 together by the capacity, all four "
        "lists by twice the capacity",
        (_AllWithinTwice,),
    ),
    (
        "2c ghosts",
        "that lets each ghost list grow to twice the capacity",
        (_TwiceAsManyGhosts,),
    ),
    ("unbounded ghosts", "that never forgets a ghost", (arc_ghosts.GhostsUnbounded,)),
    (
        "no fallback to T1",
        "of releases before v0.30: it refuses when T1 is below its target and T2 has nothing to "
        "give",
        (_DoesNotFallBack,),
    ),
    (
        "fallback to T1",
        "of v0.30 and later: T1 gives below its target when T2 has nothing to give",
        (_FallsBack,),
    ),
    (
        "touch does not adapt",
        "whose target does not move when a ghost is touched, only when it is offered",
        (arc_uses.TouchDoesNotAdapt,),
    ),
    (
        "only touch adapts",
        "whose target moves when a ghost is touched, and not when it is offered",
        (_MissUnheard,),
    ),
    (
        "adapts at insert",
        "whose target moves when a ghost is stored again, after room was made for it",
        (_AdaptsAtInsert,),
    ),
    (
        "pending chunks are promoted",
        "that promotes a touched chunk that is still being stored",
        (arc_uses.PromotesPending,),
    ),
    (
        "size without busy chunks",
        "that counts only the idle chunks of T1 when it compares it with the target",
        (arc_target.SizeOfIdleOnly,),
    ),
    (
        "one decision for a batch",
        "that decides once for all victims of a batch which list gives",
        (arc_target.DecidesOnce,),
    ),
    (
        "stores are uses",
        "that promotes at the end of a request what it only stored",
        (arc_uses.StoreIsReuse,),
    ),
    (
        "request's end is a touch",
        "with the default hook: the end of a request touches one group after the other",
        (_FinishTouches,),
    ),
    (
        "request's end unheard",
        "of v0.30, which is not told of the end of a request",
        (_FinishUnheard,),
    ),
    (
        "paper's ARC",
        "of the paper: its tie rule, ghosts stored again into T2, and 2c keys in all four lists",
        PAPER,
    ),
)
"""Name, what it says, and the classes that are mixed in."""


def arc_readings(edition: Edition) -> Iterator[tuple[Reading, tuple[type, ...]]]:
    """Yield the readings of ARC, each with what is mixed into it."""
    for name, says, parts in ARC_PARTS:
        yield Reading(name, f"an ARC {says}", arc_of(edition, parts)), parts


def arc_of(edition: Edition, parts: Sequence[type]) -> Callable[[Setting[int]], Player]:
    """Return what makes an instance of ARC with some classes mixed into it."""
    falls_back = (
        {} if any("falls_back" in vars(p) for p in parts) else {"falls_back": edition >= V030}
    )
    made: Any = type("Reading", (*parts, _Arc), falls_back)
    return lambda setting: _OfClass(made, setting)


def _pairs(
    edition: Edition, single: Sequence[tuple[Reading, tuple[type, ...]]]
) -> Iterator[Reading]:
    """Yield two readings together, those that do not speak of the same decision."""
    for (one, some), (other, more) in combinations(single, 2):
        decided = [name for part in (*some, *more) for name in vars(part) if name[0] != "_"]
        decided = [name for name in decided if name != "breaks"]
        if len(some) == len(more) == 1 and len(set(decided)) == len(decided):
            says = f"{one.says}, and {other.says.removeprefix('an ARC ')}"
            yield Reading(f"{one.name}; {other.name}", says, arc_of(edition, (*some, *more)))


# --- Readings of LRU -----------------------------------------------------------------------------


def _as_it_is(call: Call, setting: Setting[int]) -> Call:
    return call


def _without(*methods: str) -> Change:
    return lambda call, setting: None if call.method in methods else call


def _head_first(call: Call, setting: Setting[int]) -> Call:
    if call.method != "touch":
        return call
    keys, request = call.arguments
    return Call("touch", (keys[::-1], request))


def _finish_head_first(call: Call, setting: Setting[int]) -> Call:
    if call.method != "on_request_finished":
        return call
    groups, _, _, request = call.arguments
    every = [key for group in groups for key in group]
    used = by_position(every, lambda key: setting.position_of(request, key))
    return Call("touch", (tuple(reversed(used)), request))


def _group_after_group(call: Call, setting: Setting[int]) -> Call:
    """Use the first group first, each tail first; a batch is taken in from its end."""
    if call.method != "on_request_finished":
        return call
    groups, _, _, request = call.arguments
    return Call("touch", (tuple(key for group in reversed(groups) for key in group), request))


LRU_EDITIONS = (
    ("LRU of v0.31", "the LRU of v0.19 to v0.22 and of v0.31: one list of all chunks, in which "
     "transfers are no uses", V031),
    ("LRU of v0.24", "the LRU of v0.24 to v0.30: becoming idle is a use, and a touch of a busy "
     "chunk is lost", V024),
    ("LRU of v0.33", "the LRU of v0.33: all batches of a running request share one rank", V033),
)  # fmt: skip
"""Name, what it says, and an edition that has the order."""

LRU_CHANGES: tuple[tuple[str, str, Change], ...] = (
    (
        "first in, first out",
        "a FIFO: nothing but the store is a use",
        _without("touch", "on_store_miss", "on_request_access", "on_request_finished",
                 "mark_evictable", "mark_non_evictable"),
    ),
    ("batch head first", "an LRU that takes a batch in from its head, so that the tail outlives "
     "it", _head_first),
    ("request's end head first", "an LRU in which, at the end of a request, the tail of the "
     "prefix outlives the head", _finish_head_first),
    ("request's end by groups", "an LRU that takes in one group after the other at the end of a "
     "request", _group_after_group),
    ("request's end unheard", "an LRU that is not told of the end of a request",
     _without("on_request_finished")),
)  # fmt: skip
"""Name, what it says, and what the reading makes of a call; the order is that of the edition."""


def lru_readings(edition: Edition) -> Iterator[Reading]:
    """Yield the readings of LRU under hosts of an edition."""
    for name, says, other in LRU_EDITIONS:
        if other == V033 and edition < V033:
            continue  # an insert without a request has no rank
        yield Reading(name, says, _lru_of(other, _as_it_is))
    for name, says, change in LRU_CHANGES:
        base = V031 if name == "first in, first out" else edition
        yield Reading(name, says, _lru_of(base, change))


def _lru_of(edition: Edition, change: Change) -> Callable[[Setting[int]], Player]:
    return lambda setting: _OfCore("lru", edition, change, setting)


def _plain(profile: str, edition: Edition) -> Reading:
    """Return the right reading."""
    says = f"the {profile.upper()} of {edition}"
    return Reading(
        f"{profile.upper()} of {edition}",
        says,
        lambda setting: _OfCore(profile, edition, _as_it_is, setting),
    )


# --- The diagnosis -------------------------------------------------------------------------------


def diagnose(subject: Subject, budget: Budget, seed: int = 1) -> list[dict[str, str]]:
    """Say which known readings explain all that a subject answers.

    Args:
        subject: a policy that is not what it claims to be.
        budget: how many random programs to watch it in.
        seed: what their choices come from.

    Returns:
        Up to `MOST_READINGS` readings, each with its name, `reading`, and what it `says`. None if
        no reading explains all answers, if the subject claims no policy, or if it was not seen to
        depart from the reference.
    """
    if subject.profile not in PROBES or subject.randomized:
        return []
    edition = subject.edition
    lives = watch(subject, budget, seed)
    if _plain(subject.profile, edition).explains(lives):
        return []
    found = [reading for reading in _readings(subject.profile, edition) if reading.explains(lives)]
    if not found and subject.profile == "arc":
        pairs = _pairs(edition, tuple(arc_readings(edition)))
        found = [reading for reading in pairs if reading.explains(lives)]
    answers = sum(heard.call.method == "evict" for life in lives for heard in life.heard)
    watched = f"all {answers:,} evictions of {len(lives)} programs are answered exactly as by"
    return [
        {"reading": reading.name, "says": f"explains it: {watched} {reading.says}"}
        for reading in found[:MOST_READINGS]
    ]


def _readings(profile: str, edition: Edition) -> Iterator[Reading]:
    """Yield single readings, those of the profile first, and then the other policy."""
    if profile == "arc":
        yield from (reading for reading, _ in arc_readings(edition))
        yield from lru_readings(edition)
    else:
        yield from lru_readings(edition)
        yield _plain("arc", edition)
