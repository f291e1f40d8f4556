"""The end of a branch: one group of hosts to which packets are scheduled ahead, and the arrivals there that are events."""

from collections.abc import Callable, Sequence
from typing import Any

from protocols.fast.deferred import Missed
from protocols.fast.group import MachineGroup, SenderGroup
from protocols.fast.lookahead import Burst
from sim.endpoint import Endpoint
from sim.fast.in_flight import InFlight, Segment
from sim.fast.machines import make_group
from sim.fast.tree import Branch, Point
from sim.kernel import Pending
from sim.queue_entry import ARRIVAL, TIMER, QueueEntry, post
from topologies.draws import listed

__all__ = ["LastHop"]


class LastHop(Point, Pending):
    """The far end of the link `branch`, which leads to hosts, for the packets `in_flight`.

    An arrival is an event if some receivers have diverged, or if it has more effect than to advance receivers
    (`Burst.next_visible`). The others are applied when the state of the lockstep group is needed. A packet that all hosts lose
    has no arrival; the next one is an event then.
    """

    def __init__(self, branch: Branch, in_flight: InFlight, unfold: Callable[[], None]) -> None:
        super().__init__()
        assert isinstance(branch.link.head, Endpoint)
        self.branch = branch
        self.endpoint: Endpoint = branch.link.head
        self.lockstep: SenderGroup | None = None
        """The hosts' machines; None while no host listens."""
        self.listeners = 0
        """Number of hosts that receive the packets when none is lost."""
        self.arrived = 0
        """How many packets have arrived or were lost, as far as that is applied."""
        # The packets from the first to before the second number are known to arrive.
        self._sure_from = self._sure_to = 0
        self._in_flight = in_flight
        self._unfold = unfold
        # The event; its content is the number of the packet, its segment, and where it is then.
        self._posted: QueueEntry | None = None
        self._callbacks = (self._on_arrival,)

    def attach(self, burst: Burst) -> bool:
        """Find the lockstep group of the hosts for a burst, or make one; return whether it can be scheduled ahead to them."""
        self.lockstep = None
        members, shared = self.endpoint.groups.get(self._in_flight.route.to), self.branch.shared
        self.listeners = self.endpoint.count if shared is None else shared.losses.listeners
        if members is None or not members.present or not self.listeners:
            return True
        if members.machines is None:
            members.pack()
        if members.members is not None:
            return False
        if members.lockstep is None:
            members.lockstep = make_group(members, self._in_flight.route.to)
        if not isinstance(members.lockstep, MachineGroup):
            return False
        lockstep = members.lockstep.follow(burst)
        if lockstep.late is not None:
            return False
        self.lockstep = lockstep
        return True

    # Losses

    def losers_of(self, number: int) -> list[int]:
        """Return the members that lose a packet on the link."""
        return self._losers_of(number, self._in_flight.segment(number))

    def _losers_of(self, number: int, segment: Segment) -> list[int]:
        burst, sampler = segment.burst, self.branch.sampler
        if burst.is_repeated:
            return listed(self.branch.losses.get(number, []))
        return [] if sampler is None else sampler.first_losers(burst.identity + number - segment.start)

    def apart_of(self, number: int) -> Sequence[int]:
        """Return the members that lose a packet, or on which it has no effect."""
        losers, shared = self.losers_of(number), self.branch.shared
        return losers if shared is None else sorted([*losers, *shared.losses.unconcerned])

    def is_gone(self, number: int) -> bool:
        """Return whether a packet does not arrive, or is on its way as an event of its own."""
        return self._in_flight.is_absent(number, self.branch.bit) or len(self.losers_of(number)) == self.listeners

    def _next_present(self, begin: int, end: int) -> int:
        """Return the first packet from `begin` on that arrives; `end` if there is none."""
        while begin < end and self._next_gone(begin, end) == begin:
            begin += 1
        return begin

    def _next_gone(self, begin: int, end: int) -> int:
        """Return the first packet from `begin` on that does not arrive; `end` if there is none."""
        if not self._sure_from <= begin <= self._sure_to:
            self._sure_from, self._sure_to = begin, self._find_gone(begin, self._in_flight.end)
        elif end > self._sure_to:
            self._sure_to = self._find_gone(self._sure_to, self._in_flight.end)
        return end if end < self._sure_to else self._sure_to

    def _find_gone(self, begin: int, end: int) -> int:
        sampler = self.branch.sampler
        for segment, first, identity, count in self._in_flight.spans(self.branch.bit, begin, end):
            if first > begin:
                break
            if segment.burst.is_repeated:
                members, losses = self.listeners, self.branch.losses
                for number in range(first, first + count) if losses else ():
                    if number in losses and len(losses[number]) == members:
                        return number
            elif sampler is not None:
                place = sampler.first_lost_by_all(identity, count)
                if place < count:
                    return begin + place
            begin += count
        return begin

    # Bringing up to date

    def sync(self) -> None:
        """Advance the lockstep group by the arrivals before the present event; links are updated when they are needed."""
        flying = self._in_flight
        if self.arrived < flying.end:
            when, priority, order = flying.instant()
            self._apply(flying.reached(self.arrived, self, when, priority, order))

    def catch_up(self, when: float, priority: int, order: int) -> None:
        """Apply the arrivals before this instant."""
        self._apply(self._in_flight.reached(self.arrived, self, when, priority, order))

    def _apply(self, end: int) -> None:
        """Apply the arrivals before packet `end`."""
        begin, self.arrived = self.arrived, end
        if begin < end and self._sure_from <= begin and end <= self._sure_to:
            # As below, for what is usual.
            self._move(begin, end)
            return
        while begin < end:
            begin = self._next_present(begin, end)
            stop = self._next_gone(begin, end)
            if begin < stop:
                self._move(begin, stop)
            begin = stop

    def _move(self, begin: int, end: int) -> None:
        """Advance the lockstep group over these packets; losses are only recorded, to be applied at a machine's next input."""
        flying, lockstep, sampler = self._in_flight, self.lockstep, self.branch.sampler
        if lockstep is None:
            return
        missed: list[Missed] = []
        lost = 0
        segment = flying.sole_segment(begin, end)
        if sampler is not None:
            # The first case is the usual one, without a call.
            spans = flying.spans(self.branch.bit, begin, end) if segment is None else [(segment, begin, 0, end - begin)]
            for part, first, _, count in spans:
                place = first - part.start
                losses: list[Any] = flying.losses_on(self.branch, sampler, (part, first, part.burst.identity + place, count))
                if losses:
                    if not isinstance(losses[0][1], list):
                        losses = [(at, listed(losers)) for at, losers in losses]
                    pair: tuple[Any, ...]
                    for pair in losses:
                        lost += len(pair[1])
                    missed.append((part.burst, place, first, losses))
        if missed:
            sent = flying.sent_at if self.source is None else self.source.far
            lockstep.defer(missed, begin, sent, flying.base, self.steps)
        if segment is None:
            segment = flying.segment(end - 1)
        lockstep.move(segment.burst.position(end - segment.start), self._time_of(end - 1), end)
        flying.fabric.delivered += (end - begin) * self.listeners - lost

    def _time_of(self, number: int) -> float:
        """Return when a packet arrives: as `InFlight.time_at`, which is used for points of another class, too."""
        flying, source = self._in_flight, self.source
        when = (flying.sent_at if source is None else source.far)[number - flying.base]
        for step in self.steps:
            when += step
        return when

    # Arrivals that are events

    def wake_in_lockstep(self) -> None:
        """Post the next arrival anew when the present input is over, because receivers may have diverged."""
        kernel = self._in_flight.kernel
        if not kernel.busy:
            self._post_next()
        elif self not in kernel.pending:
            kernel.pending.append(self)

    def settle(self) -> None:
        """Post the next arrival."""
        if self.lockstep is not None and self.arrived < self._in_flight.end:
            self.lockstep.gather()
            self._post_next()

    def _post_next(self) -> None:
        """Post the next arrival that is an event; if it may still have to wait on its way, an event when that is known."""
        flying, posted = self._in_flight, self._posted
        found = self._find_event()
        if found is None:
            self._posted = None
            return
        number, segment = found
        point = self if self.source is None else flying.known_at(number, self)
        if posted is not None and posted.content[0] == number and posted.content[2] is point:
            return
        self._posted = entry = QueueEntry(self._callbacks, (number, segment, point))
        # A packet that is sent at this very time has been offered when the timers of this time are over.
        priority = ARRIVAL if point is self else TIMER
        # As `InFlight.order`.
        order = segment.order + (number - segment.start << 24) + self.rank
        when = self._time_of(number) if point is self else flying.time_at(number, point)
        post(flying.kernel.queue, when, priority, order, entry)

    def _find_event(self) -> tuple[int, Segment] | None:
        """Return the next packet whose arrival is an event, and its segment; None if there is none."""
        flying, lockstep, number = self._in_flight, self.lockstep, self.arrived
        end = flying.end
        are_sure = self._sure_from <= number and end <= self._sure_to
        if not are_sure:
            number = self._next_present(number, end)
        if number == end or lockstep is None:
            return None
        segment = flying.segment(number)
        if not lockstep.stands_at(segment.burst.position(number - segment.start)):
            return number, segment
        visible, segment = self._find_visible(number, segment)
        if not are_sure:
            visible = self._next_present(self._next_gone(number, visible), end)
            segment = flying.segment(visible)
        return (visible, segment) if visible < end else None

    def _find_visible(self, number: int, segment: Segment) -> tuple[int, Segment]:
        """Return the next packet with more effect than to advance receivers, or the first that does not follow the others.

        Packet `number`, from which on it is looked for, is one of `segment`. Returns its segment, too.
        """
        flying = self._in_flight
        while number < flying.end:
            start, burst = segment.start, segment.burst
            next_visible = burst.next_visible(number - start)
            if burst.shows_losses:
                next_visible = min(next_visible, self._next_lossy(number, start + burst.count) - start)
            if next_visible < burst.count:
                return start + next_visible, segment
            number = start + burst.count
            if number < flying.end:
                segment = flying.segment(number)
                if segment.burst.position(0) is not burst.position(burst.count):
                    break
        return number, segment

    def _next_lossy(self, begin: int, end: int) -> int:
        """Return the first packet from `begin` on that some members lose on the link; `end` if there is none."""
        sampler = self.branch.sampler
        if sampler is not None:
            for _, first, identity, count in self._in_flight.spans(self.branch.bit, begin, end):
                place = sampler.first_lost(identity, count)
                if place < count:
                    return first + place
        return end

    def _on_arrival(self, entry: QueueEntry) -> None:
        if self._posted is not entry:
            # Cancelled: another arrival is next, or the packet goes on by itself or was never sent.
            return
        self._posted = None
        flying = self._in_flight
        kernel, now = flying.kernel, flying.kernel.env._now
        kernel.busy = True
        content: tuple[Any, ...] = entry.content
        number, segment, point = content[0], content[1], content[2]
        if point is self:
            if self.arrived < number:
                self._apply(number)
            self._deliver(number, segment, now)
        else:
            flying.reached(self.arrived, self, now, TIMER, 0)
        if self not in kernel.pending:
            self._post_next()
        kernel.settle_inputs()

    def _deliver(self, number: int, segment: Segment, now: float) -> None:
        """Deliver a packet of a segment to the lockstep group."""
        flying, lockstep, burst = self._in_flight, self.lockstep, segment.burst
        assert lockstep is not None
        lost_by = self._losers_of(number, segment)
        self.arrived = number + 1
        flying.fabric.delivered += self.listeners - len(lost_by)
        lockstep.pass_on(burst, number - segment.start, number, flying.source, flying.route.to, now, lost_by)

    # Cancelling

    def doubt(self, number: int) -> None:
        """Note that this packet may not arrive with the others after all."""
        self._sure_to = min(self._sure_to, number)
        self.wake_in_lockstep()

    def cancel_from(self, first: int) -> None:
        """Cancel the event if it is the arrival of packet `first` or a later one, which are not sent."""
        self._sure_to = min(self._sure_to, first)
        if self._posted is not None and self._posted.content[0] >= first:
            self._posted = None
            self.wake_in_lockstep()

    def cancel_event(self) -> None:
        """Cancel the event."""
        self._posted = None

    def unfold(self) -> None:
        """Go on without lookahead."""
        self._unfold()
