"""The SRM sender: new content at a rate, and a member like others when something is asked for."""

from protocols.arq.messages import Data
from protocols.arq.sender import AskedSender
from protocols.machine import Address, Group, Message, Ports
from protocols.srm.config import SrmConfig

__all__ = ["HOLD", "SrmSender"]

HOLD = 3.0
"""Requests for a packet are ignored for so many distances after its repair (Floyd et al. 1997)."""


class SrmSender(AskedSender):
    """Repairs after a random wait, unless another member was first."""

    __slots__ = ("_settings", "_spared")

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        rest = config.timeout + 8.0 * config.distance * (config.c1 + config.c2)
        super().__init__(ports, config, node, group, instance, hold=HOLD * config.distance, rest=rest)
        self._settings = config
        self._spared = 0

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Requests, and the repairs of others."""
        if isinstance(message, Data) and message.sender == self._node and message.instance == self._instance:
            key = (message.object_id, message.unit)
            if key[0] in self._store.objects:
                self._spared += key in self._collecting or key in self._repairs
                self._collecting.pop(key, None)
                self._repairs.pop(key, None)
                self._held[key] = now + self._hold
                self._schedule()
            return
        super().receive(message, source, to, now)

    def counts(self) -> dict[str, int]:
        """What was sent, heard and left to others."""
        return {**super().counts(), "repairs_suppressed": self._spared}

    def _delay(self) -> float:
        known = self._settings
        return known.distance * (known.d1 + known.d2 * self.ports.rng.uniform())
