"""Parameters of messages over plain UDP."""

from dataclasses import dataclass

from protocols.settings import check, setting

__all__ = ["DatagramConfig"]


@dataclass(frozen=True, slots=True)
class DatagramConfig:
    """Rate, size of a datagram, and whether it goes to the group or to each subscriber."""

    rate: float = setting(1_250_000.0, "rate", 1.0, 1e12, help="sending rate, UDP payload bytes per second")
    segment: int = setting(1400, "bytes", 1, 65_000, help="bytes of a message in a datagram; a longer message takes several")
    cast: str = setting(
        "multicast", "choice", choices=("multicast", "unicast"), help="to the group, or a copy to each subscriber"
    )
    queue: int = setting(16, "count", 1, 1_000_000, help="messages that wait for the rate before the publisher is blocked")
    incomplete: int = setting(64, "count", 1, 65_536, help="messages of which a subscriber keeps parts, the latest ones")

    def __post_init__(self) -> None:
        check(self)
