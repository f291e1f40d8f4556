"""Running output ports: a queue and a transmitter, packet by packet, for the simulator and for links in user space.

`offer` takes an entry (anything) of so many bytes on the line and answers with the entries whose end of sending is now known,
with its time; `wake` does the same at `deadline`, for disciplines that decide when a packet leaves the queue. Times come in
order. Entries not heard of again were dropped, and are counted.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, TypeAlias

from protocols.rng import unit

__all__ = ["CodelPort", "Departures", "Port", "RedPort", "TailPort", "TokenPort"]

Departures: TypeAlias = Sequence[tuple[Any, float]]


class Port(ABC):
    """What ports have in common."""

    __slots__ = ("deadline", "dropped", "free_at", "marked", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.free_at = 0.0
        """When the transmitter is done with what it was given."""
        self.deadline = inf
        """When `wake` is wanted; inf for never."""
        self.dropped = 0
        self.marked = 0

    @abstractmethod
    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """A packet comes."""

    def wake(self, now: float) -> Departures:
        """The deadline has come."""
        del now
        return ()

    @abstractmethod
    def waiting(self, now: float) -> int:
        """Packets that wait now; the one being sent does not."""


class TailPort(Port):
    """Drop-tail by packets, by bytes, or both; None is no limit."""

    __slots__ = ("_bytes", "_ends", "_octets", "_packets")

    def __init__(self, rate: float, packets: int | None, octets: int | None = None) -> None:
        super().__init__(rate)
        self._packets = inf if packets is None else packets
        self._bytes = inf if octets is None else octets
        # End of sending and size of all that is not gone; the first is being sent, and its bytes do not wait.
        self._ends: deque[tuple[float, int]] = deque()
        self._octets = 0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        self._settle(now)
        ends = self._ends
        if ends and (len(ends) > self._packets or self._octets + octets > self._bytes):
            self.dropped += 1
            return ()
        return self._send(entry, octets, now)

    def waiting(self, now: float) -> int:
        """See `Port`."""
        self._settle(now)
        return max(0, len(self._ends) - 1)

    def _settle(self, now: float) -> None:
        """What is gone by now is gone."""
        ends = self._ends
        while ends and ends[0][0] <= now:
            ends.popleft()
            if ends:
                self._octets -= ends[0][1]

    def _send(self, entry: Any, octets: int, now: float) -> Departures:
        if self._ends:
            self._octets += octets
        self.free_at = end = max(self.free_at, now) + octets / self.rate
        self._ends.append((end, octets))
        return ((entry, end),)


class TokenPort(TailPort):
    """A token bucket, full at first: a packet leaves, at once and whole, when as many bytes were saved up as it has."""

    __slots__ = ("_at", "_bucket", "_tokens")

    def __init__(self, rate: float, bucket: int, packets: int | None, octets: int | None) -> None:
        super().__init__(rate, packets, octets)
        self._bucket = bucket
        self._tokens = float(bucket)
        self._at = 0.0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`. What is larger than the bucket is dropped."""
        if octets > self._bucket:
            self.dropped += 1
            return ()
        return super().offer(entry, octets, now)

    def _send(self, entry: Any, octets: int, now: float) -> Departures:
        if self._ends:
            self._octets += octets
        end = max(self.free_at, now)
        if self.rate < inf:
            saved = min(self._bucket, self._tokens + (end - self._at) * self.rate)
            if saved < octets:
                end += (octets - saved) / self.rate
                saved = octets
            self._tokens, self._at = saved - octets, end
        self.free_at = end
        self._ends.append((end, octets))
        return ((entry, end),)


class RedPort(TailPort):
    """Random early detection with the gentle slope above the upper threshold."""

    __slots__ = ("_average", "_ecn", "_key", "_least", "_most", "_n", "_p", "_since", "_weight")

    def __init__(
        self, rate: float, packets: int, key: int, *, thresholds: tuple[int, int], p: float, weight: float, ecn: bool
    ) -> None:
        super().__init__(rate, packets)
        self._key = key
        self._least, self._most = thresholds
        self._p = p
        self._weight = weight
        self._ecn = ecn
        self._average = 0.0
        # Packets let through since the last early drop; -1 below the lower threshold.
        self._since = -1
        self._n = 0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        self._move_average(octets, now)
        if self._early():
            if not self._ecn or self._average >= self._most:
                self.dropped += 1
                return ()
            self.marked += 1
        return super().offer(entry, octets, now)

    def _move_average(self, octets: int, now: float) -> None:
        waiting = self.waiting(now)
        if self._ends:
            self._average += self._weight * (waiting - self._average)
        else:
            # As if as many packets as could have been sent since had found the queue empty.
            idle = max(0.0, now - self.free_at) * self.rate / octets
            self._average *= (1 - self._weight) ** min(idle, 1e9)

    def _early(self) -> bool:
        """Is this one to be dropped or marked before the queue is full?"""
        average, least, most = self._average, self._least, self._most
        if average < least:
            self._since = -1
            return False
        self._since += 1
        if average >= 2 * most:
            self._since = 0
            return True
        p = self._p * (average - least) / (most - least)
        if average >= most:
            p = self._p + (1 - self._p) * (average - most) / most
        # Spreads drops evenly: the run between two is uniform, not geometric.
        spread = 1 - self._since * p
        self._n += 1
        if spread <= 0 or unit(self._key, self._n) < p / spread:
            self._since = 0
            return True
        return False


class CodelPort(Port):
    """CoDel as in the pseudo-code of RFC 8289 section 5: it decides when a packet comes to the head of the queue."""

    __slots__ = (
        "_above",
        "_backlog",
        "_count",
        "_dropping",
        "_ecn",
        "_interval",
        "_largest",
        "_last",
        "_limit",
        "_next",
        "_queue",
        "_target",
    )

    def __init__(self, rate: float, packets: int, *, target: float, interval: float, ecn: bool) -> None:
        super().__init__(rate)
        self._limit = packets
        self._target = target
        self._interval = interval
        self._ecn = ecn
        self._queue: deque[tuple[Any, int, float]] = deque()
        self._backlog = self._largest = 0
        # When packets have waited too long for a whole interval; 0 while they have not.
        self._above = 0.0
        self._dropping = False
        self._next = 0.0
        self._count = self._last = 0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        sent = self.wake(now)
        if self.free_at > now and len(self._queue) >= self._limit:
            self.dropped += 1
            return sent
        self._queue.append((entry, octets, now))
        self._backlog += octets
        self._largest = max(self._largest, octets)
        return [*sent, *self.wake(now)]

    def waiting(self, now: float) -> int:
        """See `Port`."""
        del now
        return len(self._queue)

    def wake(self, now: float) -> Departures:
        """See `Port`."""
        sent: list[tuple[Any, float]] = []
        while self._queue and self.free_at <= now:
            # A late call serves what should have begun before at the time it should have.
            begin = max(self.free_at, self._queue[0][2])
            found = self._dequeue(begin)
            if found is not None:
                self.free_at = begin + found[1] / self.rate
                sent.append((found[0], self.free_at))
        self.deadline = self.free_at if self._queue else inf
        return sent

    def _pop(self, now: float) -> tuple[tuple[Any, int] | None, bool]:
        """The head of the queue, and whether it may be dropped."""
        if not self._queue:
            self._above = 0.0
            return None, False
        entry, octets, came = self._queue.popleft()
        self._backlog -= octets
        if now - came < self._target or self._backlog <= self._largest:
            self._above = 0.0
            return (entry, octets), False
        if self._above == 0.0:
            self._above = now + self._interval
            return (entry, octets), False
        return (entry, octets), now >= self._above

    def _law(self, since: float) -> float:
        return since + self._interval / sqrt(self._count)

    def _dequeue(self, now: float) -> tuple[Any, int] | None:
        head, late = self._pop(now)
        if self._dropping:
            if not late:
                self._dropping = False
            while self._dropping and now >= self._next:
                self._count += 1
                head, late, marked = self._strike(head, now)
                if not late and not marked:
                    self._dropping = False
                else:
                    self._next = self._law(self._next)
                if marked:
                    break
        elif late:
            head, late, _ = self._strike(head, now)
            self._dropping = True
            # Where dropping ended only lately, it goes on at the rate that controlled the queue.
            recent = self._count - self._last
            self._count = recent if recent > 1 and now - self._next < 16 * self._interval else 1
            self._next = self._law(now)
            self._last = self._count
        return head

    def _strike(self, head: tuple[Any, int] | None, now: float) -> tuple[tuple[Any, int] | None, bool, bool]:
        """Mark the head, or drop it and take the next: (head, whether it may be dropped, whether it is marked)."""
        if self._ecn:
            self.marked += 1
            return head, True, True
        self.dropped += 1
        return *self._pop(now), False
