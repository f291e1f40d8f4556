"""IPv4 packets with UDP: where they begin in a frame, their header fields, and reassembly of fragments (RFC 791, 3.2)."""

from collections import OrderedDict
from struct import unpack_from
from typing import NamedTuple

__all__ = [
    "IPV4",
    "IPV6",
    "MORE",
    "UDP",
    "VLAN_TAGS",
    "IpPacket",
    "Reassembled",
    "Reassembly",
    "network_layer",
    "read_ipv4",
]

IPV4, IPV6 = 0x0800, 0x86DD
"""EtherTypes."""
UDP = 17
"""The protocol number of UDP."""
VLAN_TAGS = (0x8100, 0x88A8)
"""EtherTypes of VLAN tags: 802.1Q and 802.1ad."""
MORE, _OFFSET = 0x2000, 0x1FFF
"""More fragments follow; the offset of a fragment in units of 8 bytes."""


def network_layer(data: bytes, at: int) -> tuple[int, int]:
    """Return (EtherType, offset of what it describes) behind VLAN tags.

    `at` is the offset of the first EtherType. Raises struct.error where the frame is too short.
    """
    (kind,) = unpack_from(">H", data, at)
    while kind in VLAN_TAGS:
        at += 4
        (kind,) = unpack_from(">H", data, at)
    return kind, at + 2


class IpPacket(NamedTuple):
    """The parts of an IP packet that carries UDP, or a fragment of it."""

    source: bytes
    target: bytes
    identification: int
    fragment: int
    """Flags and offset as IPv4 has them, without "don't fragment"; 0 for a packet that is no fragment."""
    body: bytes
    """What follows the headers of IP, without the padding of short frames."""


def read_ipv4(data: bytes, at: int) -> IpPacket | None:
    """Parse the IPv4 packet at offset `at`; None when it carries no UDP.

    Raises struct.error or IndexError where the frame is too short for the header.
    """
    if data[at + 9] != UDP:
        return None
    length, identification, fragment = unpack_from(">HHH", data, at + 2)
    # Offloaded batches beyond 64 KiB have a length of 0.
    body = data[at + (data[at] & 15) * 4 : at + length if length else None]
    source, target = unpack_from(">4s4s", data, at + 12)
    return IpPacket(source, target, identification, fragment & (MORE | _OFFSET), body)


class Reassembled(NamedTuple):
    """A complete packet: what follows its header, and the frames of its fragments in order of offset."""

    body: bytes
    frames: tuple[bytes, ...]


class _Fragments:
    """The fragments of one packet by offset (bytes)."""

    __slots__ = ("end", "octets", "parts")

    def __init__(self) -> None:
        self.parts: dict[int, tuple[bytes, bytes]] = {}
        self.octets = 0
        self.end: int | None = None

    def add(self, packet: IpPacket, frame: bytes) -> Reassembled | None:
        offset = (packet.fragment & _OFFSET) * 8
        if offset in self.parts:
            self.octets -= len(self.parts[offset][0])
        self.parts[offset] = packet.body, frame
        self.octets += len(packet.body)
        if not packet.fragment & MORE:
            self.end = offset + len(packet.body)
        return self._join() if self.octets == self.end else None

    def _join(self) -> Reassembled | None:
        """Return the packet, unless fragments overlap."""
        ordered = sorted(self.parts.items())
        expected = 0
        for offset, (body, _) in ordered:
            if offset != expected:
                return None
            expected += len(body)
        return Reassembled(b"".join(part[0] for _, part in ordered), tuple(part[1] for _, part in ordered))


class Reassembly:
    """Reassembles packets from fragments in any order. At most `limit` packets are kept incomplete; the oldest is dropped."""

    __slots__ = ("_incomplete", "_limit", "dropped")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._incomplete: OrderedDict[tuple[bytes, bytes, int], _Fragments] = OrderedDict()
        self.dropped = 0
        """Fragments dropped because too many packets were incomplete."""

    def add(self, packet: IpPacket, frame: bytes = b"") -> Reassembled | None:
        """Add a fragment and the frame it came in; returns the packet it completes."""
        key = packet.source, packet.target, packet.identification
        fragments = self._incomplete.get(key)
        if fragments is None:
            if len(self._incomplete) >= self._limit:
                self.dropped += len(self._incomplete.popitem(last=False)[1].parts)
            fragments = self._incomplete[key] = _Fragments()
        found = fragments.add(packet, frame)
        if found is not None:
            del self._incomplete[key]
        return found

    @property
    def waiting(self) -> int:
        """Fragments of incomplete packets."""
        return sum(len(fragments.parts) for fragments in self._incomplete.values())
