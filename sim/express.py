"""Packets a sender foresees, carried to a group of equal leaves without an event for each.

Between a sender's inputs in the middle of a block nothing is decided: packets take their place on links, those who are in step
move on, and who misses one only notes so when the next is there. All of that is arithmetic, so it is done when somebody looks:
before a link, a machine or a counter is touched, everything that comes before the present event is made up for (`sync`). Only
an arrival that finds receivers out of step, or that somebody misses who has more to do about it, is a SimPy event, with the
time and order it has without this. When a link turns out to be busy, or routes and listeners change, what is under way goes on
as ordinary packets (`unfold`).
"""

from bisect import bisect_left
from math import inf
from typing import TYPE_CHECKING, Any

from protocols.crowd import Crowd, Seat
from protocols.foresight import Run
from protocols.machine import Machine
from sim.engine import ARRIVAL, Occurrence, post
from sim.flight import Flight, Route
from sim.host import SimHost
from sim.plan import Plan, Segment, make_plan, path_of
from sim.underway import Underway

if TYPE_CHECKING:
    from sim.network import Network

__all__ = ["Express", "express_of"]

FORGET = 128
SHORTEST = 4
"""So many packets are worth being carried this way."""
FEW = 6
"""When more than this many miss a packet its arrival is an event, whatever they do."""


def express_of(network: "Network", host: SimHost, route: Route) -> "Express | None":
    """What carries what this host foresees for a route; None when that is not so simple."""
    if not route.explored:
        route.explored = True
        path = path_of(route) if type(host) is SimHost and host.place not in network.gates and route.target is None else None
        route.express = None if path is None else Express(network, host, route, path)
    return route.express


class Express(Underway):
    """Takes what one host foresees for one route, and tells of arrivals that are more than arithmetic."""

    def __init__(self, network: "Network", host: SimHost, route: Route, path: list[Any]) -> None:
        super().__init__(network, host, route, path)
        # Who misses one of the packets before this only notes so. The last of these for each who does: its number, its run and
        # which of the run it is, and when the next is there.
        self._safe = 0
        self._watched: dict[Machine, tuple[int, Run, int, float]] = {}
        self._posted = -1
        self._occurrence: Occurrence | None = None
        self._callbacks = (self._on_arrival,)
        # What was foreseen and not sent, because the sender had an input, and the number of its first; it often goes on as if
        # it had not.
        self._left: Plan | None = None
        self._left_at = 0

    # Taking a run

    def depart(self, machine: Machine) -> None:
        """The machine just had an input: carry what it foresees."""
        run = machine.foresee()
        if run is None or run.count < SHORTEST or run.to is not self._route.to:
            return
        crowd = self._find_crowd()
        if crowd is None or not self._has_way():
            return
        self._forget()
        plan, self._left = self._left, None
        if plan is None or plan.identity != run.identity or self._left_at != self._end:
            # What follows the last that is under way is not what it was.
            self._safe = min(self._safe, self._end - 1)
        if plan is None or not plan.shift(run) or not self._is_free(plan):
            self._safe = min(self._safe, self._end - 1)
            free = [self._free_at(hop) for hop in range(len(self._path))]
            plan = make_plan(run, self._path, free, self._sampler, self._leaf.count)
        if len(plan.times[0]) < SHORTEST:
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

    def _is_free(self, plan: Plan) -> bool:
        """Does the first packet find all ports idle?"""
        return all(self._free_at(hop) <= plan.times[hop][0] for hop in range(len(self._path)))

    def _take(self, machine: Machine, run: Run, plan: Plan) -> None:
        count, network, begin = len(plan.times[0]), self._network, self._end
        run.take(count, plan.times[0][-1] + run.interval)
        machine.seat.pace = self
        order = (self.host.place + 1) << 80 | (network.take_serials(count)) << 24
        self._segments.append(Segment(run, begin, order, plan.costs))
        self._starts.append(begin)
        self._end += count
        for at, out in plan.losers:
            self._missed.append(begin + at)
            self._losers[begin + at] = out
        for column, more in zip(self._times, plan.times, strict=True):
            column += more
        for link in self._path:
            link.express = self
        if self not in network.expresses:
            network.expresses.append(self)

    def _forget(self) -> None:
        """What has landed is of no interest any more; a sender that never pauses would fill the memory with it."""
        done = min(self._passed) - self._base
        if done >= FORGET:
            for column in self._times:
                del column[:done]
            self._base += done
            self._watched = {machine: last for machine, last in self._watched.items() if last[0] >= self._base}
            del self._missed[: bisect_left(self._missed, self._base)]
            self._segments = [segment for segment in self._segments if segment.start + segment.run.count > self._base]
            self._starts = [segment.start for segment in self._segments]

    # Arrivals that are events

    def settle(self) -> None:
        """After an input: carry again what is foreseen, and see to the next arrival."""
        network, host = self._network, self.host
        # Not a `Machine` to the compiler: a gate computes its deadline (`sim.gate`).
        machine: Any = host.machine
        if machine.foresees and machine.seat.pace is not self and machine.deadline > network.env._now:
            network.look_ahead(host)
        if self._passed[-1] < self._end:
            assert self._crowd is not None
            self._crowd.gather()
            self._aim()

    def rouse(self) -> None:
        """Who is where may have changed; see to the next arrival when the present input is over."""
        network = self._network
        if not network.busy:
            self._aim()
        elif self not in network.unsettled:
            network.unsettled.append(self)

    def _aim(self) -> None:
        """Make the next arrival an event if it finds anybody out of step, else the next that takes one."""
        landed, crowd = self._passed[-1], self._crowd
        if landed == self._end:
            return
        assert crowd is not None
        at = landed
        segment = self._segment(landed)
        if crowd.stands_at(segment.run.position(landed - segment.start)):
            at = self._next_event(crowd)
        if at != self._posted:
            self._posted = at
            occurrence = self._occurrence = Occurrence(self._callbacks, at)
            when = self._times[-1][at - self._base]
            post(self._network.env, when, ARRIVAL, self._order(at, len(self._path)), occurrence)

    def _next_event(self, crowd: Crowd) -> int:
        """The next packet that somebody misses who does more than note it, or the last."""
        if crowd.touched:
            self._review(crowd)
        missed, last, safe = self._missed, self._unbroken(), max(self._safe, self._passed[-1])
        for number in missed[bisect_left(missed, safe) :]:
            if number >= last:
                break
            if not self._is_harmless(number, crowd):
                self._safe = number
                return number
        self._safe = max(safe, last)
        return last

    def _unbroken(self) -> int:
        """The last packet before something else comes, which may come to nobody."""
        number = self._passed[-1]
        while True:
            segment = self._segment(number)
            number = segment.start + segment.run.count
            if not self._goes_on(number - 1, segment):
                return number - 1

    def _is_harmless(self, number: int, crowd: Crowd) -> bool:
        """Does everybody who misses a packet only note so when the next is there?"""
        segment, out = self._segment(number), self._missed_by(number)
        if len(out) > FEW or not self._goes_on(number, segment):
            return False
        # To miss two in a row is more than that.
        if number == self._passed[-1] and crowd.owes(out):
            return False
        if number + 1 in self._losers and not set(out).isdisjoint(self._missed_by(number + 1)):
            return False
        run, nth, then = segment.run, number - segment.start, self._times[-1][number + 1 - self._base]
        watched, last = self._watched, (number, run, nth, then)
        for machine in crowd.at(out):
            if not machine.seat.shrugs(run, nth, then):
                return False
            watched[machine] = last
        return True

    def _review(self, crowd: Crowd) -> None:
        """Who had an input of their own may have more to do than before about what they will miss."""
        watched, landed = self._watched, self._passed[-1]
        then_first, last = self._times[-1][landed - self._base], self._end - 1
        for machine in watched.keys() & crowd.touched:
            number, run, nth, then = watched[machine]
            if number < landed:
                continue
            seat: Seat = machine.seat
            if number >= last:
                # It may be foreseen again.
                self._safe = min(self._safe, max(last, landed))
            elif not (seat.shrugs(run, nth, then_first) and seat.shrugs(run, nth, then)):
                self._safe = landed
        crowd.touched.clear()

    def _on_arrival(self, occurrence: Occurrence) -> None:
        if self._occurrence is not occurrence:
            # There was no need for it, or the packet went on as an ordinary one, or was never sent.
            return
        number: int = occurrence.content
        self.sync()
        self._posted, self._occurrence = -1, None
        network = self._network
        assert self._passed[-1] == number
        network.busy = True
        self._tell(number)
        if self._passed[-1] == self._end:
            self._finish()
        else:
            self._aim()
        network.settle_inputs()

    def _tell(self, number: int) -> None:
        """A packet is there."""
        crowd, segment, out, now = self._crowd, self._segment(number), self._missed_by(number), self._network.env._now
        assert crowd is not None
        self._passed[-1] = number + 1
        self._network.delivered += self._leaf.count - len(out)
        run, nth, source, to = segment.run, number - segment.start, self.host.name, self._route.to
        if not crowd.leads(run.position(nth)) or not self._goes_on(number, segment):
            crowd.deliver(run.message(nth), source, to, now, out)
        else:
            strays = crowd.miss(run, nth, now, self._times[-1][number + 1 - self._base], out)
            if strays:
                crowd.tell_strays(strays, run.message(nth), source, to, now)
        self._release_losers(number)

    def _goes_on(self, number: int, segment: Segment) -> bool:
        """Is what comes after a packet known?"""
        end = segment.start + segment.run.count
        if number + 1 < end:
            return True
        return end < self._end and self._segment(end).run.position(0) is segment.run.position(segment.run.count)

    def _flight(self, number: int, hop: int) -> Flight:
        """The packet as it is without this, when it came over the link before `hop`."""
        segment = self._segment(number)
        run, nth = segment.run, number - segment.start
        order = segment.order + (nth << 24) + hop
        return Flight(run.message(nth), run.identity + nth, run.size, self.host, self._route, order)

    # The end of it

    def release(self, machine: Machine) -> None:
        """The machine will have an input of its own: what it has not sent yet it does not send this way."""
        self.catch_up()
        self._cut(machine)
        network = self._network
        if not network.busy:
            network.timers.flush()
        elif self not in network.unsettled:
            network.unsettled.append(self)

    def _cut(self, machine: Machine) -> None:
        machine.seat.pace = None
        sent, segment, missed = self._passed[0], self._segments[-1], self._missed
        run, count, begin = segment.run, sent - segment.start, sent - self._base
        last = self._times[0][begin - 1] if count else -inf
        if count < run.count:
            place = bisect_left(missed, sent)
            losers = [(number - sent, self._losers.pop(number)) for number in missed[place:]]
            del missed[place:]
            self._left = Plan(run, [column[begin:] for column in self._times], losers, segment.costs)
            self._left.identity += count
            self._left_at = sent
            for column in self._times:
                del column[begin:]
        self._end, run.count = sent, count
        if self._posted >= sent:
            self._posted, self._occurrence = -1, None
        if not count:
            self._segments.pop()
            self._starts.pop()
        run.end(count, last, last + run.interval)
        if self._passed[-1] == sent:
            self._finish()
        else:
            self.rouse()

    def _finish(self) -> None:
        """Nothing is under way."""
        if self not in self._network.expresses or self.host.machine.seat.pace is self:
            # There was nothing; or the last has landed before the sender was woken for the next.
            return
        assert self._passed[-1] == self._end
        # Nobody looks from now on who has an input.
        self._base = self._end
        self._safe = min(self._safe, self._end)
        self._segments.clear()
        self._starts.clear()
        self._missed.clear()
        self._losers.clear()
        for column in self._times:
            column.clear()
        self._posted, self._occurrence = -1, None
        for link in self._path:
            link.express = None
        assert self._crowd is not None
        self._crowd.late = None
        self._crowd.call_in()
        self._network.expresses.remove(self)

    def meet(self, link: Any, size: int) -> None:
        """Another packet is offered to one of the links: it goes behind those that came before, and before the rest."""
        self.catch_up()
        hop = self._path.index(link)
        number = self._passed[hop]
        if number < self._end:
            now = self._network.env.now
            start = max(now, link.free_at()) + (size + link.fifo.overhead) / link.fifo.rate
            if start > self._times[hop][number - self._base]:
                self.unfold()

    def unfold(self) -> None:
        """What is under way goes on as ordinary packets."""
        self.catch_up()
        machine = self.host.machine
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
            place: Any = (self._leaf, self._missed_by(number))
        else:
            place = (self._path[hop - 1].head, ())
        post(self._network.env, when, ARRIVAL, flight.order, self._network.landing(flight, [place]))
