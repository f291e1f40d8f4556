"""The subscriber of a broker."""

from functools import lru_cache

from protocols.broker.client import BrokerClient, Session
from protocols.broker.content import is_readable, publication_of
from protocols.broker.headers import number_of
from protocols.broker.messages import Delivery, Receipt, Subscribe, Unsubscribe
from protocols.broker.selection import selection
from protocols.central.subscriber import ClientSubscriber
from protocols.jms import JmsMessage, topic_of
from protocols.machine import Message, Ports
from protocols.messaging import Subscription
from protocols.roles import RoleContext
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["BrokerSubscriber"]


class _BrokersTable(SubscriptionTable):
    """Subscriptions whose selectors the broker applies."""

    __slots__ = ()

    def check(self, subscription: Subscription) -> None:
        """Raise UsageError for a destination that is no topic, ConfigError for a selector that is none."""
        topic_of(subscription.destination)
        selection(subscription.selector)


@lru_cache(maxsize=256)
def _text(number: int) -> str:
    """Return a number as text: one string for all subscribers of a simulation, since the broker keeps one for each."""
    return str(number)


class BrokerSubscriber(BrokerClient, ClientSubscriber):
    """Subscribes at the broker, which sends a copy of a message for each subscription that it matches."""

    __slots__ = ("_foreign", "_malformed", "session")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context, shared_table(_BrokersTable))
        self.session = Session(context.config.heartbeat)
        self._foreign = self._malformed = 0

    def request(self, subscription: Subscription) -> Message:
        """See `ClientSubscriber`; the receipt shows that the subscription is in effect."""
        number = _text(subscription.number)
        return Subscribe(number, subscription.destination, subscription.selector, number)

    def ending(self, number: int) -> Message:
        """See `ClientSubscriber`."""
        return Unsubscribe(str(number))

    def take(self, message: Message, now: float) -> None:
        """Deliver a message, or note that a subscription is in effect. One whose body is not of its type is dropped."""
        if isinstance(message, Delivery):
            number = number_of(message.subscription)
            if number in self.active:
                publication = publication_of(message.content, self._foreign)
                self._foreign += publication.publisher == 0
                if is_readable(message.content, publication):
                    self._deliver(number, message, publication, now)
                else:
                    self._malformed += 1
                    self._drop(message)
        elif isinstance(message, Receipt) and number_of(message.receipt) >= 0:
            self.begun(number_of(message.receipt))

    def _deliver(self, number: int, message: Delivery, publication: JmsMessage, now: float) -> None:
        """Deliver a message for subscription `number`."""
        del message
        self.deliver([self.subscriptions.event(number, publication, self.ports.epoch + now)])

    def _drop(self, message: Delivery) -> None:
        """Have a message that is not delivered not sent again; here none is acknowledged."""

    def counts(self) -> dict[str, int]:
        """Return the messages delivered, the connections made, and messages that could not be read if there were any."""
        return {**super().counts(), **({"messages_malformed": self._malformed} if self._malformed else {})}
