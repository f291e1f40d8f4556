"""The state of congestion control for statistics, and the flags of its messages (RFC 5740 4.2.3.4)."""

from typing import Final, NamedTuple

__all__ = [
    "FLAG_CLR",
    "FLAG_LEAVE",
    "FLAG_LIMIT",
    "FLAG_PLR",
    "FLAG_RTT",
    "FLAG_START",
    "ControlState",
    "FeedbackState",
    "join_loss",
    "split_loss",
]

FLAG_CLR: Final = 0x01
"""The node is the current limiting receiver, whose rate the sender adopts."""
FLAG_PLR: Final = 0x02
"""The node is a potential limiting receiver."""
FLAG_RTT: Final = 0x04
"""The receiver has its round-trip time from the sender."""
FLAG_START: Final = 0x08
"""The receiver has seen no loss: its rate is twice the one at which it receives."""
FLAG_LEAVE: Final = 0x10
"""The receiver leaves the group."""
FLAG_LIMIT: Final = 0x20
"""The rate is twice the one at which the receiver receives, as that is less than the equation gives (NRL, not in the RFC)."""
_LOSS_SCALE: Final = 0xFFFFFFFF


class ControlState(NamedTuple):
    """The congestion control of a sender. Rates are in bytes of UDP payload per second, times in seconds."""

    rate: float
    """The rate at which the sender sends now."""
    phase: str
    """"no receiver" before the first feedback, "slow start" before the first loss event, then "steady"."""
    clr: int | None
    """Node id of the current limiting receiver."""
    clr_rtt: float
    clr_loss: float
    """The loss event rate of the current limiting receiver; 0 while unknown."""
    clr_rate: float
    plrs: tuple[int, ...]
    """Node ids of the potential limiting receivers."""
    changes: int
    """How often another receiver became the current limiting receiver."""


class FeedbackState(NamedTuple):
    """State of congestion control of one receiver for one sender. Rates are in bytes per second, times in seconds."""

    rtt: float
    is_confirmed: bool
    """Whether the sender has sent the round-trip time; otherwise it is the advertised GRTT."""
    loss: float
    """The loss event rate."""
    rate: float
    """The rate of the feedback: by the equation, or twice `receive_rate`."""
    receive_rate: float
    role: str
    """"CLR", "PLR" or ""."""
    loss_events: int


def split_loss(loss: float) -> tuple[int, int]:
    """Return a loss fraction as the field cc_loss and the 16 bits below it, which NRL NORM has in the reserved field."""
    code = int(min(max(loss, 0.0), 1.0) * _LOSS_SCALE + 0.5)
    return code >> 16, code & 0xFFFF


def join_loss(high: int, low: int) -> float:
    """Return the loss fraction of the two halves of `split_loss`."""
    return (high << 16 | low) / _LOSS_SCALE
