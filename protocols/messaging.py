"""Publish and subscribe: what a publisher and a subscriber are, whatever carries the messages.

A publisher takes messages from an application, each for a destination; a subscriber delivers those that match its
subscriptions. Rules, for machines and for applications, which call the verbs by `Host.call`:

1. `publish` always takes the message. A true result means "blocked": publish nothing more before `PublisherUnblocked`.
2. The publisher reports one outcome of each message: `MessageAccepted` (from now on it is delivered, or reported as lost),
   `MessageSent` (it was sent, without a guarantee), `MessageExpired` or `MessageDropped`. `PublisherIdle` follows when all
   messages have theirs, and nothing is left to do as far as the publisher knows.
3. A subscription is in effect from `Subscribed` to `SubscriptionEnded`; the latter comes whenever it ends, but for
   `unsubscribe`. A subscriber that lost its connection subscribes again by itself, and reports another `Subscribed`.
4. Messages that matched a subscription in effect are delivered by `MessageReceived`, one event per subscription. `MessagesLost`
   reports those that the protocol knows to be missing, `MessageExpired` those that came too late.
5. Expired messages are not sent, as far as the clocks of the hosts agree. A subscriber delivers none if it can; the application
   drops those that expire before it handles their event.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from mypy_extensions import mypyc_attr

from protocols.events import Event
from protocols.machine import Machine

__all__ = [
    "LEAST_PRIORITY",
    "MOST_PRIORITY",
    "USUAL_PRIORITY",
    "Guarantees",
    "Matches",
    "MessageAccepted",
    "MessageDropped",
    "MessageExpired",
    "MessageReceived",
    "MessageSent",
    "MessagesLost",
    "Publication",
    "Publisher",
    "PublisherIdle",
    "PublisherSubscriber",
    "PublisherUnblocked",
    "Subscribed",
    "Subscriber",
    "Subscription",
    "SubscriptionEnded",
    "Value",
    "same_destination",
]

Value: TypeAlias = bool | int | float | str
"""Value of a property. Whole numbers have 64 bits."""
LEAST_PRIORITY, USUAL_PRIORITY, MOST_PRIORITY = 0, 4, 9


@dataclass(frozen=True, slots=True)
class Publication:
    """A message of an application. In the simulator all subscribers get the object that was published.

    `publisher` is the node id of its publisher and `number`, of 64 bits, its number there: together they name it. Times are
    seconds since 1970 (`Ports.epoch` + now), `expires_at` inf for never.
    """

    publisher: int
    number: int
    destination: str
    size: int
    """Bytes of the body."""
    body: bytes | None = field(default=None, repr=False, hash=False)
    """None: the body has a size only."""
    properties: Mapping[str, Value] = field(default_factory=dict, hash=False)
    priority: int = USUAL_PRIORITY
    sent_at: float = 0.0
    expires_at: float = inf


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription; `number` is the application's name for it, among those of one machine.

    The protocol defines which destinations and selectors are allowed. An empty selector selects everything.
    """

    number: int
    destination: str
    selector: str = ""


@mypyc_attr(allow_interpreted_subclasses=True)
class Publisher(Machine):
    """A machine that takes messages from an application."""

    __slots__ = ()

    @abstractmethod
    def publish(self, message: Publication, now: float) -> bool:
        """Publish a message. True means "blocked": publish no more before `PublisherUnblocked`."""

    def longest_queues(self) -> Sequence[int]:
        """Return the most messages that have waited to be sent in each queue, by priority; empty if there are no queues."""
        return ()


@mypyc_attr(allow_interpreted_subclasses=True)
class Subscriber(Machine):
    """A machine that delivers messages to an application."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches the subscription, from `Subscribed` on. UsageError for a number in use."""

    @abstractmethod
    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription at once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PublisherSubscriber(Publisher, Subscriber):
    """A publisher and a subscriber that are one machine. Its counters are the sums of theirs."""

    __slots__ = ()

    @property
    @abstractmethod
    def publisher(self) -> Publisher:
        """The part that publishes, with its counters."""

    @property
    @abstractmethod
    def subscriber(self) -> Subscriber:
        """The part that subscribes, with its counters."""


Matches: TypeAlias = Callable[[Subscription, str, Mapping[str, Value]], bool]
"""Whether a message with this destination and these properties is for a subscription."""


def same_destination(subscription: Subscription, destination: str, properties: Mapping[str, Value]) -> bool:
    """Return whether the destination is that of the subscription; there are no selectors."""
    del properties
    return subscription.destination == destination


def _anything(subscription: Subscription) -> None:
    """Allow every destination and selector."""
    del subscription


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What a messaging protocol guarantees, for the checker and the ledger of a run.

    `promised`: of the messages it accepted, none is skipped in a subscription that stays in effect, unless it is told;
    `once`: none is delivered twice; `fifo`: those of one publisher (and `fifo_by_priority`: of one priority) come in order.
    """

    promised: bool = False
    once: bool = False
    fifo: bool = False
    fifo_by_priority: bool = False
    survives_publisher: bool = False
    """Whether an accepted message is delivered even if its publisher crashes."""
    tells: str = ""
    """What `MessagesLost` says of accepted messages that are missing between two delivered ones of a publisher (and priority):
    "counts" how many at least, "gaps" one for each gap at least, "" nothing. With `promised` each is told by its number."""
    matches: Matches = same_destination
    has_selectors: bool = False
    check: Callable[[Subscription], None] = _anything
    """Raises UsageError, beginning with "to" or "selector", for a destination or a selector that the protocol can't have."""


# Events of a publisher


@dataclass(frozen=True, slots=True)
class PublisherIdle(Event):
    """Publisher: every message has its outcome and nothing is left to do, as far as this node can know."""


@dataclass(frozen=True, slots=True)
class PublisherUnblocked(Event):
    """Publisher: further messages may be published."""


@dataclass(frozen=True, slots=True)
class MessageAccepted(Event):
    """Publisher: the protocol accepted the message: from now on a subscriber gets it, or is told that it is lost."""

    number: int


@dataclass(frozen=True, slots=True)
class MessageSent(Event):
    """Publisher: the message was sent, without a guarantee."""

    number: int


@dataclass(frozen=True, slots=True)
class MessageDropped(Event):
    """Publisher: the message was given up, and perhaps never sent. `reason` is a short text."""

    number: int
    reason: str


# Events of a subscriber


@dataclass(frozen=True, slots=True)
class Subscribed(Event):
    """Subscriber: the subscription is in effect."""

    number: int


@dataclass(frozen=True, slots=True)
class SubscriptionEnded(Event):
    """Subscriber: the subscription is not in effect any more. `reason` is a short text."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class MessageReceived(Event):
    """Subscriber: a message of a subscription."""

    subscription: int
    message: Publication


@dataclass(frozen=True, slots=True)
class MessageExpired(Event):
    """Publisher or subscriber: a message expired before it was sent or delivered."""

    publisher: int
    number: int


@dataclass(frozen=True, slots=True)
class MessagesLost(Event):
    """Subscriber: messages of a publisher are missing for good; `first` to `last` where numbers are known, else None."""

    publisher: int
    count: int
    first: int | None = None
    last: int | None = None
