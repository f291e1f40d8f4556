"""Feedback that many machines send to one address at one instant, as one object from the senders to the receiver."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from protocols.machine import Address, Message

__all__ = ["FeedbackBatch"]


class FeedbackBatch(ABC):
    """One message of each of several machines, which differ in their sender only; all have one kind and size.

    A host may deliver parts of it late, by `deliver`, if the receiver does nothing about such a message but to note it.
    """

    __slots__ = ("kind", "machines", "size", "to")

    def __init__(self, machines: Sequence[Any], kind: str, size: int, to: Address) -> None:
        self.machines = machines
        """The machines that send, in the order of their hosts."""
        self.kind = kind
        self.size = size
        """Bytes of UDP payload of each message."""
        self.to = to

    @abstractmethod
    def message(self, number: int) -> Message:
        """Return the message of machine `number`, counted from 0."""

    @abstractmethod
    def is_noted_by(self, machine: object) -> bool:
        """Return whether the messages have no effect on this receiver that shows before its next other input."""

    @abstractmethod
    def deliver(self, machine: Any, begin: int, times: Sequence[float]) -> None:
        """Deliver the messages from number `begin` on to a receiver that only notes them; they arrived at `times` (seconds)."""
