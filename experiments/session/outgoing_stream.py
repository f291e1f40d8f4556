"""A stream that is sent, as a file: `write` waits while the protocol has no room."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from experiments.session.arguments import as_bytes
from experiments.session.boundaries import LENGTH, LONGEST, Boundary
from experiments.session.transmission import Transmission
from experiments.session.waiting import Changes
from protocols.errors import TransferError, UsageError
from protocols.events import Event, ObjectAborted
from protocols.hosting import Host
from protocols.stream import FLUSHES, Flush, StreamSender, StreamSettings
from protocols.stream_writer import StreamWriter

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["OutgoingStream"]

_UNBROKEN = 1 << 16
"""Bytes written after which `write` lets the event loop do other work, also where there is room for more."""


class OutgoingStream:
    """A stream of this node; as a context manager it is closed at the end, at once if the block raised.

    `flush` says what becomes of messages that do not fill a segment (`protocols.stream.Flush`): with "passive" all that is
    written in one turn of the event loop is sent together.
    """

    def __init__(
        self,
        host: Host,
        sender: StreamSender,
        boundary: Boundary,
        flush: Flush,
        settings: StreamSettings,
        dropped: Callable[[int], None],
    ) -> None:
        if flush not in FLUSHES:
            raise UsageError(f"flush: value {flush!r} is not allowed; one of {', '.join(FLUSHES)}")
        self._boundary = boundary
        self._flush: Flush = flush
        self._changes = Changes()
        self._dropped = dropped
        self._writer = StreamWriter(host, sender, settings, self._changes.changed)
        self._is_flushing = False
        self._unbroken = 0
        self.object_id = self._writer.object_id
        self.transmission: Transmission | None = None
        """What `Session.sent` waits for; set by what opens the stream."""
        self.is_closed = False
        """Whether `close` was called, or the stream has failed."""
        self.octets = self.messages = 0
        """Bytes and messages written."""

    # -- what programs use -----------------------------------------------------------------------------------------

    async def write(self, data: bytes) -> None:
        """Write one message, by line lines of which each is one; wait while there is no room.

        UsageError for a closed stream and for what are no bytes, TransferError when the session or the stream has failed.
        """
        data = as_bytes("data", data)
        if self._boundary == "message":
            if len(data) > LONGEST:
                raise UsageError(f"message: {len(data)} bytes are not allowed; at most {LONGEST}")
            data = len(data).to_bytes(LENGTH, "big") + data
        await self.write_piece(data, self._boundary != "byte")

    async def write_piece(self, data: bytes, is_start: bool) -> None:
        """Write bytes as they are; `is_start`: a message begins with them."""
        if not self.put(data, is_start):
            self._unbroken = 0
            await self.room()
        elif self._unbroken >= _UNBROKEN:
            self._unbroken = 0
            await asyncio.sleep(0)

    def put(self, data: bytes, is_start: bool) -> bool:
        """Write bytes as they are, without waiting; return whether there is room for more."""
        self._changes.check()
        if self.is_closed:
            raise UsageError("the stream is closed")
        self.octets += len(data)
        self._unbroken += len(data)
        self.messages += is_start
        is_full = self._writer.write(bytes(data), is_start)
        if self._flush != "none" and not self._is_flushing:
            self._is_flushing = True
            asyncio.get_running_loop().call_soon(self._flush_now)
        return not is_full

    async def room(self) -> None:
        """Wait until there is room for more."""
        await self._changes.until(lambda: not self._writer.is_full)

    async def flush(self, mode: Flush = "active") -> None:
        """Send all that was written, and by "active" have receivers request what they missed; wait for room.

        UsageError for a closed stream.
        """
        self._changes.check()
        if self.is_closed:
            raise UsageError("the stream is closed")
        self._writer.flush(mode)
        await self.room()

    async def close(self, graceful: bool = True) -> None:
        """End the stream behind the last byte, or at once; wait until the protocol has taken everything.

        TransferError when the session or the stream has failed.
        """
        if graceful:
            self._changes.check()
        self.end(graceful)
        if graceful:
            await self.room()

    async def __aenter__(self) -> "OutgoingStream":
        return self

    async def __aexit__(
        self, kind: "type[BaseException] | None", error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if kind is None:
            await self.close()
        else:
            self.end(graceful=False)

    # -- what the session calls ------------------------------------------------------------------------------------

    def end(self, graceful: bool) -> None:
        """Close without waiting."""
        if not self.is_closed:
            self.is_closed = True
            self._writer.close(graceful)
            if not graceful:
                self._dropped(self.object_id)

    def on_event(self, event: Event) -> None:
        """Take an event of the sender."""
        self._writer.on_event(event)
        # The writer calls back for room only while it is open.
        self._changes.changed()
        if isinstance(event, ObjectAborted):
            self.fail(TransferError(f"stream {self.object_id}: {event.reason}"))

    def fail(self, error: Exception) -> None:
        """Have the program get an error at its next call."""
        self.is_closed = True
        self._changes.fail(error)

    def _flush_now(self) -> None:
        self._is_flushing = False
        if not self.is_closed:
            self._writer.flush(self._flush)
