"""Output ports that run: a queue discipline and a transmitter, packet by packet, for the simulator and for links in user space.

`offer` takes an entry (any object) of so many bytes on the line and returns the departures that became known: pairs of an entry
and the end of its transmission in seconds. `wake`, called at `deadline`, does it for disciplines that decide when a packet
leaves the queue. Times must not decrease. Entries that never depart were dropped and are counted.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, TypeAlias

from protocols.rng import unit
from topologies.drop_tail import DropTailQueue
from topologies.service_classes import RANKS, rank_of

__all__ = ["CodelPort", "Departures", "DropTailPort", "Markable", "Port", "PriorityPort", "RedPort", "TokenPort"]

Departures: TypeAlias = Sequence[tuple[Any, float]]


class Markable:
    """A packet in a queue that can be marked (ECN), and its class of service."""

    __slots__ = ("dscp", "is_marked")

    def __init__(self, dscp: int = 0) -> None:
        self.dscp = dscp
        self.is_marked = False


class Port(ABC):
    """An output port: a queue and the transmitter behind it."""

    __slots__ = ("deadline", "dropped", "marked")

    def __init__(self) -> None:
        self.deadline = inf
        """When `wake` is to be called, in seconds; inf: not before the next `offer`."""
        self.dropped = 0
        """Packets discarded by the discipline."""
        self.marked = 0
        """Packets marked with congestion experienced (ECN) instead of being dropped."""

    @abstractmethod
    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """Offer a packet of `octets` bytes on the line; returns the departures that became known."""

    def wake(self, now: float) -> Departures:
        """Serve the queue when `deadline` is reached; returns the departures that became known."""
        del now
        return ()

    def mark(self, entry: Any) -> None:
        """Count a marked packet, and set the mark in an entry that has one (`Markable`)."""
        self.marked += 1
        if isinstance(entry, Markable):
            entry.is_marked = True

    @abstractmethod
    def waiting(self, now: float) -> int:
        """Return how many packets are queued at `now`, without the one in transmission."""


class DropTailPort(Port):
    """Drop-tail: at most `packets` packets and `octets` bytes wait behind the packet in transmission; None is no limit."""

    __slots__ = ("_most_octets", "_octets_waiting", "_queue", "_sizes")

    def __init__(self, rate: float, packets: int | None, octets: int | None = None) -> None:
        super().__init__()
        self._queue = DropTailQueue(rate, inf if packets is None else packets)
        self._most_octets = inf if octets is None else octets
        # Sizes of the packets not yet sent, in the order of the queue's departures; the first is in transmission.
        self._sizes: deque[int] = deque()
        self._octets_waiting = 0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        return self._enqueue(entry, octets, octets, now)

    def waiting(self, now: float) -> int:
        """See `Port`."""
        return self._queue.waiting(now)

    def _enqueue(self, entry: Any, octets: int, work: float, now: float) -> Departures:
        """Queue a packet of `octets` bytes whose transmission takes `work` / rate seconds, or drop it."""
        self._forget_sent(now)
        full = bool(self._sizes) and self._octets_waiting + octets > self._most_octets
        end = None if full else self._queue.offer(work, now)
        if end is None:
            self.dropped += 1
            return ()
        if self._sizes:
            self._octets_waiting += octets
        self._sizes.append(octets)
        return ((entry, end),)

    def _forget_sent(self, now: float) -> None:
        """Drop the sizes of packets whose transmission has ended; the next one stops waiting."""
        self._queue.waiting(now)
        queued, sizes = self._queue.departures, self._sizes
        assert queued is not None
        while len(sizes) > len(queued):
            sizes.popleft()
            if sizes:
                self._octets_waiting -= sizes[0]


class TokenPort(DropTailPort):
    """A token bucket, full at first: a packet leaves at once and whole if the bucket holds as many tokens as it has bytes."""

    __slots__ = ("_at", "_bucket", "_rate", "_tokens")

    def __init__(self, rate: float, bucket: int, packets: int | None, octets: int | None) -> None:
        super().__init__(rate, packets, octets)
        self._rate = rate
        self._bucket = bucket
        # Tokens (bytes) in the bucket at time `_at` (seconds).
        self._tokens = float(bucket)
        self._at = 0.0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`. A packet larger than the bucket is dropped."""
        if octets > self._bucket:
            self.dropped += 1
            return ()
        if self._rate == inf:
            return self._enqueue(entry, octets, 0.0, now)
        begin = max(self._queue.free_at, now)
        tokens = min(self._bucket, self._tokens + (begin - self._at) * self._rate)
        # The packet waits at the head of the queue until the missing tokens have come.
        sent = self._enqueue(entry, octets, max(0.0, octets - tokens), now)
        if sent:
            self._tokens, self._at = max(0.0, tokens - octets), self._queue.free_at
        return sent


class RedPort(DropTailPort):
    """Random early detection (Floyd, Jacobson 1993), gentle: above `most` the drop probability rises from p to 1."""

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
        # Packets accepted since the last early drop; -1 below the lower threshold.
        self._since = -1
        self._n = 0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        self._move_average(octets, now)
        if self._early():
            if not self._ecn or self._average >= self._most:
                self.dropped += 1
                return ()
            self.mark(entry)
        return super().offer(entry, octets, now)

    def _move_average(self, octets: int, now: float) -> None:
        waiting = self.waiting(now)
        if self._queue.departures:
            self._average += self._weight * (waiting - self._average)
        else:
            # After an idle period, the average decays as if the packets that could have been sent had found an empty queue.
            idle = max(0.0, now - self._queue.free_at) * self._queue.rate / octets
            self._average *= (1 - self._weight) ** min(idle, 1e9)

    def _early(self) -> bool:
        """Return whether the packet is to be dropped or marked early."""
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
        # Uniform, not geometric, distances between early drops.
        spread = 1 - self._since * p
        self._n += 1
        if spread <= 0 or unit(self._key, self._n) < p / spread:
            self._since = 0
            return True
        return False


class PriorityPort(Port):
    """Strict priority by DSCP (`rank_of`): when a packet has been sent, the first of the highest rank that waits is next.

    At most `packets` packets of each rank wait; None is no limit.
    """

    __slots__ = ("_free_at", "_limit", "_queues", "_rate")

    def __init__(self, rate: float, packets: int | None) -> None:
        super().__init__()
        self._rate = rate
        self._limit = inf if packets is None else packets
        self._free_at = 0.0
        # By rank, the highest first: packets with their bytes and times of arrival.
        self._queues: list[deque[tuple[Any, int, float]]] = [deque() for _ in range(RANKS)]

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        sent = self.wake(now)
        rank = rank_of(entry.dscp) if isinstance(entry, Markable) else rank_of(0)
        queue = self._queues[RANKS - 1 - rank]
        if self._free_at > now and len(queue) >= self._limit:
            self.dropped += 1
            return sent
        queue.append((entry, octets, now))
        return [*sent, *self.wake(now)]

    def waiting(self, now: float) -> int:
        """See `Port`."""
        del now
        return sum(map(len, self._queues))

    def wake(self, now: float) -> Departures:
        """See `Port`."""
        sent: list[tuple[Any, float]] = []
        while self._free_at <= now and (queue := self._next()) is not None:
            entry, octets, came = queue.popleft()
            # A late call transmits packets at the times at which they should have been.
            self._free_at = max(self._free_at, came) + octets / self._rate
            sent.append((entry, self._free_at))
        self.deadline = self._free_at if any(self._queues) else inf
        return sent

    def _next(self) -> deque[tuple[Any, int, float]] | None:
        """Return the queue to serve: the highest with a packet when the transmitter is free, or the first to get one."""
        filled = [queue for queue in self._queues if queue]
        if not filled:
            return None
        begin = max(self._free_at, min(queue[0][2] for queue in filled))
        return next(queue for queue in filled if queue[0][2] <= begin)


class CodelPort(Port):
    """CoDel after the pseudo-code of RFC 8289 section 5, which decides when a packet reaches the head of the queue."""

    __slots__ = (
        "_above",
        "_backlog",
        "_count",
        "_dropping",
        "_ecn",
        "_free_at",
        "_interval",
        "_largest",
        "_last",
        "_limit",
        "_next",
        "_queue",
        "_rate",
        "_target",
    )

    def __init__(self, rate: float, packets: int, *, target: float, interval: float, ecn: bool) -> None:
        super().__init__()
        self._rate = rate
        self._free_at = 0.0
        self._limit = packets
        self._target = target
        self._interval = interval
        self._ecn = ecn
        self._queue: deque[tuple[Any, int, float]] = deque()
        self._backlog = self._largest = 0
        # Time at which the delay will have exceeded the target for an interval; 0 while it has not exceeded it.
        self._above = 0.0
        self._dropping = False
        self._next = 0.0
        self._count = self._last = 0

    def offer(self, entry: Any, octets: int, now: float) -> Departures:
        """See `Port`."""
        sent = self.wake(now)
        if self._free_at > now and len(self._queue) >= self._limit:
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
        while self._queue and self._free_at <= now:
            # A late call transmits packets at the times at which they should have been.
            begin = max(self._free_at, self._queue[0][2])
            found = self._dequeue(begin)
            if found is not None:
                self._free_at = begin + found[1] / self._rate
                sent.append((found[0], self._free_at))
        self.deadline = self._free_at if self._queue else inf
        return sent

    def _pop(self, now: float) -> tuple[tuple[Any, int] | None, bool]:
        """Remove the head of the queue; returns it (None if the queue is empty) and whether it may be dropped."""
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
                head, late, marked = self._drop_or_mark(head, now)
                if not late and not marked:
                    self._dropping = False
                else:
                    self._next = self._law(self._next)
                if marked:
                    break
        elif late:
            head, late, _ = self._drop_or_mark(head, now)
            self._dropping = True
            # If the last dropping state ended recently, continue with the drop rate that controlled the queue.
            recent = self._count - self._last
            self._count = recent if recent > 1 and now - self._next < 16 * self._interval else 1
            self._next = self._law(now)
            self._last = self._count
        return head

    def _drop_or_mark(self, head: tuple[Any, int] | None, now: float) -> tuple[tuple[Any, int] | None, bool, bool]:
        """Mark the head, or drop it and take the next. Returns (head, whether it may be dropped, whether it was marked)."""
        if self._ecn:
            self.mark(None if head is None else head[0])
            return head, True, True
        self.dropped += 1
        return *self._pop(now), False
