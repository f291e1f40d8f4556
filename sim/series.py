"""Time series of a run: what was sent, lost and queued in each interval, as rows (time, measure, of, value)."""

from collections import Counter
from math import inf
from typing import TypeAlias

from protocols.events import Event, ObjectReceived
from protocols.machine import Packet
from sim.watch import Fate, Passage, WatchedNetwork, Watcher

__all__ = ["MEASURES", "Series", "SeriesRow"]

SeriesRow: TypeAlias = tuple[float, str, str, float]
"""(end of the interval in seconds, measure, what it is of, value)."""

MEASURES = {
    "packets_sent": "packets sent by all hosts, of a kind",
    "bytes_sent": "UDP payload sent by all hosts, of a kind; divided by the interval: the rate",
    "repairs_sent": "packets sent for repair, of a kind",
    "packets_lost": "packets lost by a link (of a counted group's links: by all together)",
    "packets_dropped": "packets dropped by a link's queue",
    "packets_corrupt": "packets damaged on a link, and dropped for it",
    "queue_bytes": "the longest wait of a packet at a link, in bytes, compared with the fastest packet of its size",
    "objects_received": "objects received by all hosts since the run began",
    "receivers_complete": "hosts that have received every object",
}
"""What is measured in each interval. Rows with value 0 are left out, except of the last two measures."""


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
        self._fastest: dict[tuple[str, int], float] = {}
        self._objects: Counter[str] = Counter()
        self._complete = 0
        self._network: WatchedNetwork | None = None
        self._missed: Counter[tuple[str, str]] = Counter()

    def begin(self, network: WatchedNetwork) -> None:
        """Keep the network, whose links count losses."""
        self._network = network

    def sent(self, now: float, host: str, packet: Packet, number: int) -> None:
        """Count by kind."""
        self._advance(now)
        kind = packet.message.kind
        self._sums["packets_sent", kind] += 1
        self._sums["bytes_sent", kind] += packet.size
        if packet.message.repair:
            self._sums["repairs_sent", kind] += 1

    def offered(self, now: float) -> None:
        """Close intervals that end before the link counts this packet."""
        self._advance(now)

    def passed(self, passage: Passage) -> None:
        """Record how long the packet waits."""
        self._wait(passage, min((fate.when for fate in passage.fates), default=inf))

    def arrived(self, now: float, passage: Passage, fate: Fate) -> None:
        """Record how long the packet waited."""
        self._advance(now)
        self._wait(passage, fate.when)

    def _wait(self, passage: Passage, when: float) -> None:
        spec = passage.spec
        if inf in (when, spec.rate) or spec.jitter is not None:
            return
        # The fastest packet of its size did not wait, so delays, framing and routers need not be known here.
        link, transit = "-".join(passage.ends), when - passage.now
        key = (link, passage.flight.size)
        fastest = self._fastest[key] = min(transit, self._fastest.get(key, inf))
        waited = (transit - fastest) * spec.rate
        # Less than a byte is a rounding error.
        if waited >= 1 and waited > self._waiting.get(link, 0.0):
            self._waiting[link] = waited

    def notified(self, now: float, host: str, event: Event) -> None:
        """Count objects received."""
        self._advance(now)
        if isinstance(event, ObjectReceived):
            self._objects[host] += 1
            self._complete += self._objects[host] == self._expected

    def end(self, now: float) -> None:
        """Close the last interval, which may be shorter."""
        self._advance(now)
        self._close(now)

    def _advance(self, now: float) -> None:
        while now >= self._until:
            self._close(self._until)
            self._ordinal += 1
            # Multiples, not sums: sums would drift.
            self._until = self._ordinal * self._interval

    def _close(self, time: float) -> None:
        self._count_missed()
        rows = [(measure, of, float(value)) for (measure, of), value in sorted(self._sums.items())]
        rows += [("queue_bytes", link, round(waited, 3)) for link, waited in sorted(self._waiting.items())]
        rows += [("objects_received", "", float(self._objects.total())), ("receivers_complete", "", float(self._complete))]
        self.rows += [(time, *row) for row in rows]
        self._sums.clear()
        self._waiting.clear()

    def _count_missed(self) -> None:
        """Add what links counted since the last interval."""
        assert self._network is not None
        for near, far, _ in self._network.topology.links:
            for name, count in self._network.missed((near, far)).items():
                key = (f"packets_{name}", f"{near}-{far}")
                if count > self._missed[key]:
                    self._sums[key] = count - self._missed[key]
                    self._missed[key] = count
