"""A central relay, for benchmarks of connections: publishers send to it, and it copies each message to all subscribers."""

from math import inf
from typing import ClassVar

from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["Publication", "Publisher", "Relay", "Subscriber"]


class Publication(Message):
    """A message of `size` bytes."""

    kind: ClassVar[str] = "publication"
    __slots__ = ("number", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size


class _Client(Machine):
    """Connects to the relay."""

    __slots__ = ("_relay", "connection")

    def __init__(self, ports: Ports, relay: Address) -> None:
        super().__init__(ports)
        self._relay = relay
        self.connection: Connection | None = None

    def start(self, now: float) -> None:
        """Connect."""
        self.ports.connect(self._relay)

    def opened(self, connection: Connection, now: float) -> None:
        """Keep the connection."""
        self.connection = connection

    def wake(self, now: float) -> None:
        """Do nothing."""


class Publisher(_Client):
    """Sends `count` messages of `size` bytes, one every `gap` seconds from `begin` on."""

    __slots__ = ("_count", "_gap", "_size", "sent")

    def __init__(self, ports: Ports, relay: Address, count: int, size: int, gap: float, begin: float) -> None:
        super().__init__(ports, relay)
        self._count, self._size, self._gap = count, size, gap
        self.deadline = begin
        self.sent = 0

    def start(self, now: float) -> None:
        """Connect, and see to the first message."""
        super().start(now)
        self.ports.alarm(self.deadline)

    def wake(self, now: float) -> None:
        """Send the next message."""
        assert self.connection is not None, "the connection is open before the first message"
        self.sent += 1
        self.ports.send(Packet(Publication(self.sent, self._size), self._size, self.connection))
        self.deadline = self.deadline + self._gap if self.sent < self._count else inf

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Do nothing: a publisher receives nothing."""

    def counts(self) -> dict[str, int]:
        """Return the messages sent."""
        return {"published": self.sent}


class Subscriber(_Client):
    """Counts what it receives; it tells the relay with its first message that it subscribes."""

    __slots__ = ("last", "received")

    def __init__(self, ports: Ports, relay: Address) -> None:
        super().__init__(ports, relay)
        self.received = 0
        self.last = 0.0

    def opened(self, connection: Connection, now: float) -> None:
        """Subscribe."""
        super().opened(connection, now)
        self.ports.send(Packet(Publication(0, 8), 8, connection))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count a message."""
        self.received += 1
        self.last = now

    def counts(self) -> dict[str, int]:
        """Return the messages received."""
        return {"delivered": self.received}


class Relay(Machine):
    """Copies each message to all subscribers."""

    __slots__ = ("relayed", "subscribers")

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self.subscribers: list[Connection] = []
        self.relayed = 0

    def start(self, now: float) -> None:
        """Listen."""
        self.ports.listen()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Copy a message, or note a subscriber."""
        assert isinstance(message, Publication)
        if message.number == 0:
            assert isinstance(source, Connection)
            self.subscribers.append(source)
            return
        self.relayed += 1
        for connection in self.subscribers:
            self.ports.send(Packet(message, message.size, connection))

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Forget a subscriber."""
        self.subscribers.remove(connection)

    def wake(self, now: float) -> None:
        """Do nothing."""

    def counts(self) -> dict[str, int]:
        """Return the messages copied."""
        return {"relayed": self.relayed}
