"""Statistics of a network: the counts of its links, and every packet sent."""

from dataclasses import dataclass
from typing import Protocol

from protocols.machine import Message
from sim.timers import KernelHost

__all__ = ["LinkCounts", "Observer"]


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """Packet counts of one direction of a link; for a counted group, the sums over all members' links."""

    near: str
    far: str
    offered: int
    dropped: int
    """By the queue."""
    lost: int
    corrupt: int
    """Damaged, and dropped for it."""
    marked: int
    """Carried with a mark of congestion (ECN)."""
    duplicated: int
    """Carried twice."""


class Observer(Protocol):
    """Observes every packet that hosts send; may not change the run."""

    def sent(self, now: float, host: KernelHost, message: Message, size: int) -> None:
        """A host put a packet of `size` bytes of UDP payload on its link at `now` seconds."""
