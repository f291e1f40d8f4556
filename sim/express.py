"""Packets a sender foresees, carried to a group of equal leaves without an event for each.

Between a sender's wake-ups in the middle of a block nothing is decided: packets take their place on links, and those who are in
step move on. All of that is arithmetic, so it is done when somebody looks: before a link, a machine or a counter is touched,
everything that comes before the present event is made up for (`sync`). Only an arrival that somebody loses, or that finds
receivers out of step, is a SimPy event, with the time and order it has without this. When a link turns out to be busy, or
routes and listeners change, what is under way goes on as ordinary packets (`unfold`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, repeat
from math import inf
from typing import TYPE_CHECKING, Any, cast

from protocols.crowd import Crowd
from protocols.foresight import Run
from protocols.machine import Machine
from sim.engine import ARRIVAL, TIMER, Occurrence, post
from sim.flight import Flight, Route
from sim.host import SimHost
from sim.leaf import Leaf, Switch
from sim.link import Bundle, Fifo, Link
from topologies.losses import BundleLoss, Losers

if TYPE_CHECKING:
    from sim.network import Network

__all__ = ["Express", "express_of"]

FORGET = 128
SHORTEST = 4
"""So many packets are worth being carried this way."""


def express_of(network: "Network", host: SimHost, route: Route) -> "Express | None":
    """What carries what this host foresees for a route; None when that is not so simple."""
    if not route.explored:
        route.explored = True
        path = _path_of(route) if type(host) is SimHost and route.target is None else None
        route.express = None if path is None else Express(network, host, route, path)
    return route.express


def _path_of(route: Route) -> list[Any] | None:
    """The links from a plain host to one group of leaves, if all are of the simplest kind and lead nowhere else."""
    links: Sequence[Any] = route.first
    path: list[Any] = []
    while len(links) == 1 and type(links[0]) is Link and type(links[0].fifo) is Fifo and links[0].sampler is None:
        path.append(links[0])
        head = links[0].head
        if type(head) is not Switch:
            return None
        links = route.links.get(head.name) or head.network.next_links(route, head)
    if not path or len(links) != 1 or type(links[0]) is not Bundle or type(links[0].fifo) is not Fifo:
        return None
    bundle = links[0]
    simple = type(bundle.head) is Leaf and type(bundle.sampler) in (BundleLoss, type(None)) and bundle.head is not route.home
    return [*path, bundle] if simple else None


class _Segment:
    """One run on its way: `start` is the number of its first packet, `costs` the seconds of each on the ports."""

    __slots__ = ("costs", "order", "run", "start")

    def __init__(self, run: Run, start: int, order: int, costs: list[float]) -> None:
        self.run = run
        self.start = start
        self.order = order
        self.costs = costs


class _Plan:
    """What becomes of the packets of a run, as in `Express`."""

    __slots__ = ("costs", "identity", "interval", "losers", "size", "times")

    def __init__(self, run: Run, times: list[list[float]], losers: list[Losers], costs: list[float]) -> None:
        self.identity = run.identity
        self.interval = run.interval
        self.size = run.size
        self.times = times
        self.losers = losers
        self.costs = costs

    def shift(self, run: Run) -> bool:
        """Make it the plan of this run, which is that of before without its beginning; False when it is another."""
        done = run.identity - self.identity
        offers = self.times[0]
        if not 0 <= done < len(offers) or offers[done] != run.begin or (self.size, self.interval) != (run.size, run.interval):
            return False
        self.times = [column[done : done + run.count] for column in self.times]
        self.losers = self.losers[done : done + run.count]
        return True


class Express:
    """What one host foresees for one route. Packets are numbered; those before `_landed` are done."""

    def __init__(self, network: "Network", host: SimHost, route: Route, path: list[Any]) -> None:
        self._network = network
        self._host = host
        self._route = route
        self._path = path
        self._bundle: Bundle = path[-1]
        self._sampler = cast("BundleLoss | None", self._bundle.sampler)
        self._leaf = self._bundle.head
        self._crowd: Crowd | None = None
        self._segments: list[_Segment] = []
        self._base = 0
        # When each packet, counted from `_base`, is offered to each link, and when it is there; who misses it.
        self._times: list[list[float]] = [[] for _ in range(len(path) + 1)]
        self._losers: list[Losers] = []
        # How many have been offered to each link, and how many have landed; `_end` is how many there are.
        self._passed = [0] * (len(path) + 1)
        self._end = 0
        self._posted: dict[int, Occurrence] = {}
        self._callbacks = (self._on_arrival,)
        # What was foreseen and not sent, because the sender had an input; it often goes on as if it had not.
        self._left: _Plan | None = None

    # Taking a run

    def depart(self, machine: Machine) -> None:
        """The machine was just woken: carry what it foresees."""
        run = machine.foresee()
        if run is None or run.count < SHORTEST or run.to is not self._route.to:
            return
        crowd = self._find_crowd()
        if crowd is None or not self._has_way():
            return
        self._forget()
        plan = self._left
        if plan is None or not plan.shift(run) or not self._is_free(plan):
            plan = self._plan(run)
        self._left = None
        if len(plan.losers) < SHORTEST:
            return
        self._take(machine, run, plan)
        self._crowd = crowd
        crowd.late = self
        self.rouse()

    def _find_crowd(self) -> Crowd | None:
        audience = self._leaf.audiences.get(self._route.to)
        if audience is None or audience.crowd is None or audience.members is not None:
            return None
        crowd = audience.crowd
        return crowd if crowd.late in (None, self) else None

    def _has_way(self) -> bool:
        """Do the links let through what is offered, and does nobody else carry something over them this way?"""
        if self._bundle.express is None:
            for link in self._path[:-1]:
                if link.sampler is not None or link.express is not None:
                    return False
        return self._bundle.express in (None, self)

    def _free_at(self, hop: int) -> float:
        """When a link has sent all that was offered, and all that is under way to it from here."""
        free: float = self._path[hop].free_at()
        if self._passed[hop] < self._end:
            free = max(free, self._times[hop][-1] + self._segments[-1].costs[hop])
        return free

    def _is_free(self, plan: "_Plan") -> bool:
        """Does the first packet find all ports idle?"""
        return all(self._free_at(hop) <= plan.times[hop][0] for hop in range(len(self._path)))

    def _plan(self, run: Run) -> "_Plan":
        """As much of the run as comes to anybody and finds all ports idle."""
        sampler = self._sampler
        losers: list[Losers] = [()] * run.count if sampler is None else sampler.foretell(run.identity, run.count)
        # A packet that comes to nobody has no arrival.
        count = next((at for at, out in enumerate(losers) if len(out) == self._leaf.count), len(losers))
        offers = list(accumulate(repeat(run.interval, count - 1), initial=run.begin)) if count else []
        costs, times = [], [offers]
        for hop, link in enumerate(self._path):
            free, cost, delay = self._free_at(hop), (run.size + link.fifo.overhead) / link.fifo.rate, link.fifo.delay
            arrivals: list[float] = []
            for offer in times[-1]:
                if free > offer:
                    break
                free = offer + cost
                arrivals.append(free + delay)
            times.append(arrivals)
            costs.append(cost)
        count = len(times[-1])
        return _Plan(run, [column[:count] for column in times], losers[:count], costs)

    def _take(self, machine: Machine, run: Run, plan: "_Plan") -> None:
        count, network = len(plan.losers), self._network
        run.take(count, plan.times[0][-1] + run.interval)
        machine.seat.pace = self
        order = (self._host.place + 1) << 80 | (network.take_serials(count)) << 24
        self._segments.append(_Segment(run, self._end, order, plan.costs))
        self._end += count
        self._losers += plan.losers
        for column, more in zip(self._times, plan.times, strict=True):
            column += more
        for link in self._path:
            link.express = self
        if self not in network.expresses:
            network.expresses.append(self)

    def _forget(self) -> None:
        """What has landed is of no interest any more; a sender that never pauses would fill the memory with it."""
        done = self._passed[-1] - self._base
        if done >= FORGET:
            for column in self._times:
                del column[:done]
            del self._losers[:done]
            self._base += done
            self._segments = [segment for segment in self._segments if segment.start + segment.run.count > self._base]

    # Making up for what happened

    def sync(self) -> None:
        """Everything before the present event happened."""
        network = self._network
        when, priority, order, *_ = network.key
        if when < network.env._now:
            # Somebody else drives SimPy.
            when, priority, order = network.env._now, 0, 0
        base, passed, times = self._base, self._passed, self._times
        begin, limit, column = passed[0], self._end, times[0]
        if begin < limit and column[begin - base] <= when:
            find = bisect_right if priority == TIMER else bisect_left
            at = find(column, when, begin - base, limit - base) + base
            if at > begin:
                self._send(begin, at)
        for hop in range(1, len(times)):
            begin, limit, column = passed[hop], passed[hop - 1], times[hop]
            if begin == limit or column[begin - base] > when:
                continue
            at = bisect_left(column, when, begin - base, limit - base) + base
            while at < limit and column[at - base] == when and (ARRIVAL, self._order(at, hop)) < (priority, order):
                at += 1
            if at > begin:
                passed[hop] = at
                self._pass(hop, begin, at)

    def _segment(self, number: int) -> _Segment:
        """The run a packet belongs to: one of the last few."""
        for segment in reversed(self._segments):
            if segment.start <= number:
                return segment
        raise AssertionError(number)

    def _order(self, number: int, hop: int) -> int:
        segment = self._segment(number)
        return segment.order + (number - segment.start << 24) + hop

    def _send(self, begin: int, end: int) -> None:
        """The host put these on its link."""
        self._passed[0] = end
        segment, network = self._segments[-1], self._network
        run = segment.run
        network.count_sent(run.kind, end - begin, (end - begin) * run.size)
        self._occupy(0, begin, end)
        for observer in network.observers:
            for number in range(begin, end):
                message = run.message(number - segment.start)
                observer.sent(self._times[0][number - self._base], self._host, message, run.size)

    def _pass(self, hop: int, begin: int, end: int) -> None:
        """These came over the link before `hop`; the last stage is that they have landed."""
        if hop < len(self._path):
            self._occupy(hop, begin, end)
            return
        assert self._crowd is not None
        self._network.delivered += (end - begin) * self._leaf.count
        segment = self._segment(end - 1)
        self._crowd.move(segment.run.position(end - segment.start), self._times[hop][end - 1 - self._base])

    def _occupy(self, hop: int, begin: int, end: int) -> None:
        """A link has carried these."""
        link, last = self._path[hop], end - 1
        fifo: Fifo = link.fifo
        if link is self._bundle:
            self._count_losses(begin, end)
            link.rejoin(self._times[hop][begin - self._base])
            link.offered += (end - begin) * self._leaf.count
        else:
            link.offered += end - begin
        fifo.free_at = self._times[hop][last - self._base] + self._segment(last).costs[hop]
        if fifo.departures is not None:
            fifo.departures.clear()
            fifo.departures.append(fifo.free_at)

    def _count_losses(self, begin: int, end: int) -> None:
        bundle = self._bundle
        if self._sampler is None:
            return
        last = end
        for segment in reversed(self._segments):
            first = max(begin, segment.start)
            if first < last:
                self._sampler.count(segment.run.identity + first - segment.start, last - first)
                last = first
            if last == begin:
                break
        losers = self._losers
        for at in range(begin - self._base, end - self._base):
            out = losers[at]
            if len(out):
                losers[at] = out = out.tolist()  # type: ignore[union-attr]
                bundle.count_lost(out)

    # Arrivals that are events

    def rouse(self) -> None:
        """Make the next arrival an event if it finds anybody out of step, and that of the next packet somebody loses anyway."""
        landed, crowd = self._passed[-1], self._crowd
        if landed == self._end or landed in self._posted:
            return
        assert crowd is not None
        segment = self._segment(landed)
        at = landed
        if crowd.stands_at(segment.run.position(landed - segment.start)):
            last, losers, base = self._end - 1, self._losers, self._base
            while at < last and not len(losers[at - base]):
                at += 1
        if at not in self._posted:
            occurrence = self._posted[at] = Occurrence(self._callbacks, at)
            when = self._times[-1][at - self._base]
            post(self._network.env, when, ARRIVAL, self._order(at, len(self._path)), occurrence)

    def _on_arrival(self, occurrence: Occurrence) -> None:
        number: int = occurrence.content
        if self._posted.get(number) is not occurrence:
            # The packet went on as an ordinary one, or was never sent.
            return
        self.sync()
        del self._posted[number]
        crowd, passed, network = self._crowd, self._passed, self._network
        assert crowd is not None
        assert passed[-1] == number
        segment, out = self._segment(number), cast("Sequence[int]", self._losers[number - self._base])
        passed[-1] = number + 1
        network.busy = True
        network.delivered += self._leaf.count - len(out)
        run, nth, now = segment.run, number - segment.start, network.env._now
        if nth + 1 < run.count and crowd.stands_at(run.position(nth)):
            crowd.miss(run, nth, now, self._times[-1][number + 1 - self._base], out)
        else:
            crowd.deliver(run.message(nth), self._host.name, self._route.to, now, out)
        # Nobody asks any more, and of many receivers these are many.
        self._losers[number - self._base] = ()
        if number + 1 == self._end:
            self._finish()
        else:
            self.rouse()
        network.settle_inputs()

    def _flight(self, number: int, hop: int) -> Flight:
        """The packet as it is without this, when it came over the link before `hop`."""
        segment = self._segment(number)
        run, nth = segment.run, number - segment.start
        order = segment.order + (nth << 24) + hop
        return Flight(run.message(nth), run.identity + nth, run.size, self._host, self._route, order)

    # The end of it

    def release(self, machine: Machine) -> None:
        """The machine will have an input of its own: what it has not sent yet it does not send this way."""
        self.sync()
        self._cut(machine)
        network = self._network
        if not network.busy:
            network.timers.flush()

    def _cut(self, machine: Machine) -> None:
        machine.seat.pace = None
        sent, segment = self._passed[0], self._segments[-1]
        run, count = segment.run, sent - segment.start
        last = self._times[0][sent - 1 - self._base] if count else -inf
        begin = sent - self._base
        if count < run.count:
            self._left = _Plan(run, [column[begin:] for column in self._times], self._losers[begin:], segment.costs)
            self._left.identity += count
        self._end, run.count = sent, count
        for column in self._times:
            del column[begin:]
        del self._losers[begin:]
        for number in [number for number in self._posted if number >= sent]:
            del self._posted[number]
        if not count:
            self._segments.pop()
        run.end(count, last, last + run.interval)
        if self._passed[-1] == sent:
            self._finish()
        else:
            self.rouse()

    def _finish(self) -> None:
        """Nothing is under way."""
        if self not in self._network.expresses or self._host.machine.seat.pace is self:
            # There was nothing; or the last has landed before the sender was woken for the next.
            return
        assert self._passed[-1] == self._end
        self._base = self._end
        self._segments.clear()
        self._losers.clear()
        for column in self._times:
            column.clear()
        self._posted.clear()
        for link in self._path:
            link.express = None
        assert self._crowd is not None
        self._crowd.late = None
        self._crowd.call_in()
        self._network.expresses.remove(self)

    def meet(self, link: Any, size: int) -> None:
        """Another packet is offered to one of the links: it goes behind those that came before, and before the rest."""
        self.sync()
        hop = self._path.index(link)
        number = self._passed[hop]
        if number < self._end:
            now = self._network.env.now
            start = max(now, link.free_at()) + (size + link.fifo.overhead) / link.fifo.rate
            if start > self._times[hop][number - self._base]:
                self.unfold()

    def unfold(self) -> None:
        """What is under way goes on as ordinary packets."""
        self.sync()
        machine = self._host.machine
        if machine.seat.pace is self:
            self._cut(machine)
        for number in range(self._passed[-1], self._end):
            hop = next(hop for hop in range(len(self._path), 0, -1) if number < self._passed[hop - 1])
            self._continue(number, hop)
        self._passed = [self._end] * len(self._passed)
        self._finish()

    def _continue(self, number: int, hop: int) -> None:
        """Post the arrival of a packet that was offered to the link before `hop`."""
        when, flight = self._times[hop][number - self._base], self._flight(number, hop)
        if hop == len(self._path):
            place: Any = (self._leaf, self._losers[number - self._base])
        else:
            place = (self._path[hop - 1].head, ())
        post(self._network.env, when, ARRIVAL, flight.order, self._network.landing(flight, [place]))
