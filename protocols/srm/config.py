"""Parameters of the SRM-like protocol."""

from dataclasses import dataclass

from protocols.arq.config import AConfig
from protocols.settings import setting

__all__ = ["SrmConfig"]

FLOYD = "Floyd et al. 1997"


@dataclass(frozen=True, slots=True)
class SrmConfig(AConfig):
    """Requests wait d * (c1 + c2 * U) seconds, repairs d * (d1 + d2 * U), with d the `distance` and U uniform in [0, 1)."""

    distance: float = setting(
        0.02, "seconds", 1e-6, 1e6, help="one-way delay between members, by which timers are scaled", source=FLOYD
    )
    c1: float = setting(2.0, "number", 0.0, 1e6, help="constant part of the request timer, in units of distance", source=FLOYD)
    c2: float = setting(2.0, "number", 0.0, 1e6, help="random part of the request timer, in units of distance", source=FLOYD)
    d1: float = setting(1.0, "number", 0.0, 1e6, help="constant part of the repair timer, in units of distance", source=FLOYD)
    d2: float = setting(1.0, "number", 0.0, 1e6, help="random part of the repair timer, in units of distance", source=FLOYD)
    cache: int = setting(4096, "count", 0, 1 << 24, help="number of most recent packets a receiver keeps to repair others")
