"""Twins: laws that no single answer can break.

Some clauses say that something makes no difference: that an instance is called with iterators
rather than lists, that an eviction was refused, that the cache was cleared before. Each is judged
by two instances that live through the same events, one of them disturbed in the way the clause is
about. From then on they must answer alike.

A disturbance is applied as often as it can be, before every event, and hangs on the events alone,
so that a trace on which the twins differ can be run again and made shorter.
"""

from __future__ import annotations

from collections.abc import Callable

from cachelaw.conformance import flight
from cachelaw.conformance.contract import Breach, told
from cachelaw.conformance.instance import HOST_MANNER, Manner
from cachelaw.conformance.lockstep import Answers, Lockstep, show_victims
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace, describe, rewritten
from cachelaw.reference.protocol import Evict, RequestEnds, Reset, Touch, objection

ASKING = "state/no-side-effect"
"""The clause about what a policy says of itself."""

UNKNOWN = 900
"""A key that no trace uses."""

Make = Callable[[], Lockstep]
"""Begins a run on a new instance."""

Disturb = Callable[[Lockstep], int]
"""Disturbs a run before an event; returns how many calls that made."""


def compare(
    clause: str,
    how: str,
    plain: Make,
    disturbed: Make,
    trace: Trace,
    disturb: Disturb = lambda run: 1,
    rename: Callable[[Event], Event] = lambda event: event,
    *,
    at_the_end: bool = False,
) -> int:
    """Let twins live through a trace, one after the other, and compare their answers.

    Args:
        clause: the clause that forbids a difference.
        how: what is done to the disturbed twin, as reports say it: "without ...".
        plain: begins the run of the twin that is left alone.
        disturbed: begins the run of the other, when the first is over.
        trace: what happens to both; events that no manager could issue are left out.
        disturb: called before each event of the disturbed twin.
        rename: what an event is for the disturbed twin.
        at_the_end: disturb it once more when all is over.

    Returns:
        How many evictions were compared after a disturbance.

    Raises:
        Breach: the twins answered differently.
    """
    life = _lived(plain(), trace)
    run = disturbed()
    met = disturbances = 0
    for event, expected in life:
        flight.recorder.beat()
        disturbances += disturb(run)
        demanded = f"{_shown(expected)} to '{describe(event)}', as without {how}"
        try:
            answers = run.step(rename(event))
        except Breach as breach:
            raise Breach(clause, demanded, breach.actual) from None
        if answers != expected:
            raise Breach(clause, demanded, _shown(answers))
        met += bool(expected) and disturbances > 0
    if at_the_end:
        disturb(run)
    return met


def _lived(run: Lockstep, trace: Trace) -> list[tuple[Event, Answers]]:
    """Run a trace, then empty the cache; return what happened, up to a breach."""
    life: list[tuple[Event, Answers]] = []

    def live(event: Event) -> bool:
        if objection(run.setting, run.state, event) is not None:
            return True
        flight.recorder.beat()
        try:
            life.append((event, run.step(event)))
        except Breach:
            return False  # for other laws to judge
        return True

    if all(live(event) for event in trace.events):
        all(live(event) for event in run.drain())
    return life


def _shown(answers: Answers) -> str:
    return " ".join(show_victims(answer) for answer in answers) or "nothing"


# --- The twin laws -------------------------------------------------------------------------------


def _new(subject: Subject, trace: Trace, manner: Manner = HOST_MANNER) -> Make:
    return lambda: Lockstep(subject, trace.setting, manner=manner)


def _equal_keys(subject: Subject, trace: Trace) -> int:
    return compare(
        "keys/equal-is-same",
        "fresh objects for equal keys",
        _new(subject, trace, Manner(fresh_keys=False)),
        _new(subject, trace),
        trace,
    )


def _iterables(subject: Subject, trace: Trace) -> int:
    return compare(
        "touch/any-iterable",
        "iterators in place of lists",
        _new(subject, trace),
        _new(subject, trace, Manner(one_shot=True)),
        trace,
    )


def _gets(subject: Subject, trace: Trace) -> int:
    return compare(
        "get/no-side-effect",
        "more calls of get",
        _new(subject, trace),
        _new(subject, trace, Manner(extra_gets=True)),
        trace,
    )


def _refusals(subject: Subject, trace: Trace) -> int:
    def ask_too_much(run: Lockstep) -> int:
        eligible = run.state.eligible()
        run.step(Evict(len(eligible) + 1))
        if eligible:
            run.step(Evict(1, eligible))
        return 1

    return compare(
        "evict/none-changes-nothing",
        "evictions that were refused",
        _new(subject, trace),
        _new(subject, trace),
        trace,
        ask_too_much,
    )


def _zeros(subject: Subject, trace: Trace) -> int:
    def ask_for_none(run: Lockstep) -> int:
        run.step(Evict(0))
        run.step(Evict(0, run.state.eligible()))
        return 2

    return compare(
        "evict/zero-is-empty",
        "evictions of nothing",
        _new(subject, trace),
        _new(subject, trace),
        trace,
        ask_for_none,
    )


def _absent(subject: Subject, trace: Trace) -> int:
    inserted: set[int] = set()

    def touch_strangers(run: Lockstep) -> int:
        """Touch keys that are neither resident nor ghosts, some of which will be stored yet."""
        inserted.update(run.state.chunks)
        strangers = [key for key in trace.keys if key not in inserted]
        run.step(Touch((*strangers, UNKNOWN), "u99"))
        return 1

    return compare(
        "touch/absent-ignored",
        "touches of keys that were never stored",
        _new(subject, trace),
        _new(subject, trace),
        trace,
        touch_strangers,
    )


def _others(subject: Subject, trace: Trace) -> int:
    others: list[Lockstep] = []
    left = iter(trace.events)

    def with_another() -> Lockstep:
        others.append(_new(subject, trace)())
        return _new(subject, trace)()

    def drive_other(run: Lockstep) -> int:
        (other,) = others
        for event in left:
            shifted = _shifted(event)
            if objection(other.setting, other.state, shifted) is None:
                other.step(shifted)
                return 1
        return 0

    return compare(
        "instances/share-nothing",
        "another instance at work",
        _new(subject, trace),
        with_another,
        trace,
        drive_other,
    )


def _shifted(event: Event) -> Event:
    """Return the event on neighbouring keys, so that instances that share would disagree."""
    return rewritten(event, keys=lambda keys: tuple(key + 1 for key in reversed(keys)))


def _cleared(subject: Subject, trace: Trace) -> int:
    """One twin has lived through the whole trace before, and then been cleared."""
    if not trace.edition.has_clear:
        return 0

    def after_a_life() -> Lockstep:
        run = _new(subject, trace)()
        for event in (*trace.events, Reset()):
            if objection(run.setting, run.state, event) is None:
                run.step(event)
        return run

    # A request that ends in the second life is a new one; others go on with their contexts.
    ending = {event.request for event in trace.events if isinstance(event, RequestEnds)}

    def second_life(event: Event) -> Event:
        return rewritten(event, request=lambda name: f"{name}again" if name in ending else name)

    return compare(
        "clear/equals-new",
        "an earlier life and a clear",
        _new(subject, trace),
        after_a_life,
        trace,
        rename=second_life,
    )


def _asked(subject: Subject, trace: Trace) -> int:
    """Ask for the state before every event; then, with new twins, only after those of one kind.

    To be asked all the time can hide what being asked once does.
    """
    if not subject.offers_state:
        return 0
    kinds = {type(event).__name__: type(event) for event in trace.events}
    every: tuple[type, ...] = (object, *(kind for _, kind in sorted(kinds.items())))
    return sum(_asked_after(subject, trace, kind) for kind in every)


def _asked_after(subject: Subject, trace: Trace, kind: type) -> int:
    last: object = None

    def ask(run: Lockstep) -> int:
        if not isinstance(last, kind):
            return 0
        try:
            run.instance.policy.cachelaw_state()
        except (Exception, SystemExit) as error:
            raise Breach(ASKING, "a state", f"cachelaw_state raised {told(error)}") from error
        return 1

    def note(event: Event) -> Event:
        nonlocal last
        last = event
        return event

    how = "being asked for its state"
    twins = _new(subject, trace), _new(subject, trace)
    # Where nothing can be evicted, nothing follows the last event.
    return compare(ASKING, how, *twins, trace, ask, note, at_the_end=True)


TWINS: dict[str, Callable[[Subject, Trace], int]] = {
    "keys/equal-is-same": _equal_keys,
    "touch/any-iterable": _iterables,
    "get/no-side-effect": _gets,
    "touch/absent-ignored": _absent,
    "evict/zero-is-empty": _zeros,
    "evict/none-changes-nothing": _refusals,
    "instances/share-nothing": _others,
    "clear/equals-new": _cleared,
    ASKING: _asked,
}
"""For each twin law, a run of both twins: returns how often they were compared.

Raises `Breach` under that clause where the twins differ, or under another where the disturbance
itself meets with a wrong answer.
"""
