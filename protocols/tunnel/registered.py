"""A tunnel and the client of its registry, as one machine with one address."""

from collections.abc import Callable

from protocols.admin.client import RegistryClient
from protocols.admin.node import Advertisement
from protocols.admin.registration import Registration
from protocols.connection import Connection
from protocols.layer import Layer, unheard
from protocols.machine import Address, Message, Ports
from protocols.tunnel.tunnel import Tunnel

__all__ = ["RegisteredTunnel"]


class RegisteredTunnel(Layer):
    """A tunnel whose peers are those that the registry at an address lists."""

    __slots__ = ("client", "tunnel")

    def __init__(
        self, ports: Ports, make_tunnel: Callable[[Ports], Tunnel], registry: Address, registration: Registration
    ) -> None:
        super().__init__(ports)
        tunnel = self.tunnel = self.inner("", make_tunnel, unheard)
        self.client = self.inner(
            "registry",
            lambda own: RegistryClient(own, registry, registration, tunnel.update_peers, tunnel.counters),
            unheard,
        )

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Give advertisements and responses to the client, and all else to the tunnel."""
        is_for_client = isinstance(to, Connection) or isinstance(message, Advertisement)
        self.give((self.client if is_for_client else self.tunnel).receive, message, source, to, now)

    def leave(self, now: float) -> None:
        """Leave the list of the registry."""
        self.give(self.client.leave, now)
