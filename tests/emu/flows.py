"""Programs for tests of links: one fills a connection for as long as it lives, the other measures what arrives."""

from typing import Any

from protocols.connection import Connection
from protocols.events import Event
from protocols.hosting import Host
from protocols.machine import Address, Machine, Message
from tests.emu.number_protocol import NumberMessage
from tests.emu.talker import Talker

__all__ = ["Filling", "Measuring"]


def fill(talker: Talker, connection: Connection) -> None:
    """Send until the connection is full."""
    while not talker.say(connection, 1, size=10_000):
        pass


class Filling:
    """Connects with `peer` and always has something to send."""

    def __init__(self, peer: Address) -> None:
        self._peer = peer

    def start(self, host: Host) -> None:
        """Run the machine."""
        host.run(Talker(host, self._peer, on_open=fill, on_drain=fill), _ignore)  # type: ignore[arg-type]

    def finished(self) -> bool:
        """Never."""
        return False

    def result(self) -> dict[str, Any]:
        """Nothing."""
        return {}


class _Meter(Machine):
    """Listens, and counts bytes."""

    def __init__(self, host: Any) -> None:
        super().__init__(host)
        self.octets = 0
        self.last = 0.0

    def start(self, now: float) -> None:
        """Listen."""
        self.ports.listen()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count the frame of a number."""
        assert isinstance(message, NumberMessage)
        self.octets += message.size + 4
        self.last = now

    def wake(self, now: float) -> None:
        """There is nothing to do."""

    def counts(self) -> dict[str, int]:
        """Bytes received."""
        return {"octets": self.octets}


class Measuring:
    """Receives a flow until `end` seconds, and counts from its start: data that waited for a repair arrive in a burst."""

    def __init__(self, end: float) -> None:
        self._end = end
        self._meter: _Meter | None = None

    def start(self, host: Host) -> None:
        """Run the machine."""
        self._meter = _Meter(host)
        host.run(self._meter, _ignore)

    def finished(self) -> bool:
        """Whether the time is over."""
        return self._meter is not None and self._meter.last >= self._end

    def result(self) -> dict[str, Any]:
        """Goodput in bytes per second."""
        assert self._meter is not None
        return {"goodput": self._meter.octets / self._meter.last}


def _ignore(event: Event) -> None:
    """Ignore an event."""
