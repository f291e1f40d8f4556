"""What waits to be sent on one connection while it is full."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from protocols.connection import Connection
from protocols.machine import Message, Packet, Ports

__all__ = ["EMPTY", "Outbox"]

EMPTY: Final[deque[Any]] = deque()
"""An empty queue, shared by all for which no message waits; never modified. A deque takes 760 bytes."""


class Outbox:
    """Sends messages on a connection in order, and keeps those for which it has no room.

    `size_of` returns the encoded bytes of a message.
    """

    __slots__ = ("_connection", "_full", "_ports", "_size_of", "sent", "waiting")

    def __init__(self, ports: Ports, connection: Connection, size_of: Callable[[Message], int]) -> None:
        self._ports = ports
        self._connection = connection
        self._size_of = size_of
        self._full = False
        self.waiting: deque[Message] = EMPTY
        self.sent = 0
        """Messages that were given to the connection."""

    @property
    def is_full(self) -> bool:
        """Whether the connection takes nothing now."""
        return self._full

    def send(self, message: Message) -> None:
        """Send a message, now or when there is room."""
        if self._full:
            if not self.waiting:
                self.waiting = deque()
            self.waiting.append(message)
        else:
            self._put(message)

    def drain(self) -> None:
        """Send what waits, after the connection had room again."""
        self._full = False
        while self.waiting and not self._full:
            self._put(self.waiting.popleft())
        if not self.waiting:
            self.waiting = EMPTY

    def _put(self, message: Message) -> None:
        self.sent += 1
        self._full = bool(self._ports.send(Packet(message, self._size_of(message), self._connection)))
