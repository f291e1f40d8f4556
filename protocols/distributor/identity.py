"""Who a node is on a connection: the names and numbers that its datagrams carry."""

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import TypeAlias

from protocols.distributor.messages import Source
from protocols.distributor.serial import on_wire
from protocols.machine import Group

__all__ = ["AnyIdentity", "Identity", "RunIdentity", "endpoint_of"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a node.

    `host` is its IPv4 address as an unsigned number, `sender_id` tells the nodes of a host apart, `application` is a number and
    `name` the name of its application, `host_name` that of its host.
    """

    host: int
    sender_id: int
    application: int
    name: str
    host_name: str = ""

    def source(self, start: int) -> Source:
        """Return the identity for headers of a node that began at `start` milliseconds since 1970."""
        return Source(self.host, self.sender_id, on_wire(start), self.application)


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Identity of a node of a run: its id `host` takes the place of the address. There may be many thousands of them."""

    host: int
    instance: int

    @property
    def name(self) -> str:
        """The name of the application."""
        return f"node-{self.host}"

    @property
    def host_name(self) -> str:
        """The name of the host."""
        return self.name

    def source(self, start: int) -> Source:
        """See `Identity.source`."""
        return Source(self.host, on_wire(self.host), on_wire(start), on_wire(self.host << 16 | self.instance))


AnyIdentity: TypeAlias = Identity | RunIdentity


def endpoint_of(group: Group) -> tuple[int, int]:
    """Return address and port of a group, which messages repeat; zeros for a name that is no address."""
    address, _, port = group.name.rpartition(":")
    try:
        return int(IPv4Address(address)), int(port)
    except (AddressValueError, ValueError):
        return 0, 0
