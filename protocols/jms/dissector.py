"""Messages of JMS as a scapy layer: it dissects and builds, for people and as a second opinion in tests.

Written from the layout and independent of the codec: nothing here imports `wire.py`. `Jms(data)` gives the layer of a message,
`Jms(topic="t", fields_set=[JmsProperty(property="a", kind=2, value=b"\\0")]) / b"body"` builds one; lengths are filled in where
they are left out.
"""

from typing import Any

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    FieldLenField,
    FlagsField,
    IntField,
    PacketListField,
    ShortField,
    StrLenField,
)
from scapy.packet import Packet, Raw

__all__ = [
    "Jms",
    "JmsCorrelationId",
    "JmsExpiration",
    "JmsField",
    "JmsMap",
    "JmsMapEntry",
    "JmsNumberHigh",
    "JmsOrigin",
    "JmsProperty",
    "JmsReplyTo",
    "JmsStream",
    "JmsStreamEntry",
    "JmsType",
]

_BODIES = {0: "bytes", 1: "text", 2: "map", 3: "stream", 4: "object"}
_FIELDS = {1: "expiration", 2: "correlation_id", 3: "reply_to", 4: "type", 5: "property", 6: "number_high", 7: "origin"}
_KINDS = {
    **{1: "boolean", 2: "byte", 3: "short", 4: "int", 5: "long", 6: "float", 7: "double"},
    **{8: "string", 9: "char", 10: "bytes", 11: "null"},
}


class _Part(Packet):
    """What lies within a message, and not behind it."""

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return that nothing of it is this part's payload."""
        return b"", s


class JmsField(_Part):
    """A field of the head: type, length and value; of an unknown type this one."""

    name = "JMS field"
    fields_desc = [
        ByteEnumField("field", 0, _FIELDS),
        FieldLenField("length", None, fmt="!H", length_of="value"),
        StrLenField("value", b"", length_from=lambda pkt: pkt.length),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the length."""
        if self.length is None:
            pkt = pkt[:1] + (len(pkt) - 3).to_bytes(2, "big") + pkt[3:]
        return pkt + pay


class JmsExpiration(JmsField):
    """When the message expires, milliseconds since 1970."""

    name = "JMSExpiration"
    fields_desc = [ByteEnumField("field", 1, _FIELDS), ShortField("length", None), BitField("expiration", 0, 48)]


class JmsCorrelationId(JmsField):
    """The JMSCorrelationID."""

    name = "JMSCorrelationID"
    fields_desc = [
        ByteEnumField("field", 2, _FIELDS),
        FieldLenField("length", None, fmt="!H", length_of="text"),
        StrLenField("text", b"", length_from=lambda pkt: pkt.length),
    ]


class JmsReplyTo(JmsCorrelationId):
    """The JMSReplyTo: the name of a topic."""

    name = "JMSReplyTo"
    fields_desc = [ByteEnumField("field", 3, _FIELDS), *JmsCorrelationId.fields_desc[1:]]


class JmsType(JmsCorrelationId):
    """The JMSType."""

    name = "JMSType"
    fields_desc = [ByteEnumField("field", 4, _FIELDS), *JmsCorrelationId.fields_desc[1:]]


class JmsProperty(JmsField):
    """A property: name, type and value."""

    name = "JMS property"
    fields_desc = [
        ByteEnumField("field", 5, _FIELDS),
        ShortField("length", None),
        FieldLenField("name_length", None, fmt="B", length_of="property"),
        StrLenField("property", b"", length_from=lambda pkt: pkt.name_length),
        ByteEnumField("kind", 8, _KINDS),
        StrLenField("value", b"", length_from=lambda pkt: max(pkt.length - pkt.name_length - 2, 0)),
    ]


class JmsNumberHigh(JmsField):
    """The high half of the message's number."""

    name = "JMS number, high half"
    fields_desc = [ByteEnumField("field", 6, _FIELDS), ShortField("length", None), IntField("number_high", 0)]


class JmsOrigin(JmsField):
    """The publisher of the message, where another node sent it."""

    name = "JMS origin"
    fields_desc = [
        ByteEnumField("field", 7, _FIELDS),
        ShortField("length", None),
        IntField("publisher", 0),
        ShortField("instance", 0),
    ]


_BY_FIELD = {
    1: JmsExpiration,
    2: JmsCorrelationId,
    3: JmsReplyTo,
    4: JmsType,
    5: JmsProperty,
    6: JmsNumberHigh,
    7: JmsOrigin,
}


def _next_field(pkt: Packet, found: list[Any], last: Packet | None, rest: bytes) -> type[Packet] | None:
    """Return the layer of the field that `rest` begins with."""
    del pkt, found, last
    return _BY_FIELD.get(rest[0], JmsField) if rest else None


class Jms(Packet):
    """A message: the head with its fields, and the body behind it."""

    name = "JMS"
    fields_desc = [
        BitField("version", 1, 4),
        BitEnumField("body_type", 0, 4, _BODIES),
        FlagsField("flags", 0, 4, ["BIT0", "BIT1", "REDELIVERED", "PERSISTENT"]),
        BitField("priority", 4, 4),
        ShortField("head_length", None),
        BitField("timestamp", 0, 48),
        IntField("number", 0),
        FieldLenField("topic_length", None, fmt="B", length_of="topic"),
        StrLenField("topic", b"", length_from=lambda pkt: pkt.topic_length),
        PacketListField(
            "fields_set", [], next_cls_cb=_next_field, length_from=lambda pkt: max(pkt.head_length - 15 - pkt.topic_length, 0)
        ),
    ]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the length of the head."""
        if self.head_length is None:
            pkt = pkt[:2] + len(pkt).to_bytes(2, "big") + pkt[4:]
        return pkt + pay

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the layer of the body."""
        del payload
        return {2: JmsMap, 3: JmsStream}.get(self.body_type, Raw)


class JmsStreamEntry(_Part):
    """A value of a stream."""

    name = "JMS value"
    fields_desc = [
        FieldLenField("length", None, fmt="!I", length_of="value", adjust=lambda pkt, size: size + 1),
        ByteEnumField("kind", 8, _KINDS),
        StrLenField("value", b"", length_from=lambda pkt: max(pkt.length - 1, 0)),
    ]


class JmsMapEntry(_Part):
    """A value of a map, with its name."""

    name = "JMS entry"
    fields_desc = [
        FieldLenField("name_length", None, fmt="!H", length_of="entry"),
        StrLenField("entry", b"", length_from=lambda pkt: pkt.name_length),
        *JmsStreamEntry.fields_desc,
    ]


class JmsMap(Packet):
    """The body of a map."""

    name = "JMS map"
    fields_desc = [PacketListField("entries", [], JmsMapEntry)]


class JmsStream(Packet):
    """The body of a stream."""

    name = "JMS stream"
    fields_desc = [PacketListField("entries", [], JmsStreamEntry)]
