"""Messaging on a protocol of files: each message is one object, which holds it as `protocols.message_wire` writes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

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
MOST_OCTETS = 256 << 20
"""Bytes of memory for messages that are not complete; beyond, a subscriber gives up those that take most of it."""
_PAGE: Final = 1 << 16
"""Bytes allocated at once for a message, so that it takes memory for what has arrived, not for what it announces."""


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
    """The sink of a message, which is read when it is complete. `on_growth` is told of each page it takes, in bytes."""

    __slots__ = ("_on_growth", "_pages", "_size", "message", "octets")

    def __init__(self, size: int, on_growth: Callable[[int], None]) -> None:
        self._size = size
        self._on_growth = on_growth
        self._pages: dict[int, bytearray] = {}
        self.octets = 0
        """Bytes of memory that it has taken."""
        self.message: Publication | None = None

    @property
    def is_aborted(self) -> bool:
        """Whether the object was aborted, or its message given up."""
        return self._size < 0

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one outside the object, and when the message was given up."""
        if offset + len(data) > self._size:
            raise OSError(f"a segment at {offset} of an object of {max(0, self._size)} bytes")
        end = 0
        while end < len(data):
            number, place = divmod(offset + end, _PAGE)
            page = self._pages.get(number)
            if page is None:
                page = self._take_page(number)
            part = data[end : end + _PAGE - place]
            page[place : place + len(part)] = part
            end += len(part)

    def _take_page(self, number: int) -> bytearray:
        page = self._pages[number] = bytearray(min(_PAGE, self._size - number * _PAGE))
        self.octets += len(page)
        self._on_growth(len(page))
        if self.is_aborted:
            raise OSError("incomplete messages take too much memory")
        return page

    def read(self, offset: int, n: int) -> bytes:
        """Return stored bytes. OSError when the message was given up."""
        first, place = divmod(offset, _PAGE)
        pages = [self._pages.get(number, b"") for number in range(first, -(-(offset + n) // _PAGE))]
        data = b"".join(pages)[place : place + n]
        if len(data) < n:
            raise OSError(f"{n} bytes at {offset} were not stored")
        return data

    def commit(self, info: bytes) -> None:
        """Read the message. OSError for an object that holds none, and when the message was given up."""
        del info
        data = self.read(0, max(0, self._size))
        self._pages = {}
        try:
            self.message = read_message(data)
        except WireError as error:
            raise OSError(str(error)) from error

    def abort(self) -> None:
        """Drop the bytes; no more are taken."""
        self._pages, self._size = {}, -1


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

    __slots__ = ("_delivered", "_octets", "_sinks", "_subscriptions")

    def __init__(self, make_receiver: MakeReceiver, ports: Ports, context: RoleContext) -> None:
        super().__init__(ports, make_receiver(ports, context.config, context.node, context.group))
        self._subscriptions = shared_table(SubscriptionTable)
        self._sinks: dict[tuple[int, int], _Collected] = {}
        # Bytes of their memory.
        self._octets = 0
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
        self._forget(offer.sender, offer.object_id)
        sink = self._sinks[offer.sender, offer.object_id] = _Collected(offer.size, self._note_growth)
        return sink

    def _forget(self, sender: int, object_id: int) -> _Collected | None:
        sink = self._sinks.pop((sender, object_id), None)
        self._octets -= 0 if sink is None else sink.octets
        return sink

    def _note_growth(self, octets: int) -> None:
        """Note that a message takes more memory; give up those that take most until a quarter of the limit is free."""
        self._octets += octets
        if self._octets <= MOST_OCTETS:
            return
        for sink in sorted(self._sinks.values(), key=lambda each: each.octets, reverse=True):
            sink.abort()
            self._octets -= sink.octets
            sink.octets = 0
            if self._octets <= MOST_OCTETS * 3 // 4:
                break

    def heard(self, event: Event, now: float) -> Sequence[Event]:
        """Turn a received object into messages."""
        if isinstance(event, ObjectReceived):
            sink = self._forget(event.sender, event.object_id)
            if sink is not None and sink.message is not None:
                events = self._subscriptions.delivery(sink.message, self.ports.epoch + now)
                self._delivered += sum(isinstance(each, MessageReceived) for each in events)
                return events
            return []
        if isinstance(event, ObjectAborted):
            # What shows that a sender has restarted may also open an object with the same id, whose offer comes first.
            sink = self._sinks.get((event.sender, event.object_id))
            if sink is not None and sink.is_aborted:
                self._forget(event.sender, event.object_id)
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
