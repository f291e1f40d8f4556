"""Statistics of a network: the counts of its links, and every packet sent."""

from collections.abc import Sequence
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
    """Observes every packet that hosts send; may not change the run. Each packet is reported by one of the methods."""

    def sent(self, now: float, host: KernelHost, message: Message, size: int) -> None:
        """Note that a host put a packet of `size` bytes of UDP payload on its link at `now` seconds."""

    def sent_new(self, times: Sequence[float], host: KernelHost, kind: str, size: int, identity: int) -> None:
        """Note that a host put packets with new content on its link at `times`, in seconds and ascending.

        All have one kind and size; their identities are consecutive, and the first is `identity`.
        """

    def sent_feedback(self, now: float, places: Sequence[int], kind: str, size: int) -> None:
        """Note that the hosts at these places each put a control packet of `size` bytes on their links at `now` seconds."""
