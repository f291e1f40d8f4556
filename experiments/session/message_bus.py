"""Messages of JMS on a real network by FJM2: one multicast group, as an asynchronous context manager."""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from math import inf
from numbers import Real
from typing import Any, cast

from emu.host import UdpHost
from experiments.running.authentication import node_codec
from experiments.session.arguments import as_text, check_callback, refused
from experiments.session.membership import Membership
from experiments.session.message_stream import MessageStream
from experiments.session.messaging_session import MessagingSession
from protocols.errors import TransferError, UsageError
from protocols.events import Event
from protocols.jms import TOPIC, JmsMessage, Scalar, Typed, jms_message
from protocols.jms.bodies import body_type_of, write_body
from protocols.jms.subscriptions import selector_of
from protocols.machine import Group
from protocols.messaging import USUAL_PRIORITY, MessageAccepted, MessageReceived
from protocols.rng import Rng
from protocols.roles import BOTH, RoleContext
from protocols.snapshot import Snapshot

__all__ = ["MOST_WAITING", "MessageBus"]

MOST_WAITING = 10_000
"""Messages that wait for a program in one subscription, unless the program says otherwise."""


class MessageBus(MessagingSession[MessageStream]):
    """Publish and subscribe in one multicast group, from `async with` on; made by `mcastlab.messaging.connect`.

    Its machine takes a role of FJM2: `both`, or `publisher` or `subscriber` for a bus that does one of them only. Sockets are
    opened with the first message or subscription. Leaving the block waits until what was published is sent and its end
    announced; an exception in the block closes at once.
    """

    _what = "bus"
    _untold = (MessageAccepted,)

    def __init__(self, place: Membership, most: int = MOST_WAITING, role: str = BOTH) -> None:
        super().__init__(most)
        self._place = place
        self._role = role
        self._machine: Any = None
        self._host: UdpHost | None = None
        self._published = self._node = self._instance = 0

    # Life

    async def __aenter__(self) -> "MessageBus":
        """Begin; sockets are opened with the first message and the first subscription."""
        self._guard()
        return self

    async def _finish(self) -> None:
        await self.flush()

    def _open(self) -> UdpHost:
        """Open the sockets and run the machine, once. UsageError for an interface or a port that can't be used."""
        if self._host is not None:
            return self._host
        place, codec = self._place, node_codec(self._place.protocol, self._place.config)()
        where = place.place(receives=True)
        rng = Rng(secrets.randbits(64))
        host = UdpHost(self._loop, codec, interface=where.address, port=where.port, options=where.options, rng=rng)
        try:
            self._node, self._instance = place.node_on(host.address), place.instance()
            context = RoleContext(place.config_at(where), self._node, Group(place.group), self._instance)
            machine = place.protocol.roles[self._role].make(host, context)
            host.run(machine, self._on_event)
        except BaseException:
            host.close()
            raise
        self._host, self._machine = host, machine
        return host

    def _check_role(self, role: str, does: str) -> None:
        """Raise UsageError for what a bus in another role does."""
        if self._role not in (role, BOTH):
            raise UsageError(f"this bus is opened as a {self._role}, which does not {does}")

    # Publishing

    async def announce(self) -> None:
        """Open the bus before its first message, so that subscribers hear its announcements and miss no message."""
        self._check()
        self._check_role("publisher", "publish")
        self._open()

    async def publish(
        self,
        topic: str,
        content: Any,
        *,
        priority: int = USUAL_PRIORITY,
        ttl: float | None = None,
        properties: Mapping[str, Scalar | Typed] | None = None,
        body_type: str | None = None,
        **head: Any,
    ) -> JmsMessage:
        """Publish a message and return it; wait while a queue or the pool is full.

        `content` is bytes, a text, a mapping, or what JSON can hold; `body_type` says which where it does not follow. The
        message expires after `ttl` seconds. `head` are further fields: correlation_id, reply_to, type. UsageError for what JMS
        or the protocol does not allow; TransferError, naming the limit, after `max_wait` seconds.
        """
        if ttl is not None and not (isinstance(ttl, Real) and ttl > 0):
            raise UsageError(f"ttl: {ttl!r} is not allowed; seconds above 0, or None for a message that never expires")
        as_text("topic", topic)
        named: Any = {} if properties is None else properties
        if not isinstance(named, Mapping) or not all(isinstance(name, str) for name in named):
            raise refused("properties", properties, "a mapping of names to values")
        await self.announce()
        host, now, kind = self._open(), time.time(), body_type or body_type_of(content)
        message = jms_message(
            self._node,
            self._published,
            _destination(topic),
            body=write_body(kind, content),
            priority=priority,
            sent_at=now,
            expires_at=inf if ttl is None else now + ttl,
            properties=named,
            instance=self._instance,
            body_type=kind,
            **head,
        )
        await self._room()
        self._check()
        self._publishing(host, self._machine.publish, message)
        self._published += 1
        return message

    async def _room(self) -> None:
        """Wait until the publisher takes messages. TransferError when that takes longer than `max_wait`."""
        publisher, longest = self._machine, self._place.config.max_wait
        if not publisher.is_blocked:
            return
        try:
            async with asyncio.timeout(longest or None):
                await self._changes.until(lambda: not publisher.is_blocked)
        except TimeoutError:
            raise TransferError(f"no room for a message within {longest:g} s; {publisher.limit}") from None

    async def flush(self) -> None:
        """Wait until everything that was published is sent, and its end announced."""
        self._check()
        await self._idle()

    # Subscribing

    def subscribe(
        self,
        topic: str,
        callback: Callable[[JmsMessage], object] | None = None,
        *,
        selector: str = "",
        most: int | None = None,
    ) -> MessageStream:
        """Subscribe to a topic.

        The result is an asynchronous iterator of messages, or with a `callback` each message goes to it. At most `most`
        messages wait for the iterator. UsageError for what is no topic, SelectorError for a selector that does not parse.
        """
        self._check()
        self._check_role("subscriber", "subscribe")
        selector_of(as_text("selector", selector))
        as_text("topic", topic)
        check_callback(callback)
        stream = MessageStream(self._numbers, topic, callback, self._limit(most), self._tell, self._unsubscribe)
        return self._enter(stream, _destination(topic), selector)

    def _subscriber(self) -> tuple[UdpHost, Any]:
        return self._open(), self._machine

    # Events

    def _on_event(self, event: Event) -> None:
        if isinstance(event, MessageReceived):
            stream = self._subscriptions.get(event.subscription)
            if stream is not None:
                stream.deliver(cast(JmsMessage, event.message), self._open().now)
        else:
            super()._on_event(event)

    def statistics(self) -> dict[str, int]:
        """Return the counters of machine and host, and messages that the program was too slow for."""
        found = {} if self._machine is None else self._machine.counts()
        faults = {} if self._host is None else self._host.faults
        total = {name: found.get(name, 0) + faults.get(name, 0) for name in (*found, *faults)}
        return {**total, "messages_dropped": self._dropped, "events_dropped": self.events_dropped}

    def snapshots(self) -> list[Snapshot]:
        """Return the statistics of the host, if it is open."""
        return [host.snapshot() for host in self._own_hosts()]

    @property
    def host(self) -> UdpHost:
        """The host, which is opened by it."""
        return self._open()

    def _own_hosts(self) -> Iterable[UdpHost]:
        return () if self._host is None else (self._host,)


def _destination(topic: str) -> str:
    """Return the destination of a topic, which may be given with its prefix, or as a queue, which the protocol refuses."""
    return topic if topic.startswith((TOPIC, "queue:")) else TOPIC + topic
