"""A connection of the Distributor on a real network: one multicast group, as an asynchronous context manager."""

import asyncio
import os
import secrets
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from ipaddress import IPv4Address
from types import TracebackType
from typing import Any, cast

from emu.addresses import ip_of, is_multicast, socket_address_of
from emu.host import UdpHost
from experiments.session.deliveries import Update, UpdateStream
from experiments.session.guarded_loop import GuardedLoop
from experiments.session.managed_process import ManagedProcess, managed_process
from experiments.session.membership import Membership
from experiments.session.waiting import Changes
from protocols.distributor.events import UpdatesReceived, UpdatesSent
from protocols.distributor.identity import Identity
from protocols.distributor.management import GROUP as MANAGEMENT
from protocols.distributor.management.messages import Announcement
from protocols.distributor.node import DistributorNode
from protocols.distributor.serial import on_wire
from protocols.errors import TransferError, UsageError
from protocols.events import Event
from protocols.machine import Group
from protocols.messaging import PublisherIdle, PublisherUnblocked, Subscribed, Subscription
from protocols.rng import Rng

__all__ = ["MOST_WAITING", "DistributorConnection"]

MOST_WAITING = 100_000
"""Updates that wait for a program in one subscription, unless the program says otherwise."""
MOST_EVENTS = 10_000
"""Events that wait for a program; the oldest are dropped."""
FIRST_ID, LAST_ID = 61234, 65535
"""TCP ports whose numbers are sender ids. Who has an id keeps its port, as the Java program does."""
AT_ONCE = 4096
"""Updates that are published before the event loop has its turn."""


def _take_id(address: str) -> socket.socket:
    """Return a socket that holds the port of the first free sender id of this host. UsageError if there is none."""
    for port in range(FIRST_ID, LAST_ID + 1):
        lock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            lock.bind(("0.0.0.0", port))
            lock.listen(1)
        except OSError:
            lock.close()
            continue
        return lock
    raise UsageError(f"all sender ids of {address}, the TCP ports {FIRST_ID} to {LAST_ID}, are in use")


def _check_group(key: str, group: str) -> None:
    """Raise UsageError for what is no IPv4 multicast group: the datagrams of a Distributor hold IPv4 addresses."""
    address = socket_address_of(group)[0]
    if ip_of(address).version != 4 or not is_multicast(address):
        allowed = "a multicast address (224.0.0.0 to 239.255.255.255) and a port"
        raise UsageError(f"{key}: value {group!r} is not allowed; {allowed}")


class DistributorConnection:
    """Publish and subscribe in one multicast group, from `async with` on; made by `mcastlab.distributor`.

    All publishers of a program share the connection's sequence numbers and retransmission cache; its own updates reach its own
    subscriptions, too. Leaving the block waits until what was published is sent; an exception in the block closes at once.
    """

    def __init__(
        self, place: Membership, application: str, most: int = MOST_WAITING, management: str | None = MANAGEMENT
    ) -> None:
        _check_group("group", place.group)
        if management is not None:
            _check_group("management", management)
        self._place = place
        self._management = management
        self._managed: ManagedProcess | None = None
        self._application = application
        self._most = most
        self._subscriptions: dict[int, UpdateStream] = {}
        self._numbers = 0
        self._events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._changes = Changes()
        self._heard = Changes()
        self._is_blocked = False
        self._is_idle = True
        self._failure: Exception | None = None
        self._lock: socket.socket
        self.events_dropped = 0
        """Events that the program did not take in time."""
        self.is_closed = False
        self.host: UdpHost
        """The host, from the beginning of the block on; its counters can be read after the end."""
        self.node: DistributorNode

    # Life

    async def __aenter__(self) -> "DistributorConnection":
        """Open the sockets. UsageError for an interface or a port that can't be used."""
        place = self._place
        self._loop = GuardedLoop(asyncio.get_running_loop(), self._fail)
        rng = Rng(secrets.randbits(64))
        codec = place.protocol.codec()
        where = place.place(receives=True)
        self.host = UdpHost(self._loop, codec, interface=where.address, port=where.port, options=where.options, rng=rng)
        try:
            self._lock = _take_id(self.host.address)
        except BaseException:
            self.host.close()
            raise
        self.node = DistributorNode(self.host, place.config, self._identity(), Group(place.group))
        self.host.run(self.node, self._on_event)
        if self._management is not None:
            try:
                self._managed = managed_process(place.iface, self._management, self._application)
            except BaseException:
                self._close()
                raise
            self._managed.add(self)
        return self

    def _identity(self) -> Identity:
        address = int(IPv4Address(self.host.address))
        number = on_wire((address & 0xFFFF) << 16 | os.getpid() & 0xFFFF)
        return Identity(address, self._lock.getsockname()[1], number, self._application, socket.gethostname())

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

    # Publishing

    async def announce(self) -> None:
        """Announce this node as a publisher, before its first update: who hears it then misses none."""
        self._check()
        self.host.call(self.node.announce)

    async def publish(self, subject: str, content: bytes) -> None:
        """Publish an update; wait while the rate or the network holds back others before it. UsageError for a bad subject."""
        if self._is_blocked:
            await self._room()
        self._check()
        self._publish(subject, (content,))

    async def publish_many(self, subject: str, contents: Sequence[bytes]) -> None:
        """Publish updates of one subject in their order, as fast as the rate and the network allow."""
        for start in range(0, len(contents), AT_ONCE):
            if start:
                # Requests of subscribers are answered meanwhile.
                await asyncio.sleep(0)
            if self._is_blocked:
                await self._room()
            self._check()
            self._publish(subject, contents if len(contents) <= AT_ONCE else contents[start : start + AT_ONCE])

    def _publish(self, subject: str, contents: Sequence[bytes]) -> None:
        was_idle, self._is_idle = self._is_idle, False
        self._is_blocked = False
        try:
            blocked = self.host.call(self.node.publish_many, subject, contents)
        except UsageError:
            self._is_idle = was_idle
            raise
        # The event that ends the blockade may have come before the result.
        publisher = self.node.publisher
        self._is_blocked = blocked and publisher is not None and publisher.is_blocked

    async def _room(self) -> None:
        await self._changes.until(lambda: not self._is_blocked)

    async def flush(self) -> None:
        """Send what waits for further updates, and wait until everything was sent once."""
        self._check()
        self.host.call(self.node.flush)
        await self._changes.until(lambda: self._is_idle)

    # Subscribing

    def subscribe(
        self, pattern: str, callback: Callable[[Update], object] | None = None, value: Any = None, most: int | None = None
    ) -> UpdateStream:
        """Subscribe to the subjects that match a pattern.

        The result is an asynchronous iterator of updates, or with a `callback` each update goes to it. `value` comes with every
        update; at most `most` updates wait for the iterator. UsageError for an impossible pattern.
        """
        self._check()
        number = self._numbers
        limit = self._most if most is None else most
        incoming = UpdateStream(number, pattern, value, callback, limit, self._tell, self._unsubscribe)
        self._subscriptions[number] = incoming
        try:
            self.host.call(self.node.subscribe, Subscription(number, pattern))
        except UsageError:
            del self._subscriptions[number]
            raise
        self._numbers += 1
        return incoming

    def _unsubscribe(self, incoming: UpdateStream) -> None:
        self._check()
        self.host.call(self.node.unsubscribe, incoming.number)
        del self._subscriptions[incoming.number]
        incoming.finish()

    # Events

    def __aiter__(self) -> "DistributorConnection":
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event: publishers that come and go, what is lost, what overflows. It ends with the connection."""
        try:
            await self._heard.until(lambda: self._events)
        except TransferError:
            if self._failure is None:
                raise StopAsyncIteration from None
            raise
        return self._events.popleft()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, UpdatesReceived):
            for number in event.subscriptions:
                incoming = self._subscriptions.get(number)
                if incoming is not None:
                    # Bytes are all that a host receives.
                    contents = cast("Sequence[bytes]", event.contents)
                    incoming.deliver(event.subject, event.source, contents, self.host.now)
        elif isinstance(event, PublisherUnblocked):
            self._is_blocked = False
            self._changes.changed()
        elif isinstance(event, PublisherIdle):
            self._is_idle = True
            self._changes.changed()
        elif not isinstance(event, (Subscribed, UpdatesSent)):
            self._tell(event)

    def _tell(self, event: Event) -> None:
        self.events_dropped += len(self._events) == MOST_EVENTS
        self._events.append(event)
        self._heard.changed()

    def statistics(self) -> dict[str, int]:
        """Return the counters of the machines and of the host, and updates that the program was too slow for."""
        dropped = sum(incoming.dropped for incoming in self._subscriptions.values())
        return {**self.node.counts(), **self.host.faults, "updates_dropped": dropped, "events_dropped": self.events_dropped}

    # What management tells (`experiments.session.managed_process`)

    @property
    def endpoint(self) -> tuple[str, int]:
        """Address and port of the group."""
        address, port = socket_address_of(self._place.group)[:2]
        return str(address), int(port)

    @property
    def patterns(self) -> list[str]:
        """The subscriptions."""
        return [incoming.pattern for incoming in self._subscriptions.values()]

    @property
    def waiting(self) -> int:
        """Updates that wait for the program."""
        return sum(incoming.waiting for incoming in self._subscriptions.values())

    @property
    def is_publishing(self) -> bool:
        """Whether it has announced itself as a publisher."""
        return self.node.publisher is not None

    @property
    def requested_by(self) -> list[str]:
        """The hosts that have requested retransmissions."""
        return [] if self.node.publisher is None else list(self.node.publisher.requestors)

    @property
    def requested_from(self) -> list[str]:
        """The addresses of publishers that were requested to retransmit."""
        return [str(IPv4Address(host)) for host in self.node.subscriber.asked]

    @property
    def process_id(self) -> int | None:
        """The id by which this program announces itself on the management group, None if it does not."""
        return None if self._managed is None else self._managed.process_id

    @property
    def processes(self) -> list[Announcement]:
        """The processes of the management group that announce themselves, but for this one."""
        return [] if self._managed is None else self._managed.processes()

    # Within

    def _check(self) -> None:
        if self.is_closed:
            raise self._ended()

    def _fail(self, error: Exception) -> None:
        """End the connection after an exception in a callback of the event loop."""
        self._failure = error
        self._close()

    def _ended(self) -> TransferError:
        if self._failure is None:
            return TransferError("the connection is closed")
        return TransferError(f"the connection failed: {self._failure!r}")

    def _close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        if self._managed is not None:
            self._managed.remove(self)
        error = self._ended()
        error.__cause__ = self._failure
        for incoming in self._subscriptions.values():
            if self._failure is None:
                incoming.finish()
            else:
                incoming.fail(error)
        self._changes.fail(error)
        self._heard.fail(error)
        self._loop.close()
        with suppress(Exception) if self._failure is not None else nullcontext():
            self.host.stop()
        self.host.close()
        self._lock.close()
