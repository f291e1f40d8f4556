"""Size tables (tc-stab(8)) by which a token bucket counts the bytes of a packet with any link framing.

Without a table the kernel counts Ethernet header and payload. With one it counts preamble, FCS, inter-frame gap, tag and
padding too, as `topologies.ethernet.size_on_link` does.
"""

import json

from emu.requirements import run
from protocols.errors import UnsupportedError
from topologies.ethernet import FCS, GAP, PREAMBLE, SMALLEST_FRAME, TAG, Framing
from topologies.spec import UDP_OVERHEAD

__all__ = ["LARGEST_PACKET", "check_sizes", "cost_table", "size_table"]

LARGEST_PACKET = 1514
"""Largest packet in bytes, as the kernel counts it."""

_LARGEST = 2047
"""Largest length in the table, which has an entry for every length up to it: nothing is rounded."""


def size_table(overhead: int | Framing, wrapping: int = 0) -> str:
    """Return arguments of `tc qdisc add ... root` for a bucket that counts `size_on_link`; "" if it needs no table.

    `wrapping` are the bytes around each packet, such as those of a tunnel, that must not be counted.
    """
    if overhead == UDP_OVERHEAD + wrapping:
        return ""
    if isinstance(overhead, int):
        return f"stab overhead {overhead - UDP_OVERHEAD - wrapping}"
    more = PREAMBLE + FCS + GAP + (TAG if overhead == "ethernet-802.1q" else 0) - wrapping
    least = PREAMBLE + SMALLEST_FRAME + GAP
    return f"stab overhead {more} mpu {least} mtu {_LARGEST} tsize {_LARGEST + 1}"


def cost_table(per_packet: float, per_byte: float) -> tuple[str, float, int]:
    """Model a processor as a token bucket: `per_packet` seconds for a packet, `per_byte` seconds for each byte of UDP payload.

    Returns the arguments of its size table, its rate in bytes per second, and the most bytes it counts for a packet.
    """
    if not per_byte:
        # Every packet counts as many bytes as the largest, whatever its length.
        return f"stab mpu {_LARGEST} mtu {_LARGEST} tsize {_LARGEST + 1}", _LARGEST / per_packet, _LARGEST
    more = round(per_packet / per_byte) - UDP_OVERHEAD
    return f"stab overhead {more}", 1 / per_byte, LARGEST_PACKET + more


def check_sizes(link: str, table: str, device: str, pid: int | None) -> None:
    """Raise UnsupportedError naming the link if the root qdisc of `device` lacks the size table.

    `pid` is a process in the device's network namespace; None is this process's.
    """
    arguments = table.split()[1:]
    expected = {key: int(value) for key, value in zip(arguments[::2], arguments[1::2], strict=True)}
    rows = json.loads(run(f"tc -d -j qdisc show dev {device}", pid=pid))
    reported: dict[str, int] = next((row.get("stab", {}) for row in rows if row.get("root")), {})
    if reported != expected:
        raise UnsupportedError(f"link {link}: {table!r} was not applied by the kernel: {reported or 'no size table'}")
