"""The UDP datagrams in the Ethernet frames of one direction of a link."""

from collections.abc import Sequence
from struct import error as StructError
from typing import NamedTuple, TypeAlias

from topologies.frames.ipv4 import IPV4, Reassembly, network_layer, read_ipv4

__all__ = ["Datagram", "DatagramReader", "Frames"]

Frames: TypeAlias = bytes | tuple[bytes, ...]
"""The frame of one datagram, or those of its fragments."""

_ETHERTYPE_AT = 12
_UDP_HEADER = 8
_LIMIT = 256
"""Incomplete datagrams that are kept; some are never completed, because an earlier link lost a fragment."""


class Datagram(NamedTuple):
    """A UDP payload and the frames it came in."""

    payload: bytes
    frames: Frames


class DatagramReader:
    """Finds the datagrams in frames that come one by one."""

    __slots__ = ("_reassembly",)

    def __init__(self) -> None:
        self._reassembly = Reassembly(_LIMIT)

    def take(self, frame: bytes) -> Datagram | Sequence[bytes]:
        """Return the datagram that a frame completes; else the frames to pass on, which are none for a fragment."""
        try:
            kind, at = network_layer(frame, _ETHERTYPE_AT)
            packet = read_ipv4(frame, at) if kind == IPV4 else None
        except (StructError, IndexError):
            # Too short for the headers it begins with.
            return (frame,)
        if packet is None:
            return (frame,)
        if packet.fragment:
            found = self._reassembly.add(packet, frame)
            return () if found is None else Datagram(found.body[_UDP_HEADER:], found.frames)
        body = packet.body
        if len(body) < _UDP_HEADER:
            return (frame,)
        return Datagram(body[_UDP_HEADER : body[4] << 8 | body[5]], frame)
