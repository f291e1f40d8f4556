"""A receiver's answers to GRTT probes (RFC 5740 5.5.1): the echo in every feedback message, and ACK(CC)."""

from math import inf

from protocols.norm.backoff import backoff
from protocols.norm.messages import Probe
from protocols.rng import Rng

__all__ = ["Feedback"]

LEAST_FACTOR = 4
"""Answers to probes spread over at least this many GRTT, whatever the NACK back-off."""


class Feedback:
    """What one receiver owes one sender for its last probe. `due` is when an ACK(CC) is to be sent, inf for never."""

    __slots__ = ("_heard", "_hold", "_probe", "due")

    def __init__(self) -> None:
        # The message itself, which all receivers share, and not a number each.
        self._probe: Probe | None = None
        self._heard = 0.0
        self._hold = -inf
        self.due = inf

    def probed(self, probe: Probe, now: float, grtt: float, factor: int, group_size: float, rng: Rng) -> None:
        """A probe came; one with a rate wants an answer, unless one was given a moment ago."""
        self._probe = probe
        self._heard = now
        if probe.rate is not None and self.due == inf and now >= self._hold:
            self.due = now + backoff(rng.uniform(), grtt * max(factor, LEAST_FACTOR), group_size)

    def echo(self, now: float) -> tuple[int, int]:
        """The sender's clock as this receiver knows it: seconds and microseconds for a NACK or ACK."""
        probe = self._probe
        sent = probe.send_sec * 1_000_000 + probe.send_usec if probe is not None else 0
        seconds, microseconds = divmod(sent + round((now - self._heard) * 1e6), 1_000_000)
        return seconds & 0xFFFFFFFF, microseconds

    def answered(self, now: float, grtt: float, factor: int) -> None:
        """An answer went out, in an ACK or in a NACK."""
        self.due = inf
        self._hold = now + grtt * factor

    def overheard(self) -> None:
        """Another receiver answered the probe: one answer is enough to go on."""
        self.due = inf
