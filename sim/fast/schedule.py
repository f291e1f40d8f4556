"""The schedule of bursts on a tree: when their packets are sent, and at which links they may wait."""

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, repeat

from protocols.fast.lookahead import Burst
from sim.fast.in_flight import InFlight
from sim.fast.last_hop import LastHop
from sim.fast.tree import MARGIN, Branch, Tree
from sim.flight import Flight, Route
from sim.host import SimHost
from sim.link import Link
from sim.queue_entry import ARRIVAL, QueueEntry, post
from sim.switch import Switch

__all__ = ["Offer", "Schedule"]


class Offer:
    """A place at the switch behind `branch` where a packet goes on over the links of some `children` only."""

    def __init__(self, branch: Branch, children: Sequence[Branch], in_flight: InFlight) -> None:
        self._branch = branch
        self._links: list[object] = [child.link for child in children]
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


class Schedule(InFlight):
    """Packets in flight with the groups of hosts they go to, and the links at which they may wait."""

    def __init__(self, host: SimHost, route: Route, tree: Tree) -> None:
        super().__init__(host, route, tree)
        self._leaves = [LastHop(branch, self, self.unfold) for branch in tree.leaves]
        # The packets offered to a link on their own, by number.
        self._offers: dict[int, list[Offer]] = {}
        # By contested link with a limited queue, the event at which its queue is looked at next.
        self._looks: dict[Branch, QueueEntry] = {}
        self._on_look = (self._look,)

    @abstractmethod
    def unfold(self) -> None:
        """Materialise the packets in flight."""

    @abstractmethod
    def single_out(self, number: int, branch: Branch) -> bool:
        """Let a packet that finds a link busy be offered to it at its time, and go on from there by itself.

        Return False if all packets in flight go on by themselves.
        """

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

    def _set_size(self, size: int) -> bool:
        """Compute the times of packets of this size; return False if packets of another size are still in flight."""
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
        for branch in self.tree.leaves:
            if branch.shared is not None:
                branch.shared.count(self)
        samplers = [branch.sampler for branch in self.tree.branches if branch.sampler is not None]
        if any(burst.is_repeated for burst in bursts):
            self.catch_up()
        for burst in bursts:
            count = burst.count
            if burst.is_repeated:
                count = self._predictable_repeats(burst) if all(sampler.is_uniform for sampler in samplers) else 0
            else:
                for sampler in samplers:
                    count = min(count, sampler.predictable(burst.identity, count))
            total += count
            if count < burst.count:
                break
        return total

    def _predictable_repeats(self, burst: Burst) -> int:
        """Return how many packets of a repeated burst come after all others with their identities, which are counted by now.

        All links are up to date.
        """
        passed, repeated = min([branch.passed for branch in self.tree.branches]), self._repeated
        identities = [burst.identity_of(number) for number in range(burst.count)]
        for number, identity in enumerate(identities):
            if identity in repeated and repeated[identity] >= passed:
                return number
        for segment in reversed(self._segments):
            first, end = segment.burst.identity, segment.burst.identity + segment.burst.count
            if segment.start + segment.burst.count <= passed:
                break
            if not segment.burst.is_repeated and any(first <= identity < end for identity in identities):
                return 0
        return burst.count

    def _find_times(self, burst: Burst, count: int) -> list[float]:
        """Return when up to `count` packets are sent: those before `burst.until`; none if they can't be scheduled now.

        They find all queues idle, except those of contested links.
        """
        sent_at = list(accumulate(repeat(burst.interval, count - 1), initial=burst.begin)) if count else []
        del sent_at[bisect_left(sent_at, burst.until) :]
        for branch in self.tree.branches:
            if branch.shared is not None and sent_at and not branch.shared.admits(self, branch, sent_at[0] + branch.floor):
                return []
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
        """Return when a link has sent all that was offered, and all that is in flight to it from here if none waits."""
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
            for leaf in self._leaves:
                # The time of an arrival that is posted is not known any more.
                leaf.wake_in_lockstep()
        for each in contested:
            self._post_look(each)
        return bool(contested)

    def _contested_with(self, branch: Branch) -> list[Branch]:
        """Return a link, and those behind it at which packets may wait then: they follow each other as close as it sends them.

        Nothing if one of these is the first link or one to a group of hosts, where packets can't wait.
        """
        if branch.parent is None or branch.shared is not None or not isinstance(branch.link, Link) or branch.cost < 2 * MARGIN:
            return []
        contested = [branch]
        behind = list(branch.children)
        for child in behind:
            if child.is_contested and child.shared is None:
                continue
            if child.shared is None and child.cost + MARGIN <= branch.cost:
                behind += child.children
                continue
            more = self._contested_with(child)
            if not more:
                return []
            contested += more
        return contested

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

    def _is_over(self) -> bool:
        """Return whether no packet is in flight, as far as that is applied."""
        end = self.end
        return all(leaf.arrived == end for leaf in self._leaves) and all(branch.passed == end for branch in self.tree.branches)

    # Contested links

    def _post_look(self, branch: Branch) -> None:
        """Post an event before the first packet not yet offered could arrive: if it is dropped, the next is an event."""
        self._looks.pop(branch, None)
        number = branch.passed
        if branch.link.queue.limit is None or number >= self.end:
            return
        point = self.known_at(number, branch)
        way = min([leaf.floor for leaf in self._leaves if leaf.branch.bit & branch.subtree]) - point.floor
        entry = self._looks[branch] = QueueEntry(self._on_look, branch)
        env = self.kernel.env
        post(self.kernel.queue, max(env._now, self.time_at(number, point) + way - MARGIN), ARRIVAL, next(env._eid), entry)

    def _look(self, entry: QueueEntry) -> None:
        branch: Branch = entry.content
        if self._looks.get(branch) is not entry:
            return
        kernel = self.kernel
        kernel.busy = True
        self._advance(branch, *self.instant())
        self._post_look(branch)
        kernel.settle_inputs()
