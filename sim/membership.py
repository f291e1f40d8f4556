"""Joining and leaving groups: at once, or after the time the network takes (IGMP reports, grafts and prunes)."""

from functools import partial

from protocols.machine import Group
from sim.flight import HostNode
from sim.kernel import Kernel
from sim.routes import Routes
from topologies.spec import Topology

__all__ = ["Membership"]


class Membership:
    """Changes the listeners of groups.

    With latencies, a host receives the packets of a group only some time after it joined, and packets go on being carried to a
    node for some time after its last host left.
    """

    def __init__(self, topology: Topology, kernel: Kernel, routes: Routes) -> None:
        self._kernel = kernel
        self._routes = routes
        self._join, self._leave = topology.multicast.join, topology.multicast.leave
        # Joins that have not taken effect, by node, member and group: when each was requested.
        self._wanted: dict[tuple[str, int, Group], float] = {}

    def join(self, node: HostNode, member: int, group: Group) -> None:
        """Join a host to a group."""
        if not self._join:
            node.begin(member, group)
            return
        now = float(self._kernel.env.now)
        self._wanted[node.name, member, group] = now
        self._kernel.later(now + self._join, partial(self._begin, node, member, group, now))

    def _begin(self, node: HostNode, member: int, group: Group, since: float) -> None:
        key = (node.name, member, group)
        if self._wanted.get(key) == since:
            del self._wanted[key]
            node.begin(member, group)

    def leave(self, node: HostNode, member: int, group: Group) -> None:
        """Take a host out of a group; packets that still arrive for it are not delivered."""
        self._wanted.pop((node.name, member, group), None)
        members = node.groups.get(group)
        if self._leave and members is not None and members.listens(member):
            self._routes.keep_on_tree(node.name, group)
            self._kernel.later(float(self._kernel.env.now) + self._leave, partial(self._routes.prune, node.name, group))
        node.end(member, group)

    def forget(self, node: HostNode, member: int) -> None:
        """Cancel the joins of a host that have not taken effect."""
        for key in [key for key in self._wanted if key[:2] == (node.name, member)]:
            del self._wanted[key]
