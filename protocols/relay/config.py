"""Parameters of a relay and its clients."""

from dataclasses import dataclass

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
    retry: float = setting(
        0.2,
        "seconds",
        1e-3,
        1e6,
        help="time to the first attempt to connect again, doubled by each that fails",
        at_most="retry_max",
    )
    retry_max: float = setting(5.0, "seconds", 1e-3, 1e6, help="longest time between attempts to connect")

    def __post_init__(self) -> None:
        check(self)
