"""A node with a role: how its machine is made on a host, in every world."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.running.lives import NO_COUNTS, total_counts
from protocols.hosting import PortsHost
from protocols.machine import Group, Machine
from protocols.roles import Role, RoleContext

__all__ = ["RoleNode", "RoleProgram"]


@dataclass(frozen=True, slots=True)
class RoleNode:
    """The parameters of a machine with a role; `id` is its 32-bit node id within the protocol, `place` its host and port.

    `places` are the hosts, with the port there, of all machines of each role it needs, `networks` those of a router that runs
    it. `instance` is raised by one at each restart.
    """

    role: Role
    config: Any
    id: int
    group: Group
    place: tuple[str, int]
    options: Any = None
    places: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    networks: Sequence[str] = ()
    instance: int = 1

    def make(self, host: PortsHost, restarts: int) -> Machine:
        """Make the machine on the host's ports."""
        addresses = {name: [host.address_of(*place) for place in places] for name, places in self.places.items()}
        instance = (self.instance + restarts) & 0xFFFF
        own = host.address_of(*self.place)
        context = RoleContext(self.config, self.id, self.group, instance, self.options, addresses, own, self.networks)
        return self.role.make(host, context)


class RoleProgram:
    """The program of a node whose role serves others, such as a relay: it runs the machine; a run does not wait for it."""

    def __init__(self, node: RoleNode) -> None:
        self.node = node
        self.restarts = -1
        self.machine: Machine | None = None
        self._earlier = NO_COUNTS
        """Counters of the machines before crashes."""

    def start(self, host: PortsHost) -> None:
        """Run the machine on the host; a call after a crash starts without any state."""
        self.restarts += 1
        self.machine = self.node.make(host, self.restarts)
        host.run(self.machine, _ignore)

    def restarted_after(self, times: int) -> None:
        """Set the number of earlier crashes, in other processes, from which the instance follows; call before `start`."""
        self.restarts = times - 1

    def crash(self) -> None:
        """Keep the counters of the machine; the next `start` makes another one."""
        self._earlier, self.machine = total_counts(self._earlier, self.machine), None

    def finished(self) -> bool:
        """Return False: it serves as long as the run goes on."""
        return False

    def result(self) -> dict[str, Any]:
        """Return the counters of the machine, over all starts of the host."""
        return {"role": "server", "counts": total_counts(self._earlier, self.machine)}


def _ignore(event: object) -> None:
    del event
