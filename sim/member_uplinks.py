"""The links from the members of a counted group to their switch, as one object that keeps only the busy ones."""

from bisect import bisect_left
from collections.abc import Sequence
from math import inf
from typing import ClassVar, Final

from sim.acceleration import Reservation
from sim.flight import Arrivals, Flight, Place, Places
from topologies.drop_tail import DropTailQueue
from topologies.ethernet import Framing, size_on_link
from topologies.losses import LinkLoss
from topologies.member_losses import MemberLosses
from topologies.spec import LinkSpec

__all__ = ["MemberUplink", "MemberUplinks"]

MOST_IDLE: Final = 64
"""Queues kept beyond those found busy at the last clearance, before idle ones are removed."""


class MemberUplinks:
    """Plain links of the members of a group, whose hosts have the places from `base` on, to one switch (`head`)."""

    __slots__ = (
        "_batch",
        "_batch_end",
        "_delay",
        "_dropped",
        "_losses",
        "_most",
        "_overhead",
        "_places",
        "_planned",
        "_queues",
        "_spec",
        "base",
        "head",
        "lost",
        "offered",
    )

    def __init__(self, spec: LinkSpec, head: Place, base: int, losses: MemberLosses | None) -> None:
        self._spec = spec
        self._delay = spec.delay
        self._overhead: int | Framing = spec.overhead
        self.head = head
        self._places: Places = [(head, ())]
        """Where each packet arrives, and that nobody there misses it; one list for all packets, and never modified."""
        self.base = base
        self._losses = losses
        self.offered = self.lost = self._dropped = 0
        # Queues by member; an idle one may be missing.
        self._queues: dict[int, DropTailQueue] = {}
        self._most = MOST_IDLE
        # The places of the hosts that sent a batch last, ascending, and when their links become idle.
        self._batch: Sequence[int] = ()
        self._batch_end = 0.0
        # By place of the host, the links on which packets were scheduled ahead before.
        self._planned: dict[int, MemberUplink] = {}

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
        """Take a packet of a member."""
        if self._planned:
            link = self._planned.get(flight.place)
            if link is not None and link.reservation is not None:
                link.reservation.before_offer(link, flight)
        self.offered += 1
        losses = self._losses
        is_lost = losses is not None and losses.lost(flight.identity, flight.place - self.base)
        end = self.queue(flight.place, now).offer(size_on_link(flight.size, self._overhead), now)
        if end is None:
            self._dropped += 1
        elif is_lost:
            self.lost += 1
        else:
            # A member has no other link, so that these are all arrivals of the packet.
            arrivals[end + self._delay] = self._places

    def uplink(self, place: int) -> "MemberUplink":
        """Return the link from the host at a place, always the same object, to schedule packets ahead on it."""
        link = self._planned.get(place)
        if link is None:
            link = self._planned[place] = MemberUplink(self, place, self._spec)
        return link

    def carry_batch(self, places: Sequence[int], size: int, now: float) -> float | None:
        """Take a packet of `size` bytes of UDP payload from each host at `places`, ascending; return when all of them arrive.

        None, and nothing is taken, if the links are not all idle, or take no time.
        """
        self._clear(now)
        if self._queues or self._batch_end > now or (self._spec.rate == inf and not self._delay):
            return None
        self.offered += len(places)
        self._batch, self._batch_end = places, now + size_on_link(size, self._overhead) / self._spec.rate
        return self._batch_end + self._delay

    def lost_of_batch(self) -> Sequence[int]:
        """Return which packets of the batch that was taken last are lost, as indices in its `places`, and count them."""
        if self._losses is None:
            return ()
        lost = self._losses.lost_controls([place - self.base for place in self._batch])
        self.lost += len(lost)
        return lost

    def sampler(self, place: int) -> LinkLoss | None:
        """Return the sampler of packets with an identity on the link from the host at a place; None if none is lost."""
        return None if self._losses is None else self._losses.link(place - self.base)

    def queue(self, place: int, now: float) -> DropTailQueue:
        """Return the queue of the link from the host at a place."""
        queue = self._queues.get(place)
        if queue is None:
            if len(self._queues) >= self._most:
                self._clear(now)
            queue = self._queues[place] = DropTailQueue(self._spec.rate, self._spec.queue)
            if self._batch_end > now:
                batch = self._batch
                at = bisect_left(batch, place)
                if at < len(batch) and batch[at] == place:
                    queue.advance(self._batch_end)
        return queue

    def _clear(self, now: float) -> None:
        """Forget idle links."""
        self._queues = {place: queue for place, queue in self._queues.items() if queue.free_at > now}
        self._most = len(self._queues) + MOST_IDLE

    def queues(self) -> Sequence[DropTailQueue]:
        """See `sim.flight.Hop`: those of busy links."""
        return list(self._queues.values())

    def left_at(self, place: int) -> float:
        """See `sim.flight.Hop`."""
        queue = self._queues.get(place)
        return queue.free_at if queue is not None and queue.limit is None else 0.0

    def losses_of(self, member: int) -> int:
        """See `sim.flight.Hop`; no host is at the far end."""
        del member
        return 0

    def counts(self) -> tuple[int, ...]:
        """See `sim.flight.Hop`; the sums over all members."""
        return self.offered, self._dropped, self.lost, 0, 0, 0


class MemberUplink:
    """One of the links, from the host at `place`, as a `sim.link.Link` on which packets are scheduled ahead."""

    __slots__ = ("_place", "_uplinks", "delay", "framing", "head", "overhead", "reservation", "sampler")

    is_constant: ClassVar[bool] = True

    def __init__(self, uplinks: MemberUplinks, place: int, spec: LinkSpec) -> None:
        self._uplinks = uplinks
        self._place = place
        self.reservation: Reservation | None = None
        """As of `sim.link.Link`."""
        self.sampler = uplinks.sampler(place)
        self.head = uplinks.head
        self.delay = spec.delay
        self.overhead = spec.overhead if isinstance(spec.overhead, int) else 0
        self.framing = None if isinstance(spec.overhead, int) else spec.overhead

    @property
    def queue(self) -> DropTailQueue:
        """As of `sim.link.Link`."""
        return self._uplinks.queue(self._place, 0.0)

    @property
    def offered(self) -> int:
        """The packets offered to all these links."""
        return self._uplinks.offered

    @offered.setter
    def offered(self, offered: int) -> None:
        self._uplinks.offered = offered

    @property
    def lost(self) -> int:
        """The packets that were lost of those offered to all these links."""
        return self._uplinks.lost

    @lost.setter
    def lost(self, lost: int) -> None:
        self._uplinks.lost = lost

    def free_at(self) -> float:
        """Return when the link has sent all packets offered so far, in seconds."""
        return self.queue.free_at
