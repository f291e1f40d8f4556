"""The SRM source for the fast engine."""

from protocols.fast.contract import FastMachine, OwnState
from protocols.machine import Group, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.sender import SrmSender

__all__ = ["FastSrmSender"]


class FastSrmSender(SrmSender, FastMachine):
    """An `SrmSender` that is never advanced with others, and plans no bursts: its own timers come between its packets."""

    __slots__ = ("fast_state",)

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()
