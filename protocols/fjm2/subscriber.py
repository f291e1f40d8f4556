"""The subscriber (thesis, 3.4): a container for each message that begins, and delivery when it is complete.

Back-off, suppression, hold-off and repair are those of the NORM receiver. Its decisions and those made here have names in a
trace: docs/fjm2.md lists them beside the steps of the thesis.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias, cast

from protocols.content import LATER
from protocols.event_layer import EventLayer
from protocols.events import Event, ObjectAborted, ObjectOpened, ObjectReceived, ObjectsAborted, SenderReset
from protocols.fjm2.allocation import containers
from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.content import KnownMessage, MessageSink
from protocols.fjm2.early import EarlyMessages
from protocols.fjm2.pool import Pool
from protocols.jms import JmsMessage
from protocols.jms.subscriptions import JmsSubscriptions
from protocols.machine import Offer, Ports, Sink
from protocols.messaging import MessageReceived, MessagesLost, Subscribed, Subscriber, Subscription
from protocols.norm.receiver import NormReceiver
from protocols.roles import RoleContext
from protocols.snapshot import Snapshot
from protocols.spec import MakeReceiver
from protocols.subscriptions import shared_table

__all__ = ["Fjm2Subscriber"]

_Begun: TypeAlias = dict[int, MessageSink]
"""Messages that have begun, by publisher and object id.

A table of at most one is not modified, because in a simulation nearly all subscribers have the same and share it.
"""

_OFFERED: Final = 1 << 48
"""Added to the key of a message until its object is reported open: what ends until then is an earlier one with the same id."""

_NOTHING: Final[_Begun] = {}
"""The table of all subscribers for which no message has begun; never modified."""


def _key(publisher: int, object_id: int) -> int:
    return publisher << 16 | object_id


@lru_cache(maxsize=64)
def _only(key: int, message: KnownMessage) -> _Begun:
    """Return the table of all subscribers for which only this message has begun; never modified."""
    return {key: message}


def _with(begun: _Begun, key: int, sink: MessageSink) -> _Begun:
    """Return a table with one message more; of several, the table itself is changed."""
    if len(begun) > 1:
        begun[key] = sink
        return begun
    if begun:
        return {**begun, key: sink}
    return _only(key, sink) if isinstance(sink, KnownMessage) else {key: sink}


def _without(begun: _Begun, key: int) -> _Begun:
    """Return a table with one message less; of several, the table itself is changed."""
    if len(begun) == 1:
        return _NOTHING
    del begun[key]
    return begun


class Fjm2Subscriber(EventLayer, Subscriber):
    """Delivers the messages of the topics it subscribes to, as they become complete or in the order of publishing."""

    __slots__ = ("_early", "_filtered", "_incoming", "_pool", "_received", "subscriptions")

    def __init__(self, make_receiver: MakeReceiver, ports: Ports, context: RoleContext) -> None:
        config: Fjm2Config = context.config
        super().__init__(ports, make_receiver(ports, config, context.node, context.group))
        self.subscriptions = shared_table(JmsSubscriptions)
        self._pool: Pool[MessageSink] = containers(config, MessageSink)
        self._incoming = _NOTHING
        # Complete messages before which others are incomplete.
        self._early = EarlyMessages(config.window, config.pool) if config.order == "fifo" else None
        # Other counters, which few subscribers need, are among those of the receiver.
        self._received = self._filtered = 0

    @property
    def _receiver(self) -> NormReceiver:
        return cast(NormReceiver, self.inner)

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Deliver what matches from now on. UsageError for a destination that is no topic, and for a bad selector."""
        self.subscriptions = self.subscriptions.added(subscription)
        self.ports.notify(Subscribed(subscription.number))

    def unsubscribe(self, number: int, now: float) -> None:
        """End a subscription."""
        self.subscriptions = self.subscriptions.removed(number)

    def offered(self, offer: Offer) -> Sink | None:
        """Take every object that is no file, while there is a subscription; (3) and (4) of the thesis."""
        if offer.is_file or not len(self.subscriptions):
            return None
        if not self._pool.fits(offer.size):
            self._receiver.count("messages_refused")
            self._trace("message_refused", offer.sender, offer.object_id)
            return None
        sink = self._pool.take(offer.size, offer.carried if isinstance(offer.carried, KnownMessage) else None)
        if sink is None:
            # The pool counts it.
            self._trace("pool_exhausted", offer.sender, offer.object_id)
            return LATER
        self._trace("container_taken", offer.sender, offer.object_id)
        self._trace("message_cached", offer.sender, offer.object_id)
        sink.begin(offer.sender, self._receiver.origin_of)
        self._incoming = _with(self._incoming, _key(offer.sender, offer.object_id) | _OFFERED, sink)
        return sink

    def _on_opened(self, key: int) -> None:
        """Note that a message has begun, if a container was taken for it."""
        sink = self._taken(key | _OFFERED)
        if sink is not None:
            self._incoming = _with(self._incoming, key, sink)

    def heard(self, event: Event, now: float) -> Iterable[Event]:
        """Turn the end of an object into messages; (7) to (9) of the thesis."""
        if isinstance(event, ObjectOpened):
            self._on_opened(_key(event.sender, event.object_id))
            return ()
        if isinstance(event, ObjectReceived):
            return self._on_received(event, now)
        if isinstance(event, ObjectAborted):
            return self._on_aborted(event, now)
        if isinstance(event, ObjectsAborted):
            return self._on_range_lost(event, now)
        if isinstance(event, SenderReset):
            return self._on_reset(event.sender, now)
        return (event,) if isinstance(event, (Subscribed, MessagesLost)) else ()

    def _on_received(self, event: ObjectReceived, now: float) -> Iterable[Event]:
        sink = self._taken(_key(event.sender, event.object_id))
        if sink is None:
            return ()
        message, told = sink.message, list[Event]()
        if message is not None:
            self._trace("message_completed", event.sender, event.object_id)
            if self._early is None:
                told = self._delivered(event.sender, event.object_id, message, now)
        self._give_back(sink, event.sender, event.object_id)
        if self._early is None:
            return told
        if not self._early.end(event.sender, event.object_id) and message is not None:
            self._early.add(event.sender, event.object_id, message, sink.octets)
        return self._in_order(event.sender, now)

    def _on_aborted(self, event: ObjectAborted, now: float) -> Iterator[Event]:
        sink = self._taken(_key(event.sender, event.object_id))
        if sink is not None:
            self._give_back(sink, event.sender, event.object_id)
        count = self._unreported(event.sender, (event.object_id,))
        if sink is not None and event.reason.startswith("sink: no message"):
            self._receiver.count("messages_malformed")
            count = 0
        yield from self._on_lost(event.sender, count, now)

    def _on_range_lost(self, event: ObjectsAborted, now: float) -> Iterator[Event]:
        ids = [(event.first + step) & 0xFFFF for step in range(event.count)]
        yield from self._on_lost(event.sender, self._unreported(event.sender, ids), now)

    def _unreported(self, publisher: int, object_ids: Collection[int]) -> int:
        """Return how many of the messages that have ended were not reported as lost before."""
        early = self._early
        return len(object_ids) - (0 if early is None else sum([early.end(publisher, key) for key in object_ids]))

    def _on_lost(self, publisher: int, count: int, now: float) -> Iterator[Event]:
        if count:
            self._receiver.count("messages_lost", count)
            yield MessagesLost(publisher, count)
        if self._early is not None:
            yield from self._in_order(publisher, now)

    def _on_reset(self, publisher: int, now: float) -> Iterator[Event]:
        """Deliver what waits of a publisher that restarted; what was incomplete is lost."""
        early = self._early
        if early is None:
            return
        while (found := early.first(publisher)) is not None:
            early.remove_first(publisher)
            yield from self._delivered(publisher, *found, now)

    def _taken(self, key: int) -> MessageSink | None:
        """Remove and return the sink of a message; None for an object that is no message."""
        sink = self._incoming.get(key)
        if sink is not None:
            self._incoming = _without(self._incoming, key)
        return sink

    def _give_back(self, sink: MessageSink, publisher: int, object_id: int) -> None:
        """Give the container of an object back."""
        sink.end()
        self._pool.give_back(sink)
        self._trace("container_returned", publisher, object_id)

    def _in_order(self, publisher: int, now: float) -> Iterator[Event]:
        """Deliver the complete messages of a publisher before which none is incomplete, and make room for the others."""
        early = self._early
        if early is None:
            return
        yield from self._unblocked(early, publisher, now)
        while early.is_over():
            largest = early.largest()
            found = early.first(largest)
            assert found is not None
            gone = list(self._waited_for(early, largest, found[0]))
            early.give_up(largest, gone)
            if gone:
                self._receiver.count("messages_lost", len(gone))
                self._receiver.count("messages_skipped", len(gone))
                yield MessagesLost(largest, len(gone))
            yield from self._unblocked(early, largest, now)

    def _unblocked(self, early: EarlyMessages, publisher: int, now: float) -> Iterator[Event]:
        """Deliver the complete messages of a publisher before which none is incomplete, but for those given up."""
        while (found := early.first(publisher)) is not None:
            if next(self._waited_for(early, publisher, found[0]), None) is not None:
                return
            early.remove_first(publisher)
            yield from self._delivered(publisher, *found, now)

    def _waited_for(self, early: EarlyMessages, publisher: int, object_id: int) -> Iterator[int]:
        """Return the ids of the incomplete messages before this one, but for those given up."""
        incomplete = self._receiver.incomplete_before(publisher, object_id)
        return (key for key in incomplete if not early.is_given_up(publisher, key))

    def _delivered(self, publisher: int, object_id: int, message: JmsMessage, now: float) -> list[Event]:
        self._trace("message_delivered", publisher, object_id)
        events = self.subscriptions.delivery(message, self.ports.epoch + now)
        received = sum([isinstance(event, MessageReceived) for event in events])
        self._received += received
        if received or not events:
            # Else it has expired.
            self._filtered += len(self.subscriptions.numbers_of(message.destination)) - received
        return events

    def deliver_own(self, object_id: int, message: JmsMessage, now: float) -> Iterator[Event]:
        """Deliver what the publisher at the same node has sent; what has expired meanwhile is not."""
        delivered = self._delivered(message.publisher, object_id, message, now)
        return (event for event in delivered if isinstance(event, MessageReceived))

    def _trace(self, name: str, publisher: int, object_id: int) -> None:
        if self.ports.trace is not None:
            self.ports.trace(name, {"publisher": publisher, "object": object_id})

    def counts(self) -> dict[str, int]:
        """Return the counters of the receiver, of messages and of the pool."""
        counted = self._receiver.counted
        own = {
            "messages_received": self._received,
            "messages_filtered": self._filtered,
            "messages_lost": counted("messages_lost"),
            "messages_refused": counted("messages_refused"),
            "messages_malformed": counted("messages_malformed"),
        }
        skipped = {} if self._early is None else {"messages_skipped": counted("messages_skipped")}
        return {**self.inner.counts(), **own, **skipped, **self._pool.counts()}

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the receiver, with the pool and the subscriptions."""
        told = super().snapshot(now)
        values = {**told.values, "subscriptions": len(self.subscriptions)}
        return replace(told, values=values, states={**told.states, "role": "subscriber"})

    def held(self) -> dict[str, tuple[int, int]]:
        """Return what the receiver keeps, the bytes of containers in use, and what waits for earlier messages."""
        early = self._early
        waiting = {}
        if early is not None:
            waiting = {
                "messages that wait for earlier ones": (early.count, early.most),
                "bytes of messages that wait for earlier ones": (early.octets, early.limit),
            }
        return {**self.inner.held(), "bytes of containers": (self._pool.held, self._pool.limit), **waiting}
