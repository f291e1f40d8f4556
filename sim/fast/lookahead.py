"""Packets that a sender plans, scheduled to a group of equal hosts without an event for each.

Between the inputs of a sender in the middle of a block nothing is decided: packets take their places in queues, receivers in
lockstep advance, and a receiver that loses a packet records this when the next one arrives. All of that is arithmetic, so it is
applied when its result is needed: before a link, a machine or a counter is used, everything that comes before the present
event is applied (`catch_up`). Only an arrival that finds diverged receivers, or with more effect than that at some receiver, is
an event, with the time and order it has in the strict engine. When a link turns out to be busy, or routes and listeners change,
the packets in flight are materialised: they go on one by one (`unfold`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from protocols.fast.contract import FastMachine
from protocols.fast.lockstep import LockstepGroup
from protocols.fast.lookahead import Burst
from sim.acceleration import Reservation
from sim.fast.in_flight import InFlight
from sim.fast.machines import fast_machine
from sim.fast.timetable import Path, Segment, Timetable, make_timetable
from sim.flight import Flight, Hop, Postponed, Route
from sim.host import SimHost
from sim.kernel import Pending
from sim.occurrence import ARRIVAL, Occurrence, post

__all__ = ["Lookahead"]

FORGET: Final = 128
SHORTEST: Final = 4
"""The shortest burst that is worth being scheduled."""


class Lookahead(InFlight, Pending, Reservation):
    """Schedules the bursts of one host on one route, and makes events of the arrivals that are more than arithmetic.

    `active` lists all lookaheads with packets in flight; `plan_next(host)` looks for one that can schedule the host's bursts.
    """

    def __init__(
        self, host: SimHost, route: Route, path: Path, active: "list[Lookahead]", plan_next: Callable[[SimHost], None]
    ) -> None:
        super().__init__(host, route, path)
        self._active = active
        self._plan_next = plan_next
        self._path = path
        self._source = host.name
        # The number of the packet whose arrival is an event, and the event.
        self._posted: int | None = None
        self._occurrence: Occurrence | None = None
        self._callbacks = (self._on_arrival,)
        # The result of `_find_visible`, as long as it holds.
        self._next_visible: int | None = None
        # How many packets the sender's state includes.
        self._committed = 0

    # Scheduling

    def plan(self, machine: FastMachine) -> None:
        """Schedule the bursts that a machine plans after an input, if the path allows it."""
        bursts = machine.plan_bursts()
        if not bursts or bursts[-1].count < SHORTEST or bursts[-1].to is not self._route.to:
            return
        lockstep = self._find_lockstep()
        if lockstep is None or not self._is_path_available():
            return
        self._forget()
        free_at = [self._free_at(hop) for hop in range(len(self._hops))]
        timetable = make_timetable(bursts, self._path, free_at, self._end)
        if len(timetable.times[0]) >= SHORTEST:
            self._schedule(machine, bursts, timetable)
            self._lockstep = lockstep
            lockstep.late = self
            self.wake_in_lockstep()

    def _find_lockstep(self) -> LockstepGroup | None:
        members = self._endpoint.groups.get(self._route.to)
        if members is None or members.members is not None or not isinstance(members.lockstep, LockstepGroup):
            return None
        lockstep = members.lockstep
        return lockstep if lockstep.late in (None, self) else None

    def _is_path_available(self) -> bool:
        """Whether the links before the group are lossless, and no other sender has scheduled packets on the path."""
        if self._group.reservation is None:
            for link in self._path.links:
                if link.sampler is not None or link.reservation is not None:
                    return False
        return self._group.reservation in (None, self)

    def _free_at(self, hop: int) -> float:
        """When a link has sent all that was offered to it, and all that is in flight to it from here."""
        free_at = self._hops[hop].free_at()
        if self._passed[hop] < self._end:
            free_at = max(free_at, self._times[hop][-1] + self._segments[-1].costs[hop])
        return free_at

    def _schedule(self, machine: FastMachine, bursts: Sequence[Burst], timetable: Timetable) -> None:
        count, fabric, begin = len(timetable.times[0]), self._fabric, self._end
        order = (self.host.place + 1) << 80 | (fabric.serial + 1) << 24
        fabric.serial += count
        self._lossy += [number for number, _ in timetable.losses]
        self._lost_by.update(timetable.losses)
        for column, more in zip(self._times, timetable.times, strict=True):
            column += more
        self._end += count
        self._next_visible = None
        machine.fast_state.coordinator = self
        for burst in bursts:
            share = min(burst.count, self._end - begin)
            if share:
                self._segments.append(Segment(burst, begin, order, timetable.costs))
                self._starts.append(begin)
                begin += share
                order += share << 24
                burst.carrier = self
                burst.take(share, self._times[0][begin - self._base - 1] + burst.interval)
        for link in self._hops:
            link.reservation = self
        if self not in self._active:
            self._active.append(self)

    def _forget(self) -> None:
        """Forget packets that have arrived: those of a sender that never pauses would fill the memory."""
        self._count()
        done = min(self._passed) - self._base
        if done >= FORGET:
            for column in self._times:
                del column[:done]
            self._base += done
            del self._lossy[: bisect_left(self._lossy, self._base)]
            self._segments = [segment for segment in self._segments if segment.start + segment.burst.count > self._base]
            self._starts = [segment.start for segment in self._segments]

    # Arrivals that are events

    def settle(self) -> None:
        """Schedule again what the machine plans after an input, and post the next arrival."""
        host, now = self.host, self._kernel.env._now
        machine = fast_machine(host.machine)
        if machine is not None and machine.plans_bursts:
            # As a `Machine`: the compiler can't read a float through a trait.
            due = host.machine.deadline
            if due > now and machine.fast_state.coordinator is not self:
                self._plan_next(host)
        if self._passed[-1] < self._end:
            assert self._lockstep is not None
            self._lockstep.gather()
            self._post_next()

    def wake_in_lockstep(self) -> None:
        """Post the next arrival anew when the present input is over, because receivers may have diverged."""
        kernel = self._kernel
        if not kernel.busy:
            self._post_next()
        elif self not in kernel.pending:
            kernel.pending.append(self)

    def _post_next(self) -> None:
        """Post the next arrival if some receivers have diverged, else the next that has an effect."""
        number, lockstep = self._passed[-1], self._lockstep
        if number == self._end:
            return
        assert lockstep is not None
        segment = self._segment(number)
        if lockstep.stands_at(segment.burst.position(number - segment.start)):
            if self._next_visible is None or self._next_visible < number:
                self._next_visible = self._find_visible()
            number = self._next_visible
        if number != self._posted:
            self._posted = number
            occurrence = self._occurrence = Occurrence(self._callbacks, number)
            when = self._times[-1][number - self._base]
            post(self._kernel.env, when, ARRIVAL, self._order(number, len(self._hops)), occurrence)

    def _find_visible(self) -> int:
        """The next packet with more effect than to advance receivers; or the last before a gap, which all may lose."""
        number = self._passed[-1]
        while True:
            segment = self._segment(number)
            start, burst = segment.start, segment.burst
            next_visible = burst.next_visible(number - start)
            if next_visible < burst.count:
                return start + next_visible
            number = start + burst.count
            if not self._is_followed(segment):
                return number - 1

    def _on_arrival(self, occurrence: Occurrence) -> None:
        if self._occurrence is not occurrence:
            # Cancelled: another arrival is next, or the packet was materialised or never sent.
            return
        number: int = occurrence.content
        if self._passed[-1] < number:
            self._apply_arrivals(self._passed[-1], number)
        self._cancel_event()
        kernel = self._kernel
        kernel.busy = True
        self._deliver(number)
        if self._passed[-1] == self._end:
            self._finish()
        else:
            self._post_next()
        kernel.settle_inputs()

    def _deliver(self, number: int) -> None:
        """Deliver a packet to the lockstep group."""
        lockstep, segment, lost_by = self._lockstep, self._segment(number), self._take_losses(number)
        assert lockstep is not None
        self._passed[-1] = number + 1
        self._fabric.delivered += self._endpoint.count - len(lost_by)
        now = self._kernel.env._now
        lockstep.pass_on(segment.burst, number - segment.start, number, self._source, self._route.to, now, lost_by)

    def _is_followed(self, segment: Segment) -> bool:
        """Whether the burst that continues this one is in flight, too."""
        burst, end = segment.burst, segment.start + segment.burst.count
        return end < self._end and self._segment(end).burst.position(0) is burst.position(burst.count)

    def _flight(self, number: int, order: int) -> Flight:
        """The packet as it would be if it had been sent on its own."""
        segment = self._segment(number)
        burst, nth = segment.burst, number - segment.start
        return Flight(burst.message(nth), burst.identity + nth, burst.size, self.host.place, self._source, self._route, order)

    # Cancelling

    def release(self, machine: FastMachine) -> None:
        """Cancel the packets not yet sent, because the sender gets an input of its own."""
        self.catch_up()
        self._cancel_rest(machine)
        kernel = self._kernel
        if not kernel.busy:
            kernel.timers.flush()
        elif self not in kernel.pending:
            kernel.pending.append(self)

    def _cancel_rest(self, machine: FastMachine) -> None:
        machine.fast_state.coordinator = None
        self._cancel_from(self._passed[0])
        self._commit()
        burst = self._segments[-1].burst
        if not burst.count:
            self._segments.pop()
            self._starts.pop()
        burst.end()
        if self._passed[-1] == self._end:
            self._finish()
        else:
            self.wake_in_lockstep()

    def _commit(self) -> None:
        """Update the sender's state by the packets sent."""
        sent, offers, base = self._passed[0], self._times[0], self._base
        if sent == self._committed:
            return
        for segment in self._segments[bisect_right(self._starts, self._committed) - 1 :]:
            count = min(sent - segment.start, segment.burst.count)
            if count > 0:
                last = offers[segment.start + count - base - 1]
                segment.burst.commit(count, last, last + segment.burst.interval)
        self._committed = sent

    def _cancel_from(self, first: int) -> None:
        """Cancel the packets from number `first` on."""
        while self._starts[-1] >= max(first, self._passed[0] + 1):
            self._segments.pop()
            self._starts.pop()
        segment, lossy = self._segments[-1], self._lossy
        segment.burst.count = first - segment.start
        place = bisect_left(lossy, first)
        for number in lossy[place:]:
            del self._lost_by[number]
        del lossy[place:]
        for column in self._times:
            del column[first - self._base :]
        self._end, self._next_visible = first, None
        if self._posted is not None and self._posted >= first:
            self._cancel_event()

    def _cancel_event(self) -> None:
        self._posted = self._occurrence = None

    # The carrier of the sender's bursts

    def report(self) -> None:
        """Update the sender's state by what it has sent by now, for an input that may leave the burst as it is."""
        self._depart(*self._instant()[:2])
        self._commit()

    def shorten(self, until: float) -> None:
        """Cancel the packets due at `until` (seconds) or later, because the sender has something else to send then."""
        offers, begin = self._times[0], self._passed[0] - self._base
        keep = bisect_left(offers, until, begin) + self._base
        if keep == self._passed[0]:
            machine = fast_machine(self.host.machine)
            assert machine is not None
            machine.leave_lockstep()
            return
        if keep < self._end:
            self._cancel_from(keep)
            self.wake_in_lockstep()
        burst = self._segments[-1].burst
        burst.take(burst.count, offers[-1] + burst.interval)

    # The end

    def _finish(self) -> None:
        """Give the path back, because no packet is in flight."""
        machine = fast_machine(self.host.machine)
        if self not in self._active or (machine is not None and machine.fast_state.coordinator is self):
            # No packet was in flight; or the last has arrived before the sender is woken for the next.
            return
        self.catch_up()
        assert self._passed == [self._end] * len(self._passed)
        self._base = self._end
        self._segments.clear()
        self._starts.clear()
        self._lossy.clear()
        self._lost_by.clear()
        for column in self._times:
            column.clear()
        self._cancel_event()
        for link in self._hops:
            link.reservation = None
        assert self._lockstep is not None
        self._lockstep.late = None
        self._lockstep.call_in()
        self._active.remove(self)

    def before_offer(self, link: Hop, flight: Flight) -> None:
        """Another packet is offered to one of the links: it queues behind those offered before, and before the rest."""
        hop = next(at for at, known in enumerate(self._hops) if known is link)
        when, priority, order = self._instant()
        # Only this link: the others are updated when they are needed.
        if hop:
            self._advance(hop, when, priority, order)
        else:
            self._depart(when, priority)
        if flight.identity is not None:
            # The loss of this packet depends on earlier ones of its identity.
            self._count()
        number = self._passed[hop]
        if number < self._end:
            known = self._hops[hop]
            end = max(self._kernel.env._now, known.free_at()) + (flight.size + known.overhead) / known.queue.rate
            if end > self._times[hop][number - self._base]:
                self.unfold()

    def unfold(self) -> None:
        """Materialise the packets in flight: they go on as if they had been sent one by one."""
        self.catch_up()
        machine = fast_machine(self.host.machine)
        if machine is not None and machine.fast_state.coordinator is self:
            self._cancel_rest(machine)
        for number in range(self._passed[-1], self._end):
            hop = next(hop for hop in range(len(self._hops), 0, -1) if number < self._passed[hop - 1])
            self._materialise(number, hop)
        self._passed, self._counted = [self._end] * len(self._passed), self._end
        self._finish()

    def _materialise(self, number: int, hop: int) -> None:
        """Post the arrival of a packet that was offered to the link before `hop`."""
        when = self._times[hop][number - self._base]
        # Forwarding increments the order.
        flight = self._flight(number, self._order(number, hop) - 1)
        if hop == len(self._hops):
            arrival = Postponed(self._endpoint, when, self._take_losses(number))
        else:
            arrival = Postponed(self._hops[hop - 1].head, when)
        self._fabric.forwarding.forward(flight, (arrival,), self._kernel.env._now)
