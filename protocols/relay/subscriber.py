"""The subscriber of a relay."""

from protocols.connection import Reason
from protocols.machine import Address, Message, Ports
from protocols.messaging import MessageReceived, Subscribed, Subscriber, Subscription, SubscriptionEnded
from protocols.relay.client import RelayClient
from protocols.relay.messages import Delivery, Subscribe, SubscribeDone, Unsubscribe
from protocols.roles import RoleContext
from protocols.subscriptions import SubscriptionTable

__all__ = ["RelaySubscriber"]


class RelaySubscriber(RelayClient, Subscriber):
    """Subscribes at the relay, and again on every new connection."""

    __slots__ = ("_active", "_delivered", "_subscriptions")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self._subscriptions = SubscriptionTable()
        # The numbers of subscriptions that are in effect.
        self._active: set[int] = set()
        self._delivered = 0

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Subscribe at the relay, now or when there is a connection."""
        self._subscriptions.add(subscription)
        if self.outbox is not None:
            self.outbox.send(Subscribe(subscription.number, subscription.destination))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription, here at once."""
        self._subscriptions.remove(number)
        self._active.discard(number)
        if self.outbox is not None:
            self.outbox.send(Unsubscribe(number))

    def connected(self, now: float) -> None:
        """Subscribe again to everything."""
        for subscription in self._subscriptions:
            assert self.outbox is not None
            self.outbox.send(Subscribe(subscription.number, subscription.destination))

    def disconnected(self, reason: Reason, now: float) -> None:
        """Tell that no subscription is in effect."""
        for number in sorted(self._active):
            self.ports.notify(SubscriptionEnded(number, reason))
        self._active.clear()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message, or note that a subscription is in effect."""
        if not self.is_current(to):
            return
        if isinstance(message, Delivery):
            for event in self._subscriptions.delivery(message.message, self.ports.epoch + now):
                self._delivered += isinstance(event, MessageReceived)
                self.ports.notify(event)
        elif isinstance(message, SubscribeDone) and message.number in self._subscriptions:
            self._active.add(message.number)
            self.ports.notify(Subscribed(message.number))

    def counts(self) -> dict[str, int]:
        """Return the messages delivered, and the connections made."""
        return {"messages_received": self._delivered, "connections": self.connections}
