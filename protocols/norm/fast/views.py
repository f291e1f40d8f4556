"""Views: the state of one sender at a receiver of several, advanced together with those of other receivers."""

from typing import TYPE_CHECKING

from protocols.machine import Address, Message
from protocols.norm.fast.batch import NormFollower
from protocols.norm.fast.messages import FastData, FastFlush
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.maps import DeadlineMap
from protocols.norm.messages import Ack, Nack
from protocols.norm.stream_reception import StreamSenderState
from protocols.snapshot import Snapshot

if TYPE_CHECKING:
    from protocols.norm.fast.receiver import FastNormReceiver

__all__ = ["SenderView", "SenderViews"]


class SenderView(NormFollower):
    """One sender of a receiver of several; all its outputs are the receiver's."""

    __slots__ = ("_receiver", "fast_state")

    def __init__(self, receiver: "FastNormReceiver", state: FastSenderState) -> None:
        super().__init__(receiver.ports)
        self._receiver = receiver
        self.fast_state = state

    def start(self, now: float) -> None:
        """Do nothing: the receiver joins the group."""

    def receive(self, message: Message, source: Address, to: Address, now: float) -> None:
        """Process a message of the sender, or feedback for it."""
        state: FastSenderState = self.fast_state
        result = OTHER
        if type(message) is FastData:
            if message.expects is state.position:
                state.position = message.next_state
                state.last_heard = now
                return
            result = state.take(message, now)
        elif type(message) is FastFlush and message.expects_if_complete is state.position:
            result = state.advance(message, now)
        if result == OTHER:
            self._receiver.interpret(message, source, to, now)
        elif result == RESCHEDULE:
            self._receiver.settle(state)

    def overhear(self, message: Nack | Ack, now: float) -> None:
        """Process the feedback of another receiver."""
        state: FastSenderState = self.fast_state
        if state.attentive and state.overhear(message, now):
            self._receiver.settle(state)

    def settle(self, sender: FastSenderState) -> None:
        """Set the deadline of the receiver."""
        self._receiver.settle(sender)

    def wake(self, now: float) -> None:
        """Wake the receiver, which has the deadline."""
        self._receiver.wake(now)

    def counts(self) -> dict[str, int]:
        """Return the counters of the receiver."""
        return self._receiver.counts()

    def snapshot(self, now: float) -> Snapshot:
        """Return the statistics of the receiver."""
        return self._receiver.snapshot(now)


class SenderViews(DeadlineMap[StreamSenderState]):
    """The senders that a receiver heard, and a view `of` each that it follows, by node: of some it may have heard nothing."""

    __slots__ = ("of",)

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[int, SenderView] = {}

    def release(self) -> None:
        """Bring all senders up to date, because the receiver gets an input of its own."""
        for view in self.of.values():
            view.leave_lockstep()
