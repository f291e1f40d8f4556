"""Nodes that forward and have a model: routers that store and forward, switches with storm control.

A wait within a node is an arrival at a place there, so the engines have no code for routers.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.flight import Arrivals, Flight, Hop, Place, to_member
from sim.host import SimHost
from sim.hub import Hub
from sim.node_counts import NodeCounts
from sim.stage import Then
from sim.switch import Switch
from sim.wire import Wire
from topologies.ethernet import Framing, size_on_link
from topologies.node_models import RouterModel, SwitchModel

__all__ = ["Processor", "Router", "StormSwitch", "make_switch"]

_TAGGED: Framing = "ethernet-802.1q"


class Processor:
    """A processor that handles one packet at a time; `limit` may wait. `then` is called for each packet when it is done."""

    __slots__ = ("_limit", "_per_byte", "_per_packet", "_starts", "_then", "busy", "dropped", "free_at")

    def __init__(self, per_packet: float, per_byte: float, limit: int | None, then: Then) -> None:
        self._per_packet = per_packet
        self._per_byte = per_byte
        self._limit = limit
        self._then = then
        self._starts: deque[float] = deque()
        self.free_at = self.busy = 0.0
        self.dropped = 0

    def carry(self, flight: Flight, now: float, arrivals: Arrivals) -> None:
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
        arrivals.setdefault(self.free_at, []).append((self, ()))

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Pass on a packet that the processor has finished."""
        del lost_by
        self._then(flight, now)


class Router(Switch):
    """Receives each packet, processes it, and queues it for the next links (`topologies.node_models.RouterModel`)."""

    __slots__ = ("_inward", "_machine", "_outward", "_outward_queue", "_processor", "offered")

    def __init__(self, fabric: Fabric, name: str, model: RouterModel) -> None:
        super().__init__(fabric, name)
        self.offered = 0
        self._machine = fabric.topology.router_machines.get(name, "")
        """Node of its own machine, whose packets do not enter by the wire, and to which no packets leave by it."""
        costs = model.cpu or model.cpu_byte
        self._processor = Processor(model.cpu, model.cpu_byte, model.queue, self._send) if costs else None
        self._inward: Wire | None = None
        self._outward: Wire | None = None
        self._outward_queue = 0
        if model.mac == "single":
            assert model.rate is not None
            half = model.duplex == "half"
            self._inward = self._outward = Wire(fabric, model.rate, model.queue)
            self._outward_queue = int(half)
            if not half:
                self._outward = Wire(fabric, model.rate, model.queue)

    @property
    def is_immediate(self) -> bool:
        """Whether it forwards at once, as a switch does: it has neither a processor nor a wire of its own."""
        return self._processor is None and self._inward is None

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Take a packet at the end of a link."""
        del lost_by
        self.offered += 1
        if self._inward is not None and flight.route.home.name != self._machine:
            self._inward.offer(0, flight, _TAGGED, self._process, now)
        else:
            self._process(flight, now)

    def _process(self, flight: Flight, now: float) -> None:
        if self._processor is None:
            self._send(flight, now)
        else:
            self.fabric.forwarding.forward(flight, (self._processor,), now)

    def _send(self, flight: Flight, now: float) -> None:
        links = self.next_links(flight.route)
        if self._outward is None:
            if links:
                self.fabric.forwarding.forward(flight, links, now)
            return
        own = self.links.get(self._machine)
        for link in links:
            if link is own:
                self.fabric.forwarding.forward(flight, (link,), now)
            else:
                for copy in self._copies(flight, link.head):
                    self._outward.offer(self._outward_queue, copy, _TAGGED, self._onto(link), now)

    def _copies(self, flight: Flight, head: Place) -> Iterator[Flight]:
        """Yield a packet once for each cable by which it goes to a neighbour: the members of a counted group have one each.

        It does not go back to the host that sent it. With pruning, members that do not listen get none.
        """
        if flight.route.target is not None or not isinstance(head, Endpoint) or not head.counted:
            if not isinstance(head, SimHost) or head.place != flight.place:
                yield flight
            return
        pruning = self.fabric.topology.multicast.pruning
        for member in range(head.count):
            if flight.place != head.base + member and (not pruning or head.listens(flight.route.to, member)):
                yield to_member(flight, head, member)

    def _onto(self, link: Hop) -> Then:
        return lambda flight, now: self.fabric.forwarding.forward(flight, (link,), now)

    def counts(self) -> NodeCounts:
        """Return the packets offered to the router, and those dropped before its processor or its single wire."""
        parts = {id(part): part for part in (self._processor, self._inward, self._outward) if part is not None}
        busy = 0.0 if self._processor is None else self._processor.busy
        return NodeCounts(self.name, self.offered, sum(part.dropped for part in parts.values()), processor=busy)


class StormSwitch(Switch):
    """A switch with storm control: a token bucket for the multicast bytes into each port, counted as on the link."""

    __slots__ = ("burst", "filtered", "offered", "rate")

    def __init__(self, fabric: Fabric, name: str, rate: float, burst: int) -> None:
        super().__init__(fabric, name)
        self.rate = rate
        self.burst = burst
        self.offered = self.filtered = 0

    def inlet(self, near: str) -> Place:
        """Return the port at which the link from `near` ends, or the ports of the links of a counted group."""
        topology = self.fabric.topology
        ports = _Ports if topology.node(near).count is not None else _Port
        return ports(self, topology.link(near, self.name).overhead)

    def counts(self) -> NodeCounts:
        """Return the packets offered to the ports, and the multicasts that storm control dropped."""
        return NodeCounts(self.name, self.offered, 0, self.filtered)


class _Port:
    """One port of a switch with storm control."""

    __slots__ = ("_at", "_overhead", "_switch", "_tokens")

    def __init__(self, switch: StormSwitch, overhead: int | Framing) -> None:
        self._switch = switch
        self._overhead = overhead
        self._tokens = float(switch.burst)
        self._at = 0.0

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Take a packet; a multicast needs tokens, a unicast none."""
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
        switch.arrive(flight, lost_by, now)


class _Ports:
    """The ports at which links of a counted group end: one for each member, made when its first packet arrives."""

    __slots__ = ("_overhead", "_ports", "_switch")

    def __init__(self, switch: StormSwitch, overhead: int | Framing) -> None:
        self._switch = switch
        self._overhead = overhead
        self._ports: dict[int, _Port] = {}

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Take a packet at the port of the member that sent it; members only send packets of their own."""
        port = self._ports.get(flight.place)
        if port is None:
            port = self._ports[flight.place] = _Port(self._switch, self._overhead)
        port.arrive(flight, lost_by, now)


def make_switch(fabric: Fabric, name: str) -> Switch:
    """Make the object that runs a graph node that forwards."""
    model = fabric.topology.node(name).model
    if isinstance(model, RouterModel):
        return Router(fabric, name, model)
    if isinstance(model, SwitchModel) and model.hub:
        return Hub(fabric, name, model)
    if isinstance(model, SwitchModel) and model.storm is not None:
        return StormSwitch(fabric, name, model.storm, model.burst)
    return Switch(fabric, name)
