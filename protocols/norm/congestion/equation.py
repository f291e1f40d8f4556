"""The rates of a TCP at a loss event rate: the throughput equation of Reno (RFC 4654 2.1, RFC 5348 3.1) and that of CUBIC."""

from collections.abc import Callable
from math import sqrt
from typing import Final, TypeAlias

__all__ = ["EQUATIONS", "LEAST_LOSS", "Equation", "cubic_rate", "loss_event_rate", "tcp_rate"]

Equation: TypeAlias = Callable[[float, float, float], float]
"""Maps segment (bytes), round-trip time (seconds) and loss event rate to a rate in bytes per second."""

LEAST_LOSS: Final = 1e-9
"""The lowest loss event rate, with which the equations give more than any link has."""
STEPS: Final = 60
"""Halvings of the logarithmic interval of loss event rates: more precise than a float."""
CUBIC_SCALE: Final = (0.4 * (3.0 + 0.7) / (4.0 * (1.0 - 0.7))) ** 0.25
"""Segments of the mean window of CUBIC where round-trip time and loss event rate are equal (RFC 9438 5.1, equation 6)."""


def tcp_rate(segment: float, rtt: float, loss: float) -> float:
    """Return the rate in bytes per second of a TCP Reno with segments of so many bytes, an ACK for each and RTO 4 `rtt`.

    `rtt` is in seconds, `loss` the rate of loss events in (0, 1].
    """
    loss = min(max(loss, LEAST_LOSS), 1.0)
    return segment / (rtt * (sqrt(2.0 * loss / 3.0) + 12.0 * sqrt(3.0 * loss / 8.0) * loss * (1.0 + 32.0 * loss * loss)))


def cubic_rate(segment: float, rtt: float, loss: float) -> float:
    """Return the rate of a TCP CUBIC, which is at least that of Reno (RFC 9438 4.3 and 5.1).

    Where its window is larger than Reno's, which is sqrt(1.5 / loss) without timeouts, it has as much more of the rate.
    """
    loss = min(max(loss, LEAST_LOSS), 1.0)
    window = CUBIC_SCALE * float((rtt / loss) ** 0.75)
    return tcp_rate(segment, rtt, loss) * max(1.0, window * sqrt(loss / 1.5))


EQUATIONS: Final[dict[str, Equation]] = {"reno": tcp_rate, "cubic": cubic_rate}
"""The equations, by the value of the setting `fair_to`."""


def loss_event_rate(equation: Equation, segment: float, rtt: float, rate: float) -> float:
    """Return the loss event rate at which an equation gives `rate`; 1 for rates below all that it gives."""
    if equation(segment, rtt, 1.0) >= rate:
        return 1.0
    low, high = LEAST_LOSS, 1.0
    for _ in range(STEPS):
        middle = sqrt(low * high)
        low, high = (middle, high) if equation(segment, rtt, middle) > rate else (low, middle)
    return high
