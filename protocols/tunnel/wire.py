"""Wire format of tunnels. Integers are unsigned and big-endian, lengths in bytes.

The first byte is 0xE0, which is no version of NORM, plus the type; plus 8 if the message ends with a MAC. A packet (type 1) is
hops (1; the highest bit: report losses), site (4), sequence (4), the group (its IPv4 address and port, 6), and the packet.
PRESENCE (2) is a byte of 0, site (4), node (4) and since (8); REPORT (3) a byte of 0, site (4), received (4) and lost (4);
BRAKE (4) a byte of 0, site (4), ring (2) and lost (2). What begins otherwise is a packet of the group itself.
"""

import struct
from collections.abc import Mapping
from dataclasses import astuple
from hashlib import blake2b
from ipaddress import IPv4Address
from typing import Final

from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement
from protocols.admin.wire import AdminCodec, is_ours
from protocols.errors import UsageError, WireError
from protocols.machine import Codec, Message
from protocols.tunnel.messages import Brake, Carried, Opaque, Presence, Report, opaque

__all__ = [
    "BRAKE",
    "HEADER",
    "KEYED",
    "LARGEST",
    "MAC_SIZE",
    "PACKET",
    "PRESENCE",
    "REPORT",
    "TunnelCodec",
    "group_bytes",
    "read_told",
    "size_of",
    "write_told",
]

HEADER: Final = 16
"""Bytes before a packet."""
LARGEST: Final = 1472
"""Bytes of the largest datagram that fits a frame of Ethernet."""
MAC_SIZE: Final = 24
"""Bytes that a keyed tunnel appends: key id (1), time in microseconds since 1970 (7), and 16 of HMAC-SHA-256."""
PACKET, PRESENCE, REPORT, BRAKE = 0xE1, 0xE2, 0xE3, 0xE4
KEYED: Final = 8
_REPORTED: Final = 0x80
_PACKET = struct.Struct("!BBII6s")
_TOLD: Final[Mapping[type[Message], tuple[int, struct.Struct]]] = {
    Presence: (PRESENCE, struct.Struct("!BBIIQ")),
    Report: (REPORT, struct.Struct("!BBIII")),
    Brake: (BRAKE, struct.Struct("!BBIHH")),
}
"""First byte and layout of messages between tunnels and to publishers; the fields of the message follow a byte of 0."""
_READ: Final = {first: (kind, form) for kind, (first, form) in _TOLD.items()}


def group_bytes(name: str) -> bytes:
    """Return the 6 bytes that name a group: IPv4 address and port, or a digest of any other name."""
    address, _, port = name.rpartition(":")
    try:
        return IPv4Address(address).packed + int(port).to_bytes(2)
    except ValueError:
        return blake2b(name.encode(), digest_size=6).digest()


def size_of(message: Message) -> int:
    """Return the encoded bytes of a message of a tunnel but a `Carried`, without a MAC."""
    return _TOLD[type(message)][1].size


def write_told(message: Message) -> bytes:
    """Return the bytes of PRESENCE, REPORT or BRAKE. UsageError for another message."""
    if not isinstance(message, (Presence, Report, Brake)):
        raise UsageError(f"{message} is no message of a tunnel")
    first, form = _TOLD[type(message)]
    try:
        return form.pack(first, 0, *astuple(message))
    except struct.error as error:
        raise UsageError(f"{message} has a value out of its field's range: {error}") from error


def read_told(data: bytes) -> Message:
    """Return what `write_told` wrote. Raises WireError for anything else."""
    known = _READ.get(data[0]) if data else None
    if known is None or len(data) != known[1].size:
        raise WireError(f"{len(data)} bytes that begin with {data[:1].hex() or 'none'} are no message of a tunnel")
    kind, form = known
    _, zero, *values = form.unpack(data)
    if zero:
        raise WireError(f"a reserved byte of {zero}; it is 0")
    return kind(*values)


class TunnelCodec:
    """The codec of a tunnel. `inner` reads the packets that are carried, as a simulator needs it; None: they stay bytes.

    With `enrolled` it reads and writes the messages of a registry, too.
    """

    def __init__(self, inner: Codec | None = None, *, enrolled: bool = False) -> None:
        self._inner = inner
        self._registry = AdminCodec() if enrolled else None

    def encode(self, message: Message) -> bytes:
        """Return the UDP payload. UsageError for a message that does not fit the wire."""
        if isinstance(message, Carried):
            hops = message.hops | _REPORTED if message.requests_reports else message.hops
            try:
                head = _PACKET.pack(PACKET, hops, message.site, message.sequence, message.group)
            except struct.error as error:
                raise UsageError(f"{message} has a value out of its field's range: {error}") from error
            return head + self.encode(message.message)
        if isinstance(message, Opaque):
            return message.data
        if self._registry is not None and isinstance(message, (Advertisement, Request, Response)):
            return self._registry.encode(message)
        if isinstance(message, (Presence, Report, Brake)) or self._inner is None:
            return write_told(message)
        return self._inner.encode(message)

    def decode(self, data: bytes) -> Message:
        """Return the message in a UDP payload; any bytes are one, since every packet of a group is carried."""
        kind = data[0] & ~KEYED if data else 0
        if kind == PACKET and len(data) >= HEADER:
            hops, site, sequence, group = _PACKET.unpack_from(data)[1:]
            end = len(data) - MAC_SIZE if data[0] & KEYED else len(data)
            return Carried(site, sequence, hops & ~_REPORTED, group, self._packet(data[HEADER:end]), hops >= _REPORTED)
        if data and PRESENCE <= data[0] <= BRAKE:
            try:
                return read_told(data)
            except WireError:
                return opaque(data)
        if self._registry is not None and is_ours(data):
            try:
                return self._registry.decode(data)
            except WireError:
                return opaque(data)
        return self._packet(data)

    def _packet(self, data: bytes) -> Message:
        """Return a packet of the group."""
        if self._inner is None:
            return opaque(data)
        try:
            return self._inner.decode(data)
        except WireError:
            return opaque(data)
