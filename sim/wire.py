"""An Ethernet wire that several queues share."""

from collections import deque
from collections.abc import Hashable, Sequence

from sim.fabric import Fabric
from sim.flight import Arrivals, Flight
from sim.stage import Then
from topologies.ethernet import Framing, size_on_link

__all__ = ["Wire"]


class Wire:
    """Serves its queues round robin, a packet at a time, at `rate` bytes per second; `limit` packets may wait in each.

    After a packet of a queue has been sent, all other queues with packets are served before that queue.
    """

    __slots__ = ("_fabric", "_limit", "_now", "_order", "_queues", "_rate", "dropped")

    def __init__(self, fabric: Fabric, rate: float, limit: int | None) -> None:
        self._fabric = fabric
        self._rate = rate
        self._limit = limit
        # The packets of each queue: seconds of transmission, and what follows. Queues that wait for service are in `_order`.
        self._queues: dict[Hashable, deque[tuple[Flight, float, Then]]] = {}
        self._order: deque[Hashable] = deque()
        self._now: tuple[Hashable, Flight, float, Then] | None = None
        self.dropped = 0

    def offer(self, queue: Hashable, flight: Flight, overhead: int | Framing, then: Then, now: float) -> None:
        """Send a packet over the wire, now or after those that wait; `then` is called when its last bit has arrived."""
        seconds = size_on_link(flight.size, overhead) / self._rate
        if self._now is None:
            self._send(queue, flight, seconds, then, now)
            return
        waiting = self._queues.get(queue)
        if waiting is None:
            waiting = self._queues[queue] = deque()
        if self._limit is not None and len(waiting) >= self._limit:
            self.dropped += 1
            return
        if not waiting and queue != self._now[0]:
            self._order.append(queue)
        waiting.append((flight, seconds, then))

    def _send(self, queue: Hashable, flight: Flight, seconds: float, then: Then, now: float) -> None:
        self._now = (queue, flight, seconds, then)
        self._fabric.forwarding.forward(flight, (self,), now)

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Send the chosen packet over the wire, as a link does."""
        assert self._now is not None
        arrivals.setdefault(now + self._now[2], []).append((self, ()))

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Start the next packet, then pass on the one that arrived: what that causes is offered after the next one."""
        del lost_by
        assert self._now is not None
        served, _, _, then = self._now
        self._now = None
        self._start(served, now)
        then(flight, now)

    def _start(self, served: Hashable, now: float) -> None:
        """Serve the next queue; `served` was served last."""
        if self._queues.get(served):
            self._order.append(served)
        else:
            self._queues.pop(served, None)
        if self._order:
            queue = self._order.popleft()
            self._send(queue, *self._queues[queue].popleft(), now)
