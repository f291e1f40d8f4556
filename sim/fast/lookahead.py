"""Packets that a sender plans, scheduled to all groups of hosts on a multicast tree without an event for each.

Between the inputs of a sender in the middle of a block nothing is decided: packets take their places in queues, receivers in
lockstep advance, and a receiver that loses a packet records this when the next one arrives. All of that is arithmetic, so it is
applied when its result is needed: before a link, a machine or a counter is used, everything that comes before the present
event is applied (`catch_up`). Only an arrival that finds diverged receivers, or with more effect than that at some receiver, is
an event (`LastHop`), with the time and order it has in the strict engine. A packet that finds a link busy goes on from there
with events of its own; when routes and listeners change, all packets in flight do (`unfold`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from protocols.fast.contract import FastMachine
from protocols.fast.lookahead import Burst
from sim.acceleration import Reservation
from sim.fast.in_flight import Segment
from sim.fast.machines import fast_machine
from sim.fast.schedule import Offer, Schedule
from sim.fast.tree import CONFLICTS, MARGIN, Branch, Point, Tree, sampler_of
from sim.flight import Flight, Postponed, Route
from sim.host import SimHost
from sim.kernel import Pending
from sim.queue_entry import TIMER, QueueEntry, post
from topologies.draws import kept

__all__ = ["Lookahead"]

FORGET: Final = 1024
SHORTEST: Final = 4
"""The shortest burst that is worth being scheduled."""
MOST_SKIPPED: Final = 16
"""Chances to plan that are left out at the most, where others use the links too often."""


class Lookahead(Schedule, Pending, Reservation):
    """Schedules the bursts of one host on one route.

    `active` lists all lookaheads with packets in flight; `plan_next(host, machine)` looks for one that can schedule bursts.
    """

    def __init__(
        self,
        host: SimHost,
        route: Route,
        tree: Tree,
        active: "list[Lookahead]",
        plan_next: Callable[[SimHost, FastMachine], None],
    ) -> None:
        super().__init__(host, route, tree)
        self._active = active
        self._plan_next = plan_next
        self._branch_of: dict[object, Branch] = {branch.link: branch for branch in tree.branches}
        # The event at the last arrival.
        self._closing: QueueEntry | None = None
        self._on_last = (self._on_closing,)
        # How many packets the sender's state includes.
        self._committed = 0
        # How many chances to plan are left out now, and were after the last attempt.
        self._left_out = self._pause = 0

    # Scheduling

    def plan(self, machine: FastMachine) -> None:
        """Schedule the bursts that a machine plans after an input, if the tree allows it.

        After an attempt in vain some chances are left out: each costs as much as a few packets.
        """
        if self._left_out:
            self._left_out -= 1
            return
        bursts = machine.plan_bursts()
        if sum([burst.count for burst in bursts]) < SHORTEST or bursts[-1].to is not self.route.to:
            return
        sent_at = self._times_of(bursts)
        if len(sent_at) >= SHORTEST:
            self._pause = 0
            self._schedule(machine, bursts, sent_at)
        else:
            self._pause = self._left_out = min(2 * self._pause or 1, MOST_SKIPPED)

    def _times_of(self, bursts: Sequence[Burst]) -> list[float]:
        """Return when packets of bursts are sent, as many as can be scheduled now."""
        if self not in self._active and not self._attach(bursts[0]):
            return []
        self._forget()
        return self._find_times(bursts[0], self._predictable(bursts)) if self._set_size(bursts[0].size) else []

    def _attach(self, burst: Burst) -> bool:
        """Reserve the tree. False if another sender has packets on it, or hosts at its leaves can't be advanced together."""
        for branch in self.tree.branches:
            if not branch.shared.attach(self) if branch.shared is not None else branch.link.reservation is not None:
                return False
        return bool(self._leaves) and all(leaf.attach(burst) for leaf in self._leaves)

    def _schedule(self, machine: FastMachine, bursts: Sequence[Burst], sent_at: list[float]) -> None:
        fabric, begin = self.fabric, self.end
        order = (self.host.place + 1) << 80 | (fabric.serial + 1) << 24
        fabric.serial += len(sent_at)
        self.sent_at += sent_at
        self.end += len(sent_at)
        machine.fast_state.coordinator = self
        for burst in bursts:
            share = min(burst.count, self.end - begin)
            if share:
                self._segments.append(Segment(burst, begin, order))
                self._starts.append(begin)
                (self._find_repeated_losses if burst.is_repeated else self._exclude_lost)(burst, begin, share)
                begin += share
                order += share << 24
                burst.carrier = self
                burst.take(share, self.sent_at[begin - self.base - 1] + burst.interval)
        self._begin()
        for branch in self.tree.leaves:
            if branch.shared is not None:
                branch.shared.renew(self)
        for leaf in self._leaves:
            # At once, because this may be work done when the present input is over.
            leaf.settle()
        if self._closing is None:
            self._post_closing()
        for branch in self.tree.branches:
            if branch.is_contested and branch not in self._looks:
                self._post_look(branch)

    def _exclude_lost(self, burst: Burst, begin: int, count: int) -> None:
        """Find the packets that are lost on the way: they do not take part in what is behind."""
        for branch in self.tree.branches:
            if branch.sampler is not None and branch.children:
                for place, _ in branch.sampler.predict(burst.identity, count):
                    self.exclude(begin + place, branch.subtree & ~branch.bit)

    def _find_repeated_losses(self, burst: Burst, begin: int, count: int) -> None:
        """Find who loses the packets of a repeated burst; those lost on the way do not take part in what is behind."""
        identities, repeated = [burst.identity_of(place) for place in range(count)], self._repeated
        for number, identity in enumerate(identities, begin):
            repeated.pop(identity, None)
            repeated[identity] = number
        for branch in self.tree.branches:
            sampler = sampler_of(branch.link)
            for number, identity in enumerate(identities if sampler is not None else (), begin):
                losers = () if sampler is None or self.is_absent(number, branch.bit) else sampler.next_losers(identity)
                if losers:
                    branch.losses[number] = kept(losers)
                    if branch.children:
                        self.exclude(number, branch.subtree & ~branch.bit)

    def _begin(self) -> None:
        """Reserve the tree."""
        if self in self._active:
            return
        self._active.append(self)
        for branch in self.tree.branches:
            if branch.shared is not None:
                branch.shared.add(self, branch)
            else:
                branch.link.reservation = self
        for leaf in self._leaves:
            if leaf.lockstep is not None:
                leaf.lockstep.late = leaf

    def _forget(self) -> None:
        """Forget packets that have arrived: those of a sender that never pauses would fill the memory."""
        if self._root.passed - self.base < FORGET:
            return
        self.catch_up()
        arrived = [leaf.arrived for leaf in self._leaves]
        done = min(arrived + [branch.passed for branch in self.tree.branches]) - self.base
        if done >= FORGET:
            del self.sent_at[:done]
            for branch in self.tree.branches:
                del branch.far[:done]
                if branch.shared is not None:
                    branch.shared.count(self)
            self.base += done
            for number in self._excluded[: bisect_left(self._excluded, self.base)]:
                del self._absent[number]
            del self._excluded[: bisect_left(self._excluded, self.base)]
            self._offers = {number: offers for number, offers in self._offers.items() if number >= self.base}
            self._repeated = {identity: number for identity, number in self._repeated.items() if number >= self.base}
            for branch in self.tree.branches:
                branch.losses = {number: losers for number, losers in branch.losses.items() if number >= self.base}
            self._segments = [segment for segment in self._segments if segment.start + segment.burst.count > self.base]
            self._starts = [segment.start for segment in self._segments]

    def settle(self) -> None:
        """Schedule again what the machine plans after an input."""
        host, now = self.host, self.kernel.env._now
        machine = fast_machine(host.machine)
        if machine is not None and machine.plans_bursts:
            # As a `Machine`: the compiler can't read a float through a trait.
            due = host.machine.deadline
            if due > now and machine.fast_state.coordinator is not self:
                self._plan_next(host, machine)

    # Cancelling

    def release(self, machine: FastMachine) -> None:
        """Cancel the packets not yet sent, because the sender gets an input of its own."""
        self._depart(*self.instant()[:2])
        self._cancel_rest(machine)
        kernel = self.kernel
        if not kernel.busy:
            kernel.timers.flush()
        elif self not in kernel.pending:
            kernel.pending.append(self)

    def _cancel_rest(self, machine: FastMachine) -> None:
        machine.fast_state.coordinator = None
        self._cancel_from(self._root.passed)
        self._commit()
        burst = self._segments[-1].burst
        if not burst.count:
            self._segments.pop()
            self._starts.pop()
        burst.end()
        if self._closing is None:
            # The last has arrived before the sender was woken for the next.
            self.catch_up()
            self._finish()

    def _commit(self) -> None:
        """Update the sender's state by the packets sent."""
        sent, base = self._root.passed, self.base
        if sent == self._committed:
            return
        for segment in self._segments[bisect_right(self._starts, self._committed) - 1 :]:
            count = min(sent - segment.start, segment.burst.count)
            if count > 0:
                last = self.sent_at[segment.start + count - base - 1]
                segment.burst.commit(count, last, last + segment.burst.interval)
        self._committed = sent

    def _cancel_from(self, first: int) -> None:
        """Cancel the packets from number `first` on."""
        while self._starts[-1] >= max(first, self._root.passed + 1):
            self._segments.pop()
            self._starts.pop()
        segment = self._segments[-1]
        segment.burst.count = first - segment.start
        place = bisect_left(self._excluded, first)
        for number in self._excluded[place:]:
            del self._absent[number]
        del self._excluded[place:]
        for branch in self.tree.branches:
            while branch.losses and next(reversed(branch.losses)) >= first:
                branch.losses.popitem()
        repeated = self._repeated
        while repeated and repeated[next(reversed(repeated))] >= first:
            repeated.popitem()
        del self.sent_at[first - self.base :]
        self.end = first
        for leaf in self._leaves:
            leaf.cancel_from(first)

    # The carrier of the sender's bursts

    def report(self) -> None:
        """Update the sender's state by what it has sent by now, for an input that may leave the burst as it is."""
        self._depart(*self.instant()[:2])
        self._commit()

    def shorten(self, until: float) -> None:
        """Cancel the packets due at `until` (seconds) or later, because the sender has something else to send then."""
        begin = self._root.passed - self.base
        keep = bisect_left(self.sent_at, until, begin) + self.base
        if keep == self._root.passed:
            machine = fast_machine(self.host.machine)
            assert machine is not None
            machine.leave_lockstep()
            return
        if keep < self.end:
            self._cancel_from(keep)
        burst = self._segments[-1].burst
        burst.take(burst.count, self.sent_at[-1] + burst.interval)

    # The end

    def _post_closing(self) -> None:
        """Post an event behind the last arrival, as far as that is known."""
        number = self.end - 1
        points: list[Point] = [leaf for leaf in self._leaves if leaf.arrived < self.end]
        points += [branch for branch in self.tree.branches if branch.passed < self.end]
        when = max([self.time_at(number, self.known_at(number, point)) for point in points])
        entry = self._closing = QueueEntry(self._on_last, self.end)
        post(self.kernel.queue, when, TIMER, self.order(number, 0), entry)

    def _on_closing(self, entry: QueueEntry) -> None:
        if self._closing is not entry:
            return
        self._closing = None
        if entry.content < self.end and not self._is_over():
            # More packets followed.
            self._post_closing()
            return
        kernel = self.kernel
        kernel.busy = True
        self._catch_up(kernel.env._now, TIMER, 0)
        if self._is_over():
            self._finish()
        else:
            self._post_closing()
        kernel.settle_inputs()

    def _finish(self) -> None:
        """Give the tree back, because no packet is in flight."""
        machine = fast_machine(self.host.machine)
        if self not in self._active or (machine is not None and machine.fast_state.coordinator is self):
            # No packet was in flight; or the last has arrived before the sender is woken for the next.
            return
        for branch in self.tree.branches:
            if branch.shared is not None:
                branch.shared.remove(self)
            else:
                branch.link.reservation = None
            branch.far.clear()
            branch.losses.clear()
        self.base = self.end
        self._segments.clear()
        self._starts.clear()
        self.sent_at.clear()
        self._excluded.clear()
        self._absent.clear()
        self._offers.clear()
        self._repeated.clear()
        self._closing = None
        self._looks.clear()
        for leaf in self._leaves:
            leaf.cancel_event()
            if leaf.lockstep is not None:
                leaf.lockstep.late = None
                leaf.lockstep.call_in()
        self._active.remove(self)

    def before_offer(self, link: object, flight: Flight) -> None:
        """Another packet is offered to one of the links: it queues behind those offered before, and before the rest."""
        branch, now = self._branch_of[link], self.kernel.env._now
        known = branch.link
        end = max(now, known.free_at()) + (flight.size + known.overhead) / known.queue.rate
        if flight.identity is None and self.is_apart(branch, now, end):
            return
        when, priority, order = self.instant()
        # Only this link: the others are updated when they are needed.
        if branch is self._root:
            self._depart(when, priority)
        else:
            self._advance(branch, when, priority, order)
        repeated = None if flight.identity is None else self._repeated.get(flight.identity)
        if repeated is not None and repeated >= branch.passed and not self.is_absent(repeated, branch.bit):
            # This packet comes before one whose losses were predicted as if it did not.
            self.unfold()
            return
        if branch.is_contested:
            return
        number = branch.passed
        while number < self.end and self.is_absent(number, branch.bit):
            number += 1
        if number < self.end:
            end = max(now, known.free_at()) + (flight.size + known.overhead) / known.queue.rate
            if self.known_at(number, branch) is not branch:
                # It is to be offered to a contested link first.
                if end > now + branch.latency - MARGIN:
                    self.unfold()
            elif end > self.time_at(number, branch):
                self.single_out(number, branch)

    def single_out(self, number: int, branch: Branch) -> bool:
        """See `Schedule`."""
        parent = branch.parent
        if parent is None or number >= self._departed(*self.instant()[:2]):
            self.unfold()
            return False
        is_contested = number < branch.last_conflict + CONFLICTS
        branch.last_conflict = number
        if is_contested and self._contest(branch):
            return True
        self._cancel_offers(number, branch)
        self.exclude(number, branch.subtree)
        offer = Offer(parent, [branch], self)
        self._offers.setdefault(number, []).append(offer)
        self._go_on(number, branch.rank, Postponed(offer, self.time_at(number, branch)))
        for leaf in self._leaves:
            if leaf.branch.bit & branch.subtree:
                leaf.doubt(number)
        return True

    def unfold(self) -> None:
        """Materialise the packets in flight: they go on as if they had been sent one by one."""
        self.catch_up()
        machine = fast_machine(self.host.machine)
        if machine is not None and machine.fast_state.coordinator is self:
            self._cancel_rest(machine)
        for branch in self.tree.leaves:
            if branch.shared is not None:
                branch.shared.remove(self)
        for branch in self.tree.branches:
            if branch.children:
                for number in range(branch.children[0].passed, branch.passed):
                    children = [child for child in branch.children if not self.is_absent(number, child.bit)]
                    for child in children:
                        self._cancel_offers(number, child)
                    if children:
                        place = branch.link.head if len(children) == len(branch.children) else Offer(branch, children, self)
                        self._go_on(number, children[0].rank, Postponed(place, self.time_at(number, children[0])))
        for leaf in self._leaves:
            for number in range(leaf.arrived, leaf.branch.passed):
                if not leaf.is_gone(number):
                    arrival = Postponed(leaf.endpoint, self.time_at(number, leaf), leaf.apart_of(number))
                    self._go_on(number, leaf.rank, arrival)
            leaf.arrived = self.end
        for branch in self.tree.branches:
            branch.passed = self.end
        self._finish()

    def _go_on(self, number: int, rank: int, arrival: Postponed) -> None:
        """Post the arrival of a packet as it would be if it had been sent on its own."""
        segment = self.segment(number)
        burst, nth, host = segment.burst, number - segment.start, self.host
        # Forwarding increments the order.
        order = self.order(number, rank) - 1
        flight = Flight(burst.message(nth), burst.identity_of(nth), burst.size, host.place, self.source, self.route, order)
        self.fabric.forwarding.forward(flight, (arrival,), self.kernel.env._now)
