"""Streams: bytes without an end that is known beforehand, with marks where messages begin. For protocols that have them.

A machine that sends streams has the methods of `StreamSender`, one that receives them those of `StreamReceiver`; applications
call them through `Host.call`. They stand beside the objects of `protocols.machine`: a stream has an object id, and its events
are those of objects (`ObjectOpened`, `ObjectReceived`, `ObjectAborted`) besides the two of this module.

Memory is bounded at both ends by the buffer of the sender. `write_stream` takes what fits and answers how much; the event
`StreamVacant` says that there is room again. A receiving application that is slow answers `StreamSink.write` with a true
value and calls `resume_stream` later; if it is slower than the sender for longer than the buffer lasts, bytes are lost to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from protocols.events import Event
from protocols.machine import Offer

__all__ = [
    "FLUSHES",
    "Flush",
    "StreamAcceptor",
    "StreamBroken",
    "StreamReceiver",
    "StreamSender",
    "StreamSettings",
    "StreamSink",
    "StreamVacant",
]

Flush: TypeAlias = Literal["none", "passive", "active"]
"""What becomes of the last bytes written, which do not fill a segment.

none: they wait for more; passive: they are sent; active: they are sent, and a message states that nothing follows, so that
they request what they missed at once.
"""
FLUSHES: tuple[Flush, ...] = ("none", "passive", "active")


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """How a stream is sent: bytes of content kept for repairs, out-of-band information, and the mode.

    With `push` a stream never makes the application wait: the oldest bytes are dropped, sent or not.
    """

    buffer: int = 1 << 20
    info: bytes = b""
    push: bool = False


@dataclass(frozen=True, slots=True)
class StreamVacant(Event):
    """Sender: a stream that did not take all bytes of a write has room again."""

    object_id: int


@dataclass(frozen=True, slots=True)
class StreamBroken(Event):
    """Receiver: bytes of a stream are lost for good (`StreamSink.skip`)."""

    sender: int
    object_id: int


class StreamSink(Protocol):
    """The application's end of a received stream. Any method may raise OSError, which ends the stream."""

    @property
    def by_message(self) -> bool:
        """Whether bytes are skipped until a message begins, where a stream is joined in the middle and where some were lost."""

    def write(self, data: bytes, starts: Sequence[int]) -> object:
        """Take the bytes that follow; messages begin at the offsets `starts` in them, as far as the sender marked it.

        A true result means "full": the machine keeps what follows until `resume_stream`.
        """

    def skip(self) -> None:
        """Note that bytes are lost here; with `by_message` those that follow begin a message."""

    def commit(self, info: bytes) -> None:
        """End the stream, which the sender has closed; `info` is its out-of-band information."""

    def abort(self) -> None:
        """End a stream that has no end."""


StreamAcceptor: TypeAlias = Callable[[Offer], StreamSink | None]
"""Returns the sink of a stream, or None when it is not wanted; the offer's size is that of the sender's buffer."""


@runtime_checkable
class StreamSender(Protocol):
    """A machine that sends streams."""

    def open_stream(self, settings: StreamSettings, now: float) -> int:
        """Begin a stream and return its object id."""

    def write_stream(self, object_id: int, data: bytes, starts: Sequence[int], now: float) -> int:
        """Take bytes, with messages that begin at the offsets `starts`, in order; return how many bytes were taken."""

    def flush_stream(self, object_id: int, mode: Flush, now: float) -> None:
        """Send the bytes that do not fill a segment."""

    def close_stream(self, object_id: int, graceful: bool, now: float) -> None:
        """End the stream: gracefully behind its last byte, which is repaired as any other, or at once and for good."""


@runtime_checkable
class StreamReceiver(Protocol):
    """A machine that receives streams."""

    def accept_streams(self, acceptor: StreamAcceptor) -> None:
        """Offer streams to the application, before `start`; without it streams are ignored."""

    def resume_stream(self, node: int, object_id: int, now: float) -> None:
        """Go on with a stream of the sender `node` whose sink was full."""
