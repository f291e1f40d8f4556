"""The state of one source at an SRM receiver of the fast engine."""

from protocols.arq.fast.sender_state import FastSenderState

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
