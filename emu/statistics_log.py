"""The statistics of an emulated host, kept at an interval of the run."""

from math import floor
from typing import Any

from emu.host import UdpHost

__all__ = ["StatisticsLog"]


class StatisticsLog:
    """Keeps a row at each multiple of `interval` (seconds; None: no rows), and with `end` one at the end."""

    def __init__(self, host: UdpHost, interval: float | None) -> None:
        self._host = host
        self._interval = interval
        self.rows: list[dict[str, Any]] = []
        """Time in seconds of the run, and the statistics as plain values."""

    def begin(self) -> None:
        """Take the first row at the next multiple of the interval."""
        if self._interval is not None:
            # A host that restarts begins in the middle of the run.
            when = (floor(self._host.now / self._interval) + 1) * self._interval
            self._host.later(when, self._take)

    def end(self) -> list[dict[str, Any]]:
        """Return the rows, with one of the present."""
        if self._interval is not None:
            self._add()
        return self.rows

    def _take(self) -> None:
        self._add()
        self.begin()

    def _add(self) -> None:
        self.rows.append({"time": round(self._host.now, 6), "statistics": self._host.snapshot().plain()})
