"""The scapy layer of JMS messages and the codec agree on every field."""

import struct
from typing import Any

from hypothesis import given, settings
from scapy.packet import Packet, Raw

from protocols.jms import JmsMessage, Properties, jms_message, read_message, write_head
from protocols.jms.dissector import (
    Jms,
    JmsCorrelationId,
    JmsExpiration,
    JmsField,
    JmsMap,
    JmsMapEntry,
    JmsNumberHigh,
    JmsOrigin,
    JmsProperty,
    JmsReplyTo,
    JmsStream,
    JmsStreamEntry,
    JmsType,
)
from tests.protocols.jms.generated import MESSAGES

FORMATS = {"byte": "!b", "short": "!h", "int": "!i", "long": "!q", "float": "!f", "double": "!d", "boolean": "!?"}


def _value(kind: str, raw: bytes) -> Any:
    """Read a value of the dissector."""
    if kind in FORMATS:
        return struct.unpack(FORMATS[kind], raw)[0]
    return raw.decode() if kind in ("string", "char") else raw if kind == "bytes" else None


def _fields_by_name(message: Packet) -> dict[str, Any]:
    """Return the fields of a head that are set, but for properties, by their names."""
    found: dict[str, Any] = {}
    for each in message.fields_set:
        name = each.sprintf("%field%")
        if isinstance(each, JmsOrigin):
            found[name] = (each.publisher, each.instance)
        elif isinstance(each, JmsCorrelationId):
            found[name] = each.text.decode()
        elif isinstance(each, (JmsExpiration, JmsNumberHigh)):
            found[name] = each.getfieldval(name)
    return found


@given(MESSAGES)
@settings(max_examples=200, deadline=None)
def test_layer_and_codec_agree_on_every_field(message: JmsMessage) -> None:
    assert message.body is not None
    head = write_head(message, has_origin=True)
    layer = Jms(head + message.body)
    assert layer.version == 1
    assert layer.sprintf("%body_type%") == message.body_type
    assert ("PERSISTENT" in str(layer.flags), "REDELIVERED" in str(layer.flags)) == (
        message.is_persistent,
        message.is_redelivered,
    )
    assert (layer.priority, layer.head_length, layer.timestamp) == (message.priority, len(head), message.timestamp)
    assert layer.topic.decode() == message.topic
    found = _fields_by_name(layer)
    assert layer.number | found.pop("number_high", 0) << 32 == message.number
    assert found.pop("origin") == (message.publisher, message.instance)
    assert found.pop("expiration", 0) == message.expiration
    assert found.pop("correlation_id", "") == message.correlation_id
    assert found.pop("type", "") == message.type
    reply_to = found.pop("reply_to", "")
    assert (f"topic:{reply_to}" if reply_to else "") == message.reply_to
    assert not found
    assert isinstance(message.properties, Properties)
    properties = [each for each in layer.fields_set if isinstance(each, JmsProperty)]
    kinds = [each.sprintf("%kind%") for each in properties]
    values = [_value(kind, each.value) for kind, each in zip(kinds, properties, strict=True)]
    names = [each.property.decode() for each in properties]
    assert list(zip(names, kinds, values, strict=True)) == message.properties.typed_items()
    assert bytes(layer.payload) == message.body
    assert bytes(layer) == head + message.body


@given(MESSAGES.filter(lambda message: message.body_type in ("map", "stream")))
@settings(max_examples=100, deadline=None)
def test_layer_and_codec_agree_on_maps_and_streams(message: JmsMessage) -> None:
    assert message.body is not None
    layer = Jms(write_head(message) + message.body)
    if not message.body:
        return
    entries = layer.payload.entries
    values = [_value(each.sprintf("%kind%"), each.value) for each in entries]
    if message.body_type == "stream":
        assert isinstance(layer.payload, JmsStream)
        assert values == message.content
    else:
        assert isinstance(layer.payload, JmsMap)
        assert [(each.entry.decode(), value) for each, value in zip(entries, values, strict=True)] == list(
            message.content.items()
        )


def test_what_the_layer_builds_the_codec_reads() -> None:
    layer = Jms(
        body_type="text",
        flags="PERSISTENT",
        priority=7,
        timestamp=1500,
        number=3,
        topic=b"prices",
        fields_set=[
            JmsExpiration(expiration=2500),
            JmsCorrelationId(text=b"c"),
            JmsReplyTo(text=b"answers"),
            JmsType(text=b"quote"),
            JmsProperty(property=b"symbol", kind="string", value=b"ABB"),
            JmsProperty(property=b"price", kind="int", value=b"\0\0\0\5"),
            JmsOrigin(publisher=8, instance=9),
            JmsField(field=200, value=b"unknown"),
        ],
    ) / Raw(b"hello")
    message = read_message(bytes(layer))
    assert message == jms_message(
        8,
        3,
        "topic:prices",
        "hello",
        properties={"symbol": "ABB", "price": 5},
        priority=7,
        sent_at=1.5,
        expires_at=2.5,
        instance=9,
        correlation_id="c",
        reply_to="topic:answers",
        type="quote",
        is_persistent=True,
    )
    assert isinstance(message.properties, Properties)
    assert message.properties.type_of("price") == "int"


def test_bodies_that_the_layer_builds_the_codec_reads() -> None:
    stream = Jms(body_type="stream", topic=b"t") / JmsStream(entries=[JmsStreamEntry(kind="boolean", value=b"\1")])
    assert read_message(bytes(stream)).content == [True]
    named = Jms(body_type="map", topic=b"t") / JmsMap(entries=[JmsMapEntry(entry=b"n", kind="byte", value=b"\7")])
    assert read_message(bytes(named)).content == {"n": 7}
