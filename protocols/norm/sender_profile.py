"""Coding and timing of a sender at a receiver: one object, shared by receivers with equal values."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from protocols.norm.messages import Origin
from protocols.norm.quantise import gsize_value, rtt_seconds

__all__ = ["SenderProfile", "unknown_sender"]

UNKNOWN_SEGMENT: Final = 40
"""Bytes of requests in one NACK while the sender's segment size is unknown, as in NRL NORM."""


@dataclass(frozen=True, slots=True)
class SenderProfile:
    """Coding and advertised timing of a sender. Thousands of simulated receivers share equal ones."""

    fec_id: int
    segment: int
    """Bytes of a segment."""
    parity: int
    """Usable parity symbols of a block."""
    grtt: float
    """The group round-trip time in seconds."""
    backoff: int
    """The back-off factor: a back-off spreads over so many GRTT (RFC 5740 5.3)."""
    group_size: float

    def with_coding(self, fec_id: int, segment: int, parity: int) -> "SenderProfile":
        """Return the profile of a sender with this coding."""
        return _shared(fec_id, segment, parity, self.grtt, self.backoff, self.group_size)

    def with_timing(self, origin: Origin) -> "SenderProfile":
        """Return the profile of a sender that advertises the timing of `origin`."""
        grtt, group_size = rtt_seconds(origin.grtt), gsize_value(origin.gsize)
        return _shared(self.fec_id, self.segment, self.parity, grtt, origin.backoff, group_size)


_known: Final = lru_cache(maxsize=64)(SenderProfile)


class _Latest:
    """The profile that was returned last; a change of a sender's timing gives the same one at each of its receivers."""

    __slots__ = ("profile",)

    def __init__(self) -> None:
        self.profile = _known(5, UNKNOWN_SEGMENT, 0, 0.0, 0, 1.0)


_latest: Final = _Latest()


def _shared(fec_id: int, segment: int, parity: int, grtt: float, backoff: int, group_size: float) -> SenderProfile:
    """Return the profile with these values."""
    last = _latest.profile
    if (
        (last.grtt != grtt or last.backoff != backoff or last.group_size != group_size)
        or (last.fec_id != fec_id or last.segment != segment)
        or last.parity != parity
    ):
        last = _latest.profile = _known(fec_id, segment, parity, grtt, backoff, group_size)
    return last


def unknown_sender() -> SenderProfile:
    """Return the profile of a sender before its first message."""
    return _shared(5, UNKNOWN_SEGMENT, 0, 0.0, 0, 1.0)
