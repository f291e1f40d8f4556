"""The sender of N1 and N2 that plans bursts."""

from protocols.arq.config import N1Config
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.nacked_sender import GatheringSender
from protocols.arq.tx_object import ObjectStore
from protocols.fast.contract import FastMachine, OwnState
from protocols.machine import Group, Ports

__all__ = ["FastGatheringSender"]


class FastGatheringSender(GatheringSender, FastMachine):
    """A `GatheringSender` whose messages are linked."""

    __slots__ = ("_linked", "fast_state")
    _linked: FastObjectStore

    def __init__(self, ports: Ports, config: N1Config, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()

    def _make_store(self) -> ObjectStore:
        self._linked = FastObjectStore(self._config, self._node, self._instance)
        return self._linked
