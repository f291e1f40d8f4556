"""The sender of protocol A that takes the ACKs of many receivers at once."""

from collections.abc import Sequence

from protocols.arq.acked_sender import AckedSender
from protocols.arq.config import AConfig
from protocols.arq.fast.acks import AckSink
from protocols.arq.fast.messages import FastData
from protocols.arq.fast.tx_object import FastObjectStore
from protocols.arq.tx_object import ObjectStore
from protocols.fast.contract import FastMachine, OwnState
from protocols.machine import Group, Ports
from protocols.snapshot import Snapshot

__all__ = ["FastAckedSender"]


class FastAckedSender(AckedSender, FastMachine, AckSink):
    """An `AckedSender` whose messages are linked."""

    __slots__ = ("fast_state",)

    def __init__(self, ports: Ports, config: AConfig, node: int, group: Group, instance: int) -> None:
        super().__init__(ports, config, node, group, instance)
        self.fast_state = OwnState()

    def _make_store(self) -> ObjectStore:
        return FastObjectStore(self._config, self._node, self._instance)

    def counts(self) -> dict[str, int]:
        """Return what was sent, the ACKs received, and how often a timer ran out before all ACKs had come."""
        self.leave_lockstep()
        return super().counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the session, and of the object that is being sent."""
        self.leave_lockstep()
        return super().snapshot(now)

    def take_acks(self, message: FastData, nodes: Sequence[int], times: Sequence[float]) -> None:
        """Handle the ACKs of these nodes, which arrived at `times` (seconds)."""
        if message.sender == self._node and message.instance == self._instance:
            self._acks += len(nodes)
            self._heard_at.update(zip(nodes, times, strict=True))
            outstanding = self._outstanding.get((message.object_id, message.unit))
            if outstanding is not None:
                outstanding.acked.update(nodes)
