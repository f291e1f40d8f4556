"""Hubs: switches whose links share one half-duplex medium."""

from collections.abc import Hashable, Sequence

from sim.fabric import Fabric
from sim.flight import Flight, Place
from sim.node_counts import NodeCounts
from sim.switch import Switch
from sim.wire import Wire
from topologies.ethernet import Framing
from topologies.node_models import SwitchModel

__all__ = ["Hub"]


class Hub(Switch):
    """A medium at which the nodes linked to it are stations, each with a queue (`topologies.node_models.SwitchModel`).

    A packet has the overhead of the link by which it arrives.
    """

    __slots__ = ("_medium", "offered")

    def __init__(self, fabric: Fabric, name: str, model: SwitchModel) -> None:
        super().__init__(fabric, name)
        assert model.rate is not None
        self._medium = Wire(fabric, model.rate, model.queue)
        self.offered = 0

    def inlet(self, near: str) -> Place:
        """Return the station at which the link from `near` ends; each member of a counted group is one."""
        topology = self.fabric.topology
        counted = topology.node(near).count is not None
        return _Station(self, near, counted, topology.link(near, self.name).overhead)

    def transmit(self, station: Hashable, flight: Flight, overhead: int | Framing, now: float) -> None:
        """Send a packet over the medium, after packets of other stations as the round robin has it."""
        self.offered += 1
        self._medium.offer(station, flight, overhead, self._sent, now)

    def _sent(self, flight: Flight, now: float) -> None:
        """Pass a packet on to the links of its route; it was on the medium even if there are none."""
        self.arrive(flight, (), now)

    def counts(self) -> NodeCounts:
        """Return the packets offered to the medium, and those dropped by full queues of stations."""
        return NodeCounts(self.name, self.offered, self._medium.dropped)


class _Station:
    """The end of a link, or of the links of a counted group, at a hub."""

    __slots__ = ("_counted", "_hub", "_name", "_overhead")

    def __init__(self, hub: Hub, name: str, counted: bool, overhead: int | Framing) -> None:
        self._hub = hub
        self._name = name
        self._counted = counted
        self._overhead = overhead

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Take a packet; members of a group only send packets of their own."""
        del lost_by
        station: Hashable = (self._name, flight.place) if self._counted else self._name
        self._hub.transmit(station, flight, self._overhead, now)
