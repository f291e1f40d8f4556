"""A central server: accepts connections up to a limit, and keeps one record for each client."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from protocols.central.outbox import Outbox
from protocols.connection import Connection, Reason
from protocols.machine import Machine, Message, Ports
from protocols.snapshot import Snapshot, buffers

__all__ = ["MOST_SUBSCRIPTIONS", "ServedClient", "Server"]

MOST_SUBSCRIPTIONS = 10_000
"""Subscriptions of one client."""


class ServedClient(Protocol):
    """A record of a client."""

    @property
    def outbox(self) -> Outbox:
        """Messages for the client that wait."""

    def snapshot(self, name: str) -> Snapshot:
        """Return the statistics of the client; `name` is its place among those that are connected."""


ClientT = TypeVar("ClientT", bound=ServedClient)


class Server(Machine, Generic[ClientT]):
    """Serves all connections that are made to it, of `limit` clients at most.

    `serve(outbox)` makes the record of a client, `size_of` returns the encoded bytes of a message; `counters` adds counters.
    """

    __slots__ = ("_clients", "_counts", "_limit", "_serve", "_size_of")

    def __init__(
        self,
        ports: Ports,
        limit: int,
        serve: Callable[[Outbox], ClientT],
        size_of: Callable[[Message], int],
        counters: tuple[str, ...] = (),
    ) -> None:
        super().__init__(ports)
        self._limit = limit
        self._serve = serve
        self._size_of = size_of
        self._clients: dict[Connection, ClientT] = {}
        names = ("messages_relayed", "copies_sent", "messages_expired", "clients", "clients_refused", *counters)
        self._counts = dict.fromkeys(names, 0)

    def start(self, now: float) -> None:
        """Accept connections."""
        self.ports.listen()

    def opened(self, connection: Connection, now: float) -> None:
        """Serve a client; one too many is refused."""
        if len(self._clients) >= self._limit:
            self._counts["clients_refused"] += 1
            self.ports.hang_up(connection)
            return
        self._counts["clients"] += 1
        self._clients[connection] = self._serve(Outbox(self.ports, connection, self._size_of))

    def drained(self, connection: Connection, now: float) -> None:
        """Send messages that wait for a client, and copy those that waited for room."""
        client = self._clients.get(connection)
        if client is not None:
            client.outbox.drain()
            self._copy_waiting(now)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Remove a client."""
        self._remove(connection, now)
        self._copy_waiting(now)

    def _remove(self, connection: Connection, now: float) -> None:
        """Remove a client with its subscriptions, if it is there."""
        client = self._clients.pop(connection, None)
        if client is not None:
            self._removed(connection, client, now)

    def _end(self, connection: Connection, now: float) -> None:
        """Close the connection of a client, and remove it."""
        self._remove(connection, now)
        self.ports.hang_up(connection)

    @abstractmethod
    def _removed(self, connection: Connection, client: ClientT, now: float) -> None:
        """Remove the subscriptions of a client that is gone."""

    @abstractmethod
    def _copy_waiting(self, now: float) -> None:
        """Copy messages that wait for room to their subscribers, and accept them."""

    @abstractmethod
    def _waiting(self) -> int:
        """Return how many messages wait to be copied."""

    def counts(self) -> dict[str, int]:
        """Return messages copied, copies, messages that expired, clients served, refused, and the counters of the subclass."""
        return dict(self._counts)

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the server, of what waits to be copied, and of each client with what waits for it."""
        waiting = Snapshot("queue", "messages", {"held": self._waiting()})
        clients = [client.snapshot(str(place)) for place, client in enumerate(self._clients.values())]
        return Snapshot("session", "", self.counts(), {"role": "server"}, (waiting, *clients, *buffers(self.held())))
