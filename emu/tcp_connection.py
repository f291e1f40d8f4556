"""One end of a connection by the kernel's TCP: its socket and what waits on both sides of it."""

import socket
import struct
import termios
from collections import deque
from fcntl import ioctl
from itertools import islice

from emu.addresses import SocketAddress
from protocols.connection import Connection
from protocols.framing import Framing
from protocols.machine import Codec

__all__ = ["CLOSED", "CONNECTING", "HANGING_UP", "OPEN", "TcpConnection"]

CONNECTING, OPEN, HANGING_UP, CLOSED = range(4)
"""States of an end; one that hangs up sends what is queued, and waits until the other end has closed, too."""

_GATHER = 1024
"""Most buffers in one system call (IOV_MAX)."""


class TcpConnection(Connection):
    """One end of a connection. `now` is the loop's time."""

    __slots__ = (
        "arrived",
        "codec",
        "error",
        "framing",
        "is_dirty",
        "is_full",
        "is_held",
        "is_ready",
        "is_writing",
        "queue",
        "queued",
        "received",
        "seen",
        "seen_at",
        "sock",
        "state",
    )

    def __init__(
        self, peer: SocketAddress, port: int, sock: socket.socket, framing: Framing, codec: Codec, now: float, state: int
    ) -> None:
        super().__init__(peer, port)
        self.peer: SocketAddress
        self.sock = sock
        self.framing = framing
        self.codec = codec
        self.state = state
        self.arrived: deque[bytes] = deque()
        """Encoded messages that the machine has not received yet."""
        self.error: str | None = None
        """Counter of the error in the bytes behind them; None without an error."""
        self.queue: deque[bytes | memoryview] = deque()
        """Frames that the kernel has not taken, and their bytes in `queued`."""
        self.queued = 0
        self.is_full = self.is_writing = self.is_dirty = self.is_ready = self.is_held = False
        self.received = 0
        """Bytes received if hanging up, else messages."""
        self.seen, self.seen_at = 0, now
        """`received` at the last look at which the connection went on, and the time of that look."""

    def push(self, data: bytes) -> None:
        """Queue an encoded message."""
        frame = self.framing.wrap(data)
        self.queue.append(frame)
        self.queued += len(frame)

    def write(self) -> None:
        """Give the kernel what is queued; after a hang-up, shut down behind it.

        Raises BlockingIOError when the kernel's buffer is full, and OSError when the connection is over.
        """
        queue = self.queue
        while queue:
            buffers = queue if len(queue) <= _GATHER else list(islice(queue, _GATHER))
            self._remove(self.sock.sendmsg(buffers))
        if self.state == HANGING_UP:
            self.sock.shutdown(socket.SHUT_WR)

    def _remove(self, size: int) -> None:
        """Remove the first `size` bytes of the queue."""
        queue = self.queue
        self.queued -= size
        while size:
            first = queue.popleft()
            if len(first) > size:
                queue.appendleft(memoryview(first)[size:])
                return
            size -= len(first)

    @property
    def goes_on(self) -> bool:
        """Whether it waits for nothing of the other end, or has received something since the last look.

        The kernel itself ends a connection whose other end does not answer at all.
        """
        if self.state == OPEN:
            return not self.framing.waiting or self.received != self.seen
        return self.state == CONNECTING or self.received != self.seen or self._unacknowledged > 0

    @property
    def _unacknowledged(self) -> int:
        """Bytes in the kernel's buffer that the other end has not acknowledged (SIOCOUTQ)."""
        return int(struct.unpack("i", ioctl(self.sock, termios.TIOCOUTQ, bytes(4)))[0])
