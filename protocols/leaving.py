"""Machines that tell others when they leave."""

from typing import Protocol, runtime_checkable

__all__ = ["LeavingMachine"]


@runtime_checkable
class LeavingMachine(Protocol):
    """A machine that is told by its application that its host is about to stop it for good."""

    def leave(self, now: float) -> None:
        """Tell others what they have to know; call through `Host.call`, directly before `Host.stop`."""
