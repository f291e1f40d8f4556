"""A protocol with the parameters the contract suite runs it with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from protocols.machine import Address, Codec, Group, Machine, Ports, Sender
from protocols.roles import Role, RoleContext
from protocols.spec import ProtocolSpec

__all__ = ["SETTINGS", "Case"]

Addresses: TypeAlias = Mapping[str, Sequence[Address]]
"""The addresses of the machines of each role."""
NO_SERVERS: Final[Addresses] = {}

SETTINGS: dict[str, dict[str, Any]] = {
    "norm": {"rate": 1e6, "segment": 500, "block": 8, "parity": 4, "grtt": 0.02, "probe_min": 0.1, "robust": 8, "gsize": 10},
    "fjm2": {"rate": 1e6, "segment": 500, "grtt": 0.02, "probe_min": 0.1, "robust": 8, "gsize": 10},
    "bus": {"rate": 1e6, "segment": 500, "holdoff": 0.02, "heartbeat": 0.02, "cost": 0.0001},
    "fjm": {
        "rate": 1e6,
        "rate_min": 2e5,
        "segment": 500,
        "holdoff": 0.02,
        "history": 5.0,
        "heartbeat": 0.02,
        "election": 0.02,
        "ask": 0.05,
        "beacon": 100.0,
        "silence": 300.0,
    },
    "broker": {"segment": 500, "heartbeat": 0.0, "keep": 0.3, "retry": 0.05},
    "a": {"rate": 1e6, "segment": 500, "timeout": 0.05, "robust": 10},
    "n1": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.005, "hold": 0.01, "robust": 8},
    "n2": {"rate": 1e6, "segment": 500, "timeout": 0.05, "gather": 0.0, "hold": 0.01, "window": 0.02, "robust": 8},
    "srm": {"rate": 1e6, "segment": 500, "timeout": 0.05, "distance": 0.005, "robust": 10},
}
"""Config values of mcastlab's own protocols for the suite; an external module gives them in its `CONTRACT`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A protocol and values for its config. The sender is node 1, receivers are nodes 2, 3, ..., servers follow.

    The suite expects `settings` with segments of 500 bytes and timers of some 10 ms.
    """

    protocol: ProtocolSpec
    settings: dict[str, Any]
    fast: bool = False
    """Whether to run the protocol's fast machines instead of the plain ones."""

    def __str__(self) -> str:
        return f"{self.protocol.name}-fast" if self.fast else self.protocol.name

    def codec(self) -> Codec:
        """Make a codec."""
        return self.protocol.codec()

    @property
    def servers(self) -> tuple[str, ...]:
        """The roles that senders and receivers need, each of which a host of its own takes."""
        needed = [need for role in ("sender", "receiver") for need in self.protocol.file_role(role, self.fast).needs]
        return tuple(dict.fromkeys(needed))

    def sender(self, ports: Ports, group: Group, servers: Addresses = NO_SERVERS) -> Sender:
        """Make the sender of the session."""
        return cast(Sender, self._make(self.protocol.file_role("sender", self.fast), ports, group, 1, servers))

    def receiver(self, ports: Ports, group: Group, number: int, servers: Addresses = NO_SERVERS) -> Machine:
        """Make receiver `number`, counted from 1."""
        return self._make(self.protocol.file_role("receiver", self.fast), ports, group, 1 + number, servers)

    def server(self, ports: Ports, group: Group, role: str, node: int) -> Machine:
        """Make the machine of a role that senders and receivers need."""
        return self._make(self.protocol.roles_for(self.fast)[role], ports, group, node, NO_SERVERS)

    def _make(self, role: Role, ports: Ports, group: Group, node: int, servers: Addresses) -> Machine:
        return role.make(ports, RoleContext(self.protocol.config(**self.settings), node, group, 7, addresses=servers))
