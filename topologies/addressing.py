"""Addresses: host name to IPv4 and to protocol node id, group name to a multicast address. The same in both worlds."""

from hashlib import blake2b

from protocols.errors import ConfigError
from topologies.spec import Topology

__all__ = ["PREFIX_LENGTH", "endpoint_of_group", "host_address", "node_id"]

PREFIX_LENGTH = 8
"""Of the network all hosts are in."""
HOST_LIMIT = 2**24 - 2


def host_address(topology: Topology, host: str) -> str:
    """The IPv4 address of a host: 10.0.0.1 for the first of `Topology.hosts`, counting on."""
    number = node_id(topology, host)
    if number > HOST_LIMIT:
        raise ConfigError(f"host {host}: 10.0.0.0/{PREFIX_LENGTH} has addresses for {HOST_LIMIT} hosts only")
    return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def node_id(topology: Topology, host: str) -> int:
    """The 32-bit node id a host has within a protocol: 1 for the first of `Topology.hosts`, counting on."""
    return topology.index(host) + 1


def endpoint_of_group(name: str, port: int = 6003) -> str:
    """ "239.x.y.z:port" of a group's name, in the organisation-local scope (RFC 2365)."""
    scope = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little") & 0x3FFFF
    return f"239.{192 + (scope >> 16)}.{scope >> 8 & 255}.{scope & 255}:{port}"
