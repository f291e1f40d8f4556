"""The wire format of the ARQ messages: what is encoded is decoded to the same, and other bytes are rejected."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.arq.messages import Ack, Data, End, Nack, identity_of
from protocols.arq.wire import MOST_UNITS, ArqCodec, size_of
from protocols.errors import UsageError, WireError
from protocols.norm.identity import info_identity
from protocols.norm.messages import Data as NormData

WORD = st.integers(0, 0xFFFFFFFF)
HALF = st.integers(0, 0xFFFF)
FEEDBACK = st.builds(Ack, WORD, HALF, WORD, WORD, WORD) | st.builds(Nack, WORD, HALF, WORD, WORD, WORD)
ENDS = st.builds(End, WORD, HALF, WORD, st.integers(1, MOST_UNITS), WORD)


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Draw a unit of an object of a possible size."""
    size, segment = draw(st.integers(0, 100_000)), draw(st.integers(1, 1400))
    unit = draw(st.integers(0, -(-size // segment)))
    length = draw(st.integers(0, 50)) if unit == 0 else min(segment, size - (unit - 1) * segment)
    sender, object_id = draw(WORD), draw(WORD)
    flags = draw(st.booleans()), draw(st.booleans())
    identity = identity_of(sender, object_id, unit)
    first = draw(WORD)
    return Data(sender, draw(HALF), object_id, unit, first, size, segment, *flags, bytes(length), length, identity)


@settings(derandomize=True, deadline=None)
@given(FEEDBACK | ENDS | data())
def test_messages_are_decoded_to_the_same_and_have_the_size_of_size_of(message: Ack | Nack | End | Data) -> None:
    coded = ArqCodec().encode(message)
    assert len(coded) == size_of(message)
    assert ArqCodec().decode(coded) == message


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"\xa7\x01" + rest))
def test_random_bytes_are_a_wire_error_or_a_message(noise: bytes) -> None:
    try:
        message = ArqCodec().decode(noise)
    except WireError:
        return
    assert ArqCodec().decode(ArqCodec().encode(message)) == message


def test_a_segment_of_the_wrong_length_is_a_wire_error() -> None:
    good = ArqCodec().encode(Data(1, 0, 0, 1, 0, 100, 50, True, False, bytes(50), 50))
    with pytest.raises(WireError, match="49 bytes"):
        ArqCodec().decode(good[:-1])


def test_a_value_out_of_its_fields_range_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="out of its field"):
        ArqCodec().encode(Ack(1, 0, -1, 0, 2))


def test_content_has_the_same_identity_as_in_norm() -> None:
    assert identity_of(1, 3, 0) == info_identity(1, 3)
    assert identity_of(1, 3, 8) == 1 << 48 | 3 << 32 | 7
    assert NormData.kind == Data.kind
