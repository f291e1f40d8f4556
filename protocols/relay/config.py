"""Parameters of a relay and its clients."""

from dataclasses import dataclass

from protocols.central.settings import first_retry, longest_retry
from protocols.settings import check, setting

__all__ = ["RelayConfig"]


@dataclass(frozen=True, slots=True)
class RelayConfig:
    """Bounds of what waits, and the times between attempts to connect."""

    window: int = setting(
        64, "count", 1, 65_536, help="messages of a publisher that the relay has not accepted, from which on it is blocked"
    )
    queue: int = setting(
        64,
        "count",
        1,
        1_000_000,
        help="messages waiting for one subscriber, from which on the relay accepts none",
    )
    clients: int = setting(10_000, "count", 1, 1_000_000, help="connections of the relay; further ones are closed")
    retry: float = first_retry()
    retry_max: float = longest_retry()

    def __post_init__(self) -> None:
        check(self)
