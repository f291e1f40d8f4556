"""The messages between a relay and its clients, which travel on connections."""

from dataclasses import dataclass
from typing import ClassVar

from protocols.machine import Message
from protocols.messaging import Publication

__all__ = ["Accepted", "Delivery", "Publish", "Subscribe", "SubscribeDone", "Unsubscribe"]


@dataclass(slots=True)
class Publish(Message):
    """A message of a publisher, to the relay."""

    kind: ClassVar[str] = "publish"
    message: Publication

    @property
    def brief(self) -> str:
        """The number of the message."""
        return str(self.message.number)


@dataclass(slots=True)
class Accepted(Message):
    """The relay has copied the message with this number to all subscribers there are."""

    kind: ClassVar[str] = "accepted"
    is_feedback: ClassVar[bool] = True
    number: int

    @property
    def brief(self) -> str:
        """The number of the message."""
        return str(self.number)


@dataclass(slots=True)
class Delivery(Message):
    """A message, to a subscriber: one for all its subscriptions."""

    kind: ClassVar[str] = "delivery"
    message: Publication

    @property
    def brief(self) -> str:
        """The number of the message."""
        return str(self.message.number)


@dataclass(slots=True)
class Subscribe(Message):
    """Request of a client for messages of a destination; `number` is the client's number of the subscription."""

    kind: ClassVar[str] = "subscribe"
    number: int
    destination: str


@dataclass(slots=True)
class SubscribeDone(Message):
    """The subscription with this number is in effect."""

    kind: ClassVar[str] = "subscribed"
    number: int


@dataclass(slots=True)
class Unsubscribe(Message):
    """The subscription with this number ends."""

    kind: ClassVar[str] = "unsubscribe"
    number: int
