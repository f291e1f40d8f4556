"""The objects of a fast sender, which links its messages by positions."""

from protocols.arq.config import AConfig
from protocols.arq.fast.messages import FastData, FastEnd, Position
from protocols.arq.tx_object import ObjectStore, TxObject

__all__ = ["FastObjectStore"]


class FastObjectStore(ObjectStore):
    """As `ObjectStore`; `position` is where the sender is, and where receivers are that received everything."""

    __slots__ = ("_position", "_served_from")

    def __init__(self, config: AConfig, node: int, instance: int) -> None:
        super().__init__(config, node, instance)
        self._served_from = 0
        """The oldest object that is repaired, as the last message said."""
        self._position = Position((node, self._instance), -1, 0, 0, True)

    @property
    def position(self) -> Position:
        """The position after the last message."""
        return self._position

    def message(self, item: TxObject, unit: int, repair: bool) -> FastData:
        """Return the DATA message of a unit, linked to the one before."""
        plain = super().message(item, unit, repair)
        message = FastData(
            plain.sender,
            plain.instance,
            plain.object_id,
            plain.unit,
            plain.first,
            plain.size,
            plain.segment,
            plain.is_file,
            repair,
            plain.payload,
            plain.length,
            plain.identity,
        )
        self.link(message, item.units)
        return message

    def link(self, message: FastData, units: int) -> None:
        """Link a message of an object of so many units.

        It only advances receivers at the position if it repairs something, or is a unit in the middle of the object, without bytes
        to be stored, and abandons no object.
        """
        before, unit, repair = self._position, message.unit, message.repair
        if repair:
            after = Position(before.origin, before.object_id, before.unit, before.sent + 1, before.is_end)
        else:
            after = Position(before.origin, message.object_id, unit + 1, before.sent + 1, unit + 1 == units)
        is_inner = repair or (0 < unit < units - 1 and before.object_id == message.object_id and message.payload is None)
        message.expects = before if is_inner and message.first == self._served_from else None
        message.expects_if_complete = None
        message.fills = (message.object_id, unit) if repair else None
        message.next_state = self._position = after
        self._served_from = message.first

    def end(self) -> FastEnd:
        """Return the END message, which only advances receivers that know how much was sent."""
        plain = super().end()
        message = FastEnd(plain.sender, plain.instance, plain.object_id, plain.units, plain.first)
        position = self._position
        is_known = position.is_end and position.object_id == plain.object_id and plain.first == self._served_from
        message.expects = position if is_known else None
        message.expects_if_complete = message.fills = None
        message.next_state = position if is_known else None
        self._served_from = plain.first
        return message

    def skip(self, count: int, position: Position) -> None:
        """Move on by so many units of the object that is being sent, to a position within it."""
        item, unit = self.waiting[-1]
        self.waiting[-1] = item, unit + count
        self._position = position
