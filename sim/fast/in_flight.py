"""Packets scheduled ahead that are in flight, and the state of links and receivers, brought up to date when it is needed."""

from bisect import bisect_left, bisect_right
from typing import Final

from protocols.fast.lockstep import LockstepGroup
from sim.fast.timetable import Path, Segment
from sim.flight import Route
from sim.host import SimHost
from sim.link import Link
from sim.occurrence import ARRIVAL, TIMER
from topologies.draws import Losers, listed
from topologies.losses import GroupLoss

__all__ = ["InFlight"]

PIECE: Final = 512
"""Most losses of which lists are made at a time."""


class InFlight:
    """The packets of one host on one route, numbered from 0 in the order of sending."""

    def __init__(self, host: SimHost, route: Route, path: Path) -> None:
        self.host = host
        self._fabric = host.endpoint.fabric
        self._kernel = self._fabric.kernel
        self._route = route
        self._hops = path.hops
        self._group = path.group
        sampler = path.group.sampler
        assert sampler is None or isinstance(sampler, GroupLoss)
        self._sampler: GroupLoss | None = sampler
        self._endpoint = path.group.head
        self._lockstep: LockstepGroup | None = None
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self._base = 0
        # For packets from `_base` on: when each is offered to each link, and last when it arrives.
        self._times: list[list[float]] = [[] for _ in range(len(path.hops) + 1)]
        # The packets that some members lose, ascending, and which members.
        self._lossy: list[int] = []
        self._lost_by: dict[int, Losers] = {}
        # How many packets have been offered to each link, and last how many have arrived; `_end` is how many there are.
        self._passed = [0] * (len(path.hops) + 1)
        self._end = 0
        # How many of those offered to the group's links are in its counters.
        self._counted = 0

    def _instant(self) -> tuple[float, int, int]:
        """Time, priority and order of the present event."""
        kernel = self._kernel
        when, priority, order, *_ = kernel.key
        # It is in the past while a user's code drives SimPy instead of the kernel.
        return (when, priority, order) if when >= kernel.env._now else (kernel.env._now, 0, 0)

    def catch_up(self) -> None:
        """Apply everything that happens before the present event."""
        when, priority, order = self._instant()
        self._depart(when, priority)
        for hop in range(1, len(self._times)):
            self._advance(hop, when, priority, order)
        self._count()

    def _advance(self, hop: int, when: float, priority: int, order: int) -> None:
        """Apply what left the link before `hop` before this instant."""
        begin, base, column = self._passed[hop], self._base, self._times[hop]
        if begin < self._end and column[begin - base] <= when:
            at = bisect_left(column, when, begin - base)
            if at < len(column) and column[at] == when:
                # Over links without delay it may not have been sent yet.
                limit = self._departed(when, priority) - base
                while at < limit and column[at] == when and (ARRIVAL, self._order(at + base, hop)) < (priority, order):
                    at += 1
            if at + base > begin:
                self._pass(hop, begin, at + base)

    def _departed(self, when: float, priority: int) -> int:
        """How many packets the host has sent."""
        begin, base, column = self._passed[0], self._base, self._times[0]
        if begin == self._end or column[begin - base] > when:
            return begin
        find = bisect_right if priority == TIMER else bisect_left
        return find(column, when, begin - base) + base

    def _depart(self, when: float, priority: int) -> None:
        """Apply what the host has sent."""
        begin, end = self._passed[0], self._departed(when, priority)
        if end > begin:
            self._send(begin, end)

    def sync(self) -> None:
        """Advance the lockstep group by the arrivals before the present event; links are updated when they are needed."""
        begin, base, column = self._passed[-1], self._base, self._times[-1]
        when = self._kernel.env._now
        if begin == self._end or column[begin - base] > when:
            return
        at = bisect_left(column, when, begin - base)
        if at < len(column) and column[at] == when:
            self.catch_up()
        else:
            self._apply_arrivals(begin, at + base)

    def _segment(self, number: int) -> Segment:
        """The burst of a packet."""
        return self._segments[bisect_right(self._starts, number) - 1]

    def _order(self, number: int, hop: int) -> int:
        segment = self._segment(number)
        return segment.order + (number - segment.start << 24) + hop

    def _send(self, begin: int, end: int) -> None:
        """Apply the sending of these packets."""
        self._passed[0] = end
        fabric, burst = self._fabric, self._segments[-1].burst
        # All bursts in flight at one time have one kind and size.
        fabric.packets[burst.kind] += end - begin
        fabric.octets[burst.kind] += (end - begin) * burst.size
        self._occupy(0, begin, end)
        for observer in fabric.observers:
            for number in range(begin, end):
                segment = self._segment(number)
                message = segment.burst.message(number - segment.start)
                observer.sent(self._times[0][number - self._base], self.host, message, burst.size)

    def _pass(self, hop: int, begin: int, end: int) -> None:
        """Apply that these packets left the link before `hop`."""
        if hop < len(self._hops):
            self._passed[hop] = end
            self._occupy(hop, begin, end)
        else:
            self._apply_arrivals(begin, end)

    def _apply_arrivals(self, begin: int, end: int) -> None:
        """Advance the lockstep group over these packets; losses are only recorded, to be applied at a machine's next input."""
        self._passed[-1] = end
        lockstep, lossy, base, times = self._lockstep, self._lossy, self._base, self._times[-1]
        assert lockstep is not None
        lost, segment, deferred = 0, self._segment(end - 1), []
        for number in lossy[bisect_left(lossy, begin) : bisect_left(lossy, end)]:
            part = segment if number >= segment.start else self._segment(number)
            lost_by = self._take_losses(number)
            lost += len(lost_by)
            before = times[number - 1 - base] if number > begin else None
            deferred.append((part.burst, number - part.start, number, before, lost_by))
        lockstep.defer(deferred)
        lockstep.move(segment.burst.position(end - segment.start), times[end - 1 - base], end)
        self._fabric.delivered += (end - begin) * self._endpoint.count - lost

    def _occupy(self, hop: int, begin: int, end: int) -> None:
        """Apply that these packets were offered to a link."""
        link, last = self._hops[hop], end - 1
        if isinstance(link, Link):
            link.offered += end - begin
        elif link.separate_queues:
            link.rejoin(self._times[hop][begin - self._base])
        link.queue.advance(self._times[hop][last - self._base] + self._segment(last).costs[hop])

    def _count(self) -> None:
        """Bring the counters of the group's links up to date, many packets at a time."""
        group, sampler, first, end = self._group, self._sampler, self._counted, self._passed[-2]
        if first == end:
            return
        self._counted = end
        group.offered += (end - first) * self._endpoint.count
        while sampler is not None and first < end:
            segment = self._segment(first)
            count = min(end, segment.start + segment.burst.count) - first
            losses = sampler.count(segment.burst.identity + first - segment.start, count)
            for at in range(0, len(losses), PIECE):
                group.count_lost(listed(losses[at : at + PIECE]))
            first += count

    def _take_losses(self, number: int) -> list[int]:
        """The members that lose a packet which arrives; removed here, since of many members these are many."""
        return listed(self._lost_by.pop(number, []))
