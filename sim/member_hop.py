"""The link to one member of a counted group that receives a multicast which not all members receive."""

from collections.abc import Sequence

from sim.flight import Arrivals, Backlog, Flight, Hop, HostNode, Place, to_member
from topologies.drop_tail import DropTailQueue

__all__ = ["MemberHop"]


class MemberHop:
    """The link of one member among `links`, which lead to all of `node`; `place` is the member's in `Topology.hosts`."""

    __slots__ = ("_links", "_member", "_node", "_place")

    def __init__(self, links: Hop, node: HostNode, member: int, place: int) -> None:
        self._links = links
        self._node = node
        self._member = member
        self._place = place

    @property
    def head(self) -> Place:
        """The member's host."""
        return self._node.host(self._member)

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet, unless the member has sent it."""
        if flight.place != self._place:
            self._links.carry(to_member(flight, self._node, self._member), now, arrivals)

    def queues(self) -> Sequence[DropTailQueue | Backlog]:
        """See `sim.flight.Hop`; those of all members."""
        return self._links.queues()

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`; it is not known."""
        del place
        return 0.0

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`; `member` is 0."""
        del member
        return self._links.losses_of(self._member)

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`; the sums over all members."""
        return self._links.counts()
