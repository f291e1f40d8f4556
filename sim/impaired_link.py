"""Links with what `sim.link` does not model: other queues, varying delay, duplicates, damage, fragments, scripted drops.

Each direction is a `topologies.line.Line`, the same class that a link in user space runs. A counted group has one for each
member, since packets arrive at its members at different times.
"""

from collections.abc import Sequence
from math import inf

from protocols.rng import extend
from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.flight import Arrivals as ArrivalsByTime
from sim.flight import Flight, Place, Postponed, dscp_of, mark
from sim.host import SimHost
from sim.queue_entry import ARRIVAL, QueueEntry, post
from topologies.drop_tail import DropTailQueue
from topologies.line import Arrivals, Line
from topologies.spec import LinkSpec

__all__ = ["ImpairedLink", "ImpairedLinkGroup", "MemberLink"]


class _Carrier:
    """A line, and the event by which it is woken. Its packets arrive at `place`."""

    __slots__ = ("_armed", "_fabric", "_wake", "line", "place")

    def __init__(self, line: Line, fabric: Fabric, place: Place) -> None:
        self.line = line
        self.place = place
        self._fabric = fabric
        self._armed = inf
        self._wake = (self._on_wake,)
        line.mark = self._mark
        line.class_of = dscp_of

    def offer(self, flight: Flight, now: float) -> list[float]:
        """Offer a packet; returns when its copies arrive, as far as that is known. Earlier packets known now are posted."""
        arrivals = self.line.offer(flight, flight.size, flight.identity, flight.message.kind, now)
        if arrivals and (arrivals[0][0] is not flight or arrivals[-1][0] is not flight):
            self._post([pair for pair in arrivals if pair[0] is not flight])
        self._arm()
        return [when for item, when in arrivals if item is flight]

    def _mark(self, flight: Flight) -> Flight:
        """Return a marked copy of a packet."""
        fabric = self._fabric
        fabric.serial += 1
        return mark(flight, fabric.serial)

    def _arm(self) -> None:
        if self.line.deadline < self._armed:
            kernel = self._fabric.kernel
            self._armed = self.line.deadline
            post(kernel.queue, self._armed, ARRIVAL, next(kernel.env._eid), QueueEntry(self._wake, None))

    def _on_wake(self, entry: QueueEntry) -> None:
        del entry
        self._armed = inf
        self._post(self.line.wake(self._fabric.kernel.env.now))
        self._arm()

    def _post(self, arrivals: Arrivals) -> None:
        fabric = self._fabric
        for flight, when in arrivals:
            fabric.forwarding.forward(flight, (Postponed(self.place, when),), fabric.kernel.env.now)


class ImpairedLink:
    """One direction of such a link that belongs to no group."""

    __slots__ = ("_carrier", "head")

    def __init__(self, spec: LinkSpec, head: Place, key: int, fabric: Fabric, member: int = 0) -> None:
        self.head = head
        self._carrier = _Carrier(Line(spec, key, member), fabric, head)

    def carry(self, flight: Flight, now: float, arrivals: ArrivalsByTime) -> None:
        """Take a packet at its near end."""
        for when in self._carrier.offer(flight, now):
            arrivals.setdefault(when, []).append((self.head, ()))

    def queues(self) -> list[DropTailQueue]:
        """See `sim.flight.Hop`; the queue of a line is its own."""
        return []

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`; it is not known."""
        del place
        return 0.0

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`; `member` is 0."""
        del member
        return _losses(self._carrier.line)

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`."""
        return _counts([self._carrier])


class ImpairedLinkGroup:
    """Such links from a switch to a counted group of equal hosts: a line for each member."""

    __slots__ = ("_carriers", "head")

    def __init__(self, spec: LinkSpec, head: Endpoint, key: int, fabric: Fabric) -> None:
        self.head = head
        self._carriers = [
            _Carrier(Line(spec, extend(key, member), member), fabric, MemberLink(head, member)) for member in range(head.count)
        ]

    def carry(self, flight: Flight, now: float, arrivals: ArrivalsByTime) -> None:
        """Take a packet at the near end of every link it is for."""
        route, head = flight.route, self.head
        members: Sequence[int] = range(head.count)
        if route.target is not None:
            members = (route.member,)
        elif route.home is head:
            members = [member for member in members if member != flight.place - head.base]
        together: dict[float, list[int]] = {}
        for member in members:
            carrier = self._carriers[member]
            first: float | None = None
            for when in carrier.offer(flight, now):
                if when == first:
                    arrivals.setdefault(when, []).append((carrier.place, ()))
                else:
                    together.setdefault(when, []).append(member)
                first = when
        for when, there in together.items():
            arrivals.setdefault(when, []).extend(self._places(there))

    def _places(self, there: list[int]) -> list[tuple[Place, Sequence[int]]]:
        """Return the places of a packet for these members, which ascend: the whole group if it is for most of them."""
        count = self.head.count
        if len(there) * 2 > count:
            present = set(there)
            return [(self.head, [member for member in range(count) if member not in present])]
        return [(self._carriers[member].place, ()) for member in there]

    def queues(self) -> list[DropTailQueue]:
        """See `sim.flight.Hop`; the queues of lines are their own."""
        return []

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`; it is not known."""
        del place
        return 0.0

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`."""
        return _losses(self._carriers[member].line)

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`; the sums over all members."""
        return _counts(self._carriers)


class MemberLink:
    """The place of one member of a counted group, whose host is made when the first packet arrives."""

    __slots__ = ("_endpoint", "_number")

    def __init__(self, endpoint: Endpoint, number: int) -> None:
        self._endpoint = endpoint
        self._number = number

    def host(self) -> SimHost:
        """Return the member's host."""
        return self._endpoint.host(self._number)

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver a packet to this member."""
        self.host().arrive(flight, lost_by, now)


def _losses(line: Line) -> int:
    return line.lost + line.dropped + line.corrupt


def _counts(carriers: Sequence[_Carrier]) -> tuple[int, ...]:
    """Return sums in the order of `sim.flight.Hop.counts`."""
    lines = [carrier.line for carrier in carriers]
    rows = [(line.offered, line.dropped, line.lost, line.corrupt, line.marked, line.duplicated) for line in lines]
    return tuple(map(sum, zip(*rows, strict=True)))
