"""Times, group sizes, rates and losses as the small codes NORM carries, and back (RFC 5401 appendix, RFC 5740 4.2.1).

Rates are in bytes per second. Codes of round-trip times and group sizes round up, so that no timer is too short; the value of a
code has that code. Below 33 us the RFC's formula rounds round-trip times down to microseconds; no sender here advertises less
than 1 ms. Every number is accepted: values out of range are clamped.
"""

from math import ceil, exp, floor, log, log10
from typing import Final

__all__ = [
    "gsize_code",
    "gsize_value",
    "loss_value",
    "rate_code",
    "rate_value",
    "rtt_code",
    "rtt_seconds",
]

RTT_MIN: Final = 1e-6
RTT_MAX: Final = 1000.0
_LINEAR_END: Final = 33e-6
# Floating-point noise must not push a value that is exactly representable to the next code.
_NOISE: Final = 1e-9
_RTT_SECONDS: Final = tuple((q + 1) * RTT_MIN if q < 31 else RTT_MAX / exp((255 - q) / 13) for q in range(256))
_POWERS: Final = tuple(10.0**e for e in range(16))


def rtt_code(seconds: float) -> int:
    """Return the 8-bit code of a round-trip time, clamped to 1 microsecond .. 1000 seconds."""
    seconds = min(max(seconds, RTT_MIN), RTT_MAX)
    if seconds < _LINEAR_END:
        return floor(seconds / RTT_MIN + _NOISE) - 1
    return ceil(255 - 13 * log(RTT_MAX / seconds) - _NOISE)


def rtt_seconds(code: int) -> float:
    """Return the round-trip time an 8-bit code stands for."""
    return _RTT_SECONDS[code]


def gsize_code(size: int) -> int:
    """Return the 4-bit code of a group size: the smallest of 10, 50, 100, 500, ... 5e8 that is not below `size`."""
    exponent = len(str(max(int(size), 1))) - 1
    if exponent < 1:
        return 0
    if exponent > 8:
        return 15
    mantissa = -(-int(size) // 10**exponent)
    if mantissa > 5:
        return exponent if exponent < 8 else 15
    return exponent + 7 if mantissa > 1 else exponent - 1


_GSIZES: Final = tuple(float((5 if code & 8 else 1) * 10 ** ((code & 7) + 1)) for code in range(16))


def gsize_value(code: int) -> float:
    """Return the group size a 4-bit code stands for."""
    return _GSIZES[code & 15]


def rate_code(rate: float) -> int:
    """Return the 16-bit code of a rate in bytes per second: 12 bits of mantissa, 4 of decimal exponent; 1 for no rate."""
    if rate <= 0:
        return 1
    if rate >= 1e16:
        return 0xFFFF
    # Below one byte per second the exponent stays 0 and the mantissa shrinks, at most to its smallest step.
    exponent = min(max(int(log10(rate)), 0), 15)
    mantissa = max(int(rate / _POWERS[exponent] * 409.6 + 0.5), 1)
    if mantissa > 4095:
        # Rounded up to the next power of ten. NRL NORM lets the mantissa overflow here, and the rate becomes 0.
        exponent, mantissa = (exponent + 1, 410) if exponent < 15 else (15, 4095)
    return mantissa << 4 | exponent


def rate_value(code: int) -> float:
    """Return the rate in bytes per second a 16-bit code stands for."""
    return (code >> 4) * 10 / 4096 * _POWERS[code & 15]


def loss_value(code: int) -> float:
    """Return the loss fraction a 16-bit code stands for."""
    return code / 65535
