"""An object that is being received."""

from protocols.arq.messages import Data, units_of
from protocols.machine import Sink

__all__ = ["RxObject"]


class RxObject:
    """An incomplete object: its size, its sink, and a bitmap of the units received."""

    __slots__ = ("_left", "_received", "info", "segment", "sink", "size", "units")

    def __init__(self, message: Data, sink: Sink) -> None:
        self.size = message.size
        self.segment = message.segment
        self.units = units_of(message.size, message.segment)
        self.sink = sink
        self.info = b""
        self._received = self._make_bitmap()
        self._left = self.units

    def _make_bitmap(self) -> bytearray:
        return bytearray((self.units + 7) >> 3)

    @property
    def received(self) -> int:
        """The number of units received."""
        return self.units - self._left

    @property
    def octets_received(self) -> int:
        """The bytes of content received."""
        segments, last = self.received - self.has(0), self.units - 1
        short = self.segment * last - self.size
        return segments * self.segment - (short if last and self.has(last) else 0)

    def has(self, unit: int) -> bool:
        """Return whether the unit was received."""
        return bool(self._received[unit >> 3] >> (unit & 7) & 1)

    def fits(self, message: Data) -> bool:
        """Return whether the message carries a unit of an object of this size and segment size."""
        return message.size == self.size and message.segment == self.segment and message.unit < self.units

    def store(self, message: Data) -> bool:
        """Store a unit that was not received before. Returns whether the object is complete; OSError when the sink fails."""
        unit, payload = message.unit, message.payload
        if unit == 0:
            self.info = payload or b""
        elif payload is not None:
            self.sink.write((unit - 1) * self.segment, payload)
        self._received[unit >> 3] |= 1 << (unit & 7)
        self._left -= 1
        return self._left == 0
