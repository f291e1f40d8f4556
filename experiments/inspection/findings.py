"""Protocol violations and notices in a capture: counts by rule, with the first occurrences of each."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["RESERVED_NODES", "CaptureFinding", "FindingLog"]

RESERVED_NODES = (0, 0xFFFFFFFF)
"""NORM_NODE_NONE and NORM_NODE_ANY."""
_SHOWN = 5

VIOLATIONS = {
    "malformed": "datagrams that are not a valid NORM message",
    "unauthenticated": "messages without a valid MAC by a key of the key file",
    "beyond-object": "content beyond the end of its object",
    "wrong-length": "segments whose length contradicts their object",
    "changed-fti": "objects whose FEC object transmission information changes",
    "changed-content": "symbols repeated with different content",
    "never-sent": "requests or flushes for content that was never sent",
    "wrong-fec": "requests with a fec_id other than the sender's",
    "reserved-node": "messages from node id 0 or 4294967295, which stand for no node and for any",
    "two-decodings": "messages decoded differently by codec and scapy",
}
NOTICES = {
    "sequence-gap": "messages of a sender missing from the capture: lost upstream, or sent before it began",
    "late": "messages of a sender captured out of order",
    "duplicate": "messages captured twice at one interface",
    "instance-change": "senders that restarted with a new instance id",
    "two-addresses": "node ids used at several addresses",
    "unknown-sender": "feedback to a sender or instance not in the capture",
    "unasked-ack": "acknowledgements of a FLUSH that no captured FLUSH asked of their node",
    "detail-limit": "blocks and requests not tracked, because memory or work would be out of proportion to the capture",
    "before-capture": "requests for objects older than the first captured one",
}


@dataclass(slots=True)
class CaptureFinding:
    """One rule: number of occurrences, and the first of them as (packet, seconds since the first message, description)."""

    rule: str
    about: str
    count: int = 0
    first: list[tuple[int, float, str]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        first = [{"packet": packet, "time": round(time, 6), "what": what} for packet, time, what in self.first]
        return {"rule": self.rule, "about": self.about, "count": self.count, "first": first}


class FindingLog:
    """Violations of the protocol, and notices caused by networks, restarts and late captures."""

    def __init__(self) -> None:
        self._found: dict[str, CaptureFinding] = {}

    def add(self, rule: str, packet: int, time: float, what: str, count: int = 1) -> None:
        """Count `count` occurrences of a rule, described once."""
        found = self._found.get(rule)
        if found is None:
            found = self._found[rule] = CaptureFinding(rule, VIOLATIONS.get(rule) or NOTICES[rule])
        found.count += count
        if len(found.first) < _SHOWN:
            found.first.append((packet, time, what))

    @property
    def violations(self) -> list[CaptureFinding]:
        """Findings that violate the protocol."""
        return [self._found[rule] for rule in VIOLATIONS if rule in self._found]

    @property
    def notices(self) -> list[CaptureFinding]:
        """Findings that do not violate the protocol."""
        return [self._found[rule] for rule in NOTICES if rule in self._found]
