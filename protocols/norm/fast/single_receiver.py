"""A NORM receiver that is called at every message, because it measures each sender by itself."""

from typing import ClassVar

from protocols.machine import Address, Message
from protocols.norm.fast.messages import FastData, FastInfo, FastProbe
from protocols.norm.fast.sender_state import ADVANCED, OTHER, RESCHEDULE, FastSenderState
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.stream_reception import StreamSenderState
from protocols.norm.wire.sizes import size_of

__all__ = ["MeasuringSenderState", "SingleNormReceiver"]


class MeasuringSenderState(FastSenderState):
    """A sender whose content is processed by short cuts, and of which congestion control measures each message."""

    __slots__ = ()

    def take(self, message: FastData, now: float) -> int:
        """Process content by a short cut, if there is one; return OTHER, ADVANCED or RESCHEDULE."""
        result = OTHER
        if message.expects is not None and message.expects is self.position:
            # Positions are the sender's own objects, so nobody else can have sent it.
            self.position = message.next_state
            self.last_heard = now
            result = ADVANCED
        elif self._profile.backoff and super().take(message, now) != OTHER:
            # Without a back-off `super().take` may send a NACK, whose loss and rate have to include this message.
            result = RESCHEDULE
        congestion = self.extras.congestion
        if result != OTHER and congestion is not None:
            due = congestion.due
            congestion.arrived(message.sequence, size_of(message), self._profile, now)
            if congestion.due != due:
                result = RESCHEDULE
        return result

    def interpret(self, message: FastData | FastInfo | FastProbe, now: float) -> int:
        """Return OTHER, so that the receiver interprets the message as a plain one, which measures it, too."""
        return OTHER


class SingleNormReceiver(NormBatchReceiver):
    """A `NormReceiver` with short cuts for content; it is in no lockstep group."""

    state_type: ClassVar[type[StreamSenderState]] = MeasuringSenderState

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message, by a short cut where there is one."""
        if type(message) is FastData:
            state = self._known(message.origin.source_id)
            if isinstance(state, MeasuringSenderState):
                result = state.take(message, now)
                if result == RESCHEDULE:
                    self.settle(state)
                if result != OTHER:
                    return
        super().receive(message, source, to, now)
