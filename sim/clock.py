"""What a host's own clock shows: it may run fast or slow and jump ahead, and it never goes back."""

from math import inf, nextafter

__all__ = ["Clock"]


class Clock:
    """Local time as a function of simulated time, piece by piece a straight line. Exact while nothing was done to it."""

    __slots__ = ("_base", "_seen", "_shown", "_start", "speed")

    def __init__(self) -> None:
        # The line goes on from (simulated `_start`, local `_base`); `_seen` and `_shown` are the latest look.
        self._start = self._base = 0.0
        self.speed = 1.0
        """Local seconds in a second."""
        self._seen = self._shown = -inf

    def read(self, now: float, at_least: float = -inf) -> float:
        """The local time at `now`; a caller that waited for a local time gets at least that in spite of rounding."""
        shown = max(self._base + (now - self._start) * self.speed, at_least, self._shown)
        self._seen, self._shown = now, shown
        return shown

    def when(self, local: float) -> float:
        """The simulated time at which this local time is reached; one that is past or now for what was shown already."""
        if local == inf:
            return inf
        if local <= self._shown:
            return self._seen
        found = self._start + (local - self._base) / self.speed
        # A later local time is a later time, however they round.
        return max(found, nextafter(self._seen, inf))

    def drift(self, now: float, factor: float) -> None:
        """From now on `factor` local seconds pass in each second."""
        self._base, self._start, self.speed = self.read(now), now, factor

    def step(self, now: float, forward: float) -> None:
        """Jump ahead by `forward` seconds."""
        assert forward >= 0.0, "a clock is never set back"
        self._base, self._start = self.read(now) + forward, now
