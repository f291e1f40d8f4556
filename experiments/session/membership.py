"""Who takes part in a session, and where: the protocol with its parameters, the group, the interface and the node id."""

import os
import secrets
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from emu.addresses import ip_of, socket_address_of
from emu.place import Place, place_of
from emu.udp_options import DEFAULTS, UdpOptions
from protocols.errors import UsageError
from protocols.rng import key_of
from protocols.spec import ProtocolSpec

__all__ = ["HIGHEST_NODE", "Membership", "check_node", "own_node"]

HIGHEST_NODE = 0xFFFFFFFE
"""NORM reserves 0 (NORM_NODE_NONE) and 2**32 - 1 (NORM_NODE_ANY)."""
_sessions = count()


def own_node(address: int) -> int:
    """Return a node id for a session on an interface with this address, other than those of other sessions there."""
    # The process id gives several programs on one machine different node ids, the number several sessions of a program.
    return key_of(address, os.getpid(), next(_sessions)) % HIGHEST_NODE + 1


def check_node(node: int | None, name: str = "node") -> None:
    """Raise UsageError for a node id out of range; `name` is what the user calls it."""
    if node is not None and not 0 < node <= HIGHEST_NODE:
        raise UsageError(f"{name}: value {node!r} is not allowed; a whole number from 1 to {HIGHEST_NODE}")


@dataclass(frozen=True, slots=True)
class Membership:
    """The parameters of a node in a session. UsageError for an invalid group or node id.

    `group` is "ADDR:PORT", or the other host's in a session of two; `iface` a device or an own address, None where the system
    routes the group; `network` is asked of the IP layer. Without a `node`, `own_node` makes the node id from the own address.
    """

    protocol: ProtocolSpec
    config: Any
    group: str
    iface: str | None = None
    node: int | None = None
    network: UdpOptions = DEFAULTS

    def __post_init__(self) -> None:
        check_node(self.node)
        socket_address_of(self.group)

    def place(self, *, receives: bool) -> Place:
        """Return where the session takes place for a node that receives, or only sends. Raises UsageError."""
        network = replace(self.network, ecn=True) if self.protocol.uses_ecn(self.config) else self.network
        return place_of(self.group, self.iface, network, receives=receives)

    def config_at(self, where: Place) -> Any:
        """Return the parameters for a session there: feedback goes to the sender where receivers can't reach each other."""
        if where.has_unicast_feedback and getattr(self.config, "feedback", "unicast") == "multicast":
            return replace(self.config, feedback="unicast")
        return self.config

    def node_on(self, address: str) -> int:
        """Return the node id of a host with this address."""
        ip = ip_of(address)
        number = int(ip) if ip.version == 4 else key_of(int.from_bytes(ip.packed)) % HIGHEST_NODE + 1
        return self.node or own_node(number)

    @staticmethod
    def instance() -> int:
        """Return a random instance id, by which receivers distinguish one start of a sender from the next."""
        return secrets.randbelow(0xFFFF) + 1
