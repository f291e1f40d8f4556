"""What a connection reports to its application, beside the events of `protocols.messaging`."""

from dataclasses import dataclass

from protocols.distributor.messages import Content, Source
from protocols.events import Event

__all__ = [
    "ConnectionNagging",
    "PublisherGone",
    "PublisherHeard",
    "QueueOverflowed",
    "SegmentsLost",
    "UpdatesReceived",
    "UpdatesSent",
]


@dataclass(frozen=True, slots=True)
class UpdatesSent(Event):
    """Publisher: the next `count` updates, in the order of publishing, were sent completely."""

    count: int


@dataclass(frozen=True, slots=True, repr=False)
class UpdatesReceived(Event):
    """Subscriber: consecutive updates of one subject, for the subscriptions with these numbers."""

    source: Source
    subject: str
    contents: tuple[Content, ...]
    subscriptions: tuple[int, ...]

    def __repr__(self) -> str:
        """Return a text that is the same for messages and for the bytes that hold them."""
        return f"UpdatesReceived({self.source}, {self.subject!r}, {len(self.contents)}, {self.subscriptions})"


@dataclass(frozen=True, slots=True)
class PublisherHeard(Event):
    """Subscriber: there is a publisher; again with the name of its `application` when that becomes known."""

    source: Source
    application: str


@dataclass(frozen=True, slots=True)
class PublisherGone(Event):
    """Subscriber: nothing was heard of a publisher for so long that it is forgotten."""

    source: Source


@dataclass(frozen=True, slots=True)
class SegmentsLost(Event):
    """Subscriber: `count` segments of a publisher, from the number `first` on, will not come. `reason` is a short text.

    `is_last`: of what is known of the publisher, no update follows. With a count of 0 it is a large update whose segments came,
    or the end of one of which a loss was reported before.
    """

    source: Source
    first: int
    count: int
    reason: str
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class QueueOverflowed(Event):
    """Subscriber: the queue of segments that wait for earlier ones is full; what does not fit is requested again later."""

    octets: int


@dataclass(frozen=True, slots=True)
class ConnectionNagging(Event):
    """Subscriber: it requested retransmissions all the time for the configured one, and has stopped receiving."""

    requests: int
