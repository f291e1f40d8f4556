"""The last hops to a counted group one by one, as the strict engine has them."""

from typing import TYPE_CHECKING

from sim.impaired_link import ImpairedLink
from sim.link import Arrivals, Fifo, Link
from topologies.keys import member_loss_key
from topologies.spec import LinkSpec

if TYPE_CHECKING:
    from sim.endpoint import Endpoint
    from sim.flight import Flight

__all__ = ["SeparateLinks"]


class SeparateLinks:
    """What a `LinkGroup` computes together, as N links that know nothing of each other."""

    __slots__ = ("_links", "head")

    def __init__(self, spec: LinkSpec, head: "Endpoint", key: int) -> None:
        self.head = head
        self._links = [self._link(spec, key, member) for member in range(head.count)]

    def _link(self, spec: LinkSpec, key: int, member: int) -> Link:
        host, key = self.head.host(member), member_loss_key(key, member)
        return Link(spec, host, key) if spec.plain else ImpairedLink(spec, host, key, self.head.network, member)

    def carry(self, flight: "Flight", now: float, landings: Arrivals) -> None:
        """Take a packet at the near end of every link it is for."""
        route = flight.route
        if route.target is not None:
            self._links[route.target.member].carry(flight, now, landings)
            return
        skip = flight.host.member if route.home is self.head else -1
        for member, link in enumerate(self._links):
            if member != skip:
                link.carry(flight, now, landings)

    def ports(self) -> list[Fifo]:
        """The queues of all links."""
        return [port for link in self._links for port in link.ports()]

    @property
    def links(self) -> list[Link]:
        """The links, in the order of the members."""
        return self._links

    @property
    def offered(self) -> int:
        """Packets offered to all links together."""
        return sum(link.offered for link in self._links)

    @property
    def dropped(self) -> int:
        """Packets dropped by full queues."""
        return sum(link.dropped for link in self._links)

    @property
    def lost(self) -> int:
        """Packets lost."""
        return sum(link.lost for link in self._links)

    def counts(self) -> tuple[int, ...]:
        """The sums of all members in the order of `Link.counts`."""
        return tuple(map(sum, zip(*(link.counts() for link in self._links), strict=True)))

    def lost_by(self, member: int) -> int:
        """Packets that one member missed on its link, by loss or a full queue."""
        return self._links[member].lost_by(0)
