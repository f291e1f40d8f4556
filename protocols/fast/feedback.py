"""Feedback that many machines send to one address at one instant, as one object from the senders to the receiver."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import compress
from typing import Any

from protocols.machine import Address, Message

__all__ = ["FeedbackBatch", "FeedbackGroup"]


class FeedbackGroup(ABC):
    """The members of a lockstep group, as those that answer a message together; `machines` must not change."""

    __slots__ = ("machines", "places")

    def __init__(self, machines: list[Any]) -> None:
        self.machines = machines
        """All members, in the order of their hosts."""
        self.places: list[int] | None = None
        """The numbers of their hosts, kept here by what carries the batches."""

    @abstractmethod
    def answer(self, answering: bytes, message: Message, source: Address) -> "FeedbackBatch | None":
        """Return what the members send that a message only advances: those whose byte in `answering` is 1. None: nothing."""


class FeedbackBatch(ABC):
    """One message of each of several members of a group, which differ in their sender only; all have one kind and size.

    A host may deliver parts of it late, by `deliver`, if the receiver does nothing about such a message but to note it.
    """

    __slots__ = ("answering", "group", "kind", "size", "to")

    def __init__(self, group: FeedbackGroup, answering: bytes, kind: str, size: int, to: Address) -> None:
        self.group = group
        self.answering = answering
        """For each member 1 if it sends, else 0."""
        self.kind = kind
        self.size = size
        """Bytes of UDP payload of each message."""
        self.to = to

    def machines(self) -> list[Any]:
        """Return the machines that send, in the order of their hosts."""
        return list(compress(self.group.machines, self.answering))

    @abstractmethod
    def message(self, number: int) -> Message:
        """Return message `number`, counted from 0."""

    @abstractmethod
    def without(self, numbers: Sequence[int]) -> "FeedbackBatch | None":
        """Return the batch without these messages, None if it has no others."""

    def answering_without(self, numbers: Sequence[int]) -> bytes:
        """Return `answering` without the members that send these messages."""
        members = list(compress(range(len(self.answering)), self.answering))
        answering = bytearray(self.answering)
        for number in numbers:
            answering[members[number]] = 0
        return bytes(answering)

    @abstractmethod
    def is_noted_by(self, machine: object) -> bool:
        """Return whether the messages have no effect on this receiver that shows before its next other input."""

    @abstractmethod
    def deliver(self, machine: Any, begin: int, times: Sequence[float]) -> None:
        """Deliver the messages from number `begin` on to a receiver that only notes them; they arrived at `times` (seconds)."""
