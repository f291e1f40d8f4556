"""Copy standard input to a stream, and streams to standard output."""

import asyncio
from collections.abc import Awaitable, Callable

from experiments.session.boundaries import LENGTH, Boundary, MessageCutter
from experiments.session.events import StreamOpened
from experiments.session.incoming_stream import IncomingStream
from experiments.session.outgoing_stream import OutgoingStream
from experiments.session.session import Session
from experiments.session.waiting import Changes
from protocols.errors import TransferError, UsageError

__all__ = ["StreamsOutput", "copy_input"]


async def copy_input(read: Callable[[], Awaitable[bytes]], stream: OutgoingStream, boundary: Boundary) -> None:
    """Write what `read` returns to a stream until it returns b"", cut into messages.

    UsageError for one that is too long, and for a last one that is not whole, which is not sent.
    """
    cutter = MessageCutter(boundary)
    while True:
        data = await read()
        try:
            pieces = cutter.feed(data)
        except ValueError as error:
            raise UsageError(f"standard input: {error}; a message begins with its length in {LENGTH} bytes") from error
        is_start = boundary != "byte" and not cutter.continues
        for piece in pieces:
            stream.put(piece, is_start)
            is_start = boundary != "byte"
        await stream.room()
        if not data:
            break
    rest = cutter.rest()
    if rest and boundary == "message":
        raise UsageError(f"standard input: it ends within a message, after {len(rest)} bytes of it; its length counted")
    if rest:
        stream.put(rest, True)
        await stream.room()


class StreamsOutput:
    """Copies all streams of a session to `write`, whole messages only unless the boundary is a byte."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write
        self._streams: dict[IncomingStream, asyncio.Task[None]] = {}
        # Streams of several senders are interleaved by whole messages.
        self._turn = asyncio.Lock()
        self._changes = Changes()
        self._octets = self._gaps = 0
        self.ended = 0
        """Streams that have ended."""

    async def run(self, session: Session, count: int | None) -> None:
        """Copy until `count` streams have ended (None: for ever). OSError, in a group, when `write` raises it."""
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch(session, tasks))
            await self._changes.until(lambda: count is not None and self.ended >= count)
            for task in (watching, *self._streams.values()):
                task.cancel()

    async def _watch(self, session: Session, tasks: asyncio.TaskGroup) -> None:
        async for event in session:
            if isinstance(event, StreamOpened):
                self._streams[event.stream] = tasks.create_task(self._copy(event.stream))

    async def _copy(self, stream: IncomingStream) -> None:
        try:
            while data := await stream.receive_all():
                async with self._turn:
                    await self._write(data)
        except TransferError:
            self._gaps += 1
        self._octets, self._gaps = self._octets + stream.octets, self._gaps + stream.gaps
        del self._streams[stream]
        self.ended += 1
        self._changes.changed()

    @property
    def octets(self) -> int:
        """The bytes received."""
        return self._octets + sum(stream.octets for stream in self._streams)

    @property
    def gaps(self) -> int:
        """The places where bytes were lost, a missing end among them."""
        return self._gaps + sum(stream.gaps for stream in self._streams)
