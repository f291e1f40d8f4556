"""Run one program on a network interface, for `mcastlab send` and `mcastlab recv`."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Protocol

from emu.addresses import ip_of
from emu.host import UdpHost
from emu.loop import Loop, new_loop
from emu.place import Place
from protocols.hosting import PortsHost
from protocols.machine import Codec
from protocols.rng import Rng, key_of

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
        """A 32-bit number from which node ids are derived: the host's IPv4 address, or a hash of its IPv6 address."""
        ip = ip_of(self.host.address)
        return int(ip) if ip.version == 4 else key_of(int.from_bytes(ip.packed)) % 0xFFFFFFFE + 1

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
def live(codec: Codec, place: Place, key: int) -> Iterator[Live]:
    """Open a UDP host where a session takes place; `key` is that of its random stream. Raises UsageError."""
    loop = new_loop()
    try:
        host = UdpHost(loop, codec, interface=place.address, port=place.port, options=place.options, rng=Rng(key))
        try:
            yield Live(loop, host)
        finally:
            host.close()
    finally:
        loop.close()
