"""Where a flow of cross traffic ends."""

from protocols.cross.messages import Load, receipt_of
from protocols.cross.wire import RECEIPT_SIZE
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["FlowSink"]


class FlowSink(Machine):
    """Counts what comes of one flow; with `receipts` it answers each packet."""

    __slots__ = ("_flow", "_receipts", "octets", "received")

    def __init__(self, ports: Ports, flow: int, receipts: bool) -> None:
        super().__init__(ports)
        self._flow, self._receipts = flow, receipts
        self.received = self.octets = 0

    def start(self, now: float) -> None:
        """Nothing."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count, and answer."""
        if isinstance(message, Load) and message.flow == self._flow:
            self.received += 1
            self.octets += message.size
            if self._receipts:
                self.ports.send(Packet(receipt_of(self._flow, message.number), RECEIPT_SIZE, source))

    def wake(self, now: float) -> None:
        """Nothing is ever due."""

    def counts(self) -> dict[str, int]:
        """Packets that came."""
        return {"cross_received": self.received}
