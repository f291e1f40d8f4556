"""TCP of all hosts of a network: listening ports, the ends of connections, and segments to and from the network."""

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from protocols.connection import Connection, Reason
from protocols.errors import UsageError
from protocols.framing import Framing
from protocols.machine import Packet
from protocols.rng import key_of
from protocols.tcp.congestion import CONTROLS
from protocols.tcp.options import TcpOptions
from sim.addresses import HostPort
from sim.flight import Flight, Hop, Route
from sim.link import Link
from sim.queue_entry import QueueEntry, post
from sim.tcp.end import FIRST_WINDOW, TcpEnd
from sim.tcp.idle_timers import TCP_TIMER, IdleTimers
from sim.tcp.segment import RST, SYN, TCP_HEADER, ControlSegment, Key, Segment, options_size
from sim.tcp.states import OPEN
from sim.tcp.streams import ByteReader, ByteWriter, Frames, Messages, ObjectReader, ObjectWriter, Reader, Writer
from topologies.spec import LinkSpec

if TYPE_CHECKING:
    from sim.fabric import Fabric
    from sim.host import SimHost

__all__ = ["FIRST_PORT", "TcpStack"]

FIRST_PORT: Final = 6003
"""TCP port of a host's machine at port 0."""
EPHEMERAL: Final = 49152
"""TCP port of the first connection that a host begins."""
LOOPBACK: Final = LinkSpec(rate=1e9, delay=1e-5)
"""The way from a host to itself, which takes no network link: 8 Gbit/s and 10 us."""
WAIT: Final = 60.0
"""Seconds for which an end answers late segments after both FINs were acknowledged (TIME-WAIT), and a SYN may come again."""


class TcpStack:
    """The connections of one network; hosts have no state of them."""

    def __init__(self, fabric: "Fabric", options: TcpOptions | None, framing: Callable[[], Framing]) -> None:
        self.options = TcpOptions() if options is None else options
        self.first_control = CONTROLS[self.options.control](FIRST_WINDOW)
        """See `sim.tcp.stack.Stack`."""
        self._framing = framing
        self._frames: dict[Callable[[], Framing], Frames] = {}
        self._fabric = fabric
        self._ends: dict[Key, TcpEnd] = {}
        # By place of the host and its port.
        self._listening: dict[tuple[int, int], None] = {}
        self._begun = array("I")
        """Connections that each host began, by place; empty before the first."""
        self._dark: set[int] = set()
        """Places of hosts without power."""
        self._serial = 0
        # Ends that are gone: until when their keys are known, and the keys. Some of them still answer.
        self._waiting: deque[tuple[float, Key]] = deque()
        self._past: dict[Key, None] = {}
        self._loops: dict[int, Route] = {}
        self._expire = (self._on_expiry,)
        self.idle_timers = IdleTimers(fabric.kernel)
        self.told: TcpEnd | None = None
        """See `sim.tcp.stack.Stack`."""
        self.retransmissions = 0
        """Segments that were sent again."""
        self.frame_costs: dict[int, float] = {}
        """See `sim.tcp.stack.Connections`."""
        self.is_watched = False
        """Whether hosts report their segments (`sim.watch`)."""
        self._identifies_empty = all(spec.loss.loses_control for _, _, spec in fabric.topology.links)
        """Whether segments without data have an identity. To a channel that loses content only, they are control packets."""

    # What machines do

    def listen(self, host: "SimHost", port: int = 0) -> None:
        """Accept connections at a port of a host; UsageError when another machine does."""
        if (host.place, port) in self._listening:
            raise UsageError(f"{host.name} listens at port {port} already")
        self._listening[host.place, port] = None

    def connect(self, host: "SimHost", peer: object, port: int = 0) -> Connection:
        """Begin a connection of the machine at a port of a host; UsageError when there is no such peer."""
        name, far_port = (peer.name, peer.port) if isinstance(peer, HostPort) else (str(peer), 0)
        fabric = self._fabric
        far = fabric.topology.member(name)
        place = fabric.topology.base(far.node) + far.place
        if not self._begun:
            self._begun = array("I", [0]) * len(fabric.hosts)
        begun = self._begun[host.place]
        self._begun[host.place] = begun + 1
        now = fabric.kernel.env.now
        key = host.place, _added(EPHEMERAL, begun), place, _added(FIRST_PORT, far_port)
        end = TcpEnd(self, host, port, key, peer, now)
        end.connect(now)
        return end

    def stop(self, host: "SimHost", port: int | None = None) -> None:
        """Reset the connections of a port of a host, because its machine has ended; None: of all ports."""
        self._close_listeners(host, port)
        for end in self._ends_of(host):
            if port in (None, end.port):
                end.abort(self._fabric.kernel.env.now)

    def crash(self, host: "SimHost", power: bool = False) -> None:
        """End all connections of a host because its process is gone: they are reset; with `power` peers get no segment."""
        if power:
            self._dark.add(host.place)
            for end in self._ends_of(host):
                end.vanish()
        self.stop(host)

    def restart(self, host: "SimHost") -> None:
        """Answer segments again, after a loss of power."""
        self._dark.discard(host.place)

    def _close_listeners(self, host: "SimHost", port: int | None) -> None:
        for key in [key for key in self._listening if key[0] == host.place and port in (None, key[1])]:
            del self._listening[key]

    def _ends_of(self, host: "SimHost") -> list[TcpEnd]:
        return [end for end in self._ends.values() if end.host is host]

    # What ends need

    def place(self, end: TcpEnd) -> None:
        """Enter an end, and set its name, order, identity, route, first links, and the key of the other end."""
        self._serial += 1
        end.order = end.host.place << 40 | self._serial
        # Not `host.name`, which makes a new string for each end.
        end.name = self._fabric.topology.hosts[end.host.place]
        here, port, there, far_port = end.key
        far = self._ends.get((there, far_port, here, port))
        end.to = (there, far_port, here, port) if far is None else far.key
        end.identity = key_of(0, "segment", here, port, there, far_port) & ~0xFFFFFFFF
        end.route = self._route(end.host, there)
        end.hops = end.host.endpoint.first_links(end.host, end.route)
        self._ends[end.key] = end

    def _route(self, host: "SimHost", there: int) -> Route:
        endpoint = host.endpoint
        if host.place != there:
            return endpoint.route_to(self._fabric.topology.hosts[there])
        loop = self._loops.get(there)
        if loop is None:
            loop = self._loops[there] = Route(endpoint, host.name, endpoint.name, [Link(LOOPBACK, host, 0)])
            loop.target, loop.node, loop.member = host, endpoint.name, host.member
        return loop

    def streams(self, host: "SimHost", port: int) -> tuple[Writer, Reader]:
        """Return the writer and the reader of the streams of an end."""
        common, ports = self._fabric.codec, self._fabric.ports
        make_framing = ports.framing(host.place, port, self._framing)
        if common is None:
            frames = self._frames.get(make_framing)
            if frames is None:
                frames = self._frames[make_framing] = Frames(make_framing())
            return ObjectWriter(frames), _OBJECTS
        codec, framing = ports.codec(host.place, port, common), make_framing()
        return ByteWriter(codec, framing), ByteReader(codec, framing)

    def post(self, end: TcpEnd, when: float) -> None:
        """Call `expire` of an end at `when` (seconds)."""
        kernel = self._fabric.kernel
        post(kernel.queue, max(when, kernel.env._now), TCP_TIMER, end.order, QueueEntry(self._expire, end))

    def _on_expiry(self, entry: QueueEntry) -> None:
        kernel = self._fabric.kernel
        kernel.busy = True
        end: TcpEnd = entry.content
        end.expire(kernel.env._now)
        kernel.settle_inputs()

    def tell_later(self, end: TcpEnd, now: float) -> None:
        """Call `tell_closed` of an end when the present input is over."""
        self._fabric.kernel.later(now, lambda: end.tell_closed(now))

    def forget(self, end: TcpEnd, keep: bool) -> None:
        """Remove an end that is gone; with `keep` only after a while, in which it answers late segments."""
        if not keep:
            self._ends.pop(end.key, None)
        now, waiting = self._fabric.kernel.env.now, self._waiting
        while waiting and waiting[0][0] <= now:
            _, key = waiting.popleft()
            self._ends.pop(key, None)
            self._past.pop(key, None)
        waiting.append((now + WAIT, end.key))
        self._past[end.key] = None

    # Inputs of machines

    def opened(self, end: TcpEnd, now: float) -> None:
        """Call `opened` of the machine: a connection is established."""
        machine = end.host.machine
        self._fabric.accelerator.before_input(machine)
        self.told = end
        machine.opened(end, now)
        self._drain()
        self.told = None

    def drained(self, end: TcpEnd, now: float) -> None:
        """Call `drained` of the machine: it may send again."""
        machine = end.host.machine
        self._fabric.accelerator.before_input(machine)
        self.told = end
        machine.drained(end, now)
        self._drain()
        self.told = None

    def closed(self, end: TcpEnd, reason: Reason, now: float) -> None:
        """Call `closed` of the machine."""
        machine = end.host.machine
        self._fabric.accelerator.before_input(machine)
        self.told = end
        machine.closed(end, reason, now)
        self._drain()
        self.told = None

    def deliver(self, end: TcpEnd, messages: Messages, now: float) -> None:
        """Give messages to the machine while it reads; those that a slow application has to read wait in `end`."""
        fabric, host = self._fabric, end.host
        with_events = fabric.kernel.with_events
        # Only there messages may wait, for a slow application or a busy processor.
        may_wait = bool(fabric.fault_shims) or host.endpoint.processors is not None
        fabric.accelerator.before_input(host.machine)
        self.told = end
        for message, octets in messages:
            if end.state != OPEN:
                break
            fabric.delivered += 1
            if fabric.on_delivery is not None:
                fabric.on_delivery(now, end.name, message)
            if may_wait:
                end.hold(octets)
            host.machine.receive(message, end, end, now)
            if may_wait and not end.postponed:
                end.read()
            if with_events:
                # The application receives the events of one input before the next.
                fabric.kernel.drain()
        self.told = None

    def _drain(self) -> None:
        kernel = self._fabric.kernel
        if kernel.with_events:
            kernel.drain()

    # Segments

    def send(self, host: "SimHost", name: str, route: Route, hops: Sequence[Hop], segment: Segment, now: float) -> None:
        """Put a segment on the first links of a route; `name` is that of the host."""
        fabric = self._fabric
        size = TCP_HEADER + segment.octets
        if segment.sack or segment.flags & SYN:
            size += options_size(segment)
        if fabric.observers:
            fabric.accelerator.catch_up()
            for observer in fabric.observers:
                observer.sent(now, host, segment, size)
        if self.is_watched:
            host.segment_sent(Packet(segment, size, route.to))
        if self.frame_costs and host.place in self.frame_costs:
            host.work(self.frame_costs[host.place])
        packets, kind = fabric.packets, segment.kind
        if kind in packets:
            # As `Traffic.count`, without a call.
            packets[kind] += 1
            fabric.octets[kind] += size
        else:
            fabric.traffic.count(segment, size)
        fabric.serial = serial = fabric.serial + 1
        place = host.place
        identity = segment.name if self._identifies_empty or type(segment) is Segment else None
        flight = Flight(segment, identity, size, place, name, route, (place + 1) << 80 | serial << 24)
        flight.note_sent(now, fabric.kernel.key)
        fabric.forwarding.forward(flight, hops, now)

    def reset(self, host: "SimHost", to: Key, number: int, ack: int, now: float) -> None:
        """Send an RST with these numbers to an end."""
        route = self._route(host, to[0])
        identity = key_of(0, "reset", *to) & ~0xFFFFFFFF | number & 0xFFFFFFFF
        segment = ControlSegment(to, RST, number, number, 0, (), identity, ack, ack, (), int(now * 1000), 0)
        self.send(host, host.name, route, host.endpoint.first_links(host, route), segment, now)

    def arrive(self, host: "SimHost", flight: Flight, now: float) -> None:
        """Take a segment that arrived at a host."""
        segment = flight.message
        assert isinstance(segment, Segment)
        if self._dark and host.place in self._dark:
            return
        end = self._ends.get(segment.to)
        if end is not None:
            end.arrive(segment, now)
        elif segment.to in self._past and segment.flags & SYN:
            # A late copy: it must not begin the connection again. Initial sequence numbers see to that in other TCPs.
            return
        elif segment.flags & SYN and not segment.ack and (host.place, segment.to[1] - FIRST_PORT) in self._listening:
            here, port, there, far_port = key = segment.to
            end = TcpEnd(self, host, port - FIRST_PORT, key, flight.source, now)
            end.accept(segment, now)
        elif not segment.flags & RST:
            # The host has no such connection, or no process any more.
            here, port, there, far_port = segment.to
            ack = 0 if segment.ack else segment.end
            self.reset(host, (there, far_port, here, port), segment.ack, ack, now)


@lru_cache(maxsize=1024)
def _added(first: int, number: int) -> int:
    """Return the sum, one object for the keys of thousands of connections."""
    return first + number


_OBJECTS: Final = ObjectReader()
