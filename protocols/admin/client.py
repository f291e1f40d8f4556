"""The client of a registry as a machine: it keeps a tunnel in the list, over a connection that is opened again when lost."""

from math import inf

from protocols.admin.enrolment import CONNECT_PATIENCE, Counters, Enrolment, UpdatePeers
from protocols.admin.messages import Request, Response
from protocols.admin.node import Advertisement, place_of
from protocols.admin.registration import Registration
from protocols.admin.wire import size_of
from protocols.central.outbox import Outbox
from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Message, Ports

__all__ = ["RegistryClient"]


class RegistryClient(Machine):
    """Keeps the tunnel of a `registration` in the list of the registry at an address.

    `update_peers` is called with the other nodes when they change, `counters` for the content of a renewal. Advertisements come
    as datagrams to this machine's address. A node leaves the list by `leave`, before its host is stopped.
    """

    __slots__ = ("_asked", "_begun_at", "_connection", "_host", "_outbox", "_patience_at", "_registry", "enrolment")

    def __init__(
        self, ports: Ports, registry: Address, registration: Registration, update_peers: UpdatePeers, counters: Counters
    ) -> None:
        super().__init__(ports)
        self.enrolment = Enrolment(registration, update_peers, counters)
        self._registry = registry
        name, port = place_of(registry)
        self._host = f"{name}:{port}" if port else name
        self._connection: Connection | None = None
        self._outbox: Outbox | None = None
        """Messages for the connection; None before it is open."""
        self._asked: Request | None = None
        """The request that is not answered."""
        self._begun_at = 0.0
        """When the connection or the request was begun, in seconds."""
        self._patience_at = inf
        """When to give up the connection that is being opened, or the request; inf: there is none."""

    def start(self, now: float) -> None:
        """Register."""
        self._go_on(now)

    def wake(self, now: float) -> None:
        """Send what is due, and give up a request that is not answered."""
        if self._patience_at <= now:
            assert self._connection is not None
            self.ports.hang_up(self._connection)
            self._lost(now)
        self._go_on(now)

    def opened(self, connection: Connection, now: float) -> None:
        """Send what is due."""
        if connection is self._connection:
            self._outbox, self._patience_at = Outbox(self.ports, connection, size_of), inf
            self._go_on(now)

    def drained(self, connection: Connection, now: float) -> None:
        """Send what waits."""
        if connection is self._connection and self._outbox is not None:
            self._outbox.drain()

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Connect again when something is due; a request that was not answered has failed."""
        if connection is self._connection:
            self._lost(now)
            self._go_on(now)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Take a response or an advertisement."""
        if isinstance(message, Response):
            if to is self._connection and self._asked is not None:
                asked, self._asked, self._patience_at = self._asked, None, inf
                self.enrolment.answered(asked, message, now)
        elif isinstance(message, Advertisement):
            self.enrolment.advertised(message, now)
        self._go_on(now)

    def leave(self, now: float) -> None:
        """Leave the list; the machine is not used after that."""
        last = self.enrolment.last_request()
        if self._connection is not None and self._outbox is not None:
            if last is not None:
                self._send(last, self._outbox)
            self.ports.hang_up(self._connection)
        self._connection, self._outbox, self._asked, self.deadline = None, None, None, inf

    def _go_on(self, now: float) -> None:
        """Send what is due, on a connection that is opened for it, and set the deadline."""
        if self._patience_at == inf and self.enrolment.due <= now:
            if self._outbox is None:
                self._connection = self.ports.connect(self._registry)
                self._begun_at, self._patience_at = now, now + CONNECT_PATIENCE
            else:
                request = self.enrolment.next_request(now)
                if request is not None:
                    self._asked, self._begun_at, self._patience_at = request, now, now + self.enrolment.patience
                    self._send(request, self._outbox)
        self._due(self.enrolment.due if self._patience_at == inf else self._patience_at)

    def _send(self, request: Request, outbox: Outbox) -> None:
        outbox.send(Request(request.method, request.target, request.body, self._host))

    def _lost(self, now: float) -> None:
        """Forget the connection; what was to be sent or answered on it has failed."""
        if self._patience_at < inf:
            self.enrolment.failed(now, now - self._begun_at)
        self._connection, self._outbox, self._asked, self._patience_at = None, None, None, inf

    def counts(self) -> dict[str, int]:
        """Return requests, lists, advertisements, and what failed."""
        return dict(self.enrolment.counts)
