"""The subscriber of the bus."""

from protocols.machine import Group, Packet, Ports
from protocols.nacked.messages import Leave
from protocols.nacked.subscriber import NackedSubscriber
from protocols.nacked.wire import size_of
from protocols.roles import RoleContext

__all__ = ["BusSubscriber"]


class BusSubscriber(NackedSubscriber):
    """Sends LEAVE when its last subscription ends."""

    __slots__ = ("_group", "_node")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self._node = context.node
        self._group = context.group

    def group_of(self, destination: str) -> Group:
        """Return the one group, which carries every destination."""
        return self._group

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription, and send LEAVE with the last one."""
        if len(self.subscriptions) == 1 and number in self.subscriptions:
            message = Leave(self._node)
            self.ports.send(Packet(message, size_of(message), self._group))
        super().unsubscribe(number, now)
