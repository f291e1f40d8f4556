"""The baseline of connections: SimPy as in its tutorials, with a Store and a process for each end of a connection.

It stands on the links of `benchmarks.textbook`, which have a Store and a process each. A connection is as simple as one can be
that is reliable where nothing is lost: messages are cut into packets of at most `MSS` bytes, a window of `WINDOW` packets may
be unacknowledged, every second packet is acknowledged. There is no retransmission, no congestion control, and no end.
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
HEADERS = 24
"""Bytes of TCP's header and time stamps beyond those of UDP, which links count."""
Steps = Generator[simpy.Event, Any, None]


class Piece(Message):
    """A packet of a connection: data, perhaps with the end of a message, or an acknowledgement of `acknowledged` packets."""

    kind: ClassVar[str] = "piece"
    __slots__ = ("acknowledged", "begins", "connection", "message")

    def __init__(self, connection: int, message: Message | None, acknowledged: int, begins: bool = False) -> None:
        self.connection = connection
        self.message = message
        self.acknowledged = acknowledged
        self.begins = begins


class TextbookEnd(Connection):
    """One end of a connection."""

    def __init__(self, layer: "TextbookConnections", peer: str, number: int) -> None:
        super().__init__(peer)
        env = layer.host.network.env
        self.layer, self.number = layer, number
        self.outgoing: Any = simpy.Store(env)
        self.incoming: Any = simpy.Store(env)
        self.unacknowledged = self.owed = 0
        self.room: simpy.Event | None = None
        env.process(self.send())
        env.process(self.receive())

    def put(self, message: Message | None, size: int, acknowledged: int = 0, begins: bool = False) -> None:
        """Send a packet."""
        self.layer.host.send(Packet(Piece(self.number, message, acknowledged, begins), size + HEADERS, self.peer))

    def send(self) -> Steps:
        """Cut messages into packets, and send them as far as the window allows."""
        env = self.layer.host.network.env
        while True:
            packet = yield self.outgoing.get()
            left = packet.size + 4
            while left > 0:
                while self.unacknowledged >= WINDOW:
                    self.room = env.event()
                    yield self.room
                size = min(left, MSS)
                left -= size
                self.unacknowledged += 1
                self.put(packet.message if not left else None, size)

    def receive(self) -> Steps:
        """Take packets: deliver the messages that end in them, acknowledge, and widen the window."""
        while True:
            piece = yield self.incoming.get()
            if piece.acknowledged:
                self.unacknowledged -= piece.acknowledged
                if self.room is not None:
                    room, self.room = self.room, None
                    room.succeed()
                continue
            self.owed += 1
            if self.owed == 2:
                self.put(None, 0, self.owed)
                self.owed = 0
            if piece.message is not None:
                self.layer.deliver(piece.message, self)


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
        if not message.begins:
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
        end.put(None, 0, begins=True)
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
