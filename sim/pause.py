"""IEEE 802.3x: a node without room for another packet stops the links into it, and nothing is lost there.

A link knows at once that it is stopped, and packets on their way have their room kept, as a switch keeps headroom for them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from sim.stage import Stage
from topologies.ethernet import size_on_link
from topologies.spec import LinkSpec

if TYPE_CHECKING:
    from sim.flight import Flight
    from sim.link import Arrivals
    from sim.network import Network

__all__ = ["PausedLink", "Pausing", "QueueRoom"]


class Pausing(ABC):
    """The side of a node that stops the links into it."""

    def __init__(self) -> None:
        self.expected = 0
        """Packets on their way here."""
        self.stopped: list[PausedLink] = []
        self._asked_for = inf

    @abstractmethod
    def ready(self, size: int, now: float) -> float:
        """`now` when there is room for a packet of this size, else when to ask again; inf: when the next has come."""

    def expect(self, size: int, sign: int) -> None:
        """A packet is on its way here (1), or there (-1)."""
        del size
        self.expected += sign

    def stop(self, link: "PausedLink", network: "Network", when: float) -> None:
        """Let the link wait; it is asked again at `when` at the latest."""
        self.stopped.append(link)
        # One time to ask again is on its way at any time, or polls would beget polls.
        if when < self._asked_for:
            self._asked_for = when
            network.later(when, partial(self._on_time, when))

    def _on_time(self, now: float) -> None:
        if self._asked_for == now:
            self._asked_for = inf
        self.ask_again(now)

    def ask_again(self, now: float) -> None:
        """Let those links go on for which there is room."""
        stopped, self.stopped = self.stopped, []
        for link in stopped:
            link.go_on(now)


class QueueRoom(Pausing):
    """Room in all the queues out of a switch that have a limit."""

    def __init__(self, links: Mapping[str, Any]) -> None:
        super().__init__()
        self._links = links

    def ready(self, size: int, now: float) -> float:
        """A packet might go to any of the links, so the fullest decides."""
        del size
        again = now
        for link in self._links.values():
            for port in link.ports():
                again = max(again, _ready(port, self.expected, now))
        return again


def _ready(port: Any, expected: int, now: float) -> float:
    """When `expected` packets and one more have room in a queue; inf when only coming packets can tell."""
    if isinstance(port, PausedLink):
        return port.ready(expected, now)
    if port.departures is None:
        return now
    held = [when for when in port.departures if when > now]
    over = len(held) + expected - port.limit
    if over <= 0:
        return now
    return float(held[over - 1]) if over <= len(held) else inf


class PausedLink:
    """One direction of a link to a node that pauses: a real queue, since nobody can know in advance when a packet leaves it."""

    __slots__ = (
        "_busy",
        "_delay",
        "_gate",
        "_limit",
        "_lossy",
        "_near",
        "_network",
        "_overhead",
        "_rate",
        "_travelling",
        "_wire",
        "dropped",
        "head",
        "lost",
        "offered",
        "sampler",
        "waiting",
    )

    def __init__(self, network: "Network", near: str, spec: LinkSpec, head: Any, gate: Pausing, key: int) -> None:
        self._network = network
        self._near = near
        self._gate = gate
        self.head = head
        self._rate, self._delay, self._overhead, self._limit = spec.rate, spec.delay, spec.overhead, spec.queue
        self.sampler = spec.loss.link(key)
        self.waiting: deque[tuple[Flight, bool]] = deque()
        self._busy = False
        self._wire = Stage(self._serialised, self._sent)
        self._lossy = Stage(self._serialised, self._free)
        self._travelling = Stage(lambda flight, now: now + self._delay, self._arrived)
        self.offered = self.dropped = self.lost = 0

    def carry(self, flight: "Flight", now: float, landings: "Arrivals") -> None:
        """Take a packet at the near end."""
        del landings
        self.offered += 1
        lost = self.sampler is not None and self.sampler.lost(flight.identity)
        if self._limit is not None and len(self.waiting) + self._busy > self._limit:
            self.dropped += 1
            return
        self.waiting.append((flight, lost))
        if len(self.waiting) == 1:
            self.go_on(now)

    def ports(self) -> "list[PausedLink]":
        """Its queue."""
        return [self]

    def ready(self, expected: int, now: float) -> float:
        """As `Pausing.ready`, for the node at the near end."""
        return now if self._limit is None or len(self.waiting) + self._busy + expected <= self._limit else inf

    def lost_by(self, member: int) -> int:
        """Packets that did not come to the other end; `member` is 0."""
        del member
        return self.lost + self.dropped

    def counts(self) -> tuple[int, ...]:
        """See `Link.counts`."""
        return self.offered, self.dropped, self.lost, 0, 0, 0

    def go_on(self, now: float) -> None:
        """Send the next packet, if there is one and the node has room."""
        if self._busy or not self.waiting:
            return
        flight, lost = self.waiting[0]
        when = self._gate.ready(flight.size, now)
        if when > now:
            if self not in self._gate.stopped:
                self._gate.stop(self, self._network, when)
            return
        self.waiting.popleft()
        self._busy = True
        self.lost += lost
        if not lost:
            self._gate.expect(flight.size, 1)
        self._network.forward(flight, (self._lossy if lost else self._wire,), now)

    def _serialised(self, flight: "Flight", now: float) -> float:
        return now + size_on_link(flight.size, self._overhead) / self._rate

    def _free(self, flight: "Flight", now: float) -> None:
        """The wire is free, and there is room for one more before it."""
        del flight
        self._busy = False
        self.go_on(now)
        behind = self._network.pausing.get(self._near)
        if behind is not None:
            behind.ask_again(now)

    def _sent(self, flight: "Flight", now: float) -> None:
        self._network.forward(flight, (self._travelling,), now)
        self._free(flight, now)

    def _arrived(self, flight: "Flight", now: float) -> None:
        self._gate.expect(flight.size, -1)
        self.head.arrive(flight, (), now)
        self._gate.ask_again(now)
