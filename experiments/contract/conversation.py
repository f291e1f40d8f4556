"""Two machines that talk over connections, for the checks of every world and for tests of hosts: a caller and an answerer."""

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

from protocols.connection import Connection, Reason
from protocols.errors import WireError
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["Answerer", "Caller", "Line", "LineCodec"]

_HEAD = struct.Struct("!II")


@dataclass(slots=True)
class Line(Message):
    """Line `number` of a conversation, which takes `size` bytes, at least 8."""

    kind: ClassVar[str] = "line"
    number: int
    size: int


class LineCodec:
    """The codec of lines."""

    def encode(self, message: Message) -> bytes:
        """Return the number and the size, padded with zeros."""
        assert isinstance(message, Line)
        return _HEAD.pack(message.number, message.size).ljust(message.size, b"\0")

    def decode(self, data: bytes) -> Message:
        """Return the line. Raises WireError and nothing else."""
        if len(data) < _HEAD.size:
            raise WireError(f"a line of {len(data)} bytes; at least {_HEAD.size} are required")
        number, size = _HEAD.unpack_from(data)
        if size != len(data):
            raise WireError(f"a line of {len(data)} bytes says it has {size}")
        return Line(number, size)


class _Talker(Machine):
    """What both machines share: lines wait here while their connection is full."""

    __slots__ = ("full", "heard", "reasons", "waiting")

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self.waiting: dict[Connection, deque[Line]] = {}
        """Messages to send on each open connection."""
        self.full: set[Connection] = set()
        self.heard: dict[Connection, list[int]] = {}
        """The numbers of the lines heard on each connection."""
        self.reasons: dict[Connection, Reason] = {}
        """Why each connection was closed."""

    def opened(self, connection: Connection, now: float) -> None:
        """Begin to listen and to talk."""
        self.waiting[connection] = deque()
        self.heard[connection] = []

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Note a line."""
        assert isinstance(message, Line)
        assert isinstance(to, Connection)
        assert source is to
        self.heard[to].append(message.number)

    def say(self, connection: Connection, line: Line) -> None:
        """Send a line when the connection takes it."""
        self.waiting[connection].append(line)
        self._send(connection)

    def drained(self, connection: Connection, now: float) -> None:
        """Send what waits."""
        self.full.discard(connection)
        self._send(connection)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Note why."""
        self.reasons[connection] = reason
        self.waiting.pop(connection, None)

    def wake(self, now: float) -> None:
        """Do nothing: there are no timers."""

    def counts(self) -> dict[str, int]:
        """Return how many lines were heard."""
        return {"lines_heard": sum(map(len, self.heard.values()))}

    def _send(self, connection: Connection) -> None:
        waiting = self.waiting[connection]
        while waiting and connection not in self.full:
            line = waiting.popleft()
            if self.ports.send(Packet(line, line.size, connection)):
                self.full.add(connection)


class Caller(_Talker):
    """Connects to `peer`, says `lines`, and hangs up when as many were heard; without `stays` when all were sent."""

    __slots__ = ("connection", "lines", "peer", "size", "stays")

    def __init__(self, ports: Ports, peer: Any, lines: int, size: int = 100, *, stays: bool = True) -> None:
        super().__init__(ports)
        self.stays = stays
        self.peer = peer
        self.lines = lines
        self.size = size
        self.connection: Connection | None = None

    def start(self, now: float) -> None:
        """Connect."""
        self.connection = self.ports.connect(self.peer)

    def opened(self, connection: Connection, now: float) -> None:
        """Say all lines."""
        super().opened(connection, now)
        self.waiting[connection].extend(Line(number, self.size) for number in range(self.lines))
        self._send(connection)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Note a line, and hang up after the last."""
        super().receive(message, source, to, now)
        assert isinstance(to, Connection)
        if len(self.heard[to]) == self.lines:
            self.ports.hang_up(to)

    def _send(self, connection: Connection) -> None:
        super()._send(connection)
        if not (self.stays or self.waiting[connection]):
            self.ports.hang_up(connection)

    @property
    def reason(self) -> Reason | None:
        """Why the connection was closed; None before."""
        return None if self.connection is None else self.reasons.get(self.connection)


class Answerer(_Talker):
    """Accepts connections and repeats every line; with `mute` it only notes them."""

    __slots__ = ("mute",)

    def __init__(self, ports: Ports, mute: bool = False) -> None:
        super().__init__(ports)
        self.mute = mute

    def start(self, now: float) -> None:
        """Listen."""
        self.ports.listen()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Note a line and repeat it."""
        super().receive(message, source, to, now)
        assert isinstance(message, Line)
        assert isinstance(to, Connection)
        if not self.mute:
            self.say(to, message)
