"""Counts of nodes with a model."""

from dataclasses import dataclass

__all__ = ["NodeCounts"]


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """Packet counts of a node: `offered` to it, `dropped` by full queues, `filtered` by storm control.

    `processor` is how many seconds its processor was busy; for a counted group the sum over all members.
    """

    node: str
    offered: int
    dropped: int
    filtered: int = 0
    processor: float = 0.0
