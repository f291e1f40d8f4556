"""Where frames of STOMP end in a stream of bytes: behind as many bytes of body as their head says, or at the first zero."""

from collections.abc import MutableSequence

from protocols.errors import WireError
from protocols.framing import SelfDelimiting

__all__ = ["BODY_LIMIT", "HEAD_LIMIT", "StompFraming", "end_of_head"]

HEAD_LIMIT = 64 << 10
"""Most bytes of the head of a frame: the command and the headers."""
BODY_LIMIT = 16 << 20
"""Most bytes of the body of a frame."""

_LINE, _RETURN = 0x0A, 0x0D
_LENGTH = b"\ncontent-length:"


def end_of_head(data: bytes | bytearray, start: int, end: int) -> int:
    """Return the offset of the body of the frame whose head is searched in `data[start:end]`, -1 if it is not complete."""
    at = data.find(b"\n", start, end)
    while at >= 0:
        if data[at + 1 : at + 2] == b"\n" and at + 1 < end:
            return at + 2
        if data[at + 1 : at + 3] == b"\r\n" and at + 2 < end:
            return at + 3
        at = data.find(b"\n", at + 1, end)
    return -1


class StompFraming(SelfDelimiting):
    """Finds frames, each with the zero behind it, and heart-beats, each an end of line, in the bytes of a connection.

    Every byte is looked at once, however the stream is split, and what is kept is bounded by the two limits.
    """

    __slots__ = ("_body", "_length", "_looked")

    def __init__(self) -> None:
        super().__init__(HEAD_LIMIT + BODY_LIMIT)
        self._body = -1
        """Offset of its body; -1 while its head is not complete."""
        self._length = -1
        """Bytes of its body as its head says; -1: it ends at the first zero."""
        self._looked = 0
        """Offset up to which `_rest` was searched."""

    def unwrap(self, data: bytes | memoryview, into: MutableSequence[bytes]) -> None:
        """Append the frames and heart-beats that `data` completes; heart-beats in a row are one. WireError beyond a limit."""
        rest, start = self._rest, 0
        rest += data
        size = len(rest)
        while start < size:
            if self._body < 0 and rest[start] in (_LINE, _RETURN):
                start = _skip_ends_of_line(rest, start, size)
                into.append(b"\n")
                continue
            end = self._end_of_frame(start, size)
            if end < 0:
                break
            into.append(bytes(rest[start:end]))
            start, self._body, self._length, self._looked = end, -1, -1, end
        if start:
            del rest[:start]
            self._looked = max(0, self._looked - start)
            if self._body >= 0:
                self._body -= start

    def _end_of_frame(self, start: int, size: int) -> int:
        """Return the offset behind the frame at `start`; -1 if it is not complete."""
        rest = self._rest
        if self._body < 0:
            # Of an end of the head that is split, up to three bytes were looked at already.
            body = end_of_head(rest, max(start, self._looked - 2), min(size, start + HEAD_LIMIT))
            if body < 0:
                if size - start >= HEAD_LIMIT:
                    raise WireError(f"the head of a frame has no end within {HEAD_LIMIT} bytes")
                self._looked = size
                return -1
            self._body = self._looked = body
            self._length = _length_of(bytes(rest[start:body]))
        if self._length >= 0:
            return self._end_of_counted(size)
        end = rest.find(0, self._looked, size)
        self._looked = size
        if (size if end < 0 else end) - self._body > BODY_LIMIT:
            raise WireError(f"the body of a frame has no end within {BODY_LIMIT} bytes")
        return end + 1 if end >= 0 else -1

    def _end_of_counted(self, size: int) -> int:
        """Return the offset behind a frame with a length; -1 if it is not complete."""
        end = self._body + self._length
        self._looked = size
        if end >= size:
            return -1
        if self._rest[end]:
            raise WireError(f"no zero follows the {self._length} bytes of a frame's body")
        return end + 1


def _skip_ends_of_line(data: bytearray, start: int, end: int) -> int:
    while start < end and data[start] in (_LINE, _RETURN):
        start += 1
    return start


def _length_of(head: bytes) -> int:
    """Return the length in a head, the first one if there are several, -1 for none. WireError for one that is not allowed."""
    at = head.find(_LENGTH)
    if at < 0:
        return -1
    value = head[at + len(_LENGTH) : head.find(b"\n", at + 1)].strip()
    if not (value.isdigit() and len(value) <= 9 and int(value) <= BODY_LIMIT):
        raise WireError(f"content-length: {value[:20]!r} is not allowed; 0 to {BODY_LIMIT}")
    return int(value)
