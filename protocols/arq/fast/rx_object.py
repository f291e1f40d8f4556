"""An object that is being received, by the units that are missing."""

from typing import Final

from protocols.arq.messages import Data
from protocols.arq.rx_object import RxObject
from protocols.machine import Sink
from protocols.norm.maps import SmallDict

__all__ = ["FastRxObject"]


class FastRxObject(RxObject):
    """An `RxObject` without a bitmap: received are the units before `reached` that are not in `gaps`."""

    __slots__ = ("gaps", "reached")

    def __init__(self, message: Data, sink: Sink) -> None:
        super().__init__(message, sink)
        self.reached = 0
        self.gaps: SmallDict[bool] | None = None
        """The missing units before `reached`; None for none, since most receivers have none."""

    def _make_bitmap(self) -> bytearray:
        return _NO_BITMAP

    def reach(self, unit: int) -> None:
        """Take the units before `unit` as sent: those not received are missing."""
        if unit > self.reached:
            if self.gaps is None:
                self.gaps = SmallDict()
            # That number, and not an equal one, since all receivers that miss the unit share it.
            self.gaps[self.reached] = True
            for missing in range(self.reached + 1, unit):
                self.gaps[missing] = True
            self.reached = unit

    @property
    def received(self) -> int:
        """The number of units received."""
        return self.reached - (0 if self.gaps is None else len(self.gaps))

    def has(self, unit: int) -> bool:
        """Return whether the unit was received."""
        return unit < self.reached and (self.gaps is None or unit not in self.gaps)

    def store(self, message: Data) -> bool:
        """As of `RxObject`."""
        unit, payload = message.unit, message.payload
        if unit == 0:
            self.info = payload or b""
        elif payload is not None:
            self.sink.write((unit - 1) * self.segment, payload)
        self.reach(unit)
        if unit == self.reached:
            self.reached = unit + 1
        elif self.gaps is not None:
            del self.gaps[unit]
            if not self.gaps:
                self.gaps = None
        return self.reached == self.units and self.gaps is None


_NO_BITMAP: Final = bytearray()
