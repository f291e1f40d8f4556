"""Where a sender gets its objects from, when they are not submitted as they come."""

from typing import Protocol

from protocols.machine import Message

__all__ = ["Supply"]


class Supply(Protocol):
    """Chooses the next object when the sender can send it, and keeps the memory of those in the window."""

    @property
    def is_short(self) -> bool:
        """Whether the memory of old objects is needed: they are purged as if others needed their room."""

    def next(self, now: float) -> None:
        """Submit the next object, if there is one; called when nothing is left to be sent for the first time."""

    def purged(self, object_id: int, now: float) -> None:
        """Take the memory of an object back: it has left the window, and is not read any more."""

    def told(self, message: Message, now: float) -> None:
        """Take a message that is none of NORM."""
