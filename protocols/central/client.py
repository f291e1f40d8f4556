"""A client of a central server: a connection with it, made again whenever it is closed."""

from abc import abstractmethod
from math import inf
from typing import ClassVar, Protocol

from protocols.central.outbox import Outbox
from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Message, Ports
from protocols.roles import RoleContext

__all__ = ["Client", "ClientConfig"]


class ClientConfig(Protocol):
    """The parameters of a client."""

    @property
    def window(self) -> int:
        """Messages of a publisher that are not accepted, from which on it is blocked."""

    @property
    def retry(self) -> float:
        """Seconds to the first attempt to connect again, doubled by each that fails."""

    @property
    def retry_max(self) -> float:
        """Longest time between attempts to connect, in seconds."""


class Client(Machine):
    """Connects with the machine that has the role `server`.

    After `closed` it connects again, after times that double with each attempt that fails.
    """

    __slots__ = ("_connection", "_failures", "_line", "_server", "config", "connections", "outbox", "retry_at")
    server: ClassVar[str]

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self.config: ClientConfig = context.config
        (self._server,) = context.addresses[self.server]
        self._connection: Connection | None = None
        self._failures = 0
        self._line: Outbox | None = None
        self.retry_at = inf
        """When to connect again, in seconds; inf while there is a connection."""
        self.outbox: Outbox | None = None
        """What waits to be sent; None unless the server is ready for it."""
        self.connections = 0
        """How often the server was reached."""

    def start(self, now: float) -> None:
        """Connect."""
        self._connection = self.ports.connect(self._server)

    def wake(self, now: float) -> None:
        """Connect again."""
        if self.retry_at <= now:
            self.retry_at = inf
            self._connection = self.ports.connect(self._server)
        self.deadline = self.retry_at

    def opened(self, connection: Connection, now: float) -> None:
        """Begin to use the connection."""
        self._line = Outbox(self.ports, connection, self.size_of)
        self.greet(self._line, now)

    def greet(self, line: Outbox, now: float) -> None:
        """Begin the session with the server, and call `welcome` when it is ready: here, at once."""
        self.welcome(now)

    def welcome(self, now: float) -> None:
        """Note that the server is ready for messages of this client."""
        self._failures = 0
        self.connections += 1
        self.outbox = self._line
        self.connected(now)

    def drained(self, connection: Connection, now: float) -> None:
        """Send what waits."""
        if self._line is not None:
            self._line.drain()

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Plan to connect again."""
        if connection is not self._connection:
            return
        was_ready = self.outbox is not None
        self._connection = self._line = self.outbox = None
        wait = min(self.config.retry * 2.0 ** min(self._failures, 60), self.config.retry_max)
        self._failures += 1
        # All clients of a server that crashed would else connect at one instant.
        self.retry_at = now + wait * (0.5 + 0.5 * self.ports.rng.uniform())
        self._due(self.retry_at)
        if was_ready:
            self.disconnected(self.explained(reason), now)

    def explained(self, reason: Reason) -> str:
        """Return the reason of a closed connection for the application."""
        return reason

    def is_current(self, to: Address) -> bool:
        """Return whether something came on the connection that is open."""
        return to is self._connection and self._line is not None

    @staticmethod
    @abstractmethod
    def size_of(message: Message) -> int:
        """Return the encoded bytes of a message."""

    @abstractmethod
    def connected(self, now: float) -> None:
        """Begin, on a new connection."""

    @abstractmethod
    def disconnected(self, reason: str, now: float) -> None:
        """Forget what was under way on a connection on which the server was ready."""
