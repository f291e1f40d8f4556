"""Links that do more than `sim.link` knows: other queues, varying delay, duplicates, damage, fragments, scripted drops.

Each direction is a `topologies.line.Line`, the very object a link in user space runs. One per member of a counted group, since
their packets come at times of their own.
"""

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from protocols.rng import extend
from sim.engine import ARRIVAL, Occurrence, post
from sim.link import Arrivals as ArrivalsByTime
from sim.link import Link, LinkGroup
from topologies.line import Arrivals, Line
from topologies.spec import LinkSpec

if TYPE_CHECKING:
    from sim.endpoint import Endpoint
    from sim.flight import Flight
    from sim.host import SimHost
    from sim.network import Network

__all__ = ["ImpairedLinkGroup", "ImpairedLink", "Member"]


class _Carrier:
    """A line and the SimPy event it is woken by. `place` is where its packets come to."""

    __slots__ = ("_armed", "_network", "_wake", "line", "place")

    def __init__(self, line: Line, network: "Network", place: Any) -> None:
        self.line = line
        self.place = place
        self._network = network
        self._armed = inf
        self._wake = (self._on_wake,)

    def offer(self, flight: "Flight", now: float) -> list[float]:
        """When copies of this flight arrive, as far as that is known; what is known of earlier ones now is sent on."""
        arrivals = self.line.offer(flight, flight.size, flight.identity, flight.message.kind, now)
        if arrivals and arrivals[0][0] is not flight:
            self._land([pair for pair in arrivals if pair[0] is not flight])
        self._arm()
        return [when for item, when in arrivals if item is flight]

    def _arm(self) -> None:
        if self.line.deadline < self._armed:
            env = self._network.env
            self._armed = self.line.deadline
            post(env, self._armed, ARRIVAL, next(env._eid), Occurrence(self._wake, None))

    def _on_wake(self, occurrence: Occurrence) -> None:
        del occurrence
        self._armed = inf
        self._land(self.line.wake(self._network.env.now))
        self._arm()

    def _land(self, arrivals: Arrivals) -> None:
        for flight, when in arrivals:
            self._network.land(flight, when, self.place)


class ImpairedLink(Link):
    """One direction of such a link that stands alone."""

    __slots__ = ("_carrier",)

    def __init__(self, spec: LinkSpec, head: Any, key: int, network: "Network", member: int = 0) -> None:
        self.head = head
        self._carrier = _Carrier(Line(spec, key, member), network, head)

    @property
    def offered(self) -> int:  # type: ignore[override]
        """Packets taken at the near end."""
        return self._carrier.line.offered

    @property
    def dropped(self) -> int:  # type: ignore[override]
        """Packets the queue dropped."""
        return self._carrier.line.dropped

    @property
    def lost(self) -> int:  # type: ignore[override]
        """Packets lost on the line."""
        return self._carrier.line.lost

    def carry(self, flight: "Flight", now: float, landings: ArrivalsByTime) -> None:
        """Take a packet at its near end."""
        for when in self._carrier.offer(flight, now):
            landings.setdefault(when, []).append((self.head, ()))

    def lost_by(self, member: int) -> int:
        """Packets that did not come to the other end; `member` is 0."""
        del member
        line = self._carrier.line
        return line.lost + line.dropped + line.corrupt

    def counts(self) -> tuple[int, ...]:
        """See `Link.counts`."""
        return _counts([self._carrier])


class ImpairedLinkGroup(LinkGroup):
    """Such last hops to a counted group of equal leaves: a line for each member."""

    __slots__ = ("_carriers",)

    def __init__(self, spec: LinkSpec, head: "Endpoint", key: int, network: "Network") -> None:
        self.head = head
        self._carriers: list[_Carrier] = [
            _Carrier(Line(spec, extend(key, member), member), network, Member(head, member)) for member in range(head.count)
        ]

    def carry(self, flight: "Flight", now: float, landings: ArrivalsByTime) -> None:
        """Take a packet at the near end of every link it is for."""
        route, head = flight.route, self.head
        members: Sequence[int] = range(head.count)
        if route.target is not None:
            members = (route.target.member,)
        elif route.home is head:
            members = [member for member in members if member != flight.host.member]
        together: dict[float, list[int]] = {}
        for member in members:
            carrier = self._carriers[member]
            first = -1.0
            for when in carrier.offer(flight, now):
                if when == first:
                    landings.setdefault(when, []).append((carrier.place, ()))
                else:
                    together.setdefault(when, []).append(member)
                first = when
        for when, there in together.items():
            landings.setdefault(when, []).extend(self._places(there))

    def _places(self, there: list[int]) -> list[tuple[Any, Sequence[int]]]:
        """Where a packet comes to that is for these members, which ascend: one place if it is for most of them."""
        count = self.head.count
        if len(there) * 2 > count:
            present = set(there)
            return [(self.head, [member for member in range(count) if member not in present])]
        return [(self._carriers[member].place, ()) for member in there]

    def lost_by(self, member: int) -> int:
        """Packets that one member missed on its link."""
        line = self._carriers[member].line
        return line.lost + line.dropped + line.corrupt

    def counts(self) -> tuple[int, ...]:
        """See `Link.counts`."""
        return _counts(self._carriers)


class Member:
    """The place of one member of a counted group, whose host is made when the first packet comes."""

    __slots__ = ("_leaf", "_number")

    def __init__(self, leaf: "Endpoint", number: int) -> None:
        self._leaf = leaf
        self._number = number

    def host(self) -> "SimHost":
        """The member's host."""
        return self._leaf.host(self._number)

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet for this member is there; `out` is empty."""
        self.host().arrive(flight, out, now)


def _counts(carriers: Sequence[_Carrier]) -> tuple[int, ...]:
    """Sums in the order of `Link.counts`."""
    lines = [carrier.line for carrier in carriers]
    rows = [(line.offered, line.dropped, line.lost, line.corrupt, line.marked, line.duplicated) for line in lines]
    return tuple(map(sum, zip(*rows, strict=True)))
