"""The machine of a host that runs none."""

from typing import Final, cast

from protocols.machine import Address, Machine, Message, Ports

__all__ = ["IDLE", "Idle"]


class Idle(Machine):
    """A machine that does nothing: the null object of hosts without a machine."""

    __slots__ = ()

    def __init__(self) -> None:
        # It never uses its ports.
        super().__init__(cast(Ports, None))

    def start(self, now: float) -> None:
        """Do nothing."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Do nothing."""

    def wake(self, now: float) -> None:
        """Do nothing."""

    def counts(self) -> dict[str, int]:
        """Return no counters."""
        return {}


IDLE: Final = Idle()
