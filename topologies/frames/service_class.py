"""The class of service in the IP header of a frame."""

from struct import error as StructError
from struct import unpack_from

from topologies.frames.ipv4 import IPV4, IPV6, network_layer

__all__ = ["dscp_of"]

_ETHERTYPE_AT = 12
_SHIFT = {IPV4: 2, IPV6: 6}
"""Bits behind the DSCP in the first two bytes of a header: ECN, and of IPv6 the begin of the flow label."""


def dscp_of(frame: bytes) -> int:
    """Return the DSCP of a frame's packet; 0 for a frame without IP."""
    try:
        kind, at = network_layer(frame, _ETHERTYPE_AT)
        (first,) = unpack_from(">H", frame, at)
    except StructError:
        return 0
    shift = _SHIFT.get(kind)
    return 0 if shift is None else first >> shift & 63
