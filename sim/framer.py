"""The Ethernet frames that the hosts of a topology send."""

from ipaddress import IPv4Address

from protocols.machine import Address, Group
from sim.addresses import name_and_port
from topologies.addressing import endpoint_of_group, host_address
from topologies.frames.building import frame, tcp_frame
from topologies.spec import Topology

__all__ = ["PORT", "Framer"]

PORT = 6003
"""The UDP port of every host's first machine, and of a group whose name contains no other."""


class Framer:
    """Builds the frames that hosts of a topology send."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: dict[Address, tuple[IPv4Address, int]] = {}

    def endpoint(self, address: Address) -> tuple[IPv4Address, int]:
        """Return the (IPv4 address, port) of a machine or a group."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._find(address)
        return found

    def _find(self, address: Address) -> tuple[IPv4Address, int]:
        if not isinstance(address, Group):
            host, number = name_and_port(address)
            return IPv4Address(host_address(self._topology, host)), PORT + number
        name = address.name if _is_endpoint(address.name) else endpoint_of_group(address.name, PORT)
        group, _, port = name.rpartition(":")
        return IPv4Address(group), int(port)

    def frame(self, source: Address, to: Address, payload: bytes, number: int, dscp: int = 0) -> bytes:
        """Return the frame from one of the topology's addresses to another."""
        return frame(self.endpoint(source), self.endpoint(to), payload, number, dscp)

    def tcp_frame(self, source: Address, to: Address, segment: bytes, number: int) -> bytes:
        """Return the frame of a TCP segment between two hosts; its ports are in the segment."""
        return tcp_frame(self.endpoint(source)[0], self.endpoint(to)[0], segment, number)


def _is_endpoint(name: str) -> bool:
    host, colon, port = name.rpartition(":")
    try:
        return bool(colon) and IPv4Address(host).is_multicast and port.isdecimal() and int(port) < 1 << 16
    except ValueError:
        return False
