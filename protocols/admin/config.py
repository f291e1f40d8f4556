"""Parameters of a registry, which a scenario writes beside `role: admin`."""

from dataclasses import dataclass
from typing import Final

from protocols.settings import check, setting

__all__ = ["MOST_NODES", "AdminOptions"]

THESIS: Final = "FJM2-Admin (thesis, 3.7)"
MOST_NODES: Final = 1024
"""Tunnels of a registry; one that comes then is refused."""


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """How often a registry advertises its list, and how long a tunnel stays in it without renewing."""

    period: float = setting(1.0, "seconds", 0.05, 3600.0, help="time between two advertisements to each node", source=THESIS)
    lease: float = setting(10.0, "seconds", 0.2, 86_400.0, help="time after which a node that does not renew is forgotten")
    state: int = setting(0, "count", 0, 1, help="1: the list is on the host's disk, and known again after a crash")

    def __post_init__(self) -> None:
        check(self)
