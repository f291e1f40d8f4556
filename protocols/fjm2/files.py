"""A publisher and a subscriber of FJM2 as sender and receiver of files (`protocols.file_messages`).

Files become objects of NORM in the order in which they were submitted: the id of a file is that of its object.
"""

from collections.abc import Iterator

from protocols.event_layer import Accept, MachineClock, OnEvent
from protocols.events import (
    Event,
    FlushCompleted,
    ObjectAborted,
    ObjectOpened,
    ObjectPurged,
    ObjectsAborted,
    SenderHeard,
    SenderReset,
    SenderSilent,
)
from protocols.file_messages import FILES, file_id, file_message, received_file, sent_file
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.machine import Content, Ports, Sender
from protocols.messaging import MessageReceived, PublisherIdle, Subscription
from protocols.roles import RoleContext
from protocols.spec import MakeReceiver, MakeSender

__all__ = ["Fjm2Receiver", "Fjm2Sender"]


class Fjm2Sender(Fjm2Publisher, Sender):
    """A publisher of files."""

    __slots__ = ("_node",)

    def __init__(self, make_sender: MakeSender, ports: Ports, context: RoleContext) -> None:
        super().__init__(make_sender, ports, context)
        self._node = context.node

    def submit(self, content: Content, now: float) -> int:
        """Publish the content as a bytes message. UsageError for one that is larger than the pool, or than NORM carries."""
        number = self._published
        self.publish(file_message(content, self._node, number, self.ports.epoch + now), now)
        return file_id(number)

    def heard(self, event: Event, now: float) -> Iterator[Event]:
        """Turn events of messages into those of files, and report the end when no message waits."""
        for told in super().heard(event, now):
            yield from sent_file(told, self._node)
            if isinstance(told, PublisherIdle):
                yield FlushCompleted(file_id(self._published - 1))
        if isinstance(event, ObjectPurged):
            yield event


class Fjm2Receiver(Fjm2Subscriber):
    """A subscriber to files, which it delivers as objects when they are complete."""

    __slots__ = ("_accept", "_segment")

    def __init__(self, make_receiver: MakeReceiver, ports: Ports, context: RoleContext) -> None:
        super().__init__(make_receiver, ports, context)
        self.subscriptions = self.subscriptions.added(Subscription(0, FILES))
        self._segment = context.config.segment
        self._accept: Accept | None = None

    def between(self, on_event: OnEvent, accept: Accept | None, clock: MachineClock) -> tuple[OnEvent, Accept | None]:
        """See `EventLayer`: files are offered when their messages are complete."""
        self._accept = accept
        return super().between(on_event, accept, clock)

    def heard(self, event: Event, now: float) -> Iterator[Event]:
        """Deliver files; other events pass if a receiver of files has them."""
        for told in super().heard(event, now):
            if isinstance(told, MessageReceived):
                assert self._accept is not None
                delivered = received_file(told.message, self._accept, self._segment)
                if delivered is not None:
                    yield delivered
        if isinstance(event, (ObjectOpened, ObjectAborted, ObjectsAborted, SenderHeard, SenderReset, SenderSilent)):
            yield event
