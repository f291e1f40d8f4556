"""Machines that announce when they leave."""

from typing import Protocol, runtime_checkable

__all__ = ["LeavingMachine"]


@runtime_checkable
class LeavingMachine(Protocol):
    """A machine with a verb for its application to call before the host stops it for good."""

    def leave(self, now: float) -> None:
        """Send what other nodes need to know; call through `Host.call`, directly before `Host.stop`."""
