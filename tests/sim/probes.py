"""Small machines that send what a test scripts and record what they receive."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from protocols.events import Event, ObjectSent
from protocols.machine import Address, Group, Machine, Message, Packet, Ports
from sim.host import SimHost
from sim.network import Network

__all__ = ["GROUP", "Note", "Probe", "probe_on"]

GROUP = Group("239.0.0.1:1")


@dataclass(slots=True)
class Note(Message):
    """A numbered message; content when it has an identity."""

    kind: ClassVar[str] = "note"
    number: int
    identity: int | None = None


class Probe(Machine):
    """Sends `script` = [(time, number, size, to, identity)], and records `heard` = [(time, number, source)]."""

    __slots__ = ("heard", "listen", "on_receive", "script", "woken")

    def __init__(self, ports: Ports, script: Sequence[tuple[float, int, int, Address, int | None]] = ()) -> None:
        super().__init__(ports)
        self.script = sorted(script, key=lambda line: line[0])
        self.heard: list[tuple[float, int, Address]] = []
        self.woken: list[float] = []
        self.listen = True
        self.on_receive: Callable[[Note, float], None] | None = None

    def start(self, now: float) -> None:
        """Join, and wait for the first line of the script."""
        if self.listen:
            self.ports.join(GROUP)
        self._next()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Record it."""
        assert isinstance(message, Note)
        self.heard.append((now, message.number, source))
        if self.on_receive is not None:
            self.on_receive(message, now)

    def wake(self, now: float) -> None:
        """Send what is due."""
        self.woken.append(now)
        while self.script and self.script[0][0] <= now:
            _, number, size, to, identity = self.script.pop(0)
            self.say(number, size, to, identity)
        self._next()

    def say(self, number: int, size: int = 100, to: Address = GROUP, identity: int | None = None) -> None:
        """Send now."""
        self.ports.send(Packet(Note(number, identity), size, to))

    def say_all(self, numbers: Iterable[int], size: int = 100) -> None:
        """Send content of these numbers and identities now."""
        for number in numbers:
            self.say(number, size, identity=number)

    def shout(self, number: int, now: float) -> None:
        """For `Host.call`: send, and notify the application."""
        self.say(number)
        self.ports.notify(ObjectSent(number))

    def expect(self, when: float, now: float) -> None:
        """For `Host.call`: set the deadline to `when`."""
        self._due(when)

    def counts(self) -> dict[str, int]:
        """Return how many messages were received."""
        return {"heard": len(self.heard)}

    def _next(self) -> None:
        self._due(self.script[0][0] if self.script else inf)


def probe_on(
    network: Network,
    name: str,
    script: Sequence[tuple[float, int, int, Address, int | None]] = (),
    on_event: Callable[[Event], None] = lambda event: None,
    *,
    listen: bool = True,
) -> Probe:
    """A running probe on the host of this name."""
    host: SimHost = network.host(name)
    probe = Probe(host, script)
    probe.listen = listen
    host.run(probe, on_event)
    return probe
