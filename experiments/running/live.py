"""Run one program on a network interface, for `mcastlab send` and `mcastlab recv`."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from math import inf
from typing import Protocol

from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.udp import socket_address_of
from protocols.errors import UsageError
from protocols.hosting import PortsHost
from protocols.machine import Codec
from protocols.rng import Rng

__all__ = ["FINISHED", "Ending", "Live", "Player", "live"]

FINISHED, INTERRUPTED = "finished", "interrupted"
"""Words of an ending that the program itself decided, and of one by a signal."""
WAIT = 0.02
"""Seconds between two looks of `Live.wait`."""
LAST = 0.5
"""Seconds for what is not done when a signal comes."""


class Player(Protocol):
    """The methods of a program that `Live.play` calls."""

    def start(self, host: PortsHost) -> None:
        """Make the machine and run it on the host."""

    def finished(self) -> bool:
        """Whether the program has finished."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why `play` ended ("finished", "interrupted", "timeout" or a word given to `stop`), and after how many seconds."""

    word: str
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or a termination signal ended it."""
        return self.word == INTERRUPTED


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

    def stop(self, word: str = FINISHED) -> None:
        """End `play` with the reason `word`; the first call decides."""
        self._word = self._word or word
        self.loop.stop()

    def every(self, period: float, action: Callable[[], None]) -> None:
        """Call `action` now and every `period` seconds, until `play` ends."""

        def again() -> None:
            if not self._word:
                action()
                self.loop.call_later(period, again)

        again()

    def play(self, program: Player, timeout: float = inf) -> Ending:
        """Run the program until `stop`, SIGINT, SIGTERM, SIGHUP, or `timeout` seconds have passed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # A program started by nohup(1) goes on when its terminal is closed.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self.loop.add_signal_handler(number, self.stop, INTERRUPTED)
        self.loop.call_soon(program.start, self.host)
        self.loop.run(timeout)
        self._word = self._word or "timeout"
        return Ending(self._word, self.host.now)

    def wait(self, done: Callable[[], bool], seconds: float = inf) -> None:
        """After `play`, wait until `done()`, but no longer than `seconds`, nor than a moment after a signal."""
        self.host.stop()

        def look() -> None:
            if done():
                self.loop.stop()
            else:
                self.loop.call_later(WAIT, look)

        if self._word == INTERRUPTED:
            seconds = min(seconds, LAST)
        if seconds > 0:
            self.loop.call_soon(look)
            self.loop.run(seconds)


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
