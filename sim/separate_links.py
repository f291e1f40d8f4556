"""The links from a switch to a counted group as independent links, for the strict engine."""

from sim.endpoint import Endpoint
from sim.flight import Arrivals, Flight
from sim.impaired_link import ImpairedLink
from sim.link import Link
from topologies.drop_tail import DropTailQueue
from topologies.keys import member_loss_key
from topologies.spec import LinkSpec

__all__ = ["SeparateLinks"]


class SeparateLinks:
    """The links that a `LinkGroup` computes together, each with a queue and losses of its own."""

    __slots__ = ("head", "links")

    def __init__(self, spec: LinkSpec, head: Endpoint, key: int) -> None:
        self.head = head
        self.links = [self._link(spec, key, member) for member in range(head.count)]
        """In the order of the members."""

    def _link(self, spec: LinkSpec, key: int, member: int) -> Link | ImpairedLink:
        host, key = self.head.host(member), member_loss_key(key, member)
        return Link(spec, host, key) if spec.plain else ImpairedLink(spec, host, key, self.head.fabric, member)

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end of every link it is for."""
        route = flight.route
        if route.target is not None:
            self.links[route.member].carry(flight, now, arrivals)
            return
        skip = flight.place - self.head.base if route.home is self.head else None
        for member, link in enumerate(self.links):
            if member != skip:
                link.carry(flight, now, arrivals)

    def queues(self) -> list[DropTailQueue]:
        """See `sim.flight.Hop`."""
        return [queue for link in self.links for queue in link.queues()]

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`; the sums over all members."""
        return tuple(map(sum, zip(*(link.counts() for link in self.links), strict=True)))

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`; it is not known."""
        del place
        return 0.0

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`."""
        return self.links[member].losses_of(0)
