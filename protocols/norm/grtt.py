"""A sender's estimate of the group round-trip time, and when to probe for it (RFC 5740 5.5.1, filters as NRL NORM)."""

from math import inf
from typing import Final

from protocols.norm.config import NormConfig
from protocols.norm.quantise import rtt_code, rtt_seconds

__all__ = ["FIRST_INTERVAL", "GROWTH", "RTT_FLOOR", "GrttEstimator"]

FIRST_INTERVAL: Final = 0.5
GROWTH: Final = 1.5
DECREASE: Final = 0.9
"""Factor by which an estimate falls at a probe, at the most."""
RTT_FLOOR: Final = 1e-3
HEADROOM: Final = 44
"""Bytes added to a segment when the packet interval bounds the GRTT from below, as in NRL NORM."""


class GrttEstimator:
    """Measured and advertised GRTT. `code` is what messages carry, `advertised` the seconds all timers use."""

    __slots__ = (
        "_at_last_probe",
        "_floor",
        "_interval",
        "_is_raised",
        "_longest",
        "_max",
        "_peak",
        "_segment",
        "_shortest",
        "_updated",
        "advertised",
        "code",
        "measured",
    )

    def __init__(self, config: NormConfig) -> None:
        self._segment = config.segment
        self._floor = (HEADROOM + config.segment) / config.rate
        self._interval = FIRST_INTERVAL
        self._peak = 0.0
        """The longest round-trip time answered since the estimate could be lowered last, at a probe; seconds, 0 for none."""
        self._is_raised = False
        self._updated = -inf
        self.measured = self._at_last_probe = config.grtt
        """The estimate in seconds, now and after that probe."""
        self.code = -1
        self.configure(config)

    def configure(self, config: NormConfig) -> None:
        """Have the bounds of another configuration from now on."""
        self._max = config.grtt_max
        self._shortest, self._longest = config.probe_min, config.probe_max
        self._advertise()

    def respond(self, sample: float) -> bool:
        """Add the round-trip time (seconds) of a receiver's answer; return whether the advertised value has grown."""
        sample = min(max(sample, RTT_FLOOR), self._max)
        self._peak = max(self._peak, sample)
        if sample <= self.measured:
            return False
        self.measured = 0.25 * self.measured + 0.75 * sample
        self._is_raised = True
        return self._advertise()

    def probed(self, now: float) -> bool:
        """Lower the estimate towards the highest answer when a probe is sent; return whether the advertised value changed.

        After answers have raised an estimate, and while it stays above them, the probe interval is the shortest, so that a
        delay that has passed does not slow the sender for long. Jitter of less than a step does not count.
        """
        if now - self._updated < max(self.advertised, self._shortest):
            return False
        self._updated = now
        peak, self._peak = self._peak, 0.0
        if self.measured > self._at_last_probe / DECREASE:
            self._interval = self._shortest
        is_lowered = 0.0 < peak < self.measured
        if is_lowered:
            self.measured = max(DECREASE * self.measured, peak)
            self._is_raised = self._is_raised and self.measured > peak
            if self._is_raised:
                self._interval = self._shortest
        self._at_last_probe = self.measured
        return is_lowered and self._advertise()

    def next_interval(self) -> float:
        """Return the seconds to the next probe, which grow from the shortest interval to the longest; see `probed`."""
        interval = min(max(self._interval, self._shortest), self._longest)
        self._interval = interval * GROWTH
        return interval

    def follow(self, rate: float) -> bool:
        """Bound the estimate by the packet interval of another rate; return whether the advertised value changed."""
        self._floor = (HEADROOM + self._segment) / rate
        return self._advertise()

    def _advertise(self) -> bool:
        # A timer shorter than the packet interval ends before the next message can come, whatever the bound.
        code = rtt_code(max(min(self.measured, self._max), self._floor))
        if code == self.code:
            return False
        self.code = code
        self.advertised = rtt_seconds(code)
        return True
