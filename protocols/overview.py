"""What a console shows of any protocol: the same few counters, gauges and members of a connection, found in its statistics.

A protocol offers its statistics as a `Snapshot`; what its counters are called differs where its mechanism does (a NORM receiver
sends NACKs, a subscriber of the Distributor requests). `FLOWS` and `REQUESTS` say which counters mean the same to a reader.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from protocols.machine import Machine
from protocols.snapshot import Snapshot

__all__ = ["FLOWS", "REQUESTS", "Overview", "bytes_of_content", "counters_of", "overviews", "progress_of"]

FLOWS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "bytes_sent": (("bytes_sent",),),
    "packets_sent": (("data_sent", "repairs_sent"),),
    "messages_sent": (("messages_published",), ("messages_relayed",), ("objects_sent",)),
    "bytes_received": (("bytes_received",),),
    "packets_received": (("data_received",),),
    "messages_received": (("messages_received", "messages_unmatched"), ("objects_received",)),
}
"""By name of a flow: alternatives, of which the first counts that a session has; one is a sum of counters."""
REQUESTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "requests_in": (("requests_received",), ("nacks_received",)),
    "requests_out": (("requests_sent",), ("nacks_sent",)),
    "requests_seen": (("requests_heard",), ("nacks_heard",)),
}
"""Requests for retransmission: received, sent, and seen of others."""
MEMBERS: Final = ("publisher", "subscriber", "sender", "receiver")
"""Parts that are other nodes."""


def counters_of(values: Mapping[str, float], names: Mapping[str, tuple[tuple[str, ...], ...]] = FLOWS) -> dict[str, float]:
    """Return the counters of `names` that a session with these values has."""
    found = {}
    for name, alternatives in names.items():
        for parts in alternatives:
            if parts[0] in values:
                found[name] = sum(values.get(part, 0) for part in parts)
                break
    return found


@dataclass(slots=True)
class Overview:
    """One connection in brief: a session, or several of one node in the same group."""

    name: str
    role: str
    counters: dict[str, float]
    """Those of `FLOWS` and `REQUESTS`."""
    subscriptions: int
    queue: int
    """Messages that wait."""
    members: list[Snapshot]
    """The nodes that it hears or serves."""


def overviews(snapshot: Snapshot) -> Iterator[Overview]:
    """Yield the connections of a host: a session with everything below it, or each session of a host of several."""
    sessions = snapshot.only("session") or ([snapshot] if snapshot.part == "session" else [])
    for session in sessions:
        inner = _innermost(session)
        values: dict[str, float] = {}
        for each in inner:
            for name, value in each.values.items():
                values[name] = values.get(name, 0) + value
        parts = [part for each in inner for part in each.parts]
        roles = dict.fromkeys(role for each in inner if (role := each.states.get("role", "")))
        role = session.states.get("role", "")
        waiting = sum(part.values.get("held", 0) for part in parts if part.part == "queue")
        yield Overview(
            session.name or next((each.name for each in inner if each.name), ""),
            role or " and ".join(roles),
            counters_of(values) | counters_of(values, REQUESTS),
            int(values.get("subscriptions", 0)),
            int(waiting + values.get("segments_queued", 0)),
            [part for part in parts if part.part in MEMBERS],
        )


def bytes_of_content(snapshot: Snapshot) -> dict[str, int]:
    """Return the bytes that all sessions of a host sent and received."""
    sums: dict[str, int] = {}
    for overview in overviews(snapshot):
        for name in ("bytes_sent", "bytes_received"):
            if name in overview.counters:
                sums[name] = sums.get(name, 0) + int(overview.counters[name])
    return sums


def _innermost(session: Snapshot) -> list[Snapshot]:
    """Return the sessions of which a layer consists, or the session itself."""
    inner = [each for part in session.only("session") for each in _innermost(part)]
    return [session, *inner] if session.values and inner else inner or [session]


def progress_of(machine: Machine, now: float) -> dict[str, int]:
    """Return bytes of content and counters of a machine; `ring_used` and `ring_size` of one that keeps packets in a ring."""
    used, size = machine.held().get("packets in the ring", (0, 0))
    ring = {"ring_used": used, "ring_size": size} if size else {}
    return {**bytes_of_content(machine.snapshot(now)), **machine.counts(), **ring}
