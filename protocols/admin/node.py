"""A tunnel in the list of a registry, and the advertisement of the list's time stamp."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from protocols.machine import Address, Message

__all__ = ["Advertisement", "Node", "peers_of", "place_of"]


@dataclass(frozen=True, slots=True)
class Node:
    """A tunnel: `id` is given by the registry and never used again, `address` and `port` take its datagrams (UDP).

    In the simulator `address` is the name of a host and `port` the number of a port there, as in `sim.addresses`. `site` tells
    tunnels of one site from those of others, `group` is the multicast group it carries. To and from a `paused` node nothing is
    carried.
    """

    id: int
    name: str
    site: int
    address: str
    port: int
    group: str
    paused: bool = False

    @property
    def endpoint(self) -> Address:
        """The address to which datagrams are sent."""
        return (self.address, self.port) if self.port else self.address


@dataclass(frozen=True, slots=True)
class Advertisement(Message):
    """The registry's time stamp of the last change of its list; a node with an older list requests it.

    `registry` is the number of the registry, by which a node recognises its own one, and `stamp` is in milliseconds.
    """

    kind: ClassVar[str] = "advertisement"
    registry: int
    stamp: int


def place_of(address: Address) -> tuple[str, int]:
    """Return `Node.address` and `Node.port` of an address of a host: the reverse of `Node.endpoint`."""
    return (str(address[0]), int(address[1])) if isinstance(address, tuple) else (str(address), 0)


def peers_of(nodes: Sequence[Node], own: int) -> tuple[Node, ...]:
    """Return the other tunnels for `update_peers`; `own` is the tunnel's id.

    If the tunnel itself is paused, all others are paused for it.
    """
    is_paused = any(node.paused for node in nodes if node.id == own)
    others = (node for node in nodes if node.id != own)
    return tuple(replace(node, paused=True) if is_paused else node for node in others)
