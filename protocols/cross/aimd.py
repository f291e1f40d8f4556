"""A greedy flow with the congestion control of TCP Reno (RFC 5681): slow start, additive increase, multiplicative decrease.

Every packet is new; lost ones are not repeated, since only the load matters. Each packet is acknowledged by a receipt; it
counts as lost when the receipts of three later ones came, or none for a retransmission time-out (RFC 6298).
"""

from math import inf

from protocols.cross.messages import Receipt, load_of
from protocols.machine import Address, Machine, Message, Packet, Ports

__all__ = ["AimdSource"]

_REORDERING = 3
_FIRST_WINDOW = 2.0
_RTO_FIRST, _RTO_LEAST, _RTO_MOST = 1.0, 0.2, 60.0


class AimdSource(Machine):
    """Sends packets of `size` bytes of UDP payload to `to` from `begin` to `end` (seconds), as its window allows."""

    __slots__ = (
        "_begin",
        "_end",
        "_flight",
        "_flow",
        "_recovered_at",
        "_rto",
        "_size",
        "_srtt",
        "_threshold",
        "_to",
        "_variance",
        "sent",
        "window",
    )

    def __init__(self, ports: Ports, flow: int, to: Address, size: int, begin: float, end: float = inf) -> None:
        super().__init__(ports)
        self._flow, self._to, self._size = flow, to, size
        self._begin, self._end = begin, end
        self.window = _FIRST_WINDOW
        """Congestion window: packets that may be in flight."""
        self._threshold = inf
        self._recovered_at = 0
        self._flight: dict[int, float] = {}
        self._srtt: float | None = None
        self._variance = 0.0
        self._rto = _RTO_FIRST
        self.sent = 0

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
        self._measure(now - at)
        lost = [number for number in self._flight if number <= message.number - _REORDERING]
        for number in lost:
            del self._flight[number]
        if any(number >= self._recovered_at for number in lost):
            self._threshold = self.window = max(2.0, self.window / 2)
            self._recovered_at = self.sent
        elif message.number >= self._recovered_at:
            self.window += 1.0 if self.window < self._threshold else 1.0 / self.window
        self._fill(now)

    def wake(self, now: float) -> None:
        """Begin to send, or handle a time-out: all packets in flight count as lost."""
        if self._flight:
            self._threshold = max(2.0, self.window / 2)
            self.window = 1.0
            self._flight.clear()
            self._recovered_at = self.sent
            self._rto = min(2 * self._rto, _RTO_MOST)
        self._fill(now)

    def counts(self) -> dict[str, int]:
        """Return the packets sent."""
        return {"cross_sent": self.sent}

    def _measure(self, rtt: float) -> None:
        if self._srtt is None:
            self._srtt, self._variance = rtt, rtt / 2
        else:
            self._variance += (abs(self._srtt - rtt) - self._variance) / 4
            self._srtt += (rtt - self._srtt) / 8
        self._rto = max(_RTO_LEAST, self._srtt + 4 * self._variance)

    def _fill(self, now: float) -> None:
        while now < self._end and len(self._flight) < int(self.window):
            self._flight[self.sent] = now
            self.ports.send(Packet(load_of(self._flow, self.sent, self._size), self._size, self._to))
            self.sent += 1
        self._due(now + self._rto if self._flight else inf)
