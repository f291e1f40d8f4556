"""Parameters of the Distributor protocol."""

from dataclasses import dataclass
from math import inf

from protocols.settings import check, setting

__all__ = ["DOUBLED", "LEAST_RATE", "DistributorConfig"]

JAVA = "default of the Java program"
README = "README, Limiting the Transmission Rate"
DOUBLED = 2
"""How often the time-out of requests is doubled."""
LEAST_RATE = 31_250.0
"""Bytes per second below which no limit reaches: 0.25 Mbit/s."""


@dataclass(frozen=True, slots=True)
class DistributorConfig:
    """Parameters of a connection: one multicast group, its publishers and its subscribers."""

    rate: float = setting(
        inf,
        "rate",
        1.0,
        help="most bytes of UDP payload per second, retransmissions included; at least 0.25 Mbit/s",
        source=README,
    )
    segment: int = setting(8192, "bytes", 128, 65_507, help="most bytes of a datagram; the same at all nodes", source=JAVA)
    holdback: float = setting(0.0, "seconds", 0.0, 3600.0, help="longest wait of an update for others to share its datagram")
    holdback_threshold: float = setting(
        200.0, "number", 0.0, 1e9, help="datagrams per second from which on updates wait for others", source=JAVA
    )
    check_interval: float = setting(
        0.25, "seconds", 0.001, 60.0, help="time over which the rate for the hold-back threshold is measured", source=README
    )
    queue: int = setting(16, "count", 1, 1_000_000, help="datagrams that wait before the publisher is blocked")
    heartbeat: float = setting(3.0, "seconds", 0.01, 3600.0, help="interval of heartbeats without new updates", source=JAVA)
    heartbeats_lost: int = setting(
        10, "count", 0, 1000, help="heartbeats that may be missing before a publisher is gone", source=JAVA
    )
    configuration: float = setting(15.0, "seconds", 0.01, 3600.0, help="interval of configuration messages", source=JAVA)
    server_holdback: float = setting(
        0.02, "seconds", 0.0, 60.0, help="wait of a publisher before it retransmits, in which it merges requests", source=JAVA
    )
    cache: int = setting(10_000_000, "bytes", 0, 1 << 40, help="bytes of sent datagrams kept for retransmission", source=JAVA)
    cache_age: float = setting(
        60.0, "seconds", 0.0, 1e9, help="age at which a sent datagram is no longer retransmitted", source=JAVA
    )
    request_delay: float = setting(
        0.01, "seconds", 0.0, 60.0, help="longest random wait before a request, in which that of another node suppresses it"
    )
    timeout: float = setting(
        0.8, "seconds", 0.001, 600.0, help="wait for a retransmission before the next request; doubled twice", source=JAVA
    )
    retries: int = setting(10, "count", 0, 1000, help="requests after the first before a datagram is given up", source=JAVA)
    requested: int = setting(64, "count", 1, 1_000_000, help="datagrams of a publisher that are requested at the same time")
    receive_queue: int = setting(
        32_000_000, "bytes", 1, 1 << 40, help="bytes of datagrams that a subscriber keeps until earlier ones arrive"
    )
    nagging_window: float = setting(0.0, "seconds", 0.0, 1e6, help="interval of the nagging monitor; 0: off", source=JAVA)
    nagging_check: float = setting(
        60.0, "seconds", 0.0, 1e6, help="time of requests in every window after which a subscriber gives up"
    )
    nagging_max: int = setting(0, "count", 0, 1 << 40, help="requests in this time from which on it gives up")

    def __post_init__(self) -> None:
        check(self)

    @property
    def longest_wait(self) -> float:
        """The longest time between two requests of a subscriber for the same datagram, in seconds."""
        return self.timeout * 2.0**DOUBLED + self.request_delay

    @property
    def limit(self) -> float:
        """The rate that is kept, in bytes per second."""
        return max(self.rate, LEAST_RATE)
