"""Foreseen packets on their way: when each is where, and what links and crowd are by now."""

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, cast

from protocols.fast.lockstep import LockstepGroup
from sim.engine import ARRIVAL, TIMER
from sim.fast.timetable import Segment
from sim.flight import Route
from sim.host import SimHost
from sim.link import Fifo, LinkGroup
from topologies.draws import Losers, listed
from topologies.losses import GroupLoss

if TYPE_CHECKING:
    from sim.network import Network

__all__ = ["InFlight"]

PIECE = 512
"""Of so many at a time that lost packets a list is made."""


class InFlight:
    """What one host foresees for one route. Packets are numbered; those before `_passed[-1]` are done."""

    def __init__(self, network: "Network", host: SimHost, route: Route, path: list[Any]) -> None:
        self._network = network
        self.host = host
        self._route = route
        self._path = path
        self._bundle: LinkGroup = path[-1]
        self._sampler = cast("GroupLoss | None", self._bundle.sampler)
        self._leaf = self._bundle.head
        self._lockstep: LockstepGroup | None = None
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self._base = 0
        # When each packet, counted from `_base`, is offered to each link, and when it is there.
        self._times: list[list[float]] = [[] for _ in range(len(path) + 1)]
        # The packets somebody misses, in order, and who.
        self._missed: list[int] = []
        self._losers: dict[int, Losers] = {}
        # How many have been offered to each link, and how many have landed; `_end` is how many there are.
        self._passed = [0] * (len(path) + 1)
        self._end = 0
        # How many of those offered to the last link are in its counters.
        self._counted = 0

    def _instant(self) -> tuple[float, int, int]:
        """Time, priority and order of the present event."""
        network = self._network
        when, priority, order, *_ = network.key
        # Where it is behind, somebody else drives SimPy.
        return (when, priority, order) if when >= network.env._now else (network.env._now, 0, 0)

    def catch_up(self) -> None:
        """Everything before the present event happened."""
        when, priority, order = self._instant()
        self._depart(when, priority)
        for hop in range(1, len(self._times)):
            self._advance(hop, when, priority, order)
        self._count()

    def _advance(self, hop: int, when: float, priority: int, order: int) -> None:
        """What was due before this came over the link before `hop`."""
        begin, base, column = self._passed[hop], self._base, self._times[hop]
        if begin < self._end and column[begin - base] <= when:
            at = bisect_left(column, when, begin - base)
            if at < len(column) and column[at] == when:
                # Where links take no time it may not have been sent yet.
                limit = self._departed(when, priority) - base
                while at < limit and column[at] == when and (ARRIVAL, self._order(at + base, hop)) < (priority, order):
                    at += 1
            if at + base > begin:
                self._pass(hop, begin, at + base)

    def _departed(self, when: float, priority: int) -> int:
        """How many the host has sent."""
        begin, base, column = self._passed[0], self._base, self._times[0]
        if begin == self._end or column[begin - base] > when:
            return begin
        find = bisect_right if priority == TIMER else bisect_left
        return find(column, when, begin - base) + base

    def _depart(self, when: float, priority: int) -> None:
        """The host has sent what was due."""
        begin, end = self._passed[0], self._departed(when, priority)
        if end > begin:
            self._send(begin, end)

    def sync(self) -> None:
        """What has landed before the present event has moved the crowd; links are made up for when they are asked."""
        begin, base, column = self._passed[-1], self._base, self._times[-1]
        when = self._network.env._now
        if begin == self._end or column[begin - base] > when:
            return
        at = bisect_left(column, when, begin - base)
        if at < len(column) and column[at] == when:
            self.catch_up()
        else:
            self._land(begin, at + base)

    def _segment(self, number: int) -> Segment:
        """The run a packet belongs to."""
        return self._segments[bisect_right(self._starts, number) - 1]

    def _order(self, number: int, hop: int) -> int:
        segment = self._segment(number)
        return segment.order + (number - segment.start << 24) + hop

    def _send(self, begin: int, end: int) -> None:
        """The host put these on its link."""
        self._passed[0] = end
        network, run = self._network, self._segments[-1].run
        # All that is foreseen at one time is of one kind and size.
        network.count_sent(run.kind, end - begin, (end - begin) * run.size)
        self._occupy(0, begin, end)
        for observer in network.observers:
            for number in range(begin, end):
                segment = self._segment(number)
                message = segment.run.message(number - segment.start)
                observer.sent(self._times[0][number - self._base], self.host, message, run.size)

    def _pass(self, hop: int, begin: int, end: int) -> None:
        """These came over the link before `hop`; the last stage is that they have landed."""
        if hop < len(self._path):
            self._passed[hop] = end
            self._occupy(hop, begin, end)
        else:
            self._land(begin, end)

    def _land(self, begin: int, end: int) -> None:
        """These are there. All stand where the first begins, and who misses one has only to note so."""
        self._passed[-1] = end
        lockstep, missed, base, times = self._lockstep, self._missed, self._base, self._times[-1]
        assert lockstep is not None
        lost, segment, deferred = 0, self._segment(end - 1), []
        for number in missed[bisect_left(missed, begin) : bisect_left(missed, end)]:
            part = segment if number >= segment.start else self._segment(number)
            out = self._missed_by(number)
            lost += len(out)
            deferred.append((part.run, number - part.start, number, times[number - 1 - base] if number > begin else None, out))
        lockstep.defer(deferred)
        lockstep.move(segment.run.position(end - segment.start), times[end - 1 - base], end)
        self._network.delivered += (end - begin) * self._leaf.count - lost

    def _occupy(self, hop: int, begin: int, end: int) -> None:
        """A link has carried these."""
        link, last = self._path[hop], end - 1
        fifo: Fifo = link.fifo
        if link is not self._bundle:
            link.offered += end - begin
        elif link.separate_links:
            link.rejoin(self._times[hop][begin - self._base])
        fifo.free_at = self._times[hop][last - self._base] + self._segment(last).costs[hop]
        if fifo.departures is not None:
            fifo.departures.clear()
            fifo.departures.append(fifo.free_at)

    def _count(self) -> None:
        """Bring the counters of the last link up to date, many packets at a time."""
        bundle, sampler, first, end = self._bundle, self._sampler, self._counted, self._passed[-2]
        if first == end:
            return
        self._counted = end
        bundle.offered += (end - first) * self._leaf.count
        while sampler is not None and first < end:
            segment = self._segment(first)
            count = min(end, segment.start + segment.run.count) - first
            losers = sampler.count(segment.run.identity + first - segment.start, count)
            for at in range(0, len(losers), PIECE):
                bundle.count_lost(listed(losers[at : at + PIECE]))
            first += count

    def _missed_by(self, number: int) -> list[int]:
        """Who misses a packet that is there; asked once, for of many receivers these are many."""
        return listed(self._losers.pop(number, []))
