"""The part that publishers and subscribers share: a connection with the relay, made again whenever it is closed."""

from abc import abstractmethod
from math import inf

from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Ports
from protocols.relay.config import RelayConfig
from protocols.relay.outbox import Outbox
from protocols.roles import RoleContext

__all__ = ["RelayClient"]


class RelayClient(Machine):
    """A client of the relay. After `closed` it connects again, after times that double with each attempt that fails."""

    __slots__ = ("_connection", "_failures", "_relay", "config", "connections", "outbox")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self.config: RelayConfig = context.config
        (self._relay,) = context.addresses["relay"]
        self._connection: Connection | None = None
        self._failures = 0
        self.outbox: Outbox | None = None
        """What waits to be sent; None without a connection."""
        self.connections = 0
        """How often a connection was established."""

    def start(self, now: float) -> None:
        """Connect."""
        self._connection = self.ports.connect(self._relay)

    def wake(self, now: float) -> None:
        """Connect again."""
        self.deadline = inf
        if self._connection is None:
            self._connection = self.ports.connect(self._relay)

    def opened(self, connection: Connection, now: float) -> None:
        """Begin to use the connection."""
        self._failures = 0
        self.connections += 1
        self.outbox = Outbox(self.ports, connection)
        self.connected(now)

    def drained(self, connection: Connection, now: float) -> None:
        """Send what waits."""
        if self.outbox is not None:
            self.outbox.drain()

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Plan to connect again."""
        if connection is not self._connection:
            return
        was_open, self._connection, self.outbox = self.outbox is not None, None, None
        wait = min(self.config.retry * 2.0 ** min(self._failures, 60), self.config.retry_max)
        self._failures += 1
        # All clients of a relay that crashed would else connect at one instant.
        self._due(now + wait * (0.5 + 0.5 * self.ports.rng.uniform()))
        if was_open:
            self.disconnected(reason, now)

    def is_current(self, to: Address) -> bool:
        """Return whether something came on the connection that is open."""
        return to is self._connection and self.outbox is not None

    @abstractmethod
    def connected(self, now: float) -> None:
        """Begin, on a new connection."""

    @abstractmethod
    def disconnected(self, reason: Reason, now: float) -> None:
        """Forget what was under way on a connection that was open."""
