"""Parameters of SRM."""

from dataclasses import dataclass

from protocols.arq.config import AConfig
from protocols.settings import setting

__all__ = ["SrmConfig"]

FLOYD = "Floyd et al. 1997"
RTP = "RFC 3550 6.2"


@dataclass(frozen=True, slots=True)
class SrmConfig(AConfig):
    """Requests wait d * (c1 + c2 * U) seconds, repairs d * (d1 + d2 * U), with U uniform in [0, 1).

    d is the distance (one-way delay) to the source for requests, and to the requester for repairs. Members estimate it by
    session messages, which together take `session_share` of `rate`.
    """

    distance: float = setting(
        0.02, "seconds", 1e-6, 1e6, help="one-way delay between members until it has been measured", source=FLOYD
    )
    timers: str = setting(
        "adaptive",
        "choice",
        choices=("adaptive", "fixed"),
        help="adaptive: c1, c2, d1, d2 are initial values (random parts of 0 are kept); fixed: they never change",
        source=FLOYD,
    )
    c1: float = setting(2.0, "number", 0.0, 1e6, help="constant part of the request timer, in units of distance", source=FLOYD)
    c2: float = setting(2.0, "number", 0.0, 1e6, help="random part of the request timer, in units of distance", source=FLOYD)
    d1: float = setting(1.0, "number", 0.0, 1e6, help="constant part of the repair timer, in units of distance", source=FLOYD)
    d2: float = setting(
        1.0,
        "number",
        0.0,
        1e6,
        help="random part of the repair timer, in units of distance; adaptive timers start at d2 * sqrt(number of members)",
        source=FLOYD,
    )
    cache: int = setting(4096, "count", 0, 1 << 24, help="number of most recent packets a receiver keeps to repair others")
    session_share: float = setting(
        0.05, "number", 0.0, 1.0, help="share of the rate for session messages of all members; 0: none are sent", source=RTP
    )
    session_interval: float = setting(
        0.1, "seconds", 1e-3, 1e6, help="1.22 times the shortest mean interval between session messages of a member", source=RTP
    )
    members: int = setting(
        1000, "count", 2, 1 << 24, help="assumed number of members, until a member has sent two session messages", source=FLOYD
    )
    peers: int = setting(
        128, "count", 1, 65_536, help="members whose distance is remembered; of larger groups a sample", source="RFC 2762"
    )
