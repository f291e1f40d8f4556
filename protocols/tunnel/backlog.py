"""How many datagrams wait on the way to a peer, by what was sent to it and what it reports.

A deep queue hides an overload for as long as it takes to fill, and delays the report of a loss by as long as it holds. So what
waits is taken for congestion before anything is lost, as in delay-based congestion control (LEDBAT, RFC 6817): what is on the
way beyond the least of the last `WINDOW` to `2 * WINDOW` seconds waits in queues.
"""

from collections import deque
from math import inf
from typing import Final

__all__ = ["Backlog"]

WINDOW: Final = 5.0
REPORTS: Final = 4
"""Reports over which rates are measured."""


class Backlog:
    """The datagrams on the way to one peer; `sent` is how many were sent to it."""

    __slots__ = ("_least", "_least_before", "_reports", "_since", "sent", "waiting")

    def __init__(self) -> None:
        self.sent = 0
        self.waiting = 0
        """Datagrams that wait in queues on the way, as far as known."""
        self._least = self._least_before = inf
        self._since = -inf
        # Of the last reports: time in seconds, datagrams sent until then, and those that came or are missing.
        self._reports: deque[tuple[float, int, int]] = deque(maxlen=REPORTS)

    def report(self, total: int, now: float) -> None:
        """Note that `total` datagrams came or are missing at the peer, since it began to count."""
        on_the_way = self.sent - total
        if self._reports and total < self._reports[-1][2]:
            # The peer began anew.
            self._reports.clear()
            self._least = self._least_before = inf
        if now >= self._since + WINDOW:
            self._since, self._least_before, self._least = now, self._least, inf
        self._least = min(self._least, on_the_way)
        self.waiting = on_the_way - int(min(self._least, self._least_before))
        self._reports.append((now, self.sent, total))

    @property
    def seconds(self) -> float:
        """How long what waits takes at the rate at which datagrams leave the way; 0.0 while none do."""
        came, _ = self._rates()
        return self.waiting / came if came else 0.0

    @property
    def excess(self) -> float:
        """The share of the datagrams sent of late that has to wait for the others."""
        came, sent = self._rates()
        return max(0.0, 1 - came / sent) if sent else 0.0

    def _rates(self) -> tuple[float, float]:
        """Return how many datagrams come and are sent per second."""
        if len(self._reports) < 2:
            return 0.0, 0.0
        (begin, sent, came), (end, sent_now, came_now) = self._reports[0], self._reports[-1]
        span = end - begin
        return ((came_now - came) / span, (sent_now - sent) / span) if span > 0 else (0.0, 0.0)
