"""Lockstep: a policy and, where its profile determines every answer, the reference beside it.

One run drives the subject through events as a manager would. The witness judges the universal
laws; if a profile is claimed, the reference of the edition makes the same calls and every eviction
must come out the same, order included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cachelaw.conformance.contract import Breach, Witness, in_an_answer
from cachelaw.conformance.instance import HOST_MANNER, Codec, Instance, Manner
from cachelaw.conformance.oracle import Oracle
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event
from cachelaw.reference.protocol import (
    Call,
    Evict,
    LoadEnds,
    Setting,
    State,
    StoreSucceeds,
    perform,
    start,
)

Answers = list[tuple[int, ...] | None]
"""The victims of each eviction that an event caused, None for a refusal."""

DIVERGED = "diverged"
"""Stands for a clause until it is known which one a divergence from the reference breaks."""


class Lockstep:
    """A run in progress.

    Args:
        subject: the policy under test.
        setting: edition, capacity, groups and positions.
        profile: the profile to refine, or `contract` for the universal laws alone.
        met: counts, by clause, how often its condition was met.
        thorough: look at every key after every call.
        manner: how the subject is called.
    """

    def __init__(
        self,
        subject: Subject,
        setting: Setting[int],
        profile: str = "contract",
        met: Counter[str] | None = None,
        *,
        thorough: bool = False,
        manner: Manner = HOST_MANNER,
    ) -> None:
        self.setting = setting
        self.state: State[int] = start(setting)
        self.met: Counter[str] = Counter() if met is None else met
        self.steps = 0
        """Calls made on the policy."""
        self.watch: list[Call] | None = None
        """Where to note every call, None for nowhere."""
        codec = Codec(setting.group_of, fresh=manner.fresh_keys)
        self.instance = Instance(subject.build, setting, subject.status, codec, manner)
        self.witness = Witness(
            self.instance, self.met, thorough=thorough, may_refuse=subject.may_refuse
        )
        self.oracle = None if profile == "contract" else Oracle(profile, setting)

    def step(self, event: Event) -> Answers:
        """Let one event happen.

        Returns:
            The answers to the evictions that it caused, none or one.

        Raises:
            Breach: a clause is broken and the run cannot go on.
        """
        steps = perform(self.setting, self.state, event)
        witness, oracle, met = self.witness, self.oracle, self.met
        answers: Answers = []
        answer: tuple[int, ...] | None = None
        try:
            while True:
                call = steps.send(answer)
                self.steps += 1
                if self.watch is not None:
                    self.watch.append(call)
                method, expected = call.method, None
                # A look-up puts nothing to the test that only the reference could judge.
                if oracle is not None and method != "get":
                    for clause in oracle.met(call):
                        met[clause] += 1
                    expected = oracle.carry_out(call)
                answer = witness.carry_out(call)
                if method == "evict":
                    answers.append(answer)
                    if oracle is not None and answer != expected:
                        raise Breach(DIVERGED, show_victims(expected), show_victims(answer))
        except StopIteration as end:
            self.state = end.value
        except Breach:
            raise
        except Exception as error:
            raise in_an_answer(call.method, error) or error from error
        return answers

    def drain(self) -> Iterable[Event]:
        """Yield events that empty the cache one chunk at a time, so that every order shows."""
        pinned = {k: c.ref_cnt for k, c in self.state.chunks.items() if c.ref_cnt > 0}
        while pinned:
            yield LoadEnds(tuple(pinned))
            pinned = {key: count - 1 for key, count in pinned.items() if count > 1}
        pending = tuple(k for k, c in self.state.chunks.items() if c.ref_cnt < 0)
        if pending:
            yield StoreSucceeds(pending)
        for _ in range(len(self.state.chunks)):
            yield Evict(1)


def show_victims(victims: tuple[int, ...] | None) -> str:
    """Show the answer to an eviction."""
    return "None" if victims is None else f"[{', '.join(map(str, victims))}]"
