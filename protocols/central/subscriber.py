"""A subscriber that subscribes at a central server, and again on every new connection."""

from abc import abstractmethod
from collections.abc import Sequence

from protocols.central.client import Client
from protocols.events import Event
from protocols.machine import Message, Ports
from protocols.messaging import MessageReceived, Subscribed, Subscriber, Subscription, SubscriptionEnded
from protocols.roles import RoleContext
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["ClientSubscriber"]


class ClientSubscriber(Client, Subscriber):
    """Keeps what the application subscribed to, and which of it is in effect. `subscriptions` is the empty table for it."""

    __slots__ = ("_delivered", "active", "subscriptions")

    def __init__(self, ports: Ports, context: RoleContext, subscriptions: SubscriptionTable) -> None:
        super().__init__(ports, context)
        self.subscriptions = subscriptions
        self.active = subscriptions
        """Those that are in effect."""
        self._delivered = 0

    @abstractmethod
    def request(self, subscription: Subscription) -> Message:
        """Return the message that requests a subscription."""

    @abstractmethod
    def ending(self, number: int) -> Message:
        """Return the message that ends a subscription."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Subscribe at the server, now or when there is a connection."""
        self.subscriptions = self.subscriptions.added(subscription)
        if self.outbox is not None:
            self.outbox.send(self.request(subscription))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription, here at once."""
        self.subscriptions = self.subscriptions.removed(number)
        if number in self.active:
            self.active = self.active.removed(number)
        if self.outbox is not None:
            self.outbox.send(self.ending(number))

    def connected(self, now: float) -> None:
        """Subscribe again to everything."""
        for subscription in self.subscriptions:
            assert self.outbox is not None
            self.outbox.send(self.request(subscription))

    def disconnected(self, reason: str, now: float) -> None:
        """Report that no subscription is in effect."""
        ended, self.active = self.active, shared_table(type(self.active))
        for number in sorted(each.number for each in ended):
            self.ports.notify(SubscriptionEnded(number, reason))

    def begun(self, number: int) -> None:
        """Note that the server has a subscription; one that was ended meanwhile is ignored."""
        if number in self.subscriptions:
            if number not in self.active:
                self.active = self.active.added(self.subscriptions[number])
            self.ports.notify(Subscribed(number))

    def deliver(self, events: Sequence[Event]) -> None:
        """Notify the application of a message."""
        for event in events:
            self._delivered += isinstance(event, MessageReceived)
            self.ports.notify(event)

    def counts(self) -> dict[str, int]:
        """Return the messages delivered, and the connections made."""
        return {"messages_received": self._delivered, "connections": self.connections}
