"""Content to send and places to receive it, for tests: memory only."""

from protocols.rng import Rng

__all__ = ["Bytes", "FailingSink", "CheckedSink", "pattern"]


def pattern(size: int, seed: int = 1) -> bytes:
    """`size` bytes that differ from place to place, so that a segment put at the wrong offset shows."""
    rng = Rng(seed)
    unit = b"".join(int(rng.uniform() * 2**32).to_bytes(4, "big") for _ in range(min(size, 4096) // 4 + 1))
    # The page number is mixed in, so that no two pages are equal.
    pages = (page.to_bytes(4, "big") + unit[4:] for page in range(size // len(unit) + 1))
    return b"".join(pages)[:size]


class Bytes:
    """A source that holds its bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.content)

    def read(self, offset: int, n: int) -> bytes:
        """Exactly `n` bytes; a request beyond the end is a fault of the machine."""
        assert 0 <= offset <= offset + n <= self.size, f"read({offset}, {n}) of {self.size} bytes"
        return self.content[offset : offset + n]


class CheckedSink:
    """A sink that keeps what it gets and checks how it is used."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self.info: bytes | None = None
        """Set by `commit`."""
        self.aborted = False
        self._written: set[tuple[int, int]] = set()

    @property
    def ended(self) -> bool:
        """Was it committed or aborted?"""
        return self.info is not None or self.aborted

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Each segment once, inside the object, and only while it is open."""
        place = (offset, len(data))
        assert not self.ended, "write after the end"
        assert 0 <= offset <= offset + len(data) <= len(self.content), f"write{place} to {len(self.content)} bytes"
        assert place not in self._written, f"segment {place} written twice"
        self._written.add(place)
        self.content[offset : offset + len(data)] = data

    def read(self, offset: int, n: int) -> bytes:
        """Read back what was written."""
        assert not self.ended, "read after the end"
        return bytes(self.content[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """The end that is hoped for; comes once."""
        assert not self.ended, "commit after the end"
        self.info = info

    def abort(self) -> None:
        """The other end."""
        assert not self.ended, "abort after the end"
        self.aborted = True


class FailingSink(CheckedSink):
    """A sink whose method `verb` raises OSError from its `after`-th call on (0: at once), as a full disk does."""

    def __init__(self, size: int, verb: str, after: int = 0) -> None:
        super().__init__(size)
        self.verb = verb
        self.left = after
        self.failures = 0

    def _pay(self, verb: str) -> None:
        if verb != self.verb:
            return
        self.left -= 1
        if self.left < 0:
            self.failures += 1
            raise OSError(28, f"no space left ({verb})")

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """As the base class, unless it fails."""
        self._pay("write")
        super().write(offset, data)

    def read(self, offset: int, n: int) -> bytes:
        """As the base class, unless it fails."""
        self._pay("read")
        return super().read(offset, n)

    def commit(self, info: bytes) -> None:
        """As the base class, unless it fails; a failed commit leaves the sink open for `abort`."""
        self._pay("commit")
        super().commit(info)

    def abort(self) -> None:
        """As the base class, unless it fails."""
        self._pay("abort")
        super().abort()
