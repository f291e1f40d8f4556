"""Rounds of requests for a part of an object: which receivers sent or suppressed requests, and which repairs followed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from experiments.captures.trace_file import TracedPacket, TraceEvent
from experiments.explain.content import Part, carried_by
from experiments.explain.history import Fate, History

__all__ = ["REQUESTS", "Round", "repairs_between", "rounds_of"]

_SAME = 1e-7
"""Seconds within which two lines of a trace belong to the same input."""
REQUESTS = ("nack", "request", "repair_adv")


@dataclass(slots=True)
class Round:
    """One attempt of the receiver to get what it misses.

    `begin` is when its back-off began, `due` when a request of its own was due; both are None where decisions are not on
    record. `requests` are its own; `suppressed_by` is the request of another that took their place, at `suppressed_at`.
    """

    begin: float
    due: float | None = None
    requests: list[TracedPacket] = field(default_factory=list)
    suppressed_by: TracedPacket | None = None
    suppressed_at: float | None = None
    is_needless: bool = False
    end: float = inf
    fates: list[Fate] = field(default_factory=list)
    """What became of the requests on their way to the sender."""
    aggregation: TraceEvent | None = None
    repairs: list[TracedPacket] = field(default_factory=list)
    """Packets for the part that the sender sent in answer."""

    @property
    def asked(self) -> list[TracedPacket]:
        """The requests that stand for this round: its own, or the one that suppressed them."""
        return self.requests or ([self.suppressed_by] if self.suppressed_by is not None else [])

    @property
    def heard_at(self) -> float:
        """When the first of the requests reached the sender; inf if none did."""
        return min((fate.when for fate in self.fates), default=inf)


def rounds_of(history: History, part: Part, since: float) -> list[Round]:
    """Return the rounds from a loss at `since` until the part was complete, or the record ended."""
    found = list(_by_decisions(history, since) if history.knows_decisions else _by_packets(history, part, since))
    until = min(part.complete, history.end)
    found = [each for each in found if each.begin <= until and _can_name(history, part, each)]
    for place, each in enumerate(found):
        each.end = min(found[place + 1].begin if place + 1 < len(found) else inf, until)
        each.fates = [history.fate(packet, history.sender) for packet in each.asked]
    for place, each in enumerate(found):
        # Repairs that are sent until the next request arrives answer this one.
        follow = min((later.heard_at for later in found[place + 1 :]), default=inf)
        _answered(history, part, each, follow)
    return found


def _by_decisions(history: History, since: float) -> Iterator[Round]:
    """Yield the rounds of a receiver whose decisions are on record."""
    current: Round | None = None
    for event in history.decisions:
        if event.node != history.receiver:
            continue
        if event.name == "nack_backoff":
            if current is not None and _matters(current, since):
                yield current
            current = Round(event.time, float(event.data["until"]))
        elif current is None:
            continue
        elif event.name == "nack_suppressed":
            current.suppressed_by, current.suppressed_at = _heard(history, event.time, current.begin), event.time
        elif event.name == "nack_resumed":
            current.suppressed_by = current.suppressed_at = None
        elif event.name == "nack_due":
            current.suppressed_by = current.suppressed_at = None
            current.requests = [packet for packet in _own(history) if abs(packet.time - event.time) <= _SAME]
        elif event.name == "nack_needless":
            current.is_needless = True
    if current is not None and _matters(current, since):
        yield current


def _matters(each: Round, since: float) -> bool:
    """Return whether a request of this round can name what was lost at `since`."""
    return each.begin >= since or (each.due is not None and each.due >= since)


def _can_name(history: History, part: Part, each: Round) -> bool:
    """Return whether the requests of a round name the part, as far as is known; others were for what was lost before."""
    known = [history.requests[packet.number] for packet in each.asked if packet.number in history.requests]
    return len(known) < len(each.asked) or not known or any(part.name in asked or "*" in asked for asked in known)


def _own(history: History) -> Iterator[TracedPacket]:
    return (packet for packet in history.packets.values() if packet.node == history.receiver and packet.kind in REQUESTS)


def _heard(history: History, when: float, begin: float) -> TracedPacket | None:
    """Return the request of another that the receiver heard last, up to `when` and since `begin`."""
    heard = [
        (packet.received[history.receiver], packet.number)
        for packet in history.packets.values()
        if packet.kind in REQUESTS and begin <= packet.received.get(history.receiver, -1.0) <= when + _SAME
    ]
    return history.packets[max(heard)[1]] if heard else None


def _by_packets(history: History, part: Part, since: float) -> Iterator[Round]:
    """Yield rounds as far as packets show them: each request of the receiver, and those it heard from others before its own."""
    current: Round | None = None
    for packet in sorted(_requests_for(history, part), key=lambda packet: packet.time):
        if packet.time < since:
            continue
        if packet.node == history.receiver:
            is_same = current is not None and packet.time - current.begin <= history.longest_backoff
            if current is not None and not current.requests and is_same and not _repaired(part, current.begin, packet.time):
                # It was in the same back-off, and the request of the other did not suffice.
                current.suppressed_by = current.suppressed_at = None
                current.requests = [packet]
                continue
            if current is not None:
                yield current
            current = Round(packet.time, requests=[packet])
        elif history.receiver in packet.received and (
            current is None
            or packet.time - current.begin > 2 * history.longest_backoff > 0
            or _repaired(part, current.begin, packet.time)
        ):
            if current is not None:
                yield current
            heard = packet.received[history.receiver]
            current = Round(heard, suppressed_by=packet, suppressed_at=heard)
    if current is not None:
        yield current


def _repaired(part: Part, begin: float, end: float) -> bool:
    originals = {packet.number for packet in part.first_transmissions()}
    return any(begin < packet.time < end and packet.number not in originals for packet in part.packets)


def _requests_for(history: History, part: Part) -> Iterator[TracedPacket]:
    """Yield the requests that name a part of the object, as far as the record shows it."""
    whole = str(history.object_id) if part.name == "info" else f"{history.object_id}.{part.name}"
    for packet in history.packets.values():
        if packet.kind not in REQUESTS:
            continue
        asked = history.requests.get(packet.number)
        if asked:
            if part.name in asked or "*" in asked:
                yield packet
        elif asked is None and any(
            name == whole or name.startswith(f"{whole}.") for name in packet.brief.split(" +")[0].split(", ")
        ):
            yield packet


def _answered(history: History, part: Part, each: Round, follow: float) -> None:
    """Find what the sender did with the requests: aggregation, and the repairs of the part until the next request came."""
    heard = each.heard_at
    if heard == inf:
        return
    begun = [event for event in history.decisions if event.node == history.sender and event.name == "repair_aggregation"]
    # A request that comes while others are collected is served with them.
    collecting = [event for event in begun if event.time <= heard + _SAME and heard <= float(event.data["until"])]
    later = [event for event in begun if heard < event.time < min(follow, each.end)]
    each.aggregation = next(iter(collecting[-1:] or later), None)
    each.repairs = repairs_between(part, heard, follow)


def repairs_between(part: Part, begin: float, end: float) -> list[TracedPacket]:
    """Return the packets for a part in a time, other than first transmissions of content."""
    originals = {packet.number for packet in part.first_transmissions()}
    return [
        packet
        for packet in part.packets
        if begin <= packet.time < end and packet.number not in originals and carried_by(packet) is not None
    ]
