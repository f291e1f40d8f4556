"""What a receiver of several senders has of each: a view, which is advanced together with those of other receivers."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mypy_extensions import trait

from protocols.fast.contract import Applied, Coordinator, FastMachine, FastMessage, Overheard, fan_out
from protocols.fast.index import PartIndex, QuietQueue
from protocols.fast.overhearers import Overhearers, OverhearingGroup
from protocols.machine import Address, Message
from protocols.norm.fast.batch import apply_to_incomplete, list_waiting, overhear_nack, rewind
from protocols.norm.fast.messages import FastData, FastFlush
from protocols.norm.fast.overhearers import NormOverhearers
from protocols.norm.fast.sender_state import OTHER, RESCHEDULE, FastSenderState
from protocols.norm.maps import DeadlineMap
from protocols.norm.messages import Ack, Nack
from protocols.norm.stream_reception import StreamSenderState
from protocols.snapshot import Snapshot

if TYPE_CHECKING:
    from protocols.norm.fast.receiver import FastNormReceiver

__all__ = ["NormFollower", "SenderView", "SenderViews"]


@trait
class NormFollower(FastMachine):
    """What a lockstep group calls of the receivers of one sender; `fast_state` is a `FastSenderState`."""

    __slots__ = ()

    @staticmethod
    def receive_batch(machines: Iterable[Any], message: Message, source: Address, to: Address, now: float) -> None:
        """Deliver a message to many receivers, most of which it advances."""
        if isinstance(message, (FastData, FastFlush)) and message.expects is None and message.expects_if_complete is not None:
            expected, data = message.expects_if_complete, message if isinstance(message, FastData) else None
            for machine in machines:
                state: FastSenderState = machine.fast_state
                if state.position is expected:
                    result = state.advance(message, now)
                else:
                    result = OTHER if data is None else state.take(data, now)
                if result == OTHER:
                    machine.receive(message, source, to, now)
                elif result == RESCHEDULE:
                    machine.settle(state)
        else:
            fan_out(machines, message, source, to, now)

    @staticmethod
    def apply_to_incomplete(groups: list[list[Any]], message: FastMessage, now: float, coordinator: Coordinator) -> Applied:
        """Apply a message of the sender to receivers that are incomplete."""
        return apply_to_incomplete(groups, message, now, coordinator)

    @staticmethod
    def list_waiting(
        machines: list[Any], now: float, waiting: dict[Any, list[Any]], quiet: QuietQueue, lacking: PartIndex | None
    ) -> None:
        """List receivers by what they wait for."""
        list_waiting(machines, now, waiting, quiet, lacking)

    @staticmethod
    def rewind(machines: list[Any], message: FastMessage, now: float, coordinator: Coordinator) -> list[Any]:
        """Note that the sender rewound; return those whose hold-off may have ended."""
        return rewind(machines, message, now, coordinator)

    @staticmethod
    def make_overhearers(group: OverhearingGroup) -> Overhearers:
        """Return the empty list of the attentive receivers of a group."""
        return NormOverhearers(group)

    @staticmethod
    def counts_overheard(feedback: Message) -> bool:
        """Return whether it is a NACK."""
        return isinstance(feedback, Nack)

    @staticmethod
    def overhear_batch(
        machines: list[Any], message: Message, source: Address, to: Address, now: float, position: Any, last_heard: float
    ) -> Overheard:
        """Deliver feedback to receivers at one position."""
        if isinstance(message, Nack):
            return overhear_nack(machines, message, now, position, last_heard)
        return FastMachine.overhear_batch(machines, message, source, to, now, position, last_heard)


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

    def settle(self, state: FastSenderState) -> None:
        """Set the deadline of the receiver."""
        self._receiver.settle(state)

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
