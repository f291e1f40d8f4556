"""Messages of JMS on a real network by FJM2: one multicast group, as an asynchronous context manager.

A publisher and a subscriber are hosts of their own, opened when they are needed; they hear each other as those of other
programs do.
"""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from math import inf
from types import TracebackType
from typing import Any, TypeVar, cast

from emu.host import UdpHost
from experiments.running.authentication import node_codec
from experiments.session.guarded_loop import GuardedLoop
from experiments.session.membership import Membership
from experiments.session.message_stream import MessageStream
from experiments.session.waiting import Changes
from protocols.errors import TransferError, UsageError
from protocols.events import Event
from protocols.fjm2.publisher import Fjm2Publisher
from protocols.fjm2.subscriber import Fjm2Subscriber
from protocols.jms import TOPIC, JmsMessage, Scalar, Typed, jms_message
from protocols.jms.subscriptions import selector_of
from protocols.machine import Group, Machine
from protocols.messaging import (
    USUAL_PRIORITY,
    MessageAccepted,
    MessageReceived,
    PublisherIdle,
    PublisherUnblocked,
    Subscribed,
    Subscription,
)
from protocols.rng import Rng
from protocols.roles import RoleContext
from protocols.snapshot import Snapshot

__all__ = ["MOST_WAITING", "MessageBus"]

M = TypeVar("M", bound=Machine)
MOST_WAITING = 10_000
"""Messages that wait for a program in one subscription, unless the program says otherwise."""
MOST_EVENTS = 10_000
"""Events that wait for a program; the oldest are dropped."""


class MessageBus:
    """Publish and subscribe in one multicast group, from `async with` on; made by `mcastlab.messaging.connect`.

    Leaving the block waits until what was published is sent and its end announced; an exception in the block closes at once.
    """

    def __init__(self, place: Membership, most: int = MOST_WAITING) -> None:
        self._place = place
        self._most = most
        self._publisher: Fjm2Publisher | None = None
        self._subscriber: Fjm2Subscriber | None = None
        self._hosts: dict[str, UdpHost] = {}
        self._subscriptions: dict[int, MessageStream] = {}
        self._numbers = self._published = self._node = 0
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._changes, self._heard = Changes(), Changes()
        self._is_idle = True
        self._failure: Exception | None = None
        self._loop: GuardedLoop
        self.events_dropped = 0
        """Events that the program did not take in time."""
        self.is_closed = False

    # Life

    async def __aenter__(self) -> "MessageBus":
        """Begin; sockets are opened with the first message and the first subscription."""
        self._loop = GuardedLoop(asyncio.get_running_loop(), self._fail)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until everything is sent if the block ended normally, then close."""
        try:
            if kind is None and not self.is_closed:
                await self.flush()
        finally:
            self._close()
        if kind is None and self._failure is not None:
            raise self._ended() from self._failure

    def _open(self, role: str, kind: type[M]) -> M:
        """Open the sockets of a role and run its machine. UsageError for an interface or a port that can't be used."""
        place, codec = self._place, node_codec(self._place.protocol, self._place.config)()
        where = place.place(receives=True)
        rng = Rng(secrets.randbits(64))
        host = UdpHost(self._loop, codec, interface=where.address, port=where.port, options=where.options, rng=rng)
        try:
            node = place.node_on(host.address)
            context = RoleContext(place.config_at(where), node, Group(place.group), place.instance())
            machine = place.protocol.roles[role].make(host, context)
            assert isinstance(machine, kind)
            host.run(machine, self._on_event)
        except BaseException:
            host.close()
            raise
        self._hosts[role] = host
        if role == "publisher":
            self._node = node
        return machine

    # Publishing

    async def announce(self) -> None:
        """Open the publisher before its first message: subscribers then know it, and miss nothing from the first message on."""
        self._check()
        if self._publisher is None:
            self._publisher = self._open("publisher", Fjm2Publisher)

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
        await self.announce()
        publisher, host, now = cast(Fjm2Publisher, self._publisher), self._hosts["publisher"], time.time()
        message = jms_message(
            self._node,
            self._published,
            topic if topic.startswith((TOPIC, "queue:")) else TOPIC + topic,
            content,
            priority=priority,
            sent_at=now,
            expires_at=inf if ttl is None else now + ttl,
            properties=properties or {},
            body_type=body_type,
            **head,
        )
        await self._room()
        self._check()
        was_idle, self._is_idle = self._is_idle, False
        try:
            host.call(publisher.publish, message)
        except UsageError:
            self._is_idle = was_idle
            raise
        self._published += 1
        return message

    async def _room(self) -> None:
        """Wait until the publisher takes messages. TransferError when that takes longer than `max_wait`."""
        publisher, longest = cast(Fjm2Publisher, self._publisher), self._place.config.max_wait
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
        await self._changes.until(lambda: self._is_idle)

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
        selector_of(selector)
        destination = topic if topic.startswith((TOPIC, "queue:")) else TOPIC + topic
        if self._subscriber is None:
            self._subscriber = self._open("subscriber", Fjm2Subscriber)
        number = self._numbers
        limit = self._most if most is None else most
        stream = MessageStream(number, topic, callback, limit, self._tell, self._unsubscribe)
        self._subscriptions[number] = stream
        try:
            self._hosts["subscriber"].call(self._subscriber.subscribe, Subscription(number, destination, selector))
        except UsageError:
            del self._subscriptions[number]
            raise
        self._numbers += 1
        return stream

    def _unsubscribe(self, stream: MessageStream) -> None:
        self._check()
        assert self._subscriber is not None
        self._hosts["subscriber"].call(self._subscriber.unsubscribe, stream.number)
        del self._subscriptions[stream.number]
        stream.finish()

    # Events

    def __aiter__(self) -> "MessageBus":
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event: what is lost, expired or dropped, and callbacks that failed. It ends with the bus."""
        try:
            await self._heard.until(lambda: self._events)
        except TransferError:
            if self._failure is None:
                raise StopAsyncIteration from None
            raise
        return self._events.popleft()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, MessageReceived):
            stream = self._subscriptions.get(event.subscription)
            if stream is not None:
                stream.deliver(cast(JmsMessage, event.message), self._hosts["subscriber"].now)
        elif isinstance(event, (PublisherUnblocked, PublisherIdle)):
            self._is_idle = self._is_idle or isinstance(event, PublisherIdle)
            self._changes.changed()
        elif not isinstance(event, (Subscribed, MessageAccepted)):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self.events_dropped += len(self._events) == MOST_EVENTS
        self._events.append(event)
        self._heard.changed()

    def statistics(self) -> dict[str, int]:
        """Return the counters of the machines and hosts, and messages that the program was too slow for."""
        found: dict[str, int] = {}
        machines = [machine for machine in (self._publisher, self._subscriber) if machine is not None]
        for counts in (*[machine.counts() for machine in machines], *[host.faults for host in self._hosts.values()]):
            for name, count in counts.items():
                found[name] = found.get(name, 0) + count
        dropped = sum(stream.dropped for stream in self._subscriptions.values())
        return {**found, "messages_dropped": dropped, "events_dropped": self.events_dropped}

    def snapshots(self) -> list[Snapshot]:
        """Return the statistics of the publisher and of the subscriber, as far as they are open."""
        return [host.snapshot() for host in self._hosts.values()]

    @property
    def hosts(self) -> Mapping[str, UdpHost]:
        """The hosts by role, as far as they are open."""
        return self._hosts

    # Within

    def _check(self) -> None:
        if self.is_closed:
            raise self._ended()

    def _fail(self, error: Exception) -> None:
        """End the bus after an exception in a callback of the event loop."""
        self._failure = error
        self._close()

    def _ended(self) -> TransferError:
        if self._failure is None:
            return TransferError("the bus is closed")
        return TransferError(f"the bus failed: {self._failure!r}")

    def _close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        error = self._ended()
        error.__cause__ = self._failure
        for stream in self._subscriptions.values():
            if self._failure is None:
                stream.finish()
            else:
                stream.fail(error)
        self._changes.fail(error)
        self._heard.fail(error)
        self._loop.close()
        for host in self._hosts.values():
            with suppress(Exception) if self._failure is not None else nullcontext():
                host.stop()
            host.close()
