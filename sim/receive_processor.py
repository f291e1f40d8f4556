"""Hosts that need time to receive packets: a processor, a buffer before it, a network card with a limited number of filters."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import ClassVar

from protocols.connection import Connection
from protocols.machine import Packet
from sim.endpoint import Endpoint
from sim.fabric import Fabric
from sim.flight import Flight, Postponed
from sim.host import SimHost
from sim.node_counts import NodeCounts
from sim.pause import Pausing, QueueRoom
from sim.stage import Stage
from sim.switch import Switch
from topologies.ethernet import frames_of
from topologies.node_models import HostModel, SwitchModel
from topologies.spec import Topology

__all__ = ["LimitedEndpoint", "LimitedHost", "ReceiveProcessor", "find_pausing"]


class ReceiveProcessor(Pausing):
    """The processor of one host, and the buffer in which packets wait for it."""

    def __init__(self, model: HostModel) -> None:
        super().__init__()
        slowness = 1.0 / (model.quota or 1.0)
        self._per_packet, self._per_byte = model.cpu * slowness, model.cpu_byte * slowness
        self._per_frame = model.cpu_frame * slowness
        self._room = inf if model.buffer is None else model.buffer
        self._waiting: deque[tuple[float, int]] = deque()
        self._begun: list[tuple[float, int]] = []
        """Packets that left the buffer at this instant: when, and their bytes."""
        self._held = 0
        self._expected_bytes = 0
        self.free_at = 0.0
        self.offered = self.dropped = 0
        self.busy = 0.0
        """Seconds of processor time."""
        self.worked = 0.0
        """Seconds of work that the machine stated, by which packets admitted before are delayed."""

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
        cost = self.cost(size)
        self.busy += cost
        self.free_at = start + cost
        return self.free_at

    def cost(self, size: int) -> float:
        """Return the seconds of processor time of a packet of `size` bytes."""
        cost = self._per_packet + self._per_byte * size
        return cost + self._per_frame * frames_of(size) if self._per_frame else cost

    def take(self, size: int) -> None:
        """Count a packet that is processed at once."""
        self.offered += 1
        self.busy += self.cost(size)

    def wait(self, size: int) -> bool:
        """Return whether the buffer has room for a packet that has to wait; else it is dropped."""
        self.offered += 1
        if self._held + size > self._room:
            self.dropped += 1
            return False
        self._held += size
        return True

    def leave(self, size: int) -> None:
        """Take a packet out of the buffer, because it is processed now."""
        self._held -= size
        self.busy += self.cost(size)

    def work(self, seconds: float, now: float) -> None:
        """Do work of the host's machine before all packets that wait."""
        self._serve(now)
        # Packets whose processing would begin now wait on. Of those that cost nothing, the first is the one the machine has.
        begun = self._begun if self._per_packet or self._per_byte or self._per_frame else self._begun[1:]
        waiting = [(start + seconds, size) for start, size in (*begun, *self._waiting)]
        self.free_at = max(self.free_at, now) + seconds
        self._waiting = deque(waiting)
        self._held = sum(size for _, size in waiting)
        self._begun = []
        self.worked += seconds

    def _serve(self, now: float) -> None:
        if self._begun and self._begun[0][0] < now:
            self._begun = []
        while self._waiting and self._waiting[0][0] <= now:
            entry = self._waiting.popleft()
            self._held -= entry[1]
            if entry[0] == now:
                self._begun.append(entry)

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

    __slots__ = ("_is_awaited", "_limits", "_processor", "_waiting")

    def __init__(self, endpoint: "LimitedEndpoint", place: int) -> None:
        super().__init__(endpoint, place)
        self._limits = endpoint
        self._processor = endpoint.processor(place - endpoint.base)
        self._is_awaited = False
        """Whether `_begin_next` will be called."""
        self._waiting: deque[Flight] = deque()
        """Packets that wait for the processor (`HostModel.fifo`)."""
        if endpoint.model.cpu_frame:
            endpoint.fabric.tcp.frame_costs[place] = endpoint.model.cpu_frame

    def arrive(self, flight: Flight, lost_by: object, now: float) -> None:
        """Take a packet for this host alone at its network card."""
        del lost_by
        if flight.route.target is self or self._limits.accepts(flight, self.member):
            if self._limits.model.fifo:
                self.queue(flight, now)
                return
            when = self._processor.admit(flight.size, now)
            if when is not None:
                self._process(flight, when, now)

    def queue(self, flight: Flight, now: float) -> None:
        """Process a packet when the processor is free, first come, first served (`HostModel.fifo`)."""
        if not self._waiting and self.processor.busy_until <= now:
            self._processor.take(flight.size)
            self._begin(flight, now)
        elif self._processor.wait(flight.size):
            self._waiting.append(flight)
            self._begin_later()

    def _begin_later(self) -> None:
        """Begin with the first packet that waits when the processor is free."""
        if not self._is_awaited:
            self._is_awaited = True
            self.later(self.processor.busy_until, self._begin_next)

    def _begin_next(self) -> None:
        self._is_awaited = False
        now = self.endpoint.fabric.kernel.env._now
        if self.processor.busy_until > now:
            self._begin_later()
            return
        flight = self._waiting.popleft()
        self._processor.leave(flight.size)
        self._begin(flight, now)

    def _begin(self, flight: Flight, now: float) -> None:
        """Keep the processor busy with a packet, and deliver the packet after that."""
        cost = self._processor.cost(flight.size)
        self.processor.work(cost, now)
        stage = Stage(lambda flight, now: now + cost, self._end)
        self.endpoint.fabric.forwarding.forward(flight, (stage,), now)

    def _end(self, flight: Flight, now: float) -> None:
        """Deliver a packet, and go on with the next one that waits."""
        SimHost.arrive(self, flight, (), now)
        if self._waiting:
            self._begin_later()

    def _process(self, flight: Flight, until: float, now: float) -> None:
        """Deliver a packet at `until`, delayed by the work that the machine states meanwhile."""
        worked = self._processor.worked

        def deliver(flight: Flight, now: float) -> None:
            more = self._processor.worked - worked
            if more:
                self._process(flight, now + more, now)
            else:
                SimHost.arrive(self, flight, (), now)

        self.endpoint.fabric.forwarding.forward(flight, (Stage(lambda flight, now: until, deliver),), now)

    def work(self, seconds: float) -> None:
        """See `Ports.work`; packets that wait for the processor wait longer."""
        seconds /= self._limits.model.quota or 1.0
        self._processor.work(seconds, self.now)
        super().work(seconds)

    def send(self, packet: Packet, port: int = 0) -> bool:
        """Send a packet, which costs processor time of its own; the frames of a connection are those of its segments."""
        model = self._limits.model
        cost = model.cpu_send + model.cpu_send_byte * packet.size
        if model.cpu_frame and not isinstance(packet.to, Connection):
            cost += model.cpu_frame * frames_of(packet.size)
        if cost:
            self.work(cost)
        return super().send(packet, port)


class LimitedEndpoint(Endpoint):
    """A graph node of hosts with a `HostModel`: every member has a processor of its own."""

    __slots__ = ("_processors", "model")
    has_processors: ClassVar[bool] = True

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
        self.model = model
        self._processors = [ReceiveProcessor(model) for _ in range(count)]

    def processor(self, member: int) -> ReceiveProcessor:
        """Return the processor of a member."""
        return self._processors[member]

    @property
    def pauses(self) -> bool:
        """Whether its network card pauses the link while the buffer is full."""
        return self.model.pause

    def accepts(self, flight: Flight, member: int) -> bool:
        """Return whether the network card of a member accepts a multicast: it joined the group, or too many to filter."""
        if self.listens(flight.route.to, member):
            return True
        filters = self.model.filters
        return filters is not None and sum(members.listens(member) for members in self.groups.values()) > filters

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Take a packet at the network cards of all members but those of `lost_by`."""
        route = flight.route
        if route.target is not None:
            route.target.arrive(flight, lost_by, now)
            return
        done: dict[float, list[int]] = {}
        left_out = frozenset(lost_by)
        if self.model.fifo:
            for member in range(self.count):
                if member not in left_out and self.accepts(flight, member):
                    host = self.host(member)
                    assert isinstance(host, LimitedHost)
                    host.queue(flight, now)
            return
        for member, processor in enumerate(self._processors):
            if member not in left_out and self.accepts(flight, member):
                when = processor.admit(flight.size, now)
                if when is not None:
                    done.setdefault(when, []).append(member)
        self.process(flight, done, now)

    def process(self, flight: Flight, done: Mapping[float, list[int]], now: float) -> None:
        """Deliver a packet to members at the times at which their processors are done with it."""
        if done:
            places = [Postponed(_Ready(self, members), when) for when, members in done.items()]
            self.fabric.forwarding.forward(flight, places, now)

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
    """The place at which members of a node receive a packet whose processors finish it at the same time."""

    __slots__ = ("_endpoint", "_worked")

    def __init__(self, endpoint: LimitedEndpoint, members: Sequence[int]) -> None:
        self._endpoint = endpoint
        self._worked = {member: endpoint.processor(member).worked for member in members}
        """By member, the seconds of work that its machine had stated when the packet was admitted."""

    def arrive(self, flight: Flight, lost_by: Sequence[int], now: float) -> None:
        """Deliver the packet to these members, but later to those whose machines stated work meanwhile."""
        del lost_by
        endpoint = self._endpoint
        later: dict[float, list[int]] = {}
        ready = set()
        for member, worked in self._worked.items():
            more = endpoint.processor(member).worked - worked
            if more:
                later.setdefault(now + more, []).append(member)
            else:
                ready.add(member)
        if ready:
            Endpoint.arrive(endpoint, flight, [member for member in range(endpoint.count) if member not in ready], now)
        endpoint.process(flight, later, now)


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
