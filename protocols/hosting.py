"""The interface of hosts that are also the ports of their machine, as all hosts of mcastlab are."""

from typing import Protocol

from protocols.machine import Host, Ports

__all__ = ["PortsHost"]


class PortsHost(Host, Ports, Protocol):
    """A host that is also the ports of its machine: `host.run(NormReceiver(host, ...), on_event)`."""

    def stop(self) -> None:
        """Remove the machine: it leaves its groups and gets no further inputs."""
