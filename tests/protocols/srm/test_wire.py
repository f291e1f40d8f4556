"""The wire format of SRM: what is encoded is decoded to the same, and other bytes are rejected."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.arq.messages import Ack, Data, End, Nack, identity_of
from protocols.arq.wire import MOST_UNITS, ArqCodec
from protocols.errors import UsageError, WireError
from protocols.machine import Message
from protocols.srm.messages import SessionMessage, repair_of, request_of
from protocols.srm.wire import SrmCodec, echoes_that_fit, size_of

WORD = st.integers(0, 0xFFFFFFFF)
HALF = st.integers(0, 0xFFFF)
REQUESTS = st.builds(request_of, st.builds(Nack, WORD, HALF, WORD, WORD, WORD), WORD)
ENDS = st.builds(End, WORD, HALF, WORD, st.integers(1, MOST_UNITS), WORD)
POSITIONS = st.lists(st.tuples(WORD, HALF, WORD, st.integers(0, MOST_UNITS)), max_size=4).map(tuple)
ECHOES = st.dictionaries(WORD, st.tuples(WORD, WORD), max_size=8)
TYPED = st.builds(lambda kind, rest: bytes([0xA7, kind]) + rest, st.integers(0, 8), st.binary(max_size=80))
SESSIONS = st.builds(SessionMessage, WORD, WORD, POSITIONS, ECHOES)


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Draw a unit of an object of a possible size, or its repair."""
    size, segment = draw(st.integers(0, 100_000)), draw(st.integers(1, 1400))
    unit = draw(st.integers(0, -(-size // segment)))
    length = draw(st.integers(0, 50)) if unit == 0 else min(segment, size - (unit - 1) * segment)
    sender, object_id = draw(WORD), draw(WORD)
    identity = identity_of(sender, object_id, unit)
    plain = Data(
        sender, draw(HALF), object_id, unit, 0, size, segment, draw(st.booleans()), False, bytes(length), length, identity
    )
    return repair_of(plain, draw(WORD)) if draw(st.booleans()) else plain


@settings(derandomize=True, deadline=None)
@given(REQUESTS | ENDS | SESSIONS | data())
def test_messages_are_decoded_to_the_same_and_have_the_size_of_size_of(message: Message) -> None:
    coded = SrmCodec().encode(message)
    assert len(coded) == size_of(message)
    assert SrmCodec().decode(coded) == message


@settings(derandomize=True, deadline=None, max_examples=500)
@given(
    st.binary(max_size=80) | st.builds(lambda kind, rest: bytes([0xA7, kind]) + rest, st.integers(0, 8), st.binary(max_size=80))
)
def test_random_bytes_are_a_wire_error_or_a_message(noise: bytes) -> None:
    try:
        message = SrmCodec().decode(noise)
    except WireError:
        return
    assert SrmCodec().decode(SrmCodec().encode(message)) == message


@pytest.mark.parametrize(
    ("coded", "words"),
    [
        (SrmCodec().encode(SessionMessage(1, 2, (), {3: (4, 5)}))[:-1], "0 positions and 1 echoes"),
        (SrmCodec().encode(SessionMessage(1, 2, ((1, 0, 0, MOST_UNITS + 1),), {})), "a unit above"),
        (bytes.fromhex("a707 00 0002 00000001 00000002") + 2 * bytes(12), "two echoes for a node"),
        (ArqCodec().encode(Nack(1, 0, 0, 0, 2)), "not with a7 and a type of SRM"),
        (b"", "not with a7"),
        (b"\xa7\x05\x00", "are not a message"),
    ],
)
def test_bytes_that_are_no_message_are_refused(coded: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        SrmCodec().decode(coded)


@pytest.mark.parametrize("message", [SessionMessage(1, -1), request_of(Nack(1, 0, 0, 0, 2), -1), Ack(1, 0, 0, 0, 2)])
def test_what_does_not_fit_the_format_is_a_usage_error(message: Message) -> None:
    with pytest.raises(UsageError):
        SrmCodec().encode(message)


@pytest.mark.parametrize("segment", [1, 100, 1400, 60_000])
def test_a_session_message_with_all_echoes_that_fit_is_no_longer_than_a_data_packet(segment: int) -> None:
    most = echoes_that_fit(segment, 2)
    message = SessionMessage(1, 2, ((1, 0, 0, 1), (2, 0, 0, 1)), dict.fromkeys(range(most), (0, 0)))
    full = Data(1, 0, 0, 1, 0, segment, segment, True, False, None, segment)
    assert most == 1 or size_of(message) <= size_of(full)
    assert most >= 1
