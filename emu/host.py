"""`UdpHost` runs one machine on real UDP sockets, as `sim.host.SimHost` does in the simulator.

Everything runs in one thread, in callbacks of one event loop. An exception of a machine or an application stops the loop and
is raised by `Loop.run`.
"""

import asyncio
import ctypes
import selectors
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Address
from math import inf
from typing import Any, TypeAlias, TypeVar

from emu.fair_queue import FairQueue
from emu.slow_reader import SlowReader
from emu.udp import (
    BUFFERS,
    SEGMENTS,
    SendQueue,
    SocketAddress,
    address_of,
    open_receiver,
    open_transmitter,
    receive_coalesced,
    socket_address_of,
)
from protocols.batches import Assisted, RunCodec, RunReceiver, Selective
from protocols.errors import LivelockError, UsageError, WireError
from protocols.machine import Address, Codec, Event, Group, Machine, Offer, Packet, Sink
from protocols.rng import Rng
from protocols.run import Run
from protocols.traffic import Traffic

__all__ = ["Loop", "UdpHost", "new_loop"]

T = TypeVar("T")
Arrived: TypeAlias = tuple[bytes, int, int, SocketAddress, Address]
"""A batch of packets, the offset of the next one, their length, their source, and the address they came to."""

_PR_SET_TIMERSLACK = 29
_MAX_BATCH = 100
"""Most packets received from one socket before other sockets and timers are served."""
_LONGEST_BATCH = 0.005
"""Seconds after which no more packets are received from one socket before the others, timers and signals are served."""
_LARGE = 8192
"""Bytes of a single packet that is decoded only if the machine wants it, even by a host that keeps up."""
_PATIENCE = 0.05
"""Seconds for which no socket was found empty before a host begins to queue packets by source."""
_TIMER_QUANTUM = 0.0005
"""Seconds: wake-ups closer than this are merged, so that a fast sender fills its batches."""


class Loop(asyncio.SelectorEventLoop):
    """An asyncio event loop with exact timers that stops at the first exception of a callback.

    `select` waits with microsecond resolution where `epoll` rounds to milliseconds; the timer slack of the kernel is set to
    its minimum for the same reason (prctl(2), PR_SET_TIMERSLACK).
    """

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self._failure: BaseException | None = None
        self.set_exception_handler(Loop._failed)
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)

    @staticmethod
    def _failed(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        assert isinstance(loop, Loop)
        if loop._failure is None:
            loop._failure = context.get("exception") or RuntimeError(context["message"])
        loop.stop()

    def run(self, duration: float = inf) -> None:
        """Run until `stop()` or for `duration` seconds; raise the first exception of a callback."""
        limit = None if duration == inf else self.call_later(duration, self.stop)
        try:
            self.run_forever()
        finally:
            if limit is not None:
                limit.cancel()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure


def new_loop() -> Loop:
    """Return a new loop for one or several hosts."""
    return Loop()


class UdpHost:
    """A node on a real network: sockets, clock, and the ports of its machine.

    `interface` is a device name or an IPv4 address (None: where the system routes multicast), `port` the UDP port for unicast
    to this node; the name of a group contains its own port. `buffers` is the size in bytes of the kernel's socket buffers, and
    of the queue for what this host has no time to process, `burst` the most packets in one system call, `loopback` whether
    other programs of this machine receive the multicast.

    With `held`, the host can be started and joins its groups, but its clock stands at 0 and nothing is sent until `begin`, so
    that many hosts begin together. `joining` is the time in seconds from joining a group until its packets arrive. `traffic`
    counts packets sent, `faults` what went wrong.
    """

    trace: Callable[[str, object], None] | None = None

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        codec: Codec,
        *,
        interface: str | None,
        port: int,
        rng: Rng,
        ttl: int = 1,
        buffers: int = BUFFERS,
        burst: int = SEGMENTS,
        loopback: bool = True,
        held: bool = False,
        joining: float = 0.0,
    ) -> None:
        self.rng = rng
        self.traffic = Traffic()
        self.address = address_of(interface)
        self._loop = loop
        self._encode, self._decode = codec.encode, codec.decode
        self._run_codec = codec if isinstance(codec, RunCodec) else None
        self._run_receiver: RunReceiver | None = None
        self._selective: Selective | None = None
        self._epoch = inf if held else loop.time()
        self._scheduled: list[tuple[float, Callable[[], None]]] = []
        self._latest = 0.0
        self._buffers = buffers
        self._joining = joining
        self._joins: dict[Group, float] = {}
        transmitter = open_transmitter(self.address, ttl, loopback, buffers)
        self._own_address: SocketAddress = transmitter.getsockname()
        self._send_queue = SendQueue(transmitter, burst)
        self._send_queue.blocked = held
        here = (self.address, port)
        self._sockets: dict[Address, socket.socket] = {
            self._own_address: transmitter,
            here: open_receiver(here, self.address, buffers),
        }
        self._drops: dict[Address, int] = {}
        self._queue: FairQueue[Arrived] = FairQueue(buffers)
        self._queue_drops = 0
        self._is_queueing = False
        self._full_since = inf
        self._refused = {WireError.reason: 0}
        self._events: deque[Event] = deque()
        self._machine: Machine | None = None
        self._reader: SlowReader | None = None
        self._on_event: Callable[[Event], None] | None = None
        self._accept: Callable[[Offer], Sink | None] | None = None
        self._busy = False
        self._writing = held
        self._armed = inf
        self._timer: asyncio.TimerHandle | None = None
        self._thread: ThreadPoolExecutor | None = None

    # What applications use -------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the epoch; never decreases."""
        self._latest = max(self._latest, self._loop.time() - self._epoch)
        return self._latest

    @property
    def faults(self) -> dict[str, int]:
        """Datagrams by what went wrong with them.

        `malformed`: not decodable; where the codec authenticates, `unauthenticated`, `replayed`
        and `stale`; `send_errors`: refused by the kernel when sent; `receive_drops`: dropped by full socket buffers, or of a
        source that sent more than its share while this host could not keep up; `slow_drops`: dropped because a slow application
        had no room.
        """
        return {
            **self._refused,
            "send_errors": self._send_queue.errors,
            "receive_drops": sum(self._drops.values()) + self._queue_drops,
            "slow_drops": 0 if self._reader is None else self._reader.dropped,
        }

    @property
    def refusal(self) -> tuple[int, str]:
        """Number of packets the kernel refused since the last packet it accepted, and the last error message."""
        return self._send_queue.refused, self._send_queue.reason

    def counters(self) -> dict[str, int]:
        """Return counters for progress reports: packets and bytes sent so far, and those of the machine."""
        counts = {} if self._machine is None else self._machine.counts()
        return {**counts, "packets": sum(self.traffic.packets.values()), "octets": sum(self.traffic.octets.values())}

    def run(
        self, machine: Machine, on_event: Callable[[Event], None], accept: Callable[[Offer], Sink | None] | None = None
    ) -> None:
        """Start the machine; `loop.run()` then runs it. Raises UsageError if this host runs one already."""
        if self._machine is not None:
            raise UsageError("this host already runs a machine")
        self._machine, self._on_event, self._accept = machine, on_event, accept
        for to, sock in self._sockets.items():
            self._loop.add_reader(sock, self._on_readable, sock, to)
        if isinstance(machine, Assisted):
            machine.compute_in(self._compute)
            if self._run_codec is not None and self._send_queue.takes_batches:
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
        """Stop the machine and leave its groups."""
        self._machine = None
        self._arm(inf)
        for to, sock in list(self._sockets.items()):
            self._loop.remove_reader(sock)
            if isinstance(to, Group):
                self.leave(to)

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
        self._arm(self._armed)
        for when, action in self._scheduled:
            self.later(when, action)
        self._scheduled.clear()
        self._loop.call_at(epoch, self._on_writable)

    def close(self) -> None:
        """Close the sockets and cancel the timer; packets the kernel has not taken are lost."""
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
        for sock in self._sockets.values():
            self._loop.remove_reader(sock)
            self._loop.remove_writer(sock)
            sock.close()
        self._sockets.clear()

    # The ports of the machine ----------------------------------------------------------------------------------------

    def send(self, packet: Packet) -> bool:
        """Queue a packet. Returns True while the kernel's socket buffer is full."""
        message, to = packet.message, packet.to
        address: SocketAddress = socket_address_of(to.name) if type(to) is Group else to  # type: ignore[assignment]
        if isinstance(message, Run):
            assert self._run_codec is not None
            batch = self._run_codec.encode_run(message)
            self.traffic.count_run(message, sum(map(len, batch)))
            for data in batch:
                self._send_queue.push(data, address)
        else:
            data = self._encode(message)
            self.traffic.count(message, len(data))
            self._send_queue.push(data, address)
        return self._send_queue.blocked

    def notify(self, event: Event) -> None:
        """Queue an event for the application."""
        self._events.append(event)

    def alarm(self, when: float) -> None:
        """Wake the machine at `when`, unless it is to be woken earlier."""
        if when < self._armed:
            self._arm(when)

    def join(self, group: Group) -> None:
        """Receive what is sent to the group; a group with a unicast address is this node's own port and is not joined."""
        if not self._joining:
            self._open_group(group)
            return
        since = self._joins[group] = self.now
        self.later(since + self._joining, partial(self._on_joined, group, since))

    def _on_joined(self, group: Group, since: float) -> None:
        """Receive from the group, unless it has been left or joined again since."""
        if self._joins.get(group) == since:
            self._open_group(group)

    def _open_group(self, group: Group) -> None:
        where = socket_address_of(group.name)
        if group in self._sockets:
            return
        if not IPv4Address(where[0]).is_multicast:
            where = (self.address, where[1])
            if where in self._sockets:
                return
        sock = self._sockets[group] = open_receiver(where, self.address, self._buffers)
        self._loop.add_reader(sock, self._on_readable, sock, group)

    def leave(self, group: Group) -> None:
        """Stop receiving from the group."""
        self._joins.pop(group, None)
        sock = self._sockets.pop(group, None)
        if sock is not None:
            self._loop.remove_reader(sock)
            sock.close()

    def accept(self, offer: Offer) -> Sink | None:
        """Ask the application for the sink of an offered object; None declines it."""
        return None if self._accept is None else self._accept(offer)

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
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "computing")
        return self._thread.submit(function, *arguments)

    def _drain(self) -> None:
        events = self._events
        while events:
            assert self._on_event is not None
            self._on_event(events.popleft())

    def _flush(self) -> None:
        queue = self._send_queue
        queue.flush()
        if queue.blocked and not self._writing:
            self._writing = True
            self._loop.add_writer(self._sockets[self._own_address], self._on_writable)

    def _on_writable(self) -> None:
        self._send_queue.retry()
        if not self._send_queue.blocked:
            self._writing = False
            self._loop.remove_writer(self._sockets[self._own_address])
            # A host can begin before its machine is started, and outlive it.
            if self._machine is not None:
                self._input(self._machine.resume)

    def _on_readable(self, sock: socket.socket, to: Address) -> None:
        taken, clock = 0, self._loop.time
        end = clock() + _LONGEST_BATCH
        while (self._is_queueing or taken < _MAX_BATCH) and sock.fileno() >= 0 and clock() < end:
            try:
                data, segment, source, drops = receive_coalesced(sock)
            except BlockingIOError:
                self._full_since = inf
                return
            except OSError:
                # An earlier unicast packet was answered by ICMP port unreachable.
                self._send_queue.errors += 1
                taken += 1
                continue
            if drops:
                self._drops[to] = drops
            packets = -(-len(data) // segment) if segment else 1
            taken += packets
            if source == self._own_address:
                continue
            if not self._is_queueing:
                self._deliver(data, segment, source, to)
            elif self._queue.has_room(source[0]):
                self._queue.push(source[0], len(data), (data, 0, segment, source, to), packets)
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
        """Process packets of the queue for a moment, and again after sockets and timers until it is empty."""
        queue, clock = self._queue, self._loop.time
        end = clock() + _LONGEST_BATCH
        while queue and self._machine is not None and clock() < end:
            queue.serve(self._deliver_queued, clock)
        if self._machine is None:
            queue.clear()
        if queue or self._full_since < inf:
            self._loop.call_soon(self._serve_queue)
        else:
            self._is_queueing = False

    def _deliver_queued(self, arrived: Arrived) -> Arrived | None:
        """Deliver what comes next of a batch, since a packet that opens a file may take milliseconds; return what is left."""
        data, start, segment, source, to = arrived
        end = self._deliver_next(data, start, segment, source, to)
        self._flush()
        return (data, end, segment, source, to) if end < len(data) else None

    def _deliver(self, data: bytes, segment: int, source: SocketAddress, to: Address) -> None:
        """Decode and deliver the packets of a batch of `segment` bytes each: the hot path."""
        size, end = len(data), self._deliver_next(data, 0, segment, source, to)
        while end < size and self._machine is not None:
            end = self._deliver_next(data, end, segment, source, to)
        self._flush()

    def _deliver_next(self, data: bytes, start: int, segment: int, source: SocketAddress, to: Address) -> int:
        """Decode and deliver a packet of a batch, or a run of them at once; return the offset of the next one."""
        machine, size = self._machine, len(data)
        assert machine is not None
        end = start + segment
        if end < size and self._run_receiver is not None and self._run_codec is not None:
            run = self._run_codec.decode_run(data, start, segment)
            if run is not None:
                self._input_packets(self._run_receiver.receive_run, run, source, to)
                return start + run.packets * segment
        packet = data[start:end] if size > segment else data
        if (self._is_queueing or len(packet) > _LARGE) and not self._is_wanted(packet, source):
            return end
        try:
            message = self._decode(packet)
        except WireError as error:
            self._refused[error.reason] = self._refused.get(error.reason, 0) + 1
        else:
            self._input_packets(machine.receive, message, source, to)
        return end

    def _is_wanted(self, packet: bytes, source: SocketAddress) -> bool:
        return self._selective is None or self._selective.is_worth_decoding(packet, source, self.now)

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
        # Checked before the application handles events, whose calls may be due at once.
        if machine.deadline <= now:
            raise LivelockError(f"{type(machine).__name__} is due at {machine.deadline} after its wake-up at {now}")
