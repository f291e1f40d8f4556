"""A source that always has data to send over a TCP connection of its host."""

from math import inf
from typing import Final

from protocols.connection import Connection, Reason
from protocols.cross.messages import load_of
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["BulkSource"]

RETRY: Final = 1.0
"""Seconds after which a connection that failed is begun anew."""


class BulkSource(Machine):
    """Sends messages of `size` bytes to `to` over one connection from `begin` to `end` (seconds), as fast as it takes them."""

    __slots__ = ("_begin", "_connection", "_end", "_flow", "_is_open", "_size", "_to", "sent")

    def __init__(self, ports: Ports, flow: int, to: Address, size: int, begin: float, end: float = inf) -> None:
        super().__init__(ports)
        self._flow, self._to, self._size = flow, to, size
        self._begin, self._end = begin, end
        self._connection: Connection | None = None
        self._is_open = False
        self.sent = 0

    def start(self, now: float) -> None:
        """Set the timer for the connection."""
        self._due(max(now, self._begin))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Ignore all messages."""

    def opened(self, connection: Connection, now: float) -> None:
        """Send until the connection is full."""
        self._is_open = True
        self._send(now)

    def drained(self, connection: Connection, now: float) -> None:
        """Send until the connection is full again."""
        self._send(now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Begin another connection after a while, unless the flow is over."""
        self._connection, self._is_open = None, False
        if now < self._end:
            self._due(now + RETRY)

    def wake(self, now: float) -> None:
        """Begin the connection, or end it."""
        if now >= self._end:
            self.deadline = inf
            if self._connection is not None:
                self.ports.hang_up(self._connection)
                self._is_open = False
            return
        self.deadline = self._end
        if self._connection is None:
            self._connection = self.ports.connect(self._to)

    def counts(self) -> dict[str, int]:
        """Return the messages sent."""
        return {"cross_sent": self.sent}

    def _send(self, now: float) -> None:
        connection = self._connection
        while connection is not None and self._is_open and now < self._end:
            self.sent += 1
            if self.ports.send(Packet(load_of(self._flow, self.sent - 1, self._size), self._size, connection)):
                return
