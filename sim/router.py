"""Nodes that forward and have a model: routers that store and forward, switches with storm control.

A packet waits here in places of its own, each a landing like any other, so the engine knows nothing of routers.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.endpoint import Switch
from sim.stage import Then
from topologies.ethernet import Framing, size_on_link, wire_bytes
from topologies.node_models import RouterModel, SwitchModel

if TYPE_CHECKING:
    from sim.flight import Flight
    from sim.link import Arrivals
    from sim.network import Network

__all__ = ["NodeCounts", "Processor", "Router", "StormSwitch", "Wire", "make_switch"]

_TAGGED: Framing = "ethernet-802.1q"


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """What became of packets within a node: `offered` to it, `dropped` for want of room, `filtered` by storm control.

    `processor` is how many seconds its processor was busy; that of all members of a counted group together.
    """

    node: str
    offered: int
    dropped: int
    filtered: int = 0
    processor: float = 0.0


class Processor:
    """A processor that takes packets one by one: `limit` may wait. `then` is what happens to each when it is done."""

    __slots__ = ("_limit", "_per_byte", "_per_packet", "_starts", "_then", "busy", "dropped", "free_at")

    def __init__(self, per_packet: float, per_byte: float, limit: int | None, then: Then) -> None:
        self._per_packet = per_packet
        self._per_byte = per_byte
        self._limit = limit
        self._then = then
        self._starts: deque[float] = deque()
        self.free_at = self.busy = 0.0
        self.dropped = 0

    def carry(self, flight: "Flight", now: float, landings: "Arrivals") -> None:
        """Take a packet, or drop it when too many wait."""
        starts = self._starts
        while starts and starts[0] <= now:
            starts.popleft()
        if self._limit is not None and self.free_at > now and len(starts) >= self._limit:
            self.dropped += 1
            return
        start = max(now, self.free_at)
        if start > now:
            starts.append(start)
        cost = self._per_packet + self._per_byte * flight.size
        self.busy += cost
        self.free_at = start + cost
        landings.setdefault(self.free_at, []).append((self, ()))

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet is done."""
        del out
        self._then(flight, now)


class Wire:
    """An Ethernet wire that `queues` take turns to use, a tagged packet at a time; `limit` may wait in each."""

    __slots__ = ("_busy", "_last", "_limit", "_network", "_queues", "_rate", "_then", "dropped")

    def __init__(self, network: "Network", rate: float, limit: int | None, queues: int) -> None:
        self._network = network
        self._rate = rate
        self._limit = limit
        self._queues: list[deque[tuple[Flight, Then]]] = [deque() for _ in range(queues)]
        self._busy = False
        self._last = 0
        self._then: Then | None = None
        self.dropped = 0

    def offer(self, queue: int, flight: "Flight", then: Then, now: float) -> None:
        """Send a packet over the wire, now or after those that wait; `then` comes when its last bit is over."""
        if self._limit is not None and self._busy and len(self._queues[queue]) >= self._limit:
            self.dropped += 1
            return
        self._queues[queue].append((flight, then))
        if not self._busy:
            self._start(now)

    def _start(self, now: float) -> None:
        count = len(self._queues)
        turns = ((self._last + 1 + step) % count for step in range(count))
        chosen = next((turn for turn in turns if self._queues[turn]), None)
        self._busy = chosen is not None
        if chosen is not None:
            self._last = chosen
            flight, self._then = self._queues[chosen].popleft()
            self._network.forward(flight, (self,), now)

    def carry(self, flight: "Flight", now: float, landings: "Arrivals") -> None:
        """The packet that was chosen goes over the wire."""
        landings.setdefault(now + wire_bytes(flight.size, _TAGGED) / self._rate, []).append((self, ()))

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """The packet is over; the next begins first, so that what this one causes comes after."""
        del out
        then = self._then
        assert then is not None
        self._start(now)
        then(flight, now)


class Router(Switch):
    """Takes each packet in, has the processor look at it, and queues it for the next links
    (`topologies.node_models.RouterModel`)."""

    __slots__ = ("_inward", "_outward", "_outward_queue", "_processor", "offered")

    def __init__(self, network: "Network", name: str, model: RouterModel) -> None:
        super().__init__(network, name)
        self.offered = 0
        costs = model.cpu or model.cpu_byte
        self._processor = Processor(model.cpu, model.cpu_byte, model.queue, self._send) if costs else None
        self._inward: Wire | None = None
        self._outward: Wire | None = None
        self._outward_queue = 0
        if model.mac == "single":
            assert model.rate is not None
            half = model.duplex == "half"
            self._inward = self._outward = Wire(network, model.rate, model.queue, 2 if half else 1)
            self._outward_queue = int(half)
            if not half:
                self._outward = Wire(network, model.rate, model.queue, 1)

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet came to the end of a link."""
        del out
        self.offered += 1
        if self._inward is not None:
            self._inward.offer(0, flight, self._look_at, now)
        else:
            self._look_at(flight, now)

    def _look_at(self, flight: "Flight", now: float) -> None:
        if self._processor is None:
            self._send(flight, now)
        else:
            self.network.forward(flight, (self._processor,), now)

    def _send(self, flight: "Flight", now: float) -> None:
        links = self.next_links(flight)
        if self._outward is None:
            if links:
                self.network.forward(flight, links, now)
            return
        for link in links:
            self._outward.offer(self._outward_queue, flight, self._onto(link), now)

    def _onto(self, link: Any) -> Then:
        return lambda flight, now: self.network.forward(flight, (link,), now)

    def counts(self) -> NodeCounts:
        """Packets that came to the router, and those dropped before its processor or its single wire."""
        parts = {id(part): part for part in (self._processor, self._inward, self._outward) if part is not None}
        busy = 0.0 if self._processor is None else self._processor.busy
        return NodeCounts(self.name, self.offered, sum(part.dropped for part in parts.values()), processor=busy)


class StormSwitch(Switch):
    """A switch that lets in only so much multicast on each port: a bucket per port, a token for each byte on the link."""

    __slots__ = ("burst", "filtered", "offered", "rate")

    def __init__(self, network: "Network", name: str, rate: float, burst: int) -> None:
        super().__init__(network, name)
        self.rate = rate
        self.burst = burst
        self.offered = self.filtered = 0

    def inlet(self, near: str) -> "_Port":
        """Where links from `near` end: each at a port of its own."""
        return _Port(self, self.network.topology.link(near, self.name).overhead)

    def counts(self) -> NodeCounts:
        """Packets that came to the ports, and the multicasts that storm control threw away."""
        return NodeCounts(self.name, self.offered, 0, self.filtered)


class _Port:
    """One port of a switch with storm control."""

    __slots__ = ("_at", "_overhead", "_switch", "_tokens")

    def __init__(self, switch: StormSwitch, overhead: int | Framing) -> None:
        self._switch = switch
        self._overhead = overhead
        self._tokens = float(switch.burst)
        self._at = 0.0

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet came; a multicast needs tokens, a unicast none."""
        switch = self._switch
        switch.offered += 1
        if flight.route.target is None:
            self._tokens = min(switch.burst, self._tokens + (now - self._at) * switch.rate)
            self._at = now
            needed = size_on_link(flight.size, self._overhead)
            if self._tokens < needed:
                switch.filtered += 1
                return
            self._tokens -= needed
        switch.arrive(flight, out, now)


def make_switch(network: "Network", name: str) -> Switch:
    """The running thing for a graph node that forwards."""
    model = network.topology.node(name).model
    if isinstance(model, RouterModel):
        return Router(network, name, model)
    if isinstance(model, SwitchModel) and model.storm is not None:
        return StormSwitch(network, name, model.storm, model.burst)
    return Switch(network, name)
