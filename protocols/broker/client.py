"""The part that publishers and subscribers share: the session with a broker, and its heart-beats."""

from math import inf

from protocols.broker.heartbeats import Heartbeats, in_milliseconds
from protocols.broker.messages import Connect, Connected, Failure
from protocols.broker.wire import size_of
from protocols.central.client import Client
from protocols.central.outbox import Outbox
from protocols.connection import Connection, Reason
from protocols.machine import Address, Message

__all__ = ["BrokerClient", "Session"]


class Session:
    """Session of a client; `heartbeat` is its own time in seconds."""

    __slots__ = ("beats", "failure", "heartbeat")

    def __init__(self, heartbeat: float) -> None:
        self.heartbeat = heartbeat
        self.beats: Heartbeats | None = None
        self.failure = ""
        """The reason of the last ERROR, after which the broker hangs up."""

    @property
    def deadline(self) -> float:
        """When something is due."""
        return inf if self.beats is None else self.beats.deadline


class BrokerClient(Client):
    """A client of a broker. A subclass has a slot for its `session`."""

    __slots__ = ()
    server = "broker"
    session: Session

    @staticmethod
    def size_of(message: Message) -> int:
        """See `Client`."""
        return size_of(message)

    def greet(self, line: Outbox, now: float) -> None:
        """Begin a session."""
        session = self.session
        beat = in_milliseconds(session.heartbeat)
        session.failure = ""
        line.send(Connect(send_every=beat, hear_every=beat))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a frame of the broker."""
        if not self.is_current(to):
            return
        session = self.session
        if session.beats is not None:
            session.beats.heard_at = now
        if isinstance(message, Failure):
            session.failure = message.reason
        elif self.outbox is not None:
            self.take(message, now)
        elif isinstance(message, Connected):
            self.welcome(now)
            assert self.outbox is not None
            session.beats = Heartbeats(session.heartbeat, message.send_every, message.hear_every, self.outbox, now)
            if session.deadline < self.deadline:
                self._due(session.deadline)

    def take(self, message: Message, now: float) -> None:
        """Handle a frame that belongs to a publisher or a subscriber."""

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """End the session."""
        self.session.beats = None
        super().closed(connection, reason, now)

    def explained(self, reason: Reason) -> str:
        """See `Client`: the broker may have sent the reason."""
        return self.session.failure or reason

    def wake(self, now: float) -> None:
        """Send a heart-beat, give up a broker that is not heard, or connect again."""
        super().wake(now)
        beats, connection = self.session.beats, self._connection
        if beats is not None and connection is not None:
            if beats.is_gone(now):
                self.ports.hang_up(connection)
                self.closed(connection, "timeout", now)
            else:
                beats.serve(now)
        self.deadline = min(self.retry_at, self.session.deadline)
