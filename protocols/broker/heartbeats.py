"""Heart-beats of one end of a connection (STOMP 1.2): something is sent, and something is heard, within agreed times."""

from functools import lru_cache
from math import inf

from protocols.broker.messages import Beat
from protocols.central.outbox import Outbox

__all__ = ["Heartbeats", "in_milliseconds"]

_GRACE = 3.0
"""How many times of the agreed one pass until an end that is not heard counts as gone."""


def in_milliseconds(seconds: float) -> int:
    """Return a time as a header has it."""
    return round(seconds * 1000)


@lru_cache(maxsize=64)
def _agreed(own: float, send_every: int, hear_every: int) -> tuple[float, float]:
    """Return after how many seconds something is sent, and after how many an end that is not heard is gone."""
    # Half the time, since what is sent just after a look is noticed by the next one only.
    send = max(own, hear_every / 1000) / 2 if own and hear_every else inf
    return send, max(own, send_every / 1000) * _GRACE if own and send_every else inf


class Heartbeats:
    """Sends heart-beats by an outbox, and decides when the other end counts as gone; times are in seconds.

    `own` is the time of this end, 0 for none; `send_every` and `hear_every` are those of the other end, in milliseconds.
    """

    __slots__ = ("_hear_every", "_look_at", "_outbox", "_send_every", "_sent", "heard_at")

    def __init__(self, own: float, send_every: int, hear_every: int, outbox: Outbox, now: float) -> None:
        self._outbox = outbox
        self._send_every, self._hear_every = _agreed(own, send_every, hear_every)
        self._look_at = now + self._send_every
        self._sent = outbox.sent
        self.heard_at = now

    def serve(self, now: float, next_at: float = -inf) -> None:
        """Send a heart-beat if nothing was sent for half the agreed time and nothing waits.

        `next_at` is when this is called next, if not when `deadline` says; what is due before that is done now.
        """
        if now < self._look_at and next_at <= self._look_at:
            return
        if self._outbox.sent == self._sent and not self._outbox.waiting:
            self._outbox.send(Beat())
        self._sent = self._outbox.sent
        self._look_at = now + self._send_every

    def is_gone(self, now: float) -> bool:
        """Return whether the other end was not heard for too long."""
        return now >= self.heard_at + self._hear_every

    @property
    def deadline(self) -> float:
        """When something is due by these times."""
        return min(self._look_at, self.heard_at + self._hear_every)
