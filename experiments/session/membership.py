"""Who takes part in a session, and where: the protocol with its parameters, the group, the interface and the node id."""

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import count
from typing import Any

from emu.udp import socket_address_of
from protocols.errors import UsageError
from protocols.rng import key_of
from protocols.spec import ProtocolSpec

__all__ = ["HIGHEST_NODE", "Membership", "check_node", "own_node"]

HIGHEST_NODE = 0xFFFFFFFE
"""NORM reserves 0 (NORM_NODE_NONE) and 2**32 - 1 (NORM_NODE_ANY)."""
_sessions = count()


def own_node(address: int) -> int:
    """Return a node id for a session on an interface with this IPv4 address, other than those of other sessions there."""
    # The process id gives several programs on one machine different node ids, the number several sessions of a program.
    return key_of(address, os.getpid(), next(_sessions)) % HIGHEST_NODE + 1


def check_node(node: int | None, name: str = "node") -> None:
    """Raise UsageError for a node id out of range; `name` is what the user calls it."""
    if node is not None and not 0 < node <= HIGHEST_NODE:
        raise UsageError(f"{name}: value {node!r} is not allowed; a whole number from 1 to {HIGHEST_NODE}")


@dataclass(frozen=True, slots=True)
class Membership:
    """The parameters of a node in a session. UsageError for a group or a node id that is none.

    `group` is "ADDR:PORT"; `iface` a device or an IPv4 address, None where the system routes multicast; `ttl` that of
    multicasts. Without a `node`, `derive` makes the node id from the IPv4 address of the interface.
    """

    protocol: ProtocolSpec
    config: Any
    group: str
    iface: str | None = None
    node: int | None = None
    ttl: int = 1
    derive: Callable[[int], int] = own_node

    def __post_init__(self) -> None:
        check_node(self.node)
        if not IPv4Address(socket_address_of(self.group)[0]).is_multicast:
            allowed = "a multicast address (224.0.0.0 to 239.255.255.255) and a port"
            raise UsageError(f"group: value {self.group!r} is not allowed; {allowed}")

    @property
    def port(self) -> int:
        """The UDP port of the group."""
        return socket_address_of(self.group)[1]

    def node_on(self, address: str) -> int:
        """Return the node id of a host with this IPv4 address."""
        return self.node or self.derive(int(IPv4Address(address)))

    @staticmethod
    def instance() -> int:
        """Return a random instance id, which tells one start of a sender from the next."""
        return secrets.randbelow(0xFFFF) + 1
