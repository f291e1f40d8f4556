"""Contents of experiments: sources with and without bytes, and sinks that verify what arrived."""

from functools import lru_cache
from hashlib import sha256, shake_128

from protocols.machine import Source
from protocols.rng import key_of

__all__ = ["Accounted", "Extent", "Generated", "MemorySink", "digest_of"]

BLOCK = 1 << 16


@lru_cache(maxsize=16)
def _block(key: int, index: int) -> bytes:
    """64 kB of content. SHAKE-128 is a standard, so the bytes are the same on every machine for ever."""
    return shake_128(key.to_bytes(8, "little") + index.to_bytes(8, "little")).digest(BLOCK)


class Extent:
    """A source that has a size but no bytes: the cheapest content of a simulation."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, offset: int, n: int) -> None:
        """Return None for `n` bytes from `offset`. AssertionError for a range outside the content."""
        assert 0 <= offset <= offset + n <= self.size, f"read({offset}, {n}) of {self.size} bytes"


class Generated:
    """A source of `size` pseudo-random bytes that depend on `path` alone; made on demand, never held whole."""

    __slots__ = ("key", "size")

    def __init__(self, size: int, seed: int, *path: int | str) -> None:
        self.size = size
        self.key = key_of(seed, "content", *path)

    def read(self, offset: int, n: int) -> bytes:
        """`n` bytes from `offset`."""
        first, start = divmod(offset, BLOCK)
        if start + n <= BLOCK:
            return _block(self.key, first)[start : start + n]
        last = (offset + n - 1) // BLOCK
        whole = b"".join(_block(self.key, index) for index in range(first, last + 1))
        return whole[start : start + n]


def digest_of(source: Source) -> str:
    """SHA-256 of a source that has bytes, in hexadecimal."""
    total = sha256()
    for offset in range(0, source.size, BLOCK):
        piece = source.read(offset, min(BLOCK, source.size - offset))
        assert piece is not None, "content without bytes has no digest"
        total.update(piece)
    return total.hexdigest()


class Accounted:
    """A sink for content without bytes: the machine's own erasure accounting is the proof. One serves all receivers."""

    __slots__ = ()

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Nothing is kept."""

    def read(self, offset: int, n: int) -> bytes:
        """Zeros: what is decoded from them is thrown away too."""
        return bytes(n)

    def commit(self, info: bytes) -> None:
        """Nothing is to be finished."""

    def abort(self) -> None:
        """Nothing is to be undone."""


class MemorySink:
    """A sink in memory; once complete only size and SHA-256 stay."""

    __slots__ = ("_held", "info", "sha256", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.info = b""
        self.sha256: str | None = None
        self._held = bytearray(size)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment; one that lies outside the object is an OSError, as on a full disk."""
        if offset + len(data) > self.size:
            raise OSError(f"segment [{offset}, {offset + len(data)}) lies outside an object of {self.size} bytes")
        self._held[offset : offset + len(data)] = data

    def read(self, offset: int, n: int) -> bytes:
        """What was written there."""
        return bytes(self._held[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """Take the digest and let the bytes go."""
        self.info = info
        self.sha256 = sha256(self._held).hexdigest()
        self._held = bytearray()

    def abort(self) -> None:
        """Let the bytes go."""
        self._held = bytearray()
