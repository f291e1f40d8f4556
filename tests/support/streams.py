"""Applications that send and receive streams, for tests."""

from collections.abc import Callable, Sequence

from protocols.events import Event
from protocols.machine import Host
from protocols.stream import Flush, StreamSender, StreamSettings, StreamVacant

__all__ = ["Collected", "StreamApplication"]


class Collected:
    """A stream sink that keeps everything. `capacity` bytes make it full, until the test takes them."""

    def __init__(self, by_message: bool = False, capacity: int | None = None) -> None:
        self.by_message = by_message
        self.capacity = capacity
        self.parts: list[bytes] = [b""]
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
        self.parts.append(b"")

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


class StreamApplication:
    """Writes messages to a stream as it has room, and closes it behind the last."""

    def __init__(self, host: Host, sender: StreamSender, settings: StreamSettings, flush: Flush = "none") -> None:
        self._host, self._sender, self._flush = host, sender, flush
        self.object_id = host.call(sender.open_stream, settings)
        self._waiting: list[tuple[bytes, bool]] = []
        self._then: Callable[[], None] | None = None
        self.refused = 0
        """How often a write did not take everything."""

    def write(self, *messages: bytes) -> None:
        """Write messages, now or when there is room."""
        self._waiting += [(message, True) for message in messages]
        self._go_on()

    def close(self, graceful: bool = True) -> None:
        """Close the stream when everything is written."""
        self._then = lambda: self._host.call(self._sender.close_stream, self.object_id, graceful)
        self._go_on()

    def on_event(self, event: Event) -> None:
        """Write what waits when there is room."""
        if isinstance(event, StreamVacant) and event.object_id == self.object_id:
            self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            message, is_start = self._waiting[0]
            taken = self._host.call(self._sender.write_stream, self.object_id, message, [0] if is_start else [])
            if taken < len(message):
                self._waiting[0] = (message[taken:], is_start and not taken)
                self.refused += 1
                return
            del self._waiting[0]
            if self._flush != "none":
                self._host.call(self._sender.flush_stream, self.object_id, self._flush)
        if self._then is not None:
            then, self._then = self._then, None
            then()
