"""The loss history of a receiver: loss events, and the average interval between them (RFC 5348 5, RFC 4654 2.3).

All losses within one round-trip time are one loss event. The loss event rate is the inverse of a weighted average of the last
eight intervals between loss events, in packets. With none since long, the older intervals count less (RFC 5348 5.5).
"""

from collections.abc import Sequence
from math import ceil, inf
from typing import Final

__all__ = ["INTERVALS", "LossHistory", "mean_interval"]

WEIGHTS: Final[Sequence[float]] = (1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2)
INTERVALS: Final = len(WEIGHTS)
_NEXT_WEIGHTS: Final = WEIGHTS[1:]
LEAST_DISCOUNT: Final = 0.5
"""The factor by which older intervals count less, at the least."""
MOST_MISSING: Final = 256
"""Lost packets of a loss event that are remembered, to find out whether all of them were only late."""
MOST_EVENTS: Final = 2 * INTERVALS
"""Loss events that are recorded of one gap: more than these replace the whole history anyway."""


def mean_interval(present: float, closed: Sequence[float], discounts: Sequence[float], factor: float = 1.0) -> float:
    """Return the average loss interval in packets (RFC 5348 5.4).

    `present` is the interval since the last loss event, `closed` are the intervals between loss events, newest first. Their
    weights are multiplied by their `discounts`. The present interval takes the place of the oldest one where that makes the
    average larger; the weights of the others are multiplied by `factor`, too, for that average.
    """
    total, weights = present, 1.0
    for weight, discount, interval in zip(_NEXT_WEIGHTS, discounts, closed[:-1], strict=False):
        total += weight * (discount * factor) * interval
        weights += weight * (discount * factor)
    return max(total / weights, _average(closed, discounts))


def _average(intervals: Sequence[float], discounts: Sequence[float]) -> float:
    """Return the average of at least one interval, by `WEIGHTS` and discounts."""
    total = weights = 0.0
    for weight, discount, interval in zip(WEIGHTS, discounts, intervals, strict=False):
        total += weight * discount * interval
        weights += weight * discount
    return total / weights


class LossHistory:
    """Loss events of one sender's packets at one receiver. Sequence numbers are counted on, without the wrap of the wire.

    With `is_tolerant` a packet that is lost alone within a round-trip time is no loss event: radio links lose single packets
    without any congestion.
    """

    __slots__ = (
        "_arrived",
        "_begun",
        "_discounts",
        "_expected",
        "_is_tolerant",
        "_lone",
        "_missing",
        "_start",
        "events",
        "intervals",
    )

    def __init__(self, is_tolerant: bool = False) -> None:
        self._is_tolerant = is_tolerant
        self._expected: int | None = None
        """The sequence number that comes next."""
        self._arrived = 0.0
        """When the last packet arrived, seconds."""
        self._start = 0
        """The number with which the present interval began."""
        self._begun = -inf
        """When the last loss event began, seconds."""
        self._lone: tuple[int, float] | None = None
        """The number and time of a lost packet that is no loss event yet."""
        self._missing: set[int] = set()
        """The lost packets of the last loss event, which may only be late."""
        self._discounts: list[float] = []
        self.intervals: list[float] = []
        """Packets between loss events, newest first, without the present interval."""
        self.events = 0
        """Loss events so far; of one gap at most `MOST_EVENTS` and the first."""

    @property
    def present(self) -> int:
        """The packets since the last loss event, or since the first packet."""
        return 0 if self._expected is None else self._expected - self._start

    def arrived(self, sequence: int, now: float, rtt: float, is_marked: bool = False) -> int:
        """Record a packet that arrived, by its 16-bit sequence number; return how many loss events were found.

        Those before it are lost if they did not arrive. `rtt` (seconds) is the length of a loss event. `is_marked` says that
        a router marked the packet instead of dropping it (ECN), which counts as a loss.
        """
        if self._expected is None:
            self._expected = self._start = sequence
        gap = (sequence - self._expected) & 0xFFFF
        if gap >= 0x8000:
            self._withdraw(self._expected - (0x10000 - gap))
            return 0
        before = self.events
        if gap:
            self._lose(self._expected, gap, now, rtt)
        self._expected += gap + 1
        self._arrived = now
        if is_marked and now >= self._begun + rtt:
            self._begin(self._expected - 1, now)
        return self.events - before

    def initialise(self, interval: float) -> None:
        """Set the interval before the first loss event: what was received until then is no measure of the fair rate."""
        self.intervals.append(interval)
        self._discounts.append(1.0)

    @property
    def loss(self) -> float:
        """The loss event rate; 0 before the first loss event."""
        if not self.intervals:
            return 0.0
        present = float(max(self.present, 1))
        return min(1.0 / mean_interval(present, self.intervals, self._discounts, self._discount(present)), 1.0)

    def _discount(self, present: float) -> float:
        """Return the factor by which older intervals count less, because the present one is long (RFC 5348 5.5)."""
        average = _average(self.intervals, self._discounts)
        return 1.0 if present <= 2.0 * average else max(2.0 * average / present, LEAST_DISCOUNT)

    def _lose(self, first: int, count: int, now: float, rtt: float) -> None:
        """Record `count` lost packets, which were due at even intervals between the last arrival and this one."""
        step = (now - self._arrived) / (count + 1)
        # The packets of a loss event, and the place of the first of the last `MOST_EVENTS` loss events.
        width = ceil(min(rtt / step, count)) if step > 0.0 else count
        last = count + 1 - MOST_EVENTS * max(width, 1)
        index = 1
        while index <= count:
            when, number = self._arrived + index * step, first + index - 1
            if when >= self._begun + rtt and not self._is_alone(number, when, rtt):
                self._begin(number, when)
            following = index + 1
            if when < self._begun + rtt:
                # All that were due within a round-trip time are of this loss event.
                left = self._begun + rtt - when
                following = count + 1 if left >= step * count else min(count + 1, index + max(1, ceil(left / step)))
                self._missing.update(range(number, number + min(following - index, MOST_MISSING - len(self._missing))))
            index = max(following, last)

    def _is_alone(self, number: int, when: float, rtt: float) -> bool:
        """Return whether a lost packet is no loss event by itself, as losses of single packets are tolerated."""
        if not self._is_tolerant:
            return False
        lone, self._lone = self._lone, (number, when)
        if lone is not None and when < lone[1] + rtt:
            self._lone = None
            return False
        return True

    def _begin(self, number: int, when: float) -> None:
        """Begin a loss event with a packet."""
        if self.events:
            interval = float(number - self._start)
            discount = self._discount(interval) if self.intervals else 1.0
            self.intervals = [interval, *self.intervals][:INTERVALS]
            self._discounts = [1.0, *[known * discount for known in self._discounts]][:INTERVALS]
        self._missing = set()
        self._start, self._begun = number, when
        self.events += 1

    def _withdraw(self, number: int) -> None:
        """Record a packet that is late and was taken for lost: a loss event without any lost packet is none."""
        if self._lone is not None and self._lone[0] == number:
            self._lone = None
        if number not in self._missing:
            return
        self._missing.discard(number)
        if self._missing:
            return
        self.events -= 1
        self._begun = -inf
        if self.events and self.intervals:
            self._start -= int(self.intervals[0])
            del self.intervals[0], self._discounts[0]
        else:
            self.intervals, self._discounts = [], []
