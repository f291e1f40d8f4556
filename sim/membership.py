"""Joining and leaving groups: at once, or after the time the network takes (IGMP reports, grafts and prunes)."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from protocols.machine import Address, Group

if TYPE_CHECKING:
    from sim.endpoint import Endpoint
    from sim.host import SimHost
    from sim.network import Network

__all__ = ["Membership"]


class Membership:
    """Who is on the trees of groups. With latencies, a host that joins hears nothing at first, and one that left is sent to."""

    def __init__(self, network: "Network") -> None:
        self._network = network
        rules = network.topology.multicast
        self._join, self._leave, self._pruning = rules.join, rules.leave, rules.pruning
        self._wanted: dict[tuple[int, Group], float] = {}
        self._lingering: Counter[tuple[str, Address]] = Counter()

    def join(self, leaf: "Endpoint", host: "SimHost", group: Group) -> None:
        """A host wants to listen."""
        if not self._join:
            leaf.begin(host, group)
            return
        since = self._wanted[host.place, group] = host.now
        self._network.later(host.now + self._join, partial(self._begin, leaf, host, group, since))

    def _begin(self, leaf: "Endpoint", host: "SimHost", group: Group, since: float) -> None:
        if self._wanted.get((host.place, group)) == since:
            leaf.begin(host, group)

    def leave(self, leaf: "Endpoint", host: "SimHost", group: Group) -> None:
        """A host does not listen any more; what still comes is for nobody."""
        self._wanted.pop((host.place, group), None)
        audience = leaf.audiences.get(group)
        if self._leave and audience is not None and audience.listens(host.member):
            self._lingering[leaf.name, group] += 1
            self._network.later(host.now + self._leave, partial(self._prune, leaf, group))
        leaf.end(host, group)

    def _prune(self, leaf: "Endpoint", group: Group) -> None:
        self._lingering[leaf.name, group] -= 1
        self._network.routes.forget(group)

    def members(self, leaves: "Mapping[str, Endpoint]", group: Address) -> list[str]:
        """The graph nodes a multicast to the group is carried to."""
        if not self._pruning:
            return list(leaves)
        found = ((leaf, leaf.audiences.get(group)) for leaf in leaves.values())
        return [
            leaf.name
            for leaf, audience in found
            if (audience is not None and audience.present) or self._lingering[leaf.name, group] > 0
        ]
