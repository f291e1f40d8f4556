"""Packets scheduled ahead that are in flight, and the state of the links, brought up to date when it is needed."""

from bisect import bisect_left, bisect_right
from typing import Final, TypeAlias

from protocols.fast.lookahead import Burst
from sim.fast.shared_losses import SharedLosses
from sim.fast.tree import MARGIN, Branch, PlainLink, Point, Sampler, Tree
from sim.flight import Route
from sim.host import SimHost
from sim.link import Link, LinkGroup
from sim.queue_entry import ARRIVAL, TIMER
from topologies.draws import Losers, listed

__all__ = ["InFlight", "Segment", "Span"]

Span: TypeAlias = "tuple[Segment, int, int, int]"
"""Packets of one segment: number and identity of the first, and how many there are."""
PIECE: Final = 512
"""Most losses of which lists are made at a time."""


class Segment:
    """One burst in flight: `start` is the number of its first packet, `order` that packet's order (`sim.flight.Flight`)."""

    __slots__ = ("burst", "order", "start")

    def __init__(self, burst: Burst, start: int, order: int) -> None:
        self.burst = burst
        self.start = start
        self.order = order


class InFlight:
    """The packets of one host on one route, numbered from 0 in the order of sending."""

    def __init__(self, host: SimHost, route: Route, tree: Tree) -> None:
        self.host = host
        self.tree = tree
        self.fabric = host.endpoint.fabric
        self.kernel = self.fabric.kernel
        self.route = route
        self.source = host.name
        """Address of the sender."""
        self._root = tree.branches[0]
        self._segments: list[Segment] = []
        self._starts: list[int] = []
        self.base = 0
        """The first packet whose time is known still."""
        self.sent_at: list[float] = []
        """When each packet from `base` on is sent."""
        # Packets that are not offered with the others to all links, ascending; for each the bits of the links that it does not
        # reach, or is offered to by an event of its own.
        self._excluded: list[int] = []
        self._absent: dict[int, int] = {}
        self.end = 0
        """How many packets there are."""
        # By identity: the last packet of a repeated burst with it. Ascending, as are the losses of a branch.
        self._repeated: dict[int, int] = {}

    # Numbers and times

    def instant(self) -> tuple[float, int, int]:
        """Return time, priority and order of the present event."""
        kernel = self.kernel
        key, now = kernel.key, kernel.env._now
        # It is in the past while a user's code drives SimPy instead of the kernel.
        return (key[0], key[1], key[2]) if key[0] >= now else (now, 0, 0)

    def time_at(self, number: int, point: Point) -> float:
        """Return when a packet gets to a point of the tree, in seconds; it must be known (`known_at`)."""
        when = (self.sent_at if point.source is None else point.source.far)[number - self.base]
        for step in point.steps:
            when += step
        return when

    def segment(self, number: int) -> Segment:
        """Return the segment of a packet."""
        last = self._segments[-1]
        if number >= last.start:
            return last
        return self._segments[bisect_right(self._starts, number) - 1]

    def sole_segment(self, begin: int, end: int) -> Segment | None:
        """Return the segment of these packets if it is one and all of them take part everywhere, as is usual; else None."""
        excluded, segment = self._excluded, self._segments[-1]
        if excluded and excluded[-1] >= begin:
            return None
        if begin < segment.start:
            segment = self._segments[bisect_right(self._starts, begin) - 1]
            if end > segment.start + segment.burst.count:
                return None
        return segment

    def order(self, number: int, rank: int) -> int:
        """Return the order of a packet's arrival at a point with this rank."""
        segment = self.segment(number)
        return segment.order + (number - segment.start << 24) + rank

    def known_at(self, number: int, point: Point) -> Point:
        """Return the last point on the way to this one at which the time of a packet is known: it may have to wait there."""
        while point.source is not None and number >= point.source.passed:
            point = point.source
        return point

    def reached(self, begin: int, point: Point, when: float, priority: int, order: int) -> int:
        """Return how many packets have got to a point before an instant, given that those before `begin` have."""
        base, end, column = self.base, self.end, self.sent_at
        if begin >= end:
            return begin
        source = point.source
        if source is not None:
            self._advance(source, when, priority, order)
            end, column = source.passed, source.far
        latest = when - point.latency
        number = bisect_left(column, latest - MARGIN, begin - base) + base
        while number < end and column[number - base] <= latest + MARGIN:
            there = self.time_at(number, point)
            if there > when:
                break
            # Over links without delay it may not have been sent yet.
            if there == when and not (
                (ARRIVAL, self.order(number, point.rank)) < (priority, order) and number < self._departed(when, priority)
            ):
                break
            number += 1
        return number

    def spans(self, bit: int, begin: int, end: int) -> list[Span]:
        """Return the packets among these that take part in the link with this bit, as runs of consecutive identities."""
        found: list[Span] = []
        if begin >= end:
            return found
        sole = self.sole_segment(begin, end)
        if sole is not None:
            return [(sole, begin, sole.burst.identity + begin - sole.start, end - begin)]
        excluded, absent = self._excluded, self._absent
        gaps: list[int] = []
        if excluded:
            some = excluded[bisect_left(excluded, begin) : bisect_left(excluded, end)]
            gaps = [number for number in some if absent[number] & bit]
        at = bisect_right(self._starts, begin) - 1
        while begin < end:
            segment = self._segments[at]
            at += 1
            stop = segment.start + segment.burst.count
            if stop > end:  # noqa: PLR1730 (half the cost of min)
                stop = end
            for gap in gaps:
                if begin <= gap < stop:
                    if begin < gap:
                        found.append((segment, begin, segment.burst.identity + begin - segment.start, gap - begin))
                    begin = gap + 1
            if begin < stop:
                found.append((segment, begin, segment.burst.identity + begin - segment.start, stop - begin))
            begin = stop
        return found

    def losses_on(self, branch: Branch, sampler: Sampler, span: Span) -> list[tuple[int, Losers]]:
        """Return which packets of a span some lose on a link: how far each is behind the first, and who loses it."""
        segment, first, identity, count = span
        if not segment.burst.is_repeated:
            return sampler.predict(identity, count)
        known = branch.losses
        numbers = range(first, first + count) if known else ()
        return [(number - first, listed(known[number])) for number in numbers if number in known]

    def is_absent(self, number: int, bit: int) -> bool:
        """Return whether a packet does not take part in the link with this bit."""
        return self._absent.get(number, 0) & bit != 0

    def exclude(self, number: int, bits: int) -> None:
        """Let a packet not take part in the links with these bits."""
        known = self._absent.get(number)
        if known is None:
            place = bisect_left(self._excluded, number)
            self._excluded.insert(place, number)
            known = 0
        self._absent[number] = known | bits

    def is_apart(self, branch: Branch, begin: float, end: float) -> bool:
        """Return whether it is known that no packet is on a link from `begin` until `end` seconds, or just before or after."""
        if branch.is_contested or branch.source is not None:
            return False
        column, latency = self.sent_at, branch.latency
        number = bisect_left(column, begin - latency - branch.cost - MARGIN)
        return number == len(column) or column[number] + latency > end + MARGIN

    # Bringing up to date

    def _departed(self, when: float, priority: int) -> int:
        """Return how many packets the host has sent."""
        begin, base, column = self._root.passed, self.base, self.sent_at
        if begin == self.end or column[begin - base] > when:
            return begin
        find = bisect_right if priority == TIMER else bisect_left
        return find(column, when, begin - base) + base

    def _depart(self, when: float, priority: int) -> None:
        """Apply what the host has sent."""
        begin, end = self._root.passed, self._departed(when, priority)
        if end > begin:
            self._send(begin, end)

    def _send(self, begin: int, end: int) -> None:
        """Apply the sending of these packets."""
        fabric, burst = self.fabric, self._segments[-1].burst
        # All bursts in flight at one time have one kind and size.
        fabric.packets[burst.kind] += end - begin
        fabric.octets[burst.kind] += (end - begin) * burst.size
        self._pass(self._root, end)
        if fabric.observers:
            self._report(begin, end)

    def _report(self, begin: int, end: int) -> None:
        """Tell the observers of the network that these packets were sent."""
        while begin < end:
            segment = self.segment(begin)
            burst, number = segment.burst, begin - segment.start
            behind = min(end, segment.start + burst.count)
            times = self.sent_at[begin - self.base : behind - self.base]
            for observer in self.fabric.observers:
                if burst.is_new:
                    observer.sent_new(times, self.host, burst.kind, burst.size, burst.identity_of(number))
                    continue
                for place, when in enumerate(times, number):
                    observer.sent(when, self.host, burst.message(place), burst.size)
            begin = behind

    def _advance(self, branch: Branch, when: float, priority: int, order: int) -> None:
        """Apply what was offered to a link other than the first before this instant."""
        if branch.shared is not None:
            branch.shared.advance(when, priority, order)
            return
        end = self.reached(branch.passed, branch, when, priority, order)
        if end > branch.passed:
            self._pass(branch, end)

    def _pass(self, branch: Branch, end: int) -> None:
        """Apply that the packets before `end` were offered to a link."""
        begin, link = branch.passed, branch.link
        if branch.is_contested:
            self._queue(branch, end)
            return
        branch.passed = end
        spans = self.spans(branch.bit, begin, end)
        if not spans:
            return
        _, start, _, count = spans[-1]
        last = self.time_at(start + count - 1, branch)
        if len(spans) > 1:
            count = sum([span[3] for span in spans])
        if branch.router is not None:
            branch.router.offered += count
        if isinstance(link, LinkGroup):
            link.offered += count * link.head.count
            if link.separate_queues:
                link.rejoin(last)
        else:
            link.offered += count
        idle = last + branch.cost
        if idle > link.queue.free_at:
            # Otherwise a packet of another sender was offered since.
            link.queue.advance(idle)
        if branch.sampler is not None:
            self._count_losses(branch, branch.sampler, spans)

    def _queue(self, branch: Branch, end: int) -> None:
        """Offer the packets before `end` to a contested link, one by one; the queue may drop some."""
        begin, link, base = branch.passed, branch.link, self.base
        assert isinstance(link, Link)
        octets, queue, delay, far = self.tree.size + link.overhead, link.queue, link.delay, branch.far
        dropped: list[int] = []
        for number in range(begin, end):
            offered = self.time_at(number, branch)
            idle: float | None = None
            if not self.is_absent(number, branch.bit):
                link.offered += 1
                if branch.router is not None:
                    branch.router.offered += 1
                idle = queue.offer(octets, offered)
                if idle is None:
                    link.dropped += 1
                    dropped.append(number)
            # A packet that does not get there has a time, too, so that times ascend.
            far.append(idle + delay if idle is not None else far[-1] if far else offered)
        branch.passed = end
        if branch.sampler is not None:
            spans = self.spans(branch.bit, begin, end)
            self._count_losses(branch, branch.sampler, spans)
            # What the queue dropped was not lost.
            link.lost -= sum(
                [span[1] + place in dropped for span in spans for place, _ in self.losses_on(branch, branch.sampler, span)]
            )
        assert len(far) == end - base
        for number in dropped:
            self.exclude(number, branch.subtree & ~branch.bit)
        if dropped:
            self.note_drop(branch, dropped[0])

    def note_drop(self, branch: Branch, number: int) -> None:
        """Handle that a contested link dropped this packet, and perhaps later ones."""

    def contest(self, branch: Branch) -> None:
        """Let packets wait at a link from now on."""
        arrived = branch.cost
        delay = branch.link.delay
        branch.far = [self.time_at(number, branch) + arrived + delay for number in range(self.base, branch.passed)]
        branch.is_contested = True

    def _count_losses(self, branch: Branch, sampler: Sampler, spans: list[Span]) -> None:
        """Count these packets in the sampler of a link, and what the link loses of them."""
        link, known = branch.link, branch.losses
        for segment, first, identity, count in spans:
            burst = segment.burst
            if not burst.is_repeated:
                _count_lost(link, sampler.count(identity, count))
                continue
            for number in range(first, first + count):
                assert not isinstance(sampler, SharedLosses), "several senders plan no repeats"
                sampler.count_next(burst.identity_of(number - segment.start))
                if number in known:
                    _count_lost(link, known[number])


def _count_lost(link: PlainLink, losses: Losers) -> None:
    """Count that members lost packets on a link, each once for every packet."""
    if isinstance(link, LinkGroup):
        for at in range(0, len(losses), PIECE):
            link.count_lost(listed(losses[at : at + PIECE]))
    else:
        link.lost += len(losses)
