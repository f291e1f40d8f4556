"""The interface of foreign programs: nodes of an emulation that run no machine of this project and use sockets of their own.

A foreign program runs in the process of its node or in child processes; all of them are killed when the node's process ends.
"""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from emu.addresses import address_of
from protocols.errors import UsageError
from protocols.machine import Content

__all__ = ["ForeignProgram", "ForeignContext", "write_content"]

_CHUNK = 1 << 20


@dataclass(slots=True)
class ForeignContext:
    """Context of a foreign program: name, IPv4 address and device of its host, an empty folder, and the clock of the run."""

    loop: asyncio.AbstractEventLoop
    name: str
    address: str
    folder: Path
    ready: Callable[[], None]
    """To be called once, when the program is ready to begin."""
    ttl: int = 255
    """IP TTL of its multicast packets."""
    epoch: float = inf
    """Time 0 of the run on the loop's clock, in seconds; inf until `begin`."""
    _scheduled: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    @property
    def now(self) -> float:
        """Seconds since the run began; 0 before."""
        return max(0.0, self.loop.time() - self.epoch)

    @property
    def device(self) -> str:
        """Name of the network device that has the host's address. Raises UsageError if there is none."""
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
        """Begin the run: `epoch` is its time 0 on the loop's clock."""
        self.epoch = epoch
        for when, action in self._scheduled:
            self.later(when, action)
        self._scheduled.clear()


class ForeignProgram(ABC):
    """A foreign program as a node. `crashes` counts the crashes of its host before this start."""

    crashes = 0

    @abstractmethod
    def prepare(self, context: ForeignContext) -> None:
        """Get ready, schedule the program's actions by `context.later`, and call `context.ready()` at once or later."""

    @abstractmethod
    def finished(self) -> bool:
        """Return whether a sender is done; never true for a receiver."""

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return counters for progress reports, as `UdpHost.counters`."""

    @abstractmethod
    def close(self) -> None:
        """End whatever was started; called at the end of the run."""

    @abstractmethod
    def kill(self) -> None:
        """Crash: kill every process of the program. When this returns, nothing of it sends any more."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """Return the result, JSON-able; called once, after `close`.

        It has the keys of this project's own programs, `files` as [size in bytes, SHA-256] of what was received, and `meter`
        with the report of its `Meter`.
        """


def write_content(content: Content, path: Path) -> None:
    """Write the bytes of a content to the file `path`."""
    source = content.source
    with path.open("wb") as file:
        for offset in range(0, source.size, _CHUNK):
            chunk = source.read(offset, min(_CHUNK, source.size - offset))
            assert chunk is not None, "contents without bytes exist in the simulator only"
            file.write(chunk)
