"""The receiver of a flow of cross traffic."""

from protocols.cross.messages import Load, receipt_of
from protocols.cross.wire import RECEIPT_SIZE
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["FlowSink"]


class FlowSink(Machine):
    """Counts the packets of one flow; with `receipts` it acknowledges each, and with `listens` they come over a connection."""

    __slots__ = ("_flow", "_listens", "_receipts", "octets", "received")

    def __init__(self, ports: Ports, flow: int, receipts: bool, listens: bool = False) -> None:
        super().__init__(ports)
        self._flow, self._receipts, self._listens = flow, receipts, listens
        self.received = self.octets = 0

    def start(self, now: float) -> None:
        """Accept connections if the flow comes over one."""
        if self._listens:
            self.ports.listen()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Count a packet of the flow, and acknowledge it."""
        if isinstance(message, Load) and message.flow == self._flow:
            self.received += 1
            self.octets += message.size
            if self._receipts:
                self.ports.send(Packet(receipt_of(self._flow, message.number), RECEIPT_SIZE, source))

    def wake(self, now: float) -> None:
        """Do nothing, since there are no timers."""

    def counts(self) -> dict[str, int]:
        """Return the packets received."""
        return {"cross_received": self.received}
