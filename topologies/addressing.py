"""IPv4 addresses and protocol node ids of hosts, multicast addresses of groups; equal in the simulator and in Mininet."""

from hashlib import blake2b

from protocols.errors import ConfigError
from topologies.spec import Topology

__all__ = ["PREFIX_LENGTH", "endpoint_of_group", "host_address", "node_id"]

PREFIX_LENGTH = 8
"""Prefix length of the IPv4 network that all hosts share."""
HOST_LIMIT = 2**24 - 2


def host_address(topology: Topology, host: str) -> str:
    """Return the IPv4 address of a host: 10.0.0.1 for the first of `Topology.hosts`, and so on. ConfigError above the limit."""
    number = node_id(topology, host)
    if number > HOST_LIMIT:
        raise ConfigError(f"host {host}: 10.0.0.0/{PREFIX_LENGTH} has addresses for {HOST_LIMIT} hosts")
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def node_id(topology: Topology, host: str) -> int:
    """Return the 32-bit node id of a host within a protocol: 1 for the first of `Topology.hosts`, and so on."""
    return topology.index(host) + 1


def endpoint_of_group(name: str, port: int = 6003) -> str:
    """Return "239.x.y.z:port" for a group's name: a hash into the organisation-local scope (RFC 2365)."""
    scope = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little") & 0x3FFFF
    return f"239.{192 + (scope >> 16)}.{scope >> 8 & 255}.{scope & 255}:{port}"
