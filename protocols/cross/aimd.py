"""A greedy flow with the congestion control of TCP Reno (RFC 5681): slow start, additive increase, multiplicative decrease.

Every packet is new; lost ones are not repeated, since only the load matters. Each packet is acknowledged by a receipt; it
counts as lost when the receipts of three later ones came, or none for a retransmission time-out (RFC 6298).
"""

from itertools import takewhile
from math import inf

from protocols.cross.messages import Receipt, load_of
from protocols.machine import Address, Machine, Message, Packet, Ports
from protocols.tcp.congestion import RenoPerAck
from protocols.tcp.rtt import RttEstimator

__all__ = ["AimdSource"]

_REORDERING = 3
_FIRST_WINDOW = 2.0


class AimdSource(Machine):
    """Sends packets of `size` bytes of UDP payload to `to` from `begin` to `end` (seconds), as its window allows."""

    __slots__ = (
        "_begin",
        "_control",
        "_end",
        "_flight",
        "_flow",
        "_recovered_at",
        "_rtt",
        "_size",
        "_to",
        "sent",
    )

    def __init__(self, ports: Ports, flow: int, to: Address, size: int, begin: float, end: float = inf) -> None:
        super().__init__(ports)
        self._flow, self._to, self._size = flow, to, size
        self._begin, self._end = begin, end
        self._control = RenoPerAck(_FIRST_WINDOW)
        self._rtt = RttEstimator()
        self._recovered_at = 0
        self._flight: dict[int, float] = {}
        self.sent = 0

    @property
    def window(self) -> float:
        """Congestion window: packets that may be in flight."""
        return self._control.window

    def start(self, now: float) -> None:
        """Set the timer for the first packet."""
        self._due(max(now, self._begin))

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Handle a receipt: update the round-trip time, detect losses, adapt the window and send."""
        if not isinstance(message, Receipt) or message.flow != self._flow:
            return
        at = self._flight.pop(message.number, None)
        if at is None:
            return
        self._rtt.measure(now - at)
        # They are in flight in the order of their numbers.
        lost = list(takewhile(lambda number: number <= message.number - _REORDERING, self._flight))
        for number in lost:
            del self._flight[number]
        if any(number >= self._recovered_at for number in lost):
            self._control.lost(now)
            self._recovered_at = self.sent
        elif message.number >= self._recovered_at:
            self._control.acknowledged(1.0, now, now - at)
        self._fill(now)

    def wake(self, now: float) -> None:
        """Begin to send, or handle a time-out: all packets in flight count as lost."""
        if self._flight:
            self._control.timed_out(now)
            self._flight.clear()
            self._recovered_at = self.sent
            self._rtt.back_off()
        self._fill(now)

    def counts(self) -> dict[str, int]:
        """Return the packets sent."""
        return {"cross_sent": self.sent}

    def _fill(self, now: float) -> None:
        while now < self._end and len(self._flight) < int(self._control.window):
            self._flight[self.sent] = now
            self.ports.send(Packet(load_of(self._flow, self.sent, self._size), self._size, self._to))
            self.sent += 1
        self._due(now + self._rtt.timeout if self._flight else inf)
