"""What waits to be sent on one connection while it is full."""

from collections import deque

from protocols.connection import Connection
from protocols.machine import Message, Packet, Ports
from protocols.relay.wire import size_of

__all__ = ["Outbox"]


class Outbox:
    """Sends messages on a connection in order, and keeps those for which it has no room."""

    __slots__ = ("_connection", "_full", "_ports", "waiting")

    def __init__(self, ports: Ports, connection: Connection) -> None:
        self._ports = ports
        self._connection = connection
        self._full = False
        self.waiting: deque[Message] = deque()

    def send(self, message: Message) -> None:
        """Send a message, now or when there is room."""
        if self._full:
            self.waiting.append(message)
        else:
            self._put(message)

    def drain(self) -> None:
        """Send what waits, after the connection had room again."""
        self._full = False
        while self.waiting and not self._full:
            self._put(self.waiting.popleft())

    def _put(self, message: Message) -> None:
        self._full = bool(self._ports.send(Packet(message, size_of(message), self._connection)))
