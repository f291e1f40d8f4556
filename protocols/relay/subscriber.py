"""The subscriber of a relay."""

from protocols.central.subscriber import ClientSubscriber
from protocols.machine import Address, Message, Ports
from protocols.messaging import Subscription
from protocols.relay.messages import Delivery, Subscribe, SubscribeDone, Unsubscribe
from protocols.relay.wire import size_of
from protocols.roles import RoleContext
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["RelaySubscriber"]


class RelaySubscriber(ClientSubscriber):
    """Subscribes at the relay, which sends one copy of a message for all subscriptions."""

    __slots__ = ()
    server = "relay"

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context, shared_table(SubscriptionTable))

    @staticmethod
    def size_of(message: Message) -> int:
        """See `Client`."""
        return size_of(message)

    def request(self, subscription: Subscription) -> Message:
        """See `ClientSubscriber`."""
        return Subscribe(subscription.number, subscription.destination)

    def ending(self, number: int) -> Message:
        """See `ClientSubscriber`."""
        return Unsubscribe(number)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message, or note that a subscription is in effect."""
        if not self.is_current(to):
            return
        if isinstance(message, Delivery):
            self.deliver(self.subscriptions.delivery(message.message, self.ports.epoch + now))
        elif isinstance(message, SubscribeDone):
            self.begun(message.number)
