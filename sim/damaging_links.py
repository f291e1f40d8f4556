"""The links from a switch to a counted group that damage, duplicate or fragment packets, computed together."""

from collections.abc import Sequence
from typing import ClassVar

from mypy_extensions import mypyc_attr

from sim.endpoint import Endpoint
from sim.flight import Arrivals, Flight, Place
from sim.host import SimHost
from sim.link import LinkGroup, Part
from topologies.draws import member_keys
from topologies.ethernet import frames_of
from topologies.group_effects import GroupEffect
from topologies.line import CORRUPTION, DUPLICATE, FRAGMENTS, damage_probability, octets_of
from topologies.spec import LinkSpec

__all__ = ["DamagingLinkGroup"]


@mypyc_attr(allow_interpreted_subclasses=True)
class DamagingLinkGroup(LinkGroup):
    """A `LinkGroup` whose links also damage, duplicate or fragment packets, each like a `topologies.line.Line` of its own."""

    __slots__ = ("_corrupt", "_damage", "_damaged", "_duplicated", "_duplicates", "_fragments", "_spec")

    passes_unnoticed: ClassVar[bool] = False

    def __init__(self, spec: LinkSpec, head: Endpoint, key: int) -> None:
        super().__init__(spec, head, key)
        keys = member_keys(key, head.count)
        self._spec = spec
        self._fragments = None if spec.mtu is None else GroupEffect(keys, FRAGMENTS, above=True)
        self._damage = GroupEffect(keys, CORRUPTION) if spec.corrupt or spec.bit_errors else None
        self._duplicates = GroupEffect(keys, DUPLICATE) if spec.duplicate else None
        if self._duplicates is not None:
            self._duplicates.bound = spec.duplicate
        self._damaged: Sequence[int] = ()
        """The members whose copy of the present packet is damaged."""
        self._corrupt = self._duplicated = 0

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end of every link it is for."""
        route, head, identity = flight.route, self.head, flight.identity
        self._set_bounds(flight)
        if route.target is not None:
            self._carry_to(flight, route.member, now, arrivals)
            return
        skip = flight.place - head.base if route.home is head else -1
        self.offered += head.count - (skip >= 0)
        lost: Sequence[int] = () if self.sampler is None else self.sampler.losers(identity, skip)
        if self._fragments is not None and (more := self._fragments.losers(identity, skip)):
            lost = sorted({*lost, *more})
        if self._damage is not None:
            damaged = self._damage.losers(identity, skip)
            self._damaged = [member for member in damaged if member not in lost] if lost else damaged
            if self._damaged:
                lost = sorted([*lost, *self._damaged])
        doubled = () if self._duplicates is None else self._duplicates.losers(identity, skip)
        sent: Arrivals = {}
        self._carry_apart(flight, skip, lost, now, sent)
        self._propagate(flight, sent, doubled, arrivals)

    def _set_bounds(self, flight: Flight) -> None:
        """Set how probable it is that a packet of this size loses a fragment other than the first, or is damaged."""
        spec = self._spec
        frames = frames_of(flight.size, spec.mtu)
        if self._fragments is not None:
            # The channel decides on the first fragment; the others are lost independently, at its mean rate.
            may_lose = flight.identity is not None or spec.loss.loses_control
            self._fragments.bound = (1 - spec.loss.rate) ** (frames - 1) if may_lose else 1.0
        if self._damage is not None:
            octets = octets_of(flight.size, frames, spec)
            self._damage.bound = damage_probability(spec.corrupt, spec.bit_errors, octets)

    def _octets(self, size: int) -> int:
        return octets_of(size, frames_of(size, self._spec.mtu), self._spec)

    def _carry_to(self, flight: Flight, member: int, now: float, arrivals: Arrivals) -> None:
        """Take a packet to one member."""
        identity = flight.identity
        lost = self.sampler is not None and self.sampler.lost(identity, member)
        if self._fragments is not None:
            lost |= self._fragments.lost(identity, member)
        if self._damage is not None:
            self._damaged = (member,) if self._damage.lost(identity, member) and not lost else ()
            lost |= bool(self._damaged)
        is_doubled = self._duplicates is not None and self._duplicates.lost(identity, member)
        sent: Arrivals = {}
        self._carry_one(flight, member, lost, now, sent)
        self._propagate(flight, sent, (member,) if is_doubled else (), arrivals)

    def count_lost(self, lost_by: Sequence[int]) -> None:
        """Count a packet that these members lost, or whose copy is damaged."""
        super().count_lost(lost_by)
        if self._damaged:
            self._corrupt += len(set(lost_by).intersection(self._damaged))

    def _propagate(self, flight: Flight, sent: Arrivals, doubled: Sequence[int], arrivals: Arrivals) -> None:
        """Add the arrivals of a packet that these links sent, with a second copy for the members `doubled` it reaches."""
        del flight
        head = self.head
        for when, places in sent.items():
            there = arrivals.setdefault(when, [])
            there += places
            if doubled:
                here = [member for place, lost_by in places for member in self._among(place, doubled) if member not in lost_by]
                there += [(head.host(member), ()) for member in here]
                self._duplicated += len(here)

    def _among(self, place: Place, members: Sequence[int]) -> Sequence[int]:
        """Return which of these members a packet reaches at a place."""
        if isinstance(place, Part):
            there = set(place.reach())
            return [member for member in members if member in there]
        if isinstance(place, SimHost):
            return [member for member in members if self.head.host(member) is place]
        return members

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`; the sums over all members."""
        return self.offered, self.dropped, self.lost - self._corrupt, self._corrupt, 0, self._duplicated
