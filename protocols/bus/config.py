"""Parameters of the bus."""

from dataclasses import dataclass

from protocols.nacked.config import NackedConfig
from protocols.settings import check, setting

__all__ = ["BusConfig"]


@dataclass(frozen=True, slots=True)
class BusConfig(NackedConfig):
    """Parameters of the bus: the speed of the network card, the time of a call, and a fault of iBus."""

    rate: float = setting(
        11_600_000.0, "rate", 1.0, 1e12, help="rate at which the network card takes packets, UDP payload bytes per second"
    )
    cost: float = setting(
        0.0003,
        "seconds",
        1e-6,
        10.0,
        help="time that a call of publish takes, else a saturated publisher would never end; chosen so that 4 kB messages come "
        "faster than 100 Mbit/s carries them",
        source="thesis of FJM2, 5.5.1: iBus crashes from 4 KB on",
    )
    leave_fault: int = setting(
        0,
        "choice",
        choices=(0, 1),
        help="1: a subscriber that leaves ends the publishers",
        source="thesis of FJM2, 7",
    )

    def __post_init__(self) -> None:
        check(self)
