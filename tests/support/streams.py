"""Sinks of streams, for tests."""

from collections.abc import Sequence

__all__ = ["Collected"]


class Collected:
    """A stream sink that keeps everything; it is full from `capacity` bytes on (None: never)."""

    def __init__(self, by_message: bool = False, capacity: int | None = None) -> None:
        self.by_message = by_message
        self.capacity = capacity
        self.parts: list[bytearray] = [bytearray()]
        """The bytes received; another part begins behind lost ones."""
        self.starts: list[int] = []
        """Offsets of messages in all the bytes received."""
        self.size = 0
        self.ended: str | None = None
        self.info = b""

    def write(self, data: bytes, starts: Sequence[int]) -> object:
        """Keep the bytes."""
        assert data
        assert self.ended is None
        self.starts += [self.size + start for start in starts]
        self.parts[-1] += data
        self.size += len(data)
        return self.capacity is not None and self.size >= self.capacity

    def skip(self) -> None:
        """Begin another part."""
        self.parts.append(bytearray())

    def commit(self, info: bytes) -> None:
        """Note the end."""
        self.ended, self.info = "commit", info

    def abort(self) -> None:
        """Note the end."""
        self.ended = "abort"

    @property
    def data(self) -> bytes:
        """All bytes received."""
        return b"".join(self.parts)
