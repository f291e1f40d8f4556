"""What a network tells: the counts of its links, and every packet sent."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from protocols.machine import Message

if TYPE_CHECKING:
    from sim.host import SimHost

__all__ = ["LinkCounts", "Observer"]


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """What became of the packets of one direction of a link; for a counted group, of all members' links together."""

    near: str
    far: str
    offered: int
    dropped: int
    """By the queue."""
    lost: int
    corrupt: int
    """Damaged, and dropped for it."""
    marked: int
    """Carried on with a mark of congestion."""
    duplicated: int
    """Carried on twice."""


class Observer(Protocol):
    """Sees a run go by and changes nothing."""

    def sent(self, now: float, host: "SimHost", message: Message, size: int) -> None:
        """A host put a packet on its link."""
