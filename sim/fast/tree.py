"""The tree of plain links from a host to the groups of hosts that receive it, on which packets can be scheduled ahead.

While every queue is idle when a packet of a burst is offered to it, the packet's time at any point of the tree is the time at
which it was sent plus the transmission and propagation times of the links up to there, added one by one as the links add them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, TypeAlias

from sim.endpoint import Endpoint
from sim.fast.shared_losses import SharedLosses
from sim.flight import Hop, Route
from sim.host import SimHost
from sim.link import Link, LinkGroup
from sim.member_uplinks import MemberUplink, MemberUplinks
from sim.router import Router
from sim.switch import Switch
from topologies.content_loss import ContentGroupLoss, ContentLinkLoss
from topologies.draws import Losers
from topologies.losses import GroupLoss, LinkLoss

__all__ = ["CONFLICTS", "Branch", "MARGIN", "PlainLink", "Point", "Sampler", "Sharing", "Tree", "sampler_of", "tree_of"]

MARGIN: Final = 1e-6
"""Seconds, far more than the rounding errors of sums of times."""
CONFLICTS: Final = 16
"""A link is contested if it is found busy by two packets that are fewer than this many apart."""

PLAIN_LOSSES: Final = (GroupLoss, LinkLoss, ContentGroupLoss, ContentLinkLoss, type(None))
"""The samplers whose losses can be computed ahead, because they depend on the identities of packets alone."""

PlainLink: TypeAlias = Link | LinkGroup | MemberUplink
Sampler: TypeAlias = GroupLoss | LinkLoss | SharedLosses


class Point:
    """A point of a tree that packets reach."""

    __slots__ = ("floor", "latency", "rank", "source", "steps")

    def __init__(self) -> None:
        self.rank = 0
        """Orders the arrivals of one packet: 0 at the sender, then as the switches forward it if it never waits."""
        self.source: Branch | None = None
        """The last contested link before this point; None if there is none: the times are those of the sender."""
        self.steps: list[float] = []
        """Seconds from the source to here: transmission and propagation of each link, in this order."""
        self.latency = 0.0
        """Their sum."""
        self.floor = 0.0
        """Seconds from the sender to here if no packet waits."""

    def put_behind(self, branch: "Branch") -> None:
        """Compute the way to this point, the far end of a link."""
        self.floor = branch.floor + branch.cost + branch.link.delay
        self.source = branch if branch.is_contested else branch.source
        self.steps = [] if branch.is_contested else [*branch.steps, branch.cost, branch.link.delay]
        self.latency = sum(self.steps)


class Sharing(ABC):
    """Offers the packets of several senders to a link to hosts (`sim.fast.shared_hop`); a `schedule` has those of one."""

    def __init__(self, losses: SharedLosses) -> None:
        self.losses = losses

    @abstractmethod
    def attach(self, schedule: Any) -> bool:
        """Return whether packets of another sender can be scheduled."""

    @abstractmethod
    def admits(self, schedule: Any, branch: "Branch", first: float) -> bool:
        """Return whether packets can be scheduled, the first of which is offered at `first` seconds."""

    @abstractmethod
    def add(self, schedule: Any, branch: "Branch") -> None:
        """Offer the packets of a schedule from now on."""

    @abstractmethod
    def remove(self, schedule: Any) -> None:
        """Offer the packets of a schedule no more."""

    @abstractmethod
    def renew(self, schedule: Any) -> None:
        """Note that more packets are scheduled."""

    @abstractmethod
    def count(self, schedule: Any) -> None:
        """Count the packets of a schedule that were offered, and their losses."""

    @abstractmethod
    def advance(self, when: float, priority: int, order: int) -> None:
        """Offer what comes before this instant."""


class Branch(Point):
    """The near end of a link of the tree, where packets are offered to it. The links are numbered from 0, parents first."""

    __slots__ = (
        "bit",
        "children",
        "cost",
        "far",
        "index",
        "is_contested",
        "last_conflict",
        "link",
        "losses",
        "parent",
        "passed",
        "rank_behind",
        "router",
        "sampler",
        "shared",
        "subtree",
    )

    def __init__(self, link: PlainLink, index: int, parent: "Branch | None") -> None:
        super().__init__()
        self.link = link
        self.sampler: Sampler | None = sampler_of(link)
        self.index: int = index
        self.parent = parent
        self.children: list[Branch] = []
        self.router: Router | None = None
        """The router whose packets are counted with this link's: it is before the link, which is the first behind it."""
        if parent is not None:
            if not parent.children and isinstance(parent.link.head, Router):
                self.router = parent.link.head
            parent.children.append(self)
        self.bit = 1 << index
        self.subtree = 0
        """The bits of this link and all behind it."""
        self.cost = 0.0
        """Seconds a packet takes to be sent."""
        self.rank_behind = 0
        """The rank of the link's far end."""
        self.passed = 0
        """How many packets have been offered to the link, as far as that is applied."""
        self.is_contested = False
        """Whether packets may wait here: their times behind the link are known only when they have been offered to it."""
        self.shared: Sharing | None = None
        """What offers the packets of several senders to the link, where it is one to hosts; then it is contested."""
        self.far: list[float] = []
        """Of a contested link, when the packets offered get to its far end."""
        self.losses: dict[int, Losers] = {}
        """Of packets in repeated bursts (`Burst.is_repeated`) that some members lose on the link: the members, by number."""
        self.last_conflict = -CONFLICTS
        """The last packet that found the link busy."""

    def share(self, hop: Sharing) -> None:
        """Let other senders schedule packets on the link, too."""
        self.shared, self.sampler = hop, hop.losses


class Tree:
    """The links of a route, `branches`, parents first, and the last of each way, which lead to hosts: `leaves`."""

    def __init__(self, branches: list[Branch]) -> None:
        self.branches = branches
        self.leaves = [branch for branch in branches if type(branch.link.head) is Endpoint]
        self.size = 0
        for branch in reversed(branches):
            branch.subtree |= branch.bit
            if branch.parent is not None:
                branch.parent.subtree |= branch.subtree

    def ends_with(self, link: PlainLink) -> bool:
        """Return whether a link leads to hosts here."""
        return any(leaf.link is link for leaf in self.leaves)

    def set_size(self, size: int) -> None:
        """Compute the times of packets of `size` bytes of UDP payload, without contested links."""
        self.size = size
        for branch in self.branches:
            branch.cost = (size + branch.link.overhead) / branch.link.queue.rate
            branch.is_contested = branch.shared is not None
        self.update()
        self._rank()

    def _rank(self) -> None:
        """Number the arrivals of a packet in the order in which the switches post them."""
        number = 0
        switches: list[tuple[float, int, list[Branch]]] = [(0.0, 0, self.branches[:1])]
        while switches:
            when, rank, branches = heappop(switches)
            for branch in branches:
                number += 1
                branch.rank, branch.rank_behind = rank, number
                heappush(switches, (when + branch.cost + branch.link.delay, number, branch.children))

    def update(self) -> None:
        """Compute the way to each link, after a change of those that are contested."""
        for branch in self.branches:
            if branch.parent is not None:
                branch.put_behind(branch.parent)


def tree_of(route: Route, host: SimHost) -> Tree | None:
    """Return the tree of a multicast route from a host; None unless it is made of plain links and switches, which take time."""
    endpoint = host.endpoint
    first = endpoint.first_links(host, route)
    if len(first) != 1 or route.target is not None:
        return None
    branches: list[Branch] = []
    # In the order in which a packet gets to them if all links take equally long.
    frontier: list[tuple[Branch | None, Sequence[Hop]]] = [(None, first)]
    for parent, hops in frontier:
        for hop in hops:
            link = _plain(hop.uplink(host.place) if type(hop) is MemberUplinks else hop)
            if link is None:
                return None
            branch = Branch(link, len(branches), parent)
            branches.append(branch)
            head = link.head
            if isinstance(head, Switch):
                frontier.append((branch, head.next_links(route)))
    tree = Tree(branches)
    for leaf in tree.leaves:
        if _takes_no_time(leaf) and (len(tree.leaves) > 1 or all(_takes_no_time(branch) for branch in branches)):
            # Feedback may be at the other leaves, or at the sender, at the very instant of the packet that it answers.
            return None
    return tree


def _takes_no_time(branch: Branch) -> bool:
    """Return whether packets of any size are at the far end of a link when they are offered to it."""
    return branch.link.delay == 0.0 and branch.link.queue.rate == inf


def _plain(hop: object) -> PlainLink | None:
    """Return the link if its arrivals and losses can be computed ahead, and it leads to a plain switch or plain hosts."""
    if type(hop) is not Link and type(hop) is not LinkGroup and type(hop) is not MemberUplink:
        return None
    assert isinstance(hop, (Link, LinkGroup, MemberUplink))
    head = hop.head
    if hop.framing is not None or not hop.is_constant:
        return None
    if type(head) is not Switch and type(head) is not Endpoint and not (type(head) is Router and head.is_immediate):
        return None
    if type(hop.sampler) not in PLAIN_LOSSES:
        return None
    return hop


def sampler_of(link: PlainLink) -> GroupLoss | LinkLoss | None:
    """Return what decides on the losses of a plain link."""
    sampler: object = link.sampler
    assert sampler is None or isinstance(sampler, (GroupLoss, LinkLoss))
    return sampler
