"""The SRM sender (Floyd et al. 1997): sends new content at a rate, and repairs on request like any other member."""

from typing import Final

from protocols.arq.messages import Data
from protocols.arq.nacked_sender import NackedSender
from protocols.machine import Address, Group, Message, Ports
from protocols.srm.config import SrmConfig

__all__ = ["HOLD", "SrmSender"]

HOLD: Final = 3.0
"""Requests for a unit are ignored for this many distances after its repair (Floyd et al. 1997)."""


class SrmSender(NackedSender):
    """Repairs a requested unit after a random wait, unless another member repairs it first."""

    __slots__ = ("_distances", "_repairs_suppressed")

    def __init__(self, ports: Ports, config: SrmConfig, node: int, group: Group, instance: int) -> None:
        # A receiver that learns of a loss from the last END has time for several rounds of its request timer.
        last_wait = config.timeout + 8.0 * config.distance * (config.c1 + config.c2)
        super().__init__(ports, config, node, group, instance, hold=HOLD * config.distance, last_wait=last_wait)
        self._distances = config
        self._repairs_suppressed = 0

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle requests, and repairs by other members, which suppress an own repair of the unit."""
        if isinstance(message, Data) and message.sender == self._node and message.instance == self._instance:
            key = (message.object_id, message.unit)
            if message.object_id in self._store.objects:
                self._repairs_suppressed += key in self._requested or key in self._repairs
                self._requested.pop(key, None)
                self._repairs.pop(key, None)
                self._held_until[key] = now + self._hold
                self._schedule()
            return
        super().receive(message, source, to, now)

    def counts(self) -> dict[str, int]:
        """Return what was sent, the NACKs received, and the repairs left to other members."""
        return {**super().counts(), "repairs_suppressed": self._repairs_suppressed}

    def _repair_delay(self) -> float:
        """Return d * (d1 + d2 * U), U uniform in [0, 1)."""
        config = self._distances
        return config.distance * (config.d1 + config.d2 * self.ports.rng.uniform())
