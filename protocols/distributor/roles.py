"""The roles of the protocol in runs: updates that carry the messages of `protocols.messaging`."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from protocols.distributor.events import ConnectionNagging, PublisherGone, SegmentsLost, UpdatesReceived, UpdatesSent
from protocols.distributor.identity import RunIdentity
from protocols.distributor.messages import Carried, Content, Source
from protocols.distributor.publisher import DistributorPublisher
from protocols.distributor.subscriber import DistributorSubscriber
from protocols.errors import WireError
from protocols.event_layer import EventLayer
from protocols.events import Event
from protocols.machine import Ports
from protocols.message_wire import read_message
from protocols.messaging import (
    MessageAccepted,
    MessageExpired,
    MessageReceived,
    MessagesLost,
    Publication,
    Publisher,
    PublisherIdle,
    Subscriber,
    Subscription,
)
from protocols.norm.maps import SmallDict
from protocols.roles import RoleContext

__all__ = ["MessagePublisher", "MessageSubscriber"]

MOST_LATEST: Final = 4096
"""Publishers whose last message, or whose losses, are remembered, those heard first forgotten first."""
_NOTHING: Final[dict[Source, int]] = {}
"""An empty table of lost messages, shared by all subscribers that lost none; never modified."""


class MessagePublisher(EventLayer, Publisher):
    """Publishes each message as an update; it is accepted when all of it was sent once."""

    __slots__ = ("_expired", "_unsent")

    def __init__(self, ports: Ports, context: RoleContext, machine: type[DistributorPublisher] = DistributorPublisher) -> None:
        identity = RunIdentity(context.node, context.instance)
        super().__init__(ports, machine(ports, context.config, identity, context.group))
        # Numbers of the messages that were not sent, in the order of publishing.
        self._unsent: deque[int] = deque()
        self._expired = 0

    def publish(self, message: Publication, now: float) -> bool:
        """Publish a message; one that has expired is dropped."""
        inner = cast(DistributorPublisher, self.inner)
        if message.expires_at <= self.ports.epoch + now:
            self._expired += 1
            self.ports.notify(MessageExpired(message.publisher, message.number))
            if not self._unsent:
                self.ports.notify(PublisherIdle())
            return inner.is_blocked
        self._unsent.append(message.number)
        return inner.publish(message.destination, Carried(message), now)

    def heard(self, event: Event, now: float) -> Sequence[Event]:
        """Turn updates that were sent into messages that are accepted."""
        if isinstance(event, UpdatesSent):
            return [MessageAccepted(self._unsent.popleft()) for _ in range(event.count)]
        return [event]

    def counts(self) -> dict[str, int]:
        """Return the counters of the publisher, and the messages that expired."""
        return {**self.inner.counts(), "messages_expired": self._expired}


class MessageSubscriber(EventLayer, Subscriber):
    """Delivers the messages that updates carry; other updates of the group are counted and dropped.

    When segments were lost, the messages that they held are known with the next one of their publisher: it reports all numbers
    between those of the messages before and after, which may include some for other subjects. Where numbers do not go on, as
    after a restart of the publisher, it reports how many segments were lost, and so it does at once when nothing follows them.
    """

    __slots__ = ("_foreign", "_latest", "_lost")

    def __init__(
        self, ports: Ports, context: RoleContext, machine: type[DistributorSubscriber] = DistributorSubscriber
    ) -> None:
        identity = RunIdentity(context.node, context.instance)
        super().__init__(ports, machine(ports, context.config, identity, context.group))
        # The last message of each publisher. How many segments of each source were lost since its last message and are not
        # reported; 0 where only the numbers of the messages are not.
        self._latest: SmallDict[int] = SmallDict()
        self._lost = _NOTHING
        self._foreign = 0

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on."""
        cast(DistributorSubscriber, self.inner).subscribe(subscription, now)

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription."""
        cast(DistributorSubscriber, self.inner).unsubscribe(number, now)

    def heard(self, event: Event, now: float) -> Sequence[Event]:
        """Turn updates into messages."""
        if isinstance(event, UpdatesReceived):
            found: list[Event] = []
            for content in event.contents:
                found += self._received(event, content)
            return found
        if isinstance(event, SegmentsLost):
            earlier = self._lost.get(event.source, 0)
            lost = earlier + max(0 if earlier else 1, event.count)
            self._note_lost(event.source, lost)
            return self._lost_now([event.source]) if event.is_last else []
        if isinstance(event, PublisherGone):
            return self._lost_now([event.source])
        if isinstance(event, ConnectionNagging):
            return self._lost_now(list(self._lost))
        return [event]

    def _note_lost(self, source: Source, count: int) -> None:
        if not self._lost:
            self._lost = {}
        if len(self._lost) >= MOST_LATEST and source not in self._lost:
            del self._lost[next(iter(self._lost))]
        self._lost[source] = count

    def _lost_now(self, sources: Sequence[Source]) -> Sequence[Event]:
        """Report what was lost of some sources; only its numbers are left to report, with the next message if one comes."""
        found = [MessagesLost(source.host, self._lost[source]) for source in sources if self._lost.get(source)]
        for source in sources:
            if source in self._lost:
                self._lost[source] = 0
        return found

    def _received(self, event: UpdatesReceived, content: Content) -> list[Event]:
        message = _message_of(content, event.subject)
        if message is None:
            self._foreign += 1
            return []
        found: list[Event] = []
        lost = self._lost.pop(event.source, None) if self._lost else None
        if lost is not None:
            first, last = self._latest.get(message.publisher, -1) + 1, message.number - 1
            if last >= first - 1:
                found.append(MessagesLost(message.publisher, last - first + 1, first, last))
            elif lost:
                found.append(MessagesLost(message.publisher, lost))
        if len(self._latest) >= MOST_LATEST and message.publisher not in self._latest:
            del self._latest[self._latest.first]
        self._latest[message.publisher] = message.number
        found += [MessageReceived(number, message) for number in event.subscriptions]
        return found

    def counts(self) -> dict[str, int]:
        """Return the counters of the subscriber, and the updates that are no messages."""
        return {**self.inner.counts(), "messages_foreign": self._foreign}


def _message_of(content: Content, subject: str) -> Publication | None:
    """Return the message in an update, None for other bytes."""
    if isinstance(content, Carried):
        return content.message
    try:
        return replace(read_message(content), destination=subject)
    except WireError:
        return None
