"""Switches: graph nodes that forward at once."""

from collections.abc import Sequence

from mypy_extensions import mypyc_attr

from sim.fabric import Fabric
from sim.flight import Flight, Hop, Place, Route

__all__ = ["Switch"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Switch:
    """A graph node that forwards: offers what arrives to the next links at once."""

    __slots__ = ("fabric", "links", "name")

    def __init__(self, fabric: Fabric, name: str) -> None:
        self.fabric = fabric
        self.name = name
        self.links: dict[str, Hop] = {}
        """By neighbour."""

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Forward a packet; `lost_by` is empty."""
        del lost_by
        fabric, route = self.fabric, flight.route
        links = route.links.get(self.name)
        if links is None:
            links = fabric.routes.next_links(route, self.name, self.links)
        if links:
            fabric.forwarding.forward(flight, links, now)

    def inlet(self, near: str) -> Place:
        """Return the place where links from `near` end."""
        del near
        return self

    def next_links(self, route: Route) -> Sequence[Hop]:
        """Return the links of a route from here."""
        links = route.links.get(self.name)
        return self.fabric.routes.next_links(route, self.name, self.links) if links is None else links
