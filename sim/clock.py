"""The clock of a host: it may drift and be set forward, and it never goes back."""

from math import inf, nextafter

__all__ = ["Clock"]


class Clock:
    """Local time as a piecewise linear function of simulated time; equal to it until the first fault."""

    __slots__ = ("_base", "_seen", "_shown", "_start", "speed")

    def __init__(self) -> None:
        # The present line begins at (simulated `_start`, local `_base`); (`_seen`, `_shown`) is the latest reading.
        self._start = self._base = 0.0
        self.speed = 1.0
        """Local seconds per simulated second."""
        self._seen = self._shown = -inf

    def read(self, now: float, at_least: float = -inf) -> float:
        """Return the local time at `now`, at least `at_least`: what the caller waited for, in spite of rounding."""
        shown = max(self.look(now), at_least)
        self._seen, self._shown = now, shown
        return shown

    def look(self, now: float) -> float:
        """Return the local time at `now` without reading it: later readings and `when` do not depend on this call."""
        return max(self._base + (now - self._start) * self.speed, self._shown)

    def when(self, local: float) -> float:
        """Return the simulated time at which this local time is reached; for a past one, that of the latest reading."""
        if local == inf:
            return inf
        if local <= self._shown:
            return self._seen
        found = self._start + (local - self._base) / self.speed
        # A later local time is a later simulated time, in spite of rounding.
        return max(found, nextafter(self._seen, inf))

    def drift(self, now: float, factor: float) -> None:
        """Let `factor` local seconds pass per simulated second from now on."""
        self._base, self._start, self.speed = self.read(now), now, factor

    def step(self, now: float, forward: float) -> None:
        """Set the clock forward by so many seconds."""
        assert forward >= 0.0, "a clock is never set back"
        self._base, self._start = self.read(now) + forward, now
