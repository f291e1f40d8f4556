"""The broker: copies each message of a topic to every subscription that selects it, in the order in which messages arrive.

It accepts a message, and answers with its receipt, when there is room for it at every subscriber it is for. Until then this
message waits, with all that its publisher sends behind it, and the others of the broker go on: a publisher is slowed down to
the pace of the slowest subscriber of what it publishes, and nothing is dropped. A client that sends more than `window` messages
that have to wait is not read meanwhile, so that TCP slows it down. A subscriber that takes nothing for `stall` is closed.

Nothing is stored. What a broker of durable subscribers, queues or several replicas needs besides would be kinds of
destinations (`protocols.broker.topic`) and a store behind `_accept`.
"""

from math import inf
from typing import cast

from protocols.broker.clients import BrokersClient
from protocols.broker.config import BrokerConfig
from protocols.broker.heartbeats import Heartbeats, in_milliseconds
from protocols.broker.messages import (
    Beat,
    Connect,
    Connected,
    Delivery,
    Disconnect,
    Failure,
    Receipt,
    Refused,
    Send,
    Subscribe,
    Unsubscribe,
)
from protocols.broker.topic import Topic
from protocols.broker.wire import VERSION, size_of
from protocols.central.server import MOST_SUBSCRIPTIONS, Server
from protocols.connection import Connection
from protocols.errors import ConfigError
from protocols.machine import Address, Message, Ports
from protocols.roles import RoleContext

__all__ = ["Broker"]

SERVER = "mcastlab"
_LOOK = 0.25
"""Part of the heart-beat or of the time for a stalled subscriber between two looks at the clients."""


class Broker(Server[BrokersClient]):
    """Serves all connections that are made to it; it keeps nothing that is not under way."""

    __slots__ = ("_blocked", "_config", "_look_every", "_messages", "_topics")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        self._config: BrokerConfig = context.config
        super().__init__(ports, self._config.clients, BrokersClient, size_of, ("clients_stalled",))
        self._topics: dict[str, Topic] = {}
        # The clients of which a message waits, in the order in which they began to wait.
        self._blocked: dict[Connection, None] = {}
        self._messages = 0
        self._look_every = min(self._config.heartbeat or inf, self._config.stall) * _LOOK

    # Connections

    def opened(self, connection: Connection, now: float) -> None:
        """Serve a client; one too many is refused."""
        super().opened(connection, now)
        if self._clients and self.deadline == inf:
            self._due(now + self._look_every)

    def wake(self, now: float) -> None:
        """Send heart-beats, and close clients that are gone or take nothing."""
        self.deadline = inf
        for connection, client in list(self._clients.items()):
            if client.beats is not None:
                client.beats.serve(now)
                if client.is_held:
                    client.beats.heard_at = now
                elif client.beats.is_gone(now):
                    self._end(connection)
                    continue
            if self._is_stalled(client, now):
                self._counts["clients_stalled"] += 1
                self._end(connection)
        self._copy_waiting(now)
        if self._clients:
            self.deadline = now + self._look_every

    def _is_stalled(self, client: BrokersClient, now: float) -> bool:
        """Return whether a subscriber has had no room for long, and has taken nothing meanwhile."""
        if len(client.outbox.waiting) < self._config.queue:
            client.full_since = inf
        elif client.full_since == inf or client.taken != client.outbox.sent:
            client.full_since, client.taken = now, client.outbox.sent
        return now - client.full_since >= self._config.stall

    def _removed(self, connection: Connection, client: BrokersClient) -> None:
        self._blocked.pop(connection, None)
        for name in list(client.subscriptions):
            self._unsubscribe(connection, client, name)

    def _refuse(self, connection: Connection, client: BrokersClient, reason: str, receipt: str = "") -> None:
        """Tell a client what it must not do, and close its connection."""
        self._counts["clients_refused"] += 1
        client.outbox.send(Failure(reason, receipt))
        self._end(connection)

    # Frames

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a frame of a client."""
        connection = cast(Connection, to)
        client = self._clients.get(connection) if isinstance(to, Connection) else None
        if client is None or client.is_leaving:
            return
        if client.beats is None:
            self._begin(connection, client, message, now)
            return
        client.beats.heard_at = now
        if isinstance(message, Send):
            self._take(connection, client, message, now)
        elif isinstance(message, Subscribe):
            self._subscribe(connection, client, message)
        elif isinstance(message, Unsubscribe):
            self._unsubscribe(connection, client, message.subscription)
            self._confirm(client, message.receipt)
            self._copy_waiting(now)
        elif isinstance(message, Disconnect):
            client.is_leaving, client.last_receipt = True, message.receipt
            if not client.waiting:
                self._leave(connection, client)
        elif isinstance(message, Refused):
            self._refuse(connection, client, message.reason, message.receipt)
        elif not isinstance(message, Beat):
            self._refuse(connection, client, f"{message.kind.upper()} is not allowed here")

    def _begin(self, connection: Connection, client: BrokersClient, message: Message, now: float) -> None:
        """Begin a session."""
        if isinstance(message, Beat):
            return
        if not isinstance(message, Connect):
            self._refuse(connection, client, "a session begins with CONNECT")
        elif VERSION not in message.versions:
            self._refuse(connection, client, f"accept-version: {','.join(message.versions)[:40]!r} is not allowed; {VERSION}")
        else:
            beat = in_milliseconds(self._config.heartbeat)
            client.outbox.send(Connected(SERVER, beat, beat))
            client.beats = Heartbeats(self._config.heartbeat, message.send_every, message.hear_every, client.outbox, now)

    def _subscribe(self, connection: Connection, client: BrokersClient, message: Subscribe) -> None:
        name = message.subscription
        if name in client.subscriptions:
            self._refuse(connection, client, f"id: {name[:40]!r} is the name of another subscription", message.receipt)
        elif len(client.subscriptions) >= MOST_SUBSCRIPTIONS:
            self._refuse(connection, client, f"a client has at most {MOST_SUBSCRIPTIONS} subscriptions", message.receipt)
        else:
            topic = self._topics.setdefault(message.destination, Topic())
            try:
                topic.add(connection, name, message.selector)
            except ConfigError as error:
                self._drop_unused(message.destination)
                self._refuse(connection, client, f"selector: {error}", message.receipt)
                return
            client.subscriptions[name] = (message.destination, message.selector)
            self._confirm(client, message.receipt)

    def _unsubscribe(self, connection: Connection, client: BrokersClient, name: str) -> None:
        """Remove a subscription, if there is one of this name."""
        found = client.subscriptions.pop(name, None)
        if found is not None:
            destination, selector = found
            self._topics[destination].remove(connection, name, selector)
            self._drop_unused(destination)

    def _drop_unused(self, destination: str) -> None:
        if not self._topics[destination]:
            del self._topics[destination]

    def _confirm(self, client: BrokersClient, receipt: str) -> None:
        if receipt:
            client.outbox.send(Receipt(receipt))

    def _leave(self, connection: Connection, client: BrokersClient) -> None:
        """End the session of a client that disconnected."""
        self._confirm(client, client.last_receipt)
        self._end(connection)

    # Messages

    def _take(self, connection: Connection, client: BrokersClient, message: Send, now: float) -> None:
        """Copy a message now, or let it wait."""
        if client.waiting or not self._copy(client, message, now):
            client.waiting.append(message)
            self._blocked[connection] = None
            if len(client.waiting) > self._config.window and not client.is_held:
                client.is_held = True
                self.ports.hold(connection)

    def _copy_waiting(self, now: float) -> None:
        """Accept what waits, one message of each client in turn, as long as there is room for any."""
        progress = bool(self._blocked)
        while progress:
            progress = False
            for connection in list(self._blocked):
                client = self._clients[connection]
                if self._copy(client, client.waiting[0], now):
                    progress = True
                    client.waiting.popleft()
                    self._go_on(connection, client)

    def _go_on(self, connection: Connection, client: BrokersClient) -> None:
        """Read a client again of which fewer messages wait."""
        if client.is_held and len(client.waiting) <= self._config.window // 2:
            client.is_held = False
            self.ports.release(connection)
        if not client.waiting:
            del self._blocked[connection]
            if client.is_leaving:
                self._leave(connection, client)

    def _copy(self, client: BrokersClient, message: Send, now: float) -> bool:
        """Copy a message to its subscribers and accept it; return whether there was room for it."""
        content = message.content
        topic = self._topics.get(content.destination)
        if content.expires_at <= self.ports.epoch + now:
            self._counts["messages_expired"] += 1
        elif topic is None:
            self._counts["messages_relayed"] += 1
        else:
            chosen = [(self._clients[to].outbox, name) for to, name in topic.chosen_by(content)]
            most = self._config.queue
            for outbox, _ in chosen:
                if len(outbox.waiting) >= most:
                    return False
            self._messages += 1
            self._counts["messages_relayed"] += 1
            self._counts["copies_sent"] += len(chosen)
            message_id = str(self._messages)
            for outbox, name in chosen:
                outbox.send(Delivery(name, message_id, content))
        self._confirm(client, message.receipt)
        return True

    # Statistics

    def _waiting(self) -> int:
        return sum(len(client.waiting) for client in self._clients.values())

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the most messages that wait for one client and of one client, and the clients."""
        clients = self._clients.values()
        window, queue = self._config.window, self._config.queue
        return {
            "messages for a client": (
                max((len(client.outbox.waiting) for client in clients), default=0),
                queue + 2 * window + 2 * MOST_SUBSCRIPTIONS,
            ),
            "messages of a client": (max((len(client.waiting) for client in clients), default=0), 2 * window + 2),
            "clients": (len(clients), self._config.clients),
        }
