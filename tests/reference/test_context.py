"""Request contexts: who the request is, where its keys stand, and what others keep there."""

from __future__ import annotations

from dataclasses import dataclass

from cachelaw.reference import OffloadKey, ReqContext

A, B = OffloadKey(b"a\0\0\0\0"), OffloadKey(b"b\0\0\0\0")


@dataclass
class Note:
    text: str


@dataclass
class LongNote(Note):
    pages: int = 2


def test_a_context_says_which_request_it_is() -> None:
    assert ReqContext("r7").req_id == "r7"
    assert repr(ReqContext("r7")) == "ReqContext('r7')"


def test_a_position_is_unknown_until_it_is_set() -> None:
    context = ReqContext("r")
    assert context.get_offload_key_position(A) is None
    context.set_offload_key_position(A, 16)
    assert context.get_offload_key_position(A) == 16
    assert context.get_offload_key_position(B) is None


def test_position_zero_is_known() -> None:
    context = ReqContext("r")
    context.set_offload_key_position(A, 0)
    assert context.get_offload_key_position(A) == 0


def test_a_later_position_replaces_an_earlier_one() -> None:
    context = ReqContext("r")
    context.set_offload_key_position(A, 16)
    context.set_offload_key_position(A, 48)
    assert context.get_offload_key_position(A) == 48


def test_an_equal_key_is_the_same_key() -> None:
    context = ReqContext("r")
    context.set_offload_key_position(A, 16)
    assert context.get_offload_key_position(OffloadKey(bytes(bytearray(A)))) == 16


def test_state_is_kept_by_type() -> None:
    context = ReqContext("r")
    assert context.get_state(Note) is None
    first, second, other = Note("first"), Note("second"), LongNote("other")
    context.set_state(first)
    assert context.get_state(Note) is first
    context.set_state(second)
    assert context.get_state(Note) is second
    # The exact type counts, not what it is derived from.
    assert context.get_state(LongNote) is None
    context.set_state(other)
    assert context.get_state(LongNote) is other
    assert context.get_state(Note) is second


def test_contexts_share_nothing() -> None:
    one, other = ReqContext("r"), ReqContext("r")
    one.set_offload_key_position(A, 16)
    one.set_state(Note("mine"))
    assert other.get_offload_key_position(A) is None
    assert other.get_state(Note) is None
