"""An output port with a drop-tail queue, computed analytically: no event is needed for the end of a packet's transmission.

A FIFO queue that drops only at its tail decides everything when a packet is offered: the packet is dropped, or the end of its
transmission is known. Packets must be offered in order of time.
"""

from collections import deque
from math import inf

__all__ = ["DropTailQueue"]


class DropTailQueue:
    """A transmitter of `rate` bytes per second; up to `limit` packets wait behind the one in transmission (None: no limit).

    Without a limit `departures` is None, since nothing depends on how many packets are queued.
    """

    __slots__ = ("departures", "free_at", "limit", "rate")

    def __init__(self, rate: float, limit: float | None) -> None:
        self.rate = rate
        self.limit = limit
        self.free_at = 0.0
        """Time (seconds) at which the transmitter has sent all packets it accepted."""
        self.departures: deque[float] | None = None if limit is None else deque()
        """Ends of transmission (seconds, ascending) of the packets not yet sent; the first is in transmission, the others wait.

        Entries of the past are removed by the next `offer` or `waiting`.
        """

    def offer(self, octets: float, now: float) -> float | None:
        """Offer a packet of `octets` bytes on the line at `now` seconds.

        Returns the end of its transmission in seconds, or None when the queue is full and the packet is dropped.
        """
        end = self.free_at
        if end < now:  # noqa: PLR1730 (half the cost of max, on the path of every packet)
            end = now
        departures = self.departures
        if departures is not None:
            while departures and departures[0] <= now:
                departures.popleft()
            # The first of those left is in transmission; only the others wait.
            if len(departures) > self.limit:  # type: ignore[operator]
                return None
            departures.append(end + octets / self.rate)
        self.free_at = end = end + octets / self.rate
        return end

    def waiting(self, now: float) -> int:
        """Return how many packets wait at `now`, without the one in transmission. Only for queues with a limit (inf counts)."""
        departures = self.departures
        assert departures is not None, "a queue without a limit keeps no departures"
        while departures and departures[0] <= now:
            departures.popleft()
        return max(0, len(departures) - 1)

    def remember(self) -> None:
        """Keep the departures though the queue has no limit, so that its rate can change; call before the first packet."""
        if self.limit is None:
            self.limit, self.departures = inf, deque()

    def change_rate(self, rate: float, now: float) -> tuple[float, float]:
        """Set the rate at `now` seconds: the packet in transmission ends as it began, those that wait are sent at the new rate.

        Returns the end of that transmission, and the factor by which the times behind it until other packets end change.
        """
        departures = self.departures
        assert departures is not None, "the rate changes only of queues that keep departures"
        while departures and departures[0] <= now:
            departures.popleft()
        former, self.rate = self.rate, rate
        if not departures or rate == former:
            return self.free_at, 1.0
        begin, factor = departures[0], former / rate
        self.departures = deque([begin, *(begin + (end - begin) * factor for end in list(departures)[1:])])
        self.free_at = self.departures[-1]
        return begin, factor

    def advance(self, end: float) -> None:
        """Set the state to that after a packet whose transmission ends at `end` seconds, with all earlier ones sent before it.

        For a caller that computed the transmissions of a series of packets itself instead of offering each.
        """
        self.free_at = end
        if self.departures is not None:
            self.departures.clear()
            self.departures.append(end)
