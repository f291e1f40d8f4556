"""The state of one source at an SRM receiver of the fast engine."""

from typing import Any

from protocols.arq.fast.sender_state import FastSenderState
from protocols.srm.messages import Repair

__all__ = ["FastSrmSenderState"]


class FastSrmSenderState(FastSenderState):
    """As `FastSenderState`; repairs, which any member sends, are no part of the source's chain of positions."""

    __slots__ = ()

    @property
    def reached(self) -> tuple[int, int]:
        """Object and unit that follow the last unit known to be sent."""
        self.sync()
        return self._object, self._unit

    def on_position(self, object_id: int, unit: int, now: float) -> None:
        """Handle a report that the source is ahead: no message of the chain expects this."""
        self.sync()
        super().on_position(object_id, unit, now)
        self.leave_chain()

    def take_repair(self, message: Repair, now: float) -> bool | None:
        """Handle the repair of a unit before the position, which is left as it is; None if the message does more.

        Returns whether the unit was stored, as `on_data`.
        """
        self.sync()
        objects: Any = self._objects
        object_id, unit, first = message.object_id, message.unit, message.first
        if not first <= object_id <= self._object or (objects and next(iter(objects)) < first):
            return None
        item = objects.get(object_id)
        if item is None:
            if object_id in objects:
                return None
        elif (object_id == self._object and unit >= self._unit) or not item.fits(message):
            return None
        self.last_heard = now
        if item is None or item.gaps is None or unit not in item.gaps:
            self._session.duplicates += 1
            return False
        is_new = self._store(item, message)
        self._drop_missing()
        if is_new:
            self.is_complete = all(each is not None and each.gaps is None for each in objects.values())
        return is_new
