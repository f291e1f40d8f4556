"""Arrivals over a link whose rate changes: planned when a packet is offered, and planned anew when the rate changes.

The packet in transmission ends as it began; what waits behind it is sent at the new rate.
"""

from collections.abc import Sequence

from sim.fabric import Fabric
from sim.flight import Flight, Place, Postponed
from topologies.drop_tail import DropTailQueue

__all__ = ["PlannedArrival", "PlannedArrivals"]


class PlannedArrival:
    """The arrival of a packet at the far end: a `Place` that passes it on to `place`, unless its time has changed since."""

    __slots__ = ("_plans", "end", "flight", "lost_by", "place", "queue", "when")

    def __init__(
        self, plans: "PlannedArrivals", flight: Flight, place: Place, lost_by: Sequence[int], queue: DropTailQueue, end: float
    ) -> None:
        self._plans = plans
        self.flight = flight
        self.place = place
        self.lost_by = lost_by
        self.queue = queue
        self.end = end
        """End of its transmission (seconds)."""
        self.when = end + plans.delay

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """See `Place`."""
        del flight, lost_by
        self._plans.arrive(self, now)


class PlannedArrivals:
    """The packets in flight on one link, or on the links to a counted group, with a propagation delay of `delay` seconds."""

    __slots__ = ("_fabric", "_planned", "delay")

    def __init__(self, fabric: Fabric, delay: float) -> None:
        self._fabric = fabric
        self.delay = delay
        self._planned: dict[PlannedArrival, None] = {}

    def plan(
        self, flight: Flight, place: Place, lost_by: Sequence[int], queue: DropTailQueue, end: float
    ) -> tuple[Place, Sequence[int]]:
        """Return where the copies of a packet arrive whose transmission by a queue ends at `end` seconds."""
        planned = PlannedArrival(self, flight, place, lost_by, queue, end)
        self._planned[planned] = None
        return planned, ()

    def arrive(self, planned: PlannedArrival, now: float) -> None:
        """Let a packet go on, unless its arrival was planned for another time meanwhile, or it has arrived."""
        if planned.when == now and planned in self._planned:
            del self._planned[planned]
            self._fabric.forwarding.forward(planned.flight, (Postponed(planned.place, now, planned.lost_by),), now)

    def change_rate(self, queues: Sequence[DropTailQueue], rate: float, now: float) -> None:
        """Set the rate of the queues in bytes per second, and plan anew what waits in them."""
        # Packets may still wait in a queue that the link does not use any more.
        known = dict.fromkeys([*queues, *(planned.queue for planned in self._planned)])
        stretched = {queue: queue.change_rate(rate, now) for queue in known}
        for planned in self._planned:
            begin, factor = stretched[planned.queue]
            if planned.end > begin:
                planned.end = begin + (planned.end - begin) * factor
                planned.when = planned.end + self.delay
                self._fabric.forwarding.forward(planned.flight, (Postponed(planned, planned.when),), now)
