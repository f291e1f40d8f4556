"""Messages as objects of NORM: where they are read from when they are sent, and where they are stored as they arrive."""

from collections.abc import Callable
from typing import TypeAlias

from protocols.errors import WireError
from protocols.fjm2.pool import Container
from protocols.jms import JmsMessage, read_message

__all__ = ["KnownMessage", "MessageSink", "MessageSource"]

OriginOf: TypeAlias = Callable[[int], tuple[int, int]]


class MessageSource:
    """The source of a message, in a container; one whose body has a size only has no bytes."""

    __slots__ = ("_memory", "size")

    def __init__(self, message: JmsMessage, head: bytes, container: Container) -> None:
        self.size = container.size
        self._memory: memoryview | None = None
        if message.body is not None:
            memory = self._memory = container.memory
            memory[: len(head)] = head
            memory[len(head) : self.size] = message.body

    @property
    def has_bytes(self) -> bool:
        """Whether the content of the message is known, and not only its size."""
        return self._memory is not None

    def read(self, offset: int, n: int) -> bytes | None:
        """Return `n` bytes from `offset`."""
        return None if self._memory is None else bytes(self._memory[offset : offset + n])


class MessageSink(Container):
    """A container that is the sink of a message."""

    __slots__ = ("_origin", "message")

    def __init__(self, octets: int) -> None:
        super().__init__(octets)
        self.message: JmsMessage | None = None
        """The message, when it is complete."""
        self._origin: tuple[int, OriginOf] | None = None

    def begin(self, publisher: int, origin_of: OriginOf) -> None:
        """Become the sink of a message; `origin_of` returns node and instance of its publisher."""
        self._origin = publisher, origin_of

    def end(self) -> None:
        """Forget the message."""
        self.message = self._origin = None

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Store a segment. OSError for one outside the message."""
        end = offset + len(data)
        if end > self.size:
            raise OSError(f"a segment at {offset} of a message of {self.size} bytes")
        self.memory[offset:end] = data

    def read(self, offset: int, n: int) -> bytes:
        """Return stored bytes."""
        return bytes(self.memory[offset : offset + n])

    def commit(self, info: bytes) -> None:
        """Read the message. OSError for an object that is none."""
        del info
        if self._origin is None:
            return
        publisher, origin_of = self._origin
        try:
            self.message = read_message(self.memory[: self.size], *origin_of(publisher))
        except WireError as error:
            raise OSError(f"no message: {error}") from error

    def abort(self) -> None:
        """Store nothing more."""


class KnownMessage(MessageSink):
    """The container, for all subscribers, of a message without bytes that comes with its offer, as in a simulation."""

    __slots__ = ()

    def __init__(self, message: JmsMessage, container: Container) -> None:
        super().__init__(container.octets)
        self.size = container.size
        self.message = message

    @property
    def is_allocated(self) -> bool:
        """False: there is no memory that could be used for another message."""
        return False

    def begin(self, publisher: int, origin_of: OriginOf) -> None:
        """Do nothing: the message is known."""

    def end(self) -> None:
        """Do nothing: others still receive the message."""
