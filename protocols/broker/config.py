"""Parameters of a broker and its clients."""

from dataclasses import dataclass

from protocols.central.settings import first_retry, longest_retry
from protocols.settings import check, setting

__all__ = ["BrokerConfig"]


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Bounds of what waits, and times."""

    window: int = setting(
        64,
        "count",
        1,
        65_536,
        help="messages of a publisher that the broker has not accepted, from which on it is blocked, or its connection held",
    )
    queue: int = setting(
        64,
        "count",
        1,
        1_000_000,
        help="messages waiting for one subscriber, from which on the broker accepts none that is for it",
    )
    clients: int = setting(10_000, "count", 1, 1_000_000, help="connections of the broker; further ones are closed")
    stall: float = setting(
        30.0, "seconds", 1e-3, 1e6, help="time in which a subscriber whose queue is full takes nothing until it is closed"
    )
    heartbeat: float = setting(
        10.0,
        "seconds",
        0.0,
        1e6,
        help="time within which each end sends something, if only a heart-beat; 0: no heart-beats",
        source="STOMP 1.2, heart-beating",
    )
    segment: int = setting(1400, "bytes", 1, 1 << 24, help="bytes of a file that a receiver gives to its application at once")
    keep: float = setting(
        5.0,
        "seconds",
        0.0,
        3600.0,
        help="time for which the broker keeps the files of a sender for receivers that come late, from the beginning of the "
        "sender's session, or that come back, from when their connection ended",
    )
    retry: float = first_retry()
    retry_max: float = longest_retry()

    def __post_init__(self) -> None:
        check(self)
