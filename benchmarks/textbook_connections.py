"""The baseline of connections: SimPy as in its tutorials, with a Store and a process for each end of a connection.

It stands on the links of `benchmarks.textbook`, which have a Store and a process each. A connection is as simple as one can be
that is reliable: messages are cut into packets of at most `MSS` bytes, `WINDOW` of them may be unacknowledged, every second one
is acknowledged, and a timer repeats them all. There is no congestion control, no handshake and no end.
"""

from collections.abc import Callable, Generator
from typing import Any, ClassVar

import simpy

from benchmarks.textbook import TextbookHost
from protocols.connection import Connection
from protocols.machine import Address, Machine, Message, Packet
from protocols.rng import Rng

__all__ = ["TextbookConnections"]

MSS, WINDOW = 1448, 170
TIMEOUT = 1.0
HEADERS = 24
"""Bytes of TCP's header and time stamps beyond those of UDP, which links count."""
Steps = Generator[simpy.Event, Any, None]


class Piece(Message):
    """A packet of a connection: data with a number, perhaps with the end of a message, or an ACK of all before a number."""

    kind: ClassVar[str] = "piece"
    __slots__ = ("ack", "connection", "message", "number", "size")

    def __init__(self, connection: int, number: int, message: Message | None, size: int, ack: int = 0) -> None:
        self.connection = connection
        self.number = number
        self.message = message
        self.size = size
        self.ack = ack


class TextbookEnd(Connection):
    """One end of a connection: go-back-N with a fixed window, cumulative ACKs and one timer."""

    def __init__(self, layer: "TextbookConnections", peer: str, number: int) -> None:
        super().__init__(peer)
        env = layer.host.network.env
        self.layer, self.number, self.env = layer, number, env
        self.outgoing: Any = simpy.Store(env)
        self.incoming: Any = simpy.Store(env)
        self.window: list[Piece] = []
        """What is not acknowledged."""
        self.sent = self.expected = self.unanswered = 0
        self.busy = env.event()
        self.progress = env.event()
        env.process(self.send())
        env.process(self.receive())
        env.process(self.guard())

    def put(self, piece: Piece) -> None:
        """Send a packet."""
        self.layer.host.send(Packet(piece, piece.size + HEADERS, self.peer))

    def send(self) -> Steps:
        """Cut messages into packets, and send them as far as the window allows."""
        while True:
            packet = yield self.outgoing.get()
            left = packet.size + 4
            while left > 0:
                while len(self.window) >= WINDOW:
                    yield self.progress
                size = min(left, MSS)
                left -= size
                self.sent += 1
                piece = Piece(self.number, self.sent, packet.message if not left else None, size)
                self.window.append(piece)
                self.put(piece)
                if not self.busy.triggered:
                    self.busy.succeed()

    def receive(self) -> Steps:
        """Take packets: deliver the messages that end in them, acknowledge, and move the window."""
        while True:
            piece = yield self.incoming.get()
            if piece.ack:
                self.window = [other for other in self.window if other.number >= piece.ack]
                progress, self.progress = self.progress, self.env.event()
                progress.succeed()
                continue
            self.unanswered += 1
            if piece.number == self.expected + 1:
                self.expected += 1
                if piece.message is not None:
                    self.layer.deliver(piece.message, self)
            if self.unanswered == 2:
                self.put(Piece(self.number, 0, None, 0, self.expected + 1))
                self.unanswered = 0

    def guard(self) -> Steps:
        """Send the window again when nothing was acknowledged for a second."""
        while True:
            if not self.window:
                self.busy = self.env.event()
                yield self.busy
            progress = self.progress
            found = yield progress | self.env.timeout(TIMEOUT)
            if progress not in found:
                for piece in self.window:
                    self.put(piece)


class TextbookConnections(Machine):
    """Runs on a textbook host, and is the ports of the machine above it."""

    trace = None

    def __init__(self, host: TextbookHost, make: Callable[[Any], Machine]) -> None:
        super().__init__(host)  # type: ignore[arg-type]
        self.host = host
        self.rng: Rng = host.rng
        self.ends: dict[int, TextbookEnd] = {}
        self.machine = make(self)

    def start(self, now: float) -> None:
        """Start the machine above."""
        self.machine.start(now)
        self.deadline = self.machine.deadline

    def wake(self, now: float) -> None:
        """Wake the machine above."""
        self.machine.wake(now)
        self.deadline = self.machine.deadline

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take a packet of a connection, or the first one of a new connection."""
        assert isinstance(message, Piece)
        end = self.ends.get(message.connection)
        if end is None:
            end = self.ends[message.connection] = TextbookEnd(self, str(source), message.connection)
            self.machine.opened(end, now)
        if message.number or message.ack:
            end.incoming.put(message)

    def deliver(self, message: Message, end: TextbookEnd) -> None:
        """Give a message to the machine above."""
        self.host.network.deliveries += 1
        self.host.call(self.machine.receive, message, end, end)

    def counts(self) -> dict[str, int]:
        """Return the counters of the machine above."""
        return self.machine.counts()

    def listen(self) -> None:
        """Do nothing: every host accepts connections."""

    def connect(self, peer: str) -> Connection:
        """Begin a connection, which is open at once."""
        number = len(self.host.network.hosts) * len(self.ends) + self.host.network.hosts.index(self.host)
        end = self.ends[number] = TextbookEnd(self, peer, number)
        end.put(Piece(number, 0, None, 0))
        self.machine.opened(end, 0.0)
        return end

    def send(self, packet: Packet) -> None:
        """Queue a message on a connection."""
        assert isinstance(packet.to, TextbookEnd)
        packet.to.outgoing.put(packet)

    def alarm(self, when: float) -> None:
        """Pass the deadline of the machine above to the host."""
        self.deadline = when
        self.host.alarm(when)
