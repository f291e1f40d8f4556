"""Parameters of messages that are repaired on NACKs."""

from dataclasses import dataclass

from protocols.settings import check, setting

__all__ = ["NackedConfig"]


@dataclass(frozen=True, slots=True)
class NackedConfig:
    """Sizes and times."""

    segment: int = setting(1400, "bytes", 1, 65_000, help="bytes of a message in a packet; a longer message takes several")
    backoff: float = setting(0.01, "seconds", 0.0, 1e3, help="longest random time before a NACK; who overhears one sends none")
    holdoff: float = setting(
        0.05, "seconds", 1e-3, 1e3, help="time after a NACK until what is still missing is requested again"
    )
    tries: int = setting(20, "count", 1, 1000, help="NACKs for a packet until it counts as lost")
    history: float = setting(1.0, "seconds", 0.0, 1e6, help="time for which packets are kept for repairs after they were sent")
    heartbeat: float = setting(
        0.25, "seconds", 1e-3, 1e3, help="time after the last packet until its number is announced, again in doubled times"
    )
    heartbeats: int = setting(6, "count", 0, 1000, help="announcements of the last packet")
    ahead: int = setting(16_384, "count", 1, 1_000_000, help="packets behind a missing one that a subscriber keeps")

    def __post_init__(self) -> None:
        check(self)
