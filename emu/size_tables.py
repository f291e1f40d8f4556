"""How the kernel's token bucket counts the bytes of a packet: Ethernet header and payload, and by a size table any framing.

With a size table the bucket counts preamble, FCS, gap, tag and padding too, so a link with an exact framing carries in the
kernel what `topologies.ethernet` says.
"""

import json

from emu.requirements import run
from protocols.errors import UnsupportedError
from topologies.ethernet import FCS, GAP, PREAMBLE, SMALLEST_FRAME, TAG, Framing
from topologies.spec import UDP_OVERHEAD

__all__ = ["LARGEST_PACKET", "check_sizes", "cost_table", "size_table"]

LARGEST_PACKET = 1514
"""Bytes of the largest packet as the kernel counts it."""

_LARGEST = 2047
"""The table has an entry for every length up to this one, so nothing is rounded."""


def size_table(overhead: int | Framing, wrapping: int = 0) -> str:
    """Words for `tc qdisc add ... root` so that a bucket counts `topologies.ethernet.size_on_link`; none if it does anyway.

    `wrapping` are bytes around each packet, such as those of a tunnel, that are not to be counted.
    """
    if overhead == UDP_OVERHEAD + wrapping:
        return ""
    if isinstance(overhead, int):
        return f"stab overhead {overhead - UDP_OVERHEAD - wrapping}"
    more = PREAMBLE + FCS + GAP + (TAG if overhead == "ethernet-802.1q" else 0) - wrapping
    least = PREAMBLE + SMALLEST_FRAME + GAP
    return f"stab overhead {more} mpu {least} mtu {_LARGEST} tsize {_LARGEST + 1}"


def cost_table(per_packet: float, per_byte: float) -> tuple[str, float, int]:
    """A bucket that stands for a processor which needs so many seconds for a packet, and for each byte of its UDP payload.

    The words for its size table, its rate in bytes per second, and the most bytes it counts for a packet.
    """
    if not per_byte:
        # Every packet counts as much as the table's largest, whatever its length.
        return f"stab mpu {_LARGEST} mtu {_LARGEST} tsize {_LARGEST + 1}", _LARGEST / per_packet, _LARGEST
    more = round(per_packet / per_byte) - UDP_OVERHEAD
    return f"stab overhead {more}", 1 / per_byte, LARGEST_PACKET + more


def check_sizes(link: str, table: str, device: str, pid: int | None) -> None:
    """UnsupportedError naming the link when the device (in the namespace of process `pid`) has not the size table asked for."""
    arguments = table.split()[1:]
    expected = {key: int(value) for key, value in zip(arguments[::2], arguments[1::2], strict=True)}
    rows = json.loads(run(f"tc -d -j qdisc show dev {device}", pid=pid))
    reported: dict[str, int] = next((row.get("stab", {}) for row in rows if row.get("root")), {})
    if reported != expected:
        raise UnsupportedError(f"link {link}: {table!r} was asked of the kernel and not taken: {reported or 'no size table'}")
