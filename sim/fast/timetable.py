"""The timetable of packets a sender plans to send: when each is offered to each link, when it arrives, and who loses it."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, repeat
from typing import Final, NamedTuple

from protocols.fast.lookahead import Burst
from sim.endpoint import Endpoint
from sim.flight import Hop, Route
from sim.link import Link, LinkGroup
from sim.switch import Switch
from topologies.draws import Losers
from topologies.losses import GroupLoss

__all__ = ["Path", "Segment", "Timetable", "make_timetable", "path_of", "predict_losses"]

MARGIN: Final = 1e-6
"""Seconds, far more than the rounding errors of sums of times."""


class Path:
    """The links from a plain host to one group of hosts: `links`, and behind them the `group`."""

    __slots__ = ("group", "hops", "links")

    def __init__(self, links: list[Link], group: LinkGroup) -> None:
        self.links = links
        self.group = group
        self.hops: list[Link | LinkGroup] = [*links, group]


def path_of(route: Route) -> Path | None:
    """Return the path of a route, if it has lossless plain links without branches to one group of hosts; else None."""
    hops: Sequence[Hop] = route.first
    links: list[Link] = []
    while len(hops) == 1:
        hop = hops[0]
        if type(hop) is LinkGroup:
            return Path(links, hop) if links and _is_simple(hop, route) else None
        if type(hop) is not Link or not _is_plain(hop) or hop.sampler is not None:
            return None
        links.append(hop)
        head = hop.head
        if type(head) is not Switch:
            return None
        hops = head.next_links(route)
    return None


def _is_plain(link: Link | LinkGroup) -> bool:
    return link.framing is None and link.is_constant


def _is_simple(group: LinkGroup, route: Route) -> bool:
    return (
        _is_plain(group)
        and type(group.head) is Endpoint
        and type(group.sampler) in (GroupLoss, type(None))
        and group.head is not route.home
    )


class Segment:
    """One burst in flight: `start` is the number of its first packet, `costs` the seconds each packet takes at the queues."""

    __slots__ = ("burst", "costs", "order", "start")

    def __init__(self, burst: Burst, start: int, order: int, costs: list[float]) -> None:
        self.burst = burst
        self.start = start
        self.order = order
        """Order of the first packet (`sim.flight.Flight`)."""
        self.costs = costs


class Timetable(NamedTuple):
    """The computed part of some bursts."""

    times: list[list[float]]
    """For each link the times (seconds) at which packets are offered to it, and last the times at which they arrive."""
    losses: list[tuple[int, Losers]]
    """The packets that some members lose, as (number, members), ascending."""
    costs: list[float]
    """Seconds each packet takes at each queue."""


def make_timetable(bursts: Sequence[Burst], path: Path, free_at: list[float], first: int) -> Timetable:
    """Compute bursts as far as packets find all queues idle, and some member receives each.

    The bursts follow each other and have one size and interval. Packets are numbered from `first`; `free_at` are the times at
    which the queues of the path become idle.
    """
    burst = bursts[0]
    sampler = path.group.sampler
    assert sampler is None or isinstance(sampler, GroupLoss)
    count, losses = predict_losses(bursts, sampler, path.group.head.count, first)
    offers = list(accumulate(repeat(burst.interval, count - 1), initial=burst.begin)) if count else []
    del offers[bisect_left(offers, burst.until) :]
    costs, times = [], [offers]
    for link, idle in zip(path.hops, free_at, strict=True):
        cost, delay = (burst.size + link.overhead) / link.queue.rate, link.delay
        offered = times[-1]
        if offered and idle <= offered[0] and cost + MARGIN < burst.interval:
            # Each packet is sent long before the next is offered.
            arrivals = [offer + cost + delay for offer in offered]
        else:
            arrivals = []
            for offer in offered:
                if idle > offer:
                    break
                idle = offer + cost
                arrivals.append(idle + delay)
        times.append(arrivals)
        costs.append(cost)
    if len(times[-1]) < count:
        count = len(times[-1])
        for column in times:
            del column[count:]
        losses = [loss for loss in losses if loss[0] < first + count]
    return Timetable(times, losses, costs)


def predict_losses(
    bursts: Sequence[Burst], sampler: GroupLoss | None, members: int, first: int
) -> tuple[int, list[tuple[int, Losers]]]:
    """Predict the losses of bursts whose packets are numbered from `first`.

    Returns (n, losses): n counts packets up to the first that all `members` lose, and losses lists (packet number, members).
    """
    total = first
    losses: list[tuple[int, Losers]] = []
    for burst in bursts:
        count, found = (burst.count, []) if sampler is None else sampler.predict_losses(burst.identity, burst.count, total)
        for end in [at for at, lost_by in found if len(lost_by) == members]:
            # A packet that all members lose has no arrival.
            return end - first, losses + [loss for loss in found if loss[0] < end]
        losses += found
        total += count
        if count < burst.count:
            break
    return total - first, losses
