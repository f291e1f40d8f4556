"""What a UDP datagram costs on Ethernet: preamble, header, FCS, gap, padding, fragments and an 802.1Q tag (IEEE 802.3)."""

from functools import lru_cache
from typing import Literal, TypeAlias

__all__ = ["MTU", "Framing", "size_on_link", "wire_bytes"]

Framing: TypeAlias = Literal["ethernet", "ethernet-802.1q"]
"""Names of the exact framings: a link's `overhead` is a number of bytes or one of these."""

MTU = 1500
PREAMBLE, HEADER, FCS, GAP = 8, 14, 4, 12
IPV4, UDP, TAG = 20, 8, 4
SMALLEST_FRAME = 64
"""From header to FCS, a tag included (IEEE 802.1Q, annex G.2.3), so a tagged frame carries 42 bytes at least and not 46."""


@lru_cache(maxsize=4096)
def wire_bytes(payload: int, framing: Framing = "ethernet", mtu: int = MTU) -> int:
    """Bytes of time a datagram of `payload` bytes of UDP payload takes on the wire, all its frames together.

    Fragments but the last carry a multiple of 8 bytes (RFC 791).
    """
    around = HEADER + FCS + (TAG if framing == "ethernet-802.1q" else 0)
    left, room = payload + UDP, (mtu - IPV4) // 8 * 8
    total = 0
    while left > mtu - IPV4:
        total += PREAMBLE + around + IPV4 + room + GAP
        left -= room
    return total + PREAMBLE + max(SMALLEST_FRAME, around + IPV4 + left) + GAP


def size_on_link(payload: int, overhead: int | Framing) -> int:
    """Bytes a datagram takes on a link with this `overhead`: added, or by exact framing."""
    return payload + overhead if isinstance(overhead, int) else wire_bytes(payload, overhead)
