"""The part "emu" of benchmarks.connections: messages over a connection of two processes, by the kernel's TCP on loopback."""

import os
import socket
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from emu.host import UdpHost
from emu.loop import new_loop
from protocols.connection import Connection, Reason
from protocols.errors import WireError
from protocols.events import Event
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.rng import Rng

__all__ = ["measure_emu"]

_ADDRESS = "127.0.0.1"
_HEADER = 8


@dataclass(frozen=True, slots=True)
class _Numbered(Message):
    """A number, and content."""

    kind: ClassVar[str] = "numbered"
    number: int
    content: bytes


class _Codec:
    """Eight bytes of number, then the content."""

    def encode(self, message: Message) -> bytes:
        assert isinstance(message, _Numbered)
        return message.number.to_bytes(_HEADER, "big") + message.content

    def decode(self, data: bytes) -> Message:
        if len(data) < _HEADER:
            raise WireError(f"{len(data)} bytes are no number")
        return _Numbered(int.from_bytes(data[:_HEADER], "big"), data[_HEADER:])


class _Source(Machine):
    """Connects, sends `count` messages of `size` bytes and hangs up."""

    def __init__(self, ports: Ports, peer: Address, count: int, size: int) -> None:
        super().__init__(ports)
        self._peer, self._count, self._size = peer, count, size
        self._content = bytes(size - _HEADER)
        self._sent = 0
        self.is_over = False

    def start(self, now: float) -> None:
        self.ports.connect(self._peer)

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        raise AssertionError("nothing is sent this way")

    def wake(self, now: float) -> None:
        """Do nothing: no deadline is set."""

    def opened(self, connection: Connection, now: float) -> None:
        self.drained(connection, now)

    def drained(self, connection: Connection, now: float) -> None:
        while self._sent < self._count:
            self._sent += 1
            if self.ports.send(Packet(_Numbered(self._sent, self._content), self._size, connection)):
                return
        self.ports.hang_up(connection)

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        self.is_over = True

    def counts(self) -> dict[str, int]:
        return {"sent": self._sent}


class _Drain(Machine):
    """Listens and checks the numbers of one connection; notes the processor time that it took."""

    def __init__(self, ports: Ports) -> None:
        super().__init__(ports)
        self.received = 0
        self.began = self.used = 0.0
        self.is_over = False

    def start(self, now: float) -> None:
        self.ports.listen()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        assert isinstance(message, _Numbered)
        self.received += 1
        assert message.number == self.received

    def wake(self, now: float) -> None:
        """Do nothing: no deadline is set."""

    def opened(self, connection: Connection, now: float) -> None:
        self.began = time.process_time()

    def closed(self, connection: Connection, reason: Reason, now: float) -> None:
        self.used = time.process_time() - self.began
        self.is_over = True

    def counts(self) -> dict[str, int]:
        return {"received": self.received}


def measure_emu(repeats: int = 3) -> dict[str, Any]:
    """Return the messages of 100 and 1024 bytes per second, and the Mbit/s of 64 kB ones.

    Seconds are those of the processor of the end that needs more of it, so that each end has one core.
    """
    return {
        "messages_per_s": {str(size): round(_rate(100_000, size, repeats)) for size in (100, 1024)},
        "mbit_s": round(_rate(8_000, 65_536, repeats) * 65_536 * 8 / 1e6),
    }


def _rate(count: int, size: int, repeats: int) -> float:
    """Return the messages per second of processor time, the best of some times."""
    return count / min(_seconds(count, size) for _ in range(repeats))


def _seconds(count: int, size: int) -> float:
    """Carry messages from a process to this one; return the processor time in seconds of the slower end."""
    with socket.socket() as probe:
        probe.bind((_ADDRESS, 0))
        port = int(probe.getsockname()[1])
    loop = new_loop()
    host = UdpHost(loop, _Codec(), interface=_ADDRESS, port=port, rng=Rng(1))
    drain = _Drain(host)
    host.run(drain, _ignore)
    child = os.fork()
    if child == 0:
        try:
            _send((_ADDRESS, port), count, size)
        finally:
            os._exit(0)
    _run_until_over(loop, drain)
    host.close()
    loop.close()
    _, status, used = os.wait4(child, 0)
    assert status == 0
    assert drain.received == count
    return max(drain.used, used.ru_utime + used.ru_stime)


def _send(peer: Address, count: int, size: int) -> None:
    loop = new_loop()
    host = UdpHost(loop, _Codec(), interface=_ADDRESS, port=0, rng=Rng(2))
    source = _Source(host, peer, count, size)
    host.run(source, _ignore)
    _run_until_over(loop, source)


def _run_until_over(loop: Any, machine: Any) -> None:
    def look() -> None:
        if machine.is_over:
            loop.stop()
        else:
            loop.call_later(0.01, look)

    loop.call_soon(look)
    loop.run(60.0)
    assert machine.is_over


def _ignore(event: Event) -> None:
    """Ignore an event."""
