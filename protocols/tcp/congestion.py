"""Congestion control of TCP, without clock or socket: Reno (RFC 5681), CUBIC (RFC 9438), and both as Linux computes them.

A control gets acknowledgements and losses of a connection's segments, and returns its window. Windows are in segments, as in
Linux; they count bytes only through the segments that are acknowledged (RFC 3465), so delayed ACKs do not slow their growth.
"""

from abc import ABC, abstractmethod
from math import inf
from typing import Final

__all__ = ["CONTROLS", "Control", "Cubic", "LinuxCubic", "LinuxReno", "Reno", "RenoPerAck"]

LEAST_WINDOW: Final = 2.0
"""Segments that the window is reduced to at least when a loss is detected (RFC 5681, equation 4)."""


class Control(ABC):
    """Congestion control of one connection; `window` is how many segments may be in flight."""

    __slots__ = ("threshold", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.threshold = inf
        """Window at which slow start ends (ssthresh)."""

    def acknowledged(self, segments: float, now: float, rtt: float) -> None:
        """Grow after an ACK of so many new segments, outside of recovery; `now` and the smoothed `rtt` are in seconds."""
        if self.window < self.threshold:
            self.window += segments
        else:
            self._avoid(segments, now, rtt)

    def lost(self, now: float) -> None:
        """Reduce the window, once for all losses of a round trip, when a loss is detected by later ACKs."""
        self.threshold = self.window = self._reduced(now)

    def recovered(self, in_flight: int) -> None:
        """End fast recovery: without a burst, if less is in flight than the window allows (RFC 6582, section 3.2)."""
        self.window = min(self.window, max(in_flight, 1) + 1.0)

    def timed_out(self, now: float) -> None:
        """Begin slow start at one segment, because the retransmission time-out expired."""
        self.threshold = self._reduced(now)
        self.window = 1.0

    def restart(self, window: float) -> None:
        """Reduce the window to `window` segments after an idle period (RFC 5681, section 4.1); the threshold stays."""
        self.window = min(self.window, window)

    @abstractmethod
    def _avoid(self, segments: float, now: float, rtt: float) -> None:
        """Grow in congestion avoidance."""

    @abstractmethod
    def _reduced(self, now: float) -> float:
        """Return the threshold after a loss at the present window."""


class Reno(Control):
    """RFC 5681: one segment more for each round trip, and half after a loss.

    The window grows by a segment when as many as the window were acknowledged, which section 3.1 recommends.
    """

    __slots__ = ("_counted",)

    def __init__(self, window: float) -> None:
        super().__init__(window)
        self._counted = 0.0

    def _avoid(self, segments: float, now: float, rtt: float) -> None:
        del now, rtt
        self._counted += segments
        if self._counted >= self.window:
            self._counted -= self.window
            self.window += 1.0

    def _reduced(self, now: float) -> float:
        del now
        return max(LEAST_WINDOW, self.window / 2)


class RenoPerAck(Reno):
    """Reno whose window grows by a fraction of a segment with each ACK (RFC 5681, equation 3): a little slower."""

    __slots__ = ()

    def _avoid(self, segments: float, now: float, rtt: float) -> None:
        del now, rtt
        self.window += segments / self.window


class Cubic(Control):
    """RFC 9438: a cubic function of the time since the last loss, and at least what Reno would reach on average."""

    __slots__ = ("_began", "_flat", "_friendly", "_most", "_prior")
    SCALE: Final = 0.4
    """C, in segments per cubic second."""
    KEPT: Final = 0.7
    """Beta: the share of the window that is kept after a loss."""
    SLOPE: Final = 3.0 * (1.0 - 0.7) / (1.0 + 0.7)
    """Alpha: segments per round trip with which AIMD of this `KEPT` has the mean window of Reno (section 4.3)."""

    def __init__(self, window: float) -> None:
        super().__init__(window)
        # When the present congestion avoidance began (None: not yet), the window of its plateau (W_max) and the seconds
        # after which it is reached (K), the estimate of Reno's window (W_est), and the window before the last loss.
        self._began: float | None = None
        self._most = self._flat = self._friendly = 0.0
        self._prior = inf

    def restart(self, window: float) -> None:
        """See `Control`; the time of an idle period does not count."""
        super().restart(window)
        self._began = None

    def _avoid(self, segments: float, now: float, rtt: float) -> None:
        window = self.window
        if self._began is None:
            self._begin(now)
        slope = self.SLOPE if self._friendly < self._prior else 1.0
        self._friendly += slope * segments / window
        since = now - self._began  # type: ignore[operator]
        if self._at(since) < self._friendly:
            self.window = max(window, self._friendly)
        else:
            # The target of one round trip later, approached by the ACKs of that round trip (sections 4.4 and 4.5).
            target = min(self._at(since + rtt), 1.5 * window)
            if target > window:
                self.window += (target - window) * segments / window

    def _begin(self, now: float) -> None:
        """Begin congestion avoidance: `_most` is from the last loss; without one the plateau is here."""
        self._began = now
        self._friendly = self.window
        self._most = max(self._most, self.window)
        self._flat = ((self._most - self.window) / self.SCALE) ** (1.0 / 3.0)

    def _at(self, since: float) -> float:
        """Return W_cubic, in segments, so many seconds after the beginning (section 4.2, equation 1)."""
        return float(self.SCALE * (since - self._flat) ** 3 + self._most)

    def _reduced(self, now: float) -> float:
        del now
        window = self.window
        # Fast convergence (section 4.7): a flow that lost before its plateau leaves room to others.
        self._most = window * (1.0 + self.KEPT) / 2.0 if window < self._most else window
        self._prior = window
        self._began = None
        return max(LEAST_WINDOW, window * self.KEPT)

    def timed_out(self, now: float) -> None:
        """See `Control`; after the slow start that follows the plateau is where it ended (section 4.8)."""
        super().timed_out(now)
        self._most = 0.0


class LinuxReno(Reno):
    """Reno as Linux computes it (tcp_cong.c): windows are whole, and acknowledged segments are counted anew after a loss."""

    __slots__ = ()

    def _reduced(self, now: float) -> float:
        del now
        self._counted = 0.0
        return max(LEAST_WINDOW, float(self.window // 2))


class LinuxCubic(Control):
    """CUBIC as Linux computes it (net/ipv4/tcp_cubic.c, 6.x), without HyStart.

    It differs from RFC 9438 in three ways, which matter where losses are a few round trips apart. How fast the window grows is
    computed when the window has changed, or `RENEWED` after the last time, and not with every ACK. Reno's window is estimated
    with one slope for ever. Windows and their growth are whole numbers.
    """

    __slots__ = (*("_acked", "_began", "_counted", "_flat", "_friendly", "_most", "_needed", "_plateau", "_seen", "_seen_at"),)
    TICKS: Final = 250
    """Ticks of the kernel's clock per second (HZ), as most distributions have it."""
    RENEWED: Final = 250 // 32
    """Ticks for which growth is not computed again as long as the window is the same."""
    SCALE: Final = 0.4
    """C, in segments per cubic second."""
    KEPT: Final = 717
    """Beta: 1024ths of the window that are kept after a loss."""
    SLOPE: Final = 15
    """Reno's window grows by one for each 15/8 of the window that were acknowledged."""
    LEAST: Final = 2
    """Least number of segments for which the window grows by one, and the largest before the first loss."""
    FIRST: Final = 20

    def __init__(self, window: float) -> None:
        super().__init__(window)
        # Tick at which the present congestion avoidance began (None: not yet), the window of its plateau and the seconds
        # after which it is reached, and the plateau of the next one (0: there was no loss yet).
        self._began: int | None = None
        self._plateau, self._flat, self._most = 0, 0.0, 0
        # Reno's window, and segments acknowledged since it grew.
        self._friendly, self._acked = 0, 0.0
        # Segments to be acknowledged until the window grows by one, and those that were.
        self._needed, self._counted = self.LEAST, 0.0
        # Window and tick of the latest computation.
        self._seen, self._seen_at = 0, -1

    def restart(self, window: float) -> None:
        """See `Control`; the time of an idle period does not count."""
        super().restart(window)
        self._began = None

    def _avoid(self, segments: float, now: float, rtt: float) -> None:
        self._acked += segments
        self._compute(int(self.window), segments, int(now * self.TICKS), rtt)
        if self._counted >= self._needed:
            self._counted = 0.0
            self.window += 1.0
        self._counted += segments
        grown = int(self._counted / self._needed)
        self._counted -= grown * self._needed
        self.window += grown

    def _compute(self, window: int, segments: float, tick: int, rtt: float) -> None:
        """Compute after how many segments the window grows, if it changed or `RENEWED` ticks are over."""
        if window == self._seen and tick - self._seen_at <= self.RENEWED:
            return
        if self._began is None or tick != self._seen_at:
            self._seen, self._seen_at = window, tick
            self._follow_cubic(window, segments, tick, rtt)
        step = window * self.SLOPE >> 3
        while self._acked > step:
            self._acked -= step
            self._friendly += 1
        if self._friendly > window:
            self._needed = min(self._needed, window // (self._friendly - window))
        self._needed = max(self._needed, self.LEAST)

    def _follow_cubic(self, window: int, segments: float, tick: int, rtt: float) -> None:
        """Grow towards the cubic function of the time since the latest loss."""
        if self._began is None:
            self._began, self._acked, self._friendly = tick, segments, window
            self._plateau = max(self._most, window)
            self._flat = ((self._plateau - window) / self.SCALE) ** (1.0 / 3.0)
        since = (tick - self._began) / self.TICKS + rtt
        target = self._plateau + int(self.SCALE * (since - self._flat) ** 3)
        self._needed = window // (target - window) if target > window else 100 * window
        if not self._most:
            self._needed = min(self._needed, self.FIRST)

    def _reduced(self, now: float) -> float:
        del now
        window = int(self.window)
        self._most = window * (1024 + self.KEPT) // 2048 if window < self._most else window
        self._began, self._counted = None, 0.0
        return max(LEAST_WINDOW, float(window * self.KEPT // 1024))

    def timed_out(self, now: float) -> None:
        """See `Control`; the plateau is forgotten."""
        super().timed_out(now)
        self._most = 0


CONTROLS: Final[dict[str, type[Control]]] = {
    "reno": Reno,
    "cubic": Cubic,
    "reno-linux": LinuxReno,
    "cubic-linux": LinuxCubic,
}
"""The congestion controls by name."""
