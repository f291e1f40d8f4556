"""Bytes a UDP datagram occupies on Ethernet: preamble, header, FCS, gap, padding, fragments, 802.1Q tag (IEEE 802.3)."""

from functools import lru_cache
from typing import Literal, TypeAlias

__all__ = ["MTU", "Framing", "frames_of", "size_on_link", "wire_bytes"]

Framing: TypeAlias = Literal["ethernet", "ethernet-802.1q"]
"""Names of the exact framings: a link's `overhead` is a number of bytes or one of these."""

MTU = 1500
PREAMBLE, HEADER, FCS, GAP = 8, 14, 4, 12
IPV4, UDP, TAG = 20, 8, 4
SMALLEST_FRAME = 64
"""Bytes from header to FCS, a tag included (IEEE 802.1Q, annex G.2.3): a tagged frame carries at least 42 bytes, not 46."""


@lru_cache(maxsize=4096)
def wire_bytes(payload: int, framing: Framing = "ethernet", mtu: int = MTU) -> int:
    """Return the byte times that a datagram of `payload` bytes of UDP payload occupies on the wire, all its frames included.

    `mtu` is in bytes of IP. All fragments but the last carry a multiple of 8 bytes (RFC 791).
    """
    around = HEADER + FCS + (TAG if framing == "ethernet-802.1q" else 0)
    left, room = payload + UDP, (mtu - IPV4) // 8 * 8
    total = 0
    while left > mtu - IPV4:
        total += PREAMBLE + around + IPV4 + room + GAP
        left -= room
    return total + PREAMBLE + max(SMALLEST_FRAME, around + IPV4 + left) + GAP


def frames_of(payload: int, mtu: int | None = MTU) -> int:
    """Return the number of frames, fragments of one datagram, that carry `payload` bytes of UDP payload; None: no MTU."""
    if mtu is None or payload + UDP + IPV4 <= mtu:
        return 1
    room = mtu - IPV4
    return 1 - (room - payload - UDP) // (room // 8 * 8)


def size_on_link(payload: int, overhead: int | Framing) -> int:
    """Return the bytes a datagram occupies on a link: `payload` plus a constant `overhead`, or `wire_bytes` of a framing."""
    return payload + overhead if isinstance(overhead, int) else wire_bytes(payload, overhead)
