"""An application's end of a stream that is sent: collects messages and hands them to the machine in larger pieces."""

from bisect import bisect_left
from collections.abc import Callable

from protocols.events import Event
from protocols.hosting import Host
from protocols.stream import Flush, StreamSender, StreamSettings, StreamVacant

__all__ = ["StreamWriter"]

_COLLECTED = 1 << 16
"""Bytes that are handed to the machine at once; less when the stream is flushed or closed."""


class StreamWriter:
    """A stream of `sender`, which `host` runs. The events of the machine are to be passed to `on_event`.

    A message that the stream has no room for waits here. The application should not write more until `on_room` is called;
    what it writes nevertheless waits, too.
    """

    def __init__(
        self, host: Host, sender: StreamSender, settings: StreamSettings, on_room: Callable[[], None] = lambda: None
    ) -> None:
        self._host, self._sender = host, sender
        self._on_room = on_room
        self.object_id = host.call(sender.open_stream, settings)
        self._parts: list[bytes] = []
        self._starts: list[int] = []
        self._size = 0
        self._flush: Flush = "none"
        self._graceful: bool | None = None
        self.is_full = False
        """Whether the stream has no room."""

    def write(self, message: bytes, is_start: bool = True) -> bool:
        """Write a message, or bytes that belong to the one before; return whether the stream is full."""
        if is_start:
            self._starts.append(self._size)
        self._parts.append(message)
        self._size += len(message)
        if self._size >= _COLLECTED and not self.is_full:
            self._hand_over()
        return self.is_full

    def flush(self, mode: Flush = "active") -> None:
        """Send everything written, also what does not fill a segment; with "none" as far as it does."""
        self._flush = mode
        if not self.is_full:
            self._hand_over()

    def close(self, graceful: bool = True) -> None:
        """End the stream behind the last byte written, or at once."""
        self._graceful = graceful
        if not self.is_full or not graceful:
            self._hand_over()

    def on_event(self, event: Event) -> None:
        """Write what waits, when there is room."""
        if isinstance(event, StreamVacant) and event.object_id == self.object_id:
            self._hand_over()
            if not self.is_full and self._graceful is None:
                self._on_room()

    def _hand_over(self) -> None:
        """Give the machine what was collected, as far as it takes it, and then flush or close."""
        host, sender, key = self._host, self._sender, self.object_id
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        taken = host.call(sender.write_stream, key, data, self._starts) if data and self._graceful is not False else len(data)
        self.is_full = taken < len(data)
        first = bisect_left(self._starts, taken)
        self._starts = [start - taken for start in self._starts[first:]]
        self._parts, self._size = ([data[taken:]], len(data) - taken) if self.is_full else ([], 0)
        if self.is_full:
            return
        if self._flush != "none":
            flush, self._flush = self._flush, "none"
            host.call(sender.flush_stream, key, flush)
        if self._graceful is not None:
            host.call(sender.close_stream, key, self._graceful)
