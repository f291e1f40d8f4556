"""Frames that carry no UDP: their size on a link, and the kind of message by which loss channels know them."""

from struct import error as StructError
from struct import unpack_from
from typing import NamedTuple

from topologies.ethernet import HEADER
from topologies.ethernet import IPV4 as IPV4_HEADER
from topologies.ethernet import UDP as UDP_HEADER
from topologies.frames.ipv4 import IPV4, network_layer

__all__ = ["OtherFrame", "read_other"]

_ETHERTYPE_AT = 12
_IGMP, _TCP = 2, 6
_FIN_SYN_RST = 7


class OtherFrame(NamedTuple):
    """A frame that a link carries: `size` is such that a link that adds the headers of UDP counts the bytes of the frame.

    `kind` is that of the simulator's segments, "segment" with data, "segment_control" with SYN, FIN or RST, "segment_ack", and
    "other" for what is not TCP.
    """

    size: int
    kind: str


def read_other(frame: bytes) -> OtherFrame | None:
    """Return what a frame without UDP is; None for what hosts do not send to each other.

    That is IGMP and all but IPv4: ARP, and what the kernel's bridges and routers send on their own.
    """
    try:
        kind, at = network_layer(frame, _ETHERTYPE_AT)
        return _read_packet(frame, at) if kind == IPV4 else None
    except (StructError, IndexError):
        return OtherFrame(_size(len(frame) - HEADER), "other")


def _size(octets: int) -> int:
    """Return the payload of the UDP datagram that is as long as an IP packet of so many bytes."""
    return max(0, octets - IPV4_HEADER - UDP_HEADER)


def _read_packet(frame: bytes, at: int) -> OtherFrame | None:
    protocol = frame[at + 9]
    if protocol == _IGMP:
        return None
    (length,) = unpack_from(">H", frame, at + 2)
    if protocol != _TCP:
        return OtherFrame(_size(length), "other")
    headers = (frame[at] & 15) * 4
    flags = frame[at + headers + 13]
    has_data = length > headers + (frame[at + headers + 12] >> 4) * 4
    kind = "segment_control" if flags & _FIN_SYN_RST else "segment" if has_data else "segment_ack"
    return OtherFrame(_size(length), kind)
