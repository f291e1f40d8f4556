"""IPv6 packets with UDP: header, extension headers and fragments (RFC 8200)."""

from struct import unpack_from

from topologies.frames.ipv4 import MORE, UDP, IpPacket

__all__ = ["read_ipv6"]

_HEADER = 40
_FRAGMENT, _AUTHENTICATION = 44, 51
_OPTIONS = (0, 43, 60, 135)
"""Hop-by-hop options, routing, destination options, mobility: each tells its length in words of 8 bytes without the first."""


def read_ipv6(data: bytes, at: int) -> IpPacket | None:
    """Parse the IPv6 packet at offset `at`; None when it carries no UDP.

    Of a datagram in fragments the UDP header follows the fragment header at once. Raises struct.error or IndexError where the
    frame is too short for the headers.
    """
    length, kind = unpack_from(">HB", data, at + 4)
    source, target = unpack_from(">16s16s", data, at + 8)
    # Offloaded batches beyond 64 KiB have a length of 0.
    end = at + _HEADER + length if length else len(data)
    at += _HEADER
    identification = fragment = 0
    while kind != UDP:
        if kind in _OPTIONS:
            kind, at = data[at], at + 8 * (data[at + 1] + 1)
        elif kind == _AUTHENTICATION:
            kind, at = data[at], at + 4 * (data[at + 1] + 2)
        elif kind == _FRAGMENT:
            kind, place, identification = unpack_from(">BxHI", data, at)
            fragment, at = place >> 3 | (MORE if place & 1 else 0), at + 8
            if kind != UDP:
                return None
        else:
            return None
    return IpPacket(source, target, identification, fragment, data[at:end])
