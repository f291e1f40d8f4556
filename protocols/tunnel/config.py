"""Parameters of a tunnel, which a scenario writes beside `role: tunnel`."""

from dataclasses import dataclass

from protocols.settings import check, setting

__all__ = ["TunnelOptions"]

THESIS = "FJM2D (thesis, 3.6)"


@dataclass(frozen=True, slots=True)
class TunnelOptions:
    """Parameters of a tunnel: its network, its ring, its rates, and its messages to publishers."""

    lan: str = setting("", "network", help="network of the site; a router has several, and needs it")
    ring: int = setting(
        256,
        "count",
        1,
        1_000_000,
        help="packets that wait to be sent to the other sites; further ones are dropped",
        source=THESIS,
    )
    pace: float = setting(0.0, "rate", 0.0, 1e12, help="rate of the datagrams to each peer; 0: as they come, as in the thesis")
    brake: bool = setting(
        False, "choice", choices=(False, True), help="tell the publishers of the site how full the ring is, and what is lost"
    )
    work: float = setting(0.0, "seconds", 0.0, 1.0, help="processor time of each packet that is sent", source="thesis, 6.2.2")
    hops: int = setting(1, "count", 1, 15, help="tunnels that a packet passes on its way; 1 where all know each other")
    site: int = setting(0, "count", 0, 0xFFFFFFFF, help="number of the site; 0: that of the tunnel that is there first")
    hello: float = setting(
        0.5, "seconds", 1e-3, 3600.0, help="time between two messages that keep other tunnels of the site quiet"
    )
    without: str = setting(
        "nothing",
        "choice",
        choices=("nothing", "site", "tunnels", "memory"),
        help="the cut of loops that is switched off, to see what the others do",
    )
    key_file: str = setting("", "file", help="file of keys by which datagrams between tunnels are authenticated")

    def __post_init__(self) -> None:
        check(self)
