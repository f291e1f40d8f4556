"""A machine for tests of connections: it records its inputs, and calls a function of the test in each."""

from collections.abc import Callable
from typing import TypeAlias

from protocols.connection import Connection, Reason
from protocols.machine import Address, Machine, Message, Packet, Ports
from tests.emu.number_protocol import NumberMessage

__all__ = ["Talker"]

On: TypeAlias = Callable[["Talker", Connection], None] | None


class Talker(Machine):
    """Listens if wanted, connects with `peers`, and records what happens on each connection in order."""

    def __init__(self, ports: Ports, *peers: Address, listening: bool = False, on_open: On = None, on_drain: On = None) -> None:
        super().__init__(ports)
        self._peers, self._listening, self._on_open, self._on_drain = peers, listening, on_open, on_drain
        self.on_message: On = None
        self.made: list[Connection] = []
        self.open: list[Connection] = []
        self.log: dict[Connection, list[int | str]] = {}
        """Per connection: "opened", numbers received, "drained", the reason of its end."""
        self.refuses: list[Connection] = []

    def start(self, now: float) -> None:
        """Listen and connect."""
        if self._listening:
            self.ports.listen()
        for peer in self._peers:
            self.made.append(self.ports.connect(peer))

    def say(self, connection: Connection, *numbers: int, size: int = 100) -> bool:
        """Send numbers; return whether the connection is full."""
        return [bool(self.ports.send(Packet(NumberMessage(n, size), size, connection))) for n in numbers][-1]

    def opened(self, connection: Connection, now: float) -> None:
        """Record it."""
        assert connection not in self.log
        self.log[connection] = ["opened"]
        self.open.append(connection)
        if self._on_open is not None:
            self._on_open(self, connection)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Record the number."""
        assert isinstance(message, NumberMessage)
        assert isinstance(source, Connection)
        assert source is to
        self.log[source].append(message.number)
        if self.on_message is not None:
            self.on_message(self, source)

    def drained(self, connection: Connection, now: float) -> None:
        """Record it."""
        self.log[connection].append("drained")
        if self._on_drain is not None:
            self._on_drain(self, connection)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        """Record the reason."""
        self.log.setdefault(connection, []).append(reason)
        if connection in self.open:
            self.open.remove(connection)

    def wake(self, now: float) -> None:
        """There is nothing to do."""

    def counts(self) -> dict[str, int]:
        """Messages received."""
        return {"received": sum(isinstance(item, int) for log in self.log.values() for item in log)}
