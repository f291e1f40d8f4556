"""The bytes of TCP segments (RFC 9293, 7323, 2018), for captures."""

import struct
from typing import Final

from protocols.rng import key_of
from sim.tcp.segment import FIN, RST, SYN, Segment, SynSegment

__all__ = ["encode"]

_HEAD: Final = struct.Struct("!HHIIBBHHH")
_STAMPS: Final = struct.Struct("!BBII")
_RANGE: Final = struct.Struct("!II")
_LOW: Final = (1 << 32) - 1
SCALE: Final = 7
"""Windows are in units of 2^7 bytes."""
STAMPS_ROOM: Final = 12
"""Bytes of the time stamps, which the announced largest segment includes (RFC 6691)."""
_FIN, _SYN, _RST, _PSH, _ACK = 1, 2, 4, 8, 16
_NOP: Final = b"\x01"


def encode(segment: Segment) -> bytes:
    """Return header, options and data of a segment; the checksum is zero. Data without bytes is zeros."""
    here, port, there, far_port = segment.to
    own, others = _first_number(there, far_port, here, port), _first_number(here, port, there, far_port)
    flags = (_SYN if segment.flags & SYN else 0) | (_FIN if segment.flags & FIN else 0) | (_RST if segment.flags & RST else 0)
    if segment.ack:
        flags |= _ACK
    if segment.octets and segment.push:
        flags |= _PSH
    options = _options(segment, others)
    ack = (segment.ack + others) & _LOW if segment.ack else 0
    window = segment.window if segment.flags & SYN else segment.window + (1 << SCALE) - 1 >> SCALE
    length = (_HEAD.size + len(options)) // 4 << 4
    head = _HEAD.pack(
        _wrapped(far_port), _wrapped(port), (segment.number + own) & _LOW, ack, length, flags, min(window, 0xFFFF), 0, 0
    )
    content = segment.content if isinstance(segment.content, bytes) else b""
    return head + options + content.ljust(segment.octets, b"\0")


def _wrapped(port: int) -> int:
    """Return the 16-bit port that stands for a port: after 65535 comes 1, as a host may begin more connections than that."""
    return (port - 1) % 65535 + 1


def _first_number(place: int, port: int, far_place: int, far_port: int) -> int:
    """Return the initial sequence number of an end: an arbitrary number, the same in every run."""
    return key_of(0, "first number", place, port, far_place, far_port) & _LOW


def _options(segment: Segment, others: int) -> bytes:
    """Return the options, padded to whole words; numbers of the other direction begin at `others`."""
    stamps = _STAMPS.pack(8, 10, segment.stamp & _LOW, segment.echo & _LOW)
    if isinstance(segment, SynSegment):
        largest = struct.pack("!BBH", 2, 4, segment.mss + STAMPS_ROOM)
        return largest + b"\x04\x02" + stamps + _NOP + bytes([3, 3, SCALE])
    found = _NOP + _NOP + stamps
    if segment.sack:
        ranges = b"".join(_RANGE.pack(first + others & _LOW, behind + others & _LOW) for first, behind in segment.sack)
        found += _NOP + _NOP + bytes([5, 2 + len(ranges)]) + ranges
    return found
