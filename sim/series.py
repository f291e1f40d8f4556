"""Time series of a run: what was sent, lost and waiting in each interval, as rows (time, measure, of, value)."""

from collections import Counter
from math import inf
from typing import TypeAlias

from protocols.events import Event, ObjectReceived
from protocols.machine import Packet
from sim.watch import QUEUE, Passage, Watcher

__all__ = ["MEASURES", "Series", "SeriesRow"]

SeriesRow: TypeAlias = tuple[float, str, str, float]
"""(end of the interval in seconds, measure, what it is of, value)."""

MEASURES = {
    "packets_sent": "packets sent by all hosts, of a kind",
    "bytes_sent": "UDP payload sent by all hosts, of a kind; divided by the interval: the rate",
    "repairs_sent": "packets sent because somebody missed them, of a kind",
    "packets_lost": "packets lost by a link (of a counted group's links: by all)",
    "packets_dropped": "packets dropped by a link's full queue",
    "queue_bytes": "the most a packet that got through found waiting before it at a link, in bytes on the wire",
    "objects_received": "objects received by all hosts since the run began",
    "receivers_complete": "hosts that have received every object",
}
"""What is measured in each interval. Rows of value 0 are left out, but for the last two, which every interval has."""


class Series(Watcher):
    """Collects `rows`. A host is complete with `expected` objects; `interval` is in seconds."""

    def __init__(self, interval: float, expected: int) -> None:
        self.rows: list[SeriesRow] = []
        self._interval = interval
        self._expected = expected
        self._ordinal = 1
        self._until = interval
        self._sums: Counter[tuple[str, str]] = Counter()
        self._waiting: dict[str, float] = {}
        self._objects: Counter[str] = Counter()
        self._complete = 0

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Count by kind."""
        self._advance(now)
        kind = packet.message.kind
        self._sums["packets_sent", kind] += 1
        self._sums["bytes_sent", kind] += packet.size
        if packet.message.repair:
            self._sums["repairs_sent", kind] += 1

    def passed(self, passage: Passage) -> None:
        """Count what is lost, and see how long the others wait."""
        self._advance(passage.now)
        link = f"{passage.near}-{passage.far}"
        transit = inf
        for fate in passage.fates:
            if fate.when < inf:
                transit = min(transit, fate.when - passage.now)
            else:
                self._sums["packets_dropped" if fate.reason == QUEUE else "packets_lost", link] += 1
        spec = passage.spec
        if transit < inf and spec.rate < inf:
            waited = (transit - spec.delay) * spec.rate - (passage.flight.size + spec.overhead)
            # Less than a byte is rounding.
            if waited >= 1 and waited > self._waiting.get(link, 0.0):
                self._waiting[link] = waited

    def told(self, now: float, host: str, event: Event) -> None:
        """Count objects received."""
        self._advance(now)
        if isinstance(event, ObjectReceived):
            self._objects[host] += 1
            self._complete += self._objects[host] == self._expected

    def end(self, now: float) -> None:
        """The last interval, which may be shorter."""
        self._advance(now)
        self._close(now)

    def _advance(self, now: float) -> None:
        while now >= self._until:
            self._close(self._until)
            self._ordinal += 1
            # Multiples, not sums: sums would drift.
            self._until = self._ordinal * self._interval

    def _close(self, time: float) -> None:
        rows = [(measure, of, float(value)) for (measure, of), value in sorted(self._sums.items())]
        rows += [("queue_bytes", link, round(waited, 3)) for link, waited in sorted(self._waiting.items())]
        rows += [("objects_received", "", float(self._objects.total())), ("receivers_complete", "", float(self._complete))]
        self.rows += [(time, *row) for row in rows]
        self._sums.clear()
        self._waiting.clear()
