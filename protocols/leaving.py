"""Machines that tell others when they leave."""

from typing import Protocol, runtime_checkable

__all__ = ["LeavingMachine"]


@runtime_checkable
class LeavingMachine(Protocol):
    """A machine with a verb for its application to call before the host stops it for good."""

    def leave(self, now: float) -> None:
        """Tell others what they have to know; call through `Host.call`, directly before `Host.stop`."""
