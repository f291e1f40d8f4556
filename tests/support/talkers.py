"""Machines that talk over connections, with messages that have numbers: for tests of what carries connections."""

from collections.abc import Sequence
from typing import ClassVar

from protocols.connection import Connection, Reason
from protocols.errors import WireError
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["Numbered", "NumberedCodec", "Talker", "size_of"]

HEAD = 8


class Numbered(Message):
    """A message with a number, of any size from 8 bytes on."""

    kind: ClassVar[str] = "numbered"
    __slots__ = ("number", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size


def size_of(size: int) -> int:
    """Return the bytes of an encoded message that is to have `size` bytes."""
    return max(HEAD, size)


class NumberedCodec:
    """Encodes such messages: the number, then as many bytes as are needed."""

    def encode(self, message: Message) -> bytes:
        """Return the bytes of the message."""
        assert isinstance(message, Numbered)
        return message.number.to_bytes(HEAD) + bytes([message.number % 251]) * (message.size - HEAD)

    def decode(self, data: bytes) -> Message:
        """Return the message. WireError when its bytes are not those of its number."""
        number = int.from_bytes(data[:HEAD])
        if data[HEAD:] != bytes([number % 251]) * (len(data) - HEAD):
            raise WireError("these bytes are not those of the number")
        return Numbered(number, len(data))


class Talker(Machine):
    """Connects to a peer or listens, says its lines on each connection as far as there is room, then perhaps hangs up.

    Fails when its host breaks a rule of connections.
    """

    __slots__ = ("_end", "_lines", "_peer", "_said", "closings", "connections", "heard", "openings", "times")

    def __init__(self, ports: Ports, peer: Address | None = None, lines: Sequence[int] = (), *, hangs_up: bool = False) -> None:
        super().__init__(ports)
        self._peer, self._lines, self._end = peer, lines, hangs_up
        self._said: dict[Connection, int] = {}
        self.connections: list[Connection] = []
        self.heard: dict[Connection, list[int]] = {}
        """The numbers received on each connection."""
        self.times: list[float] = []
        self.openings: dict[Connection, float] = {}
        self.closings: dict[Connection, tuple[Reason, float]] = {}

    def start(self, now: float) -> None:
        """Connect or listen."""
        if self._peer is None:
            self.ports.listen()
        else:
            self.call(self._peer, now)

    def call(self, peer: Address, now: float) -> Connection:
        """Begin another connection."""
        connection = self.ports.connect(peer)
        self.connections.append(connection)
        return connection

    def opened(self, connection: Connection, now: float) -> None:
        """Begin to talk."""
        assert connection not in self.openings, "opened twice"
        assert connection not in self.closings, "opened after it was closed"
        self.openings[connection] = now
        self.heard[connection] = []
        self._said[connection] = 0
        if connection not in self.connections:
            self.connections.append(connection)
        self._talk(connection)

    def _talk(self, connection: Connection) -> None:
        while self._said[connection] < len(self._lines):
            number = self._said[connection]
            self._said[connection] += 1
            size = size_of(self._lines[number])
            if self.ports.send(Packet(Numbered(number, size), size, connection)):
                return
        if self._end:
            del self._said[connection]
            self.ports.hang_up(connection)

    def hang_up(self, now: float) -> None:
        """Hang up all connections."""
        for connection in list(self._said):
            del self._said[connection]
            self.ports.hang_up(connection)

    def say(self, size: int, now: float) -> bool:
        """Say one more line on all connections; returns whether one of them is full."""
        full = False
        for connection, number in list(self._said.items()):
            self._said[connection] = number + 1
            full |= bool(self.ports.send(Packet(Numbered(number, size), size, connection)))
        return full

    def drained(self, connection: Connection, now: float) -> None:
        """Go on talking."""
        assert connection in self._said, "drained after the end"
        self._talk(connection)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Note the reason."""
        assert connection not in self.closings, "closed twice"
        self.closings[connection] = reason, now
        self._said.pop(connection, None)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Note the number."""
        assert isinstance(message, Numbered)
        assert isinstance(source, Connection)
        assert to is source
        assert source in self._said, "received on a connection that is not open, or after hang_up"
        self.heard[source].append(message.number)
        self.times.append(now)

    def wake(self, now: float) -> None:
        """Do nothing: there is no deadline."""

    def counts(self) -> dict[str, int]:
        """Return how much was heard."""
        return {"heard": sum(map(len, self.heard.values()))}

    @property
    def reasons(self) -> list[Reason]:
        """Why connections were closed, in the order of their beginnings."""
        return [self.closings[connection][0] for connection in self.connections if connection in self.closings]
