"""Packets of bus and FJM as bytes: round trips, stated sizes, and hostile bytes."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import UsageError, WireError
from protocols.fjm.messages import Answer, Ask, Candidate, Guard, Register, Registered, Unregister
from protocols.fjm.wire import FjmCodec, size_of
from protocols.machine import Message
from protocols.nacked.messages import Data, Leave, Nack, Status

MANY = int(os.environ.get("MCASTLAB_FJM_EXAMPLES", "500"))
CODEC = FjmCodec()
NODE, NUMBER = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
ORIGIN = st.tuples(NODE, st.integers(0, 0xFFFF))
NAME = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
RANGES = st.lists(st.tuples(NUMBER, NUMBER).map(sorted).map(tuple), min_size=1, max_size=5).map(tuple)
MESSAGES = st.one_of(
    st.builds(
        lambda origin, sequence, number, part, content, repair: Data(
            origin, sequence, number, part, part + 3, len(content), content, None, repair
        ),
        *(ORIGIN, NUMBER, NUMBER, st.integers(0, 1000), st.binary(min_size=1, max_size=50), st.booleans()),
    ),
    st.builds(Status, ORIGIN, NUMBER, NUMBER),
    st.builds(Nack, ORIGIN, RANGES),
    st.builds(Leave, NODE),
    st.builds(Candidate, NODE),
    st.builds(Guard, NODE),
    st.builds(Ask, NODE, NAME),
    st.builds(Answer, NODE, NODE, NAME),
    st.builds(Register, NODE, NODE, NAME),
    st.builds(Registered, NODE, NODE, NAME),
    st.builds(Unregister, NODE, NODE, NAME),
)


@given(MESSAGES)
@settings(max_examples=300)
def test_what_is_decoded_is_what_was_encoded_and_has_the_stated_size(message: Message) -> None:
    data = CODEC.encode(message)
    assert len(data) == size_of(message)
    assert CODEC.decode(data) == message


@given(st.binary(max_size=80) | st.tuples(st.integers(0xD0, 0xF8), st.binary(max_size=80)).map(lambda x: bytes([x[0]]) + x[1]))
@settings(max_examples=MANY, deadline=None)
def test_any_bytes_are_a_packet_or_an_error(data: bytes) -> None:
    try:
        message = CODEC.decode(data)
    except WireError:
        return
    assert CODEC.encode(message)[:1] == data[:1]


def test_a_value_out_of_its_range_is_the_fault_of_the_caller() -> None:
    for message in (Candidate(1 << 32), Leave(-1), Status((1, 1 << 16), 0, 0)):
        with pytest.raises(UsageError):
            CODEC.encode(message)
