"""The objects of a fast sender, which links its messages by positions."""

from protocols.arq.config import AConfig
from protocols.arq.fast.messages import FastData, FastEnd, Position
from protocols.arq.tx_object import ObjectStore, TxObject

__all__ = ["FastObjectStore"]


class FastObjectStore(ObjectStore):
    """As `ObjectStore`; `position` is where receivers are that received everything sent so far."""

    __slots__ = ("_served_from", "model", "position")

    data_type = FastData

    def __init__(self, config: AConfig, node: int, instance: int) -> None:
        super().__init__(config, node, instance)
        self.model: FastData | None = None
        """A unit sent of the object that is being sent, if it and the latest are in the middle of it and have no bytes."""
        self._served_from = 0
        """The oldest object that is repaired, by the last message."""
        self.position = Position((node, self._instance), -1, 0, 0, True)

    @property
    def is_steady(self) -> bool:
        """Whether the next message abandons no object."""
        return self._served_from == self.first

    def message(self, item: TxObject, unit: int, repair: bool) -> FastData:
        """Return the DATA message of a unit, linked to the one before.

        It only advances receivers at the position if it abandons no object, and repairs something or is a unit in the middle of
        the object without bytes.
        """
        before, model = self.position, self.model
        if model is not None and not repair and unit + 1 < item.units:
            # As below, with less steps.
            after = self.position = Position(before.origin, before.object_id, unit + 1, before.sent + 1, False)
            return model.between(before, after)
        payload, length = self.read(item, unit)
        object_id = item.object_id
        is_middle = not repair and 0 < unit < item.units - 1 and before.object_id == object_id and payload is None
        if repair:
            after = Position(before.origin, before.object_id, before.unit, before.sent + 1, before.is_end)
        else:
            after = Position(before.origin, object_id, unit + 1, before.sent + 1, unit + 1 == item.units)
        message = self._make(item, unit, repair, payload, length)
        assert isinstance(message, FastData)
        if not repair:
            self.model = message if is_middle else None
        message.expects = before if (repair or is_middle) and self.is_steady else None
        message.expects_if_complete = None
        message.fills = (object_id, unit) if repair else None
        message.redundant = repair
        message.next_state = self.position = after
        self._served_from = message.first
        return message

    def drop(self, object_id: int) -> None:
        """As of `ObjectStore`; the next message may abandon the object."""
        super().drop(object_id)
        self.model = None

    def end(self) -> FastEnd:
        """Return the END message, which only advances receivers that know how much was sent."""
        plain = super().end()
        message = FastEnd(plain.sender, plain.instance, plain.object_id, plain.units, plain.first)
        position = self.position
        is_known = position.is_end and position.object_id == plain.object_id and self.is_steady
        message.expects = message.next_state = position if is_known else None
        message.expects_if_complete = message.fills = None
        message.redundant = False
        self._served_from = plain.first
        return message

    def skip(self, count: int, position: Position) -> None:
        """Move on by so many units of the object that is being sent, to a position within it."""
        item, unit = self.waiting[-1]
        self.waiting[-1] = item, unit + count
        self.position = position
