"""The host of a router's machine and its interface, which distinguishes the networks of the router (`Group.network`)."""

from collections.abc import Callable

from mypy_extensions import mypyc_attr

from protocols.machine import Group
from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.flight import Flight, MarkedFlight, Route
from sim.host import SimHost

__all__ = ["RouterEndpoint", "RouterHost"]


@mypyc_attr(allow_interpreted_subclasses=True)
class RouterHost(SimHost):
    """The host that runs the machine of a router. Multicasts arrive with the network they came by, if it was joined by name."""

    __slots__ = ()

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Take a packet, once for each of the ways in which its group was joined."""
        endpoint = self.endpoint
        if flight.route.target is not None or not isinstance(endpoint, RouterEndpoint):
            super().arrive(flight, lost_by, now)
            return
        fabric = endpoint.fabric
        for group in endpoint.joined_for(flight.route):
            fabric.delivered += 1
            if fabric.on_delivery is not None:
                fabric.on_delivery(now, self.name, flight.message)
            fabric.accelerator.before_receive(self.machine, flight.message)
            if isinstance(flight, MarkedFlight):
                self.machine.receive_marked(flight.message, flight.source, group, now)
            else:
                self.machine.receive(flight.message, flight.source, group, now)

    def stop(self) -> None:
        """See `SimHost.stop`."""
        endpoint = self.endpoint
        assert isinstance(endpoint, RouterEndpoint)
        endpoint.forget()
        super().stop()


@mypyc_attr(allow_interpreted_subclasses=True)
class RouterEndpoint(Endpoint):
    """The interface of a router's machine. It listens to a group on all networks; the host delivers those that were joined."""

    __slots__ = ("_joined",)

    def __init__(
        self, fabric: Fabric, name: str, base: int, count: int, counted: bool, host_class: Callable[..., SimHost]
    ) -> None:
        super().__init__(fabric, name, base, count, counted, host_class)
        self._joined: dict[Group, dict[str, Group]] = {}
        """By group, by network (empty: all of them), what the machine joined."""

    def join(self, member: int, group: Group) -> None:
        """See `Endpoint.join`; UsageError for a network that the router does not have."""
        fabric = self.fabric
        fabric.routes.check_network(self.name, group)
        ways = self._joined.setdefault(group.anywhere, {})
        is_first = not ways
        ways[group.network] = group
        if is_first:
            super().join(member, group.anywhere)

    def leave(self, member: int, group: Group) -> None:
        """See `Endpoint.leave`."""
        ways = self._joined.get(group.anywhere, {})
        if ways.pop(group.network, None) is not None and not ways:
            super().leave(member, group.anywhere)

    def forget(self) -> None:
        """Leave all groups."""
        for ways in self._joined.values():
            for group in list(ways.values()):
                self.leave(0, group)

    def joined_for(self, route: Route) -> list[Group]:
        """Return the groups that were joined and that a multicast on this route is for."""
        assert isinstance(route.to, Group)
        ways = self._joined.get(route.to)
        if not ways or not self.listens(route.to, 0):
            return []
        network = (
            "" if route.home is self else self.fabric.routes.network_of(route, self.fabric.topology.node(self.name).router)
        )
        return [ways[name] for name in dict.fromkeys(("", network)) if name in ways]

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Deliver a packet to the host."""
        self.host(0).arrive(flight, lost_by, now)
