"""A receiver's answers to GRTT probes (RFC 5740 5.5.1): the echo in every feedback message, and ACK(CC)."""

from math import inf

from protocols.norm.backoff import NEVER, backoff
from protocols.norm.messages import Probe
from protocols.rng import Rng

__all__ = ["NOTHING_HEARD", "ProbeResponse"]

LEAST_FACTOR = 4
"""Answers to probes spread over at least this many GRTT, whatever the NACK back-off."""


class ProbeResponse:
    """What one receiver owes one sender for its last probe. `due` is when an ACK(CC) is to be sent, inf for never.

    It does not change: what happens makes another. Receivers that owe nothing for the same probe share one.
    """

    __slots__ = ("_heard", "_hold", "_probe", "due")

    def __init__(self, probe: Probe | None = None, heard: float = 0.0, hold: float = NEVER, due: float = inf) -> None:
        # The message itself, which all receivers share, and not a number each.
        self._probe = probe
        self._heard = heard
        self._hold = hold
        self.due = due

    def probed(self, probe: Probe, now: float, grtt: float, factor: int, group_size: float, rng: Rng) -> "ProbeResponse":
        """A probe came; one with a rate wants an answer, unless one was given a moment ago."""
        due = self.due
        if probe.rate is not None and due == inf and now >= self._hold:
            due = now + backoff(rng.uniform(), grtt * max(factor, LEAST_FACTOR), group_size)
        return ProbeResponse(probe, now, self._hold, due)

    def echo(self, now: float) -> tuple[int, int]:
        """The sender's clock as this receiver knows it: seconds and microseconds for a NACK or ACK."""
        probe = self._probe
        sent = probe.send_sec * 1_000_000 + probe.send_usec if probe is not None else 0
        seconds, microseconds = divmod(sent + round((now - self._heard) * 1e6), 1_000_000)
        return seconds & 0xFFFFFFFF, microseconds

    def answered(self, now: float, grtt: float, factor: int) -> "ProbeResponse":
        """An answer went out, in an ACK or in a NACK."""
        return ProbeResponse(self._probe, self._heard, now + grtt * factor)

    def overheard(self) -> "ProbeResponse":
        """Another receiver answered the probe: one answer is enough to go on."""
        if self.due == inf:
            return self
        if self._hold != NEVER or self._probe is None:
            return ProbeResponse(self._probe, self._heard, self._hold)
        resting = self._probe.resting
        if resting is None or resting._heard != self._heard:
            resting = self._probe.resting = ProbeResponse(self._probe, self._heard)
        return resting


NOTHING_HEARD = ProbeResponse()
"""Before the first probe."""
