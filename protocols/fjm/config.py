"""Parameters of FJM, and the faults that the thesis of FJM2 reports of it (2.3)."""

from dataclasses import dataclass

from protocols.nacked.config import NackedConfig
from protocols.settings import check, setting

__all__ = ["FjmConfig"]

_THESIS = "thesis of FJM2, 2.3"


@dataclass(frozen=True, slots=True)
class FjmConfig(NackedConfig):
    """Parameters of election, registration and flow control, and the faults of FJM, each off unless it is 1."""

    election: float = setting(
        0.1, "seconds", 1e-3, 1e3, help="time without the answer of a higher manager after which a manager is the guard"
    )
    beacon: float = setting(0.2, "seconds", 1e-3, 1e3, help="time between two heartbeats of the guard", at_most="silence")
    silence: float = setting(1.0, "seconds", 1e-3, 1e3, help="time without a heartbeat after which a guard is elected")
    ask: float = setting(
        0.2, "seconds", 1e-3, 1e3, help="time after which a request for a topic that was not answered is sent again"
    )
    rate: float = setting(1_250_000.0, "rate", 1.0, 1e12, help="highest sending rate, UDP payload bytes per second")
    queue: int = setting(
        1000, "count", 1, 1_000_000, help="messages of a publisher that wait to be sent, from which on it is blocked"
    )
    rate_min: float = setting(12_500.0, "rate", 1.0, 1e12, help="lowest sending rate", at_most="rate")
    slower: float = setting(0.5, "number", 0.01, 0.99, help="factor of the rate on a NACK", source=_THESIS)
    faster: float = setting(0.05, "number", 0.001, 1.0, help="part of the highest rate by which it grows", source=_THESIS)
    quiet: float = setting(0.1, "seconds", 1e-3, 1e3, help="time without a NACK after which the rate grows", source=_THESIS)
    gap_fault: int = setting(
        0,
        "choice",
        choices=(0, 1),
        help="1: a message sooner than `gap` after the one before ends the publisher",
        source=_THESIS,
    )
    gap: float = setting(0.05, "seconds", 0.0, 1e3, help="least time between two messages with `gap_fault`", source=_THESIS)
    churn_fault: int = setting(
        0, "choice", choices=(0, 1), help="1: every change of a topic's members keeps their processors busy", source=_THESIS
    )
    churn: float = setting(0.5, "seconds", 0.0, 1e3, help="time for which they are busy with `churn_fault`")
    same_host_fault: int = setting(
        0,
        "choice",
        choices=(0, 1),
        help="1: a host that publishes and subscribes is refused",
        source="thesis of FJM2, abstract",
    )
    address_fault: int = setting(
        0,
        "choice",
        choices=(0, 1),
        help="1: network cards can't tell topics apart, and the processor discards the packets of others",
        source=_THESIS,
    )
    unwanted: float = setting(0.00002, "seconds", 0.0, 1.0, help="processor time for such a packet with `address_fault`")

    def __post_init__(self) -> None:
        check(self)
