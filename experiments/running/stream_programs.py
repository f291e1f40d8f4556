"""Applications of streams on a real network: standard input to a stream, and streams to standard output."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, cast

from experiments.running.program import Node
from experiments.running.standard_streams import PipeReader, PipeWriter
from protocols.events import Event, FlushCompleted, ObjectAborted
from protocols.hosting import PortsHost
from protocols.machine import Offer, Sender
from protocols.stream import StreamReceiver, StreamSender, StreamSettings, StreamSink
from protocols.stream_writer import StreamWriter

__all__ = ["LENGTH", "Boundary", "StreamReceivingProgram", "StreamSendingProgram"]

Boundary: TypeAlias = Literal["line", "message", "byte"]
"""Where messages begin: after each line feed; by a length of four bytes, big-endian, before each; nowhere."""
LENGTH = 4
_ROOM = 1 << 20
"""Bytes that may wait for standard output before the stream is told to wait."""


class StreamSendingProgram:
    """Sends what `read` gives as one stream; finished when all was sent and flushed."""

    def __init__(
        self,
        node: Node,
        boundary: Boundary,
        settings: StreamSettings,
        read: Callable[[Callable[[bytes], None]], PipeReader],
        stop: Callable[[], None],
    ) -> None:
        self._node = node
        self._boundary = boundary
        self._settings = settings
        self._read = read
        self._stop = stop
        self._reader: PipeReader | None = None
        self._writer: StreamWriter | None = None
        self._rest = b""
        self._is_closed = self._is_finished = False
        self.machine: Sender | None = None
        self.octets = self.messages = 0
        self.failure = ""

    def start(self, host: PortsHost) -> None:
        """Open the stream and begin to read."""
        node = self._node
        machine = node.protocol.makers().make_sender(host, node.config, node.id, node.group, node.instance)
        self.machine = machine
        host.run(machine, self._on_event)
        self._reader = self._read(self._take)
        self._writer = StreamWriter(host, cast(StreamSender, machine), self._settings, self._reader.go_on)
        self._reader.go_on()

    def _take(self, data: bytes) -> None:
        """Write a piece of the input, cut into messages, and ask for the next one."""
        assert self._writer is not None
        assert self._reader is not None
        if not data:
            self._end()
            return
        self.octets += len(data)
        for message in self._cut(self._rest + data):
            self._writer.write(message, self._boundary != "byte")
            self.messages += 1
        self._writer.flush("passive")
        if not self._writer.is_full:
            self._reader.go_on()

    def _cut(self, data: bytes) -> list[bytes]:
        """Return the whole messages in `data`; what is left waits for more."""
        if self._boundary == "byte":
            self._rest = b""
            return [data]
        if self._boundary == "line":
            *lines, self._rest = data.split(b"\n")
            return [line + b"\n" for line in lines]
        found, at = [], 0
        while at + LENGTH <= len(data):
            end = at + LENGTH + int.from_bytes(data[at : at + LENGTH], "big")
            if end > len(data):
                break
            found.append(data[at:end])
            at = end
        self._rest = data[at:]
        return found

    def _end(self) -> None:
        """Send what is left at the end of the input, and close."""
        assert self._writer is not None
        if self._rest:
            self._writer.write(self._rest, True)
            self.messages += 1
        self._is_closed = True
        self._writer.close()

    def _on_event(self, event: Event) -> None:
        if self._writer is not None:
            self._writer.on_event(event)
        if isinstance(event, ObjectAborted):
            self.failure = event.reason
            self._stop()
        elif isinstance(event, FlushCompleted) and self._is_closed:
            self._is_finished = True
            self._stop()

    def finished(self) -> bool:
        """Whether the input has ended and everything was sent and flushed."""
        return self._is_finished


class _Output:
    """The application's end of one stream: bytes go to standard output, whole messages only unless the boundary is a byte."""

    def __init__(self, program: "StreamReceivingProgram", sender: int, object_id: int) -> None:
        self._program = program
        self.key = sender, object_id

    @property
    def by_message(self) -> bool:
        """Whether what is received begins with a message."""
        return self._program.boundary != "byte"

    def write(self, data: bytes, starts: Sequence[int]) -> bool:
        """Write bytes; return whether standard output is slow."""
        del starts
        return self._program.write(data)

    def skip(self) -> None:
        """Count a gap."""
        self._program.gaps += 1

    def commit(self, info: bytes) -> None:
        """The sender has closed the stream."""
        self._program.end(self.key)

    def abort(self) -> None:
        """The stream has no end."""
        self._program.gaps += 1
        self._program.end(self.key)


class StreamReceivingProgram:
    """Writes received streams to `out`; finished when `count` streams have ended (None: never)."""

    def __init__(self, node: Node, boundary: Boundary, count: int | None, stop: Callable[[], None]) -> None:
        self._node = node
        self.boundary = boundary
        self._count = count
        self._stop = stop
        self._host: PortsHost | None = None
        self.out: PipeWriter | None = None
        """Set before the program starts."""
        self.machine: StreamReceiver | None = None
        self._waiting: dict[tuple[int, int], None] = {}
        self.octets = self.gaps = self.ended = 0

    def start(self, host: PortsHost) -> None:
        """Run a receiver that accepts every stream."""
        node = self._node
        machine = node.protocol.makers().make_receiver(host, node.config, node.id, node.group)
        self._host, self.machine = host, cast(StreamReceiver, machine)
        self.machine.accept_streams(self._accept)
        host.run(machine, lambda event: None)

    def _accept(self, offer: Offer) -> StreamSink:
        self._waiting[offer.sender, offer.object_id] = None
        return _Output(self, offer.sender, offer.object_id)

    def write(self, data: bytes) -> bool:
        """Pass bytes on; return whether the stream is to wait."""
        assert self.out is not None
        self.octets += len(data)
        self.out.write(bytes(data))
        return self.out.waiting > _ROOM

    def resume(self) -> None:
        """Go on with streams that wait, and stop when the last one has ended and is written."""
        assert self.machine is not None
        assert self._host is not None
        for node, object_id in list(self._waiting):
            self._host.call(self.machine.resume_stream, node, object_id)
        self._check_end()

    def end(self, key: tuple[int, int]) -> None:
        """Note that a stream has ended."""
        self._waiting.pop(key, None)
        self.ended += 1
        self._check_end()

    def _check_end(self) -> None:
        if self.finished():
            self._stop()

    def finished(self) -> bool:
        """Whether the wanted number of streams has ended and everything is written."""
        return self._count is not None and self.ended >= self._count and self.out is not None and not self.out.waiting
