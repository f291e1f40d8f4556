"""Positive acknowledgement, and commands of the application. For protocols that have them.

A sender that can ask receivers to confirm what they have, as an `AckSender`, has the methods of that class, and a receiver that
takes part in it those of `AckReceiver`; applications call them through `Host.call`. The outcome is reported by the events
`NodeAcknowledged`, `NodeUnacknowledged` and `AcksCompleted`, that of commands by `CommandSent` and `CommandReceived`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

__all__ = ["AckAnswerer", "AckReceiver", "AckRequest", "AckSender", "AwaitedReceiver", "CommandSender"]


@dataclass(frozen=True, slots=True)
class AckRequest:
    """Who is to confirm what, and how.

    `nodes` are the ids of the receivers that have to confirm. `everybody` asks all receivers, too: those that answer or were
    heard before have to confirm then, and if `expected` is given, asking ends as soon as so many have confirmed. `content` is
    application data that receivers are given before they confirm. With `replaces_flush` the end of transmission is not
    announced besides: `FlushCompleted` follows `AcksCompleted` at once.
    """

    nodes: tuple[int, ...] = ()
    everybody: bool = False
    expected: int = 0
    content: bytes = b""
    replaces_flush: bool = False


AckAnswerer: TypeAlias = Callable[[int, bytes], bytes | None]
"""Is given the sender's node id and the content of its request; returns the content of the ACK, or None to send none yet."""


@runtime_checkable
class AckSender(Protocol):
    """The methods of a sender whose receivers confirm what they have."""

    def require_acks(self, object_id: int, request: AckRequest, now: float) -> None:
        """Ask receivers to confirm everything through this object, or through what was written of this stream so far.

        Requests are served one after the other. UsageError for an object that is not known, or for what does not fit a packet.
        """

    def cancel_acks(self, object_id: int, now: float) -> None:
        """Await no more ACKs for this object; nodes that have not confirmed count as missing."""


@runtime_checkable
class AckReceiver(Protocol):
    """The method of a receiver that confirms what it has."""

    def answer_acks(self, answer: AckAnswerer) -> None:
        """Ask the application before a request with content is confirmed; without it they are confirmed with no content."""


@runtime_checkable
class AwaitedReceiver(Protocol):
    """The method of a receiver that can tell when its program may end."""

    def is_awaited(self, now: float, since: float) -> bool:
        """Return whether a sender may still ask for an ACK of what is complete `since` that time. Not through `Host.call`."""


@runtime_checkable
class CommandSender(Protocol):
    """The methods of a sender of commands, which are short, out of band, and not repaired."""

    def send_command(self, content: bytes, copies: int, now: float) -> int:
        """Send a command `copies` times, 0: as often as the end of transmission is announced; return its id.

        Commands are sent one after the other. UsageError for one that does not fit a packet.
        """

    def cancel_command(self, command_id: int, now: float) -> bool:
        """Send no more copies; return False if all have been sent."""
