"""What becomes of packets a sender foresees: when they are at each link and at their end, and who misses them."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, repeat
from typing import Any

from protocols.fast.lookahead import Burst
from sim.endpoint import Endpoint, Switch
from sim.flight import Route
from sim.link import Fifo, Link, LinkGroup
from topologies.draws import Losers
from topologies.losses import GroupLoss

__all__ = ["Timetable", "Segment", "predict_losses", "make_plan", "path_of"]

MARGIN = 1e-6
"""Seconds, far more than what rounding makes of sums of times."""


def path_of(route: Route) -> list[Any] | None:
    """The links from a plain host to one group of leaves, if all are of the simplest kind and lead nowhere else."""
    links: Sequence[Any] = route.first
    path: list[Any] = []
    while len(links) == 1 and type(links[0]) is Link and _is_plain(links[0]) and links[0].sampler is None:
        path.append(links[0])
        head = links[0].head
        if type(head) is not Switch:
            return None
        links = route.links.get(head.name) or head.network.routes.next_links(route, head)
    if not path or len(links) != 1 or type(links[0]) is not LinkGroup or not _is_plain(links[0]):
        return None
    bundle = links[0]
    simple = type(bundle.head) is Endpoint and type(bundle.sampler) in (GroupLoss, type(None)) and bundle.head is not route.home
    return [*path, bundle] if simple else None


def _is_plain(link: Link | LinkGroup) -> bool:
    return type(link.fifo) is Fifo and link.fixed


class Segment:
    """One run on its way: `start` is the number of its first packet, `costs` the seconds of each on the ports."""

    __slots__ = ("costs", "order", "run", "start")

    def __init__(self, run: Burst, start: int, order: int, costs: list[float]) -> None:
        self.run = run
        self.start = start
        self.order = order
        self.costs = costs


class Timetable:
    """What becomes of packets: `times` when each is offered to each link and when it is there, `costs` the seconds it takes.

    `losers` has those somebody misses, by number, in order.
    """

    __slots__ = ("costs", "losers", "times")

    def __init__(self, times: list[list[float]], losers: list[tuple[int, Losers]], costs: list[float]) -> None:
        self.times = times
        self.losers = losers
        self.costs = costs


def make_plan(runs: Sequence[Burst], path: list[Any], free: list[float], first: int) -> Timetable:
    """As much of the runs as comes to anybody and finds all ports idle; `free` is when each of the `path` is.

    The runs follow each other and are of one size and interval; packets are numbered from `first`.
    """
    run = runs[0]
    count, losers = predict_losses(runs, path[-1].sampler, path[-1].head.count, first)
    offers = list(accumulate(repeat(run.interval, count - 1), initial=run.begin)) if count else []
    del offers[bisect_left(offers, run.until) :]
    costs, times = [], [offers]
    for link, idle in zip(path, free, strict=True):
        cost, delay = (run.size + link.fifo.overhead) / link.fifo.rate, link.fifo.delay
        coming = times[-1]
        if coming and idle <= coming[0] and cost + MARGIN < run.interval:
            # Each has gone long before the next comes.
            arrivals = [offer + cost + delay for offer in coming]
        else:
            arrivals = []
            for offer in coming:
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
        losers = [pair for pair in losers if pair[0] < first + count]
    return Timetable(times, losers, costs)


def predict_losses(
    runs: Sequence[Burst], sampler: GroupLoss | None, leaves: int, first: int
) -> tuple[int, list[tuple[int, Losers]]]:
    """How many packets of the runs can be told of until one comes to nobody, and those somebody misses, from `first`."""
    total = first
    losers: list[tuple[int, Losers]] = []
    for run in runs:
        count, found = (run.count, []) if sampler is None else sampler.predict_losses(run.identity, run.count, total)
        for end in [at for at, out in found if len(out) == leaves]:
            # A packet that comes to nobody has no arrival.
            return end - first, losers + [pair for pair in found if pair[0] < end]
        losers += found
        total += count
        if count < run.count:
            break
    return total - first, losers
