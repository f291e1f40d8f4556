"""STOMP 1.2 on the wire: frames as the specification writes them, round trips, and hostile bytes."""

import os
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import inf
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.broker.content import LONGEST_HEAD, MOST_PASSED_ON, content_of, publication_of, selector_fields
from protocols.broker.framing import BODY_LIMIT, HEAD_LIMIT, StompFraming
from protocols.broker.messages import (
    Ack,
    Beat,
    Connect,
    Connected,
    Content,
    Delivery,
    Disconnect,
    Failure,
    Receipt,
    Refused,
    Send,
    Subscribe,
    Unsubscribe,
)
from protocols.broker.wire import StompCodec, size_of
from protocols.errors import UsageError, WireError
from protocols.jms import Properties, Typed, jms_message, message_of
from protocols.machine import Message
from protocols.messaging import Publication
from tests.support.damage import DAMAGES, Damage, damaged

MANY = int(os.environ.get("MCASTLAB_STOMP_EXAMPLES", "500"))
"""Examples of hostile bytes, and of damaged frames."""
SOON = 0.5
"""Seconds of processor time that some hundred bytes take at the most, on any machine."""
CODEC = StompCodec()
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NAME = TEXT.filter(bool)
TOPIC = NAME.filter(lambda name: len(name.encode()) <= 255).map("topic:".__add__)
PROPERTY = st.from_regex(r"\A[a-zA-Z_$][a-zA-Z0-9_$]{0,8}\Z").map("p".__add__)
VALUE = st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | TEXT
PUBLICATIONS = st.builds(
    lambda publisher, number, topic, body, properties, priority, sent, expires: Publication(
        publisher, number, topic, len(body), body, properties, priority, sent / 1000, inf if expires is None else expires / 1000
    ),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, (1 << 63) - 1),
    TOPIC,
    st.binary(max_size=50),
    st.dictionaries(PROPERTY, VALUE, max_size=4),
    st.integers(0, 9),
    st.integers(0, 2_000_000_000_000),
    st.none() | st.integers(1, 2_000_000_000_000),
)
MESSAGES = st.one_of(
    st.builds(Beat),
    st.builds(Connect, st.just(("1.1", "1.2")), st.integers(0, 10**6), st.integers(0, 10**6)),
    st.builds(Connected, st.just("mcastlab"), st.integers(0, 10**6), st.integers(0, 10**6)),
    st.builds(Send, PUBLICATIONS.map(content_of), TEXT, st.integers(0, 3_600_000)),
    st.builds(Delivery, NAME, NAME, PUBLICATIONS.map(content_of), TEXT),
    st.builds(Subscribe, NAME, TOPIC, TEXT, TEXT, st.booleans()),
    st.builds(Ack, NAME, TEXT),
    st.builds(Unsubscribe, NAME, TEXT),
    st.builds(Disconnect, TEXT),
    st.builds(Receipt, NAME),
    st.builds(Failure, TEXT, TEXT),
)


def cut(data: bytes, *places: int) -> list[bytes]:
    """Return the frames of a stream that arrives in pieces."""
    framing, found = StompFraming(), list[bytes]()
    for start, end in pairwise([0, *sorted(places), len(data)]):
        framing.unwrap(data[start:end], found)
    return found


def decode(text: str) -> Message:
    return CODEC.decode(text.replace("^@", "\0").encode())


def test_a_frame_is_written_as_the_specification_has_it() -> None:
    message = Publication(7, 3, "topic:a", 11, b"hello queue", {"symbol": "A:B", "price": 5}, 9, 1.5, 4.25)
    assert CODEC.encode(Send(content_of(message), "r1")) == (
        b"SEND\ndestination:/topic/a\ncontent-length:11\nreceipt:r1\nmcastlab-message:7.0.3\ntimestamp:1500\npriority:9\n"
        b"expires:4250\nsymbol:A\\cB\nprice:5\nmcastlab-types:price=long\n\nhello queue\0"
    )
    assert CODEC.encode(Subscribe("0", "topic:a", "x = 'y:z'", "r")) == (
        b"SUBSCRIBE\nid:0\ndestination:/topic/a\nselector:x = 'y\\cz'\nreceipt:r\n\n\0"
    )
    assert CODEC.encode(Subscribe("0", "topic:a", acknowledges=True)) == (
        b"SUBSCRIBE\nid:0\ndestination:/topic/a\nack:client-individual\n\n\0"
    )
    assert CODEC.encode(Delivery("0", "5", Content("topic:a", b"", 1, b"x"), "12")) == (
        b"MESSAGE\nsubscription:0\nmessage-id:5\ndestination:/topic/a\ncontent-length:1\nack:12\n\nx\0"
    )
    assert CODEC.encode(Ack("12")) == b"ACK\nid:12\n\n\0"
    assert CODEC.encode(Beat()) == b"\n"


@given(MESSAGES)
@settings(max_examples=300)
def test_what_is_decoded_is_what_was_encoded_and_has_the_stated_size(message: Message) -> None:
    data = CODEC.encode(message)
    assert len(data) == size_of(message)
    assert CODEC.decode(data) == message


@given(PUBLICATIONS)
@settings(max_examples=200)
def test_a_message_of_an_application_comes_back_as_it_was(message: Publication) -> None:
    sent = CODEC.decode(CODEC.encode(Send(content_of(message))))
    assert isinstance(sent, Send)
    assert publication_of(sent.content) == message_of(message, 0)
    assert sent.content.expires_at == message.expires_at


@given(st.lists(MESSAGES, max_size=5), st.data())
@settings(max_examples=200)
def test_a_stream_is_cut_into_the_same_frames_wherever_it_is_split(messages: list[Message], data: st.DataObject) -> None:
    stream = b"".join(map(CODEC.encode, messages))
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    found = [CODEC.decode(frame) for frame in cut(stream, *places)]
    beats = [one for one, before in zip(found, [None, *found], strict=False) if one != before or not isinstance(one, Beat)]
    wanted = [
        one for one, before in zip(messages, [None, *messages], strict=False) if one != before or not isinstance(one, Beat)
    ]
    assert beats == wanted


@given(st.binary(max_size=200) | st.text("SEND\n\r:\\0^content-legth12", max_size=200).map(str.encode), st.data())
@settings(max_examples=MANY, deadline=None)
def test_any_bytes_are_frames_or_an_error(data: bytes, chosen: st.DataObject) -> None:
    places = chosen.draw(st.lists(st.integers(0, len(data)), max_size=4))
    try:
        frames = cut(data, *places)
    except WireError:
        return
    for frame in frames:
        try:
            CODEC.decode(frame)
        except WireError:
            continue


@given(st.lists(MESSAGES, min_size=1, max_size=2), DAMAGES)
@settings(max_examples=MANY, deadline=None)
def test_damaged_frames_are_messages_or_an_error_soon(messages: list[Message], damages: list[Damage]) -> None:
    data = damaged(b"".join(map(CODEC.encode, messages)), damages)
    found, began = list[Message](), process_time()
    # The first error ends a connection.
    with suppress(WireError):
        found.extend(map(CODEC.decode, cut(data)))
    for message in found:
        if isinstance(message, (Send, Delivery)):
            publication_of(message.content, 0)
            selector_fields(message.content)
    assert process_time() - began < SOON


def test_ends_of_line_may_be_those_of_windows() -> None:
    frame = b"SEND\r\ndestination:/topic/a\r\nkey:value\r\n\r\nbody\0"
    assert cut(frame) == cut(frame, *range(1, len(frame))) == [frame]
    message = CODEC.decode(frame)
    assert message == Send(Content("topic:a", b"key:value\n", 4, b"body"))


def test_a_body_with_zeros_needs_a_length_and_one_without_ends_at_the_first() -> None:
    counted = b"SEND\ndestination:/topic/a\ncontent-length:3\n\n\0\0\0\0"
    plain = b"SEND\ndestination:/topic/a\n\nab\0"
    assert cut(counted + plain + b"\n\n") == [counted, plain, b"\n"]


def test_of_headers_with_one_name_the_first_counts() -> None:
    message = decode("SEND\ndestination:/topic/a\nfoo:World\nfoo:Hello\n\n^@")
    assert isinstance(message, Send)
    assert publication_of(message.content, 5).properties == {"foo": "World"}
    assert publication_of(message.content, 5).number == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("NACK\nid:1\n\n^@", "no message is sent again"),
        ("ACK\n\n^@", "id: is missing"),
        ("ACK\nid:1\ntransaction:1\n\n^@", "transactions"),
        ("SEND\ndestination:/topic/a\nmcastlab-keep:1s\n\n^@", "mcastlab-keep: '1s'"),
        ("BEGIN\ntransaction:1\nreceipt:7\n\n^@", "transactions"),
        ("SEND\ndestination:/queue/a\n\n^@", "/topic/NAME"),
        ("SEND\n\n^@", "destination: ''"),
        ("SEND\ndestination:/topic/a\ntransaction:1\n\n^@", "transactions"),
        ("SEND\ndestination:/topic/a\npersistent:true\n\n^@", "not stored"),
        (f"SEND\ndestination:/topic/{'a' * 256}\n\n^@", "255 bytes"),
        ("SUBSCRIBE\ndestination:/topic/a\n\n^@", "id: is missing"),
        ("SUBSCRIBE\nid:1\ndestination:/topic/a\nack:client\n\n^@", "ack: 'client'"),
        ("UNSUBSCRIBE\n\n^@", "id: is missing"),
    ],
)
def test_what_a_broker_of_topics_does_not_do_is_refused_with_the_reason(text: str, words: str) -> None:
    message = decode(text)
    assert isinstance(message, Refused)
    assert words in message.reason


NO_FRAMES = (
    *(
        "",
        "^@",
        "\n\n^@",
        "HELO\n\n^@",
        "send\n\n^@",
        "SEND\n\n",
        "SEND\nno colon\n\n^@",
        "SEND\n:x\n\n^@",
        "SEND\na:\\t\n\n^@",
    ),
    *("CONNECT\nheart-beat:1\n\n^@", "CONNECT\nheart-beat:-1,0\n\n^@", "MESSAGE\n\n^@", "SEND\n" + "a:b\n" * 1001 + "\n^@"),
)


@pytest.mark.parametrize("text", NO_FRAMES)
def test_what_is_no_frame_is_an_error(text: str) -> None:
    with pytest.raises(WireError):
        decode(text)


def test_a_head_that_is_not_utf_8_is_an_error() -> None:
    with pytest.raises(WireError):
        CODEC.decode(b"SEND\ndestination:/topic/\xff\n\n\0")


@pytest.mark.parametrize("length", ["-1", "1e3", "x", "99999999999999999999", str(BODY_LIMIT + 1), ""])
def test_a_length_that_is_none_or_too_long_is_an_error_before_the_body_arrives(length: str) -> None:
    with pytest.raises(WireError):
        cut(f"SEND\ncontent-length:{length}\n\n".encode())


def test_a_length_that_lies_is_an_error() -> None:
    with pytest.raises(WireError):
        cut(b"SEND\ncontent-length:2\n\nabc\0")


def test_frames_that_never_end_are_bounded_in_memory_and_time() -> None:
    for start, limit in ((b"SEND\n", HEAD_LIMIT), (b"SEND\n\n", BODY_LIMIT)):
        framing, found = StompFraming(), list[bytes]()
        framing.unwrap(start, found)
        for _ in range(limit // 4096 - 1):
            framing.unwrap(b"a" * 4096, found)
        framing.unwrap(b"a" * 4086, found)
        with pytest.raises(WireError):
            framing.unwrap(b"a" * 16, found)
        assert framing.waiting <= limit + 2 * 4096
        assert not found


def test_a_frame_that_arrives_byte_by_byte_costs_no_more_than_its_bytes() -> None:
    def cost(size: int) -> float:
        framing, found = StompFraming(), list[bytes]()
        begin = process_time()
        for byte in memoryview(b"SEND\n" + b"a:b\n" * (size // 4)):
            framing.unwrap(bytes([byte]), found)
        return process_time() - begin

    cost(1000)
    assert cost(40_000) < 40 * cost(4_000)


@pytest.mark.parametrize("name", ["destination", "type", "", "a,b", "a=b", "a:b"])
def test_a_property_with_the_name_of_a_header_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="property"):
        content_of(Publication(1, 1, "topic:a", 0, b"", {name: "x"}))


def test_a_wrong_type_of_a_property_leaves_its_text() -> None:
    content = content_of(Publication(1, 1, "topic:a", 0, b"", {"price": 5}))
    head = content.head.replace(b"price:5", b"price:five")
    assert publication_of(replace(content, head=head, publication=None)).properties == {"price": "five"}


def test_head_and_body_of_jms_come_back() -> None:
    message = jms_message(
        *(7, 3, "topic:a"),
        {"x": [1, 2]},
        instance=5,
        body_type="object",
        correlation_id="#0:1",
        reply_to="topic:answers",
        type="quote",
        properties={"small": Typed("byte", 3), "half": Typed("float", 0.5)},
    )
    sent = CODEC.decode(CODEC.encode(Send(content_of(message, 5))))
    assert isinstance(sent, Send)
    found = publication_of(sent.content)
    assert found == message
    assert isinstance(found.properties, Properties)
    assert found.properties.type_of("small") == "byte"
    assert found.content == {"x": [1, 2]}
    assert selector_fields(sent.content)["JMSCorrelationID"] == "#0:1"
    assert selector_fields(sent.content)["JMSMessageID"] == "ID:00000007.5.3"


@pytest.mark.parametrize("command", ["CONNECT", "STOMP", "CONNECTED"])
def test_headers_with_which_a_session_begins_have_no_escapes(command: str) -> None:
    frame = f"{command}\naccept-version:1.2\nversion:1.2\nhost:/\nserver:a\\b\npasscode:se\\cret\\\n\n\0".encode()
    assert CODEC.decode(frame) == (Connected("a\\b") if command == "CONNECTED" else Connect())
    with pytest.raises(WireError):
        CODEC.decode(frame.replace(command.encode(), b"SEND", 1))


def test_headers_of_a_publisher_are_passed_on_under_any_name_that_a_message_does_not_have() -> None:
    sent = CODEC.decode(b"SEND\ndestination:/topic/t\nid:7\nselector:x\nmessage-id:no\nack:no\n\n\0")
    assert isinstance(sent, Send)
    data = CODEC.encode(Delivery("s", "m", sent.content))
    assert b"\nid:7\nselector:x\n" in data
    assert b"no" not in data
    assert selector_fields(sent.content)["id"] == "7"


@pytest.mark.parametrize(
    ("lines", "is_sent"),
    [
        (b"x:" + b"a" * (LONGEST_HEAD - 3) + b"\n", True),
        (b"x:" + b"a" * (LONGEST_HEAD - 2) + b"\n", False),
        (b"".join(b"h%d:\n" % number for number in range(MOST_PASSED_ON)), True),
        (b"".join(b"h%d:\n" % number for number in range(MOST_PASSED_ON + 1)), False),
    ],
)
def test_a_message_whose_headers_a_copy_has_no_room_for_is_refused(lines: bytes, is_sent: bool) -> None:
    destination = b":" * 255
    sent = CODEC.decode(b"SEND\ndestination:/topic/" + destination + b"\nreceipt:r\n" + lines + b"\n\0")
    assert isinstance(sent, Send if is_sent else Refused)
    assert sent.receipt == "r"
    if isinstance(sent, Send):
        copy = Delivery("9" * 19, "9" * 19, sent.content, "9" * 19)
        frames: list[bytes] = []
        StompFraming().unwrap(CODEC.encode(copy), frames)
        assert [CODEC.decode(frame) for frame in frames] == [copy]


@pytest.mark.parametrize("properties", [{"p": "x" * LONGEST_HEAD}, {f"p{number}": "" for number in range(MOST_PASSED_ON)}])
def test_a_message_with_more_properties_than_frames_have_room_for_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="properties"):
        content_of(Publication(1, 1, "topic:t", 0, b"", properties))
