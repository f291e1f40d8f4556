"""IEEE 802.3x: a node without room for another packet pauses the links into it, and no packet is lost there.

A link is paused at once, and room is reserved for the packets in flight, as a switch keeps headroom for them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from functools import partial
from math import inf

from sim.fabric import Fabric
from sim.flight import Arrivals, Backlog, Flight, Hop, Place
from sim.kernel import Kernel
from sim.stage import Stage
from topologies.drop_tail import DropTailQueue
from topologies.ethernet import size_on_link
from topologies.spec import LinkSpec

__all__ = ["PausedLink", "Pausing", "QueueRoom"]


class Pausing(ABC):
    """The part of a node that pauses the links into it."""

    def __init__(self) -> None:
        self.expected = 0
        """Packets in flight to this node."""
        self.paused: list[PausedLink] = []
        self._resumes_at = inf

    @abstractmethod
    def ready(self, size: int, now: float) -> float:
        """Return `now` when there is room for a packet of `size` bytes, else when to try again; inf: after the next arrival."""

    def expect(self, size: int, sign: int) -> None:
        """Count a packet that is in flight to this node (`sign` 1), or has arrived (-1)."""
        del size
        self.expected += sign

    def stop(self, link: "PausedLink", kernel: Kernel, when: float) -> None:
        """Pause the link until `resume_all`, at `when` (seconds) at the latest."""
        self.paused.append(link)
        # Only one action is scheduled at any time, or their number would grow with every one.
        if when < self._resumes_at:
            self._resumes_at = when
            kernel.later(when, partial(self._on_time, when))

    def _on_time(self, now: float) -> None:
        if self._resumes_at == now:
            self._resumes_at = inf
        self.resume_all(now)

    def resume_all(self, now: float) -> None:
        """Resume the paused links, as far as there is room for their packets."""
        paused, self.paused = self.paused, []
        for link in paused:
            link.resume(now)


class QueueRoom(Pausing):
    """Pauses the links into a switch while a limited queue out of it is full."""

    def __init__(self, links: Mapping[str, Hop]) -> None:
        super().__init__()
        self._links = links

    def ready(self, size: int, now: float) -> float:
        """See `Pausing`. A packet might go to any of the links, so the fullest queue decides."""
        del size
        queues = [queue for link in self._links.values() for queue in link.queues()]
        return max([_ready(queue, self.expected, now) for queue in queues], default=now)


def _ready(queue: DropTailQueue | Backlog, expected: int, now: float) -> float:
    """Return when `expected` packets and one more have room in a queue; inf when only later arrivals decide that."""
    if not isinstance(queue, DropTailQueue):
        return queue.ready(expected, now)
    if queue.departures is None or queue.limit is None:
        return now
    unsent = [when for when in queue.departures if when > now]
    over = int(len(unsent) + expected - queue.limit)
    if over <= 0:
        return now
    return unsent[over - 1] if over <= len(unsent) else inf


class PausedLink:
    """One direction of a link to a node that pauses: a real queue, since the time a packet leaves it is not known in advance.

    `far` is the node at the far end, `behind` that at the near end if it pauses links itself.
    """

    __slots__ = (
        "_behind",
        "_busy",
        "_delay",
        "_fabric",
        "_far",
        "_limit",
        "_lossy",
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

    def __init__(self, fabric: Fabric, behind: Pausing | None, spec: LinkSpec, head: Place, far: Pausing, key: int) -> None:
        self._fabric = fabric
        self._behind = behind
        self._far = far
        self.head = head
        self._rate, self._delay, self._overhead, self._limit = spec.rate, spec.delay, spec.overhead, spec.queue
        self.sampler = spec.loss.link(key)
        self.waiting: deque[tuple[Flight, bool]] = deque()
        self._busy = False
        self._wire = Stage(self._serialised, self._sent)
        self._lossy = Stage(self._serialised, self._free)
        self._travelling = Stage(lambda flight, now: now + self._delay, self._arrived)
        self.offered = self.dropped = self.lost = 0

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end."""
        del arrivals
        self.offered += 1
        lost = self.sampler is not None and self.sampler.lost(flight.identity)
        if self._limit is not None and len(self.waiting) + self._busy > self._limit:
            self.dropped += 1
            return
        self.waiting.append((flight, lost))
        if len(self.waiting) == 1:
            self.resume(now)

    def queues(self) -> "list[PausedLink]":
        """See `sim.flight.Hop`."""
        return [self]

    def ready(self, expected: int, now: float) -> float:
        """See `sim.flight.Backlog`."""
        return now if self._limit is None or len(self.waiting) + self._busy + expected <= self._limit else inf

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`; it is not known."""
        del place
        return 0.0

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`; `member` is 0."""
        del member
        return self.lost + self.dropped

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`."""
        return self.offered, self.dropped, self.lost, 0, 0, 0

    def resume(self, now: float) -> None:
        """Send the next packet, if there is one and the node has room."""
        if self._busy or not self.waiting:
            return
        flight, lost = self.waiting[0]
        when = self._far.ready(flight.size, now)
        if when > now:
            if self not in self._far.paused:
                self._far.stop(self, self._fabric.kernel, when)
            return
        self.waiting.popleft()
        self._busy = True
        self.lost += lost
        if not lost:
            self._far.expect(flight.size, 1)
        self._fabric.forwarding.forward(flight, (self._lossy if lost else self._wire,), now)

    def _serialised(self, flight: Flight, now: float) -> float:
        return now + size_on_link(flight.size, self._overhead) / self._rate

    def _free(self, flight: Flight, now: float) -> None:
        """Start the next packet, since the wire is free; the queue has room for one more."""
        del flight
        self._busy = False
        self.resume(now)
        if self._behind is not None:
            self._behind.resume_all(now)

    def _sent(self, flight: Flight, now: float) -> None:
        self._fabric.forwarding.forward(flight, (self._travelling,), now)
        self._free(flight, now)

    def _arrived(self, flight: Flight, now: float) -> None:
        self._far.expect(flight.size, -1)
        self.head.arrive(flight, (), now)
        self._far.resume_all(now)
