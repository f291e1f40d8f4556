"""The links from a switch to a counted group whose propagation delay varies, computed together."""

from collections.abc import Sequence

from mypy_extensions import mypyc_attr

from sim.damaging_links import DamagingLinkGroup
from sim.endpoint import Endpoint
from sim.flight import Arrivals, Flight, Place, Places
from sim.host import SimHost
from sim.link import Part
from topologies.draws import member_keys
from topologies.group_delays import GroupDelays
from topologies.spec import LinkSpec

__all__ = ["VaryingDelayGroup"]


@mypyc_attr(allow_interpreted_subclasses=True)
class VaryingDelayGroup(DamagingLinkGroup):
    """A `DamagingLinkGroup` in which each packet has a delay of its own on each link, as on a `topologies.line.Line`."""

    __slots__ = ("_delays", "_last")

    def __init__(self, spec: LinkSpec, head: Endpoint, key: int) -> None:
        super().__init__(spec, head, key)
        assert spec.jitter is not None
        # `_propagate` adds the delay of each packet on each link.
        self.delay = 0.0
        self._delays = GroupDelays(member_keys(key, head.count), spec.jitter)
        self._last: list[float] | None = [0.0] * head.count if spec.jitter.order == "fifo" else None
        """When the last packet arrives at each member, in seconds; None where packets are reordered."""

    def _propagate(self, flight: Flight, sent: Arrivals, doubled: Sequence[int], arrivals: Arrivals) -> None:
        """Add the arrivals of a packet that these links sent, in `sent` by the end of its transmission (seconds)."""
        identity, route, head = flight.identity, flight.route, self.head
        if route.target is not None:
            delays: Sequence[float] = (self._delays.of_one(identity, route.member),)
            first = route.member
        else:
            delays = self._delays.of_all(identity, flight.place - head.base if route.home is head else -1)
            first = 0
        last, together, second = self._last, dict[float, list[int]](), list[tuple[float, int]]()
        for end, places in sent.items():
            for place, lost_by in places:
                for member in self._reached(place, lost_by):
                    when = end + delays[member - first]
                    if last is not None:
                        when = last[member] = max(when, last[member])
                    if when in together:
                        together[when].append(member)
                    else:
                        together[when] = [member]
                    if member in doubled:
                        when = end + self._delays.of_second_copy(identity, member)
                        if last is not None:
                            when = last[member] = max(when, last[member])
                        second.append((when, member))
        for when, members in together.items():
            arrivals.setdefault(when, []).extend(self._places(members))
        for when, member in second:
            arrivals.setdefault(when, []).append((head.host(member), ()))
        self._duplicated += len(second)

    def _reached(self, place: Place, lost_by: Sequence[int]) -> Sequence[int]:
        """Return the members that a packet reaches at a place, but for those of `lost_by`."""
        members: Sequence[int] = range(self.head.count)
        if isinstance(place, Part):
            members = place.reach()
        elif isinstance(place, SimHost):
            members = (place.member,)
        if not lost_by:
            return members
        absent = set(lost_by)
        return [member for member in members if member not in absent]

    def _places(self, members: list[int]) -> Places:
        """Return where a packet arrives for these members at one time: at the whole group if it is for most of them."""
        head = self.head
        if len(members) == 1:
            return [(head.host(members[0]), ())]
        if len(members) * 2 > head.count:
            present = set(members)
            return [(head, [member for member in range(head.count) if member not in present])]
        return [(head.host(member), ()) for member in members]
