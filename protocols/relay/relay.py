"""The relay: copies each message to every subscriber of its destination, in the order in which messages arrive.

It accepts a message when there is room for it at every subscriber it is for. Until then this message and all behind it wait,
so that publishers are blocked at the pace of the slowest subscriber, and nothing is dropped.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import cast

from protocols.central.outbox import Outbox
from protocols.central.server import MOST_SUBSCRIPTIONS, Server
from protocols.connection import Connection
from protocols.machine import Address, Message, Ports
from protocols.messaging import Publication, Subscription
from protocols.relay.config import RelayConfig
from protocols.relay.messages import Accepted, Delivery, Publish, Subscribe, SubscribeDone, Unsubscribe
from protocols.relay.wire import size_of
from protocols.roles import RoleContext
from protocols.snapshot import Snapshot
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["Relay"]


@dataclass(slots=True)
class _Client:
    """One connection: what waits to be sent on it, its subscriptions, and how many of its messages are not accepted."""

    outbox: Outbox
    pending: int = 0
    subscriptions: SubscriptionTable = field(default_factory=lambda: shared_table(SubscriptionTable))

    def snapshot(self, name: str) -> Snapshot:
        """Return the statistics of the client; `name` is its place among those that are connected."""
        waiting = Snapshot("queue", "messages", {"held": len(self.outbox.waiting)})
        return Snapshot("subscriber", name, {"subscriptions": len(self.subscriptions)}, parts=(waiting,))


class Relay(Server[_Client]):
    """Serves all connections that are made to it; it keeps nothing that is not under way."""

    __slots__ = ("_by_destination", "_config", "_input")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        self._config: RelayConfig = context.config
        super().__init__(ports, self._config.clients, _Client, size_of)
        # The subscribers of each destination, with the number of their subscriptions to it, in the order of subscribing.
        self._by_destination: dict[str, dict[Connection, int]] = {}
        self._input: deque[tuple[Connection, Publication]] = deque()

    def wake(self, now: float) -> None:
        """Do nothing, since there are no timers."""

    def _removed(self, connection: Connection, client: _Client, now: float) -> None:
        for subscription in client.subscriptions:
            self._unsubscribe(connection, client, subscription.number)

    def _refuse(self, connection: Connection, now: float) -> None:
        """End the connection of a client that breaks the rules."""
        self._counts["clients_refused"] += 1
        self._end(connection, now)

    # Messages

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a message of a client."""
        connection = cast(Connection, to)
        client = self._clients.get(connection) if isinstance(to, Connection) else None
        if client is None:
            return
        if isinstance(message, Publish):
            client.pending += 1
            if client.pending > self._config.window:
                self._refuse(connection, now)
                return
            self._input.append((connection, message.message))
            self._copy_waiting(now)
        elif isinstance(message, Subscribe):
            self._subscribe(connection, client, message, now)
        elif isinstance(message, Unsubscribe):
            self._unsubscribe(connection, client, message.number)
            self._copy_waiting(now)

    def _subscribe(self, connection: Connection, client: _Client, message: Subscribe, now: float) -> None:
        if message.number in client.subscriptions or len(client.subscriptions) >= MOST_SUBSCRIPTIONS:
            self._refuse(connection, now)
            return
        client.subscriptions = client.subscriptions.added(Subscription(message.number, message.destination))
        subscribers = self._by_destination.setdefault(message.destination, {})
        subscribers[connection] = subscribers.get(connection, 0) + 1
        client.outbox.send(SubscribeDone(message.number))

    def _unsubscribe(self, connection: Connection, client: _Client, number: int) -> None:
        if number not in client.subscriptions:
            return
        destination = client.subscriptions[number].destination
        client.subscriptions = client.subscriptions.removed(number)
        subscribers = self._by_destination[destination]
        subscribers[connection] -= 1
        if not subscribers[connection]:
            del subscribers[connection]
        if not subscribers:
            del self._by_destination[destination]

    def _copy_waiting(self, now: float) -> None:
        """Copy messages to their subscribers and accept them, as long as there is room."""
        while self._input:
            connection, message = self._input[0]
            outboxes = [self._clients[to].outbox for to in self._by_destination.get(message.destination, ())]
            if any(len(outbox.waiting) >= self._config.queue for outbox in outboxes):
                return
            self._input.popleft()
            if message.expires_at <= self.ports.epoch + now:
                self._counts["messages_expired"] += 1
            else:
                self._counts["messages_relayed"] += 1
                self._counts["copies_sent"] += len(outboxes)
                copy = Delivery(message)
                for outbox in outboxes:
                    outbox.send(copy)
            self._accept(connection, message)

    def _accept(self, connection: Connection, message: Publication) -> None:
        client = self._clients.get(connection)
        if client is not None:
            client.pending -= 1
            client.outbox.send(Accepted(message.number))

    def _waiting(self) -> int:
        return len(self._input)

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the most messages that wait for one client, and the clients."""
        longest = max((len(client.outbox.waiting) for client in self._clients.values()), default=0)
        return {
            "messages for a client": (longest, self._config.queue + self._config.window + MOST_SUBSCRIPTIONS),
            "clients": (len(self._clients), self._config.clients),
        }
