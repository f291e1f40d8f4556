"""The SRM source for the fast engine."""

from protocols.arq.fast.messages import FastData
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.tx_object import ObjectStore, TxObject
from protocols.fast.contract import FastMachine, OwnState
from protocols.machine import Group, Ports
from protocols.srm.config import SrmConfig
from protocols.srm.sender import SrmSender

__all__ = ["FastSrmSender", "SrmObjectStore"]


class SrmObjectStore(FastObjectStore):
    """As `FastObjectStore`; repairs are no part of the chain, because any member sends them."""

    __slots__ = ()

    def message(self, item: TxObject, unit: int, repair: bool) -> FastData:
        """Return the DATA message of a unit, linked to the one before if it is a new one. OSError when the source fails."""
        if not repair:
            return super().message(item, unit, repair)
        payload, length = self.read(item, unit)
        message = self._make(item, unit, repair, payload, length)
        assert isinstance(message, FastData)
        return message


class FastSrmSender(SrmSender, FastMachine):
    """An `SrmSender` whose new units are linked. It plans no bursts: its own timers come between its packets."""

    __slots__ = ("fast_state",)

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()

    def _make_store(self) -> ObjectStore:
        return SrmObjectStore(self._config, self._node, self._instance)
