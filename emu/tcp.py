"""Connections of a host by the kernel's TCP, the counterpart of `sim.tcp`.

Everything runs in callbacks of the host's event loop. A connection whose process is killed is reset by the kernel at once,
because its socket lingers for no time; one that is hung up is shut down first, and closed when the other end has closed, too.

What others send is bounded: an incomplete frame in its length (`protocols.framing`) and in the time until it is complete, all
incomplete frames of a host together in memory, and connections in their number. What breaks such a limit, or can't be decoded,
is reset and counted.
"""

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from emu.addresses import SocketAddress, at_port
from emu.loop import HostLoop
from emu.tcp_connection import CLOSED, CONNECTING, HANGING_UP, OPEN, TcpConnection
from emu.tcp_sockets import end_orderly, open_listener, open_socket, reason_of
from protocols.connection import Connection, Reason
from protocols.errors import ContractError, UsageError, WireError
from protocols.framing import Framing
from protocols.machine import Codec, Machine
from protocols.tcp.options import SILENCE, TcpOptions

__all__ = ["Inputs", "TcpConnections"]

_READ = 256 << 10
"""Bytes received by one system call."""
_FULL, _DRAINED = 256 << 10, 64 << 10
"""Bytes waiting in user space at which a connection is full, and at which it has drained, where no options limit them."""
_TURN, _SHARE = 0.005, 0.001
"""Seconds for which messages of connections are processed before timers and other sockets are served, and those of one."""
_LOOK = 1.0
"""Seconds between two checks for connections whose other end does not go on."""
_LEAST_RATE = 1000
"""Least rate in bytes per second at which a frame has to arrive, after SILENCE seconds."""
_INCOMPLETE = 256 << 20
"""Bytes of incomplete frames of all connections of a host."""
_ACCEPT = 64
"""Most connections accepted at once."""
_MOST = 4096
"""Connections of a host at which it accepts no more."""


class Inputs(NamedTuple):
    """The interface of a host to its connections."""

    machine: Callable[[], Machine | None]
    """Returns the machine that runs, if any."""
    call: Callable[..., object]
    """Calls an input of the machine with the time, then delivers events and sends what is queued."""
    deliver: Callable[..., None]
    """The same without sending what is queued."""
    flush: Callable[[], None]
    """Sends what is queued."""


class TcpConnections:
    """All connections of one host; `listen`, `connect`, `send` and `hang_up` are ports of its machine.

    `where` is the address of the host's port 0, that of port n is n higher. Messages of port 0 have the `codec`, those of other
    ports the one given to `open_port`. `make_framing` makes the framing of a connection's stream.
    `refused` counts resets by reason.
    """

    def __init__(
        self,
        loop: HostLoop,
        where: SocketAddress,
        codec: Codec,
        make_framing: Callable[[], Framing],
        options: TcpOptions | None,
        inputs: Inputs,
        refused: dict[str, int],
    ) -> None:
        self._loop, self._where, self._options, self._inputs, self._refused = loop, where, options, inputs, refused
        # With options the kernel's buffer is all that an end keeps, but for what one input of the machine sends.
        self._full, self._drained = (_FULL, _DRAINED) if options is None else (options.buffer, 0)
        self._codecs = {0: codec}
        self._make_framing = make_framing
        self._listeners: dict[int, socket.socket] = {}
        self._connections: dict[TcpConnection, None] = {}
        self._dirty: list[TcpConnection] = []
        self._ready: deque[TcpConnection] = deque()
        self._buffer = memoryview(bytearray(_READ))
        self._begun = False
        self._timer: asyncio.TimerHandle | None = None

    # The ports of the machine ----------------------------------------------------------------------------------------

    def open_port(self, port: int, codec: Codec) -> None:
        """Use a codec for the messages of connections of a port."""
        self._codecs[port] = codec

    def close_port(self, port: int) -> None:
        """Listen no more at a port and reset its connections, without an input of the machine."""
        self._stop_listening(port)
        for connection in list(self._connections):
            if connection.port == port:
                self._drop(connection)

    def listen(self, port: int = 0) -> None:
        """Accept connections at a port, from `begin` on. Raises UsageError if another program listens there."""
        if port not in self._listeners:
            where = at_port(self._where, self._where[1] + port)
            self._listeners[port] = open_listener(where, self._options)
            self._go_on_accepting()

    def connect(self, peer: object, port: int = 0) -> TcpConnection:
        """Begin a connection of a port, at `begin` at the earliest. Raises UsageError for what is no address of a host."""
        if not (isinstance(peer, tuple) and len(peer) == len(self._where)):
            raise UsageError(f"can't connect to {peer!r}, which is no address and port of a host")
        connection = self._add(peer, port, open_socket(self._where, self._options), CONNECTING)
        if self._begun:
            self._connect(connection)
        return connection

    def send(self, connection: TcpConnection, data: bytes) -> bool:
        """Queue an encoded message. Returns whether the connection is full."""
        if connection.state != OPEN:
            raise ContractError(f"a message was sent on {connection!r}, which is not open")
        connection.push(data)
        self._mark(connection)
        # Full even if the kernel would take it, so that a machine that sends until it is full comes to an end.
        is_refused = connection.is_writing and self._options is not None
        connection.is_full = connection.is_full or is_refused or connection.queued > self._full
        return connection.is_full

    def hang_up(self, connection: Connection) -> None:
        """Close a connection when what was sent has arrived; nothing more is received."""
        assert isinstance(connection, TcpConnection)
        if connection.state == CONNECTING:
            self._loop.call_soon(self._end, connection, "ended")
        elif connection.state == OPEN:
            connection.state, connection.received, connection.seen = HANGING_UP, 0, -1
            connection.arrived.clear()
            self.release(connection)
            self._mark(connection)

    def _mark(self, connection: TcpConnection) -> None:
        """Have a connection written to by the next `flush`."""
        if not connection.is_dirty:
            connection.is_dirty = True
            self._dirty.append(connection)

    def hold(self, connection: Connection) -> None:
        """Deliver no more messages of a connection before `release`; its receive buffer fills, and its other end waits."""
        assert isinstance(connection, TcpConnection)
        if not connection.is_held and connection.state == OPEN:
            connection.is_held = True
            self._loop.remove_reader(connection.sock)

    def release(self, connection: Connection) -> None:
        """Deliver the messages of a connection again."""
        assert isinstance(connection, TcpConnection)
        if connection.is_held:
            connection.is_held = False
            if connection.state != CLOSED:
                self._loop.add_reader(connection.sock, self._on_readable, connection)
                # What was received before it was held waits here and not in the socket.
                self._on_readable(connection)

    # What the host calls ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Connect and accept; before, the host is held."""
        self._begun = True
        for connection in list(self._connections):
            self._connect(connection)
        self._go_on_accepting()

    def flush(self) -> None:
        """Give the kernel what was sent, connection by connection."""
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.is_dirty = False
            self._write(connection)

    def stop(self) -> None:
        """Close everything; connections that are not hung up are reset."""
        for port in list(self._listeners):
            self._stop_listening(port)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in list(self._connections):
            self._drop(connection)

    # Opening and closing ---------------------------------------------------------------------------------------------

    def _add(self, peer: SocketAddress, port: int, sock: socket.socket, state: int) -> TcpConnection:
        codec = self._codecs.get(port, self._codecs[0])
        connection = TcpConnection(peer, port, sock, self._make_framing(), codec, self._loop.time(), state)
        self._connections[connection] = None
        if self._timer is None:
            self._timer = self._loop.call_later(_LOOK, self._look)
        return connection

    def _connect(self, connection: TcpConnection) -> None:
        number = connection.sock.connect_ex(connection.peer)
        if number in (0, errno.EINPROGRESS):
            self._loop.add_writer(connection.sock, self._on_connected, connection)
        else:
            self._fail(connection, reason_of(OSError(number, "")))

    def _on_connected(self, connection: TcpConnection) -> None:
        sock = connection.sock
        self._loop.remove_writer(sock)
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._end(connection, reason_of(OSError(number, "")))
        elif sock.getsockname() == connection.peer:
            # Where no program listens, a socket may get this same port and be connected with itself.
            self._end(connection, "refused")
        else:
            self._open(connection)

    def _open(self, connection: TcpConnection) -> None:
        machine = self._inputs.machine()
        if machine is None:
            self._forget(connection)
            return
        connection.state = OPEN
        self._loop.add_reader(connection.sock, self._on_readable, connection)
        self._inputs.call(machine.opened, connection)

    def _go_on_accepting(self) -> None:
        if self._begun and len(self._connections) < _MOST:
            for port, listener in self._listeners.items():
                self._loop.add_reader(listener, self._on_connections, port, listener)

    def _stop_accepting(self) -> None:
        for listener in self._listeners.values():
            self._loop.remove_reader(listener)

    def _stop_listening(self, port: int) -> None:
        listener = self._listeners.pop(port, None)
        if listener is not None:
            self._loop.remove_reader(listener)
            listener.close()

    def _on_connections(self, port: int, listener: socket.socket) -> None:
        """Accept some of the connections that wait."""
        for _ in range(_ACCEPT):
            if len(self._connections) >= _MOST or listener.fileno() < 0:
                break
            try:
                sock, peer = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # Too many files are open. Those who connect wait until connections are closed.
                self._stop_accepting()
                self._loop.call_later(_LOOK, self._go_on_accepting)
                return
            sock.setblocking(False)
            self._open(self._add(peer, port, sock, OPEN))
        if len(self._connections) >= _MOST:
            self._stop_accepting()

    def _fail(self, connection: TcpConnection, reason: Reason) -> None:
        """End a connection after the present input of the machine."""
        self._loop.call_soon(self._end, connection, reason)

    def _end(self, connection: TcpConnection, reason: Reason) -> None:
        """Close a connection and call `closed` of the machine, once."""
        if connection.state == CLOSED:
            return
        if reason == "ended":
            end_orderly(connection.sock)
        self._forget(connection)
        machine = self._inputs.machine()
        if machine is not None:
            self._inputs.call(machine.closed, connection, reason)

    def _drop(self, connection: TcpConnection) -> None:
        """Close a connection without an input of the machine; what was hung up still arrives."""
        if connection.state == HANGING_UP and not connection.queue:
            # The kernel delivers what it was given.
            end_orderly(connection.sock)
        self._forget(connection)

    def _forget(self, connection: TcpConnection) -> None:
        connection.state = CLOSED
        connection.arrived.clear()
        connection.queue.clear()
        self._connections.pop(connection, None)
        self._loop.remove_reader(connection.sock)
        self._loop.remove_writer(connection.sock)
        connection.sock.close()
        if len(self._connections) == _MOST - 1:
            self._go_on_accepting()

    def _reset(self, connection: TcpConnection, error: str) -> None:
        """Reset a connection whose other end sends what it must not."""
        self._refused[error] = self._refused.get(error, 0) + 1
        self._end(connection, "reset")

    # Receiving -------------------------------------------------------------------------------------------------------

    def _on_readable(self, connection: TcpConnection) -> None:
        """Give a connection a turn, after those that wait for one."""
        if connection.is_ready or connection.is_held:
            return
        connection.is_ready = True
        if not self._ready:
            self._loop.call_soon(self._serve)
        self._ready.append(connection)

    def _serve(self) -> None:
        """Process messages of connections in turn; what is left when the time is over waits for timers and other sockets."""
        ready, clock = self._ready, self._loop.time
        end = clock() + _TURN
        while ready and clock() < end:
            connection = ready.popleft()
            connection.is_ready = False
            if not (connection.arrived or connection.error or connection.is_held) and connection.state != CLOSED:
                self._read(connection)
            if connection.arrived:
                self._deliver(connection, clock() + _SHARE)
                self._inputs.flush()
            if connection.is_held:
                continue
            if connection.arrived:
                connection.is_ready = True
                ready.append(connection)
            elif connection.error is not None and connection.state != CLOSED:
                self._reset(connection, connection.error)
        if ready:
            self._loop.call_soon(self._serve)

    def _read(self, connection: TcpConnection) -> None:
        """Receive once, and cut what was received into messages."""
        try:
            size = connection.sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self._end(connection, reason_of(error))
            return
        if connection.state == HANGING_UP:
            connection.received += size
            if not size:
                self._end(connection, "ended")
        elif size:
            try:
                connection.framing.unwrap(self._buffer[:size], connection.arrived)
            except WireError as error:
                connection.error = error.reason
            connection.received += len(connection.arrived)
        elif connection.framing.waiting:
            # The stream ends within a frame.
            self._reset(connection, WireError.reason)
        else:
            self._end(connection, "ended")

    def _deliver(self, connection: TcpConnection, end: float) -> None:
        """Decode and deliver what has arrived, until the time `end`: the hot path."""
        arrived, decode, clock, inputs = connection.arrived, connection.codec.decode, self._loop.time, self._inputs
        while arrived and not connection.is_held:
            machine = inputs.machine()
            if machine is None:
                arrived.clear()
                return
            try:
                message = decode(arrived.popleft())
            except WireError as error:
                arrived.clear()
                connection.error = error.reason
                return
            inputs.deliver(machine.receive, message, connection, connection)
            if clock() > end:
                return

    # Sending ---------------------------------------------------------------------------------------------------------

    def _write(self, connection: TcpConnection) -> None:
        """Give the kernel what is queued; what it does not take waits until there is room."""
        if connection.is_writing or connection.state == CLOSED:
            return
        try:
            connection.write()
        except BlockingIOError:
            connection.is_writing = True
            self._loop.add_writer(connection.sock, self._on_writable, connection)
        except OSError as error:
            self._fail(connection, reason_of(error))
        if connection.is_full and connection.queued <= self._drained:
            self._loop.call_soon(self._drain, connection)

    def _on_writable(self, connection: TcpConnection) -> None:
        connection.is_writing = False
        self._write(connection)
        if not connection.is_writing:
            self._loop.remove_writer(connection.sock)

    def _drain(self, connection: TcpConnection) -> None:
        machine = self._inputs.machine()
        if connection.is_full and connection.queued <= self._drained and connection.state == OPEN and machine is not None:
            connection.is_full = False
            self._inputs.call(machine.drained, connection)

    # Others that do not go on ----------------------------------------------------------------------------------------

    def _look(self) -> None:
        """End connections whose other end does not go on with a frame, or does not close after a hang-up."""
        self._timer, now = None, self._loop.time()
        for connection in list(self._connections):
            if connection.goes_on:
                connection.seen, connection.seen_at = connection.received, now
            elif now - connection.seen_at > SILENCE + connection.framing.waiting / _LEAST_RATE:
                if connection.state == OPEN:
                    self._reset(connection, WireError.reason)
                else:
                    self._end(connection, "timeout")
        waiting = {connection: connection.framing.waiting for connection in self._connections}
        if sum(waiting.values()) > _INCOMPLETE:
            self._reset(max(waiting, key=waiting.__getitem__), WireError.reason)
        if self._connections:
            self._timer = self._loop.call_later(_LOOK, self._look)
