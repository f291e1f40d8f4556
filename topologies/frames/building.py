"""Building Ethernet frames around a UDP payload, with checksums, as emulated hosts send them."""

import struct
import sys
from array import array
from ipaddress import IPv4Address

from topologies.frames.ipv4 import IPV4, UDP

__all__ = ["frame", "tcp_frame"]

TTL = 64
TCP = 6
_IPV4 = struct.Struct("!BBHHHBBHII")
_UDP = struct.Struct("!HHHH")


def frame(source: tuple[IPv4Address, int], to: tuple[IPv4Address, int], payload: bytes, number: int, dscp: int = 0) -> bytes:
    """Return the frame of one datagram between (address, port) pairs; `number` is its IPv4 identification (modulo 2**16).

    Without FCS, and not fragmented. A host's MAC is 02:00 and its address, as in emulation; a group's is that of RFC 1112.
    """
    udp = _UDP.pack(source[1], to[1], 8 + len(payload), 0)
    total = _transport_checksum(source[0], to[0], UDP, udp + payload)
    return _around(source[0], to[0], UDP, udp[:6] + struct.pack("!H", total) + payload, number, dscp)


def tcp_frame(source: IPv4Address, to: IPv4Address, segment: bytes, number: int) -> bytes:
    """Return the frame of a TCP segment, whose checksum is computed here; as `frame` otherwise."""
    total = _transport_checksum(source, to, TCP, segment[:16] + b"\0\0" + segment[18:])
    return _around(source, to, TCP, segment[:16] + struct.pack("!H", total) + segment[18:], number)


def _transport_checksum(source: IPv4Address, to: IPv4Address, protocol: int, data: bytes) -> int:
    """Return the checksum over the pseudo-header and `data`, whose own checksum is zero."""
    pseudo = struct.pack("!IIHH", int(source), int(to), protocol, len(data))
    # A sum of zero is sent as all ones, since zero means "no checksum" (RFC 768).
    return _checksum(pseudo + data) or 0xFFFF


def _around(source: IPv4Address, to: IPv4Address, protocol: int, data: bytes, number: int, dscp: int = 0) -> bytes:
    """Return `data` with headers of IPv4 and Ethernet."""
    ip = _IPV4.pack(0x45, dscp << 2, 20 + len(data), number & 0xFFFF, 0, TTL, protocol, 0, int(source), int(to))
    ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
    return _mac(to) + _mac(source) + IPV4.to_bytes(2) + ip + data


def _mac(address: IPv4Address) -> bytes:
    if address.is_multicast:
        return b"\x01\x00\x5e" + (int(address) & 0x7FFFFF).to_bytes(3, "big")
    return b"\x02\x00" + address.packed


def _checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total = sum(array("H", data + bytes(len(data) & 1)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    # The sum does not depend on byte order, so only the result is converted from the machine's own.
    return ~int.from_bytes(total.to_bytes(2, sys.byteorder), "big") & 0xFFFF
