"""The broker: copies each message of a topic to every subscription that selects it, in the order in which messages arrive.

It accepts a message, and answers with its receipt, when there is room for it at every subscriber it is for. Until then this
message waits, with all that its publisher sends behind it, and the others of the broker go on: a publisher is slowed down to
the pace of the slowest subscriber of what it publishes, and nothing is dropped. A client that sends more than `window` messages
that have to wait is not read meanwhile, so that TCP slows it down. A subscriber that takes nothing for `stall` is closed.

The receipt of a message comes when the subscriptions that acknowledge (`ack:client-individual`) have acknowledged their copies,
so that a publisher knows that they have it. A subscriber whose connection ends is not waited for. A publisher may have its
message kept (`Send.keep`) for subscriptions that come late: for this time from the beginning of the publisher's session, and
from the end of a subscriber's connection that had not acknowledged it. The receipt comes after it, and then the message is
forgotten, as it is when its publisher goes.

Nothing is stored. What a broker of durable subscribers, queues or several replicas needs besides would be kinds of
destinations (`protocols.broker.topic`) and a store behind `_accept`.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import cast

from protocols.broker.clients import MOST_SELECTOR_CHARACTERS, NOTHING, BrokersClient, subscribed
from protocols.broker.config import BrokerConfig
from protocols.broker.confirmation import Confirmation
from protocols.broker.heartbeats import Heartbeats, in_milliseconds
from protocols.broker.messages import (
    Ack,
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
from protocols.central.outbox import EMPTY
from protocols.central.server import MOST_SUBSCRIPTIONS, Server
from protocols.connection import Connection
from protocols.errors import ConfigError, UnsupportedError
from protocols.machine import Address, Message, Ports
from protocols.roles import RoleContext

__all__ = ["Broker"]

SERVER = "mcastlab"
_LOOK = 0.25
"""Part of the heart-beat or of the time for a stalled subscriber between two looks at the clients."""


class Broker(Server[BrokersClient]):
    """Serves all connections that are made to it; it keeps nothing that is not under way."""

    __slots__ = ("_blocked", "_config", "_copies", "_kept", "_look_at", "_look_every", "_messages", "_topics")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        self._config: BrokerConfig = context.config
        super().__init__(ports, self._config.clients, BrokersClient, size_of, ("clients_stalled",))
        self._topics: dict[str, Topic] = {}
        # The clients of which a message waits, in the order in which they began to wait.
        self._blocked: dict[Connection, None] = {}
        # Messages that are kept for subscriptions that come late, in order.
        self._kept: dict[Confirmation, None] = {}
        self._messages = self._copies = 0
        self._look_at = inf
        self._look_every = min(self._config.heartbeat or inf, self._config.stall) * _LOOK

    # Connections

    def opened(self, connection: Connection, now: float) -> None:
        """Serve a client; one too many is refused."""
        super().opened(connection, now)
        if connection in self._clients:
            self._clients[connection].began_at = now
        if self._clients and self._look_at == inf:
            self._look_at = now + self._look_every
            self._wake_at(self._look_at)

    def _wake_at(self, when: float) -> None:
        if when < self.deadline:
            self._due(when)

    def wake(self, now: float) -> None:
        """Look at the clients, and end the time for which messages are kept."""
        if self._look_at <= now:
            self._look(now)
        for confirmation in list(self._kept):
            self._settle(confirmation, now)
        self._copy_waiting(now)
        kept = (each.kept_until for each in self._kept if not each.awaited)
        self.deadline = min(self._look_at, min(kept, default=inf))

    def _look(self, now: float) -> None:
        """Send heart-beats, and close clients that are gone or take nothing."""
        for connection, client in list(self._clients.items()):
            if client.beats is not None:
                client.beats.serve(now, now + self._look_every)
                if client.is_held or client.is_leaving:
                    # Nothing is read of it, or nothing more is to come.
                    client.beats.heard_at = now
                elif client.beats.is_gone(now):
                    self._end(connection, now)
                    continue
            elif now - client.began_at >= self._config.stall:
                # It only connected, and would hold its place for ever.
                self._counts["clients_stalled"] += 1
                self._end(connection, now)
                continue
            if client.is_stalled(now, self._config.queue, self._config.stall):
                self._counts["clients_stalled"] += 1
                self._end(connection, now)
        self._look_at = now + self._look_every if self._clients else inf

    def _removed(self, connection: Connection, client: BrokersClient, now: float) -> None:
        self._blocked.pop(connection, None)
        for confirmation in client.unconfirmed:
            self._kept.pop(confirmation, None)
        unacknowledged, client.unacknowledged = client.unacknowledged, NOTHING
        for ack, (confirmation, _) in unacknowledged.items():
            if not client.is_leaving:
                confirmation.lose_subscriber(ack, now)
            self._acknowledged(confirmation, ack, now)
        for name in list(client.subscriptions):
            self._unsubscribe(connection, client, name, now)

    def _refuse(self, connection: Connection, client: BrokersClient, reason: str, now: float, receipt: str = "") -> None:
        """Send a client ERROR with the reason, and close its connection."""
        self._counts["clients_refused"] += 1
        client.outbox.send(Failure(reason, receipt))
        self._end(connection, now)
        self._copy_waiting(now)

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
            self._subscribe(connection, client, message, now)
        elif isinstance(message, Ack):
            self._take_ack(client, message, now)
        elif isinstance(message, Unsubscribe):
            self._unsubscribe(connection, client, message.subscription, now)
            self._confirm(client, message.receipt)
            self._copy_waiting(now)
        elif isinstance(message, Disconnect):
            self._take_disconnect(connection, client, message, now)
        elif isinstance(message, Refused):
            self._refuse(connection, client, message.reason, now, message.receipt)
        elif not isinstance(message, Beat):
            self._refuse(connection, client, f"{message.kind.upper()} is not allowed here", now)

    def _begin(self, connection: Connection, client: BrokersClient, message: Message, now: float) -> None:
        """Begin a session."""
        if isinstance(message, Beat):
            return
        if not isinstance(message, Connect):
            self._refuse(connection, client, "a session begins with CONNECT", now)
        elif VERSION not in message.versions:
            versions = ",".join(message.versions)[:40]
            self._refuse(connection, client, f"accept-version: {versions!r} is not allowed; {VERSION}", now)
        else:
            client.began_at = now
            beat = in_milliseconds(self._config.heartbeat)
            client.outbox.send(Connected(SERVER, beat, beat))
            client.beats = Heartbeats(self._config.heartbeat, message.send_every, message.hear_every, client.outbox, now)

    def _subscribe(self, connection: Connection, client: BrokersClient, message: Subscribe, now: float) -> None:
        name, receipt = message.subscription, message.receipt
        if name in client.subscriptions:
            self._refuse(connection, client, f"id: {name[:40]!r} is the name of another subscription", now, receipt)
        elif len(client.subscriptions) >= MOST_SUBSCRIPTIONS:
            self._refuse(connection, client, f"a client has at most {MOST_SUBSCRIPTIONS} subscriptions", now, receipt)
        elif client.selector_characters + len(message.selector) > MOST_SELECTOR_CHARACTERS:
            self._refuse(
                connection, client, f"a client's selectors have at most {MOST_SELECTOR_CHARACTERS} characters", now, receipt
            )
        elif self._kept and not client.has_room(self._config.queue):
            self._refuse(connection, client, f"{self._config.queue} messages wait for this client already", now, receipt)
        else:
            topic = self._topics.setdefault(message.destination, Topic())
            try:
                topic.add(connection, name, message.selector)
            except (ConfigError, UnsupportedError) as error:
                self._drop_unused(message.destination)
                self._refuse(connection, client, f"selector: {error}", now, receipt)
                return
            client.subscriptions[name] = subscribed(message.destination, message.selector, message.acknowledges)
            client.selector_characters += len(message.selector)
            self._confirm(client, receipt)
            self._send_kept(client, name)

    def _send_kept(self, client: BrokersClient, name: str) -> None:
        """Send a new subscription the messages that are kept for it."""
        subscription = client.subscriptions[name]
        chosen = self._topics[subscription.destination].selection(subscription.selector)
        for confirmation in self._kept:
            content = confirmation.message.content
            if content.destination == subscription.destination and (chosen is None or chosen.selects(content)):
                self._send_copy(client, Delivery(name, confirmation.message_id, content), confirmation)

    def _unsubscribe(self, connection: Connection, client: BrokersClient, name: str, now: float) -> None:
        """Remove a subscription, if there is one of this name; its copies are not waited for."""
        found = client.subscriptions.get(name)
        if found is None:
            return
        del client.subscriptions[name]
        client.selector_characters -= len(found.selector)
        self._topics[found.destination].remove(connection, name, found.selector)
        self._drop_unused(found.destination)
        for ack, (confirmation, subscription) in list(client.unacknowledged.items()):
            if subscription == name:
                del client.unacknowledged[ack]
                self._acknowledged(confirmation, ack, now)

    def _drop_unused(self, destination: str) -> None:
        if not self._topics[destination]:
            del self._topics[destination]

    def _confirm(self, client: BrokersClient, receipt: str) -> None:
        if receipt:
            client.outbox.send(Receipt(receipt))

    def _take_disconnect(self, connection: Connection, client: BrokersClient, message: Disconnect, now: float) -> None:
        """Send a client no more messages and await no acknowledgement of it; its session ends when its own are accepted."""
        for name in list(client.subscriptions):
            self._unsubscribe(connection, client, name, now)
        client.is_leaving, client.last_receipt = True, message.receipt
        self._leave_if_done(connection, client, now)
        self._copy_waiting(now)

    def _leave_if_done(self, connection: Connection, client: BrokersClient, now: float) -> None:
        """End the session of a client that disconnected, when all that it published is accepted."""
        if client.is_leaving and not client.waiting and not client.unconfirmed:
            self._confirm(client, client.last_receipt)
            self._end(connection, now)

    # Messages

    def _take(self, connection: Connection, client: BrokersClient, message: Send, now: float) -> None:
        """Copy a message now, or let it wait."""
        if client.waiting or not self._copy(connection, client, message, now):
            if not client.waiting:
                client.waiting = deque()
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
                client = self._clients.get(connection)
                if client is not None and self._copy(connection, client, client.waiting[0], now):
                    progress = True
                    client.waiting.popleft()
                    self._go_on(connection, client, now)

    def _go_on(self, connection: Connection, client: BrokersClient, now: float) -> None:
        """Read a client again of which fewer messages wait."""
        if client.is_held and len(client.waiting) <= self._config.window // 2:
            client.is_held = False
            self.ports.release(connection)
        if not client.waiting:
            client.waiting = EMPTY
            del self._blocked[connection]
            self._leave_if_done(connection, client, now)

    def _copy(self, connection: Connection, client: BrokersClient, message: Send, now: float) -> bool:
        """Copy a message to its subscribers, to accept it when they have it; return whether there was room for it."""
        content = message.content
        topic = self._topics.get(content.destination)
        if content.expires_at <= self.ports.epoch + now:
            self._counts["messages_expired"] += 1
        elif topic is None and not message.keep:
            self._counts["messages_relayed"] += 1
        else:
            chosen = [] if topic is None else [(self._clients[to], name) for to, name in topic.chosen_by(content)]
            most = self._config.queue
            if message.keep and len(self._kept) >= most:
                return False
            for subscriber, _ in chosen:
                if not subscriber.has_room(most):
                    return False
            self._messages += 1
            self._counts["messages_relayed"] += 1
            message_id = str(self._messages)
            confirmation = self._confirmation(connection, client, message, message_id, chosen)
            copies: dict[str, Delivery] = {}
            for subscriber, name in chosen:
                if name not in copies:
                    copies[name] = Delivery(name, message_id, content)
                self._send_copy(subscriber, copies[name], confirmation)
            if confirmation is not None:
                self._settle(confirmation, now)
                return True
        self._confirm(client, message.receipt)
        return True

    def _send_copy(self, client: BrokersClient, copy: Delivery, confirmation: Confirmation | None) -> None:
        """Send a copy for a subscription, the same object to all clients that have one of this name and do not acknowledge."""
        self._counts["copies_sent"] += 1
        name = copy.subscription
        if client.subscriptions[name].acknowledges:
            assert confirmation is not None
            self._copies += 1
            ack = str(self._copies)
            if not client.unacknowledged:
                client.unacknowledged = {}
            client.unacknowledged[ack] = confirmation, name
            confirmation.awaited.add(ack)
            copy = Delivery(name, copy.message_id, copy.content, ack)
        client.outbox.send(copy)

    # Confirmations

    def _confirmation(
        self,
        connection: Connection,
        client: BrokersClient,
        message: Send,
        message_id: str,
        chosen: Sequence[tuple[BrokersClient, str]],
    ) -> Confirmation | None:
        """Return what the receipt of a message waits for; None if it waits for nothing."""
        if not message.keep and not any(subscriber.subscriptions[name].acknowledges for subscriber, name in chosen):
            return None
        confirmation = Confirmation(connection, message, message_id, client.began_at + message.keep / 1000)
        if not client.unconfirmed:
            client.unconfirmed = {}
        client.unconfirmed[confirmation] = None
        if message.keep:
            self._kept[confirmation] = None
        return confirmation

    def _take_ack(self, client: BrokersClient, message: Ack, now: float) -> None:
        """Handle an acknowledgement; one of a copy whose subscription has ended is ignored."""
        found = client.unacknowledged.pop(message.ack, None)
        self._confirm(client, message.receipt)
        if found is not None:
            client.acknowledged += 1
            self._acknowledged(found[0], message.ack, now)
            self._copy_waiting(now)

    def _acknowledged(self, confirmation: Confirmation, ack: str, now: float) -> None:
        """Note that a copy is acknowledged, or that its subscription has ended."""
        confirmation.awaited.discard(ack)
        self._settle(confirmation, now)

    def _settle(self, confirmation: Confirmation, now: float) -> None:
        """Accept a message of which all copies are acknowledged, and whose time is over."""
        connection = confirmation.publisher
        client = self._clients.get(connection)
        if confirmation.awaited or client is None or confirmation not in client.unconfirmed:
            return
        if confirmation.kept_until > now:
            self._wake_at(confirmation.kept_until)
            return
        self._kept.pop(confirmation, None)
        del client.unconfirmed[confirmation]
        self._confirm(client, confirmation.message.receipt)
        self._leave_if_done(connection, client, now)

    # Statistics

    def _waiting(self) -> int:
        return sum(len(client.waiting) for client in self._clients.values())

    def held(self) -> dict[str, tuple[int, int]]:
        """Return the most messages that wait for one client and of one client, what is kept, and the clients."""
        clients = self._clients.values()
        window, queue = self._config.window, self._config.queue
        return {
            "messages for a client": (
                max((len(client.outbox.waiting) for client in clients), default=0),
                2 * queue + 2 * window + 2 * MOST_SUBSCRIPTIONS,
            ),
            "copies a client has not acknowledged": (
                max((len(client.unacknowledged) for client in clients), default=0),
                2 * queue + MOST_SUBSCRIPTIONS,
            ),
            "messages that are kept": (len(self._kept), queue),
            "messages of a client": (max((len(client.waiting) for client in clients), default=0), 2 * window + 2),
            "clients": (len(clients), self._config.clients),
        }
