"""The wire format of application messages, and the codecs of the protocols that use it."""

from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.datagram.messages import part_of
from protocols.datagram.wire import OVERHEAD, DatagramCodec
from protocols.errors import UsageError, WireError
from protocols.machine import Codec, Message
from protocols.message_wire import head_size, read_message, write_head
from protocols.messaging import Publication
from protocols.relay.messages import Accepted, Delivery, Publish, Subscribe, SubscribeDone, Unsubscribe
from protocols.relay.wire import RelayCodec, size_of

VALUES = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=50))
MESSAGES = st.builds(
    lambda publisher, number, destination, body, properties, priority, times: Publication(
        publisher, number, destination, len(body), body, properties, priority, *times
    ),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.text(max_size=60),
    st.binary(max_size=200),
    st.dictionaries(st.text(max_size=20), VALUES, max_size=5),
    st.integers(0, 9),
    st.tuples(st.floats(0, 4e9), st.floats(0, allow_nan=False)),
)
MESSAGE = Publication(7, 1 << 40 | 3, "topic:t", 5, b"hello", {"symbol": "A", "price": 1.5, "n": 3, "hot": True}, 9, 2.0, inf)


@given(MESSAGES)
@settings(max_examples=200, deadline=None)
def test_a_message_is_read_as_it_was_written(message: Publication) -> None:
    head = write_head(message)
    assert len(head) == head_size(message)
    found = read_message(head + (message.body or b""))
    assert found == message
    assert [type(value) for value in found.properties.values()] == [type(value) for value in message.properties.values()]


@given(st.binary(max_size=200), st.sampled_from([DatagramCodec, RelayCodec]))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_message_or_a_wire_error(data: bytes, codec: Any) -> None:
    for candidate in (data, b"\xda" + data, b"\x01" + data):
        try:
            message = codec().decode(candidate)
        except WireError:
            continue
        assert codec().encode(message) == candidate


@pytest.mark.parametrize("cut", range(len(write_head(MESSAGE) + b"hello")))
def test_a_message_that_is_cut_is_refused(cut: int) -> None:
    with pytest.raises(WireError):
        read_message((write_head(MESSAGE) + b"hello")[:cut])


@pytest.mark.parametrize(
    "message",
    [
        Publish(MESSAGE),
        Delivery(MESSAGE),
        Accepted(1 << 63),
        Subscribe(3, "topic:ä"),
        SubscribeDone(2**32 - 1),
        Unsubscribe(0),
    ],
)
def test_relay_messages_have_the_size_they_say(message: Message) -> None:
    data = RelayCodec().encode(message)
    assert len(data) == size_of(message)
    assert RelayCodec().decode(data) == message


def test_a_part_keeps_its_identity_on_the_wire() -> None:
    part = part_of(7, 1 << 33, 12.5, 1 << 40, 2, 4, 3, b"abc")
    data = DatagramCodec().encode(part)
    assert len(data) == OVERHEAD + 3
    assert DatagramCodec().decode(data) == part


def test_100_000_datagrams_have_different_identities_that_increase() -> None:
    found = [part_of(7, sequence, 0.0, sequence, 0, 1, 1).identity or 0 for sequence in range(100_000)]
    assert found == sorted(set(found))


@pytest.mark.parametrize("codec", [DatagramCodec(), RelayCodec()])
def test_a_message_of_another_protocol_is_a_usage_error(codec: Codec) -> None:
    with pytest.raises(UsageError, match=r"no datagram|no message of a relay"):
        codec.encode(Message())


def test_a_destination_that_is_too_long_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"to: value 'x+\.\.\. is not allowed; at most 255 bytes of UTF-8"):
        write_head(Publication(1, 1, "x" * 256, 0, b""))
