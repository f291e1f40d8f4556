"""The form of JMS messages on the wire."""

import os
import time
from contextlib import suppress
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.errors import UsageError, WireError
from protocols.jms import FIXED_SIZE, JmsMessage, Properties, Typed, jms_message, read_head, read_message, write_head
from tests.protocols.jms.generated import MESSAGES
from tests.support.damage import DAMAGES, Damage, damaged

MANY = int(os.environ.get("MCASTLAB_JMS_EXAMPLES", "300"))
"""Examples of arbitrary bytes, and of damaged messages."""
SOON = 0.5
"""Seconds of processor time that a message of some hundred bytes takes at the most, on any machine."""
LAYOUT = jms_message(
    7, 0x1_0000_0003, "topic:ab", b"body", properties={"n": Typed("short", 5)}, priority=9, sent_at=1.5, expires_at=2.0
)


def _bytes_of(message: JmsMessage) -> bytes:
    assert message.body is not None
    return write_head(message) + message.body


def _types(message: JmsMessage) -> list[Any]:
    assert isinstance(message.properties, Properties)
    return message.properties.typed_items()


@given(MESSAGES)
@settings(max_examples=300, deadline=None)
def test_a_message_is_read_as_it_was_written(message: JmsMessage) -> None:
    found = read_message(_bytes_of(message), message.publisher, message.instance)
    assert found == message
    assert _types(found) == _types(message)
    assert found.content == message.content


@given(MESSAGES)
@settings(max_examples=50, deadline=None)
def test_a_message_may_name_its_publisher(message: JmsMessage) -> None:
    assert message.body is not None
    assert read_message(write_head(message, has_origin=True) + message.body, 1, 2) == message


def test_the_layout_is_the_documented_one() -> None:
    head = bytes.fromhex("10 09 0029 0000 000005dc 00000003 02") + b"ab"
    fields = bytes.fromhex("06 0004 00000001  01 0006 0000 000007d0  05 0005 01") + b"n" + bytes.fromhex("03 0005")
    assert _bytes_of(LAYOUT) == head + fields + b"body"


def test_a_message_of_a_topic_of_one_letter_has_a_head_of_sixteen_bytes() -> None:
    assert FIXED_SIZE == 14
    assert len(write_head(jms_message(1, 2, "topic:t", b""))) == 16


@given(st.binary(max_size=300))
@settings(max_examples=MANY, deadline=None)
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    try:
        message = read_message(data)
    except WireError:
        return
    # A property that is not a number is unequal to itself.
    written = _bytes_of(message)
    assert _bytes_of(read_message(written)) == written


@given(MESSAGES, DAMAGES)
@settings(max_examples=MANY, deadline=None)
def test_a_damaged_message_is_read_or_refused_soon(message: JmsMessage, damages: list[Damage]) -> None:
    data = damaged(_bytes_of(message), damages)
    began = time.process_time()
    try:
        found = read_message(data)
    except WireError:
        found = None
    content = found.content if found is not None else None
    assert time.process_time() - began < SOON
    if found is not None:
        written = _bytes_of(found)
        again = read_message(written)
        assert _bytes_of(again) == written
        # A number that is none is unequal to itself.
        assert repr(again.content) == repr(content)


CUT = [
    ("", "a message of 0 bytes"),
    ("20" + "00" * 15, "version 2"),
    ("15" + "00" * 15, "body type 5"),
    ("100a" + "00" * 14, "priority 10"),
    ("1004 0010 000000000000 00000000 00 61", "a topic to 15"),
    ("1004 ffff 000000000000 00000000 01 61", "a head of 65535"),
    ("1004 0010 000000000000 00000000 05 61", "a topic to 20"),
    ("1004 0010 000000000000 00000000 01 ff", "not UTF-8"),
    ("1004 0012 000000000000 00000000 01 61 0100", "ends within a field"),
    ("1004 0014 000000000000 00000000 01 61 0200ff41", "a field of 255 bytes"),
    ("1004 0014 000000000000 00000000 01 61 01000141", "a field of 1 bytes that has 6"),
    ("1004 0016 000000000000 00000000 01 61 020000 020000", "field 2 twice"),
    ("1004 0018 000000000000 00000000 01 61 0500050161030005", None),
    ("1004 0020 000000000000 00000000 01 61 0500050161030005 0500050161030005", "a property"),
    ("1004 0018 000000000000 00000000 01 61 05000501610b0005", "a value of type 0b"),
    ("1104 0010 000000000000 00000000 01 61 ff", "not UTF-8"),
    ("1204 0010 000000000000 00000000 01 61 0001", "shorter|left"),
    ("1304 0010 000000000000 00000000 01 61 ffffffff08", "4294967295 bytes"),
    ("1404 0010 000000000000 00000000 01 61 5b4e614e5d", "NaN"),
]


@pytest.mark.parametrize(("text", "problem"), CUT)
def test_what_is_wrong_is_reported(text: str, problem: str | None) -> None:
    data = bytes.fromhex(text)
    if problem is None:
        assert read_message(data).properties == {"a": 5}
        return
    with pytest.raises(WireError, match=problem):
        read_message(data)


HEAD = bytes.fromhex("1404 0010 000000000000 00000000 01 61")


@pytest.mark.parametrize(
    "body",
    [b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b"[" * 1_000_000, b"1" * 5_000],
    ids=["lists", "maps", "open", "digits"],
)
def test_json_that_nests_deep_is_refused_at_once(body: bytes) -> None:
    began = time.process_time()
    with pytest.raises(WireError):
        read_message(HEAD + body)
    assert time.process_time() - began < 0.2


def test_the_time_to_read_a_message_grows_with_its_size_only() -> None:
    # As many fields as a head holds, and as many entries as a datagram of 64 kB.
    properties = {f"p{n}": True for n in range(6000)}
    entries = {str(n): n for n in range(4000)}
    data = _bytes_of(jms_message(1, 2, "topic:t", entries, properties=properties))
    began = time.process_time()
    read_message(data)
    assert time.process_time() - began < 0.2


@pytest.mark.parametrize(
    ("settings_given", "problem"),
    [
        ({"priority": 10}, "priority: 10 is not allowed; a whole number from 0 to 9"),
        ({"priority": True}, "priority: True is not allowed"),
        ({"destination": "topic:"}, "topic: 'topic:' is not allowed; topic:NAME with a name of 1 to 255 bytes"),
        ({"destination": "topic:" + "ä" * 128}, "is not allowed; topic:NAME"),
        ({"destination": "queue:q"}, "there are topics only, and no queues"),
        ({"reply_to": "nowhere"}, "reply_to: 'nowhere' is not allowed"),
        ({"properties": {"a": Typed("decimal", 1)}}, "type 'decimal' is not allowed; one of boolean, byte, short"),
        ({"properties": {"a": Typed("byte", 128)}}, "128 is not allowed; a whole number of 8 bits"),
        ({"properties": {"a": 1 << 63}}, "a whole number of 64 bits"),
        ({"properties": {"a": Typed("float", 1e300)}}, "a number that 32 bits can hold"),
        ({"properties": {"a": b"x"}}, "type 'bytes' is not allowed"),
        ({"properties": {"2a": 1}}, "property '2a' is not allowed; letters"),
        ({"properties": {"between": 1}}, "property 'between' is not allowed"),
        ({"properties": {"JMSType": 1}}, "property 'JMSType' is not allowed"),
        ({"content": {1, 2}}, "object: Object of type set is not JSON serializable"),
        ({"content": {"a": [1]}, "body_type": "map"}, r"map: a: \[1\] is not allowed"),
        ({"content": 5, "body_type": "text"}, "text: 5 is not allowed; a text"),
        ({"content": "x", "body_type": "picture"}, "type: 'picture' is not allowed; one of bytes, text"),
        ({"content": [float("nan")], "body_type": "object"}, "object: Out of range float"),
    ],
)
def test_what_a_message_can_not_be_is_refused_in_one_line(settings_given: dict[str, Any], problem: str) -> None:
    destination = settings_given.pop("destination", "topic:t")
    with pytest.raises(UsageError, match=problem) as caught:
        jms_message(1, 2, destination, **settings_given)
    assert "\n" not in str(caught.value)


def test_a_head_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="at most 65535"):
        write_head(jms_message(1, 2, "topic:t", b"", properties={f"p{n}": "x" * 1000 for n in range(66)}))
    with pytest.raises(UsageError, match="at most 65535"):
        write_head(jms_message(1, 2, "topic:t", b"", correlation_id="x" * 70_000))


def test_a_message_without_expiry_never_expires() -> None:
    assert jms_message(1, 2, "topic:t", b"").expires_at == inf
    # No message expires before it should because times are milliseconds.
    assert jms_message(1, 2, "topic:t", b"", expires_at=1.0001).expires_at == 1.001


@given(MESSAGES, st.integers(0, 200))
@settings(max_examples=100, deadline=None)
def test_a_head_is_read_without_the_body(message: JmsMessage, more: int) -> None:
    head = write_head(message)
    size = len(head) + message.size
    data = (head + (message.body or b""))[: len(head) + more]
    found = read_head(data, size)
    assert (found.topic, found.priority, found.number, found.size) == (
        message.topic,
        message.priority,
        message.number,
        message.size,
    )
    assert (found.timestamp, found.body_type, found.body) == (message.timestamp, message.body_type, None)
    with pytest.raises(WireError):
        read_head(data[: len(head) - 1], size)


@given(st.binary(max_size=80), st.integers(0, 100))
def test_any_bytes_are_a_head_or_refused(data: bytes, size: int) -> None:
    with suppress(WireError):
        assert read_head(data, size).size <= size
