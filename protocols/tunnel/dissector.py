"""Datagrams of tunnels as a scapy layer: it dissects and builds, for people and as a second opinion in tests.

Written from the layout and independent of the codec: nothing here imports `wire.py`. `Tunnel(data)` gives the layer of a
datagram.
"""

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    ConditionalField,
    FlagsField,
    IntField,
    IPField,
    LongField,
    ShortField,
    XStrFixedLenField,
)
from scapy.packet import Packet, Raw

__all__ = ["Tunnel", "TunnelMac"]

PACKET, PRESENCE, REPORT, BRAKE = 1, 2, 3, 4
_MAC_SIZE = 24


class TunnelMac(Packet):
    """Fields appended by a tunnel with keys."""

    name = "tunnel MAC"
    fields_desc = [ByteField("key", 0), BitField("sent_us", 0, 56), XStrFixedLenField("mac", b"", 16)]


class Tunnel(Packet):
    """A datagram of a tunnel; what it carries is its payload."""

    name = "tunnel"
    fields_desc = [
        BitField("version", 14, 4),
        BitField("keyed", 0, 1),
        BitEnumField("type", PACKET, 3, {PACKET: "packet", PRESENCE: "presence", REPORT: "report", BRAKE: "brake"}),
        FlagsField("flags", 0, 1, ["report"]),
        BitField("hops", 0, 7),
        IntField("site", 0),
        ConditionalField(IntField("sequence", 0), lambda pkt: pkt.type == PACKET),
        ConditionalField(IPField("group", "0.0.0.0"), lambda pkt: pkt.type == PACKET),
        ConditionalField(ShortField("port", 0), lambda pkt: pkt.type == PACKET),
        ConditionalField(IntField("node", 0), lambda pkt: pkt.type == PRESENCE),
        ConditionalField(LongField("since", 0), lambda pkt: pkt.type == PRESENCE),
        ConditionalField(IntField("received", 0), lambda pkt: pkt.type == REPORT),
        ConditionalField(IntField("lost", 0), lambda pkt: pkt.type == REPORT),
        ConditionalField(ShortField("ring", 0), lambda pkt: pkt.type == BRAKE),
        ConditionalField(ShortField("lost_share", 0), lambda pkt: pkt.type == BRAKE),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Return what is carried, and the MAC behind it."""
        return (s[:-_MAC_SIZE], s[-_MAC_SIZE:]) if self.keyed else (s, b"")

    def default_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the class of what is carried."""
        return Raw
