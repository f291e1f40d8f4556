"""Messages as objects of NORM: where they are read from when they are sent, and where they are stored as they arrive."""

from collections.abc import Callable

from protocols.errors import WireError
from protocols.fjm2.pool import Container
from protocols.jms import JmsMessage, read_message

__all__ = ["MessageSink", "MessageSource"]


class MessageSource:
    """The source of a message, in a container; one whose body has a size only has no bytes."""

    __slots__ = ("_memory", "size")

    def __init__(self, message: JmsMessage, head: bytes, container: Container) -> None:
        self.size = container.size
        self._memory: bytearray | None = None
        if message.body is not None:
            memory = self._memory = container.memory
            memory[: len(head)] = head
            memory[len(head) : self.size] = message.body

    def read(self, offset: int, n: int) -> bytes | None:
        """Return `n` bytes from `offset`."""
        return None if self._memory is None else bytes(self._memory[offset : offset + n])


class MessageSink:
    """The sink of a message: its bytes in a container, unless the message itself is known."""

    __slots__ = ("_origin", "carried", "container", "message")

    def __init__(self, container: Container, carried: JmsMessage | None, origin: Callable[[], tuple[int, int]]) -> None:
        self.container = container
        self.carried = carried
        self._origin = origin
        self.message: JmsMessage | None = None

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one outside the message."""
        end = offset + len(data)
        if end > self.container.size:
            raise OSError(f"a segment at {offset} of a message of {self.container.size} bytes")
        self.container.memory[offset:end] = data

    def read(self, offset: int, n: int) -> bytes:
        """Return stored bytes."""
        return bytes(self.container.memory[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """Read the message. OSError for an object that is none."""
        del info
        if self.carried is not None:
            self.message = self.carried
            return
        try:
            self.message = read_message(bytes(self.container.memory[: self.container.size]), *self._origin())
        except WireError as error:
            raise OSError(f"no message: {error}") from error

    def abort(self) -> None:
        """Store nothing more."""
