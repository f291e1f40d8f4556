"""Links: an analytic drop-tail queue, serialisation and propagation, then loss. No event is spent on any of them.

Packets must be offered in order of time.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from sim.acceleration import Reservation
from sim.endpoint import Endpoint
from sim.flight import Arrivals, Flight, Place
from sim.planned_arrival import PlannedArrivals
from topologies.drop_tail import DropTailQueue
from topologies.ethernet import Framing, wire_bytes
from topologies.spec import LinkSpec

__all__ = ["Link", "LinkGroup", "Part", "Remainder"]

MOST_IDLE: Final = 64
"""Separate queues of a group beyond those found busy at the last clearance, before idle ones are removed."""


def _framing(spec: LinkSpec) -> tuple[int, Framing | None]:
    """Return the bytes of overhead added to each packet, and the framing where the overhead depends on the packet."""
    return (spec.overhead, None) if isinstance(spec.overhead, int) else (0, spec.overhead)


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """One direction of a link that belongs to no group, to a switch or a plain host (`head`)."""

    __slots__ = (
        "delay",
        "dropped",
        "endpoint",
        "framing",
        "head",
        "is_constant",
        "lost",
        "offered",
        "overhead",
        "plans",
        "queue",
        "reservation",
        "sampler",
    )

    def __init__(self, spec: LinkSpec, head: Place, key: int) -> None:
        self.head = head
        self.endpoint = head if isinstance(head, Endpoint) else None
        """The head, if that is a host."""
        self.queue = DropTailQueue(spec.rate, spec.queue)
        self.delay = spec.delay
        self.overhead, self.framing = _framing(spec)
        self.sampler = spec.loss.link(key)
        self.is_constant = True
        """Whether rate and loss never change, so that arrivals can be computed ahead of time."""
        self.plans: PlannedArrivals | None = None
        """Its arrivals, where the rate may change."""
        self.reservation: Reservation | None = None
        """Packets in flight here that were scheduled ahead instead of being offered."""
        self.offered = self.dropped = self.lost = 0

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end."""
        if self.reservation is not None:
            self.reservation.before_offer(self, flight)
        self.offered += 1
        sampler, framing = self.sampler, self.framing
        lost = sampler is not None and sampler.lost(flight.identity)
        end = self.queue.offer(flight.size + self.overhead if framing is None else wire_bytes(flight.size, framing), now)
        if end is None:
            self.dropped += 1
        elif lost:
            self.lost += 1
        else:
            when, endpoint = end + self.delay, self.endpoint
            if self.plans is not None:
                arrivals.setdefault(when, []).append(self.plans.plan(flight, self.head, (), self.queue, end))
            elif endpoint is not None and endpoint.unconcerned and 0 in endpoint.unconcerned_by(flight):
                endpoint.pass_unnoticed([(when, endpoint.base, flight)])
            elif when in arrivals:
                arrivals[when].append((self.head, ()))
            else:
                arrivals[when] = [(self.head, ())]

    def free_at(self) -> float:
        """Return the time (seconds) at which all packets offered so far are sent."""
        return self.queue.free_at

    def queues(self) -> list[DropTailQueue]:
        """See `Hop`."""
        return [self.queue]

    def left_at(self, place: int) -> float:
        """See `Hop`."""
        del place
        return self.queue.free_at if self.queue.limit is None else 0.0

    def losses_of(self, member: int) -> int:
        """See `Hop`; `member` is 0."""
        del member
        return self.lost + self.dropped

    def counts(self) -> tuple[int, ...]:
        """See `Hop`."""
        return self.offered, self.dropped, self.lost, 0, 0, 0


class _SeparateQueue(DropTailQueue):
    """The queue of members whose links have another state than most, the same for all of them, and carry the same packets."""

    __slots__ = ("members",)

    def __init__(self, like: DropTailQueue, member: int) -> None:
        super().__init__(like.rate, like.limit)
        self.free_at = like.free_at
        if like.departures is not None:
            self.departures = like.departures.copy()
        self.members = [member]
        """Only appended to, because packets in flight refer to its first elements."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Part:
    """The place where a packet arrives for a part of an endpoint's members: the first ones of a list, which is appended to.

    The list is not copied, because it may have thousands of members, and thousands of packets be in flight.
    """

    __slots__ = ("count", "endpoint", "listed")

    def __init__(self, endpoint: Endpoint, listed: list[int]) -> None:
        self.endpoint = endpoint
        self.listed = listed
        self.count = len(listed)

    def reach(self) -> list[int]:
        """Return the members."""
        return self.listed[: self.count]

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver a packet to each member but those of `lost_by`."""
        for member in self.reach():
            if member not in lost_by:
                self.endpoint.host(member).arrive(flight, (), now)


@mypyc_attr(allow_interpreted_subclasses=True)
class Remainder(Part):
    """The place of all members but those listed."""

    __slots__ = ()

    def reach(self) -> list[int]:
        """Return the members."""
        listed = set(self.listed[: self.count])
        return [member for member in range(self.endpoint.count) if member not in listed]

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver a packet to the members but those of `lost_by`."""
        self.endpoint.arrive(flight, sorted([*lost_by, *self.listed[: self.count]]), now)


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkGroup:
    """The links from a switch to a counted group of equal hosts, which share one queue as long as they carry the same packets.

    A multicast does not return to the member that sent it, and a unicast goes to one member, so the links of these carry other
    packets than the rest. Such a link has a separate queue until it and the shared queue are idle; then they are equal again.
    Links whose separate queues have come to the same state share one.
    """

    passes_unnoticed: ClassVar[bool] = True
    """Whether deliveries without an effect on a member that has a separate queue are counted later, without an event."""

    __slots__ = (
        "_apart",
        "_most",
        "delay",
        "dropped",
        "framing",
        "head",
        "is_constant",
        "losses",
        "lost",
        "member_drops",
        "offered",
        "overhead",
        "plans",
        "queue",
        "reservation",
        "sampler",
        "separate_queues",
        "shared_drops",
    )

    def __init__(self, spec: LinkSpec, head: Endpoint, key: int) -> None:
        self.head = head
        self.queue = DropTailQueue(spec.rate, spec.queue)
        self.delay = spec.delay
        self.overhead, self.framing = _framing(spec)
        self.sampler = spec.loss.group(key, head.count)
        self._most = MOST_IDLE
        self.separate_queues: dict[int, _SeparateQueue] = {}
        """The queues of members that do not share `queue` now."""
        self._apart: list[int] = []
        """Their keys; only appended to."""
        self.is_constant = True
        """As of `Link`."""
        self.plans: PlannedArrivals | None = None
        """As of `Link`."""
        self.reservation: Reservation | None = None
        """As of `Link`."""
        self.offered = self.dropped = self.lost = 0
        # Losses by member, in a table made at the first loss; drops of the shared queue, and by member how many more or fewer.
        self.losses: list[int] | None = None
        self.shared_drops = 0
        self.member_drops: dict[int, int] = {}

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end of every link it is for."""
        if self.reservation is not None:
            self.reservation.before_offer(self, flight)
        route, head = flight.route, self.head
        if route.target is not None:
            lost = self.sampler is not None and self.sampler.lost(flight.identity, route.member)
            self._carry_one(flight, route.member, lost, now, arrivals)
            return
        skip = flight.place - head.base if route.home is head else -1
        self.offered += head.count - (skip >= 0)
        lost_by: Sequence[int] = () if self.sampler is None else self.sampler.losers(flight.identity, skip)
        if skip >= 0 or self.separate_queues:
            self._carry_apart(flight, skip, lost_by, now, arrivals)
            return
        end = self.queue.offer(self._octets(flight.size), now)
        if end is None:
            self.shared_drops += 1
            self.dropped += head.count
            return
        if lost_by:
            self.count_lost(lost_by)
        if len(lost_by) < head.count:
            # As `_arrival`, without a call.
            arrival = (head, lost_by) if self.plans is None else self.plans.plan(flight, head, lost_by, self.queue, end)
            arrivals.setdefault(end + self.delay, []).append(arrival)

    def _arrival(
        self, flight: Flight, place: Place, lost_by: Sequence[int], queue: DropTailQueue, end: float
    ) -> tuple[Place, Sequence[int]]:
        """Return where the copies of a packet arrive whose transmission by a queue ends at `end`."""
        return (place, lost_by) if self.plans is None else self.plans.plan(flight, place, lost_by, queue, end)

    def _octets(self, size: int) -> int:
        framing = self.framing
        return size + self.overhead if framing is None else wire_bytes(size, framing)

    def free_at(self) -> float:
        """Return the time (seconds) at which all links have sent all packets offered so far."""
        latest = self.queue.free_at
        for queue in self.separate_queues.values():
            latest = max(latest, queue.free_at)
        return latest

    def queues(self) -> list[DropTailQueue]:
        """See `Hop`: the shared queue, and those of members that do not share it now."""
        return [self.queue, *self._separates()]

    def _separates(self) -> list[_SeparateQueue]:
        return list(dict.fromkeys(self.separate_queues.values()))

    def left_at(self, place: int) -> float:
        """See `Hop`; it is not known."""
        del place
        return 0.0

    def losses_of(self, member: int) -> int:
        """See `Hop`."""
        losses = 0 if self.losses is None else self.losses[member]
        return losses + self.shared_drops + self.member_drops.get(member, 0)

    def counts(self) -> tuple[int, ...]:
        """See `Hop`; the sums over all members."""
        return self.offered, self.dropped, self.lost, 0, 0, 0

    def count_lost(self, lost_by: Sequence[int]) -> None:
        """Count a packet that these members lost."""
        losses = self.losses
        if losses is None:
            losses = self.losses = [0] * self.head.count
        for member in lost_by:
            losses[member] += 1
        self.lost += len(lost_by)

    def rejoin(self, now: float) -> None:
        """Let idle links share the queue again while it is idle."""
        if self.separate_queues and self.queue.free_at <= now:
            kept = {member: each for member, each in self.separate_queues.items() if each.free_at > now}
            self.separate_queues, self._apart = kept, list(kept)

    def separate(self, member: int) -> _SeparateQueue:
        """Return a queue that no other member has, in the state of the one that this member had."""
        former = self.separate_queues.get(member)
        if former is None:
            made = _SeparateQueue(self.queue, member)
            self._apart.append(member)
        elif len(former.members) == 1:
            return former
        else:
            made = _SeparateQueue(former, member)
            former.members = [each for each in former.members if each != member]
        self.separate_queues[member] = made
        return made

    def _merge(self, own: _SeparateQueue, others: Sequence[_SeparateQueue]) -> None:
        """Let a member share the separate queue of others in the same state."""
        for each in others:
            if each is not own and each.free_at == own.free_at and each.departures == own.departures:
                each.members += own.members
                for member in own.members:
                    self.separate_queues[member] = each
                return

    def _carry_one(self, flight: Flight, member: int, lost: bool, now: float, arrivals: Arrivals) -> None:
        """Do `carry` for a packet to one member."""
        self.offered += 1
        if member not in self.separate_queues and len(self.separate_queues) >= self._most:
            # An idle queue is like the shared one when that is idle too, so it only takes room.
            self.rejoin(now)
            self._most = len(self.separate_queues) + MOST_IDLE
        queue = self.separate(member)
        end = queue.offer(self._octets(flight.size), now)
        if end is None or lost:
            self._lose(member, is_dropped=end is None)
        else:
            when, arrival = end + self.delay, self._arrival(flight, self.head.host(member), (), queue, end)
            if when in arrivals:
                arrivals[when].append(arrival)
            else:
                arrivals[when] = [arrival]

    def _lose(self, member: int, is_dropped: bool) -> None:
        """Count a packet that one member did not receive."""
        if is_dropped:
            self.dropped += 1
            self.member_drops[member] = self.member_drops.get(member, 0) + 1
        else:
            self.count_lost((member,))

    def _carry_apart(self, flight: Flight, skip: int, lost_by: Sequence[int], now: float, arrivals: Arrivals) -> None:
        """Do `carry` while some members have queues of their own, or one is left out because it is the sender."""
        self.rejoin(now)
        own = None if skip < 0 else self.separate(skip)
        if len(self._apart) > (own is not None):
            separates = self._separates()
            lost_by = self._send_apart(flight, separates, own, lost_by, now, arrivals)
            if own is not None:
                self._merge(own, separates)
        end = self.queue.offer(self._octets(flight.size), now)
        if end is None:
            self._drop_shared(self._apart)
            return
        if lost_by:
            self.count_lost(lost_by)
        apart = self._apart
        if len(apart) + len(lost_by) < self.head.count:
            few = len(apart) <= MOST_IDLE
            place, left_out = (self.head, sorted([*lost_by, *apart])) if few else (Remainder(self.head, apart), lost_by)
            arrivals.setdefault(end + self.delay, []).append(self._arrival(flight, place, left_out, self.queue, end))

    def _send_apart(
        self,
        flight: Flight,
        separates: Sequence[_SeparateQueue],
        own: _SeparateQueue | None,
        lost_by: Sequence[int],
        now: float,
        arrivals: Arrivals,
    ) -> Sequence[int]:
        """Send to the members with separate queues, but for that of the sender; returns which of the others lose the packet."""
        head, apart = self.head, self.separate_queues
        octets, lost_apart = self._octets(flight.size), [member for member in lost_by if member in apart]
        unconcerned = head.unconcerned_by(flight) if head.unconcerned and self.passes_unnoticed and self.plans is None else ()
        for queue in separates:
            if queue is own:
                continue
            members = queue.members
            end = queue.offer(octets, now)
            if end is None:
                for member in members:
                    self._lose(member, is_dropped=True)
                continue
            left_out = [member for member in lost_apart if apart[member] is queue] if lost_apart else []
            for member in left_out:
                self._lose(member, is_dropped=False)
            when = end + self.delay
            passing = [member for member in members if member in unconcerned and member not in left_out] if unconcerned else []
            if passing:
                head.pass_unnoticed([(when, head.base + member, flight) for member in passing])
                left_out += passing
            if len(left_out) < len(members):
                arrivals.setdefault(when, []).append(self._arrival(flight, Part(head, members), left_out, queue, end))
        return [member for member in lost_by if member not in apart] if lost_apart else lost_by

    def _drop_shared(self, apart: Sequence[int]) -> None:
        self.shared_drops += 1
        self.dropped += self.head.count - len(apart)
        for member in apart:
            self.member_drops[member] = self.member_drops.get(member, 0) - 1
