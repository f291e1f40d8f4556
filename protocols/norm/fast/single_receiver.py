"""A NORM receiver that is called at every message, because it measures each sender by itself."""

from typing import Any, ClassVar

from protocols.machine import Address, Message
from protocols.norm.fast.messages import FastData
from protocols.norm.fast.sender_state import FastSenderState
from protocols.norm.run_reception import NormBatchReceiver
from protocols.norm.stream_reception import StreamSenderState

__all__ = ["SingleNormReceiver"]


class SingleNormReceiver(NormBatchReceiver):
    """A `NormReceiver` with a short cut for messages that only advance the position; it is in no lockstep group."""

    state_type: ClassVar[type[StreamSenderState]] = FastSenderState

    __slots__ = ()

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message; of one that only advances the position, congestion control takes note."""
        if type(message) is FastData and message.expects is not None:
            state: Any = self._known(message.origin.source_id)
            # Positions are the sender's own objects, so nobody else can have sent it.
            if state is not None and state.position is message.expects:
                state.position = message.next_state
                state.last_heard = now
                if state.note_arrival(message, now):
                    self.settle(state)
                return
        super().receive(message, source, to, now)
