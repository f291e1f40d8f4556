"""A foreign program as a node: what it is given, and what it has to tell.

A guest has no machine of ours and brings its own sockets. It lives in the process of its node, or starts processes from there;
all of them end with the node.
"""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from emu.udp import address_of
from protocols.errors import UsageError
from protocols.machine import Content

__all__ = ["ForeignProgram", "ForeignContext", "write_content"]

_CHUNK = 1 << 20


@dataclass(slots=True)
class ForeignContext:
    """Where a guest sits: its host's name, address and device, a folder of its own, and the time of the run."""

    loop: asyncio.AbstractEventLoop
    name: str
    address: str
    folder: Path
    ready: Callable[[], None]
    """To be called once, when the guest can begin."""
    ttl: int = 255
    """Of its multicasts."""
    epoch: float = inf
    """The loop's time that counts as 0; inf until `begin`."""
    _scheduled: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    @property
    def now(self) -> float:
        """Seconds since the run began; 0 before."""
        return max(0.0, self.loop.time() - self.epoch)

    @property
    def device(self) -> str:
        """The name of the device with the address."""
        for _, name in socket.if_nameindex():
            try:
                if address_of(name) == self.address:
                    return name
            except UsageError:
                # A device without an address.
                continue
        raise UsageError(f"no device of {self.name} has the address {self.address}")

    def later(self, when: float, action: Callable[[], None]) -> None:
        """Run `action()` at `when` seconds of the run, or at once if that is past."""
        if self.epoch == inf:
            self._scheduled.append((when, action))
        else:
            self.loop.call_at(self.epoch + when, action)

    def begin(self, epoch: float) -> None:
        """The run's time 0 is the loop's `epoch`."""
        self.epoch = epoch
        for when, action in self._scheduled:
            self.later(when, action)
        self._scheduled.clear()


class ForeignProgram(ABC):
    """A foreign program. `life` counts the crashes of its host before this start."""

    crashes = 0

    @abstractmethod
    def prepare(self, context: ForeignContext) -> None:
        """Get ready to begin at time 0 by `seat.later`, and call `seat.ready()` at once or later."""

    @abstractmethod
    def finished(self) -> bool:
        """Is a sender done?"""

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """For who looks on, as `UdpHost.census`."""

    @abstractmethod
    def close(self) -> None:
        """The run is over: end whatever was started."""

    @abstractmethod
    def kill(self) -> None:
        """The host crashes: nothing is ended in good order, and nothing of it sends any more when this returns."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """What came out, JSON-able, asked after `close`: as of our own programs, with `files` ([size, SHA-256]) for what was
        received, and `wire` for what a meter says.
        """


def write_content(content: Content, path: Path) -> None:
    """Make a file of a content."""
    source = content.source
    with path.open("wb") as file:
        for offset in range(0, source.size, _CHUNK):
            chunk = source.read(offset, min(_CHUNK, source.size - offset))
            assert chunk is not None, "contents without bytes are for the simulator"
            file.write(chunk)
