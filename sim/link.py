"""Links: an analytic drop-tail queue, serialisation and propagation, then loss. No event is spent on any of them.

Packets must be offered in order of time.
"""

from collections.abc import Sequence
from typing import Final

from mypy_extensions import mypyc_attr

from sim.acceleration import Passing, Reservation
from sim.endpoint import Endpoint
from sim.flight import Arrivals, Flight, Place
from topologies.drop_tail import DropTailQueue
from topologies.ethernet import Framing, wire_bytes
from topologies.spec import LinkSpec

__all__ = ["Link", "LinkGroup"]

MOST_IDLE: Final = 64
"""Separate queues of a group beyond those found busy at the last clearance, before idle ones are removed."""


def _framing(spec: LinkSpec) -> tuple[int, Framing | None]:
    """The bytes of overhead that are added to each packet, and the framing where the overhead depends on the packet."""
    return (spec.overhead, None) if isinstance(spec.overhead, int) else (0, spec.overhead)


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """One direction of a link that stands alone, to a switch or a plain host (`head`)."""

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
            if endpoint is not None and endpoint.unconcerned and 0 in endpoint.unconcerned_by(flight):
                endpoint.pass_unnoticed([(when, endpoint.base, flight)])
            elif when in arrivals:
                arrivals[when].append((self.head, ()))
            else:
                arrivals[when] = [(self.head, ())]

    def free_at(self) -> float:
        """The time (seconds) at which all packets offered so far are sent."""
        return self.queue.free_at

    def queues(self) -> list[DropTailQueue]:
        """See `Hop`."""
        return [self.queue]

    def losses_of(self, member: int) -> int:
        """See `Hop`; `member` is 0."""
        del member
        return self.lost + self.dropped

    def counts(self) -> tuple[int, ...]:
        """See `Hop`."""
        return self.offered, self.dropped, self.lost, 0, 0, 0


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkGroup:
    """The last hops to a counted group of equal hosts: N links that share one queue as long as they carry the same packets.

    A multicast does not return to the member that sent it, and a unicast goes to one member, so the links of these carry other
    packets than the rest. Such a link has a queue of its own until it and the shared queue are idle; then they are equal again.
    """

    __slots__ = (
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
        self.separate_queues: dict[int, DropTailQueue] = {}
        """The queues of members that do not share `queue` now."""
        self.is_constant = True
        """As of `Link`."""
        self.reservation: Reservation | None = None
        """As of `Link`."""
        self.offered = self.dropped = self.lost = 0
        # Per member: losses in a table made at the first loss; drops as those of the shared queue and what differs.
        self.losses: list[int] | None = None
        self.shared_drops = 0
        self.member_drops: dict[int, int] = {}

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet at the near end of every link it is for."""
        if self.reservation is not None:
            self.reservation.before_offer(self, flight)
        route, head = flight.route, self.head
        if route.target is not None:
            self._carry_one(flight, route.member, now, arrivals)
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
            arrivals.setdefault(end + self.delay, []).append((head, lost_by))

    def _octets(self, size: int) -> int:
        framing = self.framing
        return size + self.overhead if framing is None else wire_bytes(size, framing)

    def free_at(self) -> float:
        """The time (seconds) at which all links have sent all packets offered so far."""
        return max([queue.free_at for queue in self.queues()]) if self.separate_queues else self.queue.free_at

    def queues(self) -> list[DropTailQueue]:
        """See `Hop`: the shared queue, and those of members that do not share it now."""
        return [self.queue, *self.separate_queues.values()]

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
            self.separate_queues = {member: queue for member, queue in self.separate_queues.items() if queue.free_at > now}

    def _carry_one(self, flight: Flight, member: int, now: float, arrivals: Arrivals) -> None:
        self.offered += 1
        lost = self.sampler is not None and self.sampler.lost(flight.identity, member)
        if member not in self.separate_queues:
            if len(self.separate_queues) >= self._most:
                # An idle queue is like the shared one when that is idle too, so it only takes room.
                self.rejoin(now)
                self._most = len(self.separate_queues) + MOST_IDLE
            self.separate_queues[member] = self.queue.fork()
        end = self.separate_queues[member].offer(self._octets(flight.size), now)
        if end is None or lost:
            self._lose(member, is_dropped=end is None)
        else:
            arrivals.setdefault(end + self.delay, []).append((self.head.host(member), ()))

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
        if skip >= 0 and skip not in self.separate_queues:
            self.separate_queues[skip] = self.queue.fork()
        apart = sorted(self.separate_queues)
        if apart != [skip]:
            lost_by = self._send_apart(flight, apart, skip, lost_by, now, arrivals)
        end = self.queue.offer(self._octets(flight.size), now)
        if end is None:
            self._drop_shared(apart)
            return
        if lost_by:
            self.count_lost(lost_by)
            apart = sorted([*lost_by, *apart])
        if len(apart) < self.head.count:
            arrivals.setdefault(end + self.delay, []).append((self.head, apart))

    def _send_apart(
        self, flight: Flight, apart: list[int], skip: int, lost_by: Sequence[int], now: float, arrivals: Arrivals
    ) -> Sequence[int]:
        """Send to the members with queues of their own, but not to `skip`; returns which of the others lose the packet."""
        head, queues, delay = self.head, self.separate_queues, self.delay
        unconcerned = head.unconcerned_by(flight) if head.unconcerned else ()
        passing: list[Passing] = []
        octets, lost_apart = self._octets(flight.size), set(lost_by).intersection(apart)
        seconds = octets / self.queue.rate
        for member in apart:
            if member == skip:
                continue
            queue = queues[member]
            if queue.departures is None:
                # As `offer`, without a call.
                begin = queue.free_at
                end: float | None = (begin if begin > now else now) + seconds
                queue.free_at = end  # type: ignore[assignment]
            else:
                end = queue.offer(octets, now)
            if end is None or member in lost_apart:
                self._lose(member, is_dropped=end is None)
            elif member in unconcerned:
                passing.append((end + delay, head.base + member, flight))
            else:
                arrivals.setdefault(end + delay, []).append((head.host(member), ()))
        if passing:
            head.pass_unnoticed(passing)
        return [member for member in lost_by if member not in lost_apart] if lost_apart else lost_by

    def _drop_shared(self, apart: Sequence[int]) -> None:
        self.shared_drops += 1
        self.dropped += self.head.count - len(apart)
        for member in apart:
            self.member_drops[member] = self.member_drops.get(member, 0) - 1
