"""The messages of a fast sender: what the wire holds, and the positions before and after them."""

from protocols.arq.messages import Data, End
from protocols.fast.units import UnitMessage

__all__ = ["FastData", "FastEnd", "Position"]

_CHAIN = ("expects", "expects_if_complete", "fills", "next_state", "redundant")


class Position:
    """Where a sender is: object and unit to be sent next, and how many DATA messages it sent."""

    __slots__ = ("is_end", "object_id", "origin", "sent", "unit")

    def __init__(self, origin: tuple[int, int], object_id: int, unit: int, sent: int, is_end: bool) -> None:
        self.origin = origin
        """Node id and instance of the sender."""
        self.object_id = object_id
        self.unit = unit
        self.sent = sent
        self.is_end = is_end
        """Whether the unit follows the last one of the object."""


class FastData(Data, UnitMessage):
    """DATA between two positions; `fills` is (object id, unit) of a repair."""

    __slots__ = _CHAIN

    def of_unit(self, unit: int) -> "FastData":
        """Return the DATA of another unit that as this one is in the middle of the object without bytes, linked to none."""
        assert self.identity is not None
        return FastData(
            self.sender,
            self.instance,
            self.object_id,
            unit,
            self.first,
            self.size,
            self.segment,
            self.is_file,
            False,
            None,
            self.length,
            self.identity + unit - self.unit,
        )

    def between(self, before: Position, after: Position) -> "FastData":
        """As `of_unit`, between two positions."""
        message = self.of_unit(before.unit)
        message.expects, message.next_state = before, after
        message.expects_if_complete = message.fills = None
        message.redundant = False
        return message

    def repairing(self, unit: int, before: Position, after: Position) -> "FastData":
        """As `of_unit`, the repair of a unit between two positions."""
        message = self.of_unit(unit)
        message.repair = message.redundant = True
        message.expects, message.next_state = before, after
        message.expects_if_complete, message.fills = None, (self.object_id, unit)
        return message


class FastEnd(End, UnitMessage):
    """END between two positions: it advances no receiver that knows that everything was sent."""

    __slots__ = _CHAIN
