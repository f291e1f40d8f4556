"""A minimal protocol for tests of hosts: a sender sends numbers, a receiver records what it receives."""

import struct
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from protocols.errors import WireError
from protocols.hosting import Host
from protocols.machine import Address, Codec, Event, Group, Machine, Message, Packet, Ports

__all__ = [
    "GROUP",
    "PORT",
    "NumberMessage",
    "AllSent",
    "ReceivingProgram",
    "NumberReceiver",
    "NumberCodec",
    "NumberSender",
    "QuiescentReceiver",
    "SendingProgram",
]

PORT = 7001
GROUP = Group(f"239.200.1.1:{PORT}")
_HEAD = struct.Struct("!cQ")


@dataclass(slots=True)
class NumberMessage(Message):
    """A number, padded to `size` bytes."""

    kind: ClassVar[str] = "counted"
    number: int
    size: int


@dataclass(frozen=True, slots=True)
class AllSent(Event):
    """The sender has sent everything."""


class NumberCodec(Codec):
    """Encodes numbers; refuses everything that does not begin with "n"."""

    def encode(self, message: Message) -> bytes:
        """Return `size` bytes."""
        assert isinstance(message, NumberMessage)
        return _HEAD.pack(b"n", message.number) + bytes(message.size - _HEAD.size)

    def decode(self, data: bytes) -> Message:
        """Raise WireError for other data."""
        if len(data) < _HEAD.size or data[:1] != b"n":
            raise WireError("not a number")
        return NumberMessage(_HEAD.unpack_from(data)[1], len(data))


class NumberSender(Machine):
    """Sends `total` packets, `burst` at a time, at `rate` packets per second, the first after 10 ms."""

    def __init__(self, ports: Ports, total: int, rate: float, burst: int = 1, size: int = 1400, to: Address = GROUP) -> None:
        super().__init__(ports)
        self.total, self.rate, self.burst, self.size, self.to = total, rate, burst, size, to
        self.sent = self.fulls = 0
        self.received: list[int] = []
        self._next = inf

    def start(self, now: float) -> None:
        """Join the group, so that packets of others and of itself could arrive."""
        self.ports.join(GROUP)
        self._next = now + 0.01
        self._due(self._next)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Record the number."""
        assert isinstance(message, NumberMessage)
        self.received.append(message.number)

    def wake(self, now: float) -> None:
        """Send all that is due, in whole bursts."""
        while self._next <= now and self.sent < self.total:
            full = False
            for _ in range(min(self.burst, self.total - self.sent)):
                full = bool(self.ports.send(Packet(NumberMessage(self.sent, self.size), self.size, self.to))) or full
                self.sent += 1
            self._next += self.burst / self.rate
            if full:
                self.fulls += 1
                self._due(inf)
                return
        self._go_on()

    def resume(self, now: float) -> None:
        """Continue at the same rate; the time of the pause is not made up."""
        self._next = now
        self._go_on()

    def _go_on(self) -> None:
        if self.sent < self.total:
            self._due(self._next)
        else:
            self._due(inf)
            self.ports.notify(AllSent())

    def counts(self) -> dict[str, int]:
        """Numbers sent, and how often the host was full."""
        return {"sent": self.sent, "fulls": self.fulls}


class NumberReceiver(Machine):
    """Records every number with its time, source and destination."""

    def __init__(self, ports: Ports, group: Group | None = GROUP) -> None:
        super().__init__(ports)
        self._group = group
        self.numbers: list[int] = []
        self.times: list[float] = []
        self.sources: list[Address] = []
        self.destinations: list[Address] = []

    def start(self, now: float) -> None:
        """Join the group, if there is one."""
        if self._group is not None:
            self.ports.join(self._group)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Record the number."""
        assert isinstance(message, NumberMessage)
        self.numbers.append(message.number)
        self.times.append(now)
        self.sources.append(source)
        self.destinations.append(to)

    def wake(self, now: float) -> None:
        """There is nothing to do."""

    def counts(self) -> dict[str, int]:
        """Numbers received."""
        return {"received": len(self.numbers)}


class SendingProgram:
    """A program that sends numbers."""

    def __init__(self, total: int, rate: float, burst: int = 1, size: int = 1400) -> None:
        self._wanted = (total, rate, burst, size)
        self._done = False
        self._machine: NumberSender | None = None

    def start(self, host: Host) -> None:
        """Run a sender."""
        self._machine = NumberSender(host, *self._wanted)  # type: ignore[arg-type]
        host.run(self._machine, self._on_event)

    def _on_event(self, event: Event) -> None:
        self._done = isinstance(event, AllSent)

    def finished(self) -> bool:
        """Whether everything was sent."""
        return self._done

    def result(self) -> dict[str, Any]:
        """Numbers sent, and numbers received, which should be none."""
        assert self._machine is not None
        return {**self._machine.counts(), "received": len(self._machine.received)}


class ReceivingProgram:
    """A program that receives; it never finishes."""

    def __init__(self) -> None:
        self._machine: NumberReceiver | None = None

    def start(self, host: Host) -> None:
        """Run a receiver."""
        self._machine = NumberReceiver(host)  # type: ignore[arg-type]
        host.run(self._machine, lambda event: None)

    def finished(self) -> bool:
        """Never."""
        return False

    def result(self) -> dict[str, Any]:
        """Numbers received, and seconds from the first to the last."""
        assert self._machine is not None
        times = self._machine.times
        return {"numbers": self._machine.numbers, "seconds": times[-1] - times[0] if times else 0.0}


class QuiescentReceiver(ReceivingProgram):
    """A receiver that finishes when nothing has arrived for a while; its result has the times of arrival, too."""

    def __init__(self) -> None:
        super().__init__()
        self._last_count = self._idle_polls = 0

    def finished(self) -> bool:
        """Whether nothing arrived in the last 25 polls (20 ms each), after something did."""
        assert self._machine is not None
        received = len(self._machine.numbers)
        self._idle_polls = self._idle_polls + 1 if received == self._last_count else 0
        self._last_count = received
        return received > 0 and self._idle_polls >= 25

    def result(self) -> dict[str, Any]:
        """That of a receiver, and `times`."""
        assert self._machine is not None
        return {**super().result(), "times": self._machine.times}
