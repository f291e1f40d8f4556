"""One object as a receiver puts it together."""

from protocols.arq.messages import Data, units_of
from protocols.machine import Sink

__all__ = ["RxObject"]


class RxObject:
    """An object of which not everything came: the units that did, as bits."""

    __slots__ = ("_held", "_left", "info", "segment", "sink", "size", "units")

    def __init__(self, message: Data, sink: Sink) -> None:
        self.size = message.size
        self.segment = message.segment
        self.units = units_of(message.size, message.segment)
        self.sink = sink
        self.info = b""
        self._held = bytearray((self.units + 7) >> 3)
        self._left = self.units

    def holds(self, unit: int) -> bool:
        """Did the unit come?"""
        return bool(self._held[unit >> 3] >> (unit & 7) & 1)

    def fits(self, message: Data) -> bool:
        """Is this a unit of an object like this one?"""
        return message.size == self.size and message.segment == self.segment and message.unit < self.units

    def take(self, message: Data) -> bool:
        """Store a unit that did not come before; True when the object is complete. OSError when the sink fails."""
        unit, payload = message.unit, message.payload
        if unit == 0:
            self.info = payload or b""
        elif payload is not None:
            self.sink.write((unit - 1) * self.segment, payload)
        self._held[unit >> 3] |= 1 << (unit & 7)
        self._left -= 1
        return self._left == 0
