"""The publisher (thesis, 3.3): a container for each message, a queue for each priority, and NORM, which sends and repairs.

NORM gets a message only when it has nothing else to send, so that a message of a high priority overtakes all that wait. A
message keeps its container until it has left the cache of NORM.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from protocols.errors import UsageError
from protocols.event_layer import EventLayer
from protocols.events import Event, FlushCompleted, ObjectAborted, ObjectSent
from protocols.fjm2.allocation import containers
from protocols.fjm2.braking import Braking
from protocols.fjm2.coder import encoding_time
from protocols.fjm2.config import Fjm2Config
from protocols.fjm2.content import KnownMessage, MessageSource
from protocols.fjm2.limits import check_size
from protocols.fjm2.pool import Container, Pool
from protocols.fjm2.queues import PriorityQueues
from protocols.fjm2.service_class import classed_ports
from protocols.jms import JmsMessage, message_of, write_head
from protocols.machine import Content, Message, Ports
from protocols.messaging import (
    MessageAccepted,
    MessageDropped,
    MessageExpired,
    Publication,
    Publisher,
    PublisherIdle,
    PublisherUnblocked,
)
from protocols.norm.sender import NormSender
from protocols.roles import RoleContext
from protocols.snapshot import Snapshot
from protocols.spec import MakeSender
from protocols.tunnel.messages import Brake

__all__ = ["Fjm2Publisher"]


@dataclass(slots=True)
class _Entry:
    """A message that waits; `container` None: for a container, too."""

    message: JmsMessage
    head: bytes
    size: int
    """Bytes of head and body."""
    container: Container | None = None


class Fjm2Publisher(EventLayer, Publisher):
    """Publishes each message as an object; blocked while a message waits for a container or for room in its queue."""

    __slots__ = (
        "_braking",
        "_config",
        "_expired",
        "_instance",
        "_is_flushed",
        "_kept",
        "_pool",
        "_published",
        "_queues",
        "_unsent",
        "_waiting",
    )

    def __init__(self, make_sender: MakeSender, ports: Ports, context: RoleContext) -> None:
        config: Fjm2Config = context.config
        out = classed_ports(ports, self.priority_of) if config.tos else ports
        inner = cast(NormSender, make_sender(out, config, context.node, context.group, context.instance))
        super().__init__(ports, inner)
        self._config = config
        self._instance = context.instance
        self._braking = Braking(config.rate) if config.braking and config.congestion == "none" else None
        self._pool: Pool[Container] = containers(config, Container, ports.work)
        self._queues: PriorityQueues[_Entry] = PriorityQueues(config.queue, config.scheduling == "strict")
        # What has no container or no room in its queue yet: one message, unless the application does not stop when blocked.
        self._waiting: deque[_Entry] = deque()
        # By object id: what NORM has not sent once; and container and priority of what it keeps for repairs.
        self._unsent: dict[int, _Entry] = {}
        self._kept: dict[int, tuple[Container, int]] = {}
        self._published = self._expired = 0
        # Whether NORM has ended what it was given, after which it tells of no further end.
        self._is_flushed = False
        inner.supply = self

    @property
    def is_blocked(self) -> bool:
        """Whether the application is to wait for `PublisherUnblocked`."""
        return bool(self._waiting)

    @property
    def is_short(self) -> bool:
        """Whether a message waits for a container: see `protocols.norm.supply.Supply`."""
        return bool(self._waiting) and self._waiting[0].container is None

    @property
    def limit(self) -> str:
        """The limit for which a blocked publisher waits, in words."""
        if not self._waiting:
            return ""
        if self._waiting[0].container is None:
            return f"pool: all {self._config.pool} bytes of containers are in use"
        return f"queue: {self._config.queue} messages of priority {self._waiting[0].message.priority} wait to be sent"

    def publish(self, message: Publication, now: float) -> bool:
        """Publish a message; see `Publisher.publish`. UsageError for one that can't be sent."""
        entry = self._entry(message)
        self._published += 1
        if self._is_expired(entry, now):
            self._drop_expired(entry)
            if self._is_idle:
                self.ports.notify(PublisherIdle())
            return self.is_blocked
        if not self._place(entry):
            self._waiting.append(entry)
        if not self._unsent:
            self.next(now)
        if self.is_short:
            self._sender.make_room(now)
        return self.is_blocked

    @property
    def _sender(self) -> NormSender:
        return cast(NormSender, self.inner)

    def _entry(self, message: Publication) -> _Entry:
        """Return a message with its head. UsageError for one that is not allowed, or larger than what carries it."""
        jms = message_of(message, self._instance)
        if jms.is_persistent:
            raise UsageError("delivery_mode: PERSISTENT is not allowed; messages are NON_PERSISTENT, nobody stores them")
        head = write_head(jms)
        size = len(head) + jms.size
        if size > self._config.segment or not self._pool.fits(size):
            check_size(size, self._config)
        return _Entry(jms, head, size)

    def _is_expired(self, entry: _Entry, now: float) -> bool:
        return entry.message.expires_at <= self.ports.epoch + now

    def _drop_expired(self, entry: _Entry) -> None:
        self._expired += 1
        if entry.container is not None:
            self._pool.give_back(entry.container)
        self.ports.notify(MessageExpired(entry.message.publisher, entry.message.number))

    def _place(self, entry: _Entry) -> bool:
        """Give a message a container and a place in its queue; return whether it has both."""
        if entry.container is None:
            entry.container = self._pool.take(entry.size)
        if entry.container is None or self._queues.is_full(entry.message.priority):
            return False
        self._queues.push(entry.message.priority, entry.size, entry)
        return True

    def _place_waiting(self) -> None:
        """Place the messages that wait, as far as there is room; notify the application when none is left."""
        was_blocked = bool(self._waiting)
        while self._waiting and self._place(self._waiting[0]):
            self._waiting.popleft()
        if was_blocked and not self._waiting:
            self.ports.notify(PublisherUnblocked())

    def next(self, now: float) -> None:
        """Give NORM the next message, if there is one."""
        if self._braking is not None and self._braking.is_over(now):
            self.retune(self._braking.rate, now)
        while (entry := self._queues.pop()) is not None:
            self._place_waiting()
            if self._is_expired(entry, now):
                self._drop_expired(entry)
                # Its container may be what another one waits for.
                self._place_waiting()
                if self._is_flushed and self._is_idle:
                    self.ports.notify(PublisherIdle())
                continue
            assert entry.container is not None
            source = MessageSource(entry.message, entry.head, entry.container)
            known = None if source.has_bytes else KnownMessage(entry.message, entry.container)
            content = Content(source, is_file=False, carried=known)
            self._is_flushed = False
            object_id = self._sender.submit(content, now)
            self._unsent[object_id] = entry
            self._kept[object_id] = entry.container, entry.message.priority
            if (seconds := encoding_time(entry.size, self._config)) > 0:
                self.ports.work(seconds)
            return

    def retune(self, rate: float, now: float) -> None:
        """Send at another rate from now on, bytes per second. UsageError if congestion control sets the rate."""
        self._sender.adjust({"rate": rate}, now)

    def told(self, message: Message, now: float) -> None:
        """Follow the brakes of a tunnel; see `protocols.norm.supply.Supply`."""
        if self._braking is not None and isinstance(message, Brake):
            self._braking.hear(message, bool(self._unsent), self._sender.grtt, now)
            self.retune(self._braking.rate, now)

    def heard(self, event: Event, now: float) -> Iterable[Event]:
        """Turn events of objects into those of messages."""
        if isinstance(event, ObjectSent) and event.object_id in self._unsent:
            return (MessageAccepted(self._unsent.pop(event.object_id).message.number),)
        if isinstance(event, ObjectAborted) and event.object_id in self._unsent:
            number = self._unsent.pop(event.object_id).message.number
            self._release(event.object_id)
            return (MessageDropped(number, event.reason),)
        if isinstance(event, FlushCompleted):
            self._is_flushed = True
            return (PublisherIdle(),) if self._is_idle else ()
        return (event,) if isinstance(event, (MessageExpired, PublisherIdle, PublisherUnblocked)) else ()

    def priority_of(self, object_id: int) -> int | None:
        """Return the priority of the message that an object is; None for another object."""
        kept = self._kept.get(object_id)
        return None if kept is None else kept[1]

    def unsent(self, object_id: int) -> JmsMessage | None:
        """Return the message of an object that NORM has not sent once; None for another one."""
        entry = self._unsent.get(object_id)
        return None if entry is None else entry.message

    def purged(self, object_id: int, now: float) -> None:
        """Take the container of an object back; see `protocols.norm.supply.Supply`."""
        self._release(object_id)
        if not self._unsent:
            self.next(now)

    def _release(self, object_id: int) -> None:
        """Give the container of an object back, which may be what others wait for."""
        self._pool.give_back(self._kept.pop(object_id)[0])
        self._place_waiting()

    @property
    def _is_idle(self) -> bool:
        return not (self._unsent or self._waiting or self._queues.waiting)

    def counts(self) -> dict[str, int]:
        """Return the counters of the sender, of messages and of the pool."""
        own = {"messages_published": self._published, "messages_expired": self._expired}
        return {**self.inner.counts(), **own, **self._pool.counts()}

    def longest_queues(self) -> list[int]:
        """See `Publisher.longest_queues`."""
        return self._queues.longest

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the sender, with the pool and the queues."""
        told = super().snapshot(now)
        return replace(told, states={**told.states, "role": "publisher"}, parts=(*told.parts, *self.queues()))

    def queues(self) -> list[Snapshot]:
        """Return the statistics of each queue that was used."""
        used = [each for each in enumerate(self._queues.depths()) if self._queues.longest[each[0]]]
        return [
            Snapshot("queue", f"priority {priority}", {"held": depth, "limit": self._config.queue}) for priority, depth in used
        ]

    def held(self) -> dict[str, tuple[int, int]]:
        """Return what the sender keeps, the bytes of containers in use and the longest queue."""
        own = {"bytes of containers": (self._pool.held, self._pool.limit)}
        return {**self.inner.held(), **own, "messages in a queue": (max(self._queues.depths()), self._config.queue)}
