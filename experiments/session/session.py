"""A node in a session on a real network, as an asynchronous context manager."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from emu.host import UdpHost
from experiments.running.authentication import node_codec
from experiments.running.content import InMemory
from experiments.running.files import FileSource
from experiments.running.folder import Folder
from experiments.running.open_files import OpenFiles
from experiments.session.arguments import as_bytes, as_path, as_request, as_text, as_whole
from experiments.session.boundaries import Boundary
from experiments.session.controls import SessionControls
from experiments.session.events import Delivery
from experiments.session.inbox import Inbox
from experiments.session.lifetime import Lifetime, SessionClosed
from experiments.session.membership import Membership
from experiments.session.outbox import Outbox
from experiments.session.outgoing_stream import OutgoingStream
from experiments.session.transmission import Transmission
from protocols.acknowledgement import AckRequest, AwaitedReceiver
from protocols.errors import TransferError, UsageError
from protocols.events import Event, ObjectAborted
from protocols.leaving import LeavingMachine
from protocols.machine import Content, Group, Machine, Ports, Sender
from protocols.node import NodeMachine
from protocols.rng import Rng
from protocols.snapshot import Measure, Snapshot
from protocols.stream import Flush, StreamReceiver, StreamSettings

__all__ = ["MEMORY", "Session"]

MEMORY = 64 << 20
"""Bytes of received objects in memory, unless the program says otherwise."""
_PERIOD = 0.2
"""Seconds between two checks for what receivers have given up."""


class Session(Lifetime, SessionControls):
    """One node that sends, receives or does both, from `async with` on; made by `mcastlab.session`.

    Leaving the block waits until what was submitted is sent, as `sent` does; an exception or a cancellation of the block closes
    the session at once. All calls are made from the event loop in which it was entered. If the session fails in the
    background, every call that waits raises TransferError, and so does the end of the block.
    """

    _what = "session"

    def __init__(
        self,
        membership: Membership,
        *,
        sends: bool = True,
        receives: bool = True,
        folder: Folder | None = None,
        files_only: bool = True,
        streams: bool = True,
        memory: int = MEMORY,
        boundary: Boundary = "message",
        told: Callable[[Event], None] | None = None,
    ) -> None:
        """`files_only`: the folder gets files, and memory other objects. Without `streams` those of others are ignored.

        `told` gets every event in place of `async for`.
        """
        super().__init__()
        self.membership = membership
        self._sends, self._receives, self._takes_streams = sends, receives, streams
        self._boundary: Boundary = boundary
        self._inbox = Inbox(folder, memory, boundary, told, files_only=files_only)
        self._outbox: Outbox | None = None
        self._opened = OpenFiles()
        self._machine: Machine | None = None
        self._receiver: Machine | None = None
        self._looking: asyncio.TimerHandle | None = None
        self.node = 0
        """The 32-bit node id."""

    # -- life ------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Session":
        """Open the sockets and join the group. UsageError for an interface or a port that can't be used."""
        place = self.membership
        loop = self._guard()
        codec = node_codec(place.protocol, place.config)()
        rng = Rng(secrets.randbits(64))
        where = place.place(receives=self._receives)
        self.host = UdpHost(loop, codec, interface=where.address, port=where.port, options=where.options, rng=rng)
        try:
            self._start(place.config_at(where))
        except BaseException:
            self._close()
            raise
        return self

    async def closed(self) -> None:
        """Wait until the session is closed. TransferError when it fails."""
        with suppress(SessionClosed):
            await self._inbox.changes.until(lambda: False)

    async def _finish(self) -> None:
        if self._outbox is not None:
            self._outbox.end_streams(graceful=True)
            await self._outbox.all_delivered()
        if isinstance(self._receiver, LeavingMachine):
            self.host.call(self._receiver.leave)

    def _start(self, config: Any) -> None:
        """Make the machines and run them."""
        place, host = self.membership, self.host
        self.node, group = place.node_on(host.address), Group(place.group)
        make_sender, make_receiver = place.protocol.makers()

        def sender(ports: Ports) -> Sender:
            return make_sender(ports, config, self.node, group, place.instance())

        def receiver(ports: Ports) -> Machine:
            return make_receiver(ports, config, self.node, group)

        machine: Machine
        if self._sends and self._receives:
            machine = both = NodeMachine(host, self.node, sender, receiver)
            self._prepare(both.sender, both.receiver)
        elif self._sends:
            machine = alone = sender(host)
            self._prepare(alone, None)
        else:
            machine = receiver(host)
            self._prepare(None, machine)
        self._machine = machine
        host.run(machine, self._on_event, self._inbox.accept)
        self._look()

    def _prepare(self, sender: Sender | None, receiver: Machine | None) -> None:
        self._receiver = receiver
        if sender is not None:
            self._outbox = Outbox(self.host, sender, self.node)
        if self._takes_streams and isinstance(receiver, StreamReceiver):
            receiver.accept_streams(self._inbox.accept_stream)
            self._inbox.resume = partial(self.host.call, receiver.resume_stream)
        abandon = getattr(receiver, "abandon", None)
        if abandon is not None:
            self._inbox.give_up = lambda offer, reason: self.host.call(abandon, offer.sender, offer.object_id, reason)

    # -- sending ---------------------------------------------------------------------------------------------------

    async def send_file(self, path: Path | str, name: str | None = None) -> Transmission:
        """Queue a file under a name (default: its own); wait while many objects wait to be sent. UsageError for no file.

        The file must not change until it is sent.
        """
        source = FileSource(Path(as_path("path", path)), self._opened)
        label = os.fspath(path) if name is None else as_text("name", name)
        info = os.fsencode(source.path.name if name is None else name)
        await self.room()
        return self.submit(Content(source, info), label, source.close)

    async def send_bytes(self, data: bytes, info: bytes = b"") -> Transmission:
        """Queue an object of bytes with its out-of-band information; wait while many objects wait to be sent.

        UsageError for what are no bytes.
        """
        content = Content(InMemory(as_bytes("data", data)), as_bytes("info", info), is_file=False)
        await self.room()
        return self.submit(content, f"object of {content.source.size} bytes")

    async def room(self) -> None:
        """Wait until few enough objects wait to be sent. TransferError when the session ends."""
        await self._sending().room()

    def submit(self, content: Content, name: str, release: Callable[[], None] | None = None) -> Transmission:
        """Queue an object at once, however many wait; `release()` is called when its source is not read any more.

        UsageError when the protocol can't carry it.
        """
        return self._sending().submit(content, name, release)

    async def sent(self, *what: Transmission | OutgoingStream, by: Iterable[int] | AckRequest | None = None) -> list[Delivery]:
        """Wait until nothing more is sent for these objects and closed streams (default: all): all requests are served.

        With `by`, node ids or an `AckRequest`, these objects and streams have to be confirmed by receivers; of an open stream,
        what was written so far. It returns when each has confirmed, or did not answer and is `missing` in its `Delivery`.

        TransferError when an object can't be sent (a file changed), or the session failed. UsageError with `by` if nothing is
        named, or the protocol has no acknowledgements.
        """
        outbox = self._sending()
        if by is None:
            return [await outbox.delivered(item) for item in what] if what else await outbox.all_delivered()
        if not what:
            raise UsageError("sent: what is to be confirmed has to be named")
        return await outbox.confirmed(what, as_request("by", by))

    async def open_stream(
        self, buffer: int = 1 << 20, *, info: bytes = b"", push: bool = False, flush: Flush = "passive"
    ) -> OutgoingStream:
        """Begin a stream; `buffer` is the bytes kept for repairs. With `push` the oldest are dropped instead of waiting.

        UsageError when the protocol can't carry it.
        """
        settings = StreamSettings(as_whole("buffer", buffer, 1), as_bytes("info", info), push)
        return self._sending().open_stream(self._boundary, flush, settings)

    # -- receiving -------------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event; every event goes to one of those who wait. It ends with the session."""
        try:
            return await self._inbox.next()
        except SessionClosed:
            raise StopAsyncIteration from None

    @property
    def received(self) -> Inbox:
        """Counters of reception: `objects`, `octets`, `lost`."""
        return self._inbox

    def is_awaited(self, since: float) -> bool:
        """Return whether a sender may still request ACKs from this node, which only receives, for what it has since that time.

        False with a protocol without ACKs, and for a node that also sends.
        """
        return isinstance(self._machine, AwaitedReceiver) and self._machine.is_awaited(self.host.now, since)

    # -- state -----------------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Return the counters of the machines (docs/protocols.md); none before the block begins."""
        return {} if self._machine is None else self._machine.counts()

    @property
    def measures(self) -> Sequence[Measure]:
        """What the protocol's own names in the statistics mean (docs/protocols.md has those that all share)."""
        return self.membership.protocol.measures

    def statistics(self) -> Snapshot:
        """Return a snapshot of the host, with the machines, senders and objects in it; to be read within the block."""
        return self.host.snapshot()

    # -- within ----------------------------------------------------------------------------------------------------

    def _sending(self) -> Outbox:
        self._check()
        if self._outbox is None:
            raise UsageError("this session only receives; send=True lets it send")
        return self._outbox

    def _receiving(self) -> Machine:
        self._check()
        if self._receiver is None:
            raise UsageError("this session only sends; receive=True lets it receive")
        return self._receiver

    def _on_event(self, event: Event) -> None:
        if self._outbox is not None:
            self._outbox.on_event(event)
        if isinstance(event, ObjectAborted) and event.sender == self.node:
            self._inbox.tell(event)
        else:
            self._inbox.on_event(event, self.host.now)

    def _look(self) -> None:
        """Settle now and then what no event leads to."""
        self._inbox.settle()
        self._looking = self._loop.call_later(_PERIOD, self._look)

    def _own_hosts(self) -> Iterable[UdpHost]:
        return (self.host,)

    def _release(self, error: TransferError) -> None:
        if self._outbox is not None:
            self._outbox.fail(error)
        self._inbox.fail(error)
        if self._looking is not None:
            self._looking.cancel()
