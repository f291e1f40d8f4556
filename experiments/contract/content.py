"""Sources and sinks for tests of protocols; they hold their content in memory and check how a machine uses them."""

from protocols.rng import Rng

__all__ = ["Bytes", "FailingSink", "CheckedSink", "pattern"]


def pattern(size: int, seed: int = 1) -> bytes:
    """Return `size` pseudo-random bytes, the same for the same `seed`; no two 4 kB pages are equal.

    A segment written at a wrong offset therefore changes the content.
    """
    rng = Rng(seed)
    unit = b"".join(int(rng.uniform() * 2**32).to_bytes(4, "big") for _ in range(min(size, 4096) // 4 + 1))
    # Each page begins with its number, so that no two pages are equal.
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
        """Return `n` bytes from `offset`. AssertionError for a range outside the content."""
        assert 0 <= offset <= offset + n <= self.size, f"read({offset}, {n}) of {self.size} bytes"
        return self.content[offset : offset + n]


class CheckedSink:
    """A sink that stores an object of `size` bytes and asserts that it is used as `protocols.machine.Sink` requires."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self.info: bytes | None = None
        """The `info` given to `commit`; None before."""
        self.aborted = False
        self._written: set[tuple[int, int]] = set()

    @property
    def ended(self) -> bool:
        """Whether the sink was committed or aborted."""
        return self.info is not None or self.aborted

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. AssertionError if it is written twice, lies outside the object, or comes after the end."""
        place = (offset, len(data))
        assert not self.ended, "write after the end"
        assert 0 <= offset <= offset + len(data) <= len(self.content), f"write{place} to {len(self.content)} bytes"
        assert place not in self._written, f"segment {place} written twice"
        self._written.add(place)
        self.content[offset : offset + len(data)] = data

    def read(self, offset: int, n: int) -> bytes:
        """Return `n` stored bytes from `offset`. AssertionError after the end."""
        assert not self.ended, "read after the end"
        return bytes(self.content[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """End the object as complete. AssertionError if it has ended before."""
        assert not self.ended, "commit after the end"
        self.info = info

    def abort(self) -> None:
        """End the object as incomplete. AssertionError if it has ended before."""
        assert not self.ended, "abort after the end"
        self.aborted = True


class FailingSink(CheckedSink):
    """A sink whose method `verb` succeeds `after` times and then raises OSError at each call, as on a full disk."""

    def __init__(self, size: int, verb: str, after: int = 0) -> None:
        super().__init__(size)
        self.verb = verb
        self.left = after
        self.failures = 0

    def _fail_if_due(self, verb: str) -> None:
        if verb != self.verb:
            return
        self.left -= 1
        if self.left < 0:
            self.failures += 1
            raise OSError(28, f"no space left ({verb})")

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """See `CheckedSink.write`; OSError when this method fails."""
        self._fail_if_due("write")
        super().write(offset, data)

    def read(self, offset: int, n: int) -> bytes:
        """See `CheckedSink.read`; OSError when this method fails."""
        self._fail_if_due("read")
        return super().read(offset, n)

    def commit(self, info: bytes) -> None:
        """See `CheckedSink.commit`; OSError when this method fails, which leaves the sink open for `abort`."""
        self._fail_if_due("commit")
        super().commit(info)

    def abort(self) -> None:
        """See `CheckedSink.abort`; OSError when this method fails."""
        self._fail_if_due("abort")
        super().abort()
