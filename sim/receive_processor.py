"""Hosts that need time to take packets in: a processor, a buffer before it, a network card with so many filters."""

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from sim.endpoint import Endpoint, Switch
from sim.host import SimHost
from sim.pause import Pausing, QueueRoom
from sim.router import NodeCounts
from sim.stage import Stage
from topologies.node_models import HostModel, SwitchModel
from topologies.spec import Topology

if TYPE_CHECKING:
    from sim.flight import Flight
    from sim.link import Arrivals
    from sim.network import Network

__all__ = ["ReceiveProcessor", "LimitedHost", "LimitedEndpoint", "find_pausing", "make_leaf"]


class ReceiveProcessor(Pausing):
    """One host's processor and its buffer. A packet waits in the buffer until the processor turns to it."""

    def __init__(self, model: HostModel) -> None:
        super().__init__()
        self._per_packet, self._per_byte = model.cpu, model.cpu_byte
        self._room = inf if model.buffer is None else model.buffer
        self._waiting: deque[tuple[float, int]] = deque()
        self._held = 0
        self._expected_bytes = 0
        self.free_at = 0.0
        self.offered = self.dropped = 0
        self.busy = 0.0
        """Seconds of processor time."""

    def admit(self, size: int, now: float) -> float:
        """When the processor is done with a packet that comes now; -1.0 when the buffer has no room for it."""
        self._settle(now)
        self.offered += 1
        start = max(now, self.free_at)
        if start > now:
            if self._held + size > self._room:
                self.dropped += 1
                return -1.0
            self._waiting.append((start, size))
            self._held += size
        cost = self._per_packet + self._per_byte * size
        self.busy += cost
        self.free_at = start + cost
        return self.free_at

    def _settle(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            self._held -= self._waiting.popleft()[1]

    def expect(self, size: int, sign: int) -> None:
        """As `Pausing`; room in bytes is what counts here."""
        super().expect(size, sign)
        self._expected_bytes += sign * size

    def ready(self, size: int, now: float) -> float:
        """As `Pausing`."""
        self._settle(now)
        over = self._held + self._expected_bytes + size - self._room
        if over <= 0 or (self.free_at <= now and not self.expected):
            return now
        for start, waiting in self._waiting:
            over -= waiting
            if over <= 0:
                return start
        return inf if self.expected else self.free_at


class LimitedHost(SimHost):
    """A host with a `HostModel`."""

    __slots__ = ("intake",)
    leaf: "LimitedEndpoint"

    def __init__(self, leaf: "LimitedEndpoint", place: int) -> None:
        super().__init__(leaf, place)
        self.intake = leaf.intake(place - leaf.base)

    def arrive(self, flight: "Flight", out: object, now: float) -> None:
        """A packet for this host alone came to its network card."""
        del out
        if flight.route.target is self or self.leaf.takes(flight, self.member):
            when = self.intake.admit(flight.size, now)
            if when >= 0.0:
                self.leaf.network.forward(flight, (Stage(lambda flight, now: when, self._taken),), now)

    def _taken(self, flight: "Flight", now: float) -> None:
        self.leaf.network.announce(flight, self, now)
        SimHost.arrive(self, flight, (), now)


class LimitedEndpoint(Endpoint):
    """A graph node of hosts with a `HostModel`: every member has an intake of its own."""

    __slots__ = ("_intakes", "_model")

    def __init__(self, network: "Network", name: str, base: int, count: int, counted: bool, model: HostModel) -> None:
        super().__init__(network, name, base, count, counted)
        self._model = model
        self._intakes = [ReceiveProcessor(model) for _ in range(count)]

    def intake(self, member: int) -> ReceiveProcessor:
        """The intake of a member."""
        return self._intakes[member]

    @property
    def pauses(self) -> bool:
        """Does its network card stop the link when the buffer is full?"""
        return self._model.pause

    def make_host(self, place: int) -> SimHost:
        """The host at a place in `Topology.hosts`, anew."""
        return self.network.kind(LimitedHost)(self, place)

    def takes(self, flight: "Flight", member: int) -> bool:
        """Does this member's network card let a multicast through?"""
        if self.listens(flight.route.to, self.base + member):
            return True
        filters = self._model.filters
        return filters is not None and sum(audience.listens(member) for audience in self.audiences.values()) > filters

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """A packet came to the network cards of all members but those of `out`."""
        route = flight.route
        if route.target is not None:
            route.target.arrive(flight, out, now)
            return
        done: dict[float, list[int]] = {}
        away = frozenset(out)
        for member, intake in enumerate(self._intakes):
            if member not in away and self.takes(flight, member):
                when = intake.admit(flight.size, now)
                if when >= 0.0:
                    done.setdefault(when, []).append(member)
        self.network.forward(flight, (_Ready(self, done),), now)

    def counts(self) -> NodeCounts:
        """Packets that network cards let through, and those that found the buffer full, of all members together."""
        intakes = self._intakes
        return NodeCounts(
            self.name,
            sum(each.offered for each in intakes),
            sum(each.dropped for each in intakes),
            processor=sum(each.busy for each in intakes),
        )


class _Ready:
    """Members of a leaf whose processors are done with one packet, by time."""

    __slots__ = ("_done", "_leaf")

    def __init__(self, leaf: LimitedEndpoint, done: dict[float, list[int]]) -> None:
        self._leaf = leaf
        self._done = done

    def carry(self, flight: "Flight", now: float, landings: "Arrivals") -> None:
        """As a link would."""
        del flight, now
        for when in self._done:
            landings.setdefault(when, []).append((self, ()))

    def arrive(self, flight: "Flight", out: Sequence[int], now: float) -> None:
        """The processors of some are done."""
        del out
        members = frozenset(self._done[now])
        Endpoint.arrive(self._leaf, flight, [member for member in range(self._leaf.count) if member not in members], now)


def make_leaf(network: "Network", name: str) -> Endpoint:
    """The running thing for a graph node that is a host or a counted group of hosts."""
    topology = network.topology
    spec, base, size = topology.node(name), topology.base(name), topology.size(name)
    if isinstance(spec.model, HostModel):
        return network.kind(LimitedEndpoint)(network, name, base, size, spec.count is not None, spec.model)
    return network.kind(Endpoint)(network, name, base, size, spec.count is not None)


def find_pausing(topology: Topology, switches: Mapping[str, Switch], leaves: Mapping[str, Endpoint]) -> dict[str, Pausing]:
    """The nodes that pause the links into them, by name."""
    found: dict[str, Pausing] = {}
    for name, switch in switches.items():
        model = topology.node(name).model
        if isinstance(model, SwitchModel) and model.pause:
            found[name] = QueueRoom(switch.links)
    for name, leaf in leaves.items():
        if isinstance(leaf, LimitedEndpoint) and leaf.pauses:
            found[name] = leaf.intake(0)
    return found
