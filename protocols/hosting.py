"""A host and its machine's ports in one object, as all hosts here are."""

from typing import Protocol

from protocols.machine import Host, Ports

__all__ = ["PortsHost"]


class PortsHost(Host, Ports, Protocol):
    """Runs a machine and is the ports that the machine is made with: `host.run(NormReceiver(host, ...), on_event)`."""

    def stop(self) -> None:
        """End the machine: it leaves its groups, and neither receives nor sends any more."""
