"""A sender and a receiver of files (`protocols.file_messages`) by the broker, confirmed from end to end.

The receiver acknowledges each file when its application has it, and the broker sends the receipt of a file when all who
subscribed have done so. A sender that loses its connection sends again what it has no receipt for; a receiver takes each file
once. As STOMP tells publishers nothing of subscribers, the broker keeps files for a while for receivers that come late or come
back (`keep`).
"""

from collections import deque
from math import inf

from protocols.broker.config import BrokerConfig
from protocols.broker.content import check_size, content_of
from protocols.broker.heartbeats import in_milliseconds
from protocols.broker.messages import Ack, Delivery, Send, Subscribe
from protocols.broker.publisher import BrokerPublisher
from protocols.broker.subscriber import BrokerSubscriber
from protocols.events import Event, SenderReset
from protocols.file_messages import FileReceiver, FileSender, SettlingPublisher
from protocols.jms import JmsMessage
from protocols.machine import Content, Message, Ports
from protocols.messaging import MessageExpired, MessageReceived, Publication, Subscription
from protocols.range_set import RangeSet
from protocols.roles import RoleContext

__all__ = ["BrokerReceiver", "BrokerSender", "FilePublisher", "FileSubscriber"]

MOST_PUBLISHERS = 4096
"""Publishers whose delivered messages a subscriber remembers."""
MOST_RANGES = 256
"""Ranges of message numbers that it remembers of each; a broker that passes on all messages of a publisher leaves one."""


class FilePublisher(BrokerPublisher, SettlingPublisher):
    """Has its messages kept for late subscribers, and sends those again that were not accepted when a connection ended."""

    __slots__ = ("_keep", "_unaccepted")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        config: BrokerConfig = context.config
        self._keep = in_milliseconds(config.keep)
        self._unaccepted: dict[int, Publication] = {}

    def submission(self, message: Publication) -> Message:
        """See `ClientPublisher`."""
        self._unaccepted[message.number] = message
        return Send(content_of(message, self._instance), str(message.number), self._keep)

    def accepted(self, number: int) -> None:
        """Note that all who subscribed have a message."""
        self._unaccepted.pop(number, None)
        super().accepted(number)

    def disconnected(self, reason: str, now: float) -> None:
        """Queue what was not accepted again, in order."""
        self._queue.extendleft(reversed(self._unaccepted.values()))
        self._unaccepted.clear()
        self._sent.clear()

    @property
    def settled_at(self) -> float:
        """See `SettlingPublisher`: an accepted message is where it has to be."""
        return inf if self._unsettled() else 0.0


class FileSubscriber(BrokerSubscriber):
    """Takes each message of a publisher once, and acknowledges it when its application has it."""

    __slots__ = ("_known", "_to_acknowledge")

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, context)
        # The instance of each publisher, and the numbers of its messages that were delivered.
        self._known: dict[int, tuple[int, RangeSet]] = {}
        # Of messages that were delivered to the application, in order.
        self._to_acknowledge: deque[str] = deque()

    def request(self, subscription: Subscription) -> Message:
        """See `ClientSubscriber`."""
        number = str(subscription.number)
        return Subscribe(number, subscription.destination, subscription.selector, number, acknowledges=True)

    def _deliver(self, number: int, message: Delivery, publication: JmsMessage, now: float) -> None:
        """Deliver a message, or acknowledge one that was delivered before."""
        if publication.publisher and not self._is_new(publication):
            self._send_ack(message.ack)
            return
        self._to_acknowledge.append(message.ack)
        super()._deliver(number, message, publication, now)

    def _drop(self, message: Delivery) -> None:
        """Acknowledge a message that is not delivered."""
        self._send_ack(message.ack)

    def _is_new(self, message: JmsMessage) -> bool:
        """Return whether a message was not delivered before, and note that it is now."""
        publisher, number = message.publisher, message.number
        known = self._known.get(publisher)
        if known is None or known[0] != message.instance:
            if known is not None:
                # Another start of the publisher, which numbers its messages from 0 again.
                self.ports.notify(SenderReset(publisher))
            elif len(self._known) >= MOST_PUBLISHERS:
                del self._known[next(iter(self._known))]
            known = self._known[publisher] = message.instance, RangeSet()
        _, numbers = known
        if number in numbers:
            return False
        numbers.add(number, number)
        if len(numbers.firsts) > MOST_RANGES:
            numbers.remove(numbers.firsts[0])
        return True

    def acknowledge(self, now: float) -> None:
        """Acknowledge the message that was delivered first of those that are not acknowledged."""
        del now
        self._send_ack(self._to_acknowledge.popleft())

    def _send_ack(self, ack: str) -> None:
        """Acknowledge a message of the present connection; the broker awaits nothing of another one."""
        if ack and self.outbox is not None:
            self.outbox.send(Ack(ack))


class BrokerSender(FileSender):
    """A sender of files that reports the end when all who subscribed have acknowledged them."""

    __slots__ = ()

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(FilePublisher, ports, context)

    def submit(self, content: Content, now: float) -> int:
        """Publish the content as a message. UsageError for one that is larger than a message of the broker."""
        check_size(content.source.size)
        return super().submit(content, now)


class BrokerReceiver(FileReceiver):
    """A receiver of files that acknowledges each when its application has it, or does not want it."""

    __slots__ = ()

    def __init__(self, ports: Ports, context: RoleContext) -> None:
        super().__init__(FileSubscriber, ports, context)

    def _on_event(self, event: Event, now: float) -> None:
        super()._on_event(event, now)
        if isinstance(event, (MessageReceived, MessageExpired)):
            self.give(self._subscriber.acknowledge, now)
