"""Sources and sinks of experiments: content with and without bytes."""

from functools import lru_cache
from hashlib import sha256, shake_128

from protocols.machine import Source
from protocols.rng import key_of

__all__ = ["Accounted", "Extent", "Generated", "InMemory", "MemorySink", "digest_of"]

BLOCK = 1 << 16


@lru_cache(maxsize=16)
def _block(key: int, index: int) -> bytes:
    """Return block `index` of the content with this key: 64 kB of SHAKE-128 (FIPS 202), equal on every machine."""
    return shake_128(key.to_bytes(8, "little") + index.to_bytes(8, "little")).digest(BLOCK)


class Extent:
    """A source of `size` bytes that exist as a number only, for simulations that account for content without storing it."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, offset: int, n: int) -> None:
        """Return None for `n` bytes from `offset`. AssertionError for a range outside the content."""
        assert 0 <= offset <= offset + n <= self.size, f"read({offset}, {n}) of {self.size} bytes"


class InMemory:
    """A source of bytes in memory."""

    __slots__ = ("_data", "size")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`."""
        return self._data[offset : offset + n]


class Generated:
    """A source of `size` pseudo-random bytes, which follow from `seed` and `path` and are generated when they are read."""

    __slots__ = ("key", "size")

    def __init__(self, size: int, seed: int, *path: int | str) -> None:
        self.size = size
        self.key = key_of(seed, "content", *path)

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` bytes from `offset`."""
        first, start = divmod(offset, BLOCK)
        if start + n <= BLOCK:
            return _block(self.key, first)[start : start + n]
        last = (offset + n - 1) // BLOCK
        whole = b"".join(_block(self.key, index) for index in range(first, last + 1))
        return whole[start : start + n]


def digest_of(source: Source) -> str:
    """Return the SHA-256 of a source that has bytes, in hexadecimal."""
    total = sha256()
    for offset in range(0, source.size, BLOCK):
        piece = source.read(offset, min(BLOCK, source.size - offset))
        assert piece is not None, "content without bytes has no digest"
        total.update(piece)
    return total.hexdigest()


class Accounted:
    """A sink for content without bytes. It stores nothing, so one instance serves all receivers.

    That the content is complete follows from the machine's own count of symbols received.
    """

    __slots__ = ()

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Discard the segment."""

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` zero bytes; what a machine decodes from them is discarded, too."""
        return bytes(n)

    def commit(self, info: bytes) -> None:
        """End the object as complete; there is nothing to store."""

    def abort(self) -> None:
        """End the object as incomplete; there is nothing to remove."""


class MemorySink:
    """A sink that stores an object of `size` bytes in memory, and after `commit` only its SHA-256 in hexadecimal."""

    __slots__ = ("_bytes", "aborted", "info", "sha256", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.info = b""
        self.sha256: str | None = None
        self.aborted = False
        self._bytes = bytearray(size)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one that lies outside the object, as on a full disk."""
        if offset + len(data) > self.size:
            raise OSError(f"segment [{offset}, {offset + len(data)}) lies outside an object of {self.size} bytes")
        self._bytes[offset : offset + len(data)] = data

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` stored bytes from `offset`."""
        return bytes(self._bytes[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """Compute the SHA-256 and free the bytes."""
        self.info = info
        self.sha256 = sha256(self._bytes).hexdigest()
        self._bytes = bytearray()

    def abort(self) -> None:
        """Free the bytes."""
        self._bytes, self.aborted = bytearray(), True
