"""The last links to one group of hosts, on which several senders have scheduled packets that wait for each other there.

The packets are offered to the queues in order of time when the state of the links is needed. A host that takes feedback only
(`Accelerator.takes_feedback_only`), as other senders of the group do, has a queue of its own, because its link does not carry
what it sends itself; its deliveries are counted when their number is asked for. All other links carry the same packets and
share a queue. When another packet makes them differ, each scheduled packet that comes before they are idle again goes on by
itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from math import inf
from typing import Final, TypeAlias

from protocols.machine import Address
from sim.acceleration import Reservation
from sim.endpoint import Endpoint
from sim.fast.schedule import Schedule
from sim.fast.shared_losses import SharedLosses
from sim.fast.tree import MARGIN, Branch, Sharing
from sim.flight import Flight
from sim.link import Link, LinkGroup
from sim.queue_entry import ARRIVAL, TIMER, QueueEntry, post
from topologies.draws import listed
from topologies.losses import GroupLoss, LinkLoss

__all__ = ["SharedHop"]

MOST_UNCOUNTED: Final = 1024
"""Most deliveries of a host that are counted later, about."""


class _Use:
    """The packets of one sender on the links: those of `schedule` that are offered to them at `branch`."""

    __slots__ = ("absent", "branch", "counted", "due", "lost", "place", "schedule", "skip")

    def __init__(self, schedule: Schedule, branch: Branch) -> None:
        self.schedule = schedule
        self.branch = branch
        self.place = schedule.host.place
        self.skip = schedule.host.member if schedule.host.endpoint is branch.link.head else -1
        """The member that sends them; -1 if it is none."""
        self.due = inf
        """When the next one is offered (seconds)."""
        self.counted = branch.passed
        """Before this packet, those offered are counted."""
        self.absent: Collection[int] = ()
        """Of those being offered, the packets that are not."""
        self.lost: dict[int, list[int]] = {}
        """Of those being offered, by number, which of the unconcerned members lose it."""

    def renew(self) -> None:
        """Compute anew when the next packet is offered."""
        schedule, number = self.schedule, self.branch.passed
        self.due = schedule.time_at(number, self.branch) if number < schedule.end else inf

    def next_present(self) -> "_Offer | None":
        """Return the next packet that is offered, if there is one."""
        schedule, branch = self.schedule, self.branch
        for number in range(branch.passed, schedule.end):
            if not schedule.is_absent(number, branch.bit):
                return schedule.time_at(number, branch), self.place, number, self
        return None


_Offer: TypeAlias = tuple[float, int, int, _Use]
"""A packet that is offered: when (seconds), the place of the host that sent it, and its number, in the order of arrivals."""


class _Apart:
    """The link of an unconcerned member: when its queue is idle (seconds), and the times of its uncounted deliveries."""

    __slots__ = ("free_at", "member", "uncounted")

    def __init__(self, member: int, free_at: float, uncounted: list[float]) -> None:
        self.member = member
        self.free_at = free_at
        self.uncounted = uncounted


class SharedHop(Sharing, Reservation):
    """See the module; `link` leads to `endpoint`."""

    def __init__(self, link: Link | LinkGroup) -> None:
        assert isinstance(link.head, Endpoint)
        sampler = link.sampler
        assert sampler is None or isinstance(sampler, (GroupLoss, LinkLoss))
        self.link = link
        self.endpoint: Endpoint = link.head
        super().__init__(SharedLosses(sampler))
        self._sampler = sampler
        self._fabric = self.endpoint.fabric
        self._to: Address = ""
        self._uses: list[_Use] = []
        self._due = inf
        # The times at which packets not yet counted arrive at unconcerned members, by member.
        self._uncounted: dict[int, list[float]] = {}
        self._on_uncounted = (self._count_one,)

    # The senders

    def attach(self, schedule: Schedule) -> bool:
        """Return whether packets of another sender can be scheduled: all of one group, whose receivers differ from senders."""
        if self._uses:
            return schedule.route.to is self._uses[0].schedule.route.to
        to, endpoint, losses = schedule.route.to, self.endpoint, self.losses
        self._to = to
        members = endpoint.groups.get(to)
        present = 0 if members is None else members.present
        losses.set_members(present, endpoint.unconcerned.get(to, ()))
        # Without listeners, a host that begins to listen among others that send would not be noticed.
        return self.link.queue.limit is None and (losses.listeners > 0 or present in (0, endpoint.count))

    def admits(self, schedule: Schedule, branch: Branch, first: float) -> bool:
        """Return whether packets can be scheduled, the first of which is offered at `first` seconds."""
        if branch.source is not None or branch.latency < 2 * MARGIN or branch.cost + self.link.delay < 2 * MARGIN:
            return False
        if schedule.host.endpoint is self.endpoint and schedule.host.member not in self.losses.unconcerned:
            return False
        return not self._differ(self._fabric.kernel.env._now) or self.link.free_at() + MARGIN <= first

    def add(self, schedule: Schedule, branch: Branch) -> None:
        """Offer the packets of a schedule from now on."""
        self._uses.append(_Use(schedule, branch))
        self.link.reservation = self

    def remove(self, schedule: Schedule) -> None:
        """Offer the packets of a schedule no more."""
        self.count(schedule)
        self._uses = [use for use in self._uses if use.schedule is not schedule]
        if not self._uses:
            self.link.reservation = None

    def renew(self, schedule: Schedule) -> None:
        """Note that more packets are scheduled."""
        for use in self._uses:
            if use.schedule is schedule:
                use.renew()
                self._due = min(self._due, use.due)

    # Packets

    def advance(self, when: float, priority: int, order: int) -> None:
        """Offer what comes before this instant."""
        if when < self._due:
            return
        offers: list[_Offer] = []
        due = inf
        for use in self._uses:
            if use.due <= when:
                schedule, branch = use.schedule, use.branch
                begin = branch.passed
                end = schedule.reached(begin, branch, when, priority, order)
                if end > begin:
                    place, steps, column, base = use.place, branch.steps, schedule.sent_at, schedule.base
                    for number in range(begin, end):
                        # As `time_at`, without a call.
                        offered = column[number - base]
                        for step in steps:
                            offered += step
                        offers.append((offered, place, number, use))
                    self._find_lost(use, begin, end)
                    branch.passed = end
                use.renew()
            due = min(due, use.due)
        self._due = due
        if offers:
            offers.sort()
            self._offer(offers)

    def _find_lost(self, use: _Use, begin: int, end: int) -> None:
        """Find which packets of one sender are not offered, and which are lost by unconcerned members."""
        use.absent = ()
        if use.lost:
            use.lost = {}
        total, losses = 0, self.losses
        for _, first, identity, count in use.schedule.spans(use.branch.bit, begin, end):
            total += count
            if losses.unconcerned:
                for place, members in losses.predict_apart(identity, count):
                    use.lost[first + place] = members
        if total < end - begin:
            bit, schedule = use.branch.bit, use.schedule
            use.absent = {number for number in range(begin, end) if schedule.is_absent(number, bit)}

    def count(self, schedule: Schedule) -> None:
        """Count the packets of a schedule that were offered, and their losses."""
        for use in self._uses:
            if use.schedule is schedule:
                self._count(use)

    def _count(self, use: _Use) -> None:
        link, sampler, skip = self.link, self._sampler, use.skip
        begin, use.counted = use.counted, use.branch.passed
        total = 0
        for _, _, identity, count in use.schedule.spans(use.branch.bit, begin, use.counted):
            total += count
            if sampler is None:
                continue
            for _, losers in sampler.predict(identity, count):
                if isinstance(link, LinkGroup):
                    link.count_lost([member for member in listed(losers) if member != skip])
                else:
                    link.lost += 1
            sampler.count(identity, count)
            if skip >= 0 and isinstance(sampler, GroupLoss):
                sampler.leave_out(identity, count, skip)
        link.offered += total * (self.endpoint.count - (skip >= 0))
        if use.branch.router is not None:
            use.branch.router.offered += total

    def _offer(self, offers: Sequence[_Offer]) -> None:
        """Offer packets to the queues, in order of time."""
        link, delay = self.link, self.link.delay
        free = link.queue.free_at
        apart: list[_Apart] | None = None
        for when, _, number, use in offers:
            branch = use.branch
            far = branch.far
            if use.absent and number in use.absent:
                # A packet that goes on by itself has a time, too, so that times ascend.
                far.append(far[-1] if far else when)
                continue
            if apart is None:
                apart = self._apart(when)
            cost = branch.cost
            free = (free if free > when else when) + cost
            far.append(free + delay)
            skip, lost = use.skip, use.lost.get(number, ()) if use.lost else ()
            for each in apart:
                member = each.member
                if member != skip:
                    begin = each.free_at
                    each.free_at = end = (begin if begin > when else when) + cost
                    if member not in lost:
                        each.uncounted.append(end + delay)
        if apart is None:
            return
        link.queue.advance(free)
        if isinstance(link, LinkGroup):
            separate = link.separate_queues
            for each in apart:
                separate[each.member].advance(each.free_at)
        if apart and len(apart[0].uncounted) > MOST_UNCOUNTED:
            self._count_deliveries()

    def _apart(self, now: float) -> list[_Apart]:
        """Return the links of the unconcerned members."""
        link, uncounted = self.link, self._uncounted
        if not isinstance(link, LinkGroup):
            return [_Apart(member, link.queue.free_at, uncounted.setdefault(member, [])) for member in self.losses.unconcerned]
        differ = self._differ(now)
        assert not differ, "the packet goes on by itself"
        unconcerned = self.losses.unconcerned
        return [_Apart(member, link.separate(member).free_at, uncounted.setdefault(member, [])) for member in unconcerned]

    def _differ(self, now: float) -> bool:
        """Return whether the links of those on which packets have an effect differ; idle ones do not any more."""
        link = self.link
        if not isinstance(link, LinkGroup):
            return False
        unconcerned = self.losses.unconcerned
        differ = any(member not in unconcerned for member in link.separate_queues)
        if differ:
            link.rejoin(now)
            differ = any(member not in unconcerned for member in link.separate_queues)
        return differ

    def before_offer(self, link: object, flight: Flight) -> None:
        """See `Reservation`: the packets that come while links differ go on by themselves."""
        del link
        now = self._fabric.kernel.env._now
        self.advance(*self._uses[0].schedule.instant())
        if flight.identity is not None:
            self._count_all()
        route, known, endpoint = flight.route, self.link, self.endpoint
        member = route.member if route.target is not None else flight.place - endpoint.base if route.home is endpoint else -1
        if not self._differ(now) and (member < 0 or endpoint.count == 1 or member in self.losses.unconcerned):
            return
        end = max(now, known.free_at()) + (flight.size + known.overhead) / known.queue.rate
        while following := [each for use in self._uses if (each := use.next_present()) is not None]:
            when, _, number, use = min(following)
            if when >= end or use.schedule.single_out(number, use.branch):
                # When it is offered, the next one is considered.
                return

    # Deliveries

    def catch_up(self) -> None:
        """Bring the counters up to date."""
        self._count_all()
        self._count_deliveries()

    def _count_all(self) -> None:
        """Count the packets that were offered."""
        for use in self._uses:
            if use.counted < use.branch.passed:
                self._count(use)

    def _count_deliveries(self) -> None:
        """Count the deliveries to unconcerned members before the present event."""
        kernel = self._fabric.kernel
        when, priority, *_ = kernel.key
        if when < kernel.env._now:
            # A user's code drives SimPy instead of the kernel.
            when, priority = kernel.env._now, 0
        find = bisect_right if priority == TIMER else bisect_left
        for times in self._uncounted.values():
            arrived = find(times, when)
            self._fabric.delivered += arrived
            del times[:arrived]

    def listeners_change(self, member: int) -> None:
        """Post the deliveries to a member that joins or leaves a group, and go on without lookahead."""
        for use in list(self._uses):
            use.schedule.unfold()
        self.catch_up()
        kernel = self._fabric.kernel
        for when in self._uncounted.pop(member, ()):
            post(kernel.queue, when, ARRIVAL, next(kernel.env._eid), QueueEntry(self._on_uncounted, member))

    def _count_one(self, entry: QueueEntry) -> None:
        """Count a delivery at its time, if the member listens then."""
        self._fabric.delivered += self.endpoint.listens(self._to, entry.content)
