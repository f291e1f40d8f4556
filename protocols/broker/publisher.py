"""The publisher of a broker."""

from protocols.broker.client import BrokerClient, Session
from protocols.broker.content import check_size, content_of
from protocols.broker.headers import number_of
from protocols.broker.messages import Receipt, Send
from protocols.central.publisher import ClientPublisher
from protocols.jms import topic_of
from protocols.machine import Message, Ports
from protocols.messaging import Publication
from protocols.roles import RoleContext

__all__ = ["BrokerPublisher"]


class BrokerPublisher(BrokerClient, ClientPublisher):
    """Sends messages to the broker, which answers each with a receipt."""

    __slots__ = ("_instance", "session")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        self._instance = context.instance
        self.session = Session(context.config.heartbeat)

    def publish(self, message: Publication, now: float) -> bool:
        """Send a message, or keep it until there is a session. UsageError for no topic, and for a body that is too large."""
        topic_of(message.destination)
        check_size(message.size)
        return super().publish(message, now)

    def submission(self, message: Publication) -> Message:
        """See `ClientPublisher`."""
        return Send(content_of(message, self._instance), str(message.number))

    def take(self, message: Message, now: float) -> None:
        """Handle that the broker accepted a message."""
        if isinstance(message, Receipt) and number_of(message.receipt) >= 0:
            self.accepted(number_of(message.receipt))
