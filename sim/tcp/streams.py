"""Messages on a stream of bytes: written at one end, cut into segments, and read at the other.

Without a codec a segment carries the messages that end within it, as the objects that were sent; with a codec it carries bytes.
Both have the same length on the stream, that of the protocol's framing.
"""

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from protocols.errors import ContractError
from protocols.framing import Framing
from protocols.machine import Codec, Message
from sim.tcp.segment import Content

__all__ = ["ByteReader", "ByteWriter", "Frames", "Messages", "ObjectReader", "ObjectWriter", "Reader", "Writer"]

Messages: TypeAlias = Sequence[tuple[Message, int]]
"""Messages, each with its bytes on the stream."""
_NO_FRAMES: Final[list[tuple[Message, int]]] = []
"""The frames of all writers without any that wait; never modified."""


class Writer(Protocol):
    """Bytes written and not yet cut into segments."""

    behind: int
    """Number of the first byte behind all that was written."""

    def write(self, message: Message, size: int) -> None:
        """Append a message of `size` bytes."""

    def cut(self, number: int) -> Content:
        """Remove what lies before byte `number`, and return it for a segment that ends there."""

    def drop(self, number: int) -> None:
        """Forget what lies behind byte `number`, up to which was cut."""


class Frames:
    """Makes the frames of messages that stay objects: pairs of a message and its bytes on the stream.

    A message that is written on many connections, one after the other, is one frame on all of them.
    """

    __slots__ = ("_framing", "_latest", "_size")

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._latest: tuple[Message, int] | None = None
        self._size = 0

    def frame(self, message: Message, size: int) -> tuple[Message, int]:
        """Return the frame of a message of `size` bytes."""
        latest = self._latest
        if latest is None or latest[0] is not message or size != self._size:
            latest = self._latest = message, self._framing.size_of(size)
            self._size = size
        return latest


class ObjectWriter:
    """Keeps the frames of messages."""

    __slots__ = ("_begin", "_frames", "_waiting", "behind")

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._waiting = _NO_FRAMES
        # Numbers of the first byte of the frames that wait, and of the first one behind them.
        self._begin = self.behind = 1

    def write(self, message: Message, size: int) -> None:
        """See `Writer`."""
        frame = self._frames.frame(message, size)
        self.behind += frame[1]
        if self._waiting:
            self._waiting.append(frame)
        else:
            self._waiting = [frame]

    def cut(self, number: int) -> Content:
        """See `Writer`."""
        waiting = self._waiting
        if number == self.behind:
            # All numbers of an idle end are one object.
            self._waiting, self._begin, self.behind = _NO_FRAMES, number, number
            return tuple(waiting)
        count, begin = 0, self._begin
        for _, octets in waiting:
            if begin + octets > number:
                break
            begin += octets
            count += 1
        self._begin = begin
        content = tuple(waiting[:count])
        del waiting[:count]
        return content

    def drop(self, number: int) -> None:
        """See `Writer`."""
        self._waiting = _NO_FRAMES
        self._begin = self.behind = number


class ByteWriter:
    """Keeps bytes."""

    __slots__ = ("_bytes", "_codec", "_framing", "behind")

    def __init__(self, codec: Codec, framing: Framing) -> None:
        self._codec = codec
        self._framing = framing
        self._bytes = bytearray()
        self.behind = 1

    def write(self, message: Message, size: int) -> None:
        """See `Writer`; ContractError when the message is not of `size` bytes."""
        data = self._codec.encode(message)
        if len(data) != size:
            raise ContractError(f"{message.kind} was sent with a size of {size} bytes and encodes to {len(data)}")
        frame = self._framing.wrap(data)
        self._bytes += frame
        self.behind += len(frame)

    def cut(self, number: int) -> Content:
        """See `Writer`."""
        count = len(self._bytes) - (self.behind - number)
        content = bytes(self._bytes[:count])
        del self._bytes[:count]
        return content

    def drop(self, number: int) -> None:
        """See `Writer`."""
        self._bytes.clear()
        self.behind = number


class Reader(Protocol):
    """Joins what segments carry into messages."""

    def read(self, content: Content) -> Messages:
        """Return the messages that end in the next segment, each with its bytes on the stream. Raises WireError."""


class ObjectReader:
    """Takes the messages out of segments."""

    __slots__ = ()

    def read(self, content: Content) -> Messages:
        """See `Reader`."""
        assert isinstance(content, tuple)
        return content


class ByteReader:
    """Joins the bytes of segments, and decodes messages."""

    __slots__ = ("_codec", "_framing")

    def __init__(self, codec: Codec, framing: Framing) -> None:
        self._codec = codec
        self._framing = framing

    def read(self, content: Content) -> Messages:
        """See `Reader`."""
        assert isinstance(content, bytes)
        found: list[bytes] = []
        self._framing.unwrap(content, found)
        return [(self._codec.decode(data), self._framing.size_of(len(data))) for data in found]
