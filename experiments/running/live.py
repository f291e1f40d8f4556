"""Run one program on a network interface, for `mcastlab send` and `mcastlab recv`."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from math import inf
from typing import Protocol

from emu.host import Loop, UdpHost, new_loop
from emu.udp import socket_address_of
from protocols.errors import UsageError
from protocols.hosting import PortsHost
from protocols.machine import Codec
from protocols.rng import Rng

__all__ = ["Ending", "Live", "Player", "live"]


class Player(Protocol):
    """The methods of a program that `Live.play` calls."""

    def start(self, host: PortsHost) -> None:
        """Make the machine and run it on the host."""

    def finished(self) -> bool:
        """Whether the program has finished."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why `play` ended ("finished", "interrupted" or "timeout"), and after how many seconds."""

    word: str
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or a termination signal ended it."""
        return self.word == "interrupted"


class Live:
    """An event loop and a UDP host on an interface; `live` makes and closes both."""

    def __init__(self, loop: Loop, host: UdpHost) -> None:
        self.loop = loop
        self.host = host
        self._word = ""

    @property
    def address_number(self) -> int:
        """The interface's IPv4 address as a 32-bit number, from which node ids are derived."""
        return int(IPv4Address(self.host.address))

    def stop(self, word: str = "finished") -> None:
        """End `play` with the reason `word`; the first call decides."""
        self._word = self._word or word
        self.loop.stop()

    def every(self, period: float, action: Callable[[], None]) -> None:
        """Call `action` now and every `period` seconds."""

        def again() -> None:
            action()
            self.loop.call_later(period, again)

        again()

    def play(self, program: Player, timeout: float = inf) -> Ending:
        """Run the program until `stop`, SIGINT, SIGTERM, or `timeout` seconds have passed."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self.loop.add_signal_handler(number, self.stop, "interrupted")
        self.loop.call_soon(program.start, self.host)
        self.loop.run(timeout)
        return Ending(self._word or "timeout", self.host.now)


@contextmanager
def live(codec: Codec, group: str, interface: str | None, ttl: int, key: int) -> Iterator[Live]:
    """Open a UDP host for the multicast group `group` ("ADDR:PORT").

    `interface` is a device or an IPv4 address (None: the system's multicast route), `key` that of the random stream. UsageError
    for an address that is not multicast.
    """
    address, port = socket_address_of(group)
    if not IPv4Address(address).is_multicast:
        raise UsageError(
            f"--group: value {group!r} is not allowed; a multicast address (224.0.0.0 to 239.255.255.255) and a port"
        )
    loop = new_loop()
    try:
        host = UdpHost(loop, codec, interface=interface, port=port, ttl=ttl, rng=Rng(key))
        try:
            yield Live(loop, host)
        finally:
            host.close()
    finally:
        loop.close()
