"""A receiver's answers to GRTT probes (RFC 5740 5.5.1): the echo in every feedback message, and ACK(CC)."""

from math import inf
from typing import Final

from protocols.norm.backoff import NEVER, backoff
from protocols.norm.messages import Probe
from protocols.norm.sender_profile import SenderProfile
from protocols.rng import Rng

__all__ = ["NOTHING_HEARD", "ProbeResponse"]

LEAST_FACTOR: Final = 4
"""Answers to probes spread over at least this many GRTT, whatever the NACK back-off."""


class ProbeResponse:
    """One receiver's state about the last probe of one sender. `due` is when an ACK(CC) is to be sent, inf for never.

    Immutable: every change makes another. Receivers without a pending answer to the same probe share one.
    """

    __slots__ = ("_clock", "_heard", "_hold", "due")

    def __init__(self, clock: int = 0, heard: float = 0.0, hold: float = NEVER, due: float = inf) -> None:
        self._clock = clock
        """The sender's clock in the probe, microseconds."""
        self._heard = heard
        self._hold = hold
        """No answer before this time, seconds."""
        self.due = due

    def probed(self, probe: Probe, now: float, sender: SenderProfile, rng: Rng) -> "ProbeResponse":
        """Return the state after a probe. One with a rate is answered after a back-off, unless an answer was given recently."""
        due = self.due
        if probe.rate is not None and due == inf and now >= self._hold:
            due = now + backoff(rng.uniform(), sender.grtt * max(sender.backoff, LEAST_FACTOR), sender.group_size)
        return ProbeResponse(_latest.clock_of(probe), now, self._hold, due)

    def noted(self, probe: Probe, now: float) -> "ProbeResponse":
        """Return the state after a probe that congestion control answers."""
        return ProbeResponse(_latest.clock_of(probe), now)

    def echo(self, now: float) -> tuple[int, int]:
        """Return the sender's clock, estimated from its last probe: seconds and microseconds for a NACK or ACK."""
        seconds, microseconds = divmod(self._clock + round((now - self._heard) * 1e6), 1_000_000)
        return seconds & 0xFFFFFFFF, microseconds

    def answered(self, now: float, sender: SenderProfile) -> "ProbeResponse":
        """Return the state after an answer, in an ACK or in a NACK."""
        return ProbeResponse(self._clock, self._heard, now + sender.grtt * sender.backoff)

    def overheard(self) -> "ProbeResponse":
        """Return the state after another receiver's answer: one per probe suffices, so a pending one is not sent."""
        if self.due == inf:
            return self
        if self._hold != NEVER:
            return ProbeResponse(self._clock, self._heard, self._hold)
        return _latest.suppressed(self._clock, self._heard)


class _Latest:
    """The clock of the last probe, and the last state without a pending answer: simulated receivers share these objects.

    Each is replaced and never modified, because sessions may run in threads.
    """

    __slots__ = ("_probed", "_suppressed")

    def __init__(self) -> None:
        self._probed: tuple[Probe | None, int] = None, 0
        self._suppressed = ProbeResponse()

    def clock_of(self, probe: Probe) -> int:
        """Return the sender's clock in a probe, microseconds."""
        probed = self._probed
        if probed[0] is not probe:
            probed = self._probed = probe, probe.send_sec * 1_000_000 + probe.send_usec
        return probed[1]

    def suppressed(self, clock: int, heard: float) -> ProbeResponse:
        """Return the state after a probe that is not answered."""
        last = self._suppressed
        if last._clock != clock or last._heard != heard:
            last = self._suppressed = ProbeResponse(clock, heard)
        return last


_latest: Final = _Latest()
NOTHING_HEARD: Final = ProbeResponse()
"""The state before the first probe."""
