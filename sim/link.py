"""Links: an analytic drop-tail queue, serialisation and propagation, then loss. No event is spent on any of them.

Packets must be offered in order of time. What arrives is written into `landings`: time -> list of (place, members left out).
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mypy_extensions import mypyc_attr

from topologies.ethernet import wire_bytes
from topologies.spec import LinkSpec

if TYPE_CHECKING:
    from sim.endpoint import Endpoint
    from sim.fast.lookahead import Lookahead
    from sim.flight import Flight

__all__ = ["LinkGroup", "Carrier", "Fifo", "FramedFifo", "Hop", "Arrivals", "Link", "Places"]

Places: TypeAlias = list[tuple[Any, Sequence[int]]]
Arrivals: TypeAlias = dict[float, Places]


class Carrier(Protocol):
    """Whatever takes a packet and says where and when it lands."""

    def carry(self, flight: "Flight", now: float, landings: Arrivals) -> None:
        """Take a packet at its near end."""


class Hop(Carrier, Protocol):
    """One direction of a link, or of the links to a counted group; who watches or pauses it stands in its place."""

    def ports(self) -> Sequence[Any]:
        """Its queues."""

    def lost_by(self, member: int) -> int:
        """Packets that one member missed here; 0 names the only one."""

    def counts(self) -> tuple[int, ...]:
        """Packets offered, dropped by the queue, lost, corrupt, marked, duplicated."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Fifo:
    """One output port: `limit` packets may wait behind the one being sent."""

    __slots__ = ("_spec", "delay", "departures", "free_at", "limit", "overhead", "rate")

    def __init__(self, spec: LinkSpec) -> None:
        self._spec = spec
        self.rate = spec.rate
        self.delay = spec.delay
        self.overhead = spec.overhead if isinstance(spec.overhead, int) else 0
        self.limit = spec.queue
        self.free_at = 0.0
        self.departures: deque[float] | None = None if spec.queue is None else deque()

    def offer(self, size: int, now: float) -> float:
        """When a packet of `size` bytes offered now arrives at the other end; -1.0 when the queue is full."""
        departures = self.departures
        if departures is not None:
            while departures and departures[0] <= now:
                departures.popleft()
            # The first of those not yet gone is in service; only the others wait.
            if len(departures) > self.limit:  # type: ignore[operator]
                return -1.0
        start = self.free_at
        if start < now:  # noqa: PLR1730 (half the cost of max, on the path of every packet)
            start = now
        self.free_at = start = start + (size + self.overhead) / self.rate
        if departures is not None:
            departures.append(start)
        return start + self.delay

    def fork(self) -> "Fifo":
        """A port in the same state that goes its own way."""
        return self._equal(Fifo(self._spec))

    def _equal(self, twin: "Fifo") -> "Fifo":
        twin.free_at = self.free_at
        if self.departures is not None:
            twin.departures = self.departures.copy()
        return twin


@mypyc_attr(allow_interpreted_subclasses=True)
class FramedFifo(Fifo):
    """One output port that counts every byte of Ethernet (`topologies.ethernet`)."""

    __slots__ = ("framing",)

    def __init__(self, spec: LinkSpec) -> None:
        super().__init__(spec)
        assert not isinstance(spec.overhead, int)
        self.framing = spec.overhead

    def offer(self, size: int, now: float) -> float:
        """As `Fifo`."""
        return super().offer(wire_bytes(size, self.framing), now)

    def fork(self) -> Fifo:
        """As `Fifo`."""
        return self._equal(FramedFifo(self._spec))


def _port(spec: LinkSpec) -> Fifo:
    return Fifo(spec) if isinstance(spec.overhead, int) else FramedFifo(spec)


@mypyc_attr(allow_interpreted_subclasses=True)
class Link:
    """One direction of a link that stands alone, to a switch or a plain host (`head`)."""

    __slots__ = ("dropped", "fifo", "fixed", "head", "lookahead", "lost", "offered", "sampler")

    def __init__(self, spec: LinkSpec, head: Any, key: int) -> None:
        self.head = head
        self.fifo = _port(spec)
        self.sampler = spec.loss.link(key)
        self.fixed = True
        """Will its rate and loss stay as they are, so that what comes can be worked out ahead of time?"""
        self.lookahead: Lookahead | None = None
        """Packets on their way that this link has not been offered one by one (`sim.fast.lookahead`)."""
        self.offered = self.dropped = self.lost = 0

    def carry(self, flight: "Flight", now: float, landings: Arrivals) -> None:
        """Take a packet at its near end."""
        if self.lookahead is not None:
            self.lookahead.meet(self, flight)
        self.offered += 1
        lost = self.sampler is not None and self.sampler.lost(flight.identity)
        when = self.fifo.offer(flight.size, now)
        if when < 0.0:
            self.dropped += 1
        elif lost:
            self.lost += 1
        elif when in landings:
            landings[when].append((self.head, ()))
        else:
            landings[when] = [(self.head, ())]

    def free_at(self) -> float:
        """When it has sent all that was offered."""
        return self.fifo.free_at

    def ports(self) -> list[Fifo]:
        """Its queue."""
        return [self.fifo]

    def lost_by(self, member: int) -> int:
        """Packets that did not come to the other end, by loss or a full queue; `member` is 0."""
        del member
        return self.lost + self.dropped

    def counts(self) -> tuple[int, ...]:
        """Packets offered, dropped by the queue, lost, corrupt, marked, duplicated."""
        return self.offered, self.dropped, self.lost, 0, 0, 0


@mypyc_attr(allow_interpreted_subclasses=True)
class LinkGroup:
    """The last hops to a counted group of equal leaves: N links that share one state as long as they carry the same.

    A multicast does not come back to the member that sent it and a unicast goes to one member, so these see other traffic than
    their siblings. Such a *stray* keeps a port of its own until it and the others are idle; then they are equal again.
    """

    __slots__ = (
        "dropped",
        "fifo",
        "fixed",
        "head",
        "lookahead",
        "losses",
        "lost",
        "member_drops",
        "offered",
        "sampler",
        "separate_links",
        "shared_drops",
    )

    def __init__(self, spec: LinkSpec, head: "Endpoint", key: int) -> None:
        self.head = head
        self.fifo = _port(spec)
        self.sampler = spec.loss.group(key, head.count)
        self.separate_links: dict[int, Fifo] = {}
        self.fixed = True
        self.lookahead: Lookahead | None = None
        self.offered = self.dropped = self.lost = 0
        # Per member: losses in a table made when one is lost; drops as what all share and what differs.
        self.losses: list[int] | None = None
        self.shared_drops = 0
        self.member_drops: dict[int, int] = {}

    def carry(self, flight: "Flight", now: float, landings: Arrivals) -> None:
        """Take a packet at the near end of every link it is for."""
        if self.lookahead is not None:
            self.lookahead.meet(self, flight)
        route, head = flight.route, self.head
        if route.target is not None:
            self._carry_one(flight, route.target.member, now, landings)
            return
        skip = flight.host.member if route.home is head else -1
        self.offered += head.count - (skip >= 0)
        losers: Sequence[int] = () if self.sampler is None else self.sampler.losers(flight.identity, skip)
        if skip >= 0 or self.separate_links:
            self._carry_apart(flight, skip, losers, now, landings)
            return
        when = self.fifo.offer(flight.size, now)
        if when < 0.0:
            self.shared_drops += 1
            self.dropped += head.count
            return
        if losers:
            self.count_lost(losers)
        if len(losers) < head.count:
            landings.setdefault(when, []).append((head, losers))

    def free_at(self) -> float:
        """When all have sent all that was offered."""
        return max([port.free_at for port in self.ports()]) if self.separate_links else self.fifo.free_at

    def ports(self) -> list[Fifo]:
        """The queues: the one that is shared, and those of strays."""
        return [self.fifo, *self.separate_links.values()]

    def lost_by(self, member: int) -> int:
        """Packets that one member missed on its link, by loss or a full queue."""
        losses = 0 if self.losses is None else self.losses[member]
        return losses + self.shared_drops + self.member_drops.get(member, 0)

    def counts(self) -> tuple[int, ...]:
        """The sums of all members in the order of `Link.counts`."""
        return self.offered, self.dropped, self.lost, 0, 0, 0

    def count_lost(self, losers: Sequence[int]) -> None:
        """These members lost a packet."""
        losses = self.losses
        if losses is None:
            losses = self.losses = [0] * self.head.count
        for member in losers:
            losses[member] += 1
        self.lost += len(losers)

    def _carry_one(self, flight: "Flight", member: int, now: float, landings: Arrivals) -> None:
        self.offered += 1
        self.rejoin(now)
        lost = self.sampler is not None and self.sampler.lost(flight.identity, member)
        if member not in self.separate_links:
            self.separate_links[member] = self.fifo.fork()
        self._single(flight, member, lost, now, landings)

    def _single(self, flight: "Flight", member: int, lost: bool, now: float, landings: Arrivals) -> None:
        """Send to one member through its own port."""
        when = self.separate_links[member].offer(flight.size, now)
        if when < 0.0:
            self.dropped += 1
            self.member_drops[member] = self.member_drops.get(member, 0) + 1
        elif lost:
            self.count_lost((member,))
        else:
            landings.setdefault(when, []).append((self.head.host(member), ()))

    def rejoin(self, now: float) -> None:
        """Strays that are idle while the others are idle are no strays any more."""
        if self.separate_links and self.fifo.free_at <= now:
            self.separate_links = {member: port for member, port in self.separate_links.items() if port.free_at > now}

    def _carry_apart(self, flight: "Flight", skip: int, losers: Sequence[int], now: float, landings: Arrivals) -> None:
        """`carry` when some members are strays, or one is left out because it is the sender."""
        self.rejoin(now)
        if skip >= 0 and skip not in self.separate_links:
            self.separate_links[skip] = self.fifo.fork()
        apart = sorted(self.separate_links)
        if apart != [skip]:
            losers = self._send_apart(flight, apart, skip, losers, now, landings)
        when = self.fifo.offer(flight.size, now)
        if when < 0.0:
            self._drop_shared(apart)
            return
        if losers:
            self.count_lost(losers)
            apart = sorted([*losers, *apart])
        if len(apart) < self.head.count:
            landings.setdefault(when, []).append((self.head, apart))

    def _send_apart(
        self, flight: "Flight", apart: list[int], skip: int, losers: Sequence[int], now: float, landings: Arrivals
    ) -> Sequence[int]:
        """Send to the strays but `skip`; which of the others lose the packet."""
        lost_apart = set(losers).intersection(apart)
        for member in apart:
            if member != skip:
                self._single(flight, member, member in lost_apart, now, landings)
        return [member for member in losers if member not in lost_apart]

    def _drop_shared(self, apart: Sequence[int]) -> None:
        self.shared_drops += 1
        self.dropped += self.head.count - len(apart)
        for member in apart:
            self.member_drops[member] = self.member_drops.get(member, 0) - 1
