"""The priority of a message as a class of service: the DSCP of its packets (RFC 2474)."""

from collections.abc import Callable
from typing import Any, Final, cast

from protocols.machine import ClassedPacket, Packet, Ports
from protocols.norm.messages import Data, DataRun

__all__ = ["DSCP", "classed_ports"]

DSCP: Final = (8, 8, 8, 8, 0, 16, 24, 32, 40, 46)
"""By priority: CS1, lower effort (RFC 3662); default; CS2 to CS5; expedited forwarding (RFC 3246)."""


class _ClassedPorts:
    """The ports of a publisher; packets of a message have the class of its priority, others that of the host."""

    def __init__(self, ports: Ports, priority_of: Callable[[int], int | None]) -> None:
        self._ports = ports
        self._priority_of = priority_of

    def send(self, packet: Packet) -> object:
        message = packet.message
        priority = self._priority_of(message.object_id) if isinstance(message, (Data, DataRun)) else None
        if priority is None:
            return self._ports.send(packet)
        return self._ports.send(ClassedPacket(message, packet.size, packet.to, DSCP[priority]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ports, name)


def classed_ports(ports: Ports, priority_of: Callable[[int], int | None]) -> Ports:
    """Return ports whose packets of content have a DSCP; `priority_of(object_id)` is None for what is no message."""
    return cast(Ports, _ClassedPorts(ports, priority_of))
