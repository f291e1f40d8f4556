"""Messaging on a protocol of files: each message is one object, which holds it as `protocols.message_wire` writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from protocols.errors import WireError
from protocols.event_layer import EventLayer
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectReceived, ObjectSent
from protocols.machine import Content, Offer, Ports, Sender, Sink
from protocols.message_wire import read_message, write_head
from protocols.messaging import (
    Guarantees,
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    MessageReceived,
    Publication,
    Publisher,
    PublisherIdle,
    PublisherUnblocked,
    Subscribed,
    Subscriber,
    Subscription,
)
from protocols.roles import Role, RoleContext
from protocols.spec import MakeReceiver, MakeSender, ProtocolSpec
from protocols.subscriptions import SubscriptionTable, shared_table

__all__ = ["ObjectPublisher", "ObjectSubscriber", "check_message", "guarantees_of", "roles_of"]

MOST_UNSENT = 32
"""Messages that were not sent once, from which on a publisher is blocked."""


class _Encoded:
    """The source of a message: its head, and its body or as many zeros."""

    __slots__ = ("_data", "size")

    def __init__(self, message: Publication) -> None:
        head = write_head(message)
        self._data = head if message.body is None else head + message.body
        self.size = len(head) + message.size

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`."""
        return self._data[offset : offset + n].ljust(n, b"\0")


class _Collected:
    """The sink of a message, which is read when it is complete."""

    __slots__ = ("_data", "message")

    def __init__(self, size: int) -> None:
        self._data = bytearray(size)
        self.message: Publication | None = None

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one outside the object."""
        if offset + len(data) > len(self._data):
            raise OSError(f"a segment at {offset} of an object of {len(self._data)} bytes")
        self._data[offset : offset + len(data)] = data

    def read(self, offset: int, n: int) -> bytes:
        """Return stored bytes."""
        return bytes(self._data[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """Read the message. OSError for an object that holds none."""
        del info
        data, self._data = bytes(self._data), bytearray()
        try:
            self.message = read_message(data)
        except WireError as error:
            raise OSError(str(error)) from error

    def abort(self) -> None:
        """Drop the bytes."""
        self._data = bytearray()


class ObjectPublisher(EventLayer, Publisher):
    """Submits each message to the sender of a protocol of files; blocked while `MOST_UNSENT` were not sent."""

    __slots__ = ("_is_blocked", "_last", "_messages", "_sent", "_unsent")

    def __init__(self, make_sender: MakeSender, ports: Ports, context: RoleContext) -> None:
        inner = make_sender(ports, context.config, context.node, context.group, context.instance)
        super().__init__(ports, inner)
        # Numbers of messages by object id; ids may come again after a message was sent.
        self._unsent: dict[int, int] = {}
        self._last = -1
        self._messages = 0
        self._is_blocked = False

    def publish(self, message: Publication, now: float) -> bool:
        """Submit a message; one that has expired is dropped."""
        self._messages += 1
        if message.expires_at <= self.ports.epoch + now:
            self.ports.notify(MessageExpired(message.publisher, message.number))
            if not self._unsent:
                self.ports.notify(PublisherIdle())
            return self._is_blocked
        self._last = cast(Sender, self.inner).submit(Content(_Encoded(message), is_file=False), now)
        self._unsent[self._last] = message.number
        self._is_blocked = len(self._unsent) >= MOST_UNSENT
        return self._is_blocked

    def heard(self, event: Event, now: float) -> Sequence[Event]:
        """Turn events of objects into those of messages."""
        if isinstance(event, ObjectSent) and event.object_id in self._unsent:
            return [MessageAccepted(self._unsent.pop(event.object_id)), *self._unblocked()]
        if isinstance(event, ObjectAborted) and event.object_id in self._unsent:
            return [MessageDropped(self._unsent.pop(event.object_id), event.reason), *self._unblocked()]
        if isinstance(event, FlushCompleted) and event.object_id == self._last and not self._unsent:
            return [PublisherIdle()]
        return [event] if isinstance(event, (MessageExpired, PublisherIdle)) else []

    def _unblocked(self) -> list[Event]:
        if not self._is_blocked or len(self._unsent) >= MOST_UNSENT:
            return []
        self._is_blocked = False
        return [PublisherUnblocked()]

    def counts(self) -> dict[str, int]:
        """Return the counters of the sender, and the messages published."""
        return {**self.inner.counts(), "messages_published": self._messages}


class ObjectSubscriber(EventLayer, Subscriber):
    """Delivers the messages that the receiver of a protocol of files receives as objects."""

    __slots__ = ("_delivered", "_sinks", "_subscriptions")

    def __init__(self, make_receiver: MakeReceiver, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, make_receiver(ports, context.config, context.node, context.group))
        self._subscriptions = shared_table(SubscriptionTable)
        self._sinks: dict[tuple[int, int], _Collected] = {}
        self._delivered = 0

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on."""
        self._subscriptions = self._subscriptions.added(subscription)
        self.ports.notify(Subscribed(subscription.number))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription."""
        self._subscriptions = self._subscriptions.removed(number)

    def offered(self, offer: Offer) -> Sink | None:
        """Take every object that is no file, while there is a subscription."""
        if offer.is_file or not len(self._subscriptions):
            return None
        sink = self._sinks[offer.sender, offer.object_id] = _Collected(offer.size)
        return sink

    def heard(self, event: Event, now: float) -> Sequence[Event]:
        """Turn a received object into messages."""
        if isinstance(event, (ObjectReceived, ObjectAborted)):
            sink = self._sinks.pop((event.sender, event.object_id), None)
            if sink is not None and sink.message is not None and isinstance(event, ObjectReceived):
                events = self._subscriptions.delivery(sink.message, self.ports.epoch + now)
                self._delivered += sum(isinstance(each, MessageReceived) for each in events)
                return events
            return []
        return [event] if isinstance(event, Subscribed) else []

    def counts(self) -> dict[str, int]:
        """Return the counters of the receiver, and the messages delivered."""
        return {**self.inner.counts(), "messages_received": self._delivered}


def roles_of(spec: ProtocolSpec, fast: bool = False) -> Mapping[str, Role]:
    """Return the roles of a protocol but `sender` and `receiver` where these need no server.

    One that carries files so has a publisher and a subscriber that stand on them, with `fast` on its fast machines.
    """
    roles = spec.roles_for(fast)
    if not spec.needs_no_server:
        return roles
    makers = spec.makers(fast)
    publisher, subscriber = partial(ObjectPublisher, makers.make_sender), partial(ObjectSubscriber, makers.make_receiver)
    return {"publisher": Role(publisher), "subscriber": Role(subscriber), **roles}


def check_message(spec: ProtocolSpec, config: Any, message: Publication) -> None:
    """Raise UsageError for a message that the publishers of a protocol with this config refuse."""
    spec.check_message(config, message)
    if spec.guarantees is None:
        spec.check_content(config, Content(_Encoded(message), is_file=False))


def guarantees_of(spec: ProtocolSpec, config: Any = None) -> Guarantees:
    """Return what a protocol guarantees of messages, with a `config` in a run with these parameters."""
    found = spec.guarantees or Guarantees(once=True, fifo=spec.ordered)
    return replace(found, fifo=True) if config is not None and spec.orders(config) else found
