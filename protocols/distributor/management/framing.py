"""The frames of management connections: a magic number, a length, and a message."""

from collections.abc import MutableSequence

from protocols.errors import UsageError, WireError

__all__ = ["ManagementFraming"]

MAGIC = b"POBE"
LONGEST = 1 << 20
"""Bytes of the longest message; a view of hundreds of connections has less."""
_HEAD = len(MAGIC) + 4


class ManagementFraming:
    """Joins messages to a stream and finds them in it; see `protocols.framing.Framing`."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """Bytes of the incomplete frame."""
        return len(self._rest)

    def size_of(self, octets: int) -> int:
        """Return the length of a frame."""
        return octets + _HEAD

    def wrap(self, data: bytes) -> bytes:
        """Return the frame of a message. UsageError for one that is too long."""
        if len(data) > LONGEST:
            raise UsageError(f"a message of {len(data)} bytes is longer than a frame may be, {LONGEST} bytes")
        return MAGIC + len(data).to_bytes(4, "big") + data

    def unwrap(self, data: bytes | memoryview, into: MutableSequence[bytes]) -> None:
        """Append the messages that `data` completes. WireError for bytes that begin no frame."""
        rest = self._rest
        rest += data
        while len(rest) >= _HEAD:
            length = int.from_bytes(rest[len(MAGIC) : _HEAD], "big")
            if rest[: len(MAGIC)] != MAGIC or length > LONGEST:
                raise WireError(f"{bytes(rest[:_HEAD])!r} begins no management frame")
            if len(rest) < _HEAD + length:
                return
            into.append(bytes(rest[_HEAD : _HEAD + length]))
            del rest[: _HEAD + length]
