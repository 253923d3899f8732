"""Runs without a judge: a policy is driven as a manager would, and something else is measured.

The laws of cost and memory watch what a policy spends, over runs far longer or wider than those in
which every answer is looked at. A policy that answers so wrongly that no manager could go on ends
its run; other laws say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cachelaw.conformance import flight
from cachelaw.conformance.finding import Finding
from cachelaw.conformance.instance import Codec, Instance
from cachelaw.conformance.subject import Subject
from cachelaw.conformance.trace import Event, Trace
from cachelaw.reference.protocol import Call, RequestEnds, State, objection, perform, start


@dataclass(frozen=True, slots=True)
class Measured:
    """What a law that measures came to.

    Attributes:
        findings: the broken clause with a trace that shows it, at most one.
        excuse: why the law is not applicable to the subject, None if it is.
        unclear: why it is left open, None if it is not.
    """

    findings: tuple[Finding, ...] = ()
    excuse: str | None = None
    unclear: str | None = None


class Stray(Exception):
    """The policy gave an answer with which no manager could go on. One line: which."""


class _Instance(Instance):
    def forget(self, request: str) -> None:
        """Let go of the context of a request, as hosts do: a policy may hold it weakly."""
        self._contexts.pop(request, None)


class Unjudged:
    """A run in progress.

    Args:
        subject: the policy under test.
        trace: its scope; the events are not performed.
        codec: how keys are passed.
        clause: the law on whose behalf it runs.
        wrap: put around the policy before it is called.
    """

    def __init__(
        self,
        subject: Subject,
        trace: Trace,
        codec: Codec,
        clause: str,
        wrap: Callable[[Any], Any] = lambda policy: policy,
    ) -> None:
        flight.recorder.begin(clause.partition("/")[0], clause, trace.with_events(()))
        self.setting = trace.setting
        self.state: State[int] = start(self.setting)
        self.calls = 0
        """Calls made on the policy."""
        self.instance = _Instance(subject.build, self.setting, subject.status, codec)
        self.policy = self.instance.policy
        self.instance.policy = wrap(self.policy)

    def live(self, event: Event, made: Callable[[Call, Any], None] | None = None) -> bool:
        """Let one event happen, if a manager could issue it.

        Args:
            event: what happens.
            made: told of each call when it has been made, with the victims if it was an `evict`.

        Returns:
            Whether it happened.

        Raises:
            Stray: the policy raised an exception or evicted what it must not.
        """
        if objection(self.setting, self.state, event) is not None:
            return False
        flight.recorder.add(event)
        steps = perform(self.setting, self.state, event)
        answer: tuple[int, ...] | None = None
        try:
            while True:
                call = steps.send(answer)
                answer = self._carry_out(call)
                if made is not None:
                    made(call, answer)
        except StopIteration as end:
            self.state = end.value
        if isinstance(event, RequestEnds):
            self.forget(event.request)
        return True

    def _carry_out(self, call: Call) -> tuple[int, ...] | None:
        self.calls += call.method != "set_ref_cnt"
        try:
            answer = self.instance.carry_out(call)
        except (Exception, SystemExit) as error:
            raise Stray(f"{call.method} raised {type(error).__name__}") from error
        if call.method != "evict" or answer is None:
            return None
        chunks, decode = self.instance.chunks, self.instance.codec.decode
        n, protected = call.arguments
        try:
            victims = tuple(decode(made) for made, _ in answer)
        except Exception:
            raise Stray("evict did not return a list of pairs") from None
        for key in victims:
            if key not in chunks or chunks[key].ref_cnt != 0 or key in protected:
                raise Stray("evict returned what it must not")
            del chunks[key]
        if len(victims) != n:
            raise Stray("evict returned another number than asked for")
        return victims  # type: ignore[return-value]  # None is in no dict of chunks

    def forget(self, request: str) -> None:
        """Drop a request that does nothing more, as hosts do; its name does not come again."""
        running = {n: r for n, r in self.state.requests.items() if n != request}
        self.state = replace(self.state, requests=running)
        self.instance.forget(request)
