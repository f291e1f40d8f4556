"""What is wrong or remarkable in a capture: counted by rule, with the first few packets of each."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["CaptureFinding", "FindingLog"]

_SHOWN = 5

VIOLATIONS = {
    "malformed": "bytes that are no NORM message",
    "beyond-object": "content beyond the end of its object",
    "wrong-length": "a segment of another length than its object says",
    "changed-fti": "an object whose coding changes",
    "changed-content": "a symbol sent again with other content",
    "never-sent": "a request or flush for what was never sent",
    "wrong-fec": "a request with another fec_id than the sender's",
    "two-decodings": "codec and scapy disagree",
}
NOTICES = {
    "sequence-gap": "messages of a sender that never came by here: lost before this point, or before the capture began",
    "late": "messages of a sender that came by in another order",
    "duplicate": "messages that came by twice at one interface",
    "instance-change": "a sender that started anew",
    "two-addresses": "one node id at several addresses",
    "unknown-sender": "feedback to a sender or an instance that was not heard here",
    "before-capture": "requests for objects from before the first that was heard here",
}


@dataclass(slots=True)
class CaptureFinding:
    """One rule: how often, and the first of them as (packet, seconds since the first message, what)."""

    rule: str
    about: str
    count: int = 0
    first: list[tuple[int, float, str]] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        first = [{"packet": packet, "time": round(time, 6), "what": what} for packet, time, what in self.first]
        return {"rule": self.rule, "about": self.about, "count": self.count, "first": first}


class FindingLog:
    """Violations break the protocol; notices are what networks, restarts and late captures do."""

    def __init__(self) -> None:
        self._found: dict[str, CaptureFinding] = {}

    def add(self, rule: str, packet: int, time: float, what: str, count: int = 1) -> None:
        """One more; `count` for what is several of a kind, like a gap."""
        found = self._found.get(rule)
        if found is None:
            found = self._found[rule] = CaptureFinding(rule, VIOLATIONS.get(rule) or NOTICES[rule])
        found.count += count
        if len(found.first) < _SHOWN:
            found.first.append((packet, time, what))

    @property
    def violations(self) -> list[CaptureFinding]:
        """What breaks the protocol."""
        return [self._found[rule] for rule in VIOLATIONS if rule in self._found]

    @property
    def notices(self) -> list[CaptureFinding]:
        """What is worth knowing."""
        return [self._found[rule] for rule in NOTICES if rule in self._found]
