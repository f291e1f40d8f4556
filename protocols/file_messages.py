"""Files as messages: a sender that publishes each content as one bytes message, and a receiver of such messages.

Files have one topic, so that they arrive in the order in which they were submitted. The id of a file is the number of its
message, modulo 2^16.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, Final, TypeAlias, TypeVar

from protocols.delivery import delivered
from protocols.event_layer import Accept
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectSent, SenderReset
from protocols.layer import Layer
from protocols.machine import Content, Group, Offer, Ports, Sender
from protocols.messaging import (
    MessageAccepted,
    MessageDropped,
    MessageReceived,
    MessageSent,
    Publication,
    Publisher,
    PublisherUnblocked,
    Subscriber,
    Subscription,
)
from protocols.roles import MakeMachine, RoleContext
from protocols.spec import Makers

__all__ = [
    "FILES",
    "FileReceiver",
    "FileSender",
    "SettlingPublisher",
    "file_id",
    "file_makers",
    "file_message",
    "largest_file",
    "received_file",
    "sent_file",
]

T = TypeVar("T")
MakeFileSender: TypeAlias = Callable[[Ports, RoleContext], Sender]

FILES: Final = "topic:files"
"""The destination of files."""
_FILE: Final = "file"
"""The property of a file; other content has none."""
_INFO: Final = "info"
"""The property with the out-of-band information, as a text of Latin-1."""
_IDS: Final = 1 << 16


def file_makers(make_sender: MakeFileSender, make_subscriber: MakeMachine) -> Makers:
    """Return what makes the sender and the receiver of files, from a context."""

    def sender(ports: Ports, config: Any, node: int, group: Group, instance: int) -> Sender:
        return make_sender(ports, RoleContext(config, node, group, instance))

    def receiver(ports: Ports, config: Any, node: int, group: Group) -> FileReceiver:
        return FileReceiver(make_subscriber, ports, RoleContext(config, node, group))

    return Makers(sender, receiver)


def file_id(number: int) -> int:
    """Return the object id of the file that is message `number` of its publisher."""
    return number % _IDS


def file_message(content: Content, publisher: int, number: int, time: float) -> Publication:
    """Return the message that carries a content; `time` is the present time in seconds since 1970."""
    source = content.source
    properties = {_FILE: True} if content.is_file else {}
    named = {_INFO: content.info.decode("latin-1")} if content.info else {}
    body = source.read(0, source.size)
    return Publication(publisher, number, FILES, source.size, body, {**properties, **named}, sent_at=time)


def largest_file(size: int) -> Publication:
    """Return the message of a file of `size` bytes, without them and without information beside it."""
    return Publication(0, 0, FILES, size, None, {_FILE: True})


def received_file(message: Publication, accept: Accept, segment: int) -> Event | None:
    """Give the application the content of a message, in segments of `segment` bytes; return the event for it, if any."""
    body = message.body or b""
    offer = Offer(message.publisher, file_id(message.number), message.size, bool(message.properties.get(_FILE, False)))
    info = str(message.properties.get(_INFO, "")).encode("latin-1", "replace")
    return delivered(accept, offer, info, ((at, body[at : at + segment]) for at in range(0, len(body), segment)))


def sent_file(event: Event, publisher: int) -> Iterator[Event]:
    """Yield the event of a file for that of the message which carries it."""
    if isinstance(event, (MessageAccepted, MessageSent)):
        yield ObjectSent(file_id(event.number))
    elif isinstance(event, MessageDropped):
        yield ObjectAborted(publisher, file_id(event.number), event.reason)


class SettlingPublisher(Publisher):
    """A publisher that knows when its messages have arrived wherever they can."""

    __slots__ = ()

    @property
    @abstractmethod
    def settled_at(self) -> float:
        """When no subscriber will ask for more, in seconds, unless one does before; inf while something is to be sent."""


class FileSender(Layer, Sender):
    """Publishes files one by one as its publisher takes them, and reports the end when they have arrived."""

    __slots__ = ("_flushed", "_is_blocked", "_node", "_publisher", "_submitted", "_unfinished", "_waiting")

    def __init__(
        self, make_publisher: Callable[[Ports, RoleContext], SettlingPublisher], ports: Ports, context: RoleContext
    ) -> None:
        super().__init__(ports)
        self._node = context.node
        self._publisher = self.inner("", lambda own: make_publisher(own, context), self._on_event)
        self._waiting: deque[tuple[int, Content]] = deque()
        self._submitted = self._flushed = 0
        # Files of which it is not known whether they were sent, by the numbers of their messages.
        self._unfinished: set[int] = set()
        self._is_blocked = False

    def submit(self, content: Content, now: float) -> int:
        """Publish the content as a bytes message when the publisher takes it."""
        number = self._submitted
        self._submitted += 1
        self._unfinished.add(number)
        self._waiting.append((number, content))
        self._publish_waiting(now)
        return file_id(number)

    def _publish_waiting(self, now: float) -> None:
        while self._waiting and not self._is_blocked:
            number, content = self._waiting.popleft()
            message = file_message(content, self._node, number, self.ports.epoch + now)
            # Before events are handled, among which `PublisherUnblocked` may be.
            self._is_blocked = self._publisher.publish(message, now)
        self._hear(now)
        self._look()

    def _on_event(self, event: Event, now: float) -> None:
        if isinstance(event, (MessageAccepted, MessageSent, MessageDropped)):
            self._unfinished.discard(event.number)
        elif isinstance(event, PublisherUnblocked):
            self._is_blocked = False
            self._publish_waiting(now)
        for told in sent_file(event, self._node):
            self.ports.notify(told)

    def give(self, verb: Callable[..., T], *args: object) -> T:
        """See `Layer.give`; what happens may change when the files have arrived."""
        result = super().give(verb, *args)
        self._look()
        return result

    def _look(self) -> None:
        """Set the time at which all files have arrived, which is reported once."""
        is_due = not self._unfinished and self._flushed < self._submitted
        self.set_timer(self._publisher.settled_at if is_due else inf)

    def expire(self, now: float) -> None:
        """Report the end."""
        self._flushed = self._submitted
        self.ports.notify(FlushCompleted(file_id(self._submitted - 1)))


class FileReceiver(Layer):
    """Subscribes to files, and delivers them as objects when they are complete."""

    __slots__ = ("_segment", "_subscriber")

    def __init__(self, make_subscriber: MakeMachine, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports)
        self._segment: int = context.config.segment
        self._subscriber: Any = self.inner("", lambda own: make_subscriber(own, context), self._on_event)
        assert isinstance(self._subscriber, Subscriber)

    def start(self, now: float) -> None:
        """Subscribe to files."""
        super().start(now)
        self.give(self._subscriber.subscribe, Subscription(0, FILES), now)

    def _on_event(self, event: Event, now: float) -> None:
        del now
        if isinstance(event, MessageReceived):
            told = received_file(event.message, self.ports.accept, self._segment)
            if told is not None:
                self.ports.notify(told)
        elif isinstance(event, SenderReset):
            self.ports.notify(event)
