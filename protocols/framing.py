"""How messages lie in the stream of bytes of a connection, the same in every world."""

from collections.abc import MutableSequence
from typing import Protocol

from protocols.errors import UsageError, WireError

__all__ = ["FRAME_LIMIT", "Framing", "LengthPrefixed", "SelfDelimiting"]

FRAME_LIMIT = (16 << 20) + (64 << 10)
"""Longest encoded message in bytes where a protocol names no other: 16 MiB of content and 64 KiB of headers."""
_PREFIX = 4


class Framing(Protocol):
    """Joins encoded messages to a stream and finds them in it again; there is one for each end of a connection."""

    @property
    def waiting(self) -> int:
        """Bytes of the stream that are kept because their frame is not complete."""

    def size_of(self, octets: int) -> int:
        """Return the bytes that an encoded message of `octets` bytes takes in the stream."""

    def wrap(self, data: bytes) -> bytes:
        """Return the frame of an encoded message."""

    def unwrap(self, data: bytes | memoryview, into: MutableSequence[bytes]) -> None:
        """Take the next bytes of the stream and append the messages that they complete to `into`.

        Raises WireError at bytes that begin no frame, when the messages before have been appended.
        """


class LengthPrefixed:
    """Frames of a length, four bytes in network order, and as many bytes. A length above `limit` is an error."""

    __slots__ = ("_limit", "_needed", "_rest")

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._needed = _PREFIX
        """Bytes that `_rest` must have before it is searched for frames."""

    @property
    def waiting(self) -> int:
        """Bytes of the incomplete frame."""
        return len(self._rest)

    def size_of(self, octets: int) -> int:
        """Return the length of a frame."""
        return octets + _PREFIX

    def wrap(self, data: bytes) -> bytes:
        """Return a message with its length in front. Raises UsageError if it is longer than the limit."""
        if len(data) > self._limit:
            raise UsageError(f"a message of {len(data)} bytes is longer than a frame may be, {self._limit} bytes")
        return len(data).to_bytes(_PREFIX, "big") + data

    def unwrap(self, data: bytes | memoryview, into: MutableSequence[bytes]) -> None:
        """Append the messages that `data` completes. Raises WireError at a length above the limit."""
        rest = self._rest
        if rest:
            # Memory grows with what has arrived and not with what was announced.
            rest += data
            if len(rest) < self._needed:
                return
            data = bytes(rest)
        end = self._cut(data, into)
        self._rest = bytearray(memoryview(data)[end:])

    def _cut(self, data: bytes | memoryview, into: MutableSequence[bytes]) -> int:
        """Append the complete messages of `data` and return the offset of the first incomplete frame."""
        view, at, size = memoryview(data), 0, len(data)
        while size - at >= _PREFIX:
            length = int.from_bytes(view[at : at + _PREFIX], "big")
            if length > self._limit:
                raise WireError(f"a frame of {length} bytes was announced; {self._limit} are allowed")
            end = at + _PREFIX + length
            if end > size:
                self._needed = end - at
                return at
            into.append(bytes(view[at + _PREFIX : end]))
            at = end
        self._needed = _PREFIX
        return at


class SelfDelimiting:
    """Base of framings whose encoded messages have their own end, or their length, in them; `limit` is in bytes."""

    __slots__ = ("_limit", "_rest")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        """Bytes of a message that is not complete."""

    @property
    def waiting(self) -> int:
        """Bytes of the incomplete message."""
        return len(self._rest)

    def size_of(self, octets: int) -> int:
        """Return `octets`: nothing is added to an encoded message."""
        return octets

    def wrap(self, data: bytes) -> bytes:
        """Return an encoded message as it is. Raises UsageError if it is longer than the limit."""
        if len(data) > self._limit:
            raise UsageError(f"a message of {len(data)} bytes is longer than {self._limit}")
        return data
