"""Hosts that need time to receive packets: a processor, a buffer before it, a network card with a limited number of filters."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf

from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.flight import Flight, Postponed
from sim.host import SimHost
from sim.pause import Pausing, QueueRoom
from sim.router import NodeCounts
from sim.stage import Stage
from sim.switch import Switch
from topologies.node_models import HostModel, SwitchModel
from topologies.spec import Topology

__all__ = ["LimitedEndpoint", "LimitedHost", "ReceiveProcessor", "find_pausing"]


class ReceiveProcessor(Pausing):
    """The processor of one host, and the buffer in which packets wait for it."""

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

    def admit(self, size: int, now: float) -> float | None:
        """Return when the processor is done with a packet of `size` bytes; None when the buffer is full and drops it."""
        self._serve(now)
        self.offered += 1
        start = max(now, self.free_at)
        if start > now:
            if self._held + size > self._room:
                self.dropped += 1
                return None
            self._waiting.append((start, size))
            self._held += size
        cost = self._per_packet + self._per_byte * size
        self.busy += cost
        self.free_at = start + cost
        return self.free_at

    def _serve(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            self._held -= self._waiting.popleft()[1]

    def expect(self, size: int, sign: int) -> None:
        """See `Pausing`; the room is counted in bytes here."""
        super().expect(size, sign)
        self._expected_bytes += sign * size

    def ready(self, size: int, now: float) -> float:
        """See `Pausing`."""
        self._serve(now)
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

    __slots__ = ("_limits", "_processor")

    def __init__(self, endpoint: "LimitedEndpoint", place: int) -> None:
        super().__init__(endpoint, place)
        self._limits = endpoint
        self._processor = endpoint.processor(place - endpoint.base)

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Take a packet for this host alone at its network card."""
        del lost_by
        if flight.route.target is self or self._limits.accepts(flight, self.member):
            when = self._processor.admit(flight.size, now)
            if when is not None:
                processing = Stage(lambda flight, now: when, self._deliver)
                self.endpoint.fabric.forwarding.forward(flight, (processing,), now)

    def _deliver(self, flight: Flight, now: float) -> None:
        SimHost.arrive(self, flight, (), now)


class LimitedEndpoint(Endpoint):
    """A graph node of hosts with a `HostModel`: every member has a processor of its own."""

    __slots__ = ("_model", "_processors")

    def __init__(
        self,
        fabric: Fabric,
        name: str,
        base: int,
        count: int,
        counted: bool,
        host_class: Callable[..., SimHost],
        model: HostModel,
    ) -> None:
        super().__init__(fabric, name, base, count, counted, host_class)
        self._model = model
        self._processors = [ReceiveProcessor(model) for _ in range(count)]

    def processor(self, member: int) -> ReceiveProcessor:
        """Return the processor of a member."""
        return self._processors[member]

    @property
    def pauses(self) -> bool:
        """Whether its network card pauses the link while the buffer is full."""
        return self._model.pause

    def accepts(self, flight: Flight, member: int) -> bool:
        """Whether the network card of a member passes on a multicast: it has joined the group, or too many for its filters."""
        if self.listens(flight.route.to, member):
            return True
        filters = self._model.filters
        return filters is not None and sum(members.listens(member) for members in self.groups.values()) > filters

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Take a packet at the network cards of all members but those of `lost_by`."""
        route = flight.route
        if route.target is not None:
            route.target.arrive(flight, lost_by, now)
            return
        done: dict[float, list[int]] = {}
        left_out = frozenset(lost_by)
        for member, processor in enumerate(self._processors):
            if member not in left_out and self.accepts(flight, member):
                when = processor.admit(flight.size, now)
                if when is not None:
                    done.setdefault(when, []).append(member)
        if done:
            self.fabric.forwarding.forward(flight, [Postponed(_Ready(self, at), when) for when, at in done.items()], now)

    def counts(self) -> NodeCounts:
        """Return the packets that network cards passed on, and those dropped by full buffers, summed over all members."""
        processors = self._processors
        return NodeCounts(
            self.name,
            sum(each.offered for each in processors),
            sum(each.dropped for each in processors),
            processor=sum(each.busy for each in processors),
        )


class _Ready:
    """The place where those members of a node receive a packet whose processors are done with it at one time."""

    __slots__ = ("_endpoint", "_members")

    def __init__(self, endpoint: LimitedEndpoint, members: Sequence[int]) -> None:
        self._endpoint = endpoint
        self._members = frozenset(members)

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver the packet to these members."""
        del lost_by
        others = [member for member in range(self._endpoint.count) if member not in self._members]
        Endpoint.arrive(self._endpoint, flight, others, now)


def find_pausing(topology: Topology, switches: Mapping[str, Switch], endpoints: Mapping[str, Endpoint]) -> dict[str, Pausing]:
    """Return the nodes that pause the links into them, by name."""
    found: dict[str, Pausing] = {}
    for name, switch in switches.items():
        model = topology.node(name).model
        if isinstance(model, SwitchModel) and model.pause:
            found[name] = QueueRoom(switch.links)
    for name, endpoint in endpoints.items():
        if isinstance(endpoint, LimitedEndpoint) and endpoint.pauses:
            found[name] = endpoint.processor(0)
    return found
