"""A received stream as a file: bytes, lines or messages, with back-pressure to the protocol."""

from collections import deque
from collections.abc import Callable, Sequence

from experiments.session.boundaries import LENGTH, Boundary, MessageCutter
from experiments.session.waiting import Changes
from protocols.errors import TransferError

__all__ = ["IncomingStream"]

_ROOM = 1 << 20
"""Bytes that wait for the program, above which the protocol stops delivering."""


class IncomingStream:
    """A stream of another node. Iterate over its messages (lines; pieces of bytes), or call `receive`, `read` and `readline`.

    What the program does not read waits here, then in the protocol; if it is slower than the sender for longer than the
    sender's buffer lasts, bytes are lost. Where bytes were lost, `gaps` is raised by one and reading goes on with the next
    message that is complete.
    """

    def __init__(self, sender: int, object_id: int, boundary: Boundary, resume: Callable[[int, int], None]) -> None:
        self.sender = sender
        self.object_id = object_id
        self.info = b""
        """Out-of-band information of the sender, known at the end of the stream."""
        self.gaps = 0
        self.octets = 0
        """Bytes received."""
        self._boundary = boundary
        self._cutter = MessageCutter(boundary)
        self._resume = resume
        self._pieces: deque[bytes] = deque()
        self._waiting = 0
        self._is_full = self._is_lost = False
        self._ended = False
        self._changes = Changes()

    # -- what programs use -----------------------------------------------------------------------------------------

    async def receive(self) -> bytes | None:
        """Wait for the next message (a line with its end; a piece of bytes); None at the end of the stream.

        TransferError when the sender gave the stream up, or the session ended.
        """
        if not await self._some():
            return None
        piece = self._pieces.popleft()
        self._taken(len(piece))
        return piece[LENGTH:] if self._boundary == "message" else piece

    async def receive_all(self) -> bytes:
        """Wait for messages and return all that are here, as they were sent, with their lengths; b"" at the end.

        TransferError as from `receive`.
        """
        await self._some()
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._taken(len(data))
        return data

    async def read(self, n: int = -1) -> bytes:
        """Wait for bytes and return at most `n`; b"" at the end of the stream. With -1, all bytes until the end.

        Of a stream by message, `n` bytes of one message at most, or all messages without their lengths.
        """
        if n < 0:
            parts = []
            while (part := await self.receive()) is not None:
                parts.append(part)
            return b"".join(parts)
        while (piece := await self.receive()) is not None:
            if len(piece) > n:
                self._give_back(piece[n:])
            if piece:
                return piece[:n]
        return b""

    async def readline(self) -> bytes:
        """Wait for a line and return it with its line feed; the last one may have none, and b"" is the end."""
        parts = []
        while (piece := await self.receive()) is not None:
            end = piece.find(b"\n") + 1
            if end and end < len(piece):
                self._give_back(piece[end:])
            parts.append(piece[:end] if end else piece)
            if end:
                break
        return b"".join(parts)

    def __aiter__(self) -> "IncomingStream":
        return self

    async def __anext__(self) -> bytes:
        piece = await self.receive()
        if piece is None:
            raise StopAsyncIteration
        return piece

    # -- what the protocol calls (`protocols.stream.StreamSink`) ---------------------------------------------------

    @property
    def by_message(self) -> bool:
        """Whether bytes are skipped until a message begins."""
        return self._boundary != "byte"

    def write(self, data: bytes, starts: Sequence[int]) -> bool:
        """Take bytes; return whether more of them wait for the program than there is room for."""
        self.octets += len(data)
        data = bytes(data)
        if self._is_lost:
            if not starts:
                return self._is_full
            data, self._is_lost = data[starts[0] :], False
        try:
            found = self._cutter.feed(data)
        except ValueError:
            # No length is where this one should be.
            self.gaps += 1
            self._is_lost = True
            found = []
        for piece in found:
            self._pieces.append(piece)
            self._waiting += len(piece)
        self._is_full = self._waiting > _ROOM
        if found:
            self._changes.changed()
        return self._is_full

    def skip(self) -> None:
        """Count a gap, and drop the message in which it is."""
        self.gaps += 1
        self._cutter.rest()

    def commit(self, info: bytes) -> None:
        """End the stream; a line without a line feed is its last."""
        rest = self._cutter.rest()
        if rest and self._boundary == "line":
            self._pieces.append(rest)
            self._waiting += len(rest)
        self.info = info
        self._ended = True
        self._changes.changed()

    def abort(self) -> None:
        """End a stream that has no end."""
        self.fail(TransferError(f"stream {self.object_id} of sender {self.sender} has no end"))

    def fail(self, error: Exception) -> None:
        """Have the program get an error after what has arrived."""
        if not self.is_over:
            self._cutter.rest()
            self._changes.fail(error)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will arrive."""
        return self._ended or self._changes.failure is not None

    # -- within ----------------------------------------------------------------------------------------------------

    async def _some(self) -> bool:
        """Wait until something is here; return False at the end of the stream."""
        await self._changes.until(lambda: self._pieces or self._ended)
        return bool(self._pieces)

    def _give_back(self, piece: bytes) -> None:
        """Have a part of a message read next."""
        if self._boundary == "message":
            piece = len(piece).to_bytes(LENGTH, "big") + piece
        self._pieces.appendleft(piece)
        self._waiting += len(piece)

    def _taken(self, octets: int) -> None:
        self._waiting -= octets
        if self._is_full and self._waiting < _ROOM // 2:
            self._is_full = False
            if not self.is_over:
                self._resume(self.sender, self.object_id)
