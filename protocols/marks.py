"""Machines that want to know which packets a queue has marked instead of dropping them (ECN, RFC 3168)."""

from typing import Protocol, runtime_checkable

from protocols.machine import Address, Message

__all__ = ["MarkAware"]


@runtime_checkable
class MarkAware(Protocol):
    """A machine with an input for marked packets; others get them by `receive`, like any packet."""

    def receive_marked(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message of another node, whose packet is marked."""
