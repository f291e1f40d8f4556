"""Packets that a sender plans, scheduled to all groups of hosts on a multicast tree without an event for each.

Between the inputs of a sender in the middle of a block nothing is decided: packets take their places in queues, receivers in
lockstep advance, and a receiver that loses a packet records this when the next one arrives. All of that is arithmetic, so it is
applied when its result is needed: before a link, a machine or a counter is used, everything that comes before the present
event is applied (`catch_up`). Only an arrival that finds diverged receivers, or with more effect than that at some receiver, is
an event (`Leaf`), with the time and order it has in the strict engine. A packet that finds a link busy goes on from there with
events of its own; when routes and listeners change, all packets in flight do (`unfold`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import Final

from protocols.fast.contract import FastMachine
from protocols.fast.lookahead import Burst
from sim.acceleration import Reservation
from sim.fast.in_flight import InFlight, Segment
from sim.fast.leaf import Leaf
from sim.fast.machines import fast_machine
from sim.fast.tree import CONFLICTS, MARGIN, Branch, Point, Tree
from sim.flight import Flight, Hop, Postponed, Route
from sim.host import SimHost
from sim.kernel import Pending
from sim.link import Link
from sim.occurrence import ARRIVAL, TIMER, Occurrence, post
from sim.switch import Switch

__all__ = ["Lookahead"]

FORGET: Final = 128
SHORTEST: Final = 4
"""The shortest burst that is worth being scheduled."""


class _Offer:
    """A place at the switch behind `branch` where a packet goes on over the links of some `children` only."""

    def __init__(self, branch: Branch, children: Sequence[Branch], in_flight: InFlight) -> None:
        self._branch = branch
        self._links: list[Hop] = [child.link for child in children]
        self._router = children[0].router
        self._in_flight = in_flight
        self.bits = sum([child.bit for child in children])
        """The bits of the links."""
        self.is_cancelled = False

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Forward the packet over those links that are still on its route."""
        del lost_by
        switch = self._branch.link.head
        assert isinstance(switch, Switch)
        if not self.is_cancelled:
            if self._router is not None:
                self._router.offered += 1
            links = [link for link in switch.next_links(flight.route) if link in self._links]
            self._in_flight.fabric.forwarding.forward(flight, links, now)


class Lookahead(InFlight, Pending, Reservation):
    """Schedules the bursts of one host on one route.

    `active` lists all lookaheads with packets in flight; `plan_next(host)` looks for one that can schedule the host's bursts.
    """

    def __init__(
        self, host: SimHost, route: Route, tree: Tree, active: "list[Lookahead]", plan_next: Callable[[SimHost], None]
    ) -> None:
        super().__init__(host, route, tree)
        self._active = active
        self._plan_next = plan_next
        self._leaves = [Leaf(branch, self, self.unfold) for branch in tree.leaves]
        self._branch_of: dict[Hop, Branch] = {branch.link: branch for branch in tree.branches}
        # The packets offered to a link on their own, by number.
        self._offers: dict[int, list[_Offer]] = {}
        # The event at the last arrival.
        self._closing: Occurrence | None = None
        self._on_last = (self._on_closing,)
        # By contested link with a limited queue, the event at which its queue is looked at next.
        self._looks: dict[Branch, Occurrence] = {}
        self._on_look = (self._look,)
        # How many packets the sender's state includes.
        self._committed = 0

    # Scheduling

    def plan(self, machine: FastMachine) -> None:
        """Schedule the bursts that a machine plans after an input, if the tree allows it."""
        bursts = machine.plan_bursts()
        if not bursts or bursts[-1].count < SHORTEST or bursts[-1].to is not self.route.to:
            return
        if self not in self._active and not self._attach():
            return
        self._forget()
        if not self._set_size(bursts[0].size):
            return
        sent_at = self._find_times(bursts[0], self._predictable(bursts))
        if len(sent_at) >= SHORTEST:
            self._schedule(machine, bursts, sent_at)

    def _attach(self) -> bool:
        """Whether no other sender has scheduled packets on the tree, and the hosts at its leaves can be advanced together."""
        for branch in self.tree.branches:
            if branch.link.reservation is not None:
                return False
        return bool(self._leaves) and all(leaf.attach() for leaf in self._leaves)

    def _set_size(self, size: int) -> bool:
        """Compute the times of packets of this size; return False if others are still in flight."""
        if size == self.tree.size:
            return True
        self.catch_up()
        if not self._is_over():
            return False
        self.tree.set_size(size)
        self._place_leaves()
        return True

    def _place_leaves(self) -> None:
        for leaf in self._leaves:
            leaf.put_behind(leaf.branch)
            leaf.rank = leaf.branch.rank_behind

    def _predictable(self, bursts: Sequence[Burst]) -> int:
        """Return how many packets of the bursts, which follow each other, are predictable on every link."""
        total = 0
        for burst in bursts:
            count = burst.count
            for branch in self.tree.branches:
                if branch.sampler is not None:
                    count = min(count, branch.sampler.predictable(burst.identity, count))
            total += count
            if count < burst.count:
                break
        return total

    def _find_times(self, burst: Burst, count: int) -> list[float]:
        """Return when up to `count` packets are sent: those before `burst.until`; none if they can't be scheduled now.

        They find all queues idle, except those of contested links.
        """
        sent_at = list(accumulate(repeat(burst.interval, count - 1), initial=burst.begin)) if count else []
        del sent_at[bisect_left(sent_at, burst.until) :]
        for branch in self.tree.branches:
            if branch.is_contested or not sent_at:
                continue
            idle = self._free_at(branch)
            if idle > sent_at[0] + branch.floor - MARGIN:
                return []
            if branch.cost + MARGIN >= burst.interval and not self._contest(branch):
                # Otherwise each packet is sent long before the next is offered.
                if branch.source is not None:
                    return []
                self._keep_idle(sent_at, branch, idle)
        return sent_at

    def _keep_idle(self, sent_at: list[float], branch: Branch, idle: float) -> None:
        """Remove the packets from the first on that finds a link busy, which is idle from `idle` seconds on."""
        for place, offered in enumerate(sent_at):
            for step in branch.steps:
                offered += step
            if idle > offered:
                del sent_at[place:]
                break
            idle = offered + branch.cost

    def _free_at(self, branch: Branch) -> float:
        """When a link has sent all that was offered to it, and all that is in flight to it from here if none waits."""
        free_at = branch.link.free_at()
        if branch.passed < self.end and branch.source is None:
            free_at = max(free_at, self.time_at(self.end - 1, branch) + branch.cost)
        return free_at

    def _contest(self, branch: Branch) -> bool:
        """Let packets wait at a link from now on; return False if that is impossible there or further on."""
        contested = self._contested_with(branch)
        for number, offers in self._offers.items():
            if number >= branch.passed and any(offer.bits & branch.subtree and not offer.is_cancelled for offer in offers):
                # It is to be offered further on at a time that would not hold any more.
                return False
        for each in contested:
            self.contest(each)
        if contested:
            self.tree.update()
            self._place_leaves()
        for each in contested:
            self._post_look(each)
        return bool(contested)

    def _contested_with(self, branch: Branch) -> list[Branch]:
        """Return a link, and those behind it at which packets may wait then: they follow each other as close as it sends them.

        Nothing if one of these is the first link or one to a group of hosts, where packets can't wait.
        """
        if branch.parent is None or not isinstance(branch.link, Link) or branch.cost < 2 * MARGIN:
            return []
        contested = [branch]
        behind = list(branch.children)
        for child in behind:
            if child.is_contested:
                continue
            if child.cost + MARGIN <= branch.cost:
                behind += child.children
                continue
            more = self._contested_with(child)
            if not more:
                return []
            contested += more
        return contested

    def _schedule(self, machine: FastMachine, bursts: Sequence[Burst], sent_at: list[float]) -> None:
        fabric, begin = self.fabric, self.end
        order = (self.host.place + 1) << 80 | (fabric.serial + 1) << 24
        fabric.serial += len(sent_at)
        self._sent_at += sent_at
        self.end += len(sent_at)
        machine.fast_state.coordinator = self
        for burst in bursts:
            share = min(burst.count, self.end - begin)
            if share:
                self._segments.append(Segment(burst, begin, order))
                self._starts.append(begin)
                self._exclude_lost(burst, begin, share)
                begin += share
                order += share << 24
                burst.carrier = self
                burst.take(share, self._sent_at[begin - self._base - 1] + burst.interval)
        self._begin()
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

    def _begin(self) -> None:
        """Reserve the tree."""
        if self in self._active:
            return
        self._active.append(self)
        for branch in self.tree.branches:
            branch.link.reservation = self
        for leaf in self._leaves:
            if leaf.lockstep is not None:
                leaf.lockstep.late = leaf

    def _forget(self) -> None:
        """Forget packets that have arrived: those of a sender that never pauses would fill the memory."""
        if self.end - self._base < FORGET:
            return
        self.catch_up()
        arrived = [leaf.arrived for leaf in self._leaves]
        done = min(arrived + [branch.passed for branch in self.tree.branches]) - self._base
        if done >= FORGET:
            del self._sent_at[:done]
            for branch in self.tree.branches:
                del branch.far[:done]
            self._base += done
            for number in self._excluded[: bisect_left(self._excluded, self._base)]:
                del self._absent[number]
            del self._excluded[: bisect_left(self._excluded, self._base)]
            self._offers = {number: offers for number, offers in self._offers.items() if number >= self._base}
            self._segments = [segment for segment in self._segments if segment.start + segment.burst.count > self._base]
            self._starts = [segment.start for segment in self._segments]

    def settle(self) -> None:
        """Schedule again what the machine plans after an input."""
        host, now = self.host, self.kernel.env._now
        machine = fast_machine(host.machine)
        if machine is not None and machine.plans_bursts:
            # As a `Machine`: the compiler can't read a float through a trait.
            due = host.machine.deadline
            if due > now and machine.fast_state.coordinator is not self:
                self._plan_next(host)

    def catch_up(self) -> None:
        """Apply everything that happens before the present event."""
        self._catch_up(*self.instant())

    def _catch_up(self, when: float, priority: int, order: int) -> None:
        self._depart(when, priority)
        for branch in self.tree.branches:
            if branch.parent is not None:
                self._advance(branch, when, priority, order)
        for leaf in self._leaves:
            leaf.catch_up(when, priority, order)

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
        sent, base = self._root.passed, self._base
        if sent == self._committed:
            return
        for segment in self._segments[bisect_right(self._starts, self._committed) - 1 :]:
            count = min(sent - segment.start, segment.burst.count)
            if count > 0:
                last = self._sent_at[segment.start + count - base - 1]
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
        del self._sent_at[first - self._base :]
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
        begin = self._root.passed - self._base
        keep = bisect_left(self._sent_at, until, begin) + self._base
        if keep == self._root.passed:
            machine = fast_machine(self.host.machine)
            assert machine is not None
            machine.leave_lockstep()
            return
        if keep < self.end:
            self._cancel_from(keep)
        burst = self._segments[-1].burst
        burst.take(burst.count, self._sent_at[-1] + burst.interval)

    # Contested links

    def _post_look(self, branch: Branch) -> None:
        """Post an event before the first packet not yet offered could arrive: if it is dropped, the next is an event."""
        self._looks.pop(branch, None)
        number = branch.passed
        if branch.link.queue.limit is None or number >= self.end:
            return
        point = self.known_at(number, branch)
        way = min([leaf.floor for leaf in self._leaves if leaf.branch.bit & branch.subtree]) - point.floor
        occurrence = self._looks[branch] = Occurrence(self._on_look, branch)
        env = self.kernel.env
        post(env, max(env._now, self.time_at(number, point) + way - MARGIN), ARRIVAL, next(env._eid), occurrence)

    def _look(self, occurrence: Occurrence) -> None:
        branch: Branch = occurrence.content
        if self._looks.get(branch) is not occurrence:
            return
        kernel = self.kernel
        kernel.busy = True
        self._advance(branch, *self.instant())
        self._post_look(branch)
        kernel.settle_inputs()

    # The end

    def _post_closing(self) -> None:
        """Post an event behind the last arrival, as far as that is known."""
        number = self.end - 1
        points: list[Point] = [leaf for leaf in self._leaves if leaf.arrived < self.end]
        points += [branch for branch in self.tree.branches if branch.passed < self.end]
        when = max([self.time_at(number, self.known_at(number, point)) for point in points])
        occurrence = self._closing = Occurrence(self._on_last, None)
        post(self.kernel.env, when, TIMER, self.order(number, 0), occurrence)

    def _on_closing(self, occurrence: Occurrence) -> None:
        if self._closing is not occurrence:
            return
        self._closing = None
        kernel = self.kernel
        kernel.busy = True
        self._catch_up(kernel.env._now, TIMER, 0)
        if self._is_over():
            self._finish()
        else:
            self._post_closing()
        kernel.settle_inputs()

    def _is_over(self) -> bool:
        """Whether no packet is in flight, as far as that is applied."""
        end = self.end
        return all(leaf.arrived == end for leaf in self._leaves) and all(branch.passed == end for branch in self.tree.branches)

    def _finish(self) -> None:
        """Give the tree back, because no packet is in flight."""
        machine = fast_machine(self.host.machine)
        if self not in self._active or (machine is not None and machine.fast_state.coordinator is self):
            # No packet was in flight; or the last has arrived before the sender is woken for the next.
            return
        self._base = self.end
        self._segments.clear()
        self._starts.clear()
        self._sent_at.clear()
        self._excluded.clear()
        self._absent.clear()
        self._offers.clear()
        self._closing = None
        self._looks.clear()
        for branch in self.tree.branches:
            branch.link.reservation = None
            branch.far.clear()
        for leaf in self._leaves:
            leaf.cancel_event()
            if leaf.lockstep is not None:
                leaf.lockstep.late = None
                leaf.lockstep.call_in()
        self._active.remove(self)

    def before_offer(self, link: Hop, flight: Flight) -> None:
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
                self._single_out(number, branch)

    def _single_out(self, number: int, branch: Branch) -> None:
        """Let a packet that finds a link busy be offered to it at its time, and go on from there by itself."""
        parent = branch.parent
        if parent is None or number >= self._departed(*self.instant()[:2]):
            self.unfold()
            return
        is_contested = number < branch.last_conflict + CONFLICTS
        branch.last_conflict = number
        if is_contested and self._contest(branch):
            return
        self._cancel_offers(number, branch)
        self.exclude(number, branch.subtree)
        offer = _Offer(parent, [branch], self)
        self._offers.setdefault(number, []).append(offer)
        self._go_on(number, branch.rank, Postponed(offer, self.time_at(number, branch)))
        for leaf in self._leaves:
            if leaf.branch.bit & branch.subtree:
                leaf.doubt(number)

    def _cancel_offers(self, number: int, branch: Branch) -> None:
        """Cancel what was to happen to a packet further on, since it goes on by itself at this link already."""
        for offer in self._offers.get(number, ()):
            if offer.bits & branch.subtree:
                offer.is_cancelled = True

    def note_drop(self, branch: Branch, number: int) -> None:
        """See `InFlight`."""
        for leaf in self._leaves:
            if leaf.branch.bit & branch.subtree:
                leaf.doubt(number)

    def unfold(self) -> None:
        """Materialise the packets in flight: they go on as if they had been sent one by one."""
        self.catch_up()
        machine = fast_machine(self.host.machine)
        if machine is not None and machine.fast_state.coordinator is self:
            self._cancel_rest(machine)
        for branch in self.tree.branches:
            if branch.children:
                for number in range(branch.children[0].passed, branch.passed):
                    children = [child for child in branch.children if not self.is_absent(number, child.bit)]
                    for child in children:
                        self._cancel_offers(number, child)
                    if children:
                        place = branch.link.head if len(children) == len(branch.children) else _Offer(branch, children, self)
                        self._go_on(number, children[0].rank, Postponed(place, self.time_at(number, children[0])))
        for leaf in self._leaves:
            for number in range(leaf.arrived, leaf.branch.passed):
                if not leaf.is_gone(number):
                    arrival = Postponed(leaf.endpoint, self.time_at(number, leaf), leaf.losers_of(number))
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
        flight = Flight(burst.message(nth), burst.identity + nth, burst.size, host.place, host.name, self.route, order)
        self.fabric.forwarding.forward(flight, (arrival,), self.kernel.env._now)
