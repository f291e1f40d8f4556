"""Building Ethernet frames around a UDP payload, with checksums, as emulated hosts send them."""

import struct
import sys
from array import array
from ipaddress import IPv4Address

from topologies.frames.ipv4 import IPV4, UDP

__all__ = ["frame"]

TTL = 64
_IPV4 = struct.Struct("!BBHHHBBHII")
_UDP = struct.Struct("!HHHH")


def frame(source: tuple[IPv4Address, int], to: tuple[IPv4Address, int], payload: bytes, number: int) -> bytes:
    """Return the frame of one datagram between (address, port) pairs; `number` is its IPv4 identification (modulo 2**16).

    Without FCS, and not fragmented. A host's MAC is 02:00 and its address, as in emulation; a group's is that of RFC 1112.
    """
    near, far = int(source[0]), int(to[0])
    length = 8 + len(payload)
    udp = _UDP.pack(source[1], to[1], length, 0)
    pseudo = struct.pack("!IIHH", near, far, UDP, length)
    # A sum of zero is sent as all ones, since zero means "no checksum" (RFC 768).
    total = _checksum(pseudo + udp + payload) or 0xFFFF
    ip = _IPV4.pack(0x45, 0, 20 + length, number & 0xFFFF, 0, TTL, UDP, 0, near, far)
    ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
    return _mac(to[0]) + _mac(source[0]) + IPV4.to_bytes(2) + ip + udp[:6] + struct.pack("!H", total) + payload


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
