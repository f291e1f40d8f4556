"""Processor load of a node: the largest share of an interval in which its process ran or waited for a processor."""

from pathlib import Path

from emu.loop import HostLoop

__all__ = ["ProcessorLoad"]

_INTERVAL = 0.5
"""Seconds."""
_SCHEDULER = Path("/proc/self/schedstat")
"""Nanoseconds that the first thread of this process ran, and waited for a processor (Linux, sched-stats)."""


class ProcessorLoad:
    """Finds the largest share of an interval in which this process ran or waited for a processor, from now on.

    Time spent waiting counts, since a process that shares a core with others is limited by it although it uses only a part.
    """

    def __init__(self, loop: HostLoop) -> None:
        self._loop = loop
        self._at = loop.time()
        self._needed = _needed()
        self.largest = 0.0
        """Share of the busiest interval, from 0 to 1."""
        self._loop.call_later(_INTERVAL, self._look)

    def _look(self) -> None:
        now, needed = self._loop.time(), _needed()
        self.largest = max(self.largest, min(1.0, (needed - self._needed) / (now - self._at)))
        self._at, self._needed = now, needed
        self._loop.call_later(_INTERVAL, self._look)


def _needed() -> float:
    """Return the seconds that this process ran or waited for a processor; 0 where the kernel has no such counters."""
    try:
        ran, waited, _ = _SCHEDULER.read_bytes().split()
    except FileNotFoundError:
        return 0.0
    return (int(ran) + int(waited)) * 1e-9
