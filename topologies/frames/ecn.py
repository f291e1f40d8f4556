"""The mark of a queue in the IP header of a frame: congestion experienced (ECN, RFC 3168)."""

from struct import error as StructError
from struct import pack_into, unpack_from

from topologies.frames.ipv4 import IPV4, IPV6, network_layer

__all__ = ["marked"]

_ETHERTYPE_AT = 12
_CE = 3


def marked(frame: bytes) -> bytes:
    """Return a frame with the mark if the sender of its packet is ECN-capable, else as it is.

    The checksum of an IPv4 header is corrected by what has changed (RFC 1624).
    """
    try:
        kind, at = network_layer(frame, _ETHERTYPE_AT)
        (first,) = unpack_from(">H", frame, at)
    except StructError:
        return frame
    # The ECN field is the end of the traffic class: IPv6 has the flow label behind it, IPv4 nothing.
    shift = {IPV4: 0, IPV6: 4}.get(kind)
    if shift is None or not first >> shift & _CE or (kind == IPV4 and len(frame) < at + 20):
        return frame
    found = bytearray(frame)
    pack_into(">H", found, at, first | _CE << shift)
    if kind == IPV4:
        (checksum,) = unpack_from(">H", frame, at + 10)
        pack_into(">H", found, at + 10, _updated(checksum, first, first | _CE))
    return bytes(found)


def _updated(checksum: int, before: int, after: int) -> int:
    """Return the Internet checksum after one of the words that it covers has changed."""
    total = (~checksum & 0xFFFF) + (~before & 0xFFFF) + after
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
