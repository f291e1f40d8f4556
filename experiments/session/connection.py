"""A connection of the Distributor on a real network: one multicast group, as an asynchronous context manager."""

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address
from typing import Any, cast

from emu.addresses import ip_of, is_multicast, socket_address_of
from emu.host import UdpHost
from experiments.session.arguments import as_bytes, as_text, check_callback, refused
from experiments.session.deliveries import Update, UpdateStream
from experiments.session.managed_process import ManagedProcess, managed_process
from experiments.session.membership import Membership
from experiments.session.messaging_session import MessagingSession
from protocols.distributor.config import DistributorConfig
from protocols.distributor.events import UpdatesReceived, UpdatesSent
from protocols.distributor.identity import Identity
from protocols.distributor.management import GROUP as MANAGEMENT
from protocols.distributor.management.messages import Announcement
from protocols.distributor.node import DistributorNode
from protocols.distributor.serial import on_wire
from protocols.distributor.subjects import has_encoding
from protocols.errors import TransferError, UsageError
from protocols.events import Event
from protocols.machine import Group
from protocols.rng import Rng

__all__ = ["MOST_WAITING", "DistributorConnection"]

MOST_WAITING = 100_000
"""Updates that wait for a program in one subscription, unless the program says otherwise."""
FIRST_ID, LAST_ID = 61234, 65535
"""TCP ports whose numbers are sender ids. Who has an id keeps its port, as the Java program does."""
LONGEST_NAME = 255
"""Bytes of the name of an application, which is in every request for retransmissions."""
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
    address = socket_address_of(group, key)[0]
    if ip_of(address).version != 4 or not is_multicast(address):
        allowed = "a multicast address (224.0.0.0 to 239.255.255.255) and a port"
        raise UsageError(f"{key}: value {group!r} is not allowed; {allowed}")


class DistributorConnection(MessagingSession[UpdateStream]):
    """Publish and subscribe in one multicast group, from `async with` on; made by `mcastlab.distributor`.

    All publishers of a program share the connection's sequence numbers and retransmission cache; its own updates reach its own
    subscriptions, too. Leaving the block waits until what was published is sent; an exception in the block closes at once.
    """

    _what = "connection"
    _untold = (UpdatesSent,)

    def __init__(
        self, place: Membership, application: str, most: int = MOST_WAITING, management: str | None = MANAGEMENT
    ) -> None:
        super().__init__(most)
        _check_group("group", place.group)
        if not has_encoding(application) or len(application.encode()) > LONGEST_NAME:
            raise refused("application", application, f"at most {LONGEST_NAME} bytes of UTF-8")
        if management is not None:
            _check_group("management", management)
        self._place = place
        self._management = management
        self._managed: ManagedProcess | None = None
        self._application = application
        self._lock: socket.socket
        self.host: UdpHost
        """The host, from the beginning of the block on; its counters can be read after the end."""
        self.node: DistributorNode

    # Life

    async def __aenter__(self) -> "DistributorConnection":
        """Open the sockets. UsageError for an interface or a port that can't be used."""
        place = self._place
        loop, rng = self._guard(), Rng(secrets.randbits(64))
        codec = place.protocol.codec()
        where = place.place(receives=True)
        self.host = UdpHost(loop, codec, interface=where.address, port=where.port, options=where.options, rng=rng)
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

    async def _finish(self) -> None:
        await self.flush()

    # Publishing

    async def announce(self) -> None:
        """Announce this node as a publisher before its first update: subscribers that hear it miss no update."""
        self._check()
        self.host.call(self.node.announce)

    async def publish(self, subject: str, content: bytes) -> None:
        """Publish an update; wait while the rate or the network holds back others before it.

        UsageError for a bad subject, and for what are no bytes.
        """
        update = as_text("subject", subject), (as_bytes("content", content),)
        await self._room()
        self._check()
        self._publishing(self.host, self.node.publish_many, *update)

    async def publish_many(self, subject: str, contents: Sequence[bytes]) -> None:
        """Publish updates of one subject in their order, as fast as the rate and the network allow.

        UsageError as of `publish`.
        """
        as_text("subject", subject)
        if isinstance(contents, (bytes, str)) or not isinstance(contents, Sequence):
            raise refused("contents", contents, "a list of bytes")
        contents = [as_bytes("contents", content) for content in contents]
        for start in range(0, len(contents), AT_ONCE):
            if start:
                # Requests of subscribers are answered meanwhile.
                await asyncio.sleep(0)
            await self._room()
            self._check()
            part = contents if len(contents) <= AT_ONCE else contents[start : start + AT_ONCE]
            self._publishing(self.host, self.node.publish_many, subject, part)

    async def _room(self) -> None:
        if self._is_blocked():
            await self._changes.until(lambda: not self._is_blocked())

    def _is_blocked(self) -> bool:
        return self.node.publisher is not None and self.node.publisher.is_blocked

    async def flush(self) -> None:
        """Send what waits for further updates, and wait until everything was sent once."""
        self._check()
        self.host.call(self.node.flush)
        await self._idle()

    # Subscribing

    def subscribe(
        self, pattern: str, callback: Callable[[Update], object] | None = None, value: Any = None, most: int | None = None
    ) -> UpdateStream:
        """Subscribe to the subjects that match a pattern.

        The result is an asynchronous iterator of updates, or with a `callback` each update goes to it. `value` comes with every
        update; at most `most` updates wait for the iterator. UsageError for an impossible pattern.
        """
        self._check()
        as_text("pattern", pattern)
        check_callback(callback)
        limit = self._limit(most)
        return self._enter(UpdateStream(self._numbers, pattern, value, callback, limit, self._tell, self._unsubscribe), pattern)

    def _subscriber(self) -> tuple[UdpHost, DistributorNode]:
        return self.host, self.node

    # Events

    def _on_event(self, event: Event) -> None:
        if isinstance(event, UpdatesReceived):
            for number in event.subscriptions:
                incoming = self._subscriptions.get(number)
                if incoming is not None:
                    # Bytes are all that a host receives.
                    contents = cast("Sequence[bytes]", event.contents)
                    incoming.deliver(event.subject, event.source, contents, self.host.now)
        else:
            super()._on_event(event)

    def statistics(self) -> dict[str, int]:
        """Return the counters of the machines and of the host, and updates that the program was too slow for."""
        dropped = {"updates_dropped": self._dropped, "events_dropped": self.events_dropped}
        return {**self.node.counts(), **self.host.faults, **dropped}

    @property
    def config(self) -> DistributorConfig:
        """The parameters of the protocol."""
        return cast(DistributorConfig, self._place.config)

    @property
    def requests_received(self) -> int:
        """Requests of subscribers for what this node has published."""
        return 0 if self.node.publisher is None else self.node.publisher.counts()["requests_received"]

    # What management reports (`experiments.session.managed_process`)

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

    def _own_hosts(self) -> Iterable[UdpHost]:
        return (self.host,)

    def _release(self, error: TransferError) -> None:
        if self._managed is not None:
            self._managed.remove(self)
        super()._release(error)
        self._lock.close()
