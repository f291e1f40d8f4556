"""Callers that break a rule of connections each."""

from typing import Any

from experiments.contract.conversation import Caller, Line
from protocols.connection import Connection
from protocols.machine import Packet

__all__ = ["BROKEN_CALLERS", "Caller"]


class SendsWhileConnecting(Caller):
    """Send before the connection is established."""

    __slots__ = ()

    def start(self, now: float) -> None:
        """Connect and send."""
        super().start(now)
        self.ports.send(Packet(Line(0, 8), 8, self.connection))


class SendsAfterClosed(Caller):
    """Send on a connection that is closed."""

    __slots__ = ()

    def closed(self, connection: Connection, reason: Any, now: float) -> None:
        """Send a last line."""
        self.ports.send(Packet(Line(0, 8), 8, connection))


class SendsAfterHangingUp(Caller):
    """Send on a connection after hanging up."""

    __slots__ = ()

    def receive(self, message: Any, source: Any, to: Any, now: float) -> None:
        """Send a last line after the last."""
        super().receive(message, source, to, now)
        if len(self.heard[to]) == self.lines:
            self.ports.send(Packet(Line(0, 8), 8, to))


class HangsUpTwice(Caller):
    """Hang up again when the connection is closed."""

    __slots__ = ()

    def closed(self, connection: Connection, reason: Any, now: float) -> None:
        """Hang up."""
        self.ports.hang_up(connection)


class IgnoresFull(Caller):
    """Go on sending when the connection is full."""

    __slots__ = ()

    def _send(self, connection: Connection) -> None:
        while self.waiting[connection]:
            self.ports.send(Packet(self.waiting[connection].popleft(), self.size, connection))


BROKEN_CALLERS: list[tuple[type[Caller], str]] = [
    (SendsWhileConnecting, "sends on .* which is connecting"),
    (SendsAfterClosed, "sends on .* which is closed"),
    (SendsAfterHangingUp, "sends on .* which is hung up"),
    (HangsUpTwice, "hangs up .* which is closed"),
    (IgnoresFull, "sends on .* which is full"),
]
"""Callers, and how the fault is reported."""
