"""What the packets of an object carry, as their briefs name it, and when a receiver had enough of each part.

A part is a block of NORM, which any k of its symbols decode, the NORM_INFO of an object, or a unit of the other protocols.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from experiments.captures.trace_file import TracedPacket

__all__ = ["Carried", "Part", "carried_by", "parts_of"]

_SYMBOL = re.compile(r"(\d+)\.(\d+)\.(p?)(\d+)")
_UNIT = re.compile(r"(\d+)\.(\d+)")
CONTENT = ("data", "info", "repair", "run")


@dataclass(frozen=True, slots=True)
class Carried:
    """The symbol a packet carries: its object, the part of the object, and its name in the part. `is_parity`: no content."""

    object_id: int
    part: str
    symbol: str
    is_parity: bool = False


def carried_by(packet: TracedPacket) -> Carried | None:
    """Return what a packet of content carries; None for other packets."""
    if packet.kind == "info" and packet.brief.isdecimal():
        return Carried(int(packet.brief), "info", "")
    if packet.kind not in CONTENT:
        return None
    if match := _SYMBOL.fullmatch(packet.brief):
        return Carried(int(match[1]), match[2], match[3] + match[4], bool(match[3]))
    if match := _UNIT.fullmatch(packet.brief):
        return Carried(int(match[1]), match[2], "")
    return None


@dataclass(slots=True)
class Part:
    """A part of an object: how many symbols decode it, the packets that carry it in order of time, and when it was complete.

    `lost` are the first transmissions of content that did not come when they were sent.
    """

    name: str
    needed: int = 0
    packets: list[TracedPacket] = field(default_factory=list)
    lost: list[TracedPacket] = field(default_factory=list)
    complete: float = inf
    last_needed: TracedPacket | None = None
    """The packet that completed it."""

    @property
    def first_sent(self) -> float:
        """When the last symbol of content was sent for the first time."""
        return max(packet.time for packet in self.first_transmissions())

    def first_transmissions(self) -> list[TracedPacket]:
        """Return the first packet of each symbol of content."""
        first: dict[str, TracedPacket] = {}
        for packet in self.packets:
            carried = carried_by(packet)
            if carried is not None and not carried.is_parity:
                first.setdefault(carried.symbol, packet)
        return list(first.values())


def parts_of(packets: Iterable[TracedPacket], object_id: int, arrivals: Mapping[int, float]) -> dict[str, Part]:
    """Return the parts of an object that was sent by these packets, given when they reached a receiver, by packet number."""
    parts: dict[str, Part] = {}
    for packet in packets:
        carried = carried_by(packet)
        if carried is not None and carried.object_id == object_id:
            parts.setdefault(carried.part, Part(carried.part)).packets.append(packet)
    for part in parts.values():
        originals = part.first_transmissions()
        part.needed = len(originals)
        part.lost = [packet for packet in originals if packet.number not in arrivals]
        _complete(part, arrivals)
    return parts


def _complete(part: Part, arrivals: Mapping[int, float]) -> None:
    """Find the packet with which enough different symbols had arrived."""
    have: set[str] = set()
    arrived = sorted((arrivals[packet.number], packet.number) for packet in part.packets if packet.number in arrivals)
    known = {packet.number: packet for packet in part.packets}
    for when, number in arrived:
        carried = carried_by(known[number])
        if carried is not None:
            have.add(carried.symbol)
        if part.needed and len(have) >= part.needed:
            part.complete, part.last_needed = when, known[number]
            return
