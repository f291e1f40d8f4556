"""Packets a sender foresees, carried to a group of equal leaves without an event for each.

Between a sender's inputs in the middle of a block nothing is decided: packets take their place on links, those who are in step
move on, and who misses one only notes so when the next is there. All of that is arithmetic, so it is done when somebody looks:
before a link, a machine or a counter is touched, everything that comes before the present event is made up for (`sync`). Only
an arrival that finds receivers out of step, or that somebody misses who has more to do about it, is a SimPy event, with the
time and order it has without this. When a link turns out to be busy, or routes and listeners change, what is under way goes on
as ordinary packets (`unfold`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protocols.fast.contract import FastMachine
from protocols.fast.lockstep import LockstepGroup
from protocols.fast.lookahead import Burst
from sim.engine import ARRIVAL, Occurrence, post
from sim.fast.in_flight import InFlight
from sim.fast.timetable import Segment, Timetable, make_plan, path_of
from sim.flight import Flight, Route
from sim.host import SimHost

if TYPE_CHECKING:
    from sim.network import Network

__all__ = ["Lookahead", "lookahead_of"]

FORGET = 128
SHORTEST = 4
"""So many packets are worth being carried this way."""


def lookahead_of(network: "Network", host: SimHost, route: Route) -> "Lookahead | None":
    """What carries what this host foresees for a route; None when that is not so simple."""
    if not route.explored:
        route.explored = True
        path = path_of(route) if type(host) is SimHost and host.place not in network.gates and route.target is None else None
        route.lookahead = None if path is None else Lookahead(network, host, route, path)
    return route.lookahead


class Lookahead(InFlight):
    """Takes what one host foresees for one route, and tells of arrivals that are more than arithmetic."""

    def __init__(self, network: "Network", host: SimHost, route: Route, path: list[Any]) -> None:
        super().__init__(network, host, route, path)
        self._source = host.name
        self._posted = -1
        # What `_next_turn` has found; -1 when it may be another by now.
        self._aimed = -1
        self._occurrence: Occurrence | None = None
        self._callbacks = (self._on_arrival,)
        # How many the sender has been told of.
        self._noted = 0

    # Taking a run

    def depart(self, machine: FastMachine) -> None:
        """The machine just had an input: carry what it foresees."""
        runs = machine.plan_bursts()
        if not runs or runs[-1].count < SHORTEST or runs[-1].to is not self._route.to:
            return
        lockstep = self._find_lockstep()
        if lockstep is None or not self._has_way():
            return
        self._forget()
        free = [self._free_at(hop) for hop in range(len(self._path))]
        plan = make_plan(runs, self._path, free, self._end)
        if len(plan.times[0]) >= SHORTEST:
            self._take(machine, runs, plan)
            self._lockstep = lockstep
            lockstep.late = self
            self.wake_in_lockstep()

    def _find_lockstep(self) -> LockstepGroup | None:
        audience = self._leaf.audiences.get(self._route.to)
        if audience is None or audience.lockstep is None or audience.members is not None:
            return None
        lockstep = audience.lockstep
        return lockstep if lockstep.late in (None, self) else None

    def _has_way(self) -> bool:
        """Do the links let through what is offered, and does nobody else carry something over them this way?"""
        if self._bundle.lookahead is None:
            for link in self._path[:-1]:
                if link.sampler is not None or link.lookahead is not None:
                    return False
        return self._bundle.lookahead in (None, self)

    def _free_at(self, hop: int) -> float:
        """When a link has sent all that was offered, and all that is under way to it from here."""
        free: float = self._path[hop].free_at()
        if self._passed[hop] < self._end:
            free = max(free, self._times[hop][-1] + self._segments[-1].costs[hop])
        return free

    def _take(self, machine: FastMachine, runs: Sequence[Burst], plan: Timetable) -> None:
        count, network, begin = len(plan.times[0]), self._network, self._end
        order = (self.host.place + 1) << 80 | (network.take_serials(count)) << 24
        self._missed += [number for number, _ in plan.losers]
        self._losers.update(plan.losers)
        for column, more in zip(self._times, plan.times, strict=True):
            column += more
        self._end += count
        self._aimed = -1
        machine.fast_state.coordinator = self
        for run in runs:
            share = min(run.count, self._end - begin)
            if share:
                self._segments.append(Segment(run, begin, order, plan.costs))
                self._starts.append(begin)
                begin += share
                order += share << 24
                run.carrier = self
                run.take(share, self._times[0][begin - self._base - 1] + run.interval)
        for link in self._path:
            link.lookahead = self
        if self not in network.lookaheads:
            network.lookaheads.append(self)

    def _forget(self) -> None:
        """What has landed is of no interest any more; a sender that never pauses would fill the memory with it."""
        self._count()
        done = min(self._passed) - self._base
        if done >= FORGET:
            for column in self._times:
                del column[:done]
            self._base += done
            del self._missed[: bisect_left(self._missed, self._base)]
            self._segments = [segment for segment in self._segments if segment.start + segment.run.count > self._base]
            self._starts = [segment.start for segment in self._segments]

    # Arrivals that are events

    def settle(self) -> None:
        """After an input: carry again what is foreseen, and see to the next arrival."""
        network, host = self._network, self.host
        # Not a `Machine` to the compiler: a gate computes its deadline (`sim.fault_shim`).
        machine: Any = host.machine
        if (
            getattr(machine, "plans_bursts", False)
            and machine.fast_state.coordinator is not self
            and machine.deadline > network.env._now
        ):
            network.look_ahead(host)
        if self._passed[-1] < self._end:
            assert self._lockstep is not None
            self._lockstep.gather()
            self._aim()

    def wake_in_lockstep(self) -> None:
        """Who is where may have changed; see to the next arrival when the present input is over."""
        network = self._network
        if not network.busy:
            self._aim()
        elif self not in network.unsettled:
            network.unsettled.append(self)

    def _aim(self) -> None:
        """Make the next arrival an event if it finds anybody out of step, else the next that takes one."""
        landed, lockstep = self._passed[-1], self._lockstep
        if landed == self._end:
            return
        assert lockstep is not None
        at = landed
        segment = self._segment(landed)
        if lockstep.stands_at(segment.run.position(landed - segment.start)):
            if self._aimed < landed:
                self._aimed = self._next_turn()
            at = self._aimed
        if at != self._posted:
            self._posted = at
            occurrence = self._occurrence = Occurrence(self._callbacks, at)
            when = self._times[-1][at - self._base]
            post(self._network.env, when, ARRIVAL, self._order(at, len(self._path)), occurrence)

    def _next_turn(self) -> int:
        """The next packet that more than moves who is in step; or the last before something else, which may come to nobody."""
        number = self._passed[-1]
        while True:
            segment = self._segment(number)
            start, run = segment.start, segment.run
            next_visible = run.next_visible(number - start)
            if next_visible < run.count:
                return start + next_visible
            number = start + run.count
            if not self._is_followed(segment):
                return number - 1

    def _on_arrival(self, occurrence: Occurrence) -> None:
        if self._occurrence is not occurrence:
            # There was no need for it, or the packet went on as an ordinary one, or was never sent.
            return
        number: int = occurrence.content
        if self._passed[-1] < number:
            self._land(self._passed[-1], number)
        self._posted, self._occurrence = -1, None
        network = self._network
        network.busy = True
        self._tell(number)
        if self._passed[-1] == self._end:
            self._finish()
        else:
            self._aim()
        network.settle_inputs()

    def _tell(self, number: int) -> None:
        """A packet is there."""
        lockstep, segment, out, now = self._lockstep, self._segment(number), self._missed_by(number), self._network.env._now
        assert lockstep is not None
        self._passed[-1] = number + 1
        self._network.delivered += self._leaf.count - len(out)
        lockstep.pass_on(segment.run, number - segment.start, number, self._source, self._route.to, now, out)

    def _is_followed(self, segment: Segment) -> bool:
        """Is what comes after it under way, too?"""
        run, end = segment.run, segment.start + segment.run.count
        return end < self._end and self._segment(end).run.position(0) is run.position(run.count)

    def _flight(self, number: int, hop: int) -> Flight:
        """The packet as it is without this, when it came over the link before `hop`."""
        segment = self._segment(number)
        run, nth = segment.run, number - segment.start
        order = segment.order + (nth << 24) + hop
        return Flight(run.message(nth), run.identity + nth, run.size, self.host, self._route, order)

    # The end of it

    def release(self, machine: FastMachine) -> None:
        """The machine will have an input of its own: what it has not sent yet it does not send this way."""
        self.catch_up()
        self._cut(machine)
        network = self._network
        if not network.busy:
            network.timers.flush()
        elif self not in network.unsettled:
            network.unsettled.append(self)

    def _cut(self, machine: FastMachine) -> None:
        machine.fast_state.coordinator = None
        self._leave(self._passed[0])
        self._note()
        run = self._segments[-1].run
        if not run.count:
            self._segments.pop()
            self._starts.pop()
        run.end()
        if self._passed[-1] == self._end:
            self._finish()
        else:
            self.wake_in_lockstep()

    def _note(self) -> None:
        """Tell the runs that are not over how many of them have been sent."""
        sent, offers, base = self._passed[0], self._times[0], self._base
        if sent == self._noted:
            return
        for segment in self._segments[bisect_right(self._starts, self._noted) - 1 :]:
            count = min(sent - segment.start, segment.run.count)
            if count > 0:
                last = offers[segment.start + count - base - 1]
                segment.run.commit(count, last, last + segment.run.interval)
        self._noted = sent

    def _leave(self, first: int) -> None:
        """Send none from this number on."""
        while self._starts[-1] >= max(first, self._passed[0] + 1):
            self._segments.pop()
            self._starts.pop()
        segment, missed = self._segments[-1], self._missed
        segment.run.count = first - segment.start
        place = bisect_left(missed, first)
        for number in missed[place:]:
            del self._losers[number]
        del missed[place:]
        for column in self._times:
            del column[first - self._base :]
        self._end, self._aimed = first, -1
        if self._posted >= first:
            self._posted, self._occurrence = -1, None

    # While it is under way

    def report(self) -> None:
        """The sender hears something that may leave its promise as it is: it is as if it had sent what is due."""
        self._depart(*self._instant()[:2])
        self._note()

    def shorten(self, until: float) -> None:
        """The sender will have something else to do at this time."""
        offers, begin = self._times[0], self._passed[0] - self._base
        keep = bisect_left(offers, until, begin) + self._base
        if keep == self._passed[0]:
            machine: Any = self.host.machine
            machine.leave_lockstep()
            return
        if keep < self._end:
            self._leave(keep)
            self.wake_in_lockstep()
        run = self._segments[-1].run
        run.take(run.count, offers[-1] + run.interval)

    def _finish(self) -> None:
        """Nothing is under way."""
        machine: Any = self.host.machine
        if self not in self._network.lookaheads or machine.fast_state.coordinator is self:
            # There was nothing; or the last has landed before the sender was woken for the next.
            return
        self.catch_up()
        assert self._passed == [self._end] * len(self._passed)
        self._base = self._end
        self._segments.clear()
        self._starts.clear()
        self._missed.clear()
        self._losers.clear()
        for column in self._times:
            column.clear()
        self._posted, self._occurrence = -1, None
        for link in self._path:
            link.lookahead = None
        assert self._lockstep is not None
        self._lockstep.late = None
        self._lockstep.call_in()
        self._network.lookaheads.remove(self)

    def meet(self, link: Any, flight: Flight) -> None:
        """Another packet is offered to one of the links: it goes behind those that came before, and before the rest."""
        hop = self._path.index(link)
        when, priority, order = self._instant()
        # This link alone: the others are made up for when somebody asks for them.
        if hop:
            self._advance(hop, when, priority, order)
        else:
            self._depart(when, priority)
        if flight.identity is not None:
            # What has come there of the same identity matters.
            self._count()
        number = self._passed[hop]
        if number < self._end:
            start = max(self._network.env._now, link.free_at()) + (flight.size + link.fifo.overhead) / link.fifo.rate
            if start > self._times[hop][number - self._base]:
                self.unfold()

    def unfold(self) -> None:
        """What is under way goes on as ordinary packets."""
        self.catch_up()
        machine: Any = self.host.machine
        if machine.fast_state.coordinator is self:
            self._cut(machine)
        for number in range(self._passed[-1], self._end):
            hop = next(hop for hop in range(len(self._path), 0, -1) if number < self._passed[hop - 1])
            self._continue(number, hop)
        self._passed, self._counted = [self._end] * len(self._passed), self._end
        self._finish()

    def _continue(self, number: int, hop: int) -> None:
        """Post the arrival of a packet that was offered to the link before `hop`."""
        when, flight = self._times[hop][number - self._base], self._flight(number, hop)
        if hop == len(self._path):
            place: Any = (self._leaf, self._missed_by(number))
        else:
            place = (self._path[hop - 1].head, ())
        post(self._network.env, when, ARRIVAL, flight.order, self._network.landing(flight, [place]))
