"""The publisher of the bus: takes every message at once, and keeps what the network card does not take."""

from protocols.bus.config import BusConfig
from protocols.machine import Address, Group, Message, Ports
from protocols.messaging import Publication
from protocols.nacked.messages import Leave
from protocols.nacked.publisher import NackedPublisher
from protocols.roles import RoleContext

__all__ = ["BusPublisher"]


class BusPublisher(NackedPublisher):
    """Sends as fast as the card takes packets. A call of `publish` takes its time, and never waits for anything else."""

    __slots__ = ("_bus", "_group")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self._bus: BusConfig = context.config
        self._group = context.group

    def start(self, now: float) -> None:
        """Join the group."""
        self.channel(self._group)

    def group_of(self, destination: str) -> Group:
        """Return the one group, which carries every destination."""
        return self._group

    def gap(self, size: int, now: float) -> float:
        """Return the time that the card needs for a packet."""
        return size / self._bus.rate

    def publish(self, message: Publication, now: float) -> bool:
        """Queue a message, whatever waits; the call lasts as long as it costs."""
        self.block_for(self._bus.cost, now)
        return super().publish(message, now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Repair what a subscriber misses; with the fault of iBus, end when one leaves."""
        if isinstance(message, Leave) and self._bus.leave_fault:
            self.ports.fail("a subscriber left")
            return
        super().receive(message, source, to, now)
