"""What a message waits for, after it was copied, until its publisher gets the receipt."""

from protocols.broker.messages import Send
from protocols.connection import Connection

__all__ = ["Confirmation"]


class Confirmation:
    """A message whose subscribers acknowledge it, or that is kept for those that come late; `publisher` is its connection.

    `kept_until` is the time in seconds until which it is kept whoever has acknowledged it.
    """

    __slots__ = ("awaited", "kept_until", "message", "message_id", "publisher")

    def __init__(self, publisher: Connection, message: Send, message_id: str, kept_until: float) -> None:
        self.publisher = publisher
        self.message = message
        self.message_id = message_id
        self.kept_until = kept_until
        self.awaited: set[str] = set()
        """The copies that are not acknowledged, by `Delivery.ack`."""

    def lose_subscriber(self, ack: str, now: float) -> None:
        """Await one copy less, and keep the message for a subscriber that may connect again."""
        self.awaited.discard(ack)
        if self.message.keep:
            self.kept_until = max(self.kept_until, now + self.message.keep / 1000)
