"""The publisher of a relay."""

from protocols.central.publisher import ClientPublisher
from protocols.machine import Address, Message
from protocols.messaging import Publication
from protocols.relay.messages import Accepted, Publish
from protocols.relay.wire import size_of

__all__ = ["RelayPublisher"]


class RelayPublisher(ClientPublisher):
    """Sends messages to the relay."""

    __slots__ = ()
    server = "relay"

    @staticmethod
    def size_of(message: Message) -> int:
        """See `Client`."""
        return size_of(message)

    def submission(self, message: Publication) -> Message:
        """See `ClientPublisher`."""
        return Publish(message)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle that the relay accepted a message."""
        if self.is_current(to) and isinstance(message, Accepted):
            self.accepted(message.number)
