"""Deliveries that have no effect on their receivers but to be counted, without an event for each.

Content sent to a group has no effect on other senders in the group, which take feedback only. A packet of content on its way to
one of them alone is in `Accelerator.unnoticed` until its time of arrival is past. It becomes an event if the host joins or
leaves a group before.
"""

from collections.abc import Callable
from operator import itemgetter

from sim.acceleration import Passing
from sim.fabric import Fabric
from sim.flight import Postponed
from sim.host import SimHost
from sim.queue_entry import ARRIVAL, TIMER, QueueEntry, post

__all__ = ["Unnoticed"]

_when = itemgetter(0)


class Unnoticed:
    """Counts the deliveries of the `packets` of one network."""

    def __init__(self, packets: list[Passing]) -> None:
        self._packets = packets
        self._fabric: Fabric | None = None
        self._callbacks: tuple[Callable[[QueueEntry], None], ...] = (self._on_last,)

    def begin(self, fabric: Fabric) -> None:
        """Post an event behind the packets, because there are some again: time goes on until the last has arrived."""
        self._fabric = fabric
        when = max(map(_when, self._packets))
        post(fabric.kernel.queue, when, TIMER, next(fabric.kernel.env._eid), QueueEntry(self._callbacks, None))

    def catch_up(self) -> None:
        """Count what has arrived before the present event."""
        fabric, packets = self._fabric, self._packets
        if packets and fabric is not None:
            kernel = fabric.kernel
            now, priority, order, *_ = kernel.key
            if now < kernel.env._now:
                # A user's code drives SimPy instead of the kernel.
                now, priority, order = kernel.env._now, 0, 0
            is_inside = priority >= ARRIVAL
            left = [
                packet
                for packet in packets
                if packet[0] >= now
                and (packet[0] > now or not is_inside or (priority == ARRIVAL and packet[2].order_at(now) >= order))
            ]
            fabric.delivered += len(packets) - len(left)
            packets[:] = left

    def restore(self, host: SimHost) -> None:
        """Post the arrivals at a host that joins or leaves a group."""
        self.catch_up()
        fabric, packets = host.endpoint.fabric, self._packets
        for when, place, flight in packets:
            if place == host.place:
                fabric.forwarding.forward(flight, (Postponed(host, when),), fabric.kernel.env._now)
        packets[:] = [packet for packet in packets if packet[1] != host.place]

    def _on_last(self, entry: QueueEntry) -> None:
        del entry
        self.catch_up()
        if self._packets and self._fabric is not None:
            self.begin(self._fabric)
