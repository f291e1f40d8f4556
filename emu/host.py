"""`UdpHost` runs one machine on real UDP sockets, as `sim.host.SimHost` does in the simulator.

Everything runs in one thread, in callbacks of one event loop; `Loop.run` ends with the first exception of any of them.
"""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from typing import Any, TypeAlias, TypeVar

from emu.addresses import SocketAddress, address_of, at_port, socket_address_of
from emu.disk import OpenDisk
from emu.fair_queue import FairQueue
from emu.host_disk import HostDisk
from emu.loop import HostLoop, spend
from emu.ports import Devices, UdpPort, make_ports
from emu.slow_reader import SlowReader
from emu.tcp import Inputs, TcpConnections
from emu.tcp_connection import TcpConnection
from emu.udp import BUFFERS, SEGMENTS, receive_coalesced
from emu.udp_options import DEFAULTS, UdpOptions
from protocols.batches import Assisted, RunReceiver, Selective
from protocols.connection import Connection
from protocols.errors import FailureError, LivelockError, UsageError, WireError
from protocols.event_layer import outermost
from protocols.framing import Framing, LengthPrefixed
from protocols.layer import handed_through
from protocols.machine import Address, ClassedPacket, Codec, Event, Machine, Offer, Packet, Sink
from protocols.overview import progress_of
from protocols.rng import Rng
from protocols.run import Run
from protocols.snapshot import Snapshot
from protocols.tcp.options import TcpOptions
from protocols.traffic import Traffic

__all__ = ["UdpHost"]

T = TypeVar("T")
Arrived: TypeAlias = tuple[bytes, int, int, SocketAddress, Address, bool]
"""A batch of packets, the offset of the next one, their length, their source, where they came to, and if they are marked."""

_MAX_BATCH = 100
"""Most packets received from one socket before other sockets and timers are served."""
_LONGEST_BATCH = 0.005
"""Seconds after which no more packets are received from one socket before the others, timers and signals are served."""
_LARGE = 8192
"""Size in bytes from which a single packet is decoded only if the machine needs it, even by a host that keeps up."""
_PATIENCE = 0.05
"""Seconds for which no socket was found empty before a host begins to queue packets by source."""
_TIMER_QUANTUM = 0.0005
"""Seconds: wake-ups closer than this are merged, so that a fast sender fills its batches."""


class UdpHost:
    """A node on a real network: sockets, clock, and the ports of its machine.

    `interface` is an address or the device that has an IPv4 address (None: where the system routes multicast), `port` the UDP
    port for unicast to this node; the name of a group contains its own port. `buffers` is the size in bytes of the kernel's
    socket buffers, and of the queue for packets that arrive faster than this host processes them, `burst` the most packets in
    one system call, `options` are those of the IP layer.

    With `held`, the host can be started and joins its groups, but its clock stands at 0 and nothing is sent until `begin`.
    `joining` is the time in seconds from joining a group until its packets arrive; groups are joined on `devices`. `names` has
    the addresses of hosts, with their ports for unicast, for programs that name hosts. `make_codec` makes the codec of each
    further port; None: all share one. `open_disk` opens the host's disk when its machine first uses it. `framing` makes the
    framing of a connection's stream; `tcp` has the options of connections, None leaves them to the kernel.
    `traffic` counts packets sent, `faults` what went wrong.
    """

    trace: Callable[[str, object], None] | None = None
    _run_receiver: RunReceiver | None = None
    _selective: Selective | None = None
    _latest = 0.0
    _queue_drops, _is_queueing = 0, False
    _full_since = inf
    _machine: Machine | None = None
    _reader: SlowReader | None = None
    _on_event: Callable[[Event], None] | None = None
    _accept: Callable[[Offer], Sink | None] | None = None
    _busy = False
    _armed = inf
    _timer: asyncio.TimerHandle | None = None
    _thread: ThreadPoolExecutor | None = None

    def __init__(
        self,
        loop: HostLoop,
        codec: Codec,
        *,
        make_codec: Callable[[], Codec] | None = None,
        interface: str | None,
        port: int,
        rng: Rng,
        options: UdpOptions = DEFAULTS,
        buffers: int = BUFFERS,
        burst: int = SEGMENTS,
        held: bool = False,
        joining: float = 0.0,
        devices: Devices | None = None,
        names: Mapping[str, SocketAddress] | None = None,
        framing: Callable[[], Framing] = LengthPrefixed,
        tcp: TcpOptions | None = None,
        open_disk: OpenDisk | None = None,
    ) -> None:
        self.rng, self.traffic = rng, Traffic()
        self.address = address_of(interface)
        self._loop = loop
        self._epoch = inf if held else loop.time()
        self._unix = time.time()
        self._scheduled: list[tuple[float, Callable[[], None]]] = []
        self._joining = joining
        self._names: Mapping[str, SocketAddress] = names or {}
        self._codec, self._make_codec = codec, make_codec or (lambda: codec)
        devices, tuned = devices or Devices(), (options, buffers, burst)
        self._ports = make_ports(loop, self.address, port, tuned, devices, self._on_readable, self._after_joining)
        self._first = self._ports.open(0, codec, held=held)
        self.unicast_address = self._first.where
        """Where other hosts reach the first machine of this one."""
        self._drops: dict[Address, int] = {}
        self._queue: FairQueue[Arrived] = FairQueue(buffers)
        self._refused = {WireError.reason: 0}
        inputs = Inputs(lambda: self._machine, self._input, self._input_packets, self._flush)
        self._tcp = TcpConnections(loop, self._first.where, codec, framing, tcp, inputs, self._refused)
        if not held:
            self._tcp.begin()
        self.join, self.leave, self.port_of = self._ports.join, self._ports.leave, self._ports.port_of
        self.listen, self.connect = self._tcp.listen, self._tcp.connect
        self.hold, self.release = self._tcp.hold, self._tcp.release
        self._events: deque[Event] = deque()
        self.worked = 0.0
        """Seconds of work that the machine stated."""
        self._disk = HostDisk(open_disk, loop.call_soon_threadsafe, inputs)
        self.store, self.fetch = self._disk.store, self._disk.fetch

    # What applications use -------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the epoch; never decreases."""
        self._latest = max(self._latest, self._loop.time() - self._epoch)
        return self._latest

    def machine_time(self) -> float:
        """See `Host.machine_time`."""
        return self.now

    @property
    def epoch(self) -> float:
        """Unix seconds of time 0; of a held host, whose clock stands at 0, those of the present."""
        return time.time() if self._epoch == inf else self._unix

    @property
    def faults(self) -> dict[str, int]:
        """Datagrams by what went wrong with them, and connections that were reset for it.

        `malformed`: not decodable; where the codec authenticates, `unauthenticated`, `replayed` and `stale`; `send_errors`:
        refused by the kernel when sent; `receive_drops`: dropped by full socket buffers, or of a source that sent more than its
        share while this host could not keep up; `slow_drops`: dropped because a slow application had no room.
        """
        return {
            **self._refused,
            "send_errors": sum(queue.errors for queue in self._ports.queues()),
            "receive_drops": sum(self._drops.values()) + self._queue_drops,
            "slow_drops": 0 if self._reader is None else self._reader.dropped,
        }

    @property
    def refusal(self) -> tuple[int, str]:
        """Number of packets the kernel refused since the last packet it accepted, and the last error message."""
        queue = max(self._ports.queues(), key=lambda queue: queue.refused)
        return queue.refused, queue.reason

    def counters(self) -> dict[str, int]:
        """Return counters for progress reports: packets and bytes sent so far, bytes of content, the machine's, its ring."""
        counts = {} if self._machine is None else progress_of(outermost(self._machine, self._on_event), self.now)
        return {**counts, "packets": sum(self.traffic.packets.values()), "octets": sum(self.traffic.octets.values())}

    def snapshot(self) -> Snapshot:
        """Return the statistics of the machine now, and of what the host sent and dropped."""
        parts = () if self._machine is None else (outermost(self._machine, self._on_event).snapshot(self.now),)
        return Snapshot("host", self.address, {**self.traffic.totals(), **self.faults}, {}, parts)

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; `loop.run()` then runs it. Raises UsageError if this host runs one already."""
        if self._machine is not None:
            raise UsageError("this host already runs a machine")
        machine, self._on_event, self._accept = handed_through(machine, on_event, accept, self)
        self._machine = machine
        self._ports.start()
        if isinstance(machine, Assisted):
            machine.compute_in(self._compute)
            if self._first.run_codec is not None and self._first.queue.takes_batches:
                machine.send_runs(SEGMENTS)
        self._run_receiver = machine if isinstance(machine, RunReceiver) else None
        self._selective = machine if isinstance(machine, Selective) else None
        self._input(machine.start)

    def call(self, verb: Callable[..., T], *args: object) -> T:
        """Call `verb(*args, now)` of the machine and return its result. Raises UsageError from within the machine."""
        if self._busy:
            raise UsageError("host.call from within the machine; call it from an event or a timer")
        self._drain()
        return self._input(verb, *args)

    def address_of(self, name: str, port: int = 0) -> Address:
        """Return the address of the machine at a port of a host; `name` may be "ip:port" as well. UsageError for others."""
        first = self._names[name] if name in self._names else socket_address_of(name)
        return at_port(first, first[1] + port)

    def open_port(self, port: int, codec: Callable[[], Codec] | None = None) -> None:
        """Use a port: UDP port `port` above the first one. Its datagrams have a source of their own."""
        own = codec() if codec is not None else self._make_codec() if port else self._codec
        self._ports.open(port, own, held=self._epoch == inf)
        self._tcp.open_port(port, own)

    def close_port(self, port: int) -> None:
        """Stop using a port: its groups are left, its connections reset, and its sockets closed, but those of port 0."""
        self._tcp.close_port(port)
        self._ports.close_port(port)

    def read_at(self, service_time: float, capacity: int) -> None:
        """Set the application's service time per packet in seconds, with room for `capacity` waiting packets; 0.0 ends it."""
        if self._machine is None:
            return
        if self._reader is None:
            # It stays installed; with a service time of 0 it passes packets on at once. It counts single packets.
            self._machine = self._reader = SlowReader(self, self._machine)
            self._run_receiver = self._selective = None
        self._input(self._reader.read_at, service_time, capacity)

    def stop(self) -> None:
        """Stop the machine, leave its groups and reset its connections."""
        self._machine = None
        self._tcp.stop()
        self._arm(inf)
        self._ports.stop()

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds since the epoch."""
        if self._epoch == inf:
            self._scheduled.append((when, action))
        else:
            self._loop.call_at(self._epoch + when, action)

    def begin(self, epoch: float) -> None:
        """Release a held host: `epoch` is its time 0 on the loop's clock, the same for all hosts of a run."""
        assert self._epoch == inf, "begin is for held hosts, and once"
        self._epoch = epoch
        self._unix = time.time() + epoch - self._loop.time()
        self._arm(self._armed)
        for when, action in self._scheduled:
            self.later(when, action)
        self._scheduled.clear()
        for number in self._ports.numbers():
            self._loop.call_at(epoch, self._on_writable, self._ports[number])
        self._loop.call_at(epoch, self._tcp.begin)

    def close(self) -> None:
        """Close the sockets and cancel the timer; packets the kernel has not taken are lost."""
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
        self._disk.close()
        self._tcp.stop()
        self._ports.close()

    # The ports of the machine ----------------------------------------------------------------------------------------

    def send(self, packet: Packet, port: int = 0) -> bool:
        """Queue a packet. Returns True while the kernel's socket buffer is full, or the connection that it is sent on."""
        message, to, at = packet.message, packet.to, self._ports[port]
        if type(to) is TcpConnection:
            data = to.codec.encode(message)
            self.traffic.count(message, len(data))
            return self._tcp.send(to, data)
        address, device = self._ports.place_of(to)
        dscp = packet.dscp if type(packet) is ClassedPacket else None
        if isinstance(message, Run):
            assert at.run_codec is not None
            octets = at.queue.push_all(at.run_codec.encode_run(message), address, device, dscp)
            self.traffic.count_run(message, octets)
        else:
            data = at.encode(message)
            self.traffic.count(message, len(data))
            at.queue.push(data, address, device, dscp)
        return at.queue.blocked

    def hang_up(self, connection: Connection) -> None:
        """Close a connection when what was sent has arrived."""
        self._tcp.hang_up(connection)
        if self._reader is not None:
            self._reader.forget(connection)

    def notify(self, event: Event) -> None:
        """Queue an event for the application."""
        self._events.append(event)

    def alarm(self, when: float) -> None:
        """Wake the machine at `when`, unless it is to be woken earlier."""
        if when < self._armed:
            self._arm(when)

    def _after_joining(self, action: Callable[[], None]) -> None:
        """Call `action` when the packets of a group that is joined now would arrive."""
        if self._joining:
            self.later(self.now + self._joining, action)
        else:
            action()

    def accept(self, offer: Offer) -> Sink | None:
        """Ask the application for the sink of an offered object; None declines it."""
        return None if self._accept is None else self._accept(offer)

    def keep(self, octets: int, port: int = 0) -> None:
        """Do nothing: the kernel limits the memory of a process."""

    def fail(self, reason: str) -> None:
        """End the program of this host. Raises FailureError, which stops the loop."""
        raise FailureError(reason)

    def work(self, seconds: float) -> None:
        """See `Ports.work`: what was sent before leaves, then the time is spent."""
        self._flush()
        self.worked += seconds
        spend(seconds)

    # Inputs ----------------------------------------------------------------------------------------------------------

    def _input(self, verb: Callable[..., T], *args: object) -> T:
        self._busy = True
        try:
            answer = verb(*args, self.now)
        finally:
            self._busy = False
        self._drain()
        self._flush()
        return answer

    def _compute(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Call a function in this host's other thread, which begins with the first of them."""
        self._thread = self._thread or ThreadPoolExecutor(1, "computing")
        return self._thread.submit(function, *arguments)

    def _drain(self) -> None:
        events = self._events
        while events:
            assert self._on_event is not None
            self._on_event(events.popleft())

    def _flush(self) -> None:
        self._tcp.flush()
        for port in self._ports.flush():
            port.is_writing = True
            self._loop.add_writer(port.transmitter, self._on_writable, port)

    def _on_writable(self, port: UdpPort) -> None:
        if port.transmitter.fileno() < 0:
            # It was closed while the host was held.
            return
        port.queue.retry()
        if not port.queue.blocked:
            port.is_writing = False
            self._loop.remove_writer(port.transmitter)
            # A host can begin before its machine is started, and outlive it.
            if self._machine is not None:
                self._input(self._machine.resume)

    def _on_readable(self, sock: socket.socket, to: Address) -> None:
        """Receive from a socket for a limited time, then send what that caused, in as large batches as possible."""
        self._receive(sock, to)
        self._flush()

    def _receive(self, sock: socket.socket, to: Address) -> None:
        taken, clock, readers = 0, self._loop.time, self._ports.readers
        end = clock() + _LONGEST_BATCH
        while (self._is_queueing or taken < _MAX_BATCH) and sock.fileno() >= 0 and clock() < end:
            try:
                data, segment, source, drops, marked = receive_coalesced(sock)
            except BlockingIOError:
                self._full_since = inf
                return
            except OSError:
                # An earlier unicast packet was answered by ICMP port unreachable.
                self._first.queue.errors += 1
                taken += 1
                continue
            if drops:
                self._drops[to] = drops
            packets = -(-len(data) // segment) if segment else 1
            taken += packets
            if source in readers and self._ports.is_own(source, to):
                continue
            if not self._is_queueing:
                self._deliver(data, segment, source, to, marked)
            elif self._queue.has_room(source[0]):
                self._queue.push(source[0], len(data), (data, 0, segment, source, to, marked), packets)
            else:
                self._queue_drops += packets
        self._note_full(clock())

    def _note_full(self, now: float) -> None:
        """Begin to queue packets by source if no socket was found empty for some time: this host can't keep up."""
        self._full_since = min(self._full_since, now)
        if now - self._full_since >= _PATIENCE and not self._is_queueing:
            self._is_queueing = True
            self._loop.call_soon(self._serve_queue)

    def _serve_queue(self) -> None:
        """Process packets of the queue for a limited time, and again after sockets and timers until it is empty."""
        queue, clock = self._queue, self._loop.time
        end = clock() + _LONGEST_BATCH
        while queue and self._machine is not None and clock() < end:
            queue.serve(self._deliver_queued, clock)
        self._flush()
        if self._machine is None:
            queue.clear()
        if queue or self._full_since < inf:
            self._loop.call_soon(self._serve_queue)
        else:
            self._is_queueing = False

    def _deliver_queued(self, arrived: Arrived) -> Arrived | None:
        """Deliver the next packet or run of a batch, and return the rest: one that opens a file may take milliseconds."""
        data, start, segment, source, to, marked = arrived
        end = self._deliver_next(data, start, segment, source, to, marked)
        return (data, end, segment, source, to, marked) if end < len(data) else None

    def _deliver(self, data: bytes, segment: int, source: SocketAddress, to: Address, marked: bool) -> None:
        """Decode and deliver the packets of a batch of `segment` bytes each: the hot path."""
        size, end = len(data), self._deliver_next(data, 0, segment, source, to, marked)
        while end < size and self._machine is not None:
            end = self._deliver_next(data, end, segment, source, to, marked)

    def _deliver_next(self, data: bytes, start: int, segment: int, source: SocketAddress, to: Address, marked: bool) -> int:
        """Decode and deliver a packet of a batch, or a run of them at once; return the offset of the next one."""
        machine, size, codec = self._machine, len(data), self._ports.readers.get(to)
        assert machine is not None
        if codec is None:
            # The group was left meanwhile.
            return size
        end = start + segment
        if end < size and self._run_receiver is not None and codec.run_codec is not None and not marked:
            run = codec.run_codec.decode_run(data, start, segment)
            if run is not None:
                self._input_packets(self._run_receiver.receive_run, run, source, to)
                return start + run.packets * segment
        packet = data[start:end] if size > segment else data
        selective = self._selective if self._is_queueing or len(packet) > _LARGE else None
        if selective is not None and not selective.is_worth_decoding(packet, source, self.now):
            return end
        try:
            message = codec.decode(packet)
        except WireError as error:
            self._refused[error.reason] = self._refused.get(error.reason, 0) + 1
        else:
            self._input_packets(machine.receive_marked if marked else machine.receive, message, source, to)
        return end

    def _input_packets(self, verb: Callable[..., None], *arguments: object) -> None:
        """Deliver a message or a run; what is sent is flushed later."""
        self._busy = True
        try:
            verb(*arguments, self.now)
        finally:
            self._busy = False
        if self._events:
            self._drain()

    # The one timer ---------------------------------------------------------------------------------------------------

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed = when
        if when < inf and self._epoch < inf:
            self._timer = self._loop.call_at(self._epoch + when, self._wake)

    def _wake(self) -> None:
        self._timer, self._armed = None, inf
        machine, now = self._machine, self.now
        assert machine is not None
        if machine.deadline <= now:
            self._input(self._run_wake)
        self._arm(max(machine.deadline, now + _TIMER_QUANTUM))

    def _run_wake(self, now: float) -> None:
        machine = self._machine
        assert machine is not None
        machine.wake(now)
        # Checked before the application handles events, whose calls may be due at once. nan is not later either.
        if not machine.deadline > now:
            raise LivelockError(f"{type(machine).__name__} is due at {machine.deadline} after its wake-up at {now}")
